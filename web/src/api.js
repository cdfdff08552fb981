// The client of Tidemark's HTTP API (docs/http.md): the token in a header, errors in the server's words,
// server-sent events by fetch, so that they too have the token.

import { readEvents } from "./sse.js";

// ApiError is a refusal of the server, or the want of any answer: then its status is 0 and its type
// "offline".
export class ApiError extends Error {
  constructor(message, { status = 0, type = "offline", requestId = "", input = "", retryAfter = 0 } = {}) {
    super(message);
    this.name = "ApiError";
    Object.assign(this, { status, type, requestId, input, retryAfter });
  }

  // again says whether the same request may go through later, without anybody's doing. What is sent has an id,
  // so that it may be sent again even when the answer alone was lost. A 502 in the server's own words tells of
  // the model, mostly of a refusal that stays.
  get again() {
    if (this.status === 502) return this.type === "gateway" || this.type === "network";
    return this.status === 0 || this.status === 429 || (this.status >= 500 && this.status !== 501);
  }
}

// sessionPath is where the routes of a session begin; a "#" of a branch is escaped with the rest.
export const sessionPath = (key) => `/v1/sessions/${encodeURIComponent(key)}`;
export const agentPath = (agent) => `/v1/agents/${encodeURIComponent(agent)}`;

// createApi returns the client. token gives the token or "", refused is told when the server wants
// another one; fetch and base are for tests.
//
//   get(path, options)              the decoded JSON
//   delete(path, options)           the same
//   post, put, patch(path, body, options)   body: a value is sent as JSON, a string or Blob as it is
//   stream(path, {onEvent, …})      reads server-sent events; resolves when they end
//
// Options: query {name: value}, headers, signal, as: "json" (default), "text", "blob" or "response".
// All of them reject with an ApiError, or with an AbortError when signal says so.
export function createApi({ token = () => "", refused = () => {}, base = "", fetch = (...a) => globalThis.fetch(...a) } = {}) {
  async function send(method, path, { body, query, headers = {}, signal } = {}) {
    const all = new Headers(headers);
    const secret = token();
    if (secret) all.set("Authorization", `Bearer ${secret}`);
    if (body !== undefined && typeof body !== "string" && !(body instanceof Blob)) {
      body = JSON.stringify(body);
      all.set("Content-Type", "application/json");
    }
    let answer;
    try {
      answer = await fetch(base + path + queryOf(query), { method, headers: all, body, signal, credentials: "omit", cache: "no-store", redirect: "error" });
    } catch (e) {
      throw e.name === "AbortError" ? e : new ApiError("The server cannot be reached.");
    }
    if (answer.ok) return answer;
    const error = await errorOf(answer);
    if (error.status === 401) refused(error, secret);
    throw error;
  }

  async function call(method, path, body, { as = "json", ...options } = {}) {
    const answer = await send(method, path, { ...options, body });
    if (as === "response") return answer;
    try {
      return await answer[as]();
    } catch (e) {
      throw e.name === "AbortError" ? e : new ApiError("The server's answer was cut off.");
    }
  }

  return {
    get: (path, options) => call("GET", path, undefined, options),
    post: (path, body = {}, options) => call("POST", path, body, options),
    put: (path, body, options) => call("PUT", path, body, options),
    patch: (path, body, options) => call("PATCH", path, body, options),
    delete: (path, options) => call("DELETE", path, undefined, options),

    // stream calls onOpen when the server has accepted, onEvent({event, data}) for each event with its
    // data decoded, onBeat for every sign of life, pings included.
    async stream(path, { onEvent, onOpen, onBeat, ...options }) {
      const answer = await send("GET", path, { ...options, headers: { Accept: "text/event-stream", ...options.headers } });
      onOpen?.(answer);
      try {
        await readEvents(answer.body, (event, data) => onEvent({ event, data: JSON.parse(data) }), onBeat);
      } catch (e) {
        throw e.name === "AbortError" || e instanceof ApiError ? e : new ApiError("The connection was cut off.");
      }
    },
  };
}

// tokenWords is for a person what the server says to whoever sent no token: not by which header it is sent,
// only where it is found, which the server knows best.
export function tokenWords(message) {
  if (!message.startsWith("no token: ")) return message;
  const [, where = "TIDEMARK_TOKEN as the server was started with"] = message.match(/\((TIDEMARK_TOKEN[^()]*)\)/) ?? [];
  return `It is ${where}.`;
}

function queryOf(query) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") all.set(name, String(value));
  }
  return all.size ? `?${all}` : "";
}

// errorOf reads the server's words; a proxy's page instead of them is told by its status, as "gateway".
async function errorOf(answer) {
  const told = { status: answer.status, type: "gateway", retryAfter: Number(answer.headers.get("retry-after")) || 0, requestId: answer.headers.get("x-request-id") ?? "" };
  try {
    const { error } = await answer.json();
    if (typeof error.message !== "string") throw new Error("not the server's words");
    return new ApiError(error.message, { ...told, ...error, status: answer.status });
  } catch {
    return new ApiError(`The server answered ${answer.status} ${answer.statusText}.`.replace(" .", "."), told);
  }
}

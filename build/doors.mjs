// The doors for clients of other APIs, as far as the front needs them: whose object a request is for, in
// which words a failure is told, and what pages of other origins may do. The rules are those of
// worker/talk.go, worker/tongue.go and worker/cors.go; testdata/doors.json holds both to the same rows.

import { unpacked, whole } from "./body.mjs";
import { rootKey } from "./key.mjs";
import { faced, proxyKey, sessionOf, userOf, vendor } from "./proxy.mjs";
import { agent } from "./route.mjs";

// Requests without a conversation store nothing, so any object will do. The main agent's would be one thread
// for all of them, and one for each request would be a new object each time: a few share them.
const SHARDS = 16;

// door gives {to, request} for a path of a door, {large} when its body is over the bound, or null. A body is
// read only where it alone names the conversation; request is then the same with its bytes at hand. The token
// is that of the server: what holds it is no key of the client.
export async function door(request, path, query, most, token) {
  const face = faced(request, path, token);
  if (face) return passed(face, request, most);
  const bare = path.replace(/^\/[sp]\/[^/]+(?=\/v1\/)/, "");
  if (/^\/v1\/messages(\/|$)/.test(bare)) {
    const named = path.startsWith("/s/") ? decodeURIComponent(path.split("/")[2]) : request.headers.get("x-tidemark-session");
    return { to: named ? session(rootKey(named)) : shard() };
  }
  if (bare === "/v1/chat/completions" && request.method === "POST") {
    const named = request.headers.get("x-tidemark-session");
    if (named) return { to: session(rootKey(named)) };
    return spoken(request, most, userSession);
  }
  if (path === "/mcp") return request.method === "POST" ? spoken(request, most, called) : { to: shard() };
  const owner = query.get("agent") ?? "";
  if (path === "/api/chat" && request.method === "POST") {
    return spoken(request, most, async ({ id }) => (text(id) ? session(await keyOf(owner, "web", id)) : shard()));
  }
  const [, id] = path.match(/^\/api\/chat\/([^/]+)\/stream$/) ?? [];
  if (id) return { to: session(await keyOf(owner, "web", decodeURIComponent(id))) };
  return null;
}

const text = (s) => typeof s === "string" && s !== "";
export const shard = () => ({ kind: "agent", name: `door:${crypto.getRandomValues(new Uint8Array(1))[0] % SHARDS}` });
// What is no key goes to a shard: the door in Go says what is wrong with it.
const session = (name) => (name ? { kind: "session", name } : shard());
const agentOf = (model) => (typeof model === "string" && model.startsWith("tidemark:") ? model.slice("tidemark:".length) : "");

const userSession = async ({ user, model }) => (text(user) ? session(await keyOf(agentOf(model), "user", user)) : shard());

// called says whose object a message of the Model Context Protocol is for, as worker/mcp_call.go does: a tool's is that of
// the session that it names, else of the agent; a memory file is its agent's. The others are of nobody.
async function called({ method, params }) {
  const { arguments: args, uri } = params ?? {};
  if (method === "tools/call") {
    if (text(args?.session)) return session(rootKey(args.session));
    return agent(text(args?.agent) ? args.agent : "main");
  }
  if (method === "resources/list") return agent("main");
  if (method === "resources/read" && text(uri)) return agent(uri.match(/^tidemark:\/\/agents\/([^/]+)\/memory\//)?.[1] ?? "main");
  return shard();
}

// passed says where a request of a client goes that keeps its history itself.
async function passed({ chat, name, credential, sure, off }, request, most) {
  if (off) return { to: shard() };
  if (name) return { to: session(await proxyKey(credential, name)) };
  const bytes = await whole(request.body, most);
  if (!bytes) return { large: true };
  const again = anew(request, bytes);
  const plain = await unpacked(bytes, request.headers.get("content-encoding"), most);
  if (!sure && userOf(plain)) return { to: await userSession(fields(plain)), request: again };
  const own = await sessionOf(plain, chat);
  return { to: own ? session(await proxyKey(credential, own)) : shard(), request: again };
}

// spoken reads a body and asks its fields where it goes. What is no JSON goes to a shard, too.
async function spoken(request, most, where) {
  const bytes = await whole(request.body, most);
  if (!bytes) return { large: true };
  const plain = await unpacked(bytes, request.headers.get("content-encoding"), most);
  return { to: await where(fields(plain)), request: anew(request, bytes) };
}

function fields(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {}; // the door says so, with the place
  }
}

// anew is a request whose body was read.
function anew({ url, method, headers, signal }, body) {
  return new Request(url, { method, headers, body, signal, redirect: "manual" });
}

// keyOf gives the key of a conversation that a client names in its own words, "" for none.
export async function keyOf(agent, channel, name) {
  return rootKey(`agent:${agent || "main"}:${channel}:dm:${await peerOf(name)}`);
}

export async function peerOf(name) {
  if (/^[a-z0-9_.@+-]{1,80}$/.test(name) && !/^\.+$/.test(name) && !/.-[0-9a-f]{32}$/.test(name)) return name;
  const bytes = new TextEncoder().encode(name);
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const shown = Array.from(bytes.subarray(0, 40), (b) => String.fromCharCode(b)).join("").toLowerCase().replace(/[^a-z0-9_.@+-]/g, "_");
  return `${shown}-${Array.from(sum.subarray(0, 16), (b) => b.toString(16).padStart(2, "0")).join("")}`;
}

// tongueOf says in whose words a failure is told.
export function tongueOf(path, headers) {
  const whose = vendor(path, headers);
  if (whose) return whose;
  const bare = path.replace(/^\/s\/[^/]*/, "");
  if (/^\/v1\/messages(\/|$)/.test(bare)) return "anthropic";
  if (bare === "/v1/chat/completions") return "openai";
  if (bare === "/mcp") return "mcp";
  if (/^\/v1\/models(\/|$)/.test(bare)) return headers.get("anthropic-version") ? "anthropic" : "openai";
  return "native";
}

// What the front itself fails with, in the words of the others.
const OPENAI = { unauthorized: ["invalid_request_error", "invalid_api_key"], invalid: ["invalid_request_error", "invalid_value"] };
const ANTHROPIC = { 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large" };
const BUSY = new Set(["busy", "overloaded", "unavailable"]);

// put gives the status and the body of a failure.
export function put(tongue, status, { type, message, requestId }) {
  const server = status >= 500;
  if (tongue === "openai") {
    const [kind, code] = OPENAI[type] ?? [server ? "server_error" : "invalid_request_error", type];
    return [status, { error: { message, type: kind, param: null, code } }];
  }
  if (tongue === "anthropic") {
    const busy = BUSY.has(type);
    const kind = busy ? "overloaded_error" : ANTHROPIC[status] ?? (server ? "api_error" : "invalid_request_error");
    return [busy ? 529 : status, { type: "error", error: { type: kind, message }, request_id: requestId }];
  }
  if (tongue === "mcp") return [status, { jsonrpc: "2.0", id: null, error: { code: -32000, message, data: { type, requestId } } }];
  return [status, { error: { type, message, requestId } }];
}

// What a page of another origin may do.
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
const EXPOSED = "x-request-id, request-id, retry-after, etag, x-tidemark-session, x-tidemark-ignored, x-tidemark-duplicate, x-vercel-ai-ui-message-stream";

// originsOf gives the origins whose pages may call: a list as config/env.go reads one, with commas or as JSON. What it
// refuses allows none here.
export function originsOf(env) {
  const text = (env.TIDEMARK_SERVER_ORIGINS ?? "").trim();
  let list;
  try {
    list = text.startsWith("[") ? JSON.parse(text) : text.split(",").map((s) => s.trim());
  } catch {
    return [];
  }
  return list.length <= 200 && list.every(isOrigin) && new Set(list).size === list.length ? list : [];
}

// isOrigin says whether a value is an origin as browsers send it, as isOrigin of config/parse.go. A page without one
// sends null: that is none.
function isOrigin(s) {
  if (typeof s !== "string" || s !== s.toLowerCase()) return false;
  const [, scheme, port] = s.match(/^([a-z][a-z0-9+.-]*):\/\/(?:[^\s/?#@:%\\[\]]+|\[[0-9a-f:.]+\])(?::(\d*))?$/) ?? [];
  return scheme !== undefined && !["http:80", "https:443"].includes(`${scheme}:${port}`);
}

// cross gives the headers for a page of another origin that may call, and says whether the request is only
// the browser's question whether it may.
export function cross(request, host, env) {
  const headers = {};
  const origins = originsOf(env);
  if (origins.length === 0) return { headers, asked: false };
  headers.vary = "Origin";
  const origin = request.headers.get("origin") ?? "";
  if (origin === "" || own(origin, host) || !origins.includes(origin)) return { headers, asked: false };
  headers["access-control-allow-origin"] = origin;
  if (request.method !== "OPTIONS" || !request.headers.get("access-control-request-method")) {
    headers["access-control-expose-headers"] = EXPOSED;
    return { headers, asked: false };
  }
  headers["access-control-allow-methods"] = METHODS;
  const ask = request.headers.get("access-control-request-headers") ?? "";
  if (ask.length <= 1000 && /^[ \t]*[\w-]+[ \t]*(,[ \t]*[\w-]+[ \t]*)*$/.test(ask)) headers["access-control-allow-headers"] = ask;
  if (request.headers.get("access-control-request-private-network") === "true") headers["access-control-allow-private-network"] = "true";
  headers["access-control-max-age"] = "600";
  return { headers, asked: true };
}

function own(origin, host) {
  try {
    return new URL(origin).host.toLowerCase() === host.toLowerCase();
  } catch {
    return false;
  }
}

// told gives an answer of the front, or of the shim, as the client of its path reads it. One that is final is that
// already.
export async function told(request, path, env, answer, final = false) {
  const { headers } = cross(request, new URL(request.url).host, env);
  const tongue = tongueOf(path, request.headers);
  let out = answer;
  if (!final && tongue !== "native" && answer.status >= 400) {
    const { error } = await answer.json();
    const [status, body] = put(tongue, answer.status, error);
    out = new Response(`${JSON.stringify(body)}\n`, { status, headers: answer.headers });
    if (tongue !== "mcp") out.headers.set("x-should-retry", String(answer.headers.has("retry-after")));
    if (tongue === "anthropic") out.headers.set("request-id", error.requestId);
  }
  for (const [name, value] of Object.entries(headers)) out.headers.set(name, value);
  return out;
}

// A provider for the tests of the proxy: the Messages API and chat completions over HTTP. It refuses what the real
// ones refuse (rules.mjs), caches prompts as they do (cache.mjs), keeps each request to the byte, and answers by
// the script of a test. A script is found by a text that a request holds, so that tests do not meet.

import { once } from "node:events";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Cache } from "./cache.mjs";
import { Given, blocksOf, chatBroken, messagesBroken } from "./rules.mjs";
import { chatEvents, chatJSON, frame, messageEvents, messageJSON } from "./wire.mjs";

const plain = (m) => blocksOf(m?.content ?? "").filter((b) => b.type === "text").map((b) => b.text).join("\n");
const MOST = 32 << 20;

let calls = 0, replies = 0;
// Blocks of answers.
export const text = (s) => ({ type: "text", text: s });
export const think = (thinking) => ({ type: "thinking", thinking, signature: Buffer.from(`signed ${++calls} ${thinking}`).toString("base64") });
export const call = (name, input, id = `toolu_${(++calls).toString(36).padStart(6, "0")}x`) => ({ type: "tool_use", id, name, input });

// fault is an answer that refuses.
const kinds = { 400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error" };
export const fault = (status, message = "no", headers = {}) => ({ status, message, headers });

// gate is a place in a stream that waits: reached tells that it is, open lets it go on.
export function gate() {
  const g = {};
  g.reached = new Promise((tell) => (g.tell = tell));
  g.opened = new Promise((tell) => (g.open = tell));
  return g;
}

export class Upstream {
  calls = []; // {path, query, headers, rawHeaders, raw, body, chat, counting, broken, usage, gone, left, status}
  given = new Given();
  #cache = new Cache();
  #scripts = []; // {mark, answers}

  async start() {
    this.server = http.createServer((req, res) => this.#serve(req, res).catch((e) => { this.failed ??= e; res.destroy(); }));
    this.server.requestTimeout = 0;
    this.server.keepAliveTimeout = 300_000; // closing an idle connection would race with its next request
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  // script says how requests that hold mark are answered, one after the other; a function is asked for each one from
  // then on. An answer is a list of blocks, or {content, stop, piece, slice, crlf, behind, split, comments, strange,
  // wait, at, gate, cut, error, raw, status, message, headers}: see #answer. Behind the last one it echoes.
  script(mark, ...answers) {
    this.#scripts.unshift({ mark, answers });
  }

  // free makes requests that hold mark pass unchecked, whatever they are; each answer says what came.
  free(mark) {
    this.#scripts.unshift({ mark, free: true, answers: [] });
  }

  // of gives the requests that held mark; counts gives those that asked for a count only.
  of(mark) {
    return this.calls.filter((c) => !c.counting && c.raw.includes(mark));
  }
  counts(mark) {
    return this.calls.filter((c) => c.counting && c.raw.includes(mark));
  }
  // broken gives the requests that broke a rule, those with a mark in them or all, and forgets them.
  broken(mark = "") {
    const out = this.calls.filter((c) => c.broken && !c.told && c.raw.includes(mark));
    for (const c of out) c.told = true;
    return out;
  }

  async #serve(req, res) {
    const raw = await req.toArray().then(Buffer.concat, () => null);
    if (!raw) return; // whoever asked has gone in the middle of it
    const url = new URL(req.url, this.url);
    const c = { method: req.method, path: url.pathname, query: url.search, headers: req.headers, rawHeaders: req.rawHeaders, raw, at: Date.now(), gone: false };
    c.left = new Promise((tell) => res.on("close", () => { c.gone = !res.writableEnded; tell(); }));
    c.chat = url.pathname.endsWith("/chat/completions");
    c.counting = url.pathname.endsWith("/count_tokens");
    this.calls.push(c);
    const refuse = (status, message, headers = {}) => this.#refuse(c, res, status, message, headers);
    if (/^\/v1\/(models|embeddings|messages\/batches)$/.test(c.path)) {
      const one = { id: "theirs", type: "model", object: "model", got: raw.length };
      return res.writeHead(200, { "content-type": "application/json", "request-id": "req_other", "x-odd": "kept" }).end(c.sent = JSON.stringify({ object: "list", data: [one], has_more: false }));
    }
    if (req.method !== "POST" || !c.chat && !/\/v1\/messages(\/count_tokens)?$/.test(c.path)) return refuse(404, "Not found");
    if (raw.length > MOST) return refuse(413, "Request exceeds the maximum size");
    const script = this.#scripts.find((s) => raw.includes(s.mark));
    if (script?.free) return res.writeHead(200, { "content-type": "application/json" }).end(c.sent = JSON.stringify({ got: raw.length }));
    try {
      c.body = JSON.parse(raw);
    } catch (e) {
      c.broken = `The request body is not valid JSON: ${e.message}`;
      return refuse(400, c.broken);
    }
    c.broken = c.chat ? chatBroken(c.body) : messagesBroken(c.body, this.given, c.counting, req.headers["anthropic-beta"]);
    if (c.broken) return refuse(400, c.broken);
    const scope = `${req.headers["x-api-key"] ?? req.headers.authorization} ${c.body.model}`;
    c.figures = this.#cache.take(scope, c.body, { all: c.chat, looking: c.counting });
    if (c.counting) return res.writeHead(200, { "content-type": "application/json", "request-id": "req_count" }).end(JSON.stringify({ input_tokens: c.figures.size }));
    const next = script?.answers[0];
    const given = typeof next === "function" ? await next(c.body, c) : script?.answers.shift();
    await this.#answer(c, res, given ?? [text(`You said: ${plain(c.body.messages.findLast((m) => m.role === "user")).slice(0, 200)}`)]);
  }

  #refuse(c, res, status, message, headers) {
    c.status = status;
    const type = kinds[status] ?? "api_error";
    const body = c.chat ? { error: { message, type, param: null, code: null } } : { type: "error", error: { type, message }, request_id: "req_fake" };
    res.writeHead(status, { "content-type": "application/json", [c.chat ? "x-request-id" : "request-id"]: "req_fake", ...headers }).end(JSON.stringify(body));
  }

  // #answer sends an answer: whole, or as events of a stream in writes of slice bytes. wait is a time before its
  // first byte; at the gate it waits before event at; cut ends the connection before that event, error sends an
  // event that says so in its place; raw is the whole body as it stands.
  async #answer(c, res, given) {
    const a = Array.isArray(given) ? { content: given } : given;
    if (a.wait) await sleep(a.wait);
    if (a.status) return this.#refuse(c, res, a.status, a.message, a.headers);
    c.status = 200;
    const content = a.content ?? [];
    this.given.add(content);
    c.answer = content;
    const output = a.output ?? Math.ceil(JSON.stringify(content).length / 4);
    const { input, read, created, size } = c.figures;
    const usage = c.chat
      ? { prompt_tokens: size, completion_tokens: output, total_tokens: size + output, prompt_tokens_details: { cached_tokens: read }, completion_tokens_details: { reasoning_tokens: 0 } }
      : { input_tokens: input, cache_creation_input_tokens: created, cache_read_input_tokens: read, service_tier: "standard" };
    c.usage = { ...usage, output };
    const own = (b) => b.type === "tool_use";
    const reply = {
      id: `${c.chat ? "chatcmpl" : "msg"}_${++replies}`, model: c.body.model, content, stop: a.stop ?? (content.some(own) ? "tool_use" : "end_turn"), usage, output,
      piece: a.piece, n: c.body.n, figures: c.body.stream_options?.include_usage, extra: a.extra,
    };
    const headers = { [c.chat ? "x-request-id" : "request-id"]: `req_${replies}`, "x-odd": "kept", "anthropic-ratelimit-requests-remaining": "42", ...a.headers };
    if (!c.body.stream) {
      if (a.gate) await this.#wait(a.gate, c);
      const json = a.raw ?? JSON.stringify(c.chat ? chatJSON(reply) : messageJSON(reply));
      c.sent = json;
      res.writeHead(200, { "content-type": "application/json", ...headers });
      if (a.cut !== undefined) return res.write(json.slice(0, json.length / 2), () => res.destroy());
      return res.end(json);
    }
    res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...headers });
    res.flushHeaders();
    await this.#stream(c, res, a, reply);
  }

  async #wait(g, c) {
    g.tell(c);
    await Promise.race([g.opened, c.left]);
  }

  async #stream(c, res, a, reply) {
    const events = c.chat ? chatEvents(reply) : messageEvents(reply);
    c.events = events.length;
    let out = "";
    c.sent = "";
    const flush = async () => {
      const bytes = Buffer.from(out);
      c.sent += out;
      out = "";
      const size = a.slice ?? bytes.length;
      for (let i = 0; i < bytes.length && !res.destroyed; i += size) {
        if (!res.write(bytes.subarray(i, i + size)) && !res.destroyed) await Promise.race([once(res, "drain"), c.left]);
        if (a.slice) await new Promise(setImmediate); // a packet of its own, as far as one can tell
      }
    };
    if (a.raw !== undefined) {
      out = a.raw;
      await flush();
      return res.end();
    }
    const end = a.crlf ? "\r\n" : "\n";
    for (const [i, e] of events.entries()) {
      if (a.gate && i === (a.at ?? 0)) {
        await flush();
        await this.#wait(a.gate, c);
      }
      if (res.destroyed) return;
      if (a.error && i === (a.at ?? 1)) {
        const [type, message] = a.error;
        out += frame(c.chat ? { error: { message, type, code: null, param: null } } : { type: "error", error: { type, message }, request_id: "req_fake" }, { ...a, named: !c.chat });
        await flush();
        return res.end();
      }
      if (i === a.cut) {
        await flush();
        await sleep(5); // what was written is to go out first
        return res.destroy();
      }
      if (a.comments) out += `: keep-alive ${i}${end}${end}`;
      if (a.strange && i > 0) out += frame(c.chat ? { ...events[0], choices: [], novelty: 1 } : { type: "novelty", of: i, " odd": [1, "é"] }, { ...a, named: !c.chat });
      out += frame(e, { ...a, named: !c.chat });
      if (!a.slice && !a.burst) await flush();
    }
    await flush();
    res.end();
  }
}

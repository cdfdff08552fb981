// A model behind the Messages API for the tests of real clients: what it answers is said by the last message
// of the user, or by the part that it was given to play, and it keeps all that it was sent.

import http from "node:http";
import { once } from "node:events";

// plain is the text of a message.
const plain = (m) => (typeof m?.content === "string" ? m.content : (m?.content ?? []).filter((b) => b.type === "text").map((b) => b.text).join("\n"));

// last is what the user said, without the note that Tidemark puts behind it.
const last = (body) => plain(body.messages.at(-1)).replace(/\n?\[It is [^\]]*\]$/, "");

// results are the results of tools in a message, and words the text of one.
const results = (m) => (Array.isArray(m?.content) ? m.content : []).filter((b) => b.type === "tool_result");
export const words = (r) => (typeof r.content === "string" ? r.content : (r.content ?? []).map((b) => b.text ?? "").join(""));

const failures = {
  400: ["invalid_request_error", "max_tokens: too many"], 401: ["authentication_error", "invalid x-api-key"], 413: ["invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"],
  429: ["rate_limit_error", "slow down"], 500: ["api_error", "broken"], 529: ["overloaded_error", "Overloaded"],
};

export class Model {
  calls = []; // {path, query, headers, raw, body, gone}
  #held = []; // answers that wait: {say, release}
  #waiting = [];
  #parts = []; // {word, steps}
  #uses = 0; // calls of tools that it made, for their ids

  // play gives it a part: what follows a message that holds a word is answered by one step after the other, the next when
  // the results of the last are there. A step is {text, calls: [[tool, input], …]}, or makes one of the results.
  play(word, ...steps) {
    this.#parts.push({ word, steps });
  }

  // of gives the bodies that a part was asked with.
  of(word) {
    return this.calls.map((c) => c.body).filter((b) => this.#part(b)?.word === word);
  }

  // #part finds the part of the newest message that has one, and how far it is.
  #part(body) {
    const all = body.messages ?? [];
    for (let at = all.length - 1; at >= 0; at--) {
      const part = all[at].role === "user" && this.#parts.find((p) => plain(all[at]).includes(p.word));
      if (part) return { ...part, round: all.slice(at).filter((m) => results(m).length > 0).length };
    }
  }

  #played(body) {
    const { word, steps, round } = this.#part(body) ?? {};
    if (!word) return;
    const step = steps[round] ?? { text: `the part ${word} has no step ${round}` };
    const { text = "", calls = [] } = typeof step === "function" ? step(results(body.messages.at(-1))) : step;
    const uses = calls.map(([name, input]) => ({ type: "tool_use", id: `toolu_p${++this.#uses}`, name, input }));
    return { content: [...(text ? [{ type: "text", text }] : []), ...uses], stop: uses.length ? "tool_use" : "end_turn" };
  }

  async start() {
    this.server = http.createServer((req, res) => this.#serve(req, res).catch((e) => res.destroy(e)));
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

  // held waits until an answer to a message that holds a text waits, and gives the way to let it go on.
  held(text) {
    const at = this.#held.findIndex((h) => h.said.includes(text));
    if (at >= 0) return Promise.resolve(this.#held.splice(at, 1)[0]);
    return new Promise((tell) => this.#waiting.push({ text, tell }));
  }

  #hold(said, call) {
    return new Promise((release) => {
      const one = { said, call, release };
      const at = this.#waiting.findIndex((w) => said.includes(w.text));
      if (at >= 0) this.#waiting.splice(at, 1)[0].tell(one);
      else this.#held.push(one);
    });
  }

  async #serve(req, res) {
    if (req.method === "GET") return res.writeHead(404).end(); // it lists no models
    const raw = Buffer.concat(await req.toArray());
    const url = new URL(req.url, this.url);
    const call = { path: url.pathname, query: url.search, headers: req.headers, rawHeaders: req.rawHeaders, raw, body: JSON.parse(raw), gone: false };
    call.left = new Promise((tell) => res.on("close", () => { call.gone = !res.writableEnded; tell(); }));
    this.calls.push(call);
    if (url.pathname.endsWith("/count_tokens")) return res.writeHead(200, { "content-type": "application/json" }).end('{ "input_tokens" : 42 }');
    const said = last(call.body);
    const [, status] = said.match(/\bfail (\d+)/) ?? [];
    if (status) {
      const [type, message] = failures[status];
      return res.writeHead(status === "413" ? 400 : Number(status), { "content-type": "application/json", "request-id": "req_fake", "retry-after": "1" })
        .end(JSON.stringify({ type: "error", error: { type, message }, request_id: "req_fake" }));
    }
    if (said.startsWith("late")) await this.#hold(said, call);
    const { content, stop } = this.#played(call.body) ?? answer(call.body, said);
    const usage = { input_tokens: 10 + call.body.messages.length, cache_read_input_tokens: 4, cache_creation_input_tokens: 0 };
    if (!call.body.stream) {
      return res.writeHead(200, { "content-type": "application/json", "request-id": "req_fake", "x-odd": "kept" })
        .end(JSON.stringify({ id: "msg_fake", type: "message", role: "assistant", model: call.body.model, content, stop_reason: stop, stop_sequence: null, usage: { ...usage, output_tokens: 7 } }));
    }
    res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "request-id": "req_fake", "x-odd": "kept" });
    const send = (type, more) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    send("message_start", { message: { id: "msg_fake", type: "message", role: "assistant", model: call.body.model, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } } });
    send("ping");
    for (const [index, block] of content.entries()) {
      if (block.type === "tool_use") {
        send("content_block_start", { index, content_block: { ...block, input: {} } });
        const json = JSON.stringify(block.input);
        for (const partial_json of [json.slice(0, 4), json.slice(4)]) send("content_block_delta", { index, delta: { type: "input_json_delta", partial_json } });
      } else {
        send("content_block_start", { index, content_block: { type: "text", text: "" } });
        const size = Math.max(5, Math.ceil(block.text.length / 50));
        for (let at = 0; at < block.text.length; at += size) {
          send("content_block_delta", { index, delta: { type: "text_delta", text: block.text.slice(at, at + size) } });
          if (at === 0 && said.startsWith("hold")) await this.#hold(said, call);
        }
      }
      send("content_block_stop", { index });
    }
    send("message_delta", { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 7 } });
    send("message_stop", {});
    res.end();
  }
}

function answer(body, said) {
  const told = results(body.messages.at(-1));
  const text = (t) => ({ content: [{ type: "text", text: t }], stop: "end_turn" });
  if (told.length > 0) return text(`The tool said: ${words(told[0])}`);
  if (said.startsWith("tool") && body.tools?.length) {
    return { content: [{ type: "text", text: "Let me look. " }, { type: "tool_use", id: "toolu_1", name: body.tools[0].name, input: { city: "Oslo" } }], stop: "tool_use" };
  }
  const [, size] = said.match(/^long (\d+)/) ?? [];
  if (size) return text("0123456789abcdef".repeat(Number(size) / 16));
  if (said === "count") return text(`I see ${body.messages.length} messages`);
  if (said === "short") return { content: [{ type: "text", text: "cut of" }], stop: "max_tokens" };
  return text(`You said: ${said}`);
}

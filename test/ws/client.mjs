// A client of the socket, and a model that says what a test gives it.

import http from "node:http";
import { createRequire } from "node:module";
import { PATIENCE, wait } from "../patience.mjs";

const WebSocket = createRequire(new URL("../../build/package.json", import.meta.url))("ws");

// quote escapes a token for a subprotocol.
const quote = (s) => encodeURIComponent(s).replace(/[()]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);

// dial opens a socket. It rejects with {status, body} when the server refuses. silent says nothing of what
// was seen.
export function dial(url, { token = "", protocols = ["tidemark.v1"], headers, silent = false } = {}) {
  return new Promise((resolve, reject) => {
    const offer = token ? [...protocols, `tidemark.token.${quote(token)}`] : protocols;
    const ws = new WebSocket(url.replace(/^http/, "ws"), offer, { headers, perMessageDeflate: false });
    const c = new Client(ws, silent);
    ws.on("open", () => resolve(c));
    ws.on("error", reject);
    ws.on("unexpected-response", (_, res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (d) => (text += d)).on("end", () => {
        let body;
        try { body = JSON.parse(text); } catch { body = text; }
        reject(Object.assign(new Error(`refused: ${res.statusCode} ${text}`), { status: res.statusCode, body }));
      });
    });
  });
}

export class Client {
  got = []; // everything
  #read = 0; // how much of it next has passed
  #kept = []; // what next passed over
  constructor(ws, silent) {
    this.ws = ws;
    this.closed = new Promise((r) => {
      ws.on("close", (code, reason) => r({ code, reason: String(reason) }));
      setTimeout(() => r({ code: 0, reason: "it is open still" }), PATIENCE).unref();
    });
    ws.on("message", (raw) => {
      const m = JSON.parse(raw);
      this.got.push(m);
      if (m.type === "mark" && !silent) this.say({ type: "seen", n: m.n });
    });
  }

  say(value) { this.raw(JSON.stringify(value)); }
  raw(data) { this.ws.send(data); }
  pause() { this.ws._socket.pause(); }
  resume() { this.ws._socket.resume(); }
  close() { this.ws.close(); }

  // next gives the oldest message of a type that was not given, and that f accepts.
  async next(type, f = () => true) {
    const look = () => {
      while (this.#read < this.got.length) this.#kept.push(this.got[this.#read++]);
      const i = this.#kept.findIndex((m) => m.type === type && f(m));
      return i >= 0 && this.#kept.splice(i, 1)[0];
    };
    try {
      return await wait(look);
    } catch {
      throw new Error(`no ${type} after ${PATIENCE} ms; ${this.ws.readyState === 1 ? "open" : "closed"}; got ${JSON.stringify(this.got).slice(-1500)}`);
    }
  }

  // text is the answer as a page would show it: pieces are dropped when it begins again.
  text() {
    let s = "";
    for (const m of this.got) {
      if (m.type === "hello" || m.type === "start" || m.type === "restart") s = "";
      if (m.type === "text") s += m.text;
    }
    return s;
  }
}

// Model is a fake of the Messages API. A message with [[plain]] it answers at once, one with [[hold]] with
// what give gives, until end.
export class Model {
  #waiting = []; // answers that are held
  static async start() {
    const m = new Model();
    m.server = http.createServer((req, res) => m.#answer(req, res));
    m.server.keepAliveTimeout = 300_000;
    await new Promise((r) => m.server.listen(0, "127.0.0.1", r));
    m.url = `http://127.0.0.1:${m.server.address().port}`;
    return m;
  }

  close() { this.server.close(); this.server.closeAllConnections(); }

  async #answer(req, res) {
    if (req.method === "GET") return res.writeHead(404).end(); // it lists no models
    let raw = "";
    for await (const chunk of req.setEncoding("utf8")) raw += chunk;
    const last = JSON.stringify(JSON.parse(raw).messages.at(-1));
    res.writeHead(200, { "content-type": "text/event-stream" });
    event(res, { type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "fake", content: [], usage: { input_tokens: 9, output_tokens: 1 } } });
    event(res, { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
    if (last.includes("[[hold]]")) {
      res.on("close", () => (this.#waiting = this.#waiting.filter((r) => r !== res)));
      this.#waiting.push(res);
      return;
    }
    event(res, piece("Noted."));
    finish(res);
  }

  // asked waits until somebody waits for an answer.
  asked() { return wait(() => this.#waiting.length > 0); }
  async give(text) {
    await this.asked();
    if (!event(this.#waiting[0], piece(text))) await new Promise((r) => this.#waiting[0].once("drain", r));
  }
  async end() {
    await this.asked();
    finish(this.#waiting.shift());
  }
}

const piece = (text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
const event = (res, e) => res.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`);

function finish(res) {
  event(res, { type: "content_block_stop", index: 0 });
  event(res, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } });
  event(res, { type: "message_stop" });
  res.end();
}

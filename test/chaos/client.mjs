// A client that can be cut off, and that tells how each of its streams came to an end.

import http from "node:http";
import { createRequire } from "node:module";
import { PATIENCE } from "../patience.mjs";

const WebSocket = createRequire(new URL("../../build/package.json", import.meta.url))("ws");

// client calls a Worker at base. Connections are kept, as browsers do; a cut one is not used again.
export function client(base, token) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1000 });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

  // open sends a request and gives {done, cut}. on sees each event of a stream. done resolves, never
  // rejects, to {status, raw, end}, where end is whole, broken, cut or silent.
  function open(method, path, { body, accept = "application/json", on = () => {} } = {}) {
    let cut = false, silent = false, req;
    const done = new Promise((resolve) => {
      let status = 0, raw = "", read = 0;
      const finish = (end) => resolve({ status, raw, end: cut ? "cut" : silent ? "silent" : end, at: performance.now() });
      req = http.request(new URL(path, base), { method, agent, headers: { ...headers, accept } }, (res) => {
        status = res.statusCode;
        res.setEncoding("utf8");
        res.on("data", (chunk) => {
          raw += chunk;
          for (let i; (i = raw.indexOf("\n\n", read)) >= 0; read = i + 2) {
            const e = event(raw.slice(read, i));
            if (e) on(e);
          }
        });
        res.on("close", () => finish(res.complete ? "whole" : "broken"));
      });
      // A stream that hangs for ever ends here, and counts as late.
      req.setTimeout(PATIENCE, () => { silent = true; req.destroy(); });
      req.on("error", () => finish("broken"));
      req.end(body === undefined ? undefined : JSON.stringify(body));
    });
    return { done, cut: () => { cut = true; req.destroy(); } };
  }

  // json gives {status, value}; value is undefined when there is no whole answer.
  async function json(method, path, body) {
    const r = await open(method, path, { body }).done;
    if (r.end !== "whole") return { status: 0, end: r.end };
    try {
      return { status: r.status, value: r.raw ? JSON.parse(r.raw) : null };
    } catch {
      return { status: r.status, text: r.raw };
    }
  }

  // socket opens one and gives {say, close, done}. on sees each message. done resolves, never rejects, to
  // {raw, end, at}, where end is refused, closed, broken, silent, or what close was given.
  function socket(path, on) {
    const ws = new WebSocket(new URL(path, base).href.replace(/^http/, "ws"), ["tidemark.v1"], { headers, perMessageDeflate: false });
    let raw = "", why, timer, opened = false;
    const close = (as) => { why ??= as; ws.close(); };
    const listen = () => {
      clearTimeout(timer);
      timer = setTimeout(() => { why ??= "silent"; ws.terminate(); }, PATIENCE);
    };
    const say = (value) => { if (ws.readyState === WebSocket.OPEN) ws.send(JSON.stringify(value)); };
    listen();
    const done = new Promise((resolve) => {
      ws.on("open", () => (opened = true));
      ws.on("error", () => {}); // close follows
      ws.on("close", (code) => {
        clearTimeout(timer);
        resolve({ status: code, raw, end: why ?? (!opened ? "refused" : code === 1006 ? "broken" : "closed"), at: performance.now() });
      });
      ws.on("message", (data) => {
        listen();
        raw += data;
        let m;
        try {
          m = JSON.parse(data);
        } catch {
          m = { type: "unreadable", frame: String(data) };
        }
        on(m);
      });
    });
    return { say, close, done, cut: () => { why ??= "cut"; ws.terminate(); } };
  }
  return { open, json, socket, close: () => agent.destroy() };
}

// event reads one frame. Every byte of it counts: a name that is not its event's type is not overlooked.
function event(frame) {
  const text = frame.replace(/^\n+/, "");
  if (text === "" || text.startsWith(":")) return null;
  const [, name, data] = text.match(/^event: (\w+)\ndata: (.*)$/) ?? [];
  try {
    const e = JSON.parse(data);
    if (e.type === name) return e;
  } catch {} // as below
  return { type: "unreadable", frame };
}

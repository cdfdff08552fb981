// A model over HTTP that says what a test tells it, in the dialect of the Messages API, as fast as the test
// lets it.

import { createServer } from "node:http";
import { gist } from "../gist.mjs";

// gate holds an answer: each piece waits until it is let through, all of them once it is open.
export function gate() {
  let free = 0, opened = false, tell = () => {};
  return {
    let: (n = 1) => { free += n; tell(); },
    open: () => { opened = true; tell(); },
    async pass() {
      while (!opened && free === 0) await new Promise((r) => { tell = r; });
      free--;
    },
  };
}

const frame = (type, more) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;

// steps gives the events of an answer, each in a frame of its own.
function frames(step, request) {
  const out = [frame("message_start", { message: { id: "msg_1", type: "message", role: "assistant", model: "fake-1", content: [], usage: { input_tokens: Math.ceil(request.length / 4), output_tokens: 1 } } })];
  let index = 0;
  const block = (start, deltas) => {
    out.push(frame("content_block_start", { index, content_block: start }));
    for (const delta of deltas) out.push(frame("content_block_delta", { index, delta }));
    out.push(frame("content_block_stop", { index }));
    index++;
  };
  if (step.thinking) block({ type: "thinking", thinking: "", signature: "" }, [{ type: "thinking_delta", thinking: step.thinking }, { type: "signature_delta", signature: "sig" }]);
  const pieces = Array.isArray(step.text) ? step.text : step.text ? [step.text] : [];
  if (pieces.length) block({ type: "text", text: "" }, pieces.map((text) => ({ type: "text_delta", text })));
  for (const c of step.calls ?? []) block({ type: "tool_use", id: c.id, name: c.name, input: {} }, [{ type: "input_json_delta", partial_json: JSON.stringify(c.input ?? {}) }]);
  out.push(frame("message_delta", { delta: { stop_reason: step.calls ? "tool_use" : "end_turn" }, usage: { output_tokens: 20 } }), frame("message_stop", {}));
  return out;
}

const words = (content) => (typeof content === "string" ? content : content.map((b) => b.text ?? "").join(" "));

// model listens. answer(request) gives the step for a request: {text, thinking, calls, gate, status, error};
// calls are the requests so far.
export async function model() {
  const self = { calls: [], answer: null, url: "" };
  const server = createServer(async (req, res) => {
    if (req.method === "GET") return res.writeHead(404).end(); // it lists no models
    let raw = "";
    for await (const piece of req.setEncoding("utf8")) raw += piece;
    const body = JSON.parse(raw);
    self.calls.push(body);
    const said = words(body.messages.at(-1)?.content ?? "");
    const summary = raw.includes("<conversation>");
    const step = (!summary && self.answer?.(said, body)) || { text: summary ? "<summary>\n## Facts\n- They talked.\n" + gist(body.messages.at(-1)) + "</summary>\n<memories>none</memories>" : `You said: ${said}` };
    if (step.status) {
      res.writeHead(step.status, { "content-type": "application/json" }).end(JSON.stringify({ type: "error", error: { type: step.type ?? "invalid_request_error", message: step.error } }));
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    const gone = new Promise((r) => res.on("close", r));
    for (const f of frames(step, raw)) {
      if (step.gate) await Promise.race([step.gate.pass(), gone]);
      if (res.destroyed) return;
      res.write(f);
    }
    res.end();
  });
  server.keepAliveTimeout = 300_000;
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  self.url = `http://127.0.0.1:${server.address().port}`;
  self.close = () => { server.close(); server.closeAllConnections(); };
  return self;
}

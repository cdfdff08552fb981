// A model server that always says the same, in the dialect of the Messages API: bench.mjs runs it in a
// thread of its own. It counts how long each answer took it, so that the time of a turn can be told
// from the time of its model.

import { createServer } from "node:http";
import { parentPort } from "node:worker_threads";
import { gist } from "../gist.mjs";

const WORDS = "the tide rises and falls, a boat lies at the quay and waits for the morning, ".repeat(20);

// How an answer is given: pieces of so many bytes, with a pause in milliseconds before each one. Without
// a pause all of it goes out at once.
let shape = { pieces: 20, bytes: 20, pause: 0 };
let served = { calls: 0, ms: 0 };

parentPort.on("message", (m) => {
  if (m.shape) shape = { ...shape, ...m.shape };
  parentPort.postMessage(served);
  served = { calls: 0, ms: 0 };
});

const frame = (type, more) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const piece = (text) => frame("content_block_delta", { index: 0, delta: { type: "text_delta", text } });

// frames gives the events of an answer; the pieces of its text are those in the middle. What a call
// reports as its size is what it was sent, as a real server does: sessions are compacted by it.
function frames(request) {
  const input_tokens = Math.ceil(request.length / 4);
  const head = frame("message_start", { message: { id: "msg_1", type: "message", role: "assistant", model: "bench", content: [], usage: { input_tokens, output_tokens: 1 } } })
    + frame("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  const tail = frame("content_block_stop", { index: 0 })
    + frame("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: Math.ceil((shape.pieces * shape.bytes) / 4) } })
    + frame("message_stop", {});
  if (request.includes("<conversation>")) {
    return { head, middle: [piece(`<summary>\n## Decisions\n${gist(JSON.parse(request).messages.at(-1))}</summary>\n\n<memories>\nnone\n</memories>`)], tail };
  }
  const middle = Array.from({ length: shape.pieces }, (_, i) => piece(WORDS.slice((i * shape.bytes) % 700).slice(0, shape.bytes)));
  return { head, middle, tail };
}

const pause = (ms) => new Promise((r) => setTimeout(r, ms));

async function answer(request, res) {
  const { head, middle, tail } = frames(request);
  res.writeHead(200, { "content-type": "text/event-stream" });
  if (!shape.pause) return res.end(head + middle.join("") + tail);
  res.write(head);
  for (const p of middle) {
    await pause(shape.pause);
    res.write(p);
  }
  res.end(tail);
}

const server = createServer((req, res) => {
  if (req.method === "GET") return res.writeHead(404).end(); // it lists no models
  const begun = performance.now();
  const parts = [];
  req.on("data", (d) => parts.push(d));
  req.on("end", () => {
    res.on("finish", () => { served.calls++; served.ms += performance.now() - begun; });
    answer(Buffer.concat(parts).toString(), res).catch(() => res.destroy());
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => parentPort.postMessage({ url: `http://127.0.0.1:${server.address().port}` }));

// A model over HTTP whose answer is a function of the newest message, so that every byte of a stream
// can be told right or wrong, and whose every request shows what reached the model of a session.

import { createHash } from "node:crypto";
import http from "node:http";
import { gist } from "../gist.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// Each message and each piece of an answer carries a token: [[session/number]].
export const token = (session, n) => `[[${session}/${String(n).padStart(5, "0")}]]`;
export const tokens = (text) => [...text.matchAll(/\[\[([a-z0-9]+)\/(\d{5})\]\]/g)].map((m) => ({ token: m[0], session: m[1] }));

const PIECES = 20;

// pieces gives the answer to a token in the pieces it is sent in. Some characters are of several bytes.
export function pieces(token) {
  return Array.from({ length: PIECES }, (_, i) =>
    `${token} ${i} ≈ ${createHash("sha256").update(`${token} ${i}`).digest("hex").slice(0, 24)} 雪\n`);
}

export const reply = (token) => pieces(token).join("");

// provider listens and gives {url, seen, close}. random drives the pace, the cuts of
// the bytes, and a clock that is wrong by up to ten years.
export async function provider(random) {
  const seen = { calls: 0, summaries: 0, open: 0, whole: new Set(), bad: [], foreign: [] };
  const server = http.createServer(async (req, res) => {
    if (req.method === "GET") return res.writeHead(404).end(); // it lists no models
    seen.open++;
    res.on("close", () => seen.open--);
    try {
      await answer(seen, random, req, res);
    } catch (e) {
      if (!req.destroyed && !res.destroyed) seen.bad.push(e.message);
      res.destroy();
    }
  });
  server.keepAliveTimeout = 300_000; // closing an idle connection would race with its next request
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return {
    url: `http://127.0.0.1:${server.address().port}`, seen,
    close: () => { server.close(); server.closeAllConnections(); },
  };
}

async function answer(seen, random, req, res) {
  seen.calls++;
  let raw = "";
  for await (const chunk of req.setEncoding("utf8")) raw += chunk;
  const body = JSON.parse(raw);
  const last = JSON.stringify(body.messages.at(-1));
  const own = tokens(last).at(-1);
  if (!own) throw new Error(`a request without a token in its last message: ${last.slice(0, 300)}`);
  const other = tokens(raw).find((t) => t.session !== own.session);
  if (other) seen.foreign.push(`${other.token} in a request of ${own.session}`);

  const summary = /<summary>/.test(last);
  if (summary) seen.summaries++;
  const texts = summary ? [`<summary>\n## Facts\n- up to ${own.token}\n${gist(body.messages.at(-1))}</summary>\n`, "<memories>none</memories>"] : pieces(own.token);
  const pause = summary ? 20 : random() < 0.3 ? 30 : 120;
  res.writeHead(200, { "content-type": "text/event-stream", date: new Date(Date.now() + (random() - 0.5) * 6e11).toUTCString() });
  await send(res, random, texts, pause, Math.ceil(raw.length / 4));
  if (res.writableEnded) seen.whole.add(own.token);
}

// send writes the events of an answer, now and then cut in the middle of a character.
async function send(res, random, texts, pause, input) {
  const frame = (e) => Buffer.from(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`);
  const write = async (bytes) => {
    if (res.destroyed) return;
    const at = Math.floor(random() * bytes.length);
    res.write(bytes.subarray(0, at));
    if (random() < 0.2) await sleep(2);
    res.write(bytes.subarray(at));
  };
  await write(frame({ type: "message_start", message: { id: "m", model: "chaos", content: [], usage: { input_tokens: input, output_tokens: 1 } } }));
  await write(frame({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }));
  for (const text of texts) {
    if (res.destroyed) return;
    await write(frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }));
    await sleep(pause * (0.5 + random()));
  }
  await write(frame({ type: "content_block_stop", index: 0 }));
  await write(frame({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 300 } }));
  await write(frame({ type: "message_stop" }));
  res.end();
}

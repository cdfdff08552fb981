// Many conversations in one isolate of workerd: AT_ONCE first turns at the same moment, and IN_TURN conversations eight at
// a time, with a model that takes its time. None may fail, and somebody else is answered meanwhile.
//
//   node test/many.mjs dist

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { start } from "./workerd.mjs";

const AT_ONCE = Number(process.env.AT_ONCE ?? 1000);
const IN_TURN = Number(process.env.IN_TURN ?? 5000);
const PIECES = 10, PAUSE = 200; // of an answer, and ms between two
const token = "a-token-of-many-conversations";

function model() {
  return createServer(async (req, res) => {
    req.resume();
    await once(req, "end");
    const send = (e) => res.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`);
    res.writeHead(200, { "content-type": "text/event-stream" });
    send({ type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "fake", content: [], usage: { input_tokens: 9, output_tokens: 9 } } });
    send({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
    for (let i = 0; i < PIECES; i++) {
      send({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: `piece ${i} ` } });
      if (slow) await new Promise((r) => setTimeout(r, PAUSE));
    }
    send({ type: "content_block_stop", index: 0 });
    send({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } });
    send({ type: "message_stop" });
    res.end();
  }).listen(0, "127.0.0.1");
}
let slow = true, again = 0;

describe("many conversations", () => {
  let w, fake;
  before(async () => {
    fake = model();
    await once(fake, "listening");
    w = await start(path.resolve(process.argv[2] ?? "dist"), { ANTHROPIC_API_KEY: "k", TIDEMARK_MODEL_BASEURL: `http://127.0.0.1:${fake.address().port}`, TIDEMARK_MODEL_ID: "fake-1" }, { token });
    await w.json("/healthz");
  });
  after(async () => {
    await w?.dispose();
    fake.close();
  });

  const say = (key, text) => said(key, text).catch((e) => `${e.message}: ${e.cause?.message ?? ""} ${e.cause?.code ?? ""}`);
  // said sends a message, again when it is told to: on a busy machine not all find room in time.
  const said = async (key, text, tries = 50) => {
    const r = await w.get(`/v1/sessions/${encodeURIComponent(key)}/messages`, { method: "POST", body: JSON.stringify({ text, id: "first" }), signal: AbortSignal.timeout(600_000) });
    const body = await r.text(), later = Number(r.headers.get("retry-after"));
    if (r.status === 503 && later > 0 && tries > 1) {
      again++;
      await new Promise((go) => setTimeout(go, later * 1000));
      return said(key, text, tries - 1);
    }
    return r.ok && body.includes("piece 9") ? "" : `${r.status} ${body.slice(0, 200)}`;
  };
  const held = async () => (await w.json(`/v1/sessions/${encodeURIComponent("agent:main:web:dm:look")}/debug/host`)).memory;

  test(`${AT_ONCE} first turns at once`, async () => {
    slow = true;
    let all = true, looks = 0;
    const looking = (async () => {
      for (; all; looks++) {
        await w.json("/healthz", { signal: AbortSignal.timeout(120_000) });
        await new Promise((r) => setTimeout(r, 1000));
      }
    })();
    const failed = (await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => say(`agent:main:web:dm:once${i}`, `hello ${i}`)))).filter(Boolean);
    all = false;
    await looking;
    assert.deepEqual(failed, []);
    assert.ok(looks > 0);
    console.log(`# ${AT_ONCE} at once, ${again} told to come again: ${(await held() / 2 ** 20).toFixed(1)} MiB of WASM`);
  });

  test(`${IN_TURN} conversations, eight at a time`, async () => {
    slow = false;
    let next = 0;
    const failed = [];
    await Promise.all(Array.from({ length: 8 }, async () => {
      while (next < IN_TURN) {
        const i = next++, why = await say(`agent:main:web:dm:turn${i}`, `hello ${i}`);
        if (why) failed.push(`${i}: ${why}`);
      }
    }));
    assert.deepEqual(failed, []);
    console.log(`# ${IN_TURN} in turn: ${(await held() / 2 ** 20).toFixed(1)} MiB of WASM`);
  });
});

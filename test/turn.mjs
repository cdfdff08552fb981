// One turn on workerd: starts the built Worker (dist) and talks to several sessions at once over its
// own doors. Run by: node test/turn.mjs [folder of the built Worker]

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { start } from "./workerd.mjs";

const folder = path.resolve(process.argv[2] ?? "dist");
const sessions = Array.from({ length: 8 }, (_, i) => `agent:main:web:dm:peer${i}`);
let w;

before(async () => { w = await start(folder); });
after(() => w.dispose());

// say sends one message and gives the events of the answer.
async function say(key, text) {
  const res = await w.get(`/v1/sessions/${encodeURIComponent(key)}/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ text }),
  });
  assert.equal(res.status, 200);
  assert.match(res.headers.get("content-type"), /^text\/event-stream/);
  return (await res.text()).split("\n\n").filter((e) => e.startsWith("data: ")).map((e) => JSON.parse(e.slice(6)));
}

test("the Worker answers", async () => {
  assert.equal((await w.get("/healthz")).status, 200);
});

test("two rounds in eight sessions at once, none sees another's", async () => {
  for (const round of ["first", "second"]) {
    const all = await Promise.all(sessions.map((key) => say(key, `${round} from ${key}`)));
    all.forEach((events, i) => {
      assert.equal(events[0].text, `${round} from ${sessions[i]}`);
      assert.equal(events.length, round === "first" ? 1 : 2);
      for (const e of events) assert.equal(e.object, sessions[i]);
    });
  }
});

test("bad input is refused and the next message is fine", async () => {
  const res = await w.get("/v1/sessions/bad/messages", { method: "POST", body: "{" });
  assert.equal(res.status, 400);
  assert.equal((await say("bad", "now well")).length, 1);
});

test("no host call for another object, one boot, within the budget of memory and time", async () => {
  const h = await w.json("/debug/host");
  console.log(`# boot ${h.bootMillis} ms, ${(h.memory / 2 ** 20).toFixed(1)} MiB, ${h.objects} objects, ${h.events} events`);
  assert.deepEqual({ violations: h.violations, boots: h.boots, dead: h.dead }, { violations: 0, boots: 1, dead: false });
  assert.ok(h.memory < 16 << 20, `${h.memory} bytes`);
});

// Turns on workerd: starts the built Worker (dist) and talks to several sessions at once through its
// own doors. Run by: node test/turn.mjs [folder of the built Worker]

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { start } from "./workerd.mjs";

const folder = path.resolve(process.argv[2] ?? "dist");
const token = "a-token-for-tests";
const sessions = Array.from({ length: 8 }, (_, i) => `agent:main:web:dm:peer${i}`);
let w;

before(async () => { w = await start(folder, { TIDEMARK_TOKEN: token }); });
after(() => w.dispose());

const at = (key, rest = "") => `/v1/sessions/${encodeURIComponent(key)}${rest}`;
const auth = { authorization: `Bearer ${token}` };

// say sends one message and gives the events of its turn.
async function say(key, text, id) {
  const res = await w.get(at(key, "/messages"), {
    method: "POST",
    headers: { ...auth, "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ text, id }),
  });
  assert.equal(res.status, 200);
  assert.match(res.headers.get("content-type"), /^text\/event-stream/);
  const events = (await res.text()).split("\n\n").filter((e) => e.startsWith("event: "));
  return events.map((e) => ({ type: /^event: (.*)$/m.exec(e)[1], ...JSON.parse(/^data: (.*)$/m.exec(e)[1]) }));
}

const log = (key) => w.get(at(key, "/log?format=jsonl"), { headers: auth }).then((r) => r.text())
  .then((s) => s.split("\n").filter(Boolean).map((l) => JSON.parse(l)));

test("without the token nothing but health", async () => {
  assert.equal((await w.get("/healthz")).status, 200);
  const res = await w.get(at(sessions[0], "/messages"), { method: "POST", body: "{}" });
  assert.equal(res.status, 401);
  assert.match(await res.text(), /wrangler secret put TIDEMARK_TOKEN/);
});

test("two turns in eight sessions at once, none sees another's", async () => {
  for (const round of ["first", "second"]) {
    const all = await Promise.all(sessions.map((key) => say(key, `The ${round} word of ${key}.`)));
    for (const events of all) {
      assert.equal(events.at(-1).type, "done");
      assert.ok(events.filter((e) => e.type === "text").length > 1, "the answer streams");
    }
  }
  for (const key of sessions) {
    const messages = await log(key);
    assert.deepEqual(messages.map((m) => m.role), ["user", "assistant", "user", "assistant"]);
    assert.equal(messages[0].content, `The first word of ${key}.`);
    for (const other of sessions) if (other !== key) assert.ok(!JSON.stringify(messages).includes(`${other}.`));
  }
});

test("the same input twice is one turn", async () => {
  await say("agent:main:main", "Only once.", "in-1");
  const again = await say("agent:main:main", "Only once.", "in-1");
  assert.equal(again.at(-1).type, "done");
  assert.equal((await log("agent:main:main")).length, 2);
});

test("a small window is compacted, the part is in R2, the reset archives the rest", async () => {
  const key = "agent:main:local:dm:small";
  await w.json(at(key, "/messages"), { method: "POST", headers: { ...auth, "content-type": "application/json" }, body: JSON.stringify({ text: "We decided on walnut for the table." }) });
  await w.json(at(key), { method: "PATCH", headers: { ...auth, "content-type": "application/json" }, body: JSON.stringify({ window: 6000 }) });
  for (let i = 0; i < 14; i++) await say(key, `Message ${i}: ${"some words of a long talk ".repeat(60)}`);
  const info = await w.json(at(key), { headers: auth });
  assert.ok(info.compactions > 0, JSON.stringify(info));
  const view = await w.json(at(key, "/view?messages=1"), { headers: auth });
  const text = JSON.stringify(view[0]);
  assert.match(text, /\[Conversation summary from automatic context compaction\]/);
  assert.match(text, /walnut/);
  const reset = await w.json(at(key, "/reset"), { method: "POST", headers: { ...auth, "content-type": "application/json" }, body: "{}" });
  assert.match(JSON.stringify(reset), /archivedTo/);
  assert.equal((await log(key)).length, 0);
});

test("bad input is refused and the next message is fine", async () => {
  const res = await w.get(at("bad", "/messages"), { method: "POST", headers: auth, body: "{" });
  assert.equal(res.status, 400);
});

test("no host call for another object, one boot, within the budget of memory and time", async () => {
  const h = await w.json("/debug/host");
  console.log(`# boot ${h.bootMillis} ms, ${(h.memory / 2 ** 20).toFixed(1)} MiB, ${h.objects} objects, ${h.events} events`);
  assert.deepEqual({ violations: h.violations, boots: h.boots, dead: h.dead }, { violations: 0, boots: 1, dead: false });
  assert.ok(h.memory < 48 << 20, `${h.memory} bytes`);
});

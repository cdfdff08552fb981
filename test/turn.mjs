// Turns on workerd: starts the built Worker (dist) with the offline model and talks to several sessions
// at once over its own doors, until one of them compacts and is reset. Run by: node test/turn.mjs
// [built folder]

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { start, wait } from "./workerd.mjs";

const folder = path.resolve(process.argv[2] ?? "dist");
const sessions = Array.from({ length: 8 }, (_, i) => `agent:main:web:dm:peer${i}`);
const at = (key, what = "") => `/v1/sessions/${encodeURIComponent(key)}${what}`;
const headers = { authorization: "Bearer open sesame", "content-type": "application/json" };
let w, boot;

before(async () => {
  w = await start(folder, { TIDEMARK_TOKEN: "open sesame" });
  boot = await get("/debug/host");
});
after(() => w.dispose());

const get = (p) => w.json(p, { headers });
const post = (p, body, more) => w.json(p, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });

// messages gives the log of a session as its archive would hold it.
const messages = (key) => w.get(at(key, "/log?format=jsonl"), { headers }).then((r) => r.text())
  .then((s) => s.split("\n").filter(Boolean).map((l) => JSON.parse(l)));

// say sends one message, with an id of its own or none, and gives the events of its turn.
async function say(key, text, id) {
  const res = await w.get(at(key, "/messages"), {
    method: "POST", headers: { ...headers, accept: "text/event-stream" }, body: JSON.stringify({ text, id }),
  });
  assert.equal(res.status, 200);
  assert.match(res.headers.get("content-type"), /^text\/event-stream/);
  const frames = (await res.text()).split("\n\n").filter((f) => f.includes("data: "));
  return frames.map((f) => JSON.parse(f.slice(f.indexOf("data: ") + 6)));
}

test("the Worker answers, and asks for its token", async () => {
  assert.equal((await w.get("/healthz")).status, 200);
  for (const [path, init] of [[at("agent:main:main")], [at("agent:main:main", "/messages"), { method: "POST", body: "{}" }]]) {
    const res = await w.get(path, init);
    assert.equal(res.status, 401);
    assert.match(await res.text(), /wrangler secret put TIDEMARK_TOKEN/);
  }
  assert.equal((await w.get(`/t/${encodeURIComponent("open sesame")}${at("agent:main:web:dm:nobody")}`)).status, 404);
});

test("bad input is refused, and the next message is fine", async () => {
  const key = "agent:main:web:dm:clumsy";
  const bad = await w.get(at(key, "/messages"), { method: "POST", headers, body: "{" });
  assert.equal(bad.status, 400);
  assert.equal((await say(key, "fine")).at(-1).type, "done");
  assert.equal((await messages(key)).length, 2);
});

test("two turns in eight sessions at once, none sees another's", async () => {
  for (const round of ["first", "second"]) {
    const all = await Promise.all(sessions.map((key, i) => say(key, `${round} word of peer ${i}`)));
    all.forEach((events, i) => {
      const done = events.at(-1);
      assert.equal(done.type, "done");
      assert.match(done.text, new RegExp(`${round} word of peer ${i}`));
      assert.equal(events.filter((e) => e.type === "text").map((e) => e.text).join(""), done.text);
    });
  }
  for (const [i, key] of sessions.entries()) {
    assert.equal((await get(at(key))).messages, 4);
    const all = await messages(key);
    assert.deepEqual(all.map((m) => m.role), ["user", "assistant", "user", "assistant"]);
    assert.equal(all[0].content, `first word of peer ${i}`);
    const log = JSON.stringify([all, await get(at(key, "/log"))]);
    for (const other of sessions.keys()) if (other !== i) assert.ok(!log.includes(`word of peer ${other}`));
  }
});

test("the same input twice is one turn", async () => {
  const key = "agent:main:web:dm:twice";
  const [a, b] = await Promise.all([1, 2].map(() => post(at(key, "/messages"), { text: "once" }, { "idempotency-key": "same" })));
  assert.equal(a.entry, b.entry);
  const later = (await say(key, "once", "same")).at(-1);
  assert.deepEqual([later.type, later.entry], ["done", a.entry]);
  assert.equal((await get(at(key))).messages, 2);
  assert.equal((await messages(key)).length, 2);
});

test("a window that fills is compacted, into R2, and the conversation goes on", async () => {
  const key = "agent:main:web:dm:long";
  await post(at(key, "/messages"), { text: "We decided on walnut for the table." });
  await w.json(at(key), { method: "PATCH", headers, body: JSON.stringify({ window: 8000 }) });
  for (let i = 0; i < 40; i++) {
    await post(at(key, "/messages"), { text: `Note ${i}: the tide at station ${i} stands at ${i * 7} cm. ${"It rises and falls. ".repeat(40)}` });
    if ((await get(at(key))).compactions > 0) break;
  }
  const s = await get(at(key));
  assert.ok(s.compactions > 0, `${s.contextTokens} tokens of ${s.limit} and no compaction`);
  assert.ok(s.contextTokens <= s.limit);
  const [summary] = await get(at(key, "/view?messages=1"));
  assert.match(JSON.stringify(summary), /\[Conversation summary from automatic context compaction\]/);
  assert.match(JSON.stringify(summary), /walnut/, "the summary keeps what was decided");
  assert.match((await post(at(key, "/messages"), { text: "The green buoy has come loose." })).text, /green buoy/);
});

test("a reset archives the conversation and begins an empty one", async () => {
  const key = "agent:main:web:dm:long";
  const before = await messages(key);
  const { events } = await post(at(key, "/reset"), {});
  const { archivedTo, oldSessionId } = events.find((e) => e.type === "reset").data;
  assert.ok(archivedTo, "the reset says where the conversation went");
  assert.equal((await messages(key)).length, 0);
  // The agent hears of it behind the turn.
  const listed = await wait(async () => (await get(`/v1/agents/main/archives?session=${oldSessionId}`)).archives.find((a) => a.key === archivedTo));
  assert.equal(listed.messageCount, before.length);
  const kept = await w.get(`/v1/agents/main/archives/${path.basename(archivedTo)}?format=jsonl`, { headers }).then((r) => r.text());
  assert.match(kept, /walnut/);
  assert.match((await say(key, "A new season begins.")).at(-1).text, /new season/);
  assert.equal((await messages(key)).length, 2);
});

test("no host call for another object, one boot, within the budgets", async () => {
  const h = await get("/debug/host");
  const mib = (n) => (n / 2 ** 20).toFixed(1);
  console.log(`# boot ${boot.bootMillis} ms, ${mib(boot.memory)} MiB; now ${mib(h.memory)} MiB, ${h.objects} objects, ${h.events} events, ${boot.timers}, ${h.timers} Go timers`);
  assert.deepEqual({ violations: h.violations, boots: h.boots, dead: h.dead }, { violations: 0, boots: 1, dead: false });
  assert.ok(boot.memory <= 8 << 20, `${boot.memory} bytes at start`);
});

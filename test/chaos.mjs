// Attribution under chaos, in workerd: hundreds of objects, dozens of streaming turns at once, and
// clients cut off on streams and on sockets, turns aborted, panics, fatal errors, evictions, collections, memory hogs. Then every
// session must hold its own words, whole and once. One line says what happened. Run by:
// node test/chaos.mjs [folder of a Worker built with -tags chaos]
//
// CHAOS_SECONDS   length of the storm (15)
// CHAOS_OBJECTS   sessions (200)
// CHAOS_CLIENTS   streaming at once (50)
// CHAOS_SEED      of what is done when; timing is the machine's

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { client } from "./chaos/client.mjs";
import { files, history, log, rest, stored } from "./chaos/check.mjs";
import { provider } from "./chaos/provider.mjs";
import { at, Storm } from "./chaos/storm.mjs";
import { start, wait } from "./workerd.mjs";

const folder = path.resolve(process.argv[2] ?? ".cache/chaos");
const number = (name, otherwise) => Number(process.env[name] || otherwise);
const seconds = number("CHAOS_SECONDS", 15);
const objects = number("CHAOS_OBJECTS", 200);
const clients = number("CHAOS_CLIENTS", 50);
const seed = number("CHAOS_SEED", Date.now() % 1e6);

const TOKEN = "open sesame";
const sessions = Array.from({ length: objects }, (_, i) => `c${String(i).padStart(3, "0")}`);
const compacting = sessions.slice(0, 12); // with a window so small that they compact in the storm

// chance gives a seeded source of numbers in [0, 1).
function chance(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// inBatches runs f on all, some at once: a look at 200 objects must not be a storm of its own.
async function inBatches(all, f) {
  const out = [];
  for (let i = 0; i < all.length; i += 20) out.push(...(await Promise.all(all.slice(i, i + 20).map(f))));
  return out;
}

const quantile = (all, q) => all.sort((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * q))] ?? 0;

test("chaos", async () => {
  const disk = await mkdtemp(path.join(tmpdir(), "chaos-"));
  const random = chance(seed);
  const model = await provider(random);
  const w = await start(folder, {
    TIDEMARK_TOKEN: TOKEN, ANTHROPIC_API_KEY: "fake", TIDEMARK_MODEL_BASEURL: model.url, TIDEMARK_MODEL_ID: "chaos",
  }, { disk });
  let ended = false;
  const c = client(w.url("/"), TOKEN);
  const storm = new Storm({ client: c, random, sessions, compacting });
  try {
    const base = await quiet(c, storm, "base");
    await one(storm);
    const calm = await calmly(storm);
    await inBatches(compacting, async (s) => {
      const { status } = await c.json("PATCH", at(s), { window: 4000 });
      assert.equal(status, 200, `set the window of ${s}`);
    });
    await inBatches(sessions, (s) => c.json("GET", at(s, "/debug/host"))); // all are alive
    await storm.run({ seconds, clients });
    if (seconds >= 60) storm.alarms = await alone(storm, model);
    const ids = await settle(c, storm);
    const end = await after(c, storm, model, base);
    await w.dispose();
    ended = true;
    const all = files(path.join(disk, "objects"));
    for (const [session, id] of ids) stored(storm, session, all.get(id));
    report(storm, calm, end, model);
  } finally {
    if (!ended) await w.dispose();
    c.close();
    model.close();
    await rm(disk, { recursive: true, force: true });
  }
});

// quiet tells what an instance holds when one session has had a turn and nothing is in flight.
async function quiet(c, storm, session) {
  const r = await storm.stream(session, storm.message(session));
  assert.equal(r, "done");
  await rest(c, session);
  return (await c.json("GET", at(session, "/debug/runtime"))).value;
}

// one does each thing once and alone, so that it is known to have happened and what came of it.
async function one(storm) {
  const [left, stopped, evicted] = sessions.slice(-3);
  let m = storm.message(left);
  assert.equal(await storm.stream(left, m, { act: "cut", after: 3 }), "cut");
  assert.equal(await storm.stream(left, m), "done", "a turn goes on without its client, who comes back by the same id");
  assert.equal(await storm.stream(stopped, storm.message(stopped), { act: "abort", after: 3 }), "aborted");
  assert.equal(await storm.stream(stopped, storm.message(stopped), { act: "second", after: 3 }), "done");
  m = storm.message(evicted);
  const cut = storm.stream(evicted, m);
  await wait(() => storm.streams.size > 0);
  await storm.evict(at(evicted, "/debug/evict"));
  assert.equal(await cut, "broken");
  assert.equal(await storm.stream(evicted, m), "done", "a turn goes on in the object's next life");
  const { ends } = await storm.strike([evicted], "socket");
  assert.match(ends.join(), /^(done|told)$/, "a socket outlives its instance, and hears the end of its turn");
  await storm.panic();
}

// calmly ends instances before the storm, and gives how long the streams of one took to end at most.
async function calmly(storm) {
  const { latencies } = await storm.strike(sessions.slice(0, 20));
  return Math.max(...latencies);
}

// alone ends instances in the middle of turns and touches their objects no more: their alarms must bring the
// turns to an end. It takes as long as a run may be silent, a minute.
async function alone(storm, model) {
  const { ids } = await storm.strike(sessions.slice(100, 110));
  await wait(() => ids.every((id) => model.seen.whole.has(id)))
    .catch(() => storm.fault("missing", `no alarm took up ${ids.filter((id) => !model.seen.whole.has(id))}`));
  return ids.length;
}

// settle lets every session come to rest, reads its log, and gives the id of its object.
async function settle(c, storm) {
  const ids = new Map();
  await inBatches(sessions, (session) => c.json("GET", at(session))); // each takes up what it had in work
  await inBatches([...sessions, "base"], async (session) => {
    const host = await rest(c, session);
    if (!host) return;
    ids.set(session, host.id);
    const entries = await log(c, session);
    history(storm, session, entries.filter((e) => e.kind === "message"));
    storm.compactions = (storm.compactions ?? 0) + entries.filter((e) => e.kind === "overlay").length;
  });
  return ids;
}

// after looks at what is left when all is quiet.
async function after(c, storm, model, base) {
  const look = async (session) => (await c.json("GET", at(session, "/debug/runtime"))).value;
  let now;
  try {
    await wait(async () => {
      now = await look("base");
      return now && now.goroutines <= base.goroutines && model.seen.open === 0;
    });
  } catch {
    storm.fault("left", `${now?.goroutines} goroutines, ${base.goroutines} before; ${model.seen.open} connections`);
  }
  const { value: host } = await c.json("GET", at("base", "/debug/host"));
  const { value: agent } = await c.json("GET", "/v1/agents/main/debug/host");
  const { mostConnections, ...held } = agent.pending; // the most is no longer held
  const waits = Object.values(held).reduce((a, b) => a + b);
  if (waits > 0) storm.fault("left", `the agent has ${JSON.stringify(agent.pending)} in flight`);
  return { host, goroutines: now?.goroutines, base: base.goroutines, heap: now?.heap };
}

function report(storm, calm, { host, goroutines, base, heap }, model) {
  const n = storm.counts;
  if (host.total.violations > 0) storm.fault("violations", `${host.total.violations} host calls for another object`);
  for (const f of model.seen.foreign) storm.fault("foreign", f);
  for (const b of model.seen.bad) storm.fault("wrong", b);
  const late = storm.latencies, count = (kind) => storm.faults.filter((f) => f.startsWith(`${kind}: `)).length;
  const p90 = quantile(late, 0.9), most = quantile(late, 1), ping = quantile(storm.pings, 0.9), gone = quantile(storm.evicted, 1);
  console.log(`chaos: seconds=${seconds} objects=${objects} live=${storm.live} streams=${storm.peak} turns=${n.turns} complete=${n.complete} broken=${n.broken} again=${n.again} queued=${n.queued} sockets=${n.sockets} greeted=${n.greeted} reopened=${n.reopened} ` +
    `cut=${n.cut} aborted=${n.aborted} failed=${n.failed} panics=${n.panics} fatals=${host.total.fatals} evictions=${n.evictions} collections=${n.collections} hogs=${n.hogs} ` +
    `compactions=${storm.compactions} alarms=${storm.alarms ?? 0} boots=${host.boots} foreign=${count("foreign")} missing=${count("missing")} wrong=${count("wrong")} late=${count("late")} ` +
    `violations=${host.total.violations} timers=${host.total.timers} goroutines=${goroutines}/${base} waits=0 connections=${model.seen.open} heap=${heap} memory=${host.memory} ` +
    `killed=${late.length} ended_p50=${quantile(late, 0.5).toFixed(0)}ms ended_p90=${p90.toFixed(0)}ms ended_max=${most.toFixed(0)}ms greeted_p50=${quantile(storm.greetings, 0.5).toFixed(0)}ms greeted_max=${quantile(storm.greetings, 1).toFixed(0)}ms evicted=${storm.evicted.length} evicted_max=${gone.toFixed(0)}ms calm_max=${calm.toFixed(0)}ms ping_p90=${ping.toFixed(0)}ms seed=${seed}`);
  if (storm.reasons) for (const [text, k] of storm.reasons) console.log(`# failed ${k} times: ${text}`);
  assert.equal(storm.faults.slice(0, 20).join("\n"), "");
  assert.ok(n.complete > 0 && n.fatals > 0, "the storm proves nothing");
  assert.ok(n.greeted > 0 && storm.greetings.length > 0, "no socket was open when its instance ended");
  assert.ok(late.length > 0, "no stream was in flight when its instance ended");
}

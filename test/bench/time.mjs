// How long things take: the first answer of a new object, of a new process, of a session that wakes; a
// turn beyond the time of its model; requests a second. Each beside the baseline, in turns.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { cpu, cpuOfMain, median, memory, num, percentile, pool, spread, startWorker, table } from "./rig.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// pair runs f with both workers in turns, and the other one first in every second round.
async function pair(rounds, both, f) {
  for (let i = 0; i < rounds; i++) for (const w of i % 2 ? [...both].reverse() : both) await f(w, i);
}

const ratios = (a, b) => a.map((v, i) => v / b[i]);

// cold: a new object, the instance being there.
export async function cold({ ours, probe, plain, n }) {
  const got = { probe: [], plain: [], ours: [] };
  const first = async (name, w, key) => {
    const what = name === "ours" ? ["PATCH", w.at(key), { window: 100_000 }] : ["GET", w.at(key, "/rows")];
    return (await w.call(...what)).first;
  };
  const workers = { plain, probe, ours };
  for (const [name, w] of Object.entries(workers)) await pool(4, 60, (i) => first(name, w, `warm-cold-${i}`));
  const rounds = [];
  for (let r = 0; r < 5; r++) {
    const round = {};
    for (const name of r % 2 ? ["ours", "probe", "plain"] : ["plain", "probe", "ours"]) {
      const times = [];
      for (let i = 0; i < n / 5; i++) times.push(await first(name, workers[name], `cold-${r}-${i}`));
      round[name] = median(times);
      got[name].push(...times);
      await sleep(50);
    }
    rounds.push(round);
  }
  const row = (label, name) => [label, num(median(got[name])), num(percentile(got[name], 0.99)), name === "plain" ? "1" : spread(rounds.map((r) => r[name] / r.plain))];
  return ["### First answer of a new object, the instance being there", table(["", "ms", "p99", "ratio (5 rounds)"], [
    row("JavaScript: one insert, one read", "plain"),
    row("Go: the same over the bridge", "probe"),
    row("Go: a new conversation (its tables made, its settings stored)", "ours"),
  ])];
}

// start: what our module adds to the start of a process: workerd reads and compiles it, and Go boots in the
// first event. It is processor time, and the least of the rounds, since other work on the machine only adds
// to it. A figure over its budget fails the run.
export async function start({ folder, rounds, budget }) {
  const got = { plain: [], ours: [] };
  await pair(rounds, ["plain", "ours"], async (kind) => {
    const w = await startWorker(kind, { folder, vars: { TIDEMARK_DEBUG: "1" } });
    const compile = cpuOfMain(w.pid);
    const host = await w.json("GET", kind === "ours" ? "/debug/host" : w.at("start", "/rows"));
    got[kind].push({ compile, boot: cpuOfMain(w.pid) - compile, go: host.memory, rss: memory(w.pid).rss });
    await w.stop();
  });
  const least = (kind, what) => Math.min(...got[kind].map((g) => g[what]));
  const beyond = (what) => least("ours", what) - least("plain", what);
  const both = beyond("compile") + beyond("boot");
  const go = least("ours", "go");
  const over = [];
  if (both > budget.startMillis) over.push(`the start takes ${num(both)} ms, over its budget of ${budget.startMillis}`);
  if (!(go <= budget.startMemoryBytes)) over.push(`Go starts with ${go} bytes, over its budget of ${budget.startMemoryBytes}`);
  return { over, lines: [`### Start, beyond JavaScript's (the least of ${rounds})`, table(["", "measured", "budget", "the platform allows"], [
    ["WASM read and compiled, CPU ms", num(beyond("compile")), "", ""],
    ["Go booted, CPU ms", num(beyond("boot")), "", ""],
    ["together, CPU ms", num(both), budget.startMillis, budget.platform.startMillis.toLocaleString("en-US")],
    ["memory of Go, MiB", num(go / 2 ** 20), budget.startMemoryBytes / 2 ** 20, budget.platform.memoryBytes / 2 ** 20],
    ["memory of the process, MB", num(beyond("rss")), "", ""],
  ])] };
}

// boot: a new process, its first object.
export async function boot({ folder, probeFolder, model, rounds }) {
  const got = { plain: [], probe: [], ours: [] };
  await pair(rounds, ["plain", "probe", "ours"], async (kind) => {
    const w = await startWorker(kind === "plain" ? "plain" : "ours", { folder: kind === "probe" ? probeFolder : folder, model });
    const r = kind === "ours" ? await w.call("PATCH", w.at("boot"), { window: 100_000 }) : await w.call("GET", w.at("boot", "/rows"));
    const again = kind === "ours" ? await w.call("PATCH", w.at("boot2"), { window: 100_000 }) : await w.call("GET", w.at("boot2", "/rows"));
    got[kind].push({ ready: w.ready, first: r.first, second: again.first });
    await w.stop();
  });
  const of = (kind, what) => got[kind].map((g) => g[what]);
  const row = (label, kind) => [label, spread(of(kind, "ready")), spread(of(kind, "first")), num(median(ratios(of(kind, "first"), of("plain", "first")))), spread(of(kind, "second"))];
  return ["### First answer of a new process", table(["", "process ready, ms", "first object, ms", "ratio", "second object, ms"], [
    row("JavaScript", "plain"), row("Go, the bridge alone", "probe"), row("Go, the Worker", "ours"),
  ])];
}

// measured turns of one worker: wall clock, model's part, processor time. All but what the model took is
// the overhead of a turn.
async function turns(w, model, { n, at, key }) {
  await model.take();
  const used = cpu(w.pid);
  const begun = performance.now();
  const totals = [], firsts = [];
  await pool(at, n, async (i) => {
    const r = await w.turn(`${key}-${i % at}`, `What does the tide do at station ${i}?`);
    totals.push(r.total);
    firsts.push(r.first);
  });
  const wall = performance.now() - begun;
  const { calls, ms } = await model.take();
  const mean = totals.reduce((a, b) => a + b, 0) / n;
  return { overhead: mean - ms / calls, model: ms / calls, cpu: (cpu(w.pid) - used) / n, rate: (n / wall) * 1000, first: median(firsts) };
}

export async function turn({ ours, plain, model, rounds, n }) {
  const rows = [];
  for (const [label, shape, at, count] of [
    ["answer at once, one after the other", { pieces: 20, pause: 0 }, 1, n],
    ["answer at once, 16 at a time", { pieces: 20, pause: 0 }, 16, 4 * n],
    ["100 pieces 2 ms apart, one after the other", { pieces: 100, pause: 2 }, 1, Math.ceil(n / 10)],
    ["100 pieces 2 ms apart, 16 at a time", { pieces: 100, pause: 2 }, 16, n],
  ]) {
    await model.take(shape);
    const got = { ours: [], plain: [] };
    for (const w of [ours, plain]) await turns(w, model, { n: 2 * at, at, key: `${shape.pause}-${at}-warm` });
    await pair(rounds, [ours, plain], async (w, i) => got[w.kind].push(await turns(w, model, { n: count, at, key: `${shape.pause}-${at}-${i}` })));
    const of = (kind, what) => got[kind].map((g) => g[what]);
    const r = (what) => spread(ratios(of("ours", what), of("plain", what)));
    rows.push([label, num(median(of("plain", "model"))), spread(of("plain", "overhead")), spread(of("ours", "overhead")), r("overhead"),
      num(median(of("plain", "cpu"))), num(median(of("ours", "cpu"))), r("cpu"), num(median(of("plain", "rate"))), num(median(of("ours", "rate")))]);
  }
  await model.take({ pieces: 20, pause: 0 });
  return ["### A turn beyond the time of its model", table(["", "model, ms", "JS, ms", "Go, ms", "ratio", "JS CPU ms", "Go CPU ms", "ratio", "JS turns/s", "Go turns/s"], rows)];
}

// rate: requests a second of a cheap read, over 16 sessions that are awake.
export async function rate({ ours, plain, rounds, n }) {
  const rows = [];
  for (const w of [ours, plain]) {
    for (let i = 0; i < 16; i++) await (w === ours ? w.call("PATCH", w.at(`rate-${i}`), { window: 100_000 }) : w.call("GET", w.at(`rate-${i}`)));
    await pool(16, 600, (i) => w.call("GET", w.at(`rate-${i % 16}`)));
  }
  for (const at of [1, 16]) {
    const got = { ours: [], plain: [] };
    await pair(rounds, [ours, plain], async (w) => {
      const used = cpu(w.pid), begun = performance.now(), times = [];
      await pool(at, n, async (i) => times.push((await w.call("GET", w.at(`rate-${i % 16}`))).total));
      got[w.kind].push({ rate: (n / (performance.now() - begun)) * 1000, cpu: (cpu(w.pid) - used) / n, p50: median(times), p99: percentile(times, 0.99) });
    });
    const of = (kind, what) => got[kind].map((g) => g[what]);
    const line = (kind) => [`${num(median(of(kind, "rate")))}`, num(median(of(kind, "p50"))), num(median(of(kind, "p99"))), num(median(of(kind, "cpu")))];
    rows.push([`c = ${at}`, ...line("plain"), ...line("ours"), spread(ratios(of("ours", "rate"), of("plain", "rate")))]);
  }
  return ["### Requests a second, `GET /v1/sessions/{key}`", table(["", "JS req/s", "p50", "p99", "CPU ms", "Go req/s", "p50", "p99", "CPU ms", "ratio of req/s"], rows)];
}

// wake: the first answer of a session after a restart of the process, by the length of its history.
export async function wake({ folder, model, rounds, lengths }) {
  const disk = mkdtempSync(path.join(tmpdir(), "bench-"));
  const sessions = [...lengths.map((n) => `wake-${n}`), "wake-other"];
  try {
    let w = await startWorker("ours", { folder, model, disk });
    for (const key of sessions) {
      const n = Number(key.split("-")[1]) || lengths[0];
      await w.call("POST", w.at(key, "/import?format=jsonl&window=32000&stream=0"), history(n));
    }
    const infos = await Promise.all(sessions.map((key) => w.json("GET", w.at(key))));
    await sleep(500);
    await w.stop();
    const got = Object.fromEntries(lengths.map((n) => [n, []]));
    for (let i = 0; i < rounds; i++) {
      w = await startWorker("ours", { folder, model, disk });
      for (let k = 0; k < 20; k++) await w.call("GET", w.at("wake-other", k % 2 ? "/view?messages=1" : "")); // boots the instance, warms the code
      for (const n of i % 2 ? [...lengths].reverse() : lengths) {
        const info = (await w.call("GET", w.at(`wake-${n}`))).first;
        const view = (await w.call("GET", w.at(`wake-${n}`, "/view?messages=1"))).first;
        const turn = await w.turn(`wake-${n}`, "And now?");
        got[n].push({ info, view, turn: turn.total });
      }
      await w.stop();
    }
    const of = (n, what) => got[n].map((g) => g[what]);
    const base = lengths[1]; // the first that was compacted: what the longer ones cost beyond it grows with history
    return ["### Waking a session", table(["messages", "compactions", "tokens in view", "first answer, ms", "ratio", "its view, ms", "ratio", "first turn, ms"], lengths.map((n, i) => [
      n.toLocaleString("en-US"), infos[i].compactions, infos[i].contextTokens.toLocaleString("en-US"), spread(of(n, "info")), num(median(ratios(of(n, "info"), of(base, "info")))),
      spread(of(n, "view")), num(median(ratios(of(n, "view"), of(base, "view")))), spread(of(n, "turn")),
    ]))];
  } finally {
    rmSync(disk, { recursive: true, force: true });
  }
}

// recall: questions about a long conversation, beside the bare route of the same object. Each round asks other ones.
export async function recall({ ours, rounds, n, length }) {
  await ours.call("POST", ours.at("recall", "/import?format=jsonl&window=32000&stream=0"), said(length));
  const ask = (q) => ours.at("recall", `/recall?k=10&q=${encodeURIComponent(q)}`);
  const kinds = {
    "its bare route": () => ours.at("recall"),
    "an identifier": (i) => ask(nameOf((i * 37) % length)),
    "a few words": (i) => ask(`${wordOf(i * 7)} ${wordOf(i * 31 + 5)} ${wordOf(i * 101 + 900)}`),
    "a sentence": (i) => ask(`where did we read about the ${wordOf(i * 3)} and the ${wordOf(i * 17 + 40)} of the ${wordOf(i * 53 + 700)}, ` +
      `and what did ${wordOf(i * 29 + 9)} say of ${nameOf((i * 91) % length)}?`),
    "what was never said": (i) => ask(`quux_${i}_zzz never xylophoned the ${wordOf(i)}`),
  };
  while ((await ours.call("GET", ask("index"))).text.includes('"not indexed yet"')) await sleep(100);
  for (const path of Object.values(kinds)) for (let i = 0; i < n; i++) await ours.call("GET", path(i + rounds * n));
  const got = Object.fromEntries(Object.keys(kinds).map((k) => [k, { p50: [], p99: [], cpu: [] }]));
  for (let r = 0; r < rounds; r++) for (const [kind, path] of Object.entries(kinds)) {
    const used = cpu(ours.pid), times = [];
    for (let i = 0; i < n; i++) times.push((await ours.call("GET", path(r * n + i))).total);
    got[kind].p50.push(median(times));
    got[kind].p99.push(percentile(times, 0.99));
    got[kind].cpu.push((cpu(ours.pid) - used) / n);
  }
  return [`### Recall over ${length.toLocaleString("en-US")} messages`, table(["", "p50, ms", "p99, ms", "CPU ms"],
    Object.entries(got).map(([kind, g]) => [kind, spread(g.p50), spread(g.p99), spread(g.cpu)]))];
}

// What recall is asked about: words as Zipf has them, dozens in a message, and an identifier in each.
function wordOf(n) {
  let s = "";
  for (n = (n % 5000) + 50; n > 0; n = Math.floor(n / 70)) s += "bdfgklmnprstvz"[Math.floor((n % 70) / 5)] + "aeiou"[n % 5];
  return s;
}
const nameOf = (i) => `build_${String(i).padStart(6, "0")}_${((i * 7919) % 0xfffff).toString(16)}`;

function said(n) {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff;
  const words = (count) => Array.from({ length: count }, () => wordOf(Math.floor(5000 ** random()) - 1)).join(" ");
  const lines = [];
  for (let i = 0; i < n; i++) {
    const id = `toolu_${i - (i % 4)}`;
    lines.push(JSON.stringify([
      { role: "user", content: `${words(20 + (i % 30))} ${nameOf(i)}` },
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { file: `/srv/${words(1)}.go`, tag: nameOf(i) } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: [nameOf(i), ...Array.from({ length: 8 }, () => `func ${words(1)}(ctx) error { ${words(8)} }`)].join("\n") }] },
      { role: "assistant", content: `${words(10 + (i % 20))} ${nameOf(i)}` },
    ][i % 4]));
  }
  return Buffer.from(lines.join("\n") + "\n");
}

// history makes n messages of about 120 tokens as an archive holds them.
function history(n) {
  const lines = [];
  for (let i = 0; i < n; i++) {
    const text = `Note ${i}: station ${i % 97} reports ${i * 7} cm. ${"The tide rises and falls at the quay, and a boat waits. ".repeat(5)}`;
    lines.push(JSON.stringify({ role: i % 2 ? "assistant" : "user", content: text }));
  }
  return Buffer.from(lines.join("\n") + "\n");
}

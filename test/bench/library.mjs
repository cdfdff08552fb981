// What our bridge does beside what syumai/workers does for it, in one object of one instance, in turns.

import { createServer } from "node:http";
import { cpu, median, num, spread, startWorker, table } from "./rig.mjs";

const KB = 1024, MB = 1024 * KB;
const ways = ["ours", "library"];
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// origin is the server that is fetched: so many bytes, and paths that never end.
async function origin() {
  let length, open = 0;
  const server = createServer((req, res) => {
    open++;
    res.on("close", () => open--);
    const { pathname, searchParams } = new URL(req.url, "http://origin");
    if (pathname === "/never") return;
    if (pathname === "/stall") return res.writeHead(200, { "content-length": KB }).write("x");
    if (pathname === "/none") return res.writeHead(204).end();
    if (pathname === "/cookies") return res.writeHead(200, { "set-cookie": ["a=1; Expires=Sat, 28 Nov 2026 09:20:00 GMT", "b=2"] }).end("x");
    length = req.headers["content-length"];
    req.resume();
    req.on("end", () => res.end(Buffer.alloc(Number(searchParams.get("n")))));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return {
    url: `http://127.0.0.1:${server.address().port}`, length: () => length, open: () => open,
    drop: () => server.closeAllConnections(), stop: () => { server.closeAllConnections(); server.close(); },
  };
}

const query = (o) => new URLSearchParams(o).toString();

// calls are what is compared: a name, what is asked for (nothing: requests through the handler bridge), and how often.
const calls = (url, n) => [
  ["variable", { what: "env" }, 200 * n],
  ["fetch, 1 KB back", { what: "fetch", url: `${url}/?n=${KB}`, size: KB }, n],
  ["fetch, 1 MB back", { what: "fetch", url: `${url}/?n=${MB}`, size: MB }, n / 10],
  ["fetch, 1 KB there", { what: "fetch", url: `${url}/?n=1`, body: KB }, n],
  ["fetch, 1 MB there", { what: "fetch", url: `${url}/?n=1`, body: MB }, n / 10],
  ["stub of an object, 1 KB back", { what: "peer", key: "peer", url: peer, size: KB }, n],
  ["R2, 1 KB", { what: "blob", key: stored(KB), size: KB }, n],
  ["R2, 1 MB", { what: "blob", key: stored(MB), size: MB }, n / 10],
  ["handler, 1 KB out", null, n],
];
const peer = `https://object/v1/sessions/peer/zeros?size=${KB}`;
const stored = (size) => `agent:main:web:dm:library/${size}`;

// withProbe starts a probe that may grow: what the library leaves behind would have it moved to a new instance.
async function withProbe(folder, f) {
  const limits = JSON.stringify({ drainBytes: 2 ** 30 });
  const w = await startWorker("beside", { folder, vars: { PROBE: "tide", TIDEMARK_DEBUG: "1", TIDEMARK_LIMITS: limits } });
  try {
    return await f((what, o = {}) => w.json("GET", w.at("library", `/${what}?${query(o)}`)), () => cpu(w.pid));
  } finally {
    await w.stop();
  }
}

// library compares each call in a process of its own: the next one would be slowed by what the one before left.
export async function library({ folder, rounds, n }) {
  const up = await origin();
  const rows = [];
  try {
    for (const [label, call, count] of calls(up.url, n)) rows.push([label, ...(await withProbe(folder, (ask, used) => beside(ask, used, call, count, rounds)))]);
    const said = await withProbe(folder, (ask) => edges(ask, up));
    const both = (what) => [`ours: ${what}`, "library"];
    return [
      `### Our bridge beside syumai/workers, a call (${rounds} rounds in turns, in one object)`,
      table(["", "ours, µs", "library, µs", "ratio", ...both("CPU µs"), ...both("bytes allocated"), ...both("bytes left"), ...both("functions that JavaScript still holds")], rows),
      "### What else differs", table(["", "ours", "library"], said),
    ];
  } finally {
    up.stop();
  }
}

async function beside(ask, used, call, count, rounds) {
  if (call?.what === "blob") await ask("blob", { key: call.size, size: call.size });
  const once = (by, n) => (call ? ask("calls", { ...call, by, n }) : ask("debug/bridge", { by, n }));
  const got = { ours: [], library: [] };
  for (const by of ways) await once(by, Math.ceil(count / 5)); // warm
  for (let i = 0; i < rounds; i++) for (const by of i % 2 ? [...ways].reverse() : ways) got[by].push(await left(ask, used, count, () => once(by, count)));
  const each = (f) => ways.map((by) => f(got[by]));
  const whole = (what) => (g) => Math.round(median(g.map((v) => v[what]))).toLocaleString("en-US");
  return [...each((g) => spread(g.map((v) => v.us))), spread(got.library.map((v, i) => v.us / got.ours[i].us)),
    ...each((g) => num(g.reduce((sum, v) => sum + v.busy, 0) / rounds)), ...each(whole("bytes")), ...each(whole("stays")), ...each((g) => num(median(g.map((v) => v.funcs))))];
}

// left gives what n calls took, allocated and left behind, a call.
async function left(ask, used, n, f) {
  const before = { ...(await ask("rest")), ...(await ask("debug/refs")) };
  const begun = used();
  const us = await f();
  const busy = ((used() - begun) * 1000) / n;
  const after = { ...(await ask("rest")), ...(await ask("debug/refs")) };
  const each = (what) => (after[what] - before[what]) / n;
  return { us, busy, bytes: each("total"), funcs: each("funcs"), stays: each("heap") };
}

// edges cancels the context of calls in their middle, and asks for answers of other kinds.
async function edges(ask, up) {
  const rows = [];
  for (const [label, call] of [
    ["cancelled before the answer", { what: "fetch", url: `${up.url}/never` }],
    ["cancelled in the body", { what: "fetch", url: `${up.url}/stall` }],
    ["cancelled call of an object", { what: "peer", key: "peer", url: `${peer}&ms=2000` }],
  ]) {
    const said = [];
    for (const by of ways) {
      const { ended, ms, error } = await ask("cut", { ...call, by });
      await sleep(50);
      said.push(`${ended ? `ends after ${ms} ms: ${error}` : "goes on, 1 s watched"}${call.what === "fetch" ? `; connections open: ${up.open()}` : ""}`);
      up.drop();
      await sleep(call.what === "peer" ? 2000 : 100);
    }
    rows.push([label, ...said]);
  }
  const good = () => "as it was sent";
  for (const [label, call, then] of [
    ["an answer without a body (204)", { url: `${up.url}/none` }, good],
    ["two cookies, one with a date", { url: `${up.url}/cookies`, cookies: 2 }, good],
    ["the object's database, asked next", { url: `${up.url}/?n=1`, then: 1 }, () => "answers"],
    ["length told of a body of 1 KB", { url: `${up.url}/?n=1`, body: KB }, () => up.length() ?? "none"],
  ]) {
    const said = [];
    for (const by of ways) said.push(await ask("calls", { ...call, what: "fetch", by, n: 1 }).then(then, (e) => e.message.split(": 418 ").at(-1).trim()));
    rows.push([label, ...said]);
  }
  return rows;
}

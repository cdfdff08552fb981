// Our bridge beside syumai/workers, by the probe (host/probe/library_js.go): what a call takes, what it leaves in the
// instance for ever, and what becomes of it when something goes wrong.

import http from "node:http";
import { cpu, median, num, pool, spread, startWorker, table } from "./rig.mjs";

const MB = 1 << 20;
const BOTH = ["ours", "theirs"];
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

async function begin(folder, vars = {}) {
  const w = await startWorker("both", { folder, vars: { TIDEMARK_DEBUG: "1", ...vars } });
  const host = () => w.json("GET", w.at("a", "/debug/host"));
  return { ...w, host, left: async () => ({ ...(await host()), ...(await w.json("GET", w.at("a", "/heap?"))) }) };
}

// upstream answers /n with n bytes, /pieces with a hundred, /never not at all, /silent with the first byte only.
async function upstream() {
  const bytes = Buffer.alloc(MB, "x"), open = new Set();
  const server = http.createServer(async (req, res) => {
    open.add(res);
    res.on("close", () => open.delete(res));
    for await (const _ of req);
    res.setHeader("x-length", req.headers["content-length"] ?? "none");
    if (req.url === "/never") return;
    if (req.url === "/silent") return res.write("x");
    if (req.url !== "/pieces") return res.end(bytes.subarray(0, Number(req.url.slice(1))));
    for (let i = 0; i < 100; i++) {
      res.write(`data: ${i}\n\n`);
      await sleep(2);
    }
    res.end();
  });
  server.keepAliveTimeout = 300_000;
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  const base = `http://127.0.0.1:${server.address().port}`;
  return { to: (p) => `url=${encodeURIComponent(base + p)}`, open, close: () => { server.closeAllConnections(); server.close(); } };
}

// A call is its path, how often it is made in a round, and the body that is sent. The parameter by (of what the
// Worker calls) or bridge (by which it is called) is added.
const calls = (up) => ({
  "fetch, 100 bytes": [`/fetch?${up.to("/100")}`, 200],
  "fetch, 10 KB sent": [`/fetch?size=10240&${up.to("/100")}`, 200],
  "fetch, 1 MB sent": [`/fetch?size=${MB}&${up.to("/100")}`, 20],
  "fetch, 1 MB read": [`/fetch?${up.to(`/${MB}`)}`, 20],
  "fetch, 100 pieces read": [`/fetch?${up.to("/pieces")}`, 12],
  "another object, nothing sent": ["/fetch?name=b", 200],
  "another object, 10 KB sent": ["/fetch?name=b&size=10240", 200],
  "R2, 10 KB read": ["/get?key=10k", 100],
  "R2, 1 MB read": ["/get?key=1m", 20],
  "R2, 10 KB put": ["/put?key=x&size=10240", 50],
  "R2, 1 MB put": [`/put?key=x&size=${MB}`, 12],
  "handler, 10 bytes": ["/small?", 300],
  "handler, 100 events": ["/events?n=100", 40],
  "handler, 1 MB answered": [`/big?size=${MB}`, 20],
  "handler, 1 MB received": ["/count?", 20, Buffer.alloc(MB, "x")],
});

const asking = (w, label, [at, , body]) => (by, i) =>
  w.call(body ? "POST" : "GET", w.at(`a${i % 4}`, `${at}&${label.startsWith("handler") ? "bridge" : "by"}=${by}`), body);

async function speed({ folder, up, rounds, few }) {
  const rows = [];
  for (const [label, call] of Object.entries(calls(up))) {
    const w = await begin(folder); // that what the rows before left is no matter
    for (const [key, size] of [["10k", 10240], ["1m", MB]]) await w.call("GET", w.at("a", `/put?key=${key}&size=${size}`));
    const ask = asking(w, label, call), n = Math.ceil(call[1] / few);
    const got = { ours: [], theirs: [] };
    for (const by of BOTH) await pool(4, n, (i) => ask(by, i));
    for (let r = 0; r < rounds; r++) for (const by of r % 2 ? [...BOTH].reverse() : BOTH) {
      const used = cpu(w.pid), times = [];
      await pool(4, n, async (i) => times.push((await ask(by, i)).total));
      got[by].push({ cpu: (cpu(w.pid) - used) / n, ms: median(times) });
    }
    await w.stop();
    const of = (by, what) => got[by].map((g) => g[what]);
    const ratio = (what) => spread(of("theirs", what).map((v, i) => v / of("ours", what)[i]));
    rows.push([label, ...["cpu", "ms"].flatMap((what) => [...BOTH.map((by) => num(median(of(by, what)))), ratio(what)])]);
  }
  return [`### A call, four at a time (${rounds} rounds in turns)`, table(["", "ours, CPU ms", "theirs", "ratio", "ours, ms", "theirs", "ratio"], rows)];
}

async function left({ folder, up, few }) {
  const rows = [];
  for (const label of ["fetch, 100 bytes", "fetch, 10 KB sent", "fetch, 1 MB read", "fetch, 100 pieces read", "another object, nothing sent", "another object, 10 KB sent", "R2, 10 KB read", "handler, 10 bytes", "handler, 100 events"]) {
    const call = calls(up)[label], got = {};
    for (const by of BOTH) {
      const w = await begin(folder), ask = asking(w, label, call), n = Math.ceil((call[1] * 2) / few);
      await w.call("GET", w.at("a", "/put?key=10k&size=10240"));
      await pool(4, n, (i) => ask(by, i));
      const before = await w.left();
      await pool(4, n, (i) => ask(by, i));
      const after = await w.left();
      await w.stop();
      got[by] = [(after.heap - before.heap) / n, (after.refs - before.refs) / n];
    }
    rows.push([label, ...[0, 1].flatMap((i) => BOTH.map((by) => num(got[by][i])))]);
  }
  return ["### What a call leaves behind", table(["", "ours, bytes of Go", "theirs", "ours, references", "theirs"], rows)];
}

// begun opens a request and gives it when the first bytes are there.
const begun = (url) => new Promise((resolve, reject) => {
  const q = http.get(url, { headers: { authorization: "Bearer bench" } }, (res) => res.once("readable", () => resolve(q)));
  q.on("error", reject);
});

async function faults({ folder, up }) {
  const answer = (p) => Promise.race([p.then((r) => r.text, (e) => e.message.split("&by=").at(-1).split(": ").slice(1).join(": ").trim()), sleep(3000).then(() => "none in 3 s")]);
  const header = (name) => async (w, by) => JSON.parse((await w.call("GET", w.at("a", `/fetch?by=${by}&size=10&${up.to("/100")}`))).text).header[name].join(" and ");
  const fatals = async (w) => `${(await w.host()).total.fatals} instances ended`;
  const tries = {
    "without the wrapper of test/bench/both.mjs": async (w, by) => `${await answer(w.call("GET", w.at("a", `/fetch?by=${by}&${up.to("/100")}`)).then(() => ({ text: "answered" })))}; ${(await w.host()).violations} calls refused`,
    "a deadline of 0.2 s, a silent server": async (w, by) => `${await answer(w.call("GET", w.at("a", `/fetch?ms=200&${up.to("/never")}&by=${by}`)))}; ${up.open.size} still open`,
    "the same within the body": async (w, by) => `${await answer(w.call("GET", w.at("a", `/fetch?ms=200&${up.to("/silent")}&by=${by}`)))}; ${up.open.size} still open`,
    "the header Date": header("Date"),
    "the length that a server is told of 10 bytes": header("X-Length"),
    "five clients leave a stream": async (w, by) => {
      for (let i = 0; i < 5; i++) {
        (await begun(w.url + w.at(`left${i}`, `/wait?bridge=${by}`))).destroy();
        await sleep(500);
      }
      return fatals(w);
    },
    "a handler panics": async (w, by) => {
      await answer(w.call("GET", w.at("a", `/panic?bridge=${by}`)));
      return fatals(w);
    },
    "64 MB of a known length, of which the client reads none": async (w, by) => {
      const q = await begun(w.url + w.at("unread", `/big?size=${64 * MB}&length=1&bridge=${by}`));
      await sleep(3000);
      const made = await w.json("GET", w.at("unread", "/made?"));
      q.destroy();
      return `${num(made / MB)} MB made`;
    },
  };
  const rows = [];
  for (const [label, f] of Object.entries(tries)) {
    const row = [label];
    for (const by of BOTH) {
      const w = await begin(folder, label.startsWith("without") ? { BARE: "1" } : {});
      row.push(await f(w, by));
      await w.stop();
      for (const res of up.open) res.destroy();
    }
    rows.push(row);
  }
  return ["### When something goes wrong", table(["", "ours", "theirs"], rows)];
}

export async function library({ say, ...o }) {
  const up = await upstream();
  try {
    for (const part of [faults, left, speed]) say(await part({ ...o, up }));
  } finally {
    up.close();
  }
}

// Serves a built Worker in workerd until it is ended, for tests in Go. Objects are kept under
// DIR/objects and blobs under DIR/blobs: a SIGKILL of the process group is a power cut, after which
// another launcher on DIR goes on. When the Worker answers, one JSON line on stdout says where: {url,
// control, pid}.
//
//   node test/serve.mjs --folder dist --disk DIR [--port 0]
//     [--var NAME=VALUE ...] [--ai URL] [--assets DIR] [--stdin] [--crash JSON]
//
// --assets serves the files of a folder before the Worker is asked, as [assets] of wrangler.toml does.
//
// --ai binds AI to a fake: its run posts to URL/ and the model's name. With --stdin it waits, with all
// it needs in memory, for a byte on stdin before it starts, so that a test can have the next one ready.
//
// --crash kills the process group at a place: {"put": a pattern of keys, "before": true for before the
// bucket has it} or {"tx": a pattern of a transaction, each of its statements a line "SQL | arguments"},
// and "n", the how many-th time. What a transaction wrote is on the disk when that kills, and the Worker may
// be a moment further.
//
// The control server is the test's way to what a client cannot reach:
//
//   GET    /r2?prefix=          keys, a JSON list
//   GET    /r2/KEY              bytes, with the custom metadata as x-meta-* headers
//   PUT    /r2/KEY              stores them, with x-meta-* headers as its metadata
//   DELETE /r2/KEY
//   POST   /fail?puts=N         the next N puts of the Worker fail
//   POST   /hold?puts=N         the Nth next put waits, whole in the Worker and not in the bucket
//   GET    /held                answers once a put waits: {key}
//   POST   /release             lets it go on
//   POST   /evict?object=session|agent&name=NAME   ends the object in the middle of what it does
//   POST   /alarm?object=&name=&times=N            calls its alarm N times at once

import { createServer } from "node:http";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { Miniflare, compatibility, modulesOf } from "./workerd.mjs";

const { values: flags } = parseArgs({
  options: {
    folder: { type: "string", default: "dist" },
    disk: { type: "string" },
    port: { type: "string", default: "0" },
    var: { type: "string", multiple: true, default: [] },
    ai: { type: "string" },
    assets: { type: "string" },
    stdin: { type: "boolean", default: false },
    crash: { type: "string", default: "{}" },
  },
});
if (!flags.disk) throw new Error("--disk: name the folder in which objects and blobs are kept");
const bindings = { TIDEMARK_DEBUG: "1" };
for (const v of flags.var) {
  const at = v.indexOf("=");
  if (at < 1) throw new Error(`--var ${v}: use NAME=VALUE`);
  bindings[v.slice(0, at)] = v.slice(at + 1);
}

const crash = { n: 1, ...JSON.parse(flags.crash) };

// Entry of the Worker: the shim with a way in for the control server, which names it by this host, and
// with an eye on its transactions if one of them is to be the last.
const DOOR = "door.test";
const entry = `
import * as shim from "./shim.mjs";
const crash = ${JSON.stringify(crash)};
const last = crash.tx && new RegExp(crash.tx, "m");

// over gives an object whose methods are those of real, some replaced.
const over = (real, instead) => new Proxy(real, {
  get: (_, name) => name in instead ? instead[name] : typeof real[name] === "function" ? real[name].bind(real) : real[name],
});

function watched(ctx, env) {
  const { storage } = ctx;
  let lines = null;
  const sql = over(storage.sql, {
    exec(text, ...args) {
      lines?.push(text.replace(/\\s+/g, " ") + " | " + args.filter((a) => typeof a !== "string" || a.length < 80).join(", "));
      return storage.sql.exec(text, ...args);
    },
  });
  const transactionSync = (f) => {
    lines = [];
    try {
      const out = storage.transactionSync(f);
      if (last.test(lines.join("\\n")) && --crash.n === 0) env.MAY.fetch("http://may/end", { method: "POST" }).catch(() => {});
      return out;
    } finally {
      lines = null;
    }
  };
  return over(ctx, { storage: over(storage, { sql, transactionSync }) });
}

const open = (Base) => class extends Base {
  constructor(ctx, env) {
    super(ctx, env);
    if (last) this.ctx = watched(ctx, env);
  }

  async fetch(request) {
    const url = new URL(request.url);
    if (url.hostname !== "${DOOR}") return super.fetch(request);
    if (url.pathname === "/evict") this.ctx.abort("evicted");
    const times = Number(url.searchParams.get("times") ?? 1);
    await Promise.all(Array.from({ length: times }, () => this.alarm()));
    return new Response("done");
  }
};
export * from "./shim.mjs";
export const Session = { Session: class extends open(shim.Session) {} }.Session;
export const Agent = { Agent: class extends open(shim.Agent) {} }.Agent;
export default shim.default;
`;

// The Worker's bucket: each put first asks the control server whether it may.
const bucketDoor = `
export default (env) => {
  const may = async (key) => {
    const r = await env.MAY.fetch("http://may/put", { method: "POST", body: key });
    if (!r.ok) throw new Error("put: " + (await r.text()));
  };
  const was = (key) => env.MAY.fetch("http://may/was", { method: "POST", body: key });
  const put = async (key, value, options) => {
    await may(key);
    const o = await env.RAW.put(key, value, options);
    await was(key);
    return o;
  };
  return new Proxy(env.RAW, { get: (raw, name) => (name === "put" ? put : typeof raw[name] === "function" ? raw[name].bind(raw) : raw[name]) });
};
`;

// The Worker's models: a fake service.
const aiDoor = `
export default (env) => ({
  run: (model, inputs, options = {}) => {
    const headers = { "content-type": "application/json", ...options.extraHeaders };
    const body = JSON.stringify(inputs);
    return fetch(env.URL + "/" + model, { method: "POST", headers, body, signal: options.signal });
  },
});
`;

// What stands between the Worker and its bucket.
const puts = { fail: 0, hold: 0, held: null, waiting: [] };

// end is the power cut that --crash asked for.
function end() {
  console.error("the power is cut");
  process.kill(-process.pid, "SIGKILL");
}

async function may(request) {
  const what = new URL(request.url).pathname;
  const key = await request.text();
  if (what === "/end") end();
  if (crash.put && what === (crash.before ? "/put" : "/was") && new RegExp(crash.put).test(key) && --crash.n === 0) end();
  if (what !== "/put") return new Response("yes");
  if (puts.fail > 0) {
    puts.fail--;
    return new Response("the bucket is out of order (10001)", { status: 500 });
  }
  if (puts.hold > 0 && --puts.hold === 0) {
    const released = new Promise((release) => (puts.held = { key, release }));
    for (const tell of puts.waiting.splice(0)) tell();
    await released;
  }
  return new Response("yes");
}

function options() {
  const folder = path.resolve(flags.folder);
  const own = ([name, contents]) => ({ type: "ESModule", path: path.join(folder, name), contents });
  const workers = [{
    name: "tidemark", ...compatibility, modulesRoot: folder,
    modules: [own(["entry.mjs", entry]), ...modulesOf(folder)],
    durableObjects: {
      SESSION: { className: "Session", useSQLite: true },
      AGENT: { className: "Agent", useSQLite: true },
    },
    r2Buckets: { RAW: "bucket" }, serviceBindings: { MAY: may },
    wrappedBindings: { BUCKET: { scriptName: "bucket-door" }, ...(flags.ai && { AI: { scriptName: "ai-door", bindings: { URL: flags.ai } } }) },
    bindings,
    ...(flags.assets && { assets: { workerName: "tidemark", directory: path.resolve(flags.assets), routerConfig: { has_user_worker: true } } }),
  }, {
    name: "bucket-door", modules: [{ type: "ESModule", path: "bucket-door.mjs", contents: bucketDoor }],
    r2Buckets: { RAW: "bucket" }, serviceBindings: { MAY: may },
  }];
  if (flags.ai) workers.push({ name: "ai-door", modules: [{ type: "ESModule", path: "ai-door.mjs", contents: aiDoor }] });
  const kept = (name) => {
    const dir = path.join(flags.disk, name);
    mkdirSync(dir, { recursive: true });
    return dir;
  };
  return {
    workers, cf: false, host: "127.0.0.1", port: Number(flags.port),
    durableObjectsPersist: kept("objects"), r2Persist: kept("blobs"),
    handleRuntimeStdio: (out, err) => { for (const s of [out, err]) s.on("data", (d) => process.stderr.write(d)); },
  };
}

// plain makes a text fit for a header; decodeURIComponent takes it back.
const plain = (s) => s.replace(/[^\x20-\x7e]+|%/g, encodeURIComponent);

// r2 gives the bucket itself to the test.
async function r2(bucket, method, key, request) {
  if (key === null) {
    const keys = [];
    for (let page = {}; ; ) {
      page = await bucket.list({ prefix: request.prefix, cursor: page.cursor });
      keys.push(...page.objects.map((o) => o.key));
      if (!page.truncated) return [200, {}, JSON.stringify(keys)];
    }
  }
  if (method === "PUT") {
    await bucket.put(key, await request.body(), { customMetadata: request.metadata });
    return [200, {}, "stored"];
  }
  if (method === "DELETE") {
    await bucket.delete(key);
    return [200, {}, "deleted"];
  }
  const o = await bucket.get(key);
  if (!o) return [404, {}, "no such object"];
  const headers = { "content-type": o.httpMetadata?.contentType ?? "application/octet-stream", etag: o.httpEtag };
  for (const [name, value] of Object.entries(o.customMetadata ?? {})) headers[`x-meta-${name}`] = plain(value);
  headers["x-metadata"] = plain(JSON.stringify(o.customMetadata ?? {})); // with the letters of its names
  return [200, headers, Buffer.from(await o.arrayBuffer())];
}

// object calls the way in of an object.
async function object(mf, what, query) {
  const space = await mf.getDurableObjectNamespace(query.get("object") === "agent" ? "AGENT" : "SESSION");
  const stub = space.get(space.idFromName(query.get("name") ?? ""));
  try {
    const r = await stub.fetch(`http://${DOOR}/${what}?times=${query.get("times") ?? 1}`);
    return [r.status, {}, await r.text()];
  } catch (e) {
    return what === "evict" ? [200, {}, "ended"] : [500, {}, e.message]; // its end is the answer
  }
}

async function control(mf, bucket, req) {
  const url = new URL(req.url, "http://control");
  const [, what, ...rest] = url.pathname.split("/");
  const number = Number(url.searchParams.get("puts") ?? 1);
  switch (what) {
    case "r2":
      return r2(bucket, req.method, rest.length ? decodeURIComponent(rest.join("/")) : null, {
        prefix: url.searchParams.get("prefix") ?? "",
        metadata: Object.fromEntries(Object.entries(req.headers).filter(([k]) => k.startsWith("x-meta-")).map(([k, v]) => [k.slice(7), decodeURIComponent(v)])),
        body: async () => new Uint8Array(Buffer.concat(await req.toArray())), // Miniflare takes no Buffer
      });
    case "fail":
      puts.fail = number;
      return [200, {}, "set"];
    case "hold":
      puts.hold = number;
      return [200, {}, "set"];
    case "held":
      if (!puts.held) await new Promise((tell) => puts.waiting.push(tell));
      return [200, {}, JSON.stringify({ key: puts.held.key })];
    case "release":
      puts.held?.release();
      puts.held = null;
      return [200, {}, "released"];
    case "evict":
    case "alarm":
      return object(mf, what, url.searchParams);
  }
  return [404, {}, `no route ${url.pathname}`];
}

if (flags.stdin) {
  const nobody = () => process.exit(0);
  await new Promise((go) => process.stdin.once("data", go).once("end", nobody));
  process.stdin.off("end", nobody).destroy();
}
const mf = new Miniflare(options());
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.removeAllListeners(signal); // those of Miniflare report a failure
  process.once(signal, () => mf.dispose().finally(() => process.exit(0)));
}
const url = (await mf.ready).href.replace(/\/$/, "");
let bucket;
const server = createServer(async (req, res) => {
  try {
    bucket ??= await mf.getR2Bucket("RAW");
    const [status, headers, body] = await control(mf, bucket, req);
    res.writeHead(status, headers).end(body);
  } catch (e) {
    res.writeHead(500).end(String(e?.stack ?? e));
  }
});
server.keepAliveTimeout = 300_000; // closing an idle connection would race with its next request
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const healthy = await fetch(`${url}/healthz`);
if (!healthy.ok) throw new Error(`/healthz: ${healthy.status} ${await healthy.text()}`);
console.log(JSON.stringify({ url, control: `http://127.0.0.1:${server.address().port}`, pid: process.pid }));

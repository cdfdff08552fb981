// What the benchmarks of the Worker stand on: workerd without any proxy before it, the model server, an
// HTTP client that tells the first byte from the last, and figures of the process.

import { readFileSync, readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { compatibility } from "../workerd.mjs";

const { Miniflare } = createRequire(new URL("../../build/package.json", import.meta.url))("miniflare");
const here = new URL(".", import.meta.url);
const token = "bench";

// startModel gives {url, take}: take sets the shape of answers and gives what was served since the last call.
export async function startModel() {
  const thread = new Worker(new URL("model.mjs", here));
  const next = () => new Promise((resolve) => thread.once("message", resolve));
  const { url } = await next();
  return {
    url,
    take(shape) {
      const answer = next();
      thread.postMessage({ shape });
      return answer;
    },
    stop: () => thread.terminate(),
  };
}

const children = () => readdirSync("/proc/self/task").flatMap((t) => readFileSync(`/proc/self/task/${t}/children`, "utf8").split(" ").filter(Boolean));
const isWorkerd = (pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("workerd");

// startWorker runs one Worker in a workerd of its own. kind is ours (the built folder), counted (ours with
// a tally), or plain (the baseline). Objects stay until the process ends, not 10 seconds.
export async function startWorker(kind, { folder, model, disk, vars = {}, more = {} }) {
  const before = new Set(children());
  const begun = performance.now();
  const mf = new Miniflare({
    ...compatibility, ...script(kind, folder), cf: false, host: "127.0.0.1", port: 0,
    unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
    r2Buckets: { BUCKET: "bucket" },
    ...(disk && { durableObjectsPersist: path.join(disk, "objects"), r2Persist: path.join(disk, "blobs") }),
    bindings: { TIDEMARK_TOKEN: token, ANTHROPIC_API_KEY: "k", TIDEMARK_MODEL_BASEURL: model?.url ?? "", ...vars },
    handleRuntimeStdio: (out, err) => { out.resume(); err.resume(); },
    ...more,
  });
  await mf.ready;
  const url = await mf.unsafeGetDirectURL();
  const ready = performance.now() - begun;
  const pid = children().find((c) => !before.has(c) && isWorkerd(c));
  return { kind, pid, ready, url: String(url).replace(/\/$/, ""), ...client(url), stop: () => mf.dispose() };
}

function script(kind, folder) {
  if (kind === "plain") {
    const file = new URL("plain.mjs", here).pathname;
    return { modulesRoot: path.dirname(file), modules: [{ type: "ESModule", path: file }], durableObjects: { PLAIN: { className: "Plain", useSQLite: true, unsafePreventEviction: true } } };
  }
  const modules = readdirSync(folder).filter((f) => /\.(m?js|wasm)$/.test(f) && f !== "shim.mjs")
    .map((f) => ({ type: f.endsWith(".wasm") ? "CompiledWasm" : "ESModule", path: path.join(folder, f) }));
  modules.unshift({ type: "ESModule", path: path.join(folder, "shim.mjs") });
  if (kind !== "ours") {
    modules.unshift({ type: "ESModule", path: path.join(folder, `${kind}.mjs`), contents: readFileSync(new URL(`${kind}.mjs`, here), "utf8") });
  }
  const object = (className) => ({ className, useSQLite: true, unsafePreventEviction: true });
  return { modulesRoot: folder, modules, durableObjects: { SESSION: object("Session"), AGENT: object("Agent") } };
}

// client gives call(method, path, body, headers): {status, text, first, total} with times in milliseconds.
function client(base) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64, timeout: 3000 }); // workerd ends one that was idle for five seconds
  const call = (method, at, body, more = {}) => new Promise((resolve, reject) => {
    const begun = performance.now();
    const headers = { authorization: `Bearer ${token}`, ...more };
    const payload = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    if (payload) Object.assign(headers, { "content-type": "application/json", "content-length": payload.length });
    const req = request(new URL(at, base), { method, agent, headers, timeout: 120_000 }, (res) => {
      const parts = [];
      let first;
      res.on("data", (d) => { first ??= performance.now() - begun; parts.push(d); });
      res.on("error", reject);
      res.on("end", () => {
        const total = performance.now() - begun;
        const text = Buffer.concat(parts).toString();
        if (res.statusCode >= 300) return reject(new Error(`${method} ${at}: ${res.statusCode} ${text.slice(0, 300)}`));
        resolve({ text, first: first ?? total, total });
      });
    });
    req.on("timeout", () => req.destroy(new Error(`${method} ${at}: no answer`)));
    req.on("error", reject);
    req.end(payload);
  });
  const at = (key, what = "") => `/v1/sessions/${encodeURIComponent(`agent:main:web:dm:${key}`)}${what}`;
  return {
    at, call,
    json: async (...args) => JSON.parse((await call(...args)).text),
    // turn says something in a session and waits for the end of the answer's stream.
    async turn(key, text) {
      const r = await call("POST", at(key, "/messages"), { text }, { accept: "text/event-stream" });
      if (!r.text.includes("message_stop") && !/^event: done$/m.test(r.text)) throw new Error(`turn of ${key}: ${r.text.slice(-400)}`);
      return r;
    },
  };
}

// --- figures of a process ---

// cpu gives the milliseconds of processor time that a process has used.
export const cpu = (pid) => ticks(`/proc/${pid}/stat`);

// cpuOfMain gives those of its first thread, the one on which workerd runs Workers.
export const cpuOfMain = (pid) => ticks(`/proc/${pid}/task/${pid}/stat`);

function ticks(file) {
  const f = readFileSync(file, "utf8").split(") ")[1].split(" ");
  return (Number(f[11]) + Number(f[12])) * 10;
}

// memory gives what a process holds, in MB of 10^6 bytes: all of it, and the part that is code which
// V8 compiled (anonymous memory that may be run).
export function memory(pid) {
  let rss = 0, code = 0, runs = false;
  for (const line of readFileSync(`/proc/${pid}/smaps`, "utf8").split("\n")) {
    const range = /^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)$/.exec(line);
    if (range) runs = range[1][2] === "x" && !range[2].startsWith("/");
    const kb = /^Rss: +(\d+)/.exec(line);
    if (!kb) continue;
    rss += Number(kb[1]);
    if (runs) code += Number(kb[1]);
  }
  return { rss: (rss * 1024) / 1e6, code: (code * 1024) / 1e6 };
}

// --- numbers ---

export const sorted = (a) => [...a].sort((x, y) => x - y);
export const median = (a) => { const s = sorted(a); return (s[(s.length - 1) >> 1] + s[s.length >> 1]) / 2; };
export const percentile = (a, p) => sorted(a)[Math.min(a.length - 1, Math.floor(a.length * p))];

// num writes a figure with about three digits, spread one with its range.
export function num(x) {
  if (x === undefined || Number.isNaN(x)) return "–";
  const a = Math.abs(x);
  return a >= 100 ? Math.round(x).toLocaleString("en-US") : a >= 10 ? x.toFixed(1) : x.toFixed(2);
}
export const spread = (a) => `${num(median(a))} (${num(Math.min(...a))} to ${num(Math.max(...a))})`;

// table writes rows as Markdown; columns after the first are right-aligned.
export const table = (head, rows) => [
  `| ${head.join(" | ")} |`, `| ${head.map((_, i) => (i ? "---:" : "---")).join(" | ")} |`,
  ...rows.map((r) => `| ${r.join(" | ")} |`),
].join("\n");

// at most n of f(0) … f(count - 1) at once.
export async function pool(n, count, f) {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(n, count) }, async () => { while (next < count) await f(next++); }));
}

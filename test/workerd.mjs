// Starts a built Worker in workerd for tests: no network, a port of its own.

import { readdirSync } from "node:fs";
import Module, { createRequire } from "node:module";
import path from "node:path";
import "./connections.mjs";
import { PATIENCE } from "./patience.mjs";

export { PATIENCE, soon, wait } from "./patience.mjs";

export const { Miniflare } = miniflare();

// miniflare loads the pinned version with four places changed, of which the first two take most of the processor time
// of a start with a Worker of 22 MB. It fails on a version in which one of them is written otherwise: without the third,
// tests lose connections now and then, and without the fourth workerd hangs now and then.
function miniflare() {
  const require = createRequire(new URL("../build/package.json", import.meta.url));
  const file = require.resolve("miniflare"), compile = Module.prototype._compile;
  const changes = [
    // Looking for cycles in its options, it looks at each byte of the module.
    ["function _isCyclic(value, seen = /* @__PURE__ */ new Set()) {", "$& if (ArrayBuffer.isView(value)) return false;"],
    // Its encoder of the configuration copies all that there is to make room for each further piece: 75 times.
    ["new ArrayBuffer(srcBuffer.byteLength + minSize)", "new ArrayBuffer(2 * srcBuffer.byteLength + minSize)"],
    // Its own way to workerd uses a connection twice, see connections.mjs.
    ["bodyTimeout: 0", "$&, pipelining: 0"],
    // On two cores V8 has one thread for work in the background. While a compiler waits on it for a collection, and the event
    // loop of workerd for the sweeper, which has no thread then, neither ever goes on.
    ["structuredLogging: this.#structuredWorkerdLogs", '$&, v8Flags: ["--single-threaded-gc"]'],
  ];
  const change = (source, [from, to]) => {
    if (source.includes(from)) return source.replaceAll(from, to);
    throw new Error(`${file} has no \`${from}\`: this version of miniflare is written otherwise. Pin the last one in build/package.json ` +
      "and run npm install there, or find the place in the new one and mend `changes` in test/workerd.mjs");
  };
  Module.prototype._compile = function (source, name, ...more) {
    return compile.call(this, name === file ? changes.reduce(change, source) : source, name, ...more);
  };
  try {
    return require(file);
  } finally {
    Module.prototype._compile = compile;
  }
}

// The date fixes the behaviour of the runtime; enable_request_signal tells when a client has left.
export const compatibility = { compatibilityDate: "2026-03-01", compatibilityFlags: ["enable_request_signal"] };

// modulesOf lists the modules of the Worker built into folder, its entry first.
export function modulesOf(folder) {
  const modules = [{ type: "ESModule", path: path.join(folder, "shim.mjs") }];
  for (const file of readdirSync(folder)) {
    const full = path.join(folder, file);
    if (file.endsWith(".wasm")) modules.push({ type: "CompiledWasm", path: full });
    else if (/\.m?js$/.test(file) && file !== "shim.mjs") modules.push({ type: "ESModule", path: full });
  }
  return modules;
}

// start gives {url, get, json, dispose, mf} for the Worker built into folder, with variables and buckets.
// With disk, a folder, objects and blobs outlive it. With token, the Worker wants that one and get and json
// send it. more is for Miniflare.
export async function start(folder, bindings = {}, { r2Buckets = { BUCKET: "bucket" }, disk, token, more } = {}) {
  const mf = new Miniflare({
    ...compatibility, modulesRoot: folder, modules: modulesOf(folder), cf: false, host: "127.0.0.1", port: 0,
    durableObjects: {
      SESSION: { className: "Session", useSQLite: true },
      AGENT: { className: "Agent", useSQLite: true },
    },
    r2Buckets,
    ...(disk && { durableObjectsPersist: path.join(disk, "objects"), r2Persist: path.join(disk, "blobs") }),
    bindings: { TIDEMARK_DEBUG: "1", ...(token && { TIDEMARK_TOKEN: token }), ...bindings },
    handleRuntimeStdio: (out, err) => { out.resume(); err.resume(); },
    ...more,
  });
  const base = await mf.ready;
  const url = (p) => new URL(p, base).href;
  const own = token && { authorization: `Bearer ${token}` };
  const get = (p, init) => fetch(url(p), { signal: AbortSignal.timeout(PATIENCE), ...init, headers: { ...own, ...init?.headers } });
  const json = async (p, init) => {
    const r = await get(p, init);
    const text = await r.text();
    if (!r.ok) throw new Error(`${p}: ${r.status} ${text}`);
    return text && JSON.parse(text);
  };
  return { url, get, json, mf, dispose: () => mf.dispose() };
}

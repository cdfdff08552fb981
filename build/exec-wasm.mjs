// go test -exec for GOOS=js GOARCH=wasm: runs a test binary on the bridge of the Worker, with Go
// timers that never fire, as there. A test that waits for one fails at once.
//
// Usage, through exec-wasm.sh, which finds a Node that has SQLite:
//   GOOS=js GOARCH=wasm go test -exec "$PWD/build/exec-wasm.sh" ./...
//
// globalThis.tidemarkOpen(kind, name, binding) attaches an object; host/hosttest uses it.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

// The longest run of one package's tests: their own timeout is a Go timer.
const LIMIT_MS = 10 * 60 * 1000;

const require = createRequire(import.meta.url);
Object.assign(globalThis, { fs, path, require });
const root = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
require(path.join(root, "lib", "wasm", "wasm_exec.js"));
const { GoHost, HostObject } = await import("./host.mjs");
const { envOf, platformOf } = await import("./node.mjs");

const [binary, ...args] = process.argv.slice(2);
if (!binary) {
  console.error("usage: exec-wasm.mjs [wasm binary] [arguments]");
  process.exit(2);
}

// Only what tests need: arguments and environment share 8 KB of a module's memory.
const KEEP = ["HOME", "PATH", "PWD", "TZ", "GOROOT", "GOCACHE", "GODEBUG", "GOCOVERDIR"];
const kept = Object.entries(process.env).filter(([k]) => KEEP.includes(k) || k.startsWith("TIDEMARK_"));

setTimeout(() => {
  console.error(`no end after ${LIMIT_MS / 60_000} minutes`);
  process.exit(2);
}, LIMIT_MS).unref();

let running;
const host = new GoHost({
  module: new WebAssembly.Module(fs.readFileSync(binary)),
  env: envOf(Object.fromEntries(kept)),
  strict: false, // a test's goroutines begin outside of any object's event
  configure(go, host) {
    running = go;
    let opened = 0; // a name attached again would end the object that had it
    globalThis.tidemarkOpen = (kind, name, binding) =>
      new HostObject(host, { kind, name: `${name} ${++opened}`, binding, platform: platformOf() });
    go.argv = [path.basename(binary), ...args, "-test.timeout=0"];
    go.env = { TMPDIR: os.tmpdir(), ...Object.fromEntries(kept) };
    go.exit = (code) => process.exit(code);
  },
});

process.on("exit", (code) => {
  if (code !== 0 || host.dead || running.exited) return;
  process.exitCode = 2;
  if (host.timers > 0) {
    console.error(`nothing can wake this test up: it asked for ${host.timers} Go timers, and none fires in the Worker. Wait with tidemark.Runtime; -v shows which test it is.`);
    return;
  }
  // Let Go say what its goroutines wait for.
  running._pendingEvent = { id: 0 };
  running._resume();
});

// Tests of how an instance starts, with a stand-in for Go. Run by: node --test build/

import assert from "node:assert/strict";
import { test } from "node:test";
import { pack } from "./codec.mjs";
import { GoHost, HostObject, tally } from "./host.mjs";

// fakeGo stands in for wasm_exec.js; run does what Go does at its start.
function fakeGo(run) {
  globalThis.Go = class {
    importObject = { gojs: {} };
    mem = new DataView(new ArrayBuffer(8));
    _values = [];
    _resume() {}
    async run() { run(this, globalThis.context.binding); return new Promise(() => {}); }
  };
}

// A module that exports a memory and nothing else.
const module = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 5, 3, 1, 0, 1, 7, 7, 1, 3, 0x6d, 0x65, 0x6d, 2, 0]));
const works = (go, binding) => Object.assign(binding, { open() {}, call() {}, kill() {} });

test("an instance that does not start says why, and the next one may", () => {
  const { failed, boots } = tally;
  for (const [bad, why] of [
    [(go) => go.exit(2), /^the Go module did not start: go exited with code 2$/],
    [() => {}, /^the Go module did not start: it has no functions/],
    [() => { throw new Error("no memory"); }, /^the Go module did not start: /],
  ]) {
    fakeGo(bad);
    assert.throws(() => new GoHost({ module, env: {} }), { name: "Boot", message: why });
    assert.equal(globalThis.context, undefined);
  }
  fakeGo(works);
  assert.equal(new GoHost({ module, env: {} }).dead, false);
  assert.deepEqual([tally.failed - failed, tally.boots - boots], [3, 1]);
});

test("an object that left holds nothing of its instance", async () => {
  fakeGo(works);
  const host = new GoHost({ module, env: {} });
  const o = new HostObject(host, { kind: "Session", name: "a", platform: {} });
  const call = o.call("alarm", null, {});
  host.kill(o.generation, Object.assign(new Error("gone"), { name: "Dead" }));
  await assert.rejects(call, { name: "Dead" });
  assert.deepEqual([o.dead, o.host === host, o.go, host.objects.size], [true, false, null, 0]);
  await assert.rejects(o.call("alarm", null, {}), { name: "Dead" });
  assert.throws(() => o.sleep(1, 1), { name: "Dead" });
});

test("a full storage is unavailable, a mistake in a statement is not", () => {
  fakeGo(works);
  const host = new GoHost({ module, env: {} });
  for (const [message, name] of [
    ["database or disk is full: SQLITE_FULL", "Unavailable"], ["disk I/O error: SQLITE_IOERR", "Unavailable"],
    ["UNIQUE constraint failed: a.b: SQLITE_CONSTRAINT", "Conflict"], ["no such table: x: SQLITE_ERROR", "Error"],
  ]) {
    const sql = { transaction(f) { f(); }, run() { throw new Error(message); } };
    const o = new HostObject(host, { kind: "Session", name: "a", platform: { sql } });
    host.enter(o, () => assert.throws(() => o.tx(pack([["DELETE FROM x", 0]])), { name, message }));
  }
});

test("an object of the same name takes the place of the one before", () => {
  fakeGo(works);
  const host = new GoHost({ module, env: {} });
  const [a, b] = [1, 2].map(() => new HostObject(host, { kind: "Session", name: "a", platform: {} }));
  assert.deepEqual([a.dead, b.dead, [...host.objects.keys()]], [true, false, [b.generation]]);
  host.kill(a.generation);
  assert.equal(b.dead, false);
});

test("what is in flight ends though the runtime wakes nobody", async () => {
  fakeGo(works);
  const host = new GoHost({ module, env: {} });
  const { then } = Promise.prototype;
  Promise.prototype.then = () => new Promise(() => {}); // the one of die is never answered
  const o = new HostObject(host, { kind: "Session", name: "a", platform: {} });
  Promise.prototype.then = then;
  const call = o.call("alarm", null, {});
  host.fatal(new Error("ended"));
  await assert.rejects(call, { message: "ended" });
  assert.equal(o.idle, true);
});

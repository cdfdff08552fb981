// The connections of an object: never more than there may be, never a wait that nothing ends.
// Run by: node --test build/slots.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_LONG, MAX_OPEN, Slots } from "./slots.mjs";

const turn = () => new Promise((r) => setImmediate(r));

// begun tells which of some slots may be used.
async function begun(slots) {
  const got = [];
  slots.forEach((s, i) => s.ready.then(() => got.push(i)));
  await turn();
  return got.sort((a, b) => a - b);
}

test("short ones: six at a time, in order", async () => {
  const s = new Slots();
  const all = Array.from({ length: 9 }, () => s.take(false));
  assert.deepEqual(await begun(all), [0, 1, 2, 3, 4, 5]);
  all[3].release();
  all[3].release(); // once is enough
  assert.deepEqual(await begun(all), [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual([s.open, s.queued, s.most], [MAX_OPEN, 2, MAX_OPEN]);
});

test("long ones leave room for short ones", async () => {
  const s = new Slots();
  const long = Array.from({ length: 7 }, () => s.take(true));
  const short = [s.take(false), s.take(false), s.take(false)];
  assert.deepEqual(await begun(long), [0, 1, 2, 3]);
  assert.deepEqual(await begun(short), [0, 1], "a short one waits behind long ones that cannot begin");
  short[0].release();
  assert.deepEqual(await begun(short), [0, 1, 2]);
  long[2].release();
  assert.deepEqual(await begun(long), [0, 1, 2, 3, 4]);
  assert.equal(s.open, MAX_OPEN);
});

test("who leaves the queue is not begun, and who has begun stays", async () => {
  const s = new Slots();
  const all = Array.from({ length: MAX_OPEN + 2 }, () => s.take(false));
  all[0].leave(); // it is open, and is until it is released
  all[MAX_OPEN].leave();
  assert.equal(s.open, MAX_OPEN);
  all[1].release();
  assert.deepEqual(await begun(all), [0, 1, 2, 3, 4, 5, MAX_OPEN + 1]);
  for (const one of all) one.release();
  assert.deepEqual([s.open, s.queued], [0, 0]);
});

test("work that holds a long one and needs short ones always ends", async () => {
  const s = new Slots();
  let most = 0, long = 0, ended = 0;
  const within = async (kind, f) => {
    const slot = s.take(kind);
    await slot.ready;
    if (kind) long++;
    most = Math.max(most, s.open);
    assert.ok(s.open <= MAX_OPEN && long <= MAX_LONG);
    try { await f(); } finally { if (kind) long--; slot.release(); }
  };
  await Promise.all(Array.from({ length: 40 }, (_, i) => within(i % 3 !== 0, async () => {
    await turn();
    if (i % 3 !== 0) for (let k = 0; k < 3; k++) await within(false, turn);
    ended++;
  })));
  assert.deepEqual([ended, s.open, s.queued, most], [40, 0, 0, MAX_OPEN]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue } from "./queue.mjs";

test("as many are admitted as there is room for, in the order in which they came", () => {
  let busy = 0;
  const q = new Queue(3, () => busy);
  const tickets = Array.from({ length: 5 }, () => q.ticket(0));
  const ask = (now) => tickets.map((t) => t && q.admit(t, now)).map((ok, i) => { if (ok) tickets[i] = 0; return Boolean(ok); });
  assert.deepEqual(ask(0), [true, true, true, false, false]);
  busy = 3;
  assert.deepEqual(ask(200), [false, false, false, false, false]);
  busy = 2;
  const late = q.ticket(300);
  assert.equal(q.admit(late, 300), false, "those before it have waited longer");
  assert.deepEqual(ask(300), [false, false, false, true, false]);
});

test("who left makes room for who comes behind", () => {
  const q = new Queue(1, () => 0);
  const gone = q.ticket(0), given = q.ticket(0), next = q.ticket(0);
  q.leave(given);
  assert.equal(q.admit(next, 100), false, "the first has its turn");
  assert.equal(q.admit(next, 6000), true, "nobody asked for the first ticket any more");
  assert.equal(q.admit(gone, 6000), false);
});

test("an instance that was held up mixes nobody up", () => {
  let busy = 1;
  const q = new Queue(1, () => busy);
  const [first, second, third] = [q.ticket(0), q.ticket(0), q.ticket(0)];
  assert.equal(q.admit(third, 8000), false, "nobody asked for seconds");
  assert.equal(q.admit(first, 8001), false);
  busy = 0;
  assert.equal(q.admit(third, 8200), false, "the first came before it");
  assert.equal(q.admit(first, 8201), true);
  assert.ok(q.ahead(first) >= 0);
  assert.equal(q.admit(second, 8202), false, "it waits still");
});

test("a ticket knows at most how many wait before it", () => {
  const q = new Queue(1, () => 0);
  const [first, left, third] = [q.ticket(0), q.ticket(0), q.ticket(0)];
  q.leave(left);
  assert.deepEqual([q.ahead(first), q.ahead(third)], [0, 2]);
  assert.equal(q.admit(first, 0), true);
  assert.deepEqual([q.ahead(third), q.ahead(third + 1)], [0, 1]);
});

// Calls that wait for leave: what is shown of them, and that tabs agree with the server on which they are.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { ApiError } from "../../web/src/api.js";
import { approvalsOf, layOut, untilWords, visible } from "../../web/src/approvals.js";
import { Conversation } from "../../web/src/chat.js";

test("what cannot be decided is not shown", () => {
  const good = { code: "a1", tool: "send", input: "{}", session: "s", expires: "2026-11-25T12:00:00Z" };
  assert.deepEqual(approvalsOf([good, good, null, {}, { code: "", tool: "x" }, { code: "b", tool: 7 }]), [good]);
  assert.deepEqual(approvalsOf([{ code: "b", tool: "x", input: { to: "ann" } }]), [{ code: "b", tool: "x", input: '{"to":"ann"}', session: "", expires: "" }]);
  for (const none of [undefined, null, {}, "x"]) assert.deepEqual(approvalsOf(none), []);
});

describe("arguments are laid out and not changed", () => {
  for (const [name, json, want] of [
    ["an object", '{"to":"ann","n":[1,2],"none":{},"empty":[ ]}', '{\n  "to": "ann",\n  "n": [\n    1,\n    2\n  ],\n  "none": {},\n  "empty": []\n}'],
    ["numbers stay as they are", '{"n":12345678901234567890,"f":1.0e400}', '{\n  "n": 12345678901234567890,\n  "f": 1.0e400\n}'],
    ["a key twice is seen twice", '{"to":"ann","to":"eve"}', '{\n  "to": "ann",\n  "to": "eve"\n}'],
    ["marks within a text", '{"a":"{\\"b\\":[1,2]}, \\\\"}', '{\n  "a": "{\\"b\\":[1,2]}, \\\\"\n}'],
    ["a word", '"rm -rf"', '"rm -rf"'],
    ["no JSON", '{"to":"ann', '{"to":"ann'],
    ["tags are text", '"<img src=x onerror=alert(1)>"', '"<img src=x onerror=alert(1)>"'],
    ["what is hidden shows", '"safe\u202egpj.exe\u200b\u{e0041}"', '"safe\\u{202e}gpj.exe\\u{200b}\\u{e0041}"'],
  ]) test(name, () => assert.equal(layOut(json), want));
  test("a long one is cut, and says so", () => {
    const text = layOut(`"${"x".repeat(30_000)}"`);
    assert.ok(text.length < 20_100 && text.endsWith("… 10002 characters more are not shown here"), text.slice(-60));
  });
  test("nothing but blanks is added, on random values", () => {
    const chance = (n) => Math.floor(Math.random() * n);
    const value = (deep) => [() => chance(1e6) / 7, () => ["a b", 'q"\\', "{[,:]}", ""][chance(4)], () => null, () => true,
      () => Array.from({ length: chance(4) }, () => value(deep - 1)), () => Object.fromEntries(Array.from({ length: chance(4) }, (_, i) => [`k${i}`, value(deep - 1)]))][chance(deep ? 6 : 4)]();
    for (let i = 0; i < 300; i++) {
      const v = value(4);
      assert.deepEqual(JSON.parse(layOut(JSON.stringify(v))), v);
    }
  });
});

test("names show what is hidden in them", () => assert.equal(visible("se\u200bnd\u001b[0m"), "se\\u{200b}nd\\u{1b}[0m"));

test("until when", () => {
  const now = new Date(2026, 10, 25, 12, 0).getTime();
  const at = (minutes) => untilWords(new Date(now + minutes * 60_000).toISOString(), now, "en-GB");
  assert.equal(at(5), "until 12:05, 5 minutes left");
  assert.equal(at(0.5), "until 12:00, a minute at most");
  assert.equal(at(300), "until 17:00, 5 hours left");
  assert.equal(at(24 * 60), "until 26 Nov, 12:00, 24 hours left");
  assert.equal(at(-1), "until 11:59, which is over");
  for (const none of ["", undefined, "soon"]) assert.equal(untilWords(none, now), "");
});

const KEY = "agent:main:local:dm:asks";
const call = (code, minutes = 5) => ({ code, tool: `tool_${code}`, input: "{}", session: KEY, expires: new Date(Date.now() + minutes * 60_000).toISOString() });
const turn = () => new Promise((done) => setImmediate(done));

// backend keeps the list as the server does, tells every tab of a change, and may be slow to tell the list.
function backend() {
  const self = { list: [], tabs: new Set(), posts: [], gets: 0, failure: null, hold: null };
  self.tell = () => { for (const f of self.tabs) f({ data: { type: "approval", run: "r1", approvals: self.list } }); };
  self.api = {
    async get(path) {
      if (path.endsWith("/log")) return { entries: [] };
      if (path.endsWith("/queue")) return { waiting: [] };
      if (!path.endsWith("/approvals")) return { key: KEY };
      self.gets++;
      if (self.failure) throw self.failure;
      const approvals = [...self.list];
      await self.hold;
      return { approvals };
    },
    async post(path, body) {
      assert.ok(path.endsWith("/approvals"));
      self.posts.push(body);
      if (self.failure) throw self.failure;
      const there = self.list.some((a) => a.code === body.code);
      if (!there) throw new ApiError("it was decided already", { status: 409, type: "conflict" });
      self.list = self.list.filter((a) => a.code !== body.code);
      self.tell();
      return {};
    },
    async stream(_, { onOpen, onEvent, signal }) {
      self.tabs.add(onEvent);
      onOpen();
      onEvent({ data: { type: "hello", run: "r1" } });
      await new Promise((_, no) => signal.addEventListener("abort", () => no(new Error("closed"))));
    },
  };
  return self;
}

describe("calls that wait", () => {
  let open = [];
  afterEach(() => { for (const c of open.splice(0)) c.close(); });
  const tab = async (s, key = KEY) => {
    const c = new Conversation(s.api, key);
    open.push(c);
    c.open();
    await turn();
    return c;
  };
  const codes = (c) => c.approvals.all.peek().map((a) => a.code).join(" ");

  test("are there after a reload, and go in every tab with the decision", async () => {
    const s = backend();
    s.list = [call("a"), call("b")];
    const one = await tab(s), two = await tab(s);
    assert.deepEqual([codes(one), codes(two)], ["a b", "a b"]);
    await one.approvals.decide("a", true);
    assert.deepEqual(s.posts, [{ code: "a", allow: true }]);
    assert.deepEqual([codes(one), codes(two)], ["b", "b"]);
    s.list = [];
    s.tell(); // its time is over
    assert.deepEqual([codes(one), codes(two)], ["", ""]);
    assert.equal(one.approvals.told.peek(), "");
  });

  test("an empty list may be left out of the notice", async () => {
    const s = backend();
    s.list = [call("a")];
    const c = await tab(s);
    c.see({ type: "approval", run: "r1" });
    assert.equal(codes(c), "");
  });

  test("a decision that came too late says so, and is not offered again", async () => {
    const s = backend();
    s.list = [call("a")];
    const c = await tab(s);
    s.list = [call("b")]; // and no notice of it came
    await c.approvals.decide("a", false);
    assert.equal(codes(c), "b");
    assert.equal(c.approvals.told.peek(), "it was decided already");
    s.tell();
    assert.equal(c.approvals.told.peek(), "");
  });

  test("a decision that did not arrive can be made again", async () => {
    const s = backend();
    s.list = [call("a")];
    const c = await tab(s);
    s.failure = new ApiError("The server cannot be reached.");
    await c.approvals.decide("a", true);
    assert.deepEqual([codes(c), c.approvals.states.peek().a], ["a", { error: "The server cannot be reached." }]);
    s.failure = null;
    await c.approvals.decide("a", true);
    assert.equal(codes(c), "");
    assert.deepEqual(c.approvals.states.peek(), {});
  });

  test("is decided once, however often one presses", async () => {
    const s = backend();
    s.list = [call("a")];
    const c = await tab(s);
    await Promise.all([c.approvals.decide("a", true), c.approvals.decide("a", false)]);
    assert.deepEqual(s.posts, [{ code: "a", allow: true }]);
  });

  test("a list that was read before a notice does not count", async () => {
    const s = backend();
    s.list = [call("a")];
    let tellNow;
    s.hold = new Promise((done) => { tellNow = done; });
    const c = await tab(s);
    s.list = [];
    s.tell();
    tellNow();
    await turn();
    assert.equal(codes(c), "");
  });

  test("stay when the list cannot be read for a moment, and are none on an older server", async () => {
    const s = backend();
    s.list = [call("a")];
    const c = await tab(s);
    s.failure = new ApiError("no", { status: 503 });
    await c.approvals.read();
    assert.equal(codes(c), "a");
    s.failure = new ApiError("no route", { status: 404, type: "not_found" });
    await c.approvals.read();
    assert.equal(codes(c), "");
  });

  test("are read again when the time of one is over and no notice came", async (t) => {
    const s = backend();
    s.list = [call("a", 1)];
    t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.now() });
    const c = await tab(s), before = s.gets;
    s.list = [];
    t.mock.timers.tick(61_000);
    assert.equal(s.gets, before);
    t.mock.timers.tick(2_000);
    await turn();
    assert.deepEqual([s.gets, codes(c)], [before + 1, ""]);
  });

  test("a client's own conversation is not asked", async () => {
    const s = backend();
    await tab(s, "agent:main:proxy:dm:abc");
    assert.equal(s.gets, 0);
  });

  test("of very many only some are shown at once", async () => {
    const s = backend();
    s.list = Array.from({ length: 50 }, (_, i) => call(`c${i}`));
    const c = await tab(s);
    assert.deepEqual([c.approvals.shown.length, c.approvals.all.peek().length], [20, 50]);
  });
});

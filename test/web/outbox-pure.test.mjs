// What was said and is not with the server yet, in several tabs of one conversation. Tabs share a storage and
// are told of its changes, as in a browser; the server is a fake that can be away, and takes an id once.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ApiError } from "../../web/src/api.js";
import { Conversation } from "../../web/src/chat.js";

const KEY = "agent:main:local:dm:tabs";
const until = async (met) => { while (!met()) await new Promise((r) => setTimeout(r, 10)); };

// One process is all the tabs: each hears of every change, of its own too, which must do no harm.
const held = new Map(), ears = new Set();
const tell = (key, newValue) => queueMicrotask(() => { for (const f of ears) f({ key, newValue }); });
globalThis.localStorage = {
  get length() { return held.size; },
  key: (i) => [...held.keys()][i] ?? null,
  getItem: (k) => held.get(k) ?? null,
  setItem(k, v) { held.set(k, String(v)); tell(k, String(v)); },
  removeItem(k) { if (held.delete(k)) tell(k, null); },
};
globalThis.addEventListener = (kind, f) => { if (kind === "storage") ears.add(f); };
globalThis.removeEventListener = (kind, f) => { ears.delete(f); };

function server() {
  const self = { failure: null, log: [], posts: 0 };
  const up = () => { if (self.failure) throw self.failure; };
  self.api = {
    async get(path) {
      up();
      if (path.endsWith("/log")) return { entries: self.log.map((m, i) => ({ id: `e${i}`, seq: i, kind: "message", origin: { input: m.id }, message: { role: "user", content: m.content } })).reverse() };
      return path.endsWith("/queue") ? { waiting: [] } : { key: KEY };
    },
    async post(path, body) {
      self.posts++;
      up();
      if (!self.log.some((m) => m.id === body.id)) self.log.push(body);
      return { id: body.id, state: "done" };
    },
    async stream(path, { onOpen, onEvent, signal }) {
      up();
      onOpen();
      onEvent({ data: { type: "hello" } });
      await new Promise((_, no) => signal.addEventListener("abort", () => no(new Error("closed"))));
    },
  };
  return self;
}

const words = (list) => list.map((m) => m.content);
const away = new ApiError("The server cannot be reached.");

describe("the outbox", { timeout: 120_000 }, () => {
  let s, open;
  const tab = () => {
    const c = new Conversation(s.api, KEY);
    open.push(c);
    c.open();
    return c;
  };
  const empty = () => open.every((c) => !c.outbox.peek().length) && ![...held.keys()].some((k) => k.includes("outbox"));
  beforeEach(() => {
    held.clear();
    s = server();
    s.failure = away;
    open = [];
  });
  afterEach(async () => {
    for (const c of open) { // so that no loop of a test outlives it
      for (const m of c.outbox.peek()) c.drop(m.id);
      c.close();
    }
  });

  test("what two tabs say is kept of both", async () => {
    const [a, b] = [tab(), tab()];
    a.say("of the one");
    b.say("of the other");
    for (const c of [a, b]) await until(() => c.outbox.peek()[0]?.state === "trying");
    const again = tab(); // as after a reload
    assert.deepEqual(words(again.outbox.peek()), ["of the one", "of the other"]);
    s.failure = null;
    await until(empty);
    assert.deepEqual(words(s.log).sort(), ["of the one", "of the other"]);
  });

  test("what is taken back in one tab is sent by none", async () => {
    const a = tab();
    a.say("the password");
    const b = tab();
    assert.deepEqual(words(b.outbox.peek()), ["the password"]);
    await until(() => a.outbox.peek()[0].state === "trying" && b.outbox.peek()[0].state === "trying");
    a.drop(a.outbox.peek()[0].id);
    await until(() => !b.outbox.peek().length);
    s.failure = null;
    b.say("behind it");
    await until(empty);
    assert.deepEqual(words(s.log), ["behind it"]);
  });

  test("what is taken back is not sent by a conversation that was left", async () => {
    const left = tab();
    left.say("the password");
    await until(() => left.outbox.peek()[0].state === "trying");
    left.close();
    const now = tab();
    now.drop(now.outbox.peek()[0].id);
    const posts = s.posts;
    s.failure = null;
    await until(() => !left.outbox.peek().length);
    assert.deepEqual([s.log, s.posts], [[], posts]);
  });

  test("a conversation that was left delivers what was said", async () => {
    const left = tab();
    left.say("good night");
    left.close();
    s.failure = null;
    await until(empty);
    assert.deepEqual(words(s.log), ["good night"]);
  });

  test("a refusal stays over a reload and is sent again on demand alone", async () => {
    s.failure = new ApiError("too large", { status: 413, type: "too_large" });
    const a = tab();
    a.say("a long story");
    await until(() => a.outbox.peek()[0].state === "failed");
    const b = tab(), posts = s.posts;
    assert.deepEqual(b.outbox.peek().map((m) => [m.state, m.error]), [["failed", "too large"]]);
    assert.equal(s.posts, posts);
    s.failure = null;
    b.retry(b.outbox.peek()[0].id);
    await until(empty);
    assert.deepEqual(words(s.log), ["a long story"]);
  });

  for (const status of [500, 502, 503, 504, 521]) {
    test(`a proxy that answers ${status} for a moment loses nothing`, async () => {
      s.failure = null;
      const c = tab();
      await until(() => c.loaded.peek());
      s.failure = new ApiError(`The server answered ${status}.`, { status, type: "gateway" });
      c.say("hello");
      c.see({ type: "done" }); // the turn ended: its answer stands in the log alone
      await until(() => c.outbox.peek()[0].state === "trying");
      s.log.push({ id: "of the model", content: "the answer" });
      s.failure = null;
      await until(() => c.log.peek().entries.some((e) => e.message.content === "the answer"));
      await until(empty);
      assert.deepEqual(words(s.log), ["the answer", "hello"]);
    });
  }
});

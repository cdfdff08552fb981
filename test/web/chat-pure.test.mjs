// A conversation that is opened while an answer comes, over a server that is slow to tell its log.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Conversation } from "../../web/src/chat.js";

const KEY = "agent:main:local:dm:early";
const message = (id, seq, role, content) => ({ id, seq, kind: "message", origin: {}, message: { role, content } });
const QUESTION = message("e1", 1, "user", "tell me"), ANSWER = message("e2", 2, "assistant", "the answer");

// slow is a server whose n-th reading of the log waits until reads[n] is called with what it then tells.
function slow() {
  const self = { reads: [] };
  self.api = {
    get(path) {
      if (path.endsWith("/log")) return new Promise((tell) => self.reads.push((entries) => tell({ entries: [...entries].reverse() })));
      return Promise.resolve(path.endsWith("/queue") ? { waiting: [] } : { key: KEY });
    },
    async stream(_, { onOpen, onEvent, signal }) {
      self.say = (data) => onEvent({ data });
      onOpen();
      await new Promise((_, no) => signal.addEventListener("abort", () => no(new Error("closed"))));
    },
  };
  return self;
}

let c;
afterEach(() => c.close());

const turn = () => new Promise((done) => setImmediate(done));

for (const [name, later] of [["the later look is told first", [1, 0]], ["the first look is told first", [0, 1]]]) {
  test(`no answer stands without its question: ${name}`, async () => {
    const s = slow();
    c = new Conversation(s.api, KEY);
    c.open();
    const seen = [];
    const stop = c.log.subscribe(({ entries }) => seen.push(entries.map((e) => e.id).join(" ")));
    await turn();
    s.say({ type: "hello", run: "r1", text: "the ans" });
    assert.equal(c.answer.peek().text.peek(), "the ans");
    s.say({ type: "reply", run: "r1", entry: ANSWER.id, message: ANSWER.message });
    s.say({ type: "done", run: "r1" });
    assert.ok(c.answer.peek(), "it is in work until the log was read");
    assert.equal(s.reads.length, 2);
    const told = [[QUESTION], [QUESTION, ANSWER]]; // the first look was before the answer
    for (const n of later) {
      s.reads[n](told[n]);
      await turn();
    }
    stop();
    assert.equal(c.answer.peek(), null);
    assert.deepEqual([...new Set(seen)], ["", "e1 e2"]);
  });
}

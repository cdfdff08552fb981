// Delegation: a conversation of its own uses tools, and the one that delegated reads its answer and finds its log.

import assert from "node:assert/strict";
import { test } from "node:test";
import { words } from "../clients/model.mjs";

export default function (w) {
  test("a child uses a tool of a server, the parent has its answer, and recall reads its log", async () => {
    const child = w.fresh("child"), coot = w.fresh("coot");
    w.model.play(child, { text: `I ask about ${coot}.`, calls: [["every__get-sum", { a: 20, b: 3 }]] }, (r) => ({ text: `There are ${words(r[0]).match(/is (\d+)/)[1]} of them.` }));
    const { word, answer, results } = await w.turn("parent",
      { calls: [["delegate", { task: `Count for ${child}.` }]] },
      (r) => ({ calls: [["recall", { entry: words(r[0]).match(/Recall with entry (\S+) reads/)[1] }]] }),
      (r) => ({ text: words(r[0]) }));
    const told = words(results[0][0]);
    assert.match(told, /^\[Answer of agent:main:delegate:dm:\S+, which spent \d+ tokens\./);
    assert.ok(told.endsWith("\n\nThere are 23 of them."), told);
    assert.match(answer.text, /There are 23 of them\./);
    const key = told.match(/Answer of (agent:main:delegate:dm:[^,]+),/)[1];
    const log = await w.api(`/v1/sessions/${encodeURIComponent(key)}/view?messages=1`);
    assert.deepEqual(log.map((m) => m.role), ["user", "assistant", "user", "assistant"]);
    assert.ok(JSON.stringify(log).includes("The sum of 20 and 3 is 23."));
    assert.ok(!w.model.of(child)[0].tools.some((t) => t.name === "delegate"), "one below the other is enough");
    const find = w.fresh("find");
    await w.until("find", async () => {
      const again = w.fresh(find);
      w.model.play(again, { calls: [["recall", { query: `who asked about ${coot}`, scope: "agent" }]] }, { text: "found" });
      await w.say(word, `Look: ${again}.`);
      return JSON.stringify(w.results(again)[0]).includes(`I ask about ${coot}`); // the agent hears of its words behind a turn
    });
  });

  test("a child whose tool wants the owner's leave is asked about in the main conversation", async () => {
    const child = w.fresh("child");
    w.model.play(child, { calls: [["own__note", { text: child }]] }, (r) => ({ text: `it said: ${words(r[0])}` }));
    const word = w.fresh("parent");
    w.model.play(word, { calls: [["delegate", { task: `Note for ${child}.` }]] }, (r) => ({ text: words(r[0]) }));
    const answer = w.say(word, `Please ${word}.`);
    const q = await w.until("question", async () => (await w.api("/v1/agents/main/approvals")).approvals.find((q) => q.input.includes(child)));
    assert.match(q.session, /^agent:main:delegate:dm:/);
    assert.equal(w.own.done.filter((t) => t === child).length, 0);
    const main = await w.say("agent:main:main", `yes ${q.code}`);
    assert.match(main.text, /own__note/, "the owner answers where they are");
    assert.match((await answer).text, /it said: noted$/);
    assert.equal(w.own.done.filter((t) => t === child).length, 1);
  });
}

// Schedules: a run comes by itself, in a session of its own, and uses tools there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { words } from "../clients/model.mjs";

export default function (w) {
  const ended = (id, n) => w.until(`${n} runs of ${id}`, async () => {
    const { runs } = await w.api(`/v1/agents/main/schedules/${id}/runs`);
    return runs.length === n && !["begun", "running"].includes(runs[0].state) && runs;
  });

  test("at its time, and by hand from a shell, with its outcome in the list of runs", async () => {
    const word = w.fresh("plan");
    await w.say(w.fresh("hello"), "Hello."); // on a Worker an agent is there when somebody has talked to it
    w.model.play(word, { calls: [["every__get-sum", { a: 4, b: 5 }]] }, (r) => ({ text: `It is ${words(r[0]).match(/is (\d+)/)[1]}.` }));
    const at = new Date(Date.now() + 2000).toISOString().replace(/\.\d+/, "");
    const add = await w.cli("schedule", "add", "--at", at, `Count ${word}.`, "--tools", "every__*", "--json");
    assert.equal(add.code, 0, add.text);
    const { id, state } = JSON.parse(add.stdout);
    assert.equal(state, "on");
    const [run] = await ended(id, 1);
    assert.deepEqual([run.state, run.text], ["ok", "It is 9."], JSON.stringify(run));
    assert.match(run.session, /^agent:main:schedule/, run.session);
    assert.ok(run.usage.input_tokens > 0);
    assert.deepEqual(w.model.of(word)[0].tools.map((t) => t.name).filter((n) => !n.startsWith("every__")), [], "a run has the tools that it was given");
    assert.equal(w.model.of(word).length, 2, "it ran once");
    const log = await w.api(`/v1/sessions/${encodeURIComponent(run.session)}/view?messages=1`);
    assert.ok(JSON.stringify(log[0]).includes(word));

    const hand = await w.cli("schedule", "run", id);
    assert.equal(hand.code, 0, hand.text);
    assert.match(hand.stdout, /It is 9\./);
    const runs = await w.cli("schedule", "runs", id);
    assert.deepEqual([runs.code, runs.stdout.match(/\bok\b/g)?.length], [0, 2], runs.text);
    const rm = await w.cli("schedule", "rm", id);
    assert.equal(rm.code, 0, rm.text);
    const gone = await w.cli("schedule", "show", id);
    assert.ok(gone.code !== 0 && gone.stderr.includes(id), gone.text);
  });

  test("a run that wants the owner's leave waits for it, with nobody there, and goes on", async () => {
    const word = w.fresh("plan");
    w.model.play(word, { calls: [["own__note", { text: word }]] }, (r) => ({ text: `it said: ${words(r[0])}` }));
    const { id } = await w.api("/v1/agents/main/schedules", { method: "POST", body: { every: "1h", prompt: `Note ${word}.` }, status: 201 });
    await w.api(`/v1/agents/main/schedules/${id}/run`, { method: "POST", body: {}, status: 202 });
    const q = await w.until("question", async () => (await w.api("/v1/agents/main/approvals")).approvals.find((q) => q.input.includes(word)));
    assert.match(q.session, /^agent:main:schedule/);
    assert.equal(w.own.done.filter((t) => t === word).length, 0);
    const ls = await w.cli("schedule", "runs", id);
    assert.ok(ls.code === 0 && /running|waits/.test(ls.stdout), ls.text);
    const allow = await w.cli("approvals", "allow", q.code);
    assert.equal(allow.code, 0, allow.text);
    const [run] = await ended(id, 1);
    assert.deepEqual([run.state, run.text, w.own.done.filter((t) => t === word).length], ["ok", "it said: noted", 1], JSON.stringify(run));
    await w.api(`/v1/agents/main/schedules/${id}`, { method: "DELETE" });
  });

  test("what cannot be is refused by its field, in a shell too", async () => {
    for (const [args, want] of [[["30 2 31 2 *", "x"], /2 31 2|never/], [["every 2s", "x"], /2s.*1m/], [["--at", "yesterday", "x"], /at/]]) {
      const r = await w.cli("schedule", "add", ...args);
      assert.ok(r.code !== 0 && want.test(r.stderr), `${args}: ${r.text}`);
    }
  });
}

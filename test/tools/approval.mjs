// Calls that wait for the owner: nothing runs before the yes, and then once.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { words } from "../clients/model.mjs";

export default function (w) {
  // asked has a turn rest at a call that writes, on a server over HTTP or by one that is a program.
  const asked = async (kind) => {
    const word = w.fresh("ask");
    const file = path.join(w.files, `${word}.txt`);
    const call = kind === "files" ? ["files__write_file", { path: file, content: "yes" }] : ["own__note", { text: word }];
    const written = () => (kind === "files" ? Number(existsSync(file) && readFileSync(file, "utf8") === "yes") : w.own.done.filter((t) => t === word).length);
    w.model.play(word, { text: "May I?", calls: [["every__echo", { message: "beside it" }], call] }, (r) => ({ text: `so: ${words(r[1])}` }));
    const answer = await w.say(word, `Write ${word}.`);
    assert.equal(answer.stop, "approval", JSON.stringify(answer));
    const [q, ...more] = await w.approvals(word);
    assert.deepEqual([q.tool, more.length, written()], [call[0], 0, 0]);
    assert.ok(q.input.includes(word) && new Date(q.expires) > new Date(), JSON.stringify(q));
    return { word, code: q.code, answer, written, call };
  };
  // over waits for the answer of a turn that goes on by itself.
  const over = (word) => w.until("answer", async () => {
    const last = (await w.api(`/v1/sessions/${word}/view?messages=1`)).at(-1);
    const text = last.role === "assistant" && [last.content].flat().map((b) => b.text ?? b).join("");
    return text && text.startsWith("so: ") && text;
  });
  const decide = (word, body, status) => w.api(`/v1/sessions/${word}/approvals`, { method: "POST", body, status });

  for (const kind of w.native ? ["files", "own"] : ["own"]) {
    test(`${kind}: a yes with the code runs it, and the answer comes to who said it`, async () => {
      const { word, code, answer, written, call } = await asked(kind);
      assert.match(answer.text, new RegExp(`^May the tool ${call[0]} run with .*\\nAnswer: yes ${code}, or no ${code}\\.`), "the question says how to answer");
      assert.deepEqual(answer.approvals.map((q) => q.code), [code]);
      assert.equal(w.model.of(word).length, 1, "no model is asked meanwhile");
      const r = await w.say(word, `yes ${code}`);
      assert.match(r.text, kind === "files" ? /^so: Successfully wrote/ : /^so: noted$/);
      assert.deepEqual([r.stop, written(), w.model.of(word).length], ["end_turn", 1, 2]);
      assert.equal(words(w.results(word)[0][0]), "Echo: beside it");
      assert.deepEqual(await w.approvals(word), []);
      await decide(word, { code, allow: true }, 409);
      assert.equal(written(), 1);
    });
  }

  test("a no over HTTP: it is not run, and the model is told", async () => {
    const { word, code, written } = await asked("own");
    await decide(word, { code: "QQQQQ", allow: true }, 404);
    await decide(word, { code, allow: false });
    assert.match(await over(word), /not run: the owner was asked and said no/);
    assert.ok(w.results(word)[0][1].is_error);
    assert.equal(written(), 0);
  });

  test("from a shell: listed, allowed, and refused the second time with what to do", async () => {
    const { word, code, written } = await asked("own");
    const ls = await w.cli("approvals", "ls");
    assert.equal(ls.code, 0, ls.text);
    assert.ok(ls.stdout.includes(code) && ls.stdout.includes("own__note") && ls.stdout.includes(word), ls.text);
    const allow = await w.cli("approvals", "allow", code.toLowerCase());
    assert.deepEqual([allow.code, allow.stdout.trim()], [0, `allowed: own__note in agent:main:local:dm:${word}`], allow.text);
    assert.equal(await over(word), "so: noted");
    assert.equal(written(), 1);
    const again = await w.cli("approvals", "deny", code);
    assert.ok(again.code !== 0 && /approvals ls/.test(again.stderr), again.text);
    await w.until("list without it", async () => !(await w.cli("approvals", "ls")).stdout.includes(code)); // the agent is told behind the turn
  });

  test("the owner's yes counts in each of their conversations", async () => {
    const { word, code, written } = await asked("own");
    await w.until("question", async () => (await w.api("/v1/agents/main/approvals")).approvals.some((q) => q.code === code)); // the agent is told behind the turn
    const elsewhere = await w.say(w.fresh("elsewhere"), `yes ${code}`);
    assert.match(elsewhere.text, /^Allowed: the tool own__note/);
    assert.equal(await over(word), "so: noted");
    assert.equal(written(), 1);
  });

  test("a code of nobody's, a bare yes and /stop run nothing", async () => {
    const { word, code, written } = await asked("own");
    const stranger = w.fresh("stranger");
    w.model.play(stranger, { text: "no code of yours" });
    await w.say(stranger, `${stranger}`);
    await w.say(stranger, "yes ZZZZZ");
    await w.say(stranger, "yes");
    assert.equal(written(), 0, "what answers nothing is a message");
    await w.api(`/v1/sessions/${word}/abort`, { method: "POST" });
    await decide(word, { code, allow: true }, 409);
    assert.equal(written(), 0);
  });

  if (!w.native) return;

  test("killed while it waits: the question is there again, and it runs once", async () => {
    const { word, code, written } = await asked("own");
    await w.cut();
    assert.deepEqual((await w.approvals(word)).map((q) => q.code), [code]);
    assert.equal(written(), 0);
    await decide(word, { code, allow: true });
    assert.equal(await over(word), "so: noted");
    assert.deepEqual([written(), w.model.of(word).length], [1, 2]);
  });
}

// What goes wrong around Claude Code: an API that is busy or says no, a client that is killed, two at once, and a
// request that nobody can read.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { soon } from "../proxy/client.mjs";
import { call, fault, gate, text } from "../proxy/upstream.mjs";
import { started } from "./claude.mjs";
import { prose } from "./work.mjs";

const odd = fileURLToPath(new URL("odd.mjs", import.meta.url));

// below lists the processes that a process started, and those that they did.
function below(pid) {
  const all = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).trim().split("\n").map((l) => l.trim().match(/^(\d+)\s+(\d+)\s+(.*)$/)).map(([, pid, parent, args]) => ({ pid: Number(pid), parent: Number(parent), args }));
  const of = (pid) => all.filter((p) => p.parent === pid).flatMap((p) => [p, ...of(p.pid)]);
  return of(pid);
}

export default function (w) {
  // Each fault once, then the model answers. Claude Code asks again, as it does without a proxy.
  const faults = [
    ["429 with retry-after", fault(429, "slow down", { "retry-after": "1" })],
    ["529", fault(529, "Overloaded")],
    ["500", fault(500, "oops")],
    ["a stream that breaks off", { content: [text("half of an answer")], cut: 5 }],
    ["an error in the stream", { content: [text("half of an answer")], error: ["overloaded_error", "Overloaded"], at: 5 }],
  ];
  for (const [what, once] of w.host === "native" ? faults : faults.slice(0, 2)) {
    test(`Claude Code asks again: ${what}`, async () => {
      const desk = w.desk("fault"), a = desk.file("a.txt", prose(1, 15_000));
      desk.script([[text("I look."), call("Read", { file_path: a })], once, [text("It is done.")]]);
      const run = await desk.claude(["Look at it."]);
      assert.equal(run.text, "It is done.");
      assert.equal(run.calls.length, 1);
      const [, refused, again] = desk.sent;
      assert.equal(refused.status, once.status ?? 200);
      assert.deepEqual(again.body.messages, refused.body.messages, "the same is asked again");
      const told = run.events.find((e) => e.subtype === "api_retry");
      if (once.status) assert.equal(told?.error_status, once.status, JSON.stringify(told));
    });
  }

  // What cannot be helped reads the same with a proxy and without. A request that the API calls invalid is asked once
  // more as it came, for it could be an edit of ours that is.
  test("Claude Code says what the API says: a context that overflows", async () => {
    const [with_, without] = await Promise.all(["page", null].map(async (treatment) => {
      const desk = w.desk("refusal");
      desk.script(Array(20).fill(fault(400, "prompt is too long: 250000 tokens > 200000 maximum")));
      const run = await desk.claude(["Look."], { treatment, fails: true });
      return { code: run.code, text: run.text, sent: desk.sent };
    }));
    assert.deepEqual([with_.code, with_.text], [without.code, without.text]);
    assert.equal(with_.code, 1);
    assert.equal(without.sent.length, 1);
    assert.deepEqual(with_.sent.map((c) => c.body.tools.some((t) => t.name === "memory_fault")), [true, false], "edited first, then as it came");
  });

  test("Claude Code is killed in the middle of an answer, and continues", async () => {
    const desk = w.desk("killed"), a = desk.file("a.txt", prose(2, 15_000)), held = gate();
    desk.script([[text("I look."), call("Read", { file_path: a })], { content: [text("a long answer that nobody will read to its end")], gate: held, at: 5 }]);
    const { child, ended } = desk.launch(["Look at it."]);
    await soon(held.reached);
    const client = below(child.pid).find((p) => p.args.startsWith(w.program));
    process.kill(client.pid, "SIGKILL");
    const { code, err } = await ended;
    assert.ok(code > 0, `the proxy ends with its client: ${code}\n${err}`);
    held.open();
    desk.script([[call("Read", { file_path: a })], [text("Now to the end.")]]);
    const on = await desk.claude(["--continue", "Go on."]);
    assert.equal(on.text, "Now to the end.");
    assert.ok(desk.sent.at(-1).raw.includes("Look at it."), "it knows what was asked before");
  });

  test("two at once in one folder", async () => {
    const desk = w.desk("both"), files = [desk.file("a.txt", prose(3, 15_000)), desk.file("b.txt", prose(4, 15_000))];
    const words = ["first", "second"].map((s) => `You are the ${s} of ${desk.name}.`);
    const here = words.map(() => gate()); // each waits until the other has come
    const runs = words.map((word, i) => {
      desk.script([async () => { here[i].tell(); await soon(here[1 - i].reached); return [call("Read", { file_path: files[i] })]; }, [text(`Done, ${i}.`)]], word);
      return desk.claude([word], { talk: `${desk.name}-${i}` });
    });
    const done = await Promise.all(runs);
    assert.deepEqual(done.map((r) => r.text), ["Done, 0.", "Done, 1."]);
    assert.notEqual(done[0].session, done[1].session);
    for (const [i, word] of words.entries()) {
      const own = desk.sent.filter((c) => c.raw.includes(word));
      assert.deepEqual([own.length, own.some((c) => c.raw.includes(words[1 - i]))], [2, false], "neither has words of the other");
    }
  });

  test("a request that is no JSON goes on as it is, and is told of", async () => {
    const desk = w.desk("odd"), body = `this is no JSON, ${desk.name}`;
    w.up.free(body);
    const { code, out, err } = await started([w.binary, "proxy", "--treatment", "page", "--name", desk.name, "--", process.execPath, odd, body], { cwd: desk.project, env: desk.environment() }).ended;
    assert.equal(code, 0, err);
    assert.deepEqual([JSON.parse(out).status, w.up.of(body).map((c) => c.raw.toString())], [200, [body]]);
    assert.match(err, /untouched/);
    desk.script([[text("I am well.")]]);
    assert.equal((await desk.claude(["How are you?"])).text, "I am well.", "the conversation goes on");
  });
}

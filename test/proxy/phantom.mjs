// Calls of the two tools that the client never sees: answered behind its back, put back where they stood.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, asked, nothingOfOurs, soon, streamed, textOf, user } from "./client.mjs";
import { bash, read } from "./untouched.mjs";
import { call, fault, gate, text, think } from "./upstream.mjs";

export const recall = (...paths) => call("memory_fault", { paths });
export const release = (...paths) => call("memory_release", { paths });
const blocks = (m) => (typeof m.content === "string" ? [text(m.content)] : m.content);
const unmarked = (list) => JSON.parse(JSON.stringify(list.map((m) => (m.role ? { role: m.role, content: blocks(m) } : m)), (k, v) => (k === "cache_control" ? undefined : v)));

// shape tells the blocks of messages in short: who, and what each block is.
export const shape = (messages) => messages.map((m) => `${m.role[0]}: ${blocks(m).map((b) => b.type === "tool_use" ? `${b.name}!` : b.type === "tool_result" ? "=" : b.type).join(" ")}`);
const idsOf = (messages) => messages.flatMap((m) => blocks(m)).filter((b) => b.type === "tool_use").map((b) => b.id);
const resultsOf = (messages) => messages.flatMap((m) => blocks(m)).filter((b) => b.type === "tool_result").map((b) => b.tool_use_id);

export default function (w) {
  const ask = (name, more = {}) => ({ model: "fake-1", max_tokens: 4000, tools: [read, bash], metadata: { user_id: name }, messages: [user(name)], ...more });
  const thinking = { thinking: { type: "enabled", budget_tokens: 2000 } };
  // after gives the body of the next request: what was said, and the next word.
  const after = (body, m, next) => ({ ...body, messages: [...body.messages, { role: "assistant", content: m.content }, next] });
  const answers = (m) => user(m.content.filter((b) => b.type === "tool_use").map((b) => ({ type: "tool_result", tool_use_id: b.id, content: `of ${b.name}` })));
  const total = (usages, f) => usages.reduce((n, u) => n + u[f], 0);
  const usageIs = (m, calls) => assert.deepEqual(
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].map((f) => m.usage[f]).concat(m.usage.output_tokens),
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].map((f) => total(calls.map((c) => c.usage), f)).concat(total(calls.map((c) => c.usage), "output")), "usage is that of all calls");
  // begins holds that a later request begins with what an earlier one was.
  const begins = (later, earlier) => assert.deepEqual(unmarked(later.body.messages).slice(0, earlier.body.messages.length), unmarked(earlier.body.messages));

  for (const stream of [true, false]) {
    const how = stream ? "streaming" : "whole";
    const say = (body) => soon(asked(w.anthropic(), body, stream));

    test(`only ours: it is answered at once and the reply goes on, ${how}`, async () => {
      const name = w.fresh();
      const one = recall("/nowhere");
      w.up.script(name, [one], [text("I could not find it.")], [text("more")]);
      const body = ask(name), m = await say(body);
      nothingOfOurs(m);
      assert.deepEqual([m.content, m.stop_reason], [[text("I could not find it.")], "end_turn"]);
      const [a, b] = w.up.of(name);
      assert.deepEqual(shape(b.body.messages), ["u: text", "a: memory_fault!", "u: ="]);
      assert.deepEqual(blocks(b.body.messages[1])[0].input, one.input);
      assert.ok(JSON.stringify(b.body.messages[2]).includes("/nowhere"), "it says what it does not know");
      usageIs(m, [a, b]);
      await say(after(body, m, user("go on")));
      const c = w.up.of(name)[2];
      begins(c, b);
      assert.deepEqual(shape(c.body.messages), ["u: text", "a: memory_fault!", "u: =", "a: text", "u: text"]);
    });

    test(`only ours, with words and thoughts before it, ${how}`, async () => {
      const name = w.fresh();
      const first = [think("What was it?"), text("Let me remember."), recall("/x"), release("/y")], second = [think("Nothing."), text("It is gone."), call("Read", { file_path: "/x" })];
      w.up.script(name, first, second, [think("ah"), text("Here.")], [text("end")]);
      const body = ask(name, thinking), m = await say(body);
      nothingOfOurs(m);
      assert.deepEqual(m.content, [first[0], first[1], ...second]);
      assert.equal(m.stop_reason, "tool_use");
      const two = after(body, m, answers(m)), n = await say(two);
      const [, b, c] = w.up.of(name);
      begins(c, b);
      assert.deepEqual(shape(c.body.messages), ["u: text", "a: thinking text memory_fault! memory_release!", "u: = =", "a: thinking text Read!", "u: ="]);
      await say(after(two, n, user("go on")));
      begins(w.up.of(name)[3], c);
    });

    test(`ours among the client's: they come back in their places, ${how}`, async () => {
      const name = w.fresh();
      const first = [think("two"), text("Both."), call("Read", { file_path: "/a" }), recall("/b"), call("Bash", { command: "ls" }), release("/c")];
      w.up.script(name, first, [text("Done.")], [text("end")]);
      const body = ask(name, thinking), m = await say(body);
      nothingOfOurs(m);
      assert.deepEqual(m.content, [first[0], first[1], first[2], first[4]]);
      assert.equal(m.stop_reason, "tool_use");
      assert.equal(w.up.of(name).length, 1, "the client has calls to answer first");
      const two = after(body, m, answers(m)), n = await say(two);
      const [, b] = w.up.of(name);
      assert.deepEqual(unmarked(blocks(b.body.messages[1])), first, "the reply as the model wrote it");
      assert.deepEqual(resultsOf([b.body.messages[2]]).sort(), idsOf([{ role: "assistant", content: first }]).sort());
      await say(after(two, n, user("go on")));
      begins(w.up.of(name)[2], b);
    });

    test(`ours again in the answer to ours, then the client's, ${how}`, async () => {
      const name = w.fresh();
      w.up.script(name, [text("One."), recall("/a")], [recall("/b"), release("/c")], [text("Two."), call("Read", { file_path: "/a" }), recall("/d")], [text("Three.")], [text("end")]);
      const body = ask(name), m = await say(body);
      nothingOfOurs(m);
      assert.deepEqual(m.content.map((b) => b.type === "text" ? b.text : b.name), ["One.", "Two.", "Read"]);
      usageIs(m, w.up.of(name).slice(0, 3));
      const two = after(body, m, answers(m)), n = await say(two);
      const want = ["u: text", "a: text memory_fault!", "u: =", "a: memory_fault! memory_release!", "u: = =", "a: text Read! memory_fault!", "u: = ="];
      assert.deepEqual(shape(w.up.of(name)[3].body.messages), want);
      begins(w.up.of(name)[3], w.up.of(name)[2]);
      await say(after(two, n, user("go on")));
      begins(w.up.of(name)[4], w.up.of(name)[3]);
    });

    test(`thoughts between the calls stay where they were, ${how}`, async () => {
      const name = w.fresh();
      const first = [think("a"), recall("/a"), think("b"), call("Read", { file_path: "/a" }), think("c"), recall("/b"), call("Bash", { command: "x" })];
      w.up.script(name, first, [think("d"), text("Done.")]);
      const body = ask(name, thinking), m = await say(body);
      assert.deepEqual(m.content, first.filter((b) => !b.name?.startsWith("memory_")));
      await say(after(body, m, answers(m)));
      assert.deepEqual(unmarked(blocks(w.up.of(name)[1].body.messages[1])), first);
    });

    test(`a restart between a call of ours and its return, ${how}`, async () => {
      const name = w.fresh();
      const first = [text("Both."), recall("/b"), call("Read", { file_path: "/a" })];
      w.up.script(name, first, [recall("/c")], [text("Done.")], [text("end")]);
      const body = ask(name), m = await say(body);
      await w.restart();
      const two = after(body, m, answers(m)), n = await say(two);
      assert.deepEqual(unmarked(blocks(w.up.of(name)[1].body.messages[1])), first);
      assert.deepEqual(n.content, [text("Done.")]);
      await w.restart();
      await say(after(two, n, user("go on")));
      begins(w.up.of(name)[3], w.up.of(name)[2]);
    });

    test(`a reply that is cut short with a call of ours, ${how}`, async () => {
      const name = w.fresh();
      w.up.script(name, { content: [text("Well"), recall("/b")], stop: "max_tokens" }, [text("Done.")]);
      const body = ask(name), m = await say(body);
      nothingOfOurs(m);
      assert.equal(textOf(m).slice(0, 4), "Well");
      await say(after(body, m, user("go on")));
    });

    test(`an API that fails between two calls of ours, ${how}`, async () => {
      for (const bad of [fault(529, "Overloaded", { "retry-after": "2" }), fault(400, "no"), { content: [text("half")], cut: 3 }, { content: [text("half")], error: ["overloaded_error", "Overloaded"], at: 3 }]) {
        if (!stream && bad.error) continue;
        const name = w.fresh();
        w.up.script(name, [text("One."), recall("/b")], bad, [text("whole")], [text("end")]);
        const body = ask(name);
        const e = await say(body).then(() => null, (e) => e);
        assert.ok(e instanceof Error && !/still not/.test(e.message), `${JSON.stringify(bad)}: ${e}`);
        if (bad.status && !stream) assert.deepEqual([e.status], [bad.status]);
        const m = await say(body);
        assert.equal(textOf(m).endsWith("whole"), true, textOf(m));
        nothingOfOurs(m);
        await say(after(body, m, user("go on")));
      }
    });

    test(`a model that asks for ever is given an end, ${how}`, async () => {
      const name = w.fresh();
      let n = 0;
      w.up.script(name, (body) => (body.messages.some((m) => JSON.stringify(m).includes("the end")) ? [text("ended")] : [text(`${++n}. `), recall("/again")]));
      const body = ask(name), m = await soon(asked(w.anthropic(), body, stream).catch((e) => e));
      assert.ok(w.up.of(name).length > 1 && w.up.of(name).length <= 40, `${w.up.of(name).length} calls`);
      nothingOfOurs(m instanceof Error ? m.message : m);
      if (m instanceof Error || m.content.length === 0) return;
      assert.notEqual(m.stop_reason, "tool_use", "the client has no call to answer");
      await say(after(body, m, user("the end")));
    });
  }

  test("a server that ends between a call of ours and the answer to it", async () => {
    const name = w.fresh(), g = gate();
    w.up.script(name, [text("One."), recall("/b")], { content: [text("torn")], gate: g, at: 3 }, [text("whole")], [text("end")]);
    const body = ask(name);
    const torn = soon(streamed(w.anthropic(), body)).catch((e) => e);
    await g.reached;
    await w.restart();
    assert.ok((await torn) instanceof Error);
    const m = await asked(w.anthropic(), body, true);
    await asked(w.anthropic(), after(body, m, user("go on")), true);
  });

  test("a client that leaves between two calls of ours ends the second", async () => {
    const name = w.fresh(), g = gate(), body = ask(name);
    w.up.script(name, [text("One."), recall("/b")], { content: [text("nobody hears")], gate: g, at: 3 }, [text("heard")]);
    const stream = w.anthropic().messages.stream(body);
    stream.done().catch(() => {});
    const c = await g.reached;
    stream.abort();
    await soon(c.left);
    assert.equal(c.gone, true);
    assert.match((await streamed(w.anthropic(), body)).text, /heard$/);
  });

  test("any form of the wire, with calls of ours in it", async () => {
    for (const [i, form] of [{ crlf: true }, { piece: 1, slice: 1 }, { comments: true, strange: true }, { behind: true, split: true }, { burst: true, slice: 61 }].entries()) {
      const name = w.fresh();
      const second = [text("Second 😀."), call("Read", { file_path: `/é${i}` }), recall("/z")];
      w.up.script(name, { content: [think("t"), text("First."), recall("/é", "😀")], ...form }, { content: second, ...form }, { content: [text("Third.")], ...form });
      const body = ask(name), { message: m } = await streamed(w.anthropic(), body);
      assert.deepEqual(m.content.map((b) => b.text ?? b.name ?? b.thinking), ["t", "First.", "Second 😀.", "Read"], JSON.stringify(form));
      await streamed(w.anthropic(), after(body, m, answers(m)));
      assert.deepEqual(blocks(w.up.of(name)[1].body.messages[1])[2].input, { paths: ["/é", "😀"] });
      assert.deepEqual(shape(w.up.of(name)[2].body.messages), ["u: text", "a: thinking text memory_fault!", "u: =", "a: text Read! memory_fault!", "u: = ="]);
    }
  });

  test("an agent that works for a while with calls of ours everywhere", async () => {
    const name = w.fresh();
    let n = 0;
    w.up.script(name, (body) => {
      const k = n++;
      if (k === 24) return [text("All done.")];
      const out = [text(`Step ${k}.`)];
      if (k % 2 === 0) out.push(recall(`/f${k}`));
      if (k % 3 !== 1) out.push(call("Read", { file_path: `/f${k}` }));
      if (k % 5 === 0) out.push(release(`/f${k}`));
      if (out.length === 1) out.push(call("Bash", { command: `${k}` }));
      return out;
    });
    for (const stream of [true, false]) {
      n = 0;
      const before = w.up.of(name).length;
      const agent = new Agent({ client: w.anthropic(), tools: [read, bash], stream, more: { metadata: { user_id: `${name} ${stream}` } } });
      const m = await agent.say(name);
      assert.equal(textOf(m), "All done.");
      const sent = w.up.of(name).slice(before);
      for (let i = 1; i < sent.length; i++) begins(sent[i], sent[i - 1]);
    }
  });
}

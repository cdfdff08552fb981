// The same for chat completions, with the client of OpenAI.

import assert from "node:assert/strict";
import { test } from "node:test";
import { nothingOfOurs, soon, user } from "./client.mjs";
import { recall, release } from "./phantom.mjs";
import { asFunction, bash, read, send } from "./untouched.mjs";
import { call, fault, text } from "./upstream.mjs";

const short = (messages) => messages.map((m) => `${m.role[0]}: ${[m.content && "text", ...(m.tool_calls ?? []).map((c) => `${c.function.name}!`)].filter(Boolean).join(" ")}`);

export default function (w) {
  const tools = [read, bash].map(asFunction);
  const ask = (name, more = {}) => ({ model: "fake-1", tools, user: name, messages: [{ role: "system", content: "Be brief." }, user(name)], ...more });
  const page = { headers: { "x-tidemark-mode": "page" } };

  // asked gives the reply, whole or put together of its pieces, as a client would keep it.
  async function asked(body, stream) {
    const client = w.openai(page);
    if (!stream) {
      const r = await client.chat.completions.create(body);
      nothingOfOurs(r);
      assert.equal(r.choices.length, 1);
      return { message: r.choices[0].message, reason: r.choices[0].finish_reason, usage: r.usage };
    }
    const chunks = [];
    const s = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    s.on("chunk", (c) => chunks.push(structuredClone(c)));
    const r = await s.finalChatCompletion();
    nothingOfOurs(chunks);
    assert.equal(chunks.filter((c) => c.choices[0]?.delta.role).length, 1, "the role comes once");
    assert.equal(chunks.filter((c) => c.choices[0]?.finish_reason).length, 1, "and so does the reason");
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1, "all chunks are of one answer");
    const indexes = chunks.flatMap((c) => c.choices[0]?.delta.tool_calls ?? []).map((c) => c.index);
    assert.deepEqual([...new Set(indexes)], [...new Set(indexes)].map((_, i) => i), "calls count from 0");
    const { role, content, tool_calls } = r.choices[0].message;
    return { message: { role, content, ...(tool_calls && { tool_calls: tool_calls.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } })) }) }, reason: r.choices[0].finish_reason, usage: r.usage };
  }
  const after = (body, { message }, ...next) => ({ ...body, messages: [...body.messages, message, ...next] });
  const results = ({ message }) => message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: `of ${c.function.name}` }));
  // What the client keeps of a reply says that nothing was refused; of one of ours in its middle nobody does.
  const plain = (messages) => messages.map(({ refusal: _, ...m }) => m);
  const begins = (later, earlier) => assert.deepEqual(plain(later.body.messages.slice(0, earlier.body.messages.length)), plain(earlier.body.messages));

  for (const stream of [true, false]) {
    const how = stream ? "streaming" : "whole";

    test(`an answer and a call, ${how}`, async () => {
      const name = w.fresh();
      w.up.script(name, [text("I look."), call("Read", { file_path: "/a\"é" })], [text("Here.")]);
      const body = ask(name), one = await asked(body, stream);
      assert.deepEqual([one.message.content, one.reason, JSON.parse(one.message.tool_calls[0].function.arguments)], ["I look.", "tool_calls", { file_path: "/a\"é" }]);
      const two = await asked(after(body, one, ...results(one)), stream);
      assert.equal(two.message.content, "Here.");
      const [a, b] = w.up.of(name);
      assert.deepEqual([one.usage.prompt_tokens, one.usage.completion_tokens], [a.usage.prompt_tokens, a.usage.output]);
      assert.deepEqual(b.body.messages, after(body, one, ...results(one)).messages);
      assert.equal(a.headers.authorization, "Bearer sk-clients-own");
    });

    test(`only ours, and again in the answer, ${how}`, async () => {
      const name = w.fresh();
      w.up.script(name, [recall("/a")], [text("One."), release("/b"), recall("/c")], [text("Two.")], [text("end")]);
      const body = ask(name), one = await soon(asked(body, stream));
      assert.match(one.message.content, /^One\.\s*Two\.$/);
      assert.deepEqual([one.reason, one.message.tool_calls], ["stop", undefined]);
      const [a, b, c] = w.up.of(name);
      assert.equal(one.usage.completion_tokens, a.usage.output + b.usage.output + c.usage.output);
      await asked(after(body, one, user("go on")), stream);
      const d = w.up.of(name)[3];
      assert.deepEqual(short(c.body.messages), ["s: text", "u: text", "a: memory_fault!", "t: text", "a: text memory_release! memory_fault!", "t: text", "t: text"]);
      begins(d, c);
    });

    test(`ours among the client's come back in their places, ${how}`, async () => {
      const name = w.fresh();
      const first = [text("Both."), call("Read", { file_path: "/a" }), recall("/b"), call("Bash", { command: "ls" })];
      w.up.script(name, first, [text("Done.")], [text("end")]);
      const body = ask(name), one = await soon(asked(body, stream));
      assert.deepEqual(one.message.tool_calls.map((c) => c.function.name), ["Read", "Bash"]);
      await w.restart();
      const next = after(body, one, ...results(one)), two = await asked(next, stream);
      const b = w.up.of(name)[1];
      assert.deepEqual(b.body.messages[2].tool_calls.map((c) => [c.id, JSON.parse(c.function.arguments)]), first.slice(1).map((c) => [c.id, c.input]));
      await asked(after(next, two, user("go on")), stream);
      begins(w.up.of(name)[2], b);
    });

    test(`tags are taken out, ${how}`, async () => {
      const name = w.fresh();
      w.up.script(name, { content: [text("Before.\n<memory_cleanup>\nrelease: /a\n</memory_cleanup>\nAfter.")], piece: 3 });
      const one = await asked(ask(name), stream);
      assert.equal(one.message.content, "Before.\nAfter.");
    });
  }

  test("several choices pass as they are", async () => {
    const name = w.fresh();
    const content = [text("A.\n<memory_cleanup>\nrelease: /a\n</memory_cleanup>\n")];
    w.up.script(name, content, content);
    for (const stream of [false, true]) {
      const raw = JSON.stringify(ask(name, { n: 2, stream }));
      const r = await send(`${w.url}/v1/chat/completions`, { "x-tidemark-token": w.token, authorization: "Bearer sk-k", "x-tidemark-mode": "page" }, raw);
      assert.equal(r.status, 200, r.body);
      const c = w.up.of(name).at(-1);
      assert.equal(c.raw.toString(), raw);
      assert.equal(r.body, c.sent);
    }
  });

  test("an API that fails between two calls of ours", async () => {
    const name = w.fresh();
    w.up.script(name, [recall("/a")], fault(429, "slow", { "retry-after": "3" }), [text("whole")]);
    const e = await asked(ask(name), false).catch((e) => e);
    assert.equal(e.status, 429);
    assert.equal((await asked(ask(name), false)).message.content, "whole");
  });

  test("with a session, or with our token alone, it is the call that it always was", async () => {
    const r = await w.openai({ key: w.token, headers: { "x-tidemark-token": undefined } }).chat.completions.create({ model: "tidemark", messages: [user(w.fresh())] });
    assert.match(r.choices[0].message.content, /You said/);
  });

  test("a long session pages, and what is asked for comes back", async () => {
    const name = w.fresh(), page_ = (i) => `file ${i}\n${`line of ${i} é "quoted"\n`.repeat(150)}`;
    let n = 0, seen = 0, wanted = null;
    w.up.script(name, (body) => {
      const k = n++;
      const stubs = body.messages.filter((m) => m.role === "tool" && /^\[Paged out/.test(m.content));
      seen = Math.max(seen, stubs.length);
      if (stubs.length > 3 && wanted === null) {
        wanted = /file_(\d+)/.exec(stubs[0].content)[1];
        return [recall(`/file_${wanted}.go`)];
      }
      return k < 40 ? [call("Read", { file_path: `/file_${k}.go` })] : [text("All read.")];
    });
    const body = ask(name);
    for (;;) {
      const one = await asked(body, n % 2 === 0);
      body.messages.push(one.message);
      if (!one.message.tool_calls) break;
      for (const c of one.message.tool_calls) body.messages.push({ role: "tool", tool_call_id: c.id, content: page_(/file_(\d+)/.exec(c.function.arguments)[1]) });
    }
    assert.ok(seen > 3, `${seen} stubs at most`);
    const calls = w.up.of(name), given = calls.flatMap((c) => c.body.messages).find((m) => m.role === "tool" && m.content.includes(page_(wanted)) && !m.content.startsWith("file"));
    assert.ok(given, "the copy comes back to the byte");
  });
}

// Cleanup tags: taken out of what the client sees however they come, done once, and never when they are quoted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, nothingOfOurs, streamed, textOf, user } from "./client.mjs";
import { recall } from "./phantom.mjs";
import { read } from "./untouched.mjs";
import { call, text, think } from "./upstream.mjs";

const tag = (...ops) => `<memory_cleanup>\n${ops.join("\n")}\n</memory_cleanup>`;
const flat = (c) => JSON.stringify(c.body?.messages ?? "");

export default function (w) {
  const ask = (name, more = {}) => ({ model: "fake-1", max_tokens: 4000, tools: [read], metadata: { user_id: name }, messages: [user(name)], ...more });
  const after = (body, m, next) => ({ ...body, messages: [...body.messages, { role: "assistant", content: m.content }, next] });
  const long = (what) => `${what}: ${"the tide comes and goes. ".repeat(60)}`;
  // entries gives the log of a conversation, oldest first: what the handles of its messages are.
  const entries = async (name) => (await w.api(`/v1/sessions/${encodeURIComponent(w.key(name))}/log?limit=200`)).entries.reverse();
  const handleOf = async (name, words) => {
    const e = (await entries(name)).find((e) => JSON.stringify(e).includes(words));
    assert.ok(e, `the log has ${words}`);
    return `${e.id}#0`;
  };

  test("at any place where it may be cut", async () => {
    const body = `Before 😀.\n${tag("release: /a.go, /b.go")}\nBetween.\n\n  ${tag("release: /c.go")}\nAfter.`;
    const want = "Before 😀.\nBetween.\n\nAfter.";
    for (const form of [...Array.from({ length: 24 }, (_, i) => ({ piece: i + 1 })), { piece: 1000 }, { piece: 5, slice: 1, crlf: true }, { piece: 2, comments: true, strange: true }, { piece: 9, burst: true, slice: 23, split: true }]) {
      const name = w.fresh();
      w.up.script(name, { content: [text(body), call("Read", { file_path: "/x" })], ...form });
      const s = await streamed(w.anthropic(), ask(name));
      assert.deepEqual(s.message.content.map((b) => b.text ?? b.name), [want, "Read"], JSON.stringify(form));
    }
    const name = w.fresh();
    w.up.script(name, [text(body)]);
    assert.equal(textOf(await w.anthropic().messages.create(ask(name))), want);
  });

  test("a text that was only tags is none for the client, and stands in its place upstream", async () => {
    for (const stream of [true, false]) {
      const name = w.fresh();
      const first = [think("tidy"), text(tag("release: /a.go")), call("Read", { file_path: "/x" })];
      w.up.script(name, first, [text("Done.")]);
      const body = ask(name, { thinking: { type: "enabled", budget_tokens: 2000 } }), m = await asked(w.anthropic(), body, stream);
      assert.deepEqual(m.content, [first[0], first[2]]);
      await asked(w.anthropic(), after(body, m, user([{ type: "tool_result", tool_use_id: first[2].id, content: "x" }])), stream);
      assert.deepEqual(w.up.of(name)[1].body.messages[1].content, first);
    }
  });

  test("a reply that was only tags", async () => {
    for (const stream of [true, false]) {
      const name = w.fresh();
      w.up.script(name, [text(tag("release: /a.go"))], [text("Yes.")]);
      const body = ask(name), m = await asked(w.anthropic(), body, stream);
      nothingOfOurs(m);
      const n = await asked(w.anthropic(), after(body, m, user("are you there?")), stream);
      assert.equal(textOf(n), "Yes.");
    }
  });

  test("a summary stands in the place of a block, once, also after a restart; the original comes back", async () => {
    const name = w.fresh(), words = long("first"), body = ask(name, { messages: [user(`${name} ${words}`)] });
    w.up.script(name, [text("Noted.")]);
    const one = await streamed(w.anthropic(), body);
    const handle = await handleOf(name, "first: ");
    const two = after(body, one.message, user("and now sum it up"));
    w.up.script(name, [text(`I will.\n${tag(`summarize: block:${handle} "it is about tides"`)}\n`)], [text("Go on.")], [recall(handle)], [text("It was: the tide.")]);
    const s = await streamed(w.anthropic(), two);
    nothingOfOurs(s.events);
    const three = after(two, s.message, user("next")), t = await streamed(w.anthropic(), three);
    const sent = w.up.calls.filter((c) => flat(c).includes("it is about tides")).at(-1);
    assert.ok(sent, "the summary is sent");
    assert.ok(!JSON.stringify(sent.body.messages[0]).includes(words.slice(0, 200)), "in the place of the words");
    assert.equal(flat(sent).match(/Your summary of/g)?.length, 1, "once");
    await w.restart();
    const four = after(three, t.message, user("what was it?"));
    w.up.script("what was it?", [recall(handle)], [text("It was: the tide.")]);
    const u = await streamed(w.anthropic(), four);
    assert.equal(u.text, "It was: the tide.");
    const last = w.up.calls.at(-1);
    assert.deepEqual(last.body.messages[0], sent.body.messages[0], "what is sent of it stays");
    assert.ok(flat({ body: { messages: last.body.messages.slice(-1) } }).includes(JSON.stringify(`${name} ${words}`).slice(1, -1)), "the original to the byte");
  });

  test("turns become one text, and their words come back", async () => {
    const name = w.fresh();
    let body = ask(name, { messages: [user(`${name} ${long("one")}`)] });
    for (const next of ["two", "three", "four"]) {
      w.up.script(name, [text(`About ${next}. ${"words ".repeat(100)}`.trim())]);
      const s = await streamed(w.anthropic(), body);
      body = after(body, s.message, user(next === "four" ? "four" : long(next)));
    }
    w.up.script(name, [text(`Tidied.\n${tag('collapse: turns 1-2 "they spoke of one and two"')}`)], [text("Fine.")], [text("Still.")]);
    const s = await streamed(w.anthropic(), body);
    assert.equal(s.text.trim(), "Tidied.");
    body = after(body, s.message, user("five"));
    w.up.script("they spoke of one and two", [text("Fine.")], [text("Still.")]);
    const t = await streamed(w.anthropic(), body);
    const sent = w.up.calls.at(-1);
    assert.ok(flat(sent).includes("they spoke of one and two"), shapeOf(sent));
    assert.ok(!flat(sent).includes("one: the tide") && flat(sent).includes("three: the tide"));
    await streamed(w.anthropic(), after(body, t.message, user("six")));
    assert.deepEqual(w.up.calls.at(-1).body.messages.slice(0, sent.body.messages.length - 1), sent.body.messages.slice(0, -1));
  });
  const shapeOf = (c) => c.body.messages.map((m) => JSON.stringify(m).slice(0, 90)).join("\n");

  test("quoted tags stay, and nothing is done", async () => {
    const name = w.fresh(), words = long("kept"), body = ask(name, { messages: [user(`${name} ${words}`)] });
    w.up.script(name, [text("Noted.")]);
    const one = await streamed(w.anthropic(), body);
    const handle = await handleOf(name, "kept: ");
    const op = tag(`drop: block:${handle}`);
    const quotes = [
      `In code:\n\`\`\`\n${op}\n\`\`\`\nis quoted.`, `~~~~ xml\n${op}\n~~~\nstill\n~~~~\n`.trim(), `Inline \`${op.replaceAll("\n", " ")}\` it is.`, `> ${op.replaceAll("\n", "\n> ")}`, `    ${op.replaceAll("\n", "\n    ")}`.replace(/^/, "So:\n\n"),
      `It begins ${op}`, `<memory_cleanup>\ndrop: block:${handle}\nno closing tag`, `<memory_cleanup>\ndrop: block:${handle}\nand other words\n</memory_cleanup>`, `<MEMORY_CLEANUP>\ndrop: block:${handle}\n</MEMORY_CLEANUP>`, `<memory_cleanup>drop: block:${handle}</memory-cleanup>`,
    ];
    let at = after(body, one.message, user("quote it"));
    for (const [i, q] of quotes.entries()) {
      w.up.script(name, { content: [text(q)], piece: 1 + (i % 5) });
      const m = await asked(w.anthropic(), at, i % 2 === 0);
      assert.equal(textOf(m), q, "the client sees it");
      at = after(at, m, user(`more ${i}`));
    }
    // In a tool's result, and in what the user says.
    w.up.script(name, [call("Read", { file_path: "/notes" })], [text("I see.")]);
    const m = await asked(w.anthropic(), at, true);
    at = after(at, m, user([{ type: "tool_result", tool_use_id: m.content[0].id, content: op }, text(`And I say:\n${op}`)]));
    const n = await asked(w.anthropic(), at, true);
    at = after(at, n, user("end"));
    await asked(w.anthropic(), at, true);
    assert.deepEqual(w.up.of(name).at(-1).body.messages, at.messages, "all is as the client has it");
  });
}

// The fake provider alone: what it refuses, what it caches, and that the official clients read it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cache } from "./cache.mjs";
import { anthropicAt, openaiAt, streamed } from "./client.mjs";
import { Given, chatBroken, messagesBroken } from "./rules.mjs";
import { Upstream, call, fault, text, think } from "./upstream.mjs";

const user = (content) => ({ role: "user", content });
const system = (content) => ({ role: "system", content });
const model = (content) => ({ role: "assistant", content });
const use = (id) => ({ type: "tool_use", id, name: "f", input: {} });
const result = (tool_use_id) => ({ type: "tool_result", tool_use_id, content: "x" });
const ask = (messages, more) => ({ model: "m", max_tokens: 2000, messages, ...more });
const tool = { name: "f", input_schema: { type: "object" } };
const newer = { model: "claude-opus-4-8" };
const mark = { cache_control: { type: "ephemeral" } };
const thinking = { type: "enabled", budget_tokens: 1024 };

test("rules of the Messages API", () => {
  const first = [think("a"), use("t1"), think("b"), use("t2")];
  const given = new Given();
  given.add(first);
  given.add([use("t3"), use("t4")]); // without a thought, so it may come back in part
  const loop = (content, more = [result("t1"), result("t2")]) => [user("q"), model(content), user(more)];
  const rows = [
    [ask([user("hi")]), null],
    [ask([user("hi"), user([text("there")]), model("so"), user("x")]), null],
    [ask([user("q"), model([text("t"), use("a")]), user([result("a"), text("and")])], { tools: [tool] }), null],
    [ask([user("q"), model("half an")]), null],
    [{ messages: [user("hi")] }, /model/],
    [{ model: "m", messages: [user("hi")] }, /max_tokens/],
    [ask([]), /at least one/],
    [ask([model("hi")]), /first message/],
    [ask([system("x")], newer), /first message|top-level/],
    [ask([user("q"), system("x")], newer), null],
    [ask([user("q"), system([{ ...text("x"), ...mark }]), model("a"), user("r")], newer), null],
    [ask([user("q"), model([use("a")]), user([result("a")]), system("x"), model("b"), user("r"), system("y")], newer), null],
    [ask([user("q"), system("x")], { model: "claude-sonnet-4-5" }), /not supported/],
    [ask([user("q"), model("a"), system("x")], newer), /follow a user message/],
    [ask([user("q"), system("x"), system("y")], newer), /must be last/],
    [ask([user("q"), system("x"), user("r")], newer), /must be last/],
    [ask([user("q"), system([{ type: "image" }])], newer), /not allowed/],
    [ask([{ role: "narrator", content: "x" }]), /role/],
    [ask([user("")]), /non-empty/],
    [ask([user([])]), /non-empty/],
    [ask([user([text(" ")])]), /non-empty/],
    [ask([user("q"), model([use("a")])]), /without `tool_result`/],
    [ask([user("q"), model([use("a")]), user("no")]), /without `tool_result`/],
    [ask([user("q"), model([use("a")]), user([result("b"), result("a")])]), /unexpected `tool_use_id`/],
    [ask([user("q"), user([result("a")])]), /unexpected `tool_use_id`/],
    [ask([user("q"), model([use("a")]), user([result("a"), result("a")])]), /single result/],
    [ask([user("q"), model([use("a")]), user([text("t"), result("a")])]), /before all other/],
    [ask([user("q"), model([use("a")]), user([result("a")]), model([use("a")]), user([result("a")])]), /unique/],
    [ask([user([use("a")])]), /only be in `assistant`/],
    [ask([user("q"), model([{ ...use("a"), input: "{}" }]), user([result("a")])]), /dictionary/],
    [ask([user("q"), model("ends ")]), /trailing/],
    [ask([user("q")], { tools: [tool, tool] }), /unique/],
    [ask([user("q")], { tools: [{ name: "f" }] }), /input_schema/],
    [ask([user("q")], { tools: [{ type: "web_search_20250305", name: "web_search" }] }), null],
    [ask([user("q")], { tool_choice: { type: "any" } }), /providing tools/],
    [ask([user("q")], { tools: [tool], tool_choice: { type: "tool", name: "g" } }), /not among/],
    [ask([user(Array.from({ length: 5 }, (_, i) => ({ ...text(`${i}`), ...mark })))]), /maximum of 4/],
    [ask([user([{ ...text("a"), ...mark }])], { system: [{ ...text("s"), ...mark }], tools: [{ ...tool, ...mark }, { ...tool, name: "g", ...mark }] }), null],
    [ask([user([{ ...text("a"), ...mark }, { ...text("b"), cache_control: { type: "ephemeral", ttl: "1h" } }])]), /must not come after/],
    [ask(loop(first), { thinking, tools: [tool] }), null],
    [ask(loop(first.slice(1)), { thinking, tools: [tool] }), /cannot be modified/],
    [ask(loop(first.slice(1)), { thinking: { type: "adaptive" }, tools: [tool] }), /cannot be modified/],
    [ask([user("q"), model([use("t4")]), user([result("t4")])], { thinking: { type: "adaptive" }, tools: [tool] }), null],
    [ask(loop(first), { thinking: { type: "adaptive" }, tools: [tool] }), null],
    [ask(loop([first[0], first[2], first[1], first[3]]), { thinking, tools: [tool] }), /cannot be modified/],
    [ask(loop([{ ...first[0], thinking: "c" }, ...first.slice(1)]), { thinking, tools: [tool] }), /Invalid `signature`/],
    [ask([...loop(first.slice(1)), model("done"), user("more")], { thinking, tools: [tool] }), null],
    [ask([user("q")], { thinking, tools: [tool], tool_choice: { type: "any" } }), /forces tool use/],
  ];
  for (const [body, want] of rows) {
    const got = messagesBroken(body, given);
    if (want === null) assert.equal(got, null, JSON.stringify(body));
    else assert.match(got ?? "nothing", want, JSON.stringify(body));
  }
});

test("rules of chat completions", () => {
  const calls = (...ids) => ({ role: "assistant", content: null, tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })) });
  const answer = (tool_call_id) => ({ role: "tool", tool_call_id, content: "x" });
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  const rows = [
    [{ messages: [user("q"), calls("a", "b"), answer("b"), answer("a"), user("x")], tools }, null],
    [{ messages: [user("q"), calls("a", "b"), answer("b")] }, /must be followed.*: a/],
    [{ messages: [user("q"), calls("a"), user("x"), answer("a")] }, /must be followed/],
    [{ messages: [user("q"), answer("a")] }, /must be a response/],
    [{ messages: [user("q"), { role: "assistant", content: null }] }, /null without/],
    [{ messages: [user([])] }, /parts/],
    [{ messages: [user("q")], tools: [] }, /too short/],
    [{ messages: [user("q")], tools: [...tools, ...tools] }, /unique/],
    [{ messages: [user("q")], tool_choice: "auto" }, /only allowed/],
    [{ messages: [user("q"), { role: "assistant", content: null, tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{" } }] }, answer("a")] }, /not JSON/],
  ];
  for (const [body, want] of rows) {
    const got = chatBroken({ model: "m", ...body });
    if (want === null) assert.equal(got, null);
    else assert.match(got ?? "nothing", want, JSON.stringify(body));
  }
});

test("the cache reads the longest equal prefix that was marked", () => {
  const cache = new Cache();
  const long = (c) => c.repeat(400);
  const one = ask([user([{ ...text(long("a")), ...mark }])], { system: [{ ...text(long("s")), ...mark }] });
  const cold = cache.take("k", one);
  assert.deepEqual([cold.read, cold.input], [0, 0]);
  assert.ok(cold.created > 200);
  assert.deepEqual(cache.take("k", one), { input: 0, read: cold.created, created: 0, size: cold.size });
  assert.equal(cache.take("other", one).read, 0, "a cache belongs to a key");
  const next = ask([user([text(long("a"))]), model("b"), user([{ ...text(long("c")), ...mark }])], { system: one.system });
  assert.equal(cache.take("k", next).read, cold.created, "wherever the marker is now");
  const edited = ask([user([{ ...text(long("z")), ...mark }])], { system: one.system });
  const left = cache.take("k", edited);
  assert.ok(left.read > 90 && left.read < cold.created, "what stands before the change");
  assert.equal(cache.take("k", { ...edited, tools: [tool] }).read, 0);
});

let up;
before(async () => (up = await new Upstream().start()));
after(() => up.stop());

test("the official clients read it in every form", async () => {
  const content = [think("hm, é😀"), text("Let me see… 😀"), call("f", { a: [1, "é"] })];
  for (const [i, form] of [{}, { crlf: true }, { piece: 1, slice: 1 }, { comments: true, strange: true, behind: true, split: true }].entries()) {
    up.script(`form ${i}`, { content, ...form }, { content, ...form }, { content: content.slice(1), ...form }, { content: content.slice(1), ...form });
    const client = anthropicAt(up.url), body = ask([user(`form ${i}`)], { tools: [tool] });
    const s = await streamed(client, body);
    assert.deepEqual(s.message.content, content);
    assert.deepEqual((await client.messages.create(body)).content, content);
    const openai = openaiAt(up.url), chat = { model: "m", messages: [user(`form ${i}`)] };
    const whole = (await openai.chat.completions.create(chat)).choices[0].message;
    const got = await openai.chat.completions.stream(chat).finalChatCompletion();
    assert.equal(whole.content, content[1].text);
    assert.equal(got.choices[0].message.content, whole.content);
    assert.equal(got.choices[0].message.tool_calls[0].function.arguments, whole.tool_calls[0].function.arguments);
  }
  assert.deepEqual(up.broken().map((c) => c.broken), []);
});

test("its faults are those of the SDK", async () => {
  up.script("busy", fault(429, "slow", { "retry-after": "7" }), { content: [text("abc")], cut: 3 }, { content: [text("abc")], error: ["overloaded_error", "Overloaded"], at: 3 });
  const client = anthropicAt(up.url), body = ask([user("busy")]);
  const e = await client.messages.create(body).catch((e) => e);
  assert.deepEqual([e.status, e.headers.get("retry-after")], [429, "7"]);
  await assert.rejects(streamed(client, body), /terminated|closed|ECONNRESET|Connection error/i);
  await assert.rejects(streamed(client, body), /Overloaded/);
  await assert.rejects(client.messages.create(ask([user("")])), /non-empty/);
  assert.equal(up.broken().length, 1);
});

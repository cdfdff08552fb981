// Episodes through the proxy: the model marks what it does with a tool that the client never sees, and what is done
// leaves when the budget is reached, inside a long turn too.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, asked, soon, textOf, user } from "./client.mjs";
import { recall } from "./phantom.mjs";
import { markersOf } from "./rules.mjs";
import { asFunction, bash, read, write } from "./untouched.mjs";
import { call, fault, text, think } from "./upstream.mjs";

export const BUDGET = 9_000; // tokens
const mark = (input) => call("delimiter", input);
const explore = (name) => mark({ action: "start", name, type: "expl" });
const act = (name, ...dependencies) => mark({ action: "start", name, type: "act", dependencies });
const learned = (description) => mark({ action: "end", description });
const done = () => mark({ action: "end" });
const open = (path) => call("Read", { file_path: path });
const change = (path) => call("Write", { file_path: path, content: "new" });

const blocks = (m) => (typeof m.content === "string" ? [text(m.content)] : m.content ?? []);
const unmarked = (list) => JSON.parse(JSON.stringify(list.map((m) => ({ role: m.role, content: blocks(m) })), (k, v) => (k === "cache_control" ? undefined : v)));
const results = (c) => c.body.messages.flatMap(blocks).filter((b) => b.type === "tool_result");
const said = (c, id) => { const b = results(c).find((b) => b.tool_use_id === id); return b && { text: typeof b.content === "string" ? b.content : b.content.map((x) => x.text).join("\n"), refused: Boolean(b.is_error) }; };
const evicted = (c) => c.raw.includes("[Evicted");
const content = (path) => `of ${path}\n${"a line of it that says something\n".repeat(180)}`;

// work is what a model says round by round: it looks at two files, then changes one.
export const work = (rounds, thinks = () => []) => Array.from({ length: rounds }, (_, n) => [
  [...thinks(n), explore(`look ${n}`)],
  [text(`I look ${n}.`), open(`/a${n}`), open(`/b${n}`)],
  [...thinks(n), learned(`the ${n} stands in b${n}`), act(`change ${n}`, `look ${n}`), open(`/c${n}`)],
  [change(`/b${n}`), done()],
]).flat();

export default function (w) {
  const mode = (more = {}) => ({ headers: { "x-tidemark-mode": "episodes", ...more } });
  const nothing = (what) => assert.ok(!JSON.stringify(what).includes("delimiter"), "the client sees no mark");
  const agentOf = (name, more = {}) => new Agent({ client: w.anthropic(mode()), tools: [read, bash, write], run: (c) => content(c.input.file_path), more: { metadata: { user_id: name }, ...more.body }, ...more });
  const told = (name) => w.api(`/v1/sessions/${encodeURIComponent(w.key(name))}/episodes?limit=200`);
  // begins holds that between two acts what was sent is sent again.
  const begins = (sent) => {
    let acts = 0;
    for (let i = 1; i < sent.length; i++) {
      const a = unmarked(sent[i - 1].body.messages), b = unmarked(sent[i].body.messages).slice(0, a.length);
      if (JSON.stringify(a) !== JSON.stringify(b)) acts++;
    }
    return acts;
  };

  for (const [stream, thinks] of [[true, true], [false, false], [true, false]]) {
    test(`explorations and actions leave, ${stream ? "streaming" : "whole"}${thinks ? ", with thinking" : ""}`, async () => {
      const name = w.fresh("work");
      w.up.script(name, ...work(6, thinks ? (n) => [think(`about ${n}`)] : undefined), [text("All done.")]);
      const agent = agentOf(name, { stream, body: { ...(thinks && { thinking: { type: "enabled", budget_tokens: 1024 } }) } });
      const m = await soon(agent.say(name));
      nothing(agent.history);
      assert.equal(textOf(m), "All done.");
      const sent = w.up.of(name), last = sent.at(-1);
      assert.ok(evicted(last), "something left");
      assert.ok(last.raw.includes("look 0") && !last.raw.includes("of /a0"), "the oldest exploration is a line");
      assert.ok(last.raw.includes(name), "the words of the person stay");
      for (const c of sent) assert.ok(c.usage.input_tokens + c.usage.cache_read_input_tokens + c.usage.cache_creation_input_tokens < 2 * BUDGET, "the context stays small");
      for (const c of sent) assert.ok(markersOf(c.body).length <= 2, "no cache marker more than the client's");
      const acts = begins(sent);
      assert.ok(acts > 0 && acts < sent.length / 4, `${acts} acts in ${sent.length} calls`);
      const e = await told(name);
      assert.equal(e.active, true);
      assert.equal(e.budget, BUDGET);
      assert.deepEqual(e.episodes.filter((x) => x.name === "change 5").map((x) => [x.type, x.dependencies, x.state !== "gone"]), [["act", ["look 5"], true]]);
      assert.equal(e.episodes.find((x) => x.name === "change 0").state, "gone");
      const view = JSON.stringify(await w.api(`/v1/sessions/${encodeURIComponent(w.key(name))}/view`));
      assert.ok(view.includes("[Evicted"), "the view shows it");
      const first = await w.api(`/v1/sessions/${encodeURIComponent(`${w.key(name)}#t1`)}/episodes?limit=200`);
      assert.deepEqual(first.episodes.map((x) => [x.name, x.state]), e.episodes.map((x) => [x.name, x.state]));
      for (const format of ["steps", "decisions"]) {
        const lines = (await w.api(`/v1/sessions/${encodeURIComponent(w.key(name))}/log?format=${format}#jsonl`)).trim().split("\n");
        assert.ok(lines.length > 0 && lines.every((l) => JSON.parse(l).session), format);
      }
    });
  }

  test("what left is read back by its name", async () => {
    const name = w.fresh("back");
    w.up.script(name, ...work(5), [recall("episode:look 0", "episode:no such")], [text("So it was.")]);
    const agent = agentOf(name);
    await soon(agent.say(name));
    const c = w.up.of(name).at(-1), ask = c.body.messages.at(-2).content.at(-1);
    assert.equal(ask.name, "memory_fault");
    const { text: back } = said(c, ask.id);
    assert.ok(back.includes("of /a0") && back.includes("of /b0") && back.includes('Read {"file_path":"/a0"}'), back.slice(0, 300));
    assert.match(back, /episode:no such is not in this conversation/);
    nothing(agent.history);
  });

  test("calls that are wrong are told so, and mark nothing", async () => {
    const name = w.fresh("wrong");
    const first = [done(), act("x"), mark({ action: "start", name: "y", type: "act" }), explore("z"), act("v", "z"), learned("found"), act("v", "z"), mark({ action: "go" })];
    w.up.script(name, first, [done(), open("/a")], [text("End.")]);
    const agent = agentOf(name);
    await soon(agent.say(name));
    const [, second] = w.up.of(name);
    assert.deepEqual(first.map((b) => said(second, b.id).refused), [true, false, true, true, true, true, true, true]);
    assert.match(said(second, first[2].id).text, /is open/);
    const e = await told(name);
    assert.deepEqual(e.episodes.filter((x) => x.name).map((x) => [x.name, x.type, x.state]), [["x", "act", "whole"]]);
    assert.match(said(w.up.of(name).at(-1), second.answer[0].id).text, /Ended action "x"/);
  });

  test("marks among the client's own calls, in parallel", async () => {
    const name = w.fresh("mixed");
    const first = [explore("a"), open("/1"), learned("it is 1"), act("b", "a"), change("/1"), done(), explore("c"), open("/2")];
    w.up.script(name, first, [learned("it is 2"), text("End.")]);
    const agent = agentOf(name);
    await soon(agent.say(name));
    const [, second] = w.up.of(name);
    assert.deepEqual(unmarked(second.body.messages)[1].content, first, "the reply as the model wrote it");
    for (const b of first.filter((b) => b.name === "delimiter")) assert.equal(said(second, b.id).refused, false, said(second, b.id).text);
    const e = await told(name);
    assert.deepEqual(e.episodes.map((x) => [x.name, x.calls, x.state]), [["a", 1, "whole"], ["b", 1, "whole"], ["c", 1, e.episodes[2].state]]);
  });

  test("a restart changes nothing: in an episode, behind an act, and killed in the middle", async () => {
    const name = w.fresh("again");
    const all = [...work(6), [text("All done.")]];
    w.up.script(name, ...all);
    const agent = agentOf(name);
    agent.history.push(user(name));
    for (let n = 0; ; n++) {
      if (n % 6 === 1) {
        await w.restart();
        agent.client = w.anthropic(mode());
      }
      const before = w.up.of(name).length;
      await soon(agent.once());
      if (n === 9 || n === 12) { // the same once more, behind a restart: it is sent as it was
        const [first] = w.up.of(name).slice(before);
        await w.restart();
        agent.client = w.anthropic(mode());
        w.up.script(name, [text("again")]);
        await soon(asked(agent.client, { ...agent.body(), messages: agent.body().messages.slice(0, -1) }, true));
        assert.deepEqual(unmarked(w.up.of(name).at(-1).body.messages), unmarked(first.body.messages));
        w.up.script(name, ...all.slice(w.up.of(name).length - 1 - (n === 9 ? 0 : 1)));
      }
      if (!(await agent.answer())) break;
    }
    const sent = w.up.of(name);
    assert.ok(evicted(sent.at(-1)));
    assert.ok(begins(sent.filter((c) => c.answer[0]?.text !== "again")) < sent.length / 4);
    assert.equal((await told(name)).episodes.filter((x) => x.name).length, 12);
  });

  test("the API refuses a request in which something left", async () => {
    const name = w.fresh("refused");
    let acted = 0;
    const all = [...work(5), [text("All done.")]];
    let n = 0;
    w.up.script(name, (body) => {
      const left = JSON.stringify(body.messages).includes("[Evicted");
      return left && acted++ === 0 ? fault(429, "slow down", { "retry-after": "0" }) : all[n++];
    });
    const agent = agentOf(name);
    agent.client = w.anthropic({ ...mode(), maxRetries: 2 });
    assert.equal(textOf(await soon(agent.say(name))), "All done.");
    assert.ok(acted > 1);
  });

  test("a client with a tool of that name keeps it, and its marks count", async () => {
    const name = w.fresh("own");
    const own = { name: "delimiter", description: "Mark.", input_schema: { type: "object", properties: {} } };
    w.up.script(name, ...work(5), [text("All done.")]);
    const agent = agentOf(name);
    Object.assign(agent, { tools: [read, bash, write, own], run: (c) => (c.name === "delimiter" ? "noted" : content(c.input.file_path)) });
    await soon(agent.say(name));
    const last = w.up.of(name).at(-1);
    assert.equal(last.body.tools.filter((t) => t.name === "delimiter").length, 1);
    assert.ok(evicted(last) && last.raw.includes('exploration \\"look 0\\"'), "what it marked left");
  });

  test("a budget that cannot be met is told", async () => {
    const name = w.fresh("short");
    w.up.script(name, [explore("all of it")], ...Array.from({ length: 8 }, (_, n) => [open(`/a${n}`)]), [text("End.")]);
    const agent = agentOf(name);
    await soon(agent.say(name));
    const last = w.up.of(name).at(-1);
    assert.match(JSON.stringify(last.body.messages.at(-1)), /over the budget of 9000, and nothing more may leave/);
    const e = await told(name);
    assert.ok(e.short > 0 && e.open === "all of it", JSON.stringify({ ...e, episodes: [] }));
    const a = await w.api(`/v1/sessions/${encodeURIComponent(w.key(name))}/context?limit=1`).catch(() => null);
    if (a) assert.ok(JSON.stringify(a).includes('"short"'));
  });

  test("chat completions", async () => {
    for (const stream of [true, false]) {
      const name = w.fresh("chat");
      w.up.script(name, ...work(6), [text("All done.")]);
      const tools = [read, bash, write].map(asFunction), client = w.openai(mode());
      const messages = [{ role: "system", content: "Be brief." }, user(name)];
      for (;;) {
        const body = { model: "fake-1", user: name, tools, messages };
        const r = await soon(stream ? client.chat.completions.stream(body).finalChatCompletion() : client.chat.completions.create(body));
        const { role, content: words, tool_calls: calls } = r.choices[0].message;
        nothing(r.choices[0].message);
        messages.push({ role, content: words, ...(calls?.length && { tool_calls: calls.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } })) }) });
        if (!calls?.length) break;
        for (const c of calls) messages.push({ role: "tool", tool_call_id: c.id, content: content(JSON.parse(c.function.arguments).file_path) });
      }
      const last = w.up.of(name).at(-1);
      assert.ok(evicted(last) && last.raw.includes("look 0") && !last.raw.includes("of /a0"), "the oldest is a line");
      assert.equal((await told(name)).episodes.find((x) => x.name === "change 0").state, "gone");
    }
  });

  test("with trim, and without tools of ours", async () => {
    for (const how of ["episodes+trim", "episodes"]) {
      const name = w.fresh("trim");
      w.up.script(name, ...work(5).map((r) => r.filter((b) => b.name !== "delimiter")).map((r) => (r.length ? r : [open("/x")])), [text("All done.")]);
      const agent = agentOf(name);
      agent.client = w.anthropic(mode({ "x-tidemark-mode": how }));
      await soon(agent.say(name));
      assert.ok(evicted(w.up.of(name).at(-1)), "work that nobody marked leaves, too");
    }
  });
}

// Which conversation a request is of. What the client never saw is the proof: it is put back exactly where the
// history is known, and nowhere else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, asked, streamed, textOf, user } from "./client.mjs";
import { recall, release, shape } from "./phantom.mjs";
import { bash, read } from "./untouched.mjs";
import { call, gate, text, think } from "./upstream.mjs";

const mark = { cache_control: { type: "ephemeral" } };
const reminder = (s) => text(`<system-reminder>\n${s}\n</system-reminder>`);
const ours = (c) => JSON.stringify(c.body.messages).match(/"name":"memory_(fault|release)"/g)?.length ?? 0;

export default function (w) {
  const ask = (name, more = {}) => ({ model: "fake-1", max_tokens: 4000, tools: [read, bash], metadata: { user_id: name }, messages: [user([reminder("today is Monday"), text(name)])], ...more });
  const result = (b, content = "of it") => ({ type: "tool_result", tool_use_id: b.id, content });

  // begun is a conversation with a call of ours in its first reply, one of the client's, and the next request.
  async function begun(name, more = {}, session = name) {
    const first = [think("hm"), text("Both."), recall("/b"), call("Read", { file_path: "/a" })];
    w.up.script(name, first, [text("Done.")], [text("Yes.")], [text("Yes.")], [text("Yes.")]);
    const body = ask(name, { metadata: { user_id: session }, ...more }), m = await asked(w.anthropic(), body, true);
    const messages = [...body.messages, { role: "assistant", content: m.content }, user([result(m.content.at(-1))])];
    return { body: { ...body, messages }, first, m };
  }
  const last = (name) => w.up.of(name).at(-1);

  test("instructions that change with every request are no other conversation", async () => {
    const name = w.fresh();
    const system = (n) => [text(`x-anthropic-billing-header: cc_version=2.0.${n}; cch=${n}a3f;`), { ...text("You are an agent."), ...mark }];
    const { body, first } = await begun(name, { system: system(1) });
    await asked(w.anthropic(), { ...body, system: system(2) }, true);
    assert.deepEqual(last(name).body.messages[1].content, first);
    assert.deepEqual(last(name).body.system, system(2), "they are sent as they are");
  });

  test("cache markers move, and are sent where they are", async () => {
    const name = w.fresh();
    const first = ask(name).messages;
    first[0].content[1] = { ...first[0].content[1], ...mark };
    const { body, first: reply } = await begun(name, { messages: first });
    const next = structuredClone(body.messages);
    delete next[0].content[1].cache_control;
    Object.assign(next[2].content[0], mark);
    next[1].content.at(-1).cache_control = mark.cache_control;
    await asked(w.anthropic(), { ...body, messages: next }, true);
    const sent = last(name).body.messages;
    assert.deepEqual(sent[0], next[0]);
    assert.deepEqual(sent[1].content, [...reply.slice(0, 3), { ...reply[3], ...mark }]);
    assert.deepEqual(sent[2].content.filter((b) => b.cache_control).map((b) => b.tool_use_id), [reply[3].id]);
  });

  test("reminders come, change and go", async () => {
    const name = w.fresh();
    const { body, first } = await begun(name);
    const next = structuredClone(body.messages);
    next[0].content = [reminder("today is Tuesday"), reminder("the list of tasks is empty"), text(name)];
    next[2].content.push(reminder("a.go was changed"));
    await asked(w.anthropic(), { ...body, messages: next }, true);
    assert.deepEqual(last(name).body.messages[1].content, first);
    assert.deepEqual(last(name).body.messages[0], next[0]);
    const plain = structuredClone(next);
    plain[0].content = name; // a string is one block of text
    await asked(w.anthropic(), { ...body, messages: plain }, true);
    assert.deepEqual(last(name).body.messages[1].content, first);
    assert.equal(last(name).body.messages[0].content, name);
  });

  test("thinking that the client leaves out is left out", async () => {
    const name = w.fresh();
    const { body, first } = await begun(name);
    const next = structuredClone(body.messages);
    next[1].content.shift();
    await asked(w.anthropic(), { ...body, messages: next }, true);
    assert.deepEqual(last(name).body.messages[1].content, first.slice(1));
  });

  test("what the client edits is sent as it is, behind what it did not", async () => {
    const name = w.fresh();
    const { body, first } = await begun(name);
    const m = await asked(w.anthropic(), body, true);
    const said = (words) => [...body.messages, { role: "assistant", content: m.content }, user(words)];
    await asked(w.anthropic(), { ...body, messages: said("delete file A") }, true);
    await asked(w.anthropic(), { ...body, messages: said("NO, keep file A") }, true);
    const sent = last(name).body.messages;
    assert.equal(sent.at(-1).content, "NO, keep file A");
    assert.ok(!JSON.stringify(sent).includes("delete file A"));
    assert.deepEqual(sent[1].content, first, "the part that stayed is known");
  });

  test("a rewind goes back, and forward again on another way", async () => {
    const name = w.fresh();
    const { body, m } = await begun(name);
    const done = await asked(w.anthropic(), body, true);
    await asked(w.anthropic(), { ...body, messages: [...body.messages, { role: "assistant", content: done.content }, user("on")] }, true);
    // Back to the first message, which is put otherwise: nothing of what followed is there.
    const other = [user(`${name}, but otherwise`)];
    w.up.script(`${name}, but otherwise`, [text("Other."), release("/q"), call("Bash", { command: "x" })], [text("Good.")]);
    const o = await asked(w.anthropic(), { ...body, messages: other }, true);
    assert.deepEqual(last(name).body.messages, other);
    await asked(w.anthropic(), { ...body, messages: [...other, { role: "assistant", content: o.content }, user([result(o.content.at(-1))])] }, true);
    assert.equal(ours(last(name)), 1);
    assert.ok(!JSON.stringify(last(name).body.messages).includes("Both."));
    // And the first way again, whose reply is known: the client kept it as a copy.
    w.up.script(name, [text("Back.")]);
    await asked(w.anthropic(), { ...body, messages: [...body.messages.slice(0, 1), { role: "assistant", content: m.content }, user([result(m.content.at(-1), "another result")])] }, true);
    const sent = last(name).body.messages;
    assert.deepEqual([ours(last(name)), sent.length], [1, 3]);
    assert.ok(JSON.stringify(sent[2]).includes("another result"));
  });

  test("a rewind to before a call of ours has none", async () => {
    const name = w.fresh();
    const { body } = await begun(name);
    await asked(w.anthropic(), body, true);
    w.up.script(name, [text("Anew.")]);
    await asked(w.anthropic(), { ...body, messages: body.messages.slice(0, 1) }, true);
    assert.deepEqual(last(name).body.messages, body.messages.slice(0, 1));
  });

  test("a reply that the client changed is the client's", async () => {
    const name = w.fresh();
    const { body } = await begun(name);
    const next = structuredClone(body.messages);
    next[1].content.find((b) => b.type === "text").text = "What the client made up.";
    await asked(w.anthropic(), { ...body, messages: next }, true);
    assert.deepEqual(last(name).body.messages, next);
  });

  test("ten sub-agents with equal prompts at once each have what is theirs", async () => {
    const name = w.fresh();
    const own = new Map(); // calls to the one who made them
    let born = 0;
    w.up.script(name, (body) => {
      const ids = body.messages.flatMap((m) => (Array.isArray(m.content) ? m.content : [])).filter((b) => b.type === "tool_use").map((b) => b.id);
      const who = ids.length === 0 ? ++born : own.get(ids[0]);
      assert.ok(who && ids.every((id) => own.get(id) === who), `calls of ${[...new Set(ids.map((id) => own.get(id)))]} together`);
      const steps = body.messages.filter((m) => m.role === "assistant").length;
      const mine = (b) => { own.set(b.id, who); return b; };
      if (steps >= 5) return [text(`agent ${who} is done`)];
      return [text("The same words."), mine(recall("/same")), mine(call("Read", { file_path: "/same" })), ...(steps % 2 ? [mine(release("/same"))] : [])];
    });
    const agents = Array.from({ length: 10 }, (_, i) => new Agent({ client: w.anthropic(), tools: [read], stream: i % 2 === 0, run: () => "the same result", more: { metadata: { user_id: name }, system: "You are a sub-agent." } }));
    const ends = await Promise.all(agents.map((a) => a.say(name)));
    assert.equal(new Set(ends.map(textOf)).size, 10);
    const finals = w.up.of(name).filter((c) => textOf({ content: c.answer }).includes("is done"));
    assert.equal(finals.length, 10);
    for (const c of finals) assert.equal(ours(c), 5 + 2, shape(c.body.messages).join("\n"));
  });

  test("calls beside the conversation do not disturb it", async () => {
    const name = w.fresh();
    const { body, first } = await begun(name);
    w.up.script("a title for", [text("A title")]);
    const title = { model: "small-1", max_tokens: 50, metadata: { user_id: name }, messages: [user(`a title for ${name}`)] };
    assert.equal(textOf(await asked(w.anthropic(), title, false)), "A title");
    assert.deepEqual(w.up.calls.at(-1).body, title);
    await asked(w.anthropic(), body, true);
    assert.deepEqual(last(name).body.messages[1].content, first);
  });

  test("two who begin with equal words never meet", async () => {
    const name = w.fresh(), secret = `the password is hunter2-${name}`;
    const one = w.anthropic({ key: "sk-anna" }), two = w.anthropic({ key: "sk-bert" });
    const body = ask(name);
    w.up.script(name, [recall("/a"), text("x"), call("Read", { file_path: "/a" })], [text("x"), call("Read", { file_path: "/a" })]);
    const a = await asked(one, body, true), b = await asked(two, body, true);
    const grown = (m, content) => ({ ...body, messages: [...body.messages, { role: "assistant", content: m.content }, user([result(m.content.at(-1), content)])] });
    w.up.script(secret, [text("I keep it.")]);
    await asked(one, grown(a, secret), true);
    const key = w.key(name, "sk-anna");
    const log = (await w.api(`/v1/sessions/${encodeURIComponent(key)}/log?limit=100`)).entries;
    const stored = log.filter((e) => JSON.stringify(e).includes(secret)).map((e) => e.id);
    assert.ok(stored.length > 0, "it is kept for the one");
    // The other asks for it by every name that there is.
    w.up.script(name, [recall("/a", ...stored.map((id) => `${id}#0`)), release(...stored.map((id) => `${id}#0`))], [text("It is not there.")], [text("Nothing.")]);
    const c = await asked(two, grown(b, "harmless"), true);
    await asked(two, { ...grown(b, "harmless"), messages: [...grown(b, "harmless").messages, { role: "assistant", content: c.content }, user("show me")] }, true);
    for (const sent of w.up.calls.filter((x) => x.headers.authorization === "Bearer sk-bert")) assert.ok(!sent.raw.includes(secret), "what the other is sent has nothing of it");
    assert.ok(!JSON.stringify(c).includes("hunter2"));
    // Equal histories to the last byte, too: what the one's model asked us is not put into the other's.
    const copied = w.fresh();
    w.up.script(copied, [text("x"), recall("/a")], [text("y")], [text("z")], [text("z")]);
    const start = ask(copied), m = await asked(one, start, true);
    const next = { ...start, messages: [...start.messages, { role: "assistant", content: m.content }, user("on")] };
    await asked(one, next, true);
    assert.equal(ours(last(copied)), 1);
    await asked(two, next, true);
    assert.equal(ours(last(copied)), 0);
  });

  test("one credential with two sessions has two conversations", async () => {
    const name = w.fresh();
    w.up.script(name, [text("x"), recall("/a")], [text("y")], [text("z")], [text("z")]);
    const start = ask(name, { metadata: undefined }), to = (id) => w.anthropic({ headers: { "x-tidemark-proxy": id } });
    const m = await asked(to("one"), start, true);
    const next = { ...start, messages: [...start.messages, { role: "assistant", content: m.content }, user("on")] };
    await asked(to("two"), next, true);
    assert.equal(ours(last(name)), 0);
    await asked(w.anthropic({ baseURL: `${w.url}/p/one` }), next, true);
    assert.equal(ours(last(name)), 1, "by path as by header");
  });

  test("without a name the first words are one", async () => {
    const name = w.fresh();
    const { body, first } = await begun(name, { metadata: undefined }, undefined);
    await w.restart();
    await asked(w.anthropic(), body, false);
    assert.deepEqual(last(name).body.messages[1].content, first);
  });

  test("two requests of one conversation at once", async () => {
    const name = w.fresh();
    const { body, first } = await begun(name);
    const g = gate(), h = gate();
    w.up.script(name, { content: [text("Left."), recall("/l"), call("Read", { file_path: "/l" })], gate: g, at: 3 }, { content: [text("Right."), release("/r"), call("Read", { file_path: "/r" })], gate: h, at: 3 }, [text("End.")], [text("End.")]);
    const a = streamed(w.anthropic(), body);
    await g.reached;
    const b = streamed(w.anthropic(), body);
    await h.reached;
    h.open();
    const right = (await b).message;
    g.open();
    const left = (await a).message;
    assert.deepEqual([textOf(left), textOf(right)], ["Left.", "Right."]);
    for (const [m, mine, not] of [[left, "memory_fault", "/r"], [right, "memory_release", "/l"]]) {
      await streamed(w.anthropic(), { ...body, messages: [...body.messages, { role: "assistant", content: m.content }, user([result(m.content.at(-1))])] });
      const sent = last(name).body.messages;
      assert.deepEqual(sent[1].content, first);
      assert.ok(sent[3].content.some((x) => x.name === mine), shape(sent).join("\n"));
      assert.ok(!JSON.stringify(sent).includes(`"${not}"`));
    }
  });

  test("two equal answers to one request, and a restart", async () => {
    const name = w.fresh(), body = ask(name);
    const first = [text("Both."), recall("/b"), call("Read", { file_path: "/a" })];
    w.up.script(name, [text("The same.")], [text("The same.")], first, [text("Done.")]);
    await asked(w.anthropic(), body, true);
    const same = await asked(w.anthropic(), body, true);
    const two = { ...body, messages: [...body.messages, { role: "assistant", content: same.content }, user("on")] }, m = await asked(w.anthropic(), two, true);
    await w.restart();
    const messages = [...two.messages, { role: "assistant", content: m.content }, user([result(m.content.at(-1))])];
    await asked(w.anthropic(), { ...two, messages }, true);
    assert.deepEqual(last(name).body.messages[3].content, first, "what was kept can be read");
  });

  test("the log shows it as any other conversation", async () => {
    const name = w.fresh();
    const { body } = await begun(name);
    const m = await asked(w.anthropic(), body, true);
    await asked(w.anthropic(), { ...body, messages: [...body.messages, { role: "assistant", content: m.content }, user("thanks")] }, true);
    const key = w.key(name), at = `/v1/sessions/${encodeURIComponent(key)}`;
    assert.ok((await w.api("/v1/sessions?limit=1000")).sessions.some((s) => s.key === key), `${key} is listed`);
    const lines = (await w.api(`${at}/log?format=jsonl`)).trim().split("\n").map((l) => JSON.parse(l));
    assert.deepEqual(lines.filter((l) => l.role).map((l) => l.role), ["user", "assistant", "user", "assistant", "user", "assistant"]);
    assert.ok((await w.api(`${at}/view?messages=1`)).length ?? true);
  });
}

// What nobody here knows: system messages between the others, as Claude Code sends them, roles, blocks and members of
// tomorrow. They go out as they came, in places where the API takes them, and the rest is treated. What cannot be treated
// is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, soon, textOf, user } from "./client.mjs";
import { work } from "./episodes.mjs";
import { file, stubsOf } from "./paging.mjs";
import { bash, read, send, write } from "./untouched.mjs";
import { call, text } from "./upstream.mjs";

const BETA = "mid-conversation-system-2026-04-07";
const blocks = (m) => (typeof m.content === "string" ? [text(m.content)] : m.content);

// Instructed is an agent that says how much room is left behind each message of the user, marked where it is the last, and
// now and then a rule that holds from there on.
class Instructed extends Agent {
  body() {
    const body = super.body();
    const messages = [];
    for (const [i, m] of body.messages.entries()) {
      if (Array.isArray(m.content)) for (const b of m.content) delete b.cache_control;
      messages.push(m);
      if (m.role !== "user") continue;
      const said = i % 6 === 2 ? `From here on rule ${i} holds.` : `<total_tokens>${1_000_000 - i} tokens left</total_tokens>`;
      messages.push({ role: "system", content: i === body.messages.length - 1 ? [{ ...text(said), cache_control: { type: "ephemeral" } }] : said });
    }
    return { ...body, messages };
  }
}

export default function (w) {
  const agentOf = (name, mode, model = {}) => new Instructed({
    client: w.anthropic({ headers: { "x-tidemark-mode": mode, "anthropic-beta": `${BETA},never-heard-of-2031-01-01` } }), tools: [read, bash, write],
    run: ({ name: tool, input }) => (tool === "Read" ? file(input.file_path) : "done"),
    more: { metadata: { user_id: name }, container: { id: "c" }, context_management: { edits: [] }, output_config: { effort: "high" }, system: [{ ...text("You are an agent."), cache_control: { type: "ephemeral" } }], ...model },
  });
  const untouched = async (name) => (await w.api(`/v1/sessions/${encodeURIComponent(w.key(name))}/anatomy?limit=200`)).calls.filter((a) => a.proxy?.untouched);
  const share = (calls) => {
    const sum = (of) => calls.reduce((n, c) => n + of(c.usage), 0);
    return sum((u) => u.cache_read_input_tokens) / sum((u) => u.cache_read_input_tokens + u.cache_creation_input_tokens + u.input_tokens);
  };

  for (const mode of ["page", "page+trim"]) {
    test(`results leave beside system messages, ${mode}`, async () => {
      const name = w.fresh("others");
      let k = 0;
      w.up.script(name, () => (++k > 30 ? [text("All read.")] : [call("Read", { file_path: `/src/f${k}.go` })]));
      const agent = agentOf(name, mode);
      assert.equal(textOf(await soon(agent.say(name))), "All read.");
      const calls = w.up.of(name), last = calls.at(-1);
      assert.ok(stubsOf(last.body.messages).length > 10, `${stubsOf(last.body.messages).length} stubs`);
      assert.ok(share(calls) > 0.6, `${(100 * share(calls)).toFixed(0)} % are read from the cache`);
      assert.ok(last.headers["anthropic-beta"].includes("never-heard-of-2031-01-01"), "what the client says of itself goes on");
      assert.deepEqual([last.body.container, last.body.context_management, last.body.output_config], [{ id: "c" }, { edits: [] }, { effort: "high" }]);
      // Each system message is where the client had it; ours stands behind the last one's own words, in it.
      const own = agent.history.length > 1 ? agent.body().messages.slice(0, last.body.messages.length) : [];
      const said = (m) => blocks(m).map((b) => b.text);
      for (const [i, m] of last.body.messages.entries()) {
        assert.equal(m.role, own[i].role);
        if (m.role === "system") assert.deepEqual(said(m).slice(0, 1), said(own[i]));
      }
      assert.deepEqual(await untouched(name), []);
      // After a restart the same is out.
      await w.restart();
      agent.client = agentOf(name, mode).client;
      k = 100;
      await agent.say("anything else?");
      assert.ok(stubsOf(w.up.of(name).at(-1).body.messages).length >= stubsOf(last.body.messages).length);
      assert.deepEqual(await untouched(name), []);
    });
  }

  test("episodes leave, and the rules that were said among them stay", async () => {
    const name = w.fresh("others");
    w.up.script(name, ...work(6), [text("All done.")]);
    const agent = agentOf(name, "episodes");
    agent.run = (c) => `of ${c.input.file_path}\n${"a line of it that says something\n".repeat(180)}`;
    assert.equal(textOf(await soon(agent.say(name))), "All done.");
    const last = w.up.of(name).at(-1);
    assert.ok(last.raw.includes("[Evicted"), "something left");
    const rules = agent.body().messages.filter((m) => m.role === "system" && blocks(m)[0].text.startsWith("From here on")).slice(0, -1);
    assert.ok(rules.length > 2);
    for (const m of rules) assert.ok(last.raw.includes(blocks(m)[0].text), blocks(m)[0].text);
    assert.ok(last.body.messages.length < agent.history.length);
    assert.deepEqual(await untouched(name), []);
  });

  test("a model that takes them needs no beta, and one that does not says so itself", async () => {
    const name = w.fresh("others");
    w.up.script(name, [text("Yes.")]);
    const agent = agentOf(name, "page", { model: "claude-opus-4-8" });
    agent.client = w.anthropic({ headers: { "x-tidemark-mode": "page" } });
    assert.equal(textOf(await agent.say(name)), "Yes.");
    const older = w.fresh("others");
    const refused = await send(`${w.url}/v1/messages`, { "x-tidemark-token": w.token, "x-api-key": "sk-k" }, JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 9, messages: [user(older), { role: "system", content: "Be short." }] }));
    assert.deepEqual([refused.status, refused.body.includes("not supported on this model")], [400, true]);
    assert.equal(w.up.broken(older).length, 1); // it was the client's own
  });

  test("what is kept here takes them too", async () => {
    const key = w.fresh("others");
    const body = { model: "m", max_tokens: 99, messages: [user("hello"), { role: "assistant", content: "hi" }, user("and now?"), { role: "system", content: "Be short." }, { role: "system", content: "<total_tokens>9 tokens left</total_tokens>" }] };
    const r = await send(`${w.url}/v1/messages`, { "x-tidemark-token": w.token, "x-tidemark-session": key }, JSON.stringify(body));
    assert.equal(r.status, 200, r.body);
    const log = await w.api(`/v1/sessions/${encodeURIComponent(r.headers["x-tidemark-session"])}/log?format=jsonl`);
    assert.ok(log.includes("Be short.") && !log.includes("total_tokens"), log);
  });

  test("what cannot be treated is told", async () => {
    const name = w.fresh("others");
    w.up.free(name);
    const head = { "x-tidemark-token": w.token, authorization: "Bearer sk-clients-own", "x-tidemark-mode": "page" };
    for (const [raw, why] of [
      [`{"model":"m","max_tokens":9,"metadata":{"user_id":"${name}"},"messages":[{"role":"user","content":"a"},{"role":"user","role":"user","content":"b"}]}`, /^unreadable: message 2 cannot be read: the key role stands twice/],
      [`${name}, which is no JSON`, /^unreadable: /],
      [`{"model":"m","max_tokens":9,"metadata":{"user_id":"${name}"},"messages":[{"role":"user","content":"a"}]}`, /^$/],
    ]) {
      const r = await send(`${w.url}/v1/messages`, head, raw);
      assert.deepEqual([r.status, JSON.parse(r.body).got], [200, Buffer.byteLength(raw)], "it goes out as it came");
      assert.match(r.headers["x-tidemark-untouched"] ?? "", why, raw);
    }
    const health = await w.api("/healthz");
    assert.ok(health.proxy.untouched >= 2 && health.proxy.requests >= health.proxy.untouched && health.warnings.some((s) => s.includes("passed on untouched")), JSON.stringify(health));
    assert.match(await w.api("/metrics"), /^tidemark_proxy_untouched_total\{reason="unreadable"\} \d+$/m);
    assert.ok((await untouched(name)).some((a) => /message 2 cannot be read/.test(a.proxy.untouched)));
  });
}

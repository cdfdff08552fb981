// A long session past all zones: results leave upstream and come back, and the client's own view stays as it was.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, streamed, textOf, user } from "./client.mjs";
import { recall, release } from "./phantom.mjs";
import { bash, read, write } from "./untouched.mjs";
import { call, fault, text, think } from "./upstream.mjs";

const blocks = (m) => (typeof m.content === "string" ? [text(m.content)] : m.content);
const results = (messages) => messages.flatMap(blocks).filter((b) => b.type === "tool_result");
const contentOf = (b) => (typeof b.content === "string" ? b.content : b.content.map((c) => c.text).join(""));
export const stubsOf = (messages) => results(messages).filter((b) => /^\[(Paged out|Cleared)/.test(contentOf(b)));
const handleIn = (b) => /"paths": \["([^"]+)"\]/.exec(contentOf(b))?.[1];
const plain = (m) => JSON.stringify({ role: m.role, content: blocks(m).map(({ cache_control: _, ...b }) => b) });

// faithful holds that what stands in the place of a file's content is that content, or a stub of that file.
export function faithful(messages, contents) {
  const paths = new Map(messages.flatMap(blocks).filter((b) => b.type === "tool_use" && b.name === "Read").map((b) => [b.id, b.input.file_path]));
  for (const b of results(messages)) {
    const path = paths.get(b.tool_use_id), is = contentOf(b);
    if (path && !contents(path).includes(is)) assert.ok(is.startsWith(`[Paged out: Read ${path} (`), `in the place of ${path}: ${is.slice(0, 200)}`);
  }
}

// file is what a file holds, with what is hard to keep to the byte.
export const file = (path, version = 1) => `   1\tpackage é // ${path} v${version}\r\n${`   2\t\tx := "quoted \\ \t 😀" // ${path}\n`.repeat(110)}\n`;

export default function (w) {
  // disk is the machine of an agent.
  const disk = () => {
    const versions = new Map();
    const run = ({ name, input }) => {
      if (name === "Write") {
        versions.set(input.file_path, (versions.get(input.file_path) ?? 1) + 1);
        return "written";
      }
      return name === "Read" ? file(input.file_path, versions.get(input.file_path)) : `output of ${input.command}\n`.repeat(60);
    };
    return { run, versions };
  };
  // An agent with as many cache markers as the API takes: one behind its tools, one behind its instructions, two in the messages.
  const agentOf = (name, more = {}) => new Agent({ client: w.anthropic(), tools: [read, bash, { ...write, cache_control: { type: "ephemeral" } }], more: { metadata: { user_id: name }, system: [{ ...text("You are an agent."), cache_control: { type: "ephemeral" } }], ...more.more }, run: disk().run, ...more });

  // breaks counts the requests whose prefix is not that of the one before, up to what is new.
  function breaks(calls) {
    let n = 0;
    for (let i = 1; i < calls.length; i++) {
      const was = calls[i - 1].body.messages, is = calls[i].body.messages;
      // The note of the request before stood behind its last message's own blocks, and is gone.
      const same = was.slice(0, -1).every((m, k) => plain(m) === plain(is[k])) && blocks(was.at(-1)).slice(0, blocks(is[was.length - 1]).length).every((b, k) => plain({ role: "", content: [b] }) === plain({ role: "", content: [blocks(is[was.length - 1])[k]] }));
      const head = JSON.stringify([calls[i].body.tools, calls[i].body.system]) === JSON.stringify([calls[i - 1].body.tools, calls[i - 1].body.system]);
      assert.ok(head, "tools and instructions stay");
      if (!same) n++;
    }
    return n;
  }

  test("results leave in batches, the client sees nothing of it, and the prefix stands between", async () => {
    const name = w.fresh();
    let k = 0;
    w.up.script(name, () => (++k > 50 ? [text("All read.")] : k % 7 === 0 ? [text(`Run ${k}.`), call("Bash", { command: `test ${k}` })] : [think(`${k}`), call("Read", { file_path: `/src/f${k}.go` })]));
    const agent = agentOf(name);
    assert.equal(textOf(await agent.say(name)), "All read.");
    const calls = w.up.of(name), last = calls.at(-1);
    assert.equal(calls.length, 51);
    const stubs = stubsOf(last.body.messages);
    assert.ok(stubs.length > 20, `${stubs.length} stubs`);
    assert.ok(last.raw.length < 4 * w.window, `${last.raw.length} bytes are sent`);
    // All that is no stub is the client's own.
    const sent = new Map(results(last.body.messages).map((b) => [b.tool_use_id, b]));
    for (const b of results(agent.history)) {
      const s = sent.get(b.tool_use_id);
      assert.ok(s, "each call has its result");
      if (!stubs.includes(s)) assert.equal(contentOf(s), contentOf(b));
      else assert.ok(handleIn(s), contentOf(s));
    }
    const acts = breaks(calls);
    assert.ok(acts > 0 && acts <= 12, `the prefix breaks ${acts} times in ${calls.length} requests`);
    const [readTokens, all] = calls.reduce(([r, n], c) => [r + c.usage.cache_read_input_tokens, n + c.usage.cache_read_input_tokens + c.usage.cache_creation_input_tokens + c.usage.input_tokens], [0, 0]);
    assert.ok(readTokens / all > 0.6, `${(100 * readTokens / all).toFixed(0)} % are read from the cache`);
    console.log(`# ${w.host}: ${calls.length} requests, ${stubs.length} stubs, ${acts} breaks, ${(100 * readTokens / all).toFixed(1)} % cached, ${last.raw.length} bytes instead of ${JSON.stringify(agent.body()).length}`);
    // The same again, after a restart: what is out stays out, at the same place.
    await w.restart();
    agent.client = w.anthropic();
    k = 100;
    await agent.say("anything else?");
    const again = w.up.of(name).at(-1), now = results(again.body.messages);
    for (const [i, b] of results(last.body.messages).entries()) {
      assert.ok(contentOf(now[i]) === contentOf(b) || !stubs.includes(b) && /^\[(Paged out|Cleared)/.test(contentOf(now[i])), contentOf(now[i]).slice(0, 200));
    }
  });

  for (const [what, restart] of [["", false], [", also after a restart", true]]) {
    test(`what left comes back to the byte, by path and by handle${restart ? what : ""}`, async () => {
      const name = w.fresh();
      let k = 0, asks = null, given = [];
      w.up.script(name, (body) => {
        const stubs = stubsOf(body.messages).filter((b) => /Read \/src/.test(contentOf(b)));
        if (asks === null && stubs.length >= 4) {
          const path = /\/src\/f\d+\.go/.exec(contentOf(stubs[0]))[0], other = /\/src\/f\d+\.go/.exec(contentOf(stubs[1]))[0];
          asks = [path, other];
          return [text("I need two again."), recall(path), recall(handleIn(stubs[1]))];
        }
        if (asks && given.length === 0) given = results(body.messages).slice(-2).map(contentOf);
        return given.length > 0 || ++k > 60 ? [text("All read.")] : [call("Read", { file_path: `/src/f${k}.go` })];
      });
      const agent = agentOf(name);
      if (restart) {
        const plainRun = agent.run;
        agent.run = async (c) => {
          if (c.input.file_path === "/src/f9.go") {
            await w.restart();
            agent.client = w.anthropic();
          }
          return plainRun(c);
        };
      }
      await agent.say(name);
      assert.ok(asks, "something left");
      for (const [i, path] of asks.entries()) {
        assert.ok(given[i].includes(file(path)), `${path} comes back to the byte: ${given[i].slice(0, 300)}`);
        assert.ok(!given[i].includes("was changed"), given[i].slice(0, 200));
        assert.match(given[i], /stored \d{4}-\d\d-\d\d/, "with the time of the copy");
      }
    });
  }

  test("a copy of what was written later says so first", async () => {
    const name = w.fresh();
    let k = 0, asked = null, given = null;
    w.up.script(name, (body) => {
      if (asked === null && stubsOf(body.messages).length >= 4) {
        const stub = stubsOf(body.messages).find((b) => /Read \/src/.test(contentOf(b)));
        asked = /\/src\/f\d+\.go/.exec(contentOf(stub))[0];
        return [call("Write", { file_path: asked, content: "anew" })];
      }
      if (asked && given === null) {
        given = "";
        return [recall(asked)];
      }
      if (given === "") given = contentOf(results(body.messages).at(-1));
      return given || ++k > 60 ? [text("All read.")] : [call("Read", { file_path: `/src/f${k}.go` })];
    });
    await agentOf(name).say(name);
    assert.ok(given?.includes(file(asked)), "the copy to the byte");
    assert.match(given, new RegExp(`^${asked} was changed after this copy was stored \\(Write, `));
  });

  test("what the model lets go leaves with a batch, whatever its age", async () => {
    const run = async (lets) => {
      const name = w.fresh();
      let k = 0, n = null;
      w.up.script(name, (body) => {
        ++k;
        if (k > 14) {
          n = stubsOf(body.messages).length;
          return [text("Done.")];
        }
        const out = [call("Read", { file_path: `/src/f${k}.go` })];
        return lets && k > 3 ? [release(...Array.from({ length: k - 1 }, (_, i) => `/src/f${i + 1}.go`)), ...out] : out;
      });
      await agentOf(name).say(name);
      return n;
    };
    const [without, released] = [await run(false), await run(true)];
    assert.ok(released > without, `${released} stubs with releases, ${without} without`);
  });

  test("from advisory on the model is told, behind the last marker, and the client is not", async () => {
    const name = w.fresh();
    let k = 0;
    w.up.script(name, () => (++k > 25 ? [text("Done.")] : [call("Read", { file_path: `/src/f${k}.go` })]));
    const agent = agentOf(name);
    await agent.say(name);
    const told = w.up.of(name).filter((c) => blocks(c.body.messages.at(-1)).some((b) => b.type === "text" && /^Context: /.test(b.text)));
    assert.ok(told.length > 0, "no notes");
    assert.ok(!w.up.of(name).slice(0, 3).some((c) => told.includes(c)), "not while there is room");
    for (const c of told) {
      const bs = blocks(c.body.messages.at(-1));
      assert.match(bs.at(-1).text, /^Context: /, "it stands last");
      assert.equal(bs.at(-1).cache_control, undefined);
      assert.ok(bs.at(-1).text.length < 4000);
      assert.equal(JSON.stringify(c.body.messages.slice(0, -1)).includes("Context: "), false, "the one before is gone");
    }
  });

  test("the count is that of what is sent, also when much is out", async () => {
    const name = w.fresh();
    let k = 0;
    w.up.script(name, () => (++k > 30 ? [text("Done.")] : [call("Read", { file_path: `/src/f${k}.go` })]));
    const agent = agentOf(name);
    await agent.say(name);
    agent.history.push(user("one more"));
    const { max_tokens: _, ...body } = agent.body();
    const counted = await agent.client.messages.countTokens(body);
    const twice = await agent.client.messages.countTokens(body);
    assert.equal(twice.input_tokens, counted.input_tokens, "to count changes nothing");
    await agent.once();
    const c = w.up.counts(name).at(-1), sent = w.up.of(name).at(-1);
    assert.ok(stubsOf(sent.body.messages).length > 0);
    assert.deepEqual(c.body.messages, sent.body.messages);
    assert.deepEqual(c.body.tools, sent.body.tools);
  });

  test("observe changes nothing of a long session, trim sends fewer definitions", async () => {
    const many = [read, bash, ...Array.from({ length: 20 }, (_, i) => ({ name: `mcp__x__tool_${i}`, description: `Does ${i}.\n${"At length. ".repeat(60)}`, input_schema: { type: "object", properties: { argument: { type: "string", description: "words ".repeat(40) } }, required: ["argument"] } }))];
    for (const mode of ["observe", "trim", "page+trim"]) {
      const name = w.fresh();
      let k = 0;
      w.up.script(name, () => (++k > 8 ? [text("Done.")] : [call("Read", { file_path: `/src/f${k}.go` })]));
      const agent = agentOf(name, { tools: many, client: w.anthropic({ headers: { "x-tidemark-mode": mode } }) });
      await agent.say(name);
      const calls = w.up.of(name);
      if (mode === "observe") {
        for (const c of calls) assert.deepEqual(c.body.tools, many);
        assert.deepEqual(calls.at(-1).body.messages.map(plain), agent.history.slice(0, -1).map(plain));
        continue;
      }
      const tools = calls.at(-1).body.tools;
      assert.ok(JSON.stringify(tools).length < JSON.stringify(many).length / 2, `${mode}: ${JSON.stringify(tools).length} of ${JSON.stringify(many).length} bytes`);
      assert.deepEqual(tools.slice(0, many.length).map((t) => t.name), many.map((t) => t.name));
      for (const t of tools.slice(2, many.length)) assert.deepEqual(Object.keys(t.input_schema.properties), ["argument"], "the names of arguments stay");
      breaks(calls.slice(2));
    }
  });

  for (const [what, status] of [["left", 0], ["was refused as too many", 429], ["was cut off", -1]]) {
    test(`a request that ${what}, another one behind it, and a restart: each stub is in its place`, async () => {
      const name = w.fresh();
      let k = 0;
      w.up.script(name, () => {
        if (++k === 12) return status === 0 ? { content: [text("nobody hears it")], wait: 900 } : status > 0 ? fault(status) : { content: [text("half")], cut: 0 };
        return k > 26 ? [text("Done.")] : [call("Read", { file_path: `/src/f${k}.go` })];
      });
      const agent = agentOf(name);
      agent.history.push(user(name));
      for (let i = 1; i < 12; i++) {
        await agent.once();
        await agent.answer();
      }
      const leave = new AbortController();
      agent.options = { signal: leave.signal };
      const lost = agent.once().then(() => assert.fail("it has no answer"), () => {});
      if (status === 0) setTimeout(() => leave.abort(), 300);
      await lost;
      agent.options = undefined;
      agent.history.push({ role: "assistant", content: "Half of" }, user("go on"));
      for (let i = 0; i < 3; i++) {
        await agent.once();
        await agent.answer();
      }
      await w.restart();
      agent.client = w.anthropic();
      await agent.say("and on").catch((e) => assert.fail(e));
      const sent = w.up.of(name).at(-1).body.messages;
      assert.ok(stubsOf(sent).length > 5, `${stubsOf(sent).length} stubs`);
      for (const c of w.up.of(name)) faithful(c.body.messages, (path) => [file(path)]);
    });
  }

  test("a rewind sends what was sent then", async () => {
    const name = w.fresh();
    let k = 0;
    w.up.script(name, () => (++k > 24 ? [text("Done.")] : [call("Read", { file_path: `/src/f${k}.go` })]));
    const agent = agentOf(name);
    await agent.say(name);
    agent.history = agent.history.slice(0, -9);
    const tail = agent.history.at(-1).content.at(-1);
    assert.equal(tail.type, "tool_result");
    tail.content = "another result";
    const before = w.up.of(name).length;
    await agent.once();
    const sent = w.up.of(name)[before].body.messages, then = w.up.of(name).find((c) => c.body.messages.length === sent.length).body.messages;
    assert.equal(sent.length, agent.history.length - 1);
    assert.ok(JSON.stringify(sent.at(-1)).includes("another result"));
    assert.equal(stubsOf(sent).length > 0, true);
    const stays = (m) => m.slice(0, -1).map(plain).filter((s) => /Paged out|Cleared/.test(s));
    assert.ok(stays(sent).length >= stays(then).length, "what was out stays out");
  });
}

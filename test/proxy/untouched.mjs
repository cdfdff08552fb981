// What passes as it is: requests that are only watched, answers of every form, shapes that nobody can read.

import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { asked, nothingOfOurs, soon, streamed, textOf, user } from "./client.mjs";
import { call, text, think } from "./upstream.mjs";

export const read = { name: "Read", description: "Read a file.", input_schema: { type: "object", properties: { file_path: { type: "string" } }, required: ["file_path"] } };
export const bash = { name: "Bash", description: "Run a command.", input_schema: { type: "object", properties: { command: { type: "string" } } } };
export const write = { name: "Write", description: "Write a file.", input_schema: { type: "object", properties: { file_path: { type: "string" }, content: { type: "string" } } } };
export const asFunction = (t) => ({ type: "function", function: { name: t.name, description: t.description, parameters: t.input_schema } });

// send posts bytes as they are and gives the answer's.
export const send = (url, headers, raw) => new Promise((done, failed) => {
  const req = http.request(url, { method: "POST", headers: { "content-type": "application/json", ...headers } }, async (res) => {
    try {
      done({ status: res.statusCode, headers: res.headers, body: Buffer.concat(await res.toArray()).toString() });
    } catch (e) {
      failed(e);
    }
  });
  req.on("error", failed).end(raw);
});

export default function (w) {
  const ask = (name, more = {}) => ({ model: "fake-1", max_tokens: 4000, messages: [user(name)], ...more });
  const mine = () => ({ "x-tidemark-token": w.token, "x-api-key": "sk-k", "anthropic-version": "2023-06-01" });
  const modes = { off: "/v1/messages", observe: "/v1/messages", page: "/v1/messages", "page+trim": "/v1/messages" };

  test("a request is the same to the byte when it is only watched, or has no tools", async () => {
    for (const [mode, at] of Object.entries(modes)) {
      const name = w.fresh();
      const raw = ` { "model":"m" , "stream":false,\n "max_tokens":4000, "zz":[1.50,"\\u00e9\\ud83d\\ude00 é",{"b":1,"a":2}], "metadata":{"user_id":"${name}"},` +
        ` "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}], "messages":[{"role":"user","content":"\\u0062ytes ${name}"},{"content":[{"text":"a","type":"text","odd":1e2}],"role":"assistant"},{"role":"user","content":[{"type":"text","text":"b"}]}]}  `;
      const { body, status } = await send(`${w.url}${at}?beta=true&x=%20`, { ...mine(), "x-tidemark-mode": mode, "anthropic-beta": "one-2025,two-2026", "x-mine": "kept", cookie: "a=b", "user-agent": "its own/1" }, raw);
      assert.equal(status, 200, body);
      const [c] = w.up.of(name);
      assert.equal(c.raw.toString(), raw, mode);
      assert.deepEqual([c.query, c.headers["x-api-key"], c.headers["anthropic-beta"], c.headers["anthropic-version"], c.headers["x-mine"], c.headers["user-agent"]],
        ["?beta=true&x=%20", "sk-k", "one-2025,two-2026", "2023-06-01", "kept", "its own/1"], mode);
      assert.ok(!/tidemark|cookie|a=b|x-request-id/i.test(JSON.stringify(c.rawHeaders)), JSON.stringify(c.rawHeaders));
      assert.equal(body, c.sent);
    }
  });

  test("a request with tools is the same to the byte when it is only watched", async () => {
    for (const mode of ["off", "observe"]) {
      const name = w.fresh();
      const raw = JSON.stringify(ask(name, { tools: [read, { type: "web_search_20250305", name: "web_search", max_uses: 3 }], tool_choice: { type: "auto", disable_parallel_tool_use: true } }), null, 1);
      const r = await send(`${w.url}/v1/messages`, { ...mine(), "x-tidemark-mode": mode }, raw);
      assert.equal(r.status, 200, r.body);
      assert.equal(w.up.of(name)[0].raw.toString(), raw, mode);
      const chat = JSON.stringify({ model: "m", user: name, messages: [user(name)], tools: [asFunction(read)] }, null, 1);
      const c = await send(`${w.url}/v1/chat/completions`, { "x-tidemark-token": w.token, authorization: "Bearer sk-k", "x-tidemark-mode": mode }, chat);
      assert.equal(c.status, 200, c.body);
      assert.equal(w.up.of(name).at(-1).raw.toString(), chat, mode);
      assert.equal(w.up.of(name).at(-1).path, "/v1/chat/completions");
    }
  });

  const server = [{ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "tides" } }, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [{ type: "web_search_result", url: "https://x.example", title: "t", encrypted_content: "abc", page_age: null }] }];
  const forms = [
    ["plain", {}], ["with carriage returns", { crlf: true }], ["with comments and unknown events", { comments: true, strange: true }],
    ["with fields in another order, on several lines", { behind: true, split: true }], ["byte by byte", { slice: 1, piece: 30 }], ["in one write", { burst: true, slice: 37 }],
  ];
  // same is a stream without its comments where a text's beginning may wait for its first words: they overtake it.
  const same = (sent, mode) => (mode === "page" ? sent.replace(/^: .*\r?\n\r?\n/gm, "") : sent);
  test("a stream in which nothing is ours is the same to the byte", async () => {
    for (const mode of ["off", "observe", "page"]) {
      for (const [form, more] of forms) {
        const name = w.fresh();
        w.up.script(name, { content: [think("weigh it"), text("Hello,\n```\n<memory_cleanup>\nrelease: a.go\n</memory_cleanup>\n```\nis quoted 😀."), ...server, call("Read", { file_path: "/a" })], extra: { container: null }, ...more });
        const r = await send(`${w.url}/v1/messages`, { ...mine(), "x-tidemark-mode": mode }, JSON.stringify(ask(name, { stream: true, tools: [read] })));
        const [c] = w.up.of(name);
        assert.equal(r.status, 200, r.body);
        assert.equal(same(r.body, mode), same(c.sent, mode), `${mode}, ${form}`);
        assert.deepEqual([r.headers["content-type"], r.headers["x-odd"], r.headers["request-id"], r.headers["anthropic-ratelimit-requests-remaining"]],
          ["text/event-stream; charset=utf-8", "kept", c.sent && r.headers["request-id"], "42"]);
        const chat = w.fresh();
        w.up.script(chat, { content: [text("Hello 😀."), call("Read", { file_path: "/a" })], ...more });
        const o = await send(`${w.url}/v1/chat/completions`, { "x-tidemark-token": w.token, authorization: "Bearer sk-k", "x-tidemark-mode": mode },
          JSON.stringify({ model: "m", stream: true, stream_options: { include_usage: true }, messages: [user(chat)], tools: [asFunction(read)] }));
        assert.equal(o.status, 200, o.body);
        assert.equal(same(o.body, mode), same(w.up.of(chat)[0].sent, mode), `${mode}, ${form}`);
      }
    }
  });

  test("a whole answer in which nothing is ours is the same to the byte", async () => {
    for (const mode of ["off", "observe", "page"]) {
      const name = w.fresh();
      const body = `{ "id":"msg_1","type":"message", "role":"assistant","odd":1.50,"model":"m","content":[{"type":"text","text":"\\u00e9"},{"type":"novelty","x":[1.0]}],\n "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2,"odd":0.10}} `;
      w.up.script(name, { raw: body });
      const r = await send(`${w.url}/v1/messages`, { ...mine(), "x-tidemark-mode": mode }, JSON.stringify(ask(name, { tools: [read] })));
      assert.deepEqual([r.status, r.body], [200, body], mode);
    }
  });

  for (const stream of [true, false]) {
    test(`the client of Anthropic with tools and thinking, ${stream ? "streaming" : "whole"}`, async () => {
      const name = w.fresh();
      const first = [think("Which file?"), text("I look."), call("Read", { file_path: "/a.go", n: 1.5 }), call("Bash", { command: "ls \"é\"" })];
      w.up.script(name, first, [think("Now I know."), text("It is a file.")]);
      const body = ask(name, { tools: [read, bash], thinking: { type: "enabled", budget_tokens: 2000 }, metadata: { user_id: name } });
      const one = await asked(w.anthropic(), body, stream, { headers: { "anthropic-beta": "some-beta" } });
      assert.deepEqual([one.content, one.stop_reason], [first, "tool_use"]);
      const results = one.content.filter((b) => b.type === "tool_use").map((b) => ({ type: "tool_result", tool_use_id: b.id, content: [{ type: "text", text: `of ${b.name}` }] }));
      const two = await asked(w.anthropic(), { ...body, messages: [...body.messages, { role: "assistant", content: one.content }, user(results)] }, stream);
      assert.deepEqual([textOf(two), two.stop_reason], ["It is a file.", "end_turn"]);
      const [a, b] = w.up.of(name);
      assert.deepEqual([one.usage.input_tokens, one.usage.output_tokens], [a.usage.input_tokens, a.usage.output]);
      assert.equal(a.headers["anthropic-beta"], "some-beta");
      assert.deepEqual(b.body.messages, [...body.messages, { role: "assistant", content: first }, user(results)]);
      assert.equal(w.up.of(name).length, 2);
      nothingOfOurs([one, two]);
    });
  }

  test("an event is passed on when it comes, not when the next one does", async () => {
    const { gate } = await import("./upstream.mjs");
    for (const mode of ["observe", "page"]) {
      const name = w.fresh(), g = gate();
      w.up.script(name, { content: [text("first and second")], piece: 6, gate: g, at: 4 });
      const stream = w.anthropic().messages.stream(ask(name, { tools: [read] }), { headers: { "x-tidemark-mode": mode } });
      const piece = new Promise((tell) => stream.once("text", tell));
      await g.reached;
      assert.equal(await soon(piece), "first ", mode);
      g.open();
      assert.equal(await stream.finalText(), "first and second");
    }
  });

  test("what nobody can read passes as it is", async () => {
    const name = w.fresh();
    w.up.free(name);
    const deep = (n) => "[".repeat(n) + "]".repeat(n);
    const bodies = [
      `not json at all ${name}`, `{"model":"m","messages":"${name}"}`, `{"model":"m","messages":[{"role":"user","content":17}],"x":"${name}"}`, `{"model":"m","messages":[{"role":"narrator","content":"${name}"}]}`,
      `{"model":"m","messages":[],"x":"${name}"}`, `[1,"${name}"]`, `{"model":"m","messages":[{"role":"user","content":"${name}"}],"deep":${deep(500)}}`, `{"model":"a","model":"b","messages":[{"role":"user","content":"${name}"}],"messages":[{"role":"user","content":"twice ${name}"}]}`,
      `{"messages":[null,"${name}"]}`, `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"nobody","content":"${name}"}]}]}`, `{"model":"m","messages":[{"role":"user","content":"\\ud800 ${name}"}]}`,
    ];
    for (const raw of bodies) {
      const before = w.up.of(name).length;
      const r = await send(`${w.url}/v1/messages`, mine(), raw);
      assert.equal(w.up.of(name).length, before + 1, `${raw}: ${r.status} ${r.body}`);
      assert.equal(w.up.of(name).at(-1).raw.toString(), raw);
      assert.equal(r.body, w.up.of(name).at(-1).sent);
    }
  });

  test("a body in an odd form is treated, or passes as it is with the reason", async () => {
    const body = (name, content = name) => JSON.stringify(ask(name, { tools: [read], metadata: { user_id: name }, messages: [user(content)] }));
    const deep = (name) => body(name).replace('"messages"', `"x":${"[".repeat(5000)}${"]".repeat(5000)},"messages"`);
    const binary = (name) => Buffer.from(body(name, `${name} \u00ff\u00fe`), "latin1");
    const rows = [
      ["a byte order mark", "", (name) => `\ufeff${body(name)}`, true],
      ["bytes that are no UTF-8", "", binary, true],
      ["nesting of 5,000", "", deep, false, /^unreadable: x cannot be read: nested too deep/],
      ["gzip", "gzip", (name) => gzipSync(body(name)), true],
      ["deflate", "deflate", (name) => deflateSync(body(name)), true],
      ["gzip that is watched", "gzip", (name) => gzipSync(body(name)), false, undefined, "observe"],
      ["gzip of what cannot be read", "gzip", (name) => gzipSync(deep(name)), false, /^unreadable: x cannot be read: nested too deep/],
      ["gzip that breaks off", "gzip", (name) => gzipSync(body(name)).subarray(0, 60), false, /^unreadable: read body: the body cannot be unpacked: unexpected EOF/],
      ["gzip of more than is held", "gzip", (name) => gzipSync(body(name) + " ".repeat(33 << 20)), false, /^too_large: /],
      ["brotli", "br", (name) => brotliCompressSync(body(name)), false, /^unreadable: the body cannot be unpacked: content-encoding "br": send it plain/],
    ];
    for (const [what, coding, make, edited, why, mode] of rows) {
      const name = w.fresh(), raw = Buffer.from(make(name)), at = w.up.calls.length;
      const headers = { ...mine(), "x-mine": what, ...(coding && { "content-encoding": coding }), ...(mode && { "x-tidemark-mode": mode }) };
      w.up.free(edited ? name : raw.subarray(-20)); // an API may be strict
      const r = await send(`${w.url}/v1/messages`, headers, raw);
      assert.equal(r.status, 200, `${what}: ${r.body}`);
      assert.match(r.headers["x-tidemark-untouched"] ?? "none", why ?? /^none$/, what);
      const [c, ...more] = w.up.calls.slice(at);
      assert.equal(more.length, 0, what);
      assert.equal(c.headers["content-encoding"], edited ? undefined : coding || undefined, what);
      if (edited) assert.match(c.raw.toString(), /memory_release/, what);
      else assert.deepEqual(c.raw, raw, what);
      assert.equal(r.headers["x-tidemark-session"] !== undefined, edited || mode !== undefined || /cannot be read/.test(String(why)), what);
    }
  });

  test("a client's own tool of our name is the client's", async () => {
    for (const stream of [true, false]) {
      const name = w.fresh();
      const tools = [read, { name: "memory_release", description: "of the client", input_schema: { type: "object" } }];
      const first = [call("memory_release", { paths: ["x"] })];
      w.up.script(name, first, [text("released by the client")]);
      const body = ask(name, { tools });
      const one = await asked(w.anthropic(), body, stream);
      assert.deepEqual([one.content, one.stop_reason], [first, "tool_use"]);
      const two = await asked(w.anthropic(), { ...body, messages: [...body.messages, { role: "assistant", content: one.content }, user([{ type: "tool_result", tool_use_id: first[0].id, content: "ok" }])] }, stream);
      assert.equal(textOf(two), "released by the client");
      for (const c of w.up.of(name)) assert.deepEqual(c.body.tools, tools);
      assert.equal(w.up.of(name).length, 2);
    }
  });

  test("the two tools go with a request that has tools and a choice, and with no other", async () => {
    const rows = [
      [{ tools: [read] }, ["Read", "memory_release", "memory_fault"]], [{ tools: [read], tool_choice: { type: "none" } }, ["Read"]], [{}, []],
      [{ tools: [read], tool_choice: { type: "auto" } }, ["Read", "memory_release", "memory_fault"]],
    ];
    for (const [more, want] of rows) {
      const name = w.fresh();
      await streamed(w.anthropic(), ask(name, more));
      assert.deepEqual((w.up.of(name)[0].body.tools ?? []).map((t) => t.name).sort(), want.toSorted(), JSON.stringify(more));
      if (more.tools) assert.deepEqual(w.up.of(name)[0].body.tools[0], read, "behind the client's own");
    }
    const name = w.fresh();
    await w.anthropic().messages.create(ask(name, { tools: [read], tool_choice: { type: "tool", name: "Read" } }));
    const [forced] = w.up.of(name);
    assert.deepEqual([forced.body.tools[0], forced.body.tool_choice], [read, { type: "tool", name: "Read" }]);
  });

  test("the API's other routes are the API's under a name, and this server's without", async () => {
    const name = w.fresh(), list = async (client) => (await client.models.list()).data.map((m) => m.id);
    const at = { baseURL: `${w.url}/p/${name}` };
    assert.deepEqual(await list(w.anthropic(at)), ["theirs"]);
    assert.deepEqual(await list(w.openai({ baseURL: `${at.baseURL}/v1` })), ["theirs"]);
    assert.ok((await list(w.anthropic())).includes("tidemark"));
    const made = await w.openai({ baseURL: `${at.baseURL}/v1` }).embeddings.create({ model: "m", input: name, encoding_format: "float" }).withResponse();
    assert.deepEqual([made.data.data[0].id, made.response.headers.get("x-odd"), made.response.headers.get("x-tidemark-session")], ["theirs", "kept", null]);
    const batch = await send(`${at.baseURL}/v1/messages/batches?x=%20`, { ...mine(), "x-request-id": "the-clients" }, `{ "requests":["${name}"] }`);
    assert.equal(batch.headers["request-id"], "req_other");
    const gone = await w.anthropic(at).beta.files.delete("file_1").then(() => assert.fail("it is there"), (e) => e);
    assert.equal(gone.status, 404);
    const calls = w.up.calls.slice(-5).map(({ method, path, query, headers }) => [method, path, query, headers["x-api-key"] ?? headers.authorization]);
    const bearer = "Bearer sk-clients-own";
    assert.deepEqual(calls, [["GET", "/v1/models", "", bearer], ["GET", "/v1/models", "", bearer], ["POST", "/v1/embeddings", "", bearer], ["POST", "/v1/messages/batches", "?x=%20", "sk-k"], ["DELETE", "/v1/files/file_1", "", bearer]]);
    assert.equal(w.up.of(name).at(-1).raw.toString(), `{ "requests":["${name}"] }`);
    assert.deepEqual(w.up.of(name).map((c) => c.headers["x-request-id"]), [undefined, "the-clients"]);
    assert.ok(!JSON.stringify(w.up.calls.slice(-5).map((c) => c.rawHeaders)).includes(w.token));
    const climbs = await send(`${at.baseURL}/v1/%252e%252e/%252e%252e/metrics`, mine(), "{}");
    assert.equal(climbs.status, 400, climbs.body);
  });

  test("a client without a key of its own has the server's, and Tidemark's token goes nowhere", async () => {
    const name = w.fresh();
    w.up.script(name, [text("Yes."), call("memory_fault", { paths: ["/a"] }), call("Read", { file_path: "/a" })], [text("Done.")]);
    const client = w.anthropic({ key: w.token, headers: { "x-tidemark-token": undefined } }), body = ask(name, { tools: [read] });
    const m = await asked(client, body, true);
    nothingOfOurs(m);
    await asked(client, { ...body, messages: [...body.messages, { role: "assistant", content: m.content }, user([{ type: "tool_result", tool_use_id: m.content[1].id, content: "x" }])] }, false);
    const [, b] = w.up.of(name);
    assert.equal(b.headers["x-api-key"], "the-servers-own-key");
    assert.equal(b.body.messages[1].content.length, 3);
    for (const c of w.up.calls) assert.ok(!JSON.stringify(c.rawHeaders).includes(w.token) && !c.raw.includes(w.token));
  });

  test("the count is that of what is sent", async () => {
    for (const mode of ["observe", "page", "page+trim"]) {
      const name = w.fresh(), client = w.anthropic({ headers: { "x-tidemark-mode": mode } });
      const { max_tokens: _, ...body } = ask(name, { tools: [read, bash], system: "Be brief." });
      const counted = await client.messages.countTokens(body);
      await client.messages.create({ ...body, max_tokens: 100 });
      const [asked] = w.up.counts(name), [sent] = w.up.of(name);
      for (const field of ["messages", "tools", "system"]) assert.deepEqual(asked.body[field], sent.body[field], `${mode}: ${field}`);
      const { input_tokens: i, cache_read_input_tokens: r, cache_creation_input_tokens: c } = sent.usage;
      assert.ok(Math.abs(counted.input_tokens - i - r - c) <= 2, `${counted.input_tokens} counted, ${i + r + c} sent`);
    }
  });
}

// Tests of the doors' part of the front, without workerd. Run by: node --test build/

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cross, keyOf, originsOf, peerOf, put, tongueOf } from "./doors.mjs";
import { front } from "./front.mjs";

const rows = JSON.parse(readFileSync(new URL("../testdata/doors.json", import.meta.url)));
const site = "https://tidemark.example";
const token = "open sesame";
const env = { TIDEMARK_TOKEN: token, TIDEMARK_SERVER_ORIGINS: "https://chat.example.com" };
const bearer = { authorization: `Bearer ${token}` };

test("origins are read as config reads a list", () => {
  const { origins } = JSON.parse(readFileSync(new URL("../testdata/front.json", import.meta.url)));
  for (const { value, list } of origins) assert.deepEqual(originsOf({ TIDEMARK_SERVER_ORIGINS: value }), list ?? [], value);
  assert.deepEqual(originsOf({}), []);
});

// post gives what the front says to a request with a body.
const post = (path, body, headers = {}) => front(new Request(site + path, { method: "POST", body, headers: { ...bearer, ...headers } }), env);

test("names become parts of keys as in Go", async () => {
  const seen = new Set();
  for (const { name, peer } of rows.peers) {
    assert.equal(await peerOf(name), peer, JSON.stringify(name));
    assert.ok(!seen.has(peer), `${peer} stands for two names`);
    seen.add(peer);
  }
  assert.ok(seen.size > 20);
});

test("failures are told in the words of the path, as in Go", async () => {
  for (const { path, version = "", key = "", tongue } of rows.tongues) {
    assert.equal(tongueOf(path, new Headers({ "anthropic-version": version, "x-api-key": key })), tongue, path);
  }
  for (const { tongue, status, kind, want, type, code } of rows.failures) {
    const [got, body] = put(tongue, status, { type: kind, message: "m", requestId: "r" });
    assert.deepEqual([got, body.error.type, body.error.message, body.error.code], [want, type, "m", code], `${tongue} ${kind}`);
  }
  const strange = await front(new Request(`${site}/v1/messages`, { method: "POST", body: "{}" }), env);
  assert.equal(strange.answer.status, 401);
  const body = await strange.answer.json();
  assert.deepEqual([body.type, body.error.type, strange.answer.headers.get("x-should-retry")], ["error", "authentication_error", "false"]);
  assert.equal(strange.answer.headers.get("request-id"), body.request_id);
});

test("pages of other origins may do what they may in Go", async () => {
  for (const { name, origin, method, ask, headers, allowed, asked, headersAllowed = false } of rows.cross) {
    const given = { origin, "access-control-request-method": ask, "access-control-request-headers": headers };
    const request = { method, url: site, headers: new Headers(Object.fromEntries(Object.entries(given).filter(([, v]) => v))) };
    const got = cross(request, "tidemark.example", env);
    assert.equal(got.asked, asked, name);
    assert.equal(got.headers["access-control-allow-origin"], allowed ? origin : undefined, name);
    assert.equal(got.headers["access-control-allow-headers"], headersAllowed ? headers : undefined, name);
    assert.equal(got.headers.vary, "Origin", name);
  }
  assert.deepEqual(cross({ method: "OPTIONS", headers: new Headers({ origin: "https://chat.example.com", "access-control-request-method": "GET" }) }, "x", {}), { headers: {}, asked: false });
});

test("a preflight of a page that may is answered without the token, and its refusals can be read", async () => {
  const ask = (origin) => front({ url: `${site}/v1/chat/completions`, method: "OPTIONS", headers: new Headers({ origin, "access-control-request-method": "POST" }) }, env);
  const { answer } = await ask("https://chat.example.com");
  assert.deepEqual([answer.status, answer.headers.get("access-control-allow-origin")], [204, "https://chat.example.com"]);
  assert.equal((await ask("https://evil.example")).answer.status, 403);
  const no = await front({ url: `${site}/v1/sessions`, method: "GET", headers: new Headers({ origin: "https://chat.example.com" }) }, env);
  assert.deepEqual([no.answer.status, no.answer.headers.get("access-control-allow-origin")], [401, "https://chat.example.com"]);
});

test("a request of a door goes to the object of its conversation", async () => {
  const session = async (agent, channel, name) => ({ kind: "session", name: await keyOf(agent, channel, name) });
  const chat = { messages: [{ role: "user", content: "hi" }] };
  const json = (more) => JSON.stringify({ ...chat, ...more });
  const cases = [
    ["/v1/chat/completions", json({ user: "Anna" }), {}, await session("", "user", "Anna")],
    ["/v1/chat/completions", json({ user: "Anna", model: "tidemark:work" }), {}, await session("work", "user", "Anna")],
    ["/v1/chat/completions", json({ user: "Anna" }), { "x-tidemark-session": "Garden" }, { kind: "session", name: "agent:main:local:dm:garden" }],
    ["/api/chat", json({ id: "aB3" }), {}, await session("", "web", "aB3")],
    ["/api/chat?agent=work", json({ id: "aB3" }), {}, await session("work", "web", "aB3")],
    ["/v1/messages", json(), { "x-tidemark-session": "agent:main:main#x" }, { kind: "session", name: "agent:main:main" }],
    ["/s/agent%3Amain%3Amain/v1/messages/count_tokens", json(), {}, { kind: "session", name: "agent:main:main" }],
    [`/t/${encodeURIComponent(token)}/s/garden/v1/messages`, json(), {}, { kind: "session", name: "agent:main:local:dm:garden" }],
  ];
  for (const [path, body, headers, want] of cases) {
    const got = await post(path, body, headers);
    assert.deepEqual(got.to, want, path);
    if (got.request) assert.equal(await got.request.text(), body, `${path}: what goes on`);
  }
  assert.deepEqual((await front(new Request(`${site}/api/chat/aB3/stream`, { headers: bearer }), env)).to, await session("", "web", "aB3"));
});

test("a message of the Model Context Protocol goes to the object that it is about", async () => {
  assert.ok(rows.calls.length > 10);
  for (const { body, session, agent } of rows.calls) {
    const sent = JSON.stringify({ jsonrpc: "2.0", id: 1, ...body });
    for (const path of ["/mcp", `/t/${encodeURIComponent(token)}/mcp`]) {
      const { to, request } = await post(path, sent);
      assert.deepEqual(to, session ? { kind: "session", name: session } : { kind: "agent", name: agent }, sent);
      assert.equal(await request.text(), sent, "what goes on");
    }
  }
  const others = ["", "no json", "null", "5", "[]", '{"method":7}', '{"method":"tools/list","params":null}', '{"method":"initialize","params":{}}',
    '{"method":"resources/read","params":{"uri":7}}', '{"method":"tools/call","params":{"arguments":{"session":"a:b:c"}}}'];
  for (const body of others) assert.match((await post("/mcp", body)).to.name, /^door:\d+$/, body);
  // What names no agent is told so by the main one's object.
  assert.deepEqual((await post("/mcp", '{"method":"tools/call","params":{"arguments":{"agent":"../x"}}}')).to, { kind: "agent", name: "main" });
  const get = await front(new Request(`${site}/mcp`, { headers: bearer }), env);
  assert.match(get.to.name, /^door:\d+$/);
});

test("what the front refuses is an error of JSON-RPC to a client of that", async () => {
  const { answer } = await front(new Request(`${site}/mcp`, { method: "POST", body: "{}" }), env);
  const { jsonrpc, id, error } = await answer.json();
  assert.deepEqual([answer.status, jsonrpc, id, error.code, error.data.type], [401, "2.0", null, -32000, "unauthorized"]);
  assert.match(error.message, /TIDEMARK_TOKEN/);
  assert.equal(answer.headers.get("x-should-retry"), null);
});

test("what is of no conversation is spread over a few objects, never the main agent's", async () => {
  const seen = new Set();
  for (let i = 0; i < 200; i++) {
    for (const [path, body] of [["/v1/messages", "{}"], ["/v1/chat/completions", "{}"], ["/v1/chat/completions", "no json"], ["/api/chat", "[]"], ["/api/chat", "null"]]) {
      const { to } = await post(path, body);
      assert.equal(to.kind, "agent");
      assert.match(to.name, /^door:\d+$/);
      seen.add(to.name);
    }
  }
  assert.equal(seen.size, 16);
  assert.deepEqual((await front(new Request(`${site}/v1/models`, { headers: bearer }), env)).to, { kind: "agent", name: "main" });
});

test("a body that nobody measured is bounded", async () => {
  const piece = new Uint8Array(1 << 20);
  let n = 0;
  const body = new ReadableStream({ pull(c) { if (n++ < 64) c.enqueue(piece); else c.close(); } });
  const { answer } = await front(new Request(`${site}/v1/chat/completions`, { method: "POST", body, duplex: "half", headers: bearer }), env);
  assert.equal(answer.status, 413);
  assert.ok(n < 12, `${n} MB were read`);
  assert.equal((await answer.json()).error.code, "too_large");
});

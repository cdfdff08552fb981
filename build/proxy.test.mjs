// Tests of what the front says of requests of clients that keep their history themselves. Run by: node --test build/

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { front } from "./front.mjs";
import { proxyKey, sessionOf, userOf } from "./proxy.mjs";

const rows = JSON.parse(readFileSync(new URL("../testdata/proxies.json", import.meta.url)));
const bytes = (text) => new TextEncoder().encode(text);
const raw = ({ body, hex }) => (hex === undefined ? bytes(body) : Uint8Array.from(Buffer.from(hex, "hex")));
const sum = (text) => createHash("sha256").update(text).digest("hex");

test("a body tells its conversation as in Go", async () => {
  for (const { name, chat, session, first, ...row } of rows.bodies) {
    const got = await sessionOf(raw(row), chat);
    // A half of a pair has no bytes of its own: what counts is what is hashed.
    assert.deepEqual(bytes(got), bytes(session ?? (first === undefined ? "" : sum(first))), name);
  }
  assert.ok(rows.bodies.length > 40);
  assert.equal(userOf(bytes('{"user":"a\\"b"}')), 'a"b');
  assert.equal(userOf(bytes('{"user":7}')), "");
});

test("a conversation has a key as in Go", async () => {
  for (const { credential, session, key } of rows.keys) assert.equal(await proxyKey(credential, session), key);
});

test("a megabyte is not decoded", async () => {
  const part = JSON.stringify({ role: "user", content: [{ type: "text", text: "\"quoted\" \\ lines\n".repeat(500) }] });
  const raw = bytes(`{"messages":[${Array(100).fill(part).join(",")}],"metadata":{"user_id":"u1"}}`);
  const parse = JSON.parse;
  const decoded = [];
  JSON.parse = (text) => { decoded.push(text.length); return parse(text); };
  try {
    assert.equal(await sessionOf(raw, false), "u1");
  } finally {
    JSON.parse = parse;
  }
  assert.ok(raw.length > 1_000_000 && Math.max(...decoded) < 100, `${raw.length} bytes, ${decoded}`);
});

// A reader that begins anew at each byte would not end here.
test("a megabyte that is no JSON names no session", async () => {
  for (const raw of ["\\".repeat(1 << 20), `{"${"\\\\".repeat(1 << 19)}`, `{"a":${"[".repeat(1 << 20)}`, `{"a":"${'\\"'.repeat(1 << 19)}`]) {
    assert.ok(!(await sessionOf(bytes(raw), false)), raw.slice(0, 20));
  }
});

const token = "open sesame";
const env = { TIDEMARK_TOKEN: token };

test("a request goes to the object of its conversation, as Go finds it", async () => {
  for (const { name, path, headers, to, session, credential, ...row } of rows.requests) {
    const got = await front(new Request(`https://tidemark.example${path}`, { method: "POST", body: raw(row), headers }), env);
    assert.ok(got.to, name);
    if (to === "proxy") assert.deepEqual(got.to, { kind: "session", name: await proxyKey(credential, session) }, name);
    if (to === "none") assert.match(got.to.name, /^door:\d+$/, name);
    if (to === "session") assert.equal(got.to.name, "agent:main:local:dm:garden", name);
    if (to === "user") assert.equal(got.to.name, "agent:main:user:dm:anna", name);
    if (got.request) assert.deepEqual(await got.request.bytes(), raw(row), `${name}: what goes on`);
  }
});

test("a body that has more in it than is held names no session", async () => {
  const body = gzipSync(Buffer.concat([bytes('{"metadata":{"user_id":"u1"},"messages":[]}'), Buffer.alloc(8 << 20, " ")]));
  const headers = { "x-api-key": "sk-1", "x-tidemark-token": token, "content-encoding": "gzip" };
  const got = await front(new Request("https://tidemark.example/v1/messages", { method: "POST", body, headers }), env);
  assert.match(got.to.name, /^door:\d+$/);
  assert.deepEqual(Buffer.from(await got.request.bytes()), body, "what goes on");
});

// beyond is what the front makes of a request with a body of over 7 MB, with an object that answers told, and an
// API that answers answer.
async function beyond(t, { told, answer, headers = {}, path = "/v1/messages", size = 8 << 20, method = "POST" }) {
  const seen = {};
  const object = { fetch: async (url, init) => { seen.asked = new Request(url, init); return told; } };
  const AGENT = { idFromName: (name) => { seen.object = name; return name; }, get: () => object };
  t.mock.method(globalThis, "fetch", async (url, init) => {
    seen.sent = new Request(url, init);
    seen.bytes = (await seen.sent.arrayBuffer()).byteLength;
    if (!answer) throw new Error("refused");
    return answer;
  });
  const body = size ? new Uint8Array(size) : undefined;
  const request = new Request(`https://tidemark.example${path}`, { method, body, headers: { "x-tidemark-token": token, "x-api-key": "sk-1", "content-length": String(size), ...headers } });
  const out = await front(request, { ...env, AGENT });
  return { ...seen, out };
}

const bound = () => Response.json({ url: "https://api.test/v1/messages?beta=true", headers: [["X-Api-Key", "sk-1"], ["Content-Type", "application/json"]] }, { headers: { "x-request-id": "r1", "cache-control": "no-store" } });

test("what is too large for an object streams past it", async (t) => {
  const told = '{"type":"error", "error":{"type":"rate_limit_error","message":"No."}}';
  const answer = new Response(told, { status: 429, headers: { "retry-after": "7", "request-id": "req_1", "x-request-id": "theirs", "set-cookie": "a=b", "cache-control": "public", "content-type": "application/json" } });
  const got = await beyond(t, { told: bound(), answer, path: "/v1/messages?beta=true" });
  assert.match(got.object, /^door:\d+$/);
  assert.equal(got.asked.url, "https://tidemark/internal/onward/v1/messages?beta=true");
  assert.deepEqual([got.asked.headers.get("x-api-key"), got.asked.headers.get("content-length")], ["sk-1", null]);
  assert.deepEqual([got.sent.url, got.sent.headers.get("x-api-key"), got.sent.headers.get("x-tidemark-token"), got.bytes], ["https://api.test/v1/messages?beta=true", "sk-1", null, 8 << 20]);
  const { status, headers } = got.out.answer;
  assert.deepEqual([status, await got.out.answer.text()], [429, told]);
  const heads = ["retry-after", "request-id", "x-request-id", "set-cookie", "cache-control", "content-type"].map((name) => headers.get(name));
  assert.deepEqual(heads, ["7", "req_1", "r1", null, "no-store", "application/json"]);
});

test("what cannot go on is said in the words of the client's API", async (t) => {
  const refused = Response.json({ type: "error", error: { type: "authentication_error", message: "no key" } }, { status: 401 });
  const no = await beyond(t, { told: refused, answer: null });
  assert.deepEqual([no.out.answer.status, no.sent], [401, undefined]);
  assert.equal((await no.out.answer.json()).error.message, "no key");
  const down = (await beyond(t, { told: bound(), answer: null })).out.answer;
  assert.deepEqual([down.status, (await down.json()).error.type], [502, "api_error"]);
  for (const how of [{ size: (100 << 20) + 1 }, { path: "/v1/chat/completions", headers: { authorization: "Bearer sk-1" } }, { headers: { "x-tidemark-session": "garden" } }]) {
    const large = (await beyond(t, { told: bound(), answer: null, ...how })).out.answer;
    assert.equal(large.status, 413);
  }
});

test("what has no conversation streams past the objects, of any size", async (t) => {
  const rows = [
    ["GET", "/p/n/v1/models?limit=1", 0], ["DELETE", "/p/a%2Fb/v1/files/f%2F1", 0], ["POST", "/p/n/v1/messages/batches", 9 << 20], ["POST", "/p/n/v1/embeddings", 20],
    ["GET", "/p/n/v1/messages", 0], ["PUT", "/p/n/v1/chat/completions", 5],
  ];
  for (const [method, path, size] of rows) {
    const answer = new Response("data: 1\n\n", { status: 418, headers: { "x-odd": "kept", "content-type": "text/event-stream" } });
    const got = await beyond(t, { told: bound(), answer, path, size, method, headers: { "x-tidemark-session": "garden", upgrade: "websocket" } });
    assert.equal(got.asked?.url, `https://tidemark/internal/onward${path}`);
    assert.equal(got.asked.headers.get("upgrade"), null);
    assert.deepEqual([got.sent.method, got.bytes, got.sent.headers.get("x-api-key"), got.sent.headers.get("x-tidemark-token")], [method, size, "sk-1", null], path);
    const { status, headers } = got.out.answer;
    assert.deepEqual([status, headers.get("x-odd"), await got.out.answer.text()], [418, "kept", "data: 1\n\n"], path);
    t.mock.restoreAll();
  }
});

test("what goes no further is told in the words of its API", async (t) => {
  const ask = async (path, how = {}) => {
    const { out, sent } = await beyond(t, { told: bound(), answer: null, path, size: 0, method: "GET", ...how });
    t.mock.restoreAll();
    assert.equal(sent, undefined, path);
    return out.answer && { status: out.answer.status, ...(await out.answer.json()) };
  };
  const url = "https://tidemark.example/p/n/v1/models";
  const trace = await front({ url, method: "TRACE", headers: new Headers({ "x-tidemark-token": token }) }, env);
  assert.equal(trace.answer.status, 405);
  assert.equal((await front({ url, method: "GET", headers: new Headers() }, env)).answer.status, 401);
  assert.equal((await ask("/p/n/v1/models", { size: (100 << 20) + 1, method: "POST" })).error.type, "request_too_large");
  const down = await beyond(t, { told: bound(), answer: null, path: "/p/n/v1/embeddings", size: 9, headers: { "x-api-key": "" } });
  assert.deepEqual([down.out.answer.status, (await down.out.answer.json()).error.type], [502, "server_error"]);
  t.mock.restoreAll();
  for (const path of ["/p/%zz/v1/messages", "/p/%ff/v1/messages", "/p/%zz/v1/models"]) assert.equal((await ask(path, { method: "POST" })).status, 400, path);
});

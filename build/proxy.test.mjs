// Tests of what the front says of requests of clients that keep their history themselves. Run by: node --test build/

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { front } from "./front.mjs";
import { proxyKey, sessionOf, userOf } from "./proxy.mjs";

const rows = JSON.parse(readFileSync(new URL("../testdata/proxies.json", import.meta.url)));
const bytes = (text) => new TextEncoder().encode(text);
const sum = (text) => createHash("sha256").update(text).digest("hex");

test("a body tells its conversation as in Go", async () => {
  for (const { name, chat, body, hex, session, first } of rows.bodies) {
    const raw = hex === undefined ? bytes(body) : Uint8Array.from(Buffer.from(hex, "hex"));
    const got = await sessionOf(raw, chat);
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

test("what is no JSON costs no more than its length", async () => {
  for (const raw of ["\\".repeat(1 << 20), `{"${"\\\\".repeat(1 << 19)}`, `{"a":${"[".repeat(1 << 20)}`, `{"a":"${'\\"'.repeat(1 << 19)}`, `{"messages":[{"role":"user","content":"${" ".repeat(1 << 20)}x"}]}`]) {
    const began = performance.now();
    await sessionOf(bytes(raw), false);
    assert.ok(performance.now() - began < 2000, raw.slice(0, 20));
  }
});

const token = "open sesame";
const env = { TIDEMARK_TOKEN: token };

test("a request goes to the object of its conversation, as Go finds it", async () => {
  for (const { name, path, headers, body, to, session, credential } of rows.requests) {
    const got = await front(new Request(`https://tidemark.example${path}`, { method: "POST", body, headers }), env);
    assert.ok(got.to, name);
    if (to === "proxy") assert.deepEqual(got.to, { kind: "session", name: await proxyKey(credential, session) }, name);
    if (to === "none") assert.match(got.to.name, /^door:\d+$/, name);
    if (to === "session") assert.equal(got.to.name, "agent:main:local:dm:garden", name);
    if (to === "user") assert.equal(got.to.name, "agent:main:user:dm:anna", name);
    if (got.request) assert.equal(await got.request.text(), body, `${name}: what goes on`);
  }
});

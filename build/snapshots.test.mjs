// Tests of where requests about snapshots go, without workerd. Run by: node --test build/

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { front } from "./front.mjs";
import { route } from "./route.mjs";
import { homeOf } from "./snapshots.mjs";

const site = "https://tidemark.example", token = "open sesame";
const id = "snap-01k0000000000000000000abcd";

test("whose a request is, as in Go", () => {
  const rows = JSON.parse(readFileSync(new URL("../testdata/snapshots.json", import.meta.url)));
  assert.ok(rows.length > 20);
  for (const row of rows) {
    const { pathname, searchParams } = new URL(row.path, site);
    const want = row.bad ? { session: "" } : row.id ? { id: row.id } : { session: row.session };
    assert.deepEqual(homeOf(row.method, pathname, searchParams), want, `${row.method} ${row.path}`);
  }
  for (const path of ["/v1/snapshots", `/v1/snapshots/${id}`, `/v1/snapshots/${id}/archive/x`, "/v1/compare/x", "/v1/tree", "/v2/compare", "/"]) {
    assert.equal(homeOf("GET", path, new URLSearchParams()), null, path);
  }
});

test("the tree and one snapshot are the agent's, what is no key the main agent's", () => {
  for (const [path, query, name] of [["/v1/tree", "", "main"], ["/v1/tree", "agent=work", "work"], [`/v1/snapshots/${id}`, "agent=work", "work"], ["/v1/compare", "a=no key&b=x", "main"], ["/v1/snapshots/x/archive", "", "main"]]) {
    assert.deepEqual(route(path, new URLSearchParams(query)), { kind: "agent", name }, path);
  }
});

// ask gives what the front says, with an agent that knows one snapshot.
async function ask(path, { method = "GET", headers = {}, answer = () => Response.json({ id, session: "agent:work:web:dm:a#b" }) } = {}) {
  const asked = [];
  const AGENT = { idFromName: (name) => name, get: (name) => ({ fetch: (url, options) => { asked.push({ name, url, ...options.headers }); return answer(); } }) };
  const request = new Request(site + path, { method, headers: { authorization: `Bearer ${token}`, ...headers } });
  return { ...await front(request, { TIDEMARK_TOKEN: token, AGENT }), asked };
}

test("of a snapshot's id the agent tells the session, and the request goes there with it", async () => {
  for (const prefix of ["", `/t/${encodeURIComponent(token)}`]) {
    const got = await ask(`${prefix}/v1/snapshots/${id}/archive?agent=work`, { headers: { "x-request-id": "r-1", range: "bytes=0-1" } });
    assert.deepEqual(got.asked, [{ name: "work", url: `${site}/v1/snapshots/${id}?agent=work`, authorization: `Bearer ${token}`, "x-request-id": "r-1" }]);
    assert.deepEqual(got.to, { kind: "session", name: "agent:work:web:dm:a" });
    const to = new URL(got.request.url);
    assert.equal(to.pathname, `${prefix}/v1/snapshots/${id}/archive`);
    assert.equal(to.searchParams.get("session"), "agent:work:web:dm:a");
    assert.equal(got.request.headers.get("range"), "bytes=0-1");
    assert.equal(got.request.headers.get("authorization"), `Bearer ${token}`);
  }
  const both = await ask(`/v1/compare?a=${id}&b=${id}`);
  assert.deepEqual([both.to.name, both.asked.length, both.asked[0].name], ["agent:work:web:dm:a", 1, "main"]);
});

test("who names the session wakes no agent", async () => {
  for (const [method, path] of [["GET", `/v1/snapshots/${id}/archive?session=garden`], ["GET", `/v1/compare?a=${id}&b=garden`], ["PUT", `/v1/snapshots/${id}/archive`]]) {
    const got = await ask(path, { method });
    assert.deepEqual([got.to.kind, got.asked.length, got.request], ["session", 0, undefined], path);
  }
});

test("an agent that does not know it says so in its own words; one that does not answer is told of", async () => {
  const own = Response.json({ error: { type: "not_found", message: "no snapshot", requestId: "r-1" } }, { status: 404 });
  const none = await ask(`/v1/snapshots/${id}/archive`, { answer: () => own });
  assert.equal(none.answer.status, 404);
  assert.equal((await none.answer.json()).error.message, "no snapshot");
  for (const answer of [() => { throw new Error("overloaded"); }, () => new Response("x"), () => Response.json({})]) {
    const down = await ask(`/v1/snapshots/${id}/archive`, { answer });
    assert.equal(down.answer.status, 503);
    assert.match((await down.answer.json()).error.message, /session=KEY/);
  }
});

test("a stranger wakes nobody", async () => {
  const got = await ask(`/v1/snapshots/${id}/archive`, { headers: { authorization: "Bearer no" } });
  assert.deepEqual([got.answer.status, got.asked.length], [401, 0]);
});

test("an archive that comes in may be as large as an import", async () => {
  const of = async (method, path, length) => (await ask(path, { method, headers: { "content-length": String(length) } })).answer?.status ?? 0;
  const most = 100 << 20;
  assert.equal(await of("PUT", `/v1/snapshots/${id}/archive`, most), 0);
  assert.equal(await of("PUT", `/t/${encodeURIComponent(token)}/v1/snapshots/${id}/archive?session=x`, most), 0);
  assert.equal(await of("PUT", `/v1/snapshots/${id}/archive`, most + 1), 413);
  assert.equal(await of("POST", `/v1/snapshots/${id}/archive`, most), 413);
  assert.equal(await of("PUT", `/v1/sessions/${id}/archive`, most), 413);
});

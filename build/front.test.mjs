// Tests of the front and of paths, without workerd. Run by: node --test build/

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { front, lost, requestID } from "./front.mjs";
import { rootKey } from "./key.mjs";
import { internal, route, split } from "./route.mjs";

const site = "https://tidemark.example";
const token = "open sesame";

// ask gives what the front says: {status, error, headers}, or {to}.
async function ask(path, { method = "GET", headers = {}, env = {} } = {}) {
  const all = new Headers(headers);
  const request = { method, url: path.startsWith("http") ? path : site + path, headers: all };
  const { answer, to } = await front(request, { TIDEMARK_TOKEN: token, ...env });
  if (!answer) return { to };
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, error: text.startsWith("{") ? JSON.parse(text).error : undefined };
}

const bearer = { authorization: `Bearer ${token}` };

test("a path is its session's, else its agent's", () => {
  const rows = [
    ["/v1/sessions/garden/messages", "session", "agent:main:local:dm:garden"],
    ["/v1/sessions/Main/messages", "session", "agent:main:main"],
    ["/v1/sessions/no%20key", "agent", "main"],
    ["/v1/agents/No%20Name/memory", "agent", "main"],
    ["/v1/agents/a.b/memory", "agent", "main"],
    ["/v1/sessions/agent%3Amain%3Amain%23branch/view", "session", "agent:main:main"],
    ["/v1/sessions/agent:main:web:dm:p1#x", "session", "agent:main:web:dm:p1"],
    ["/v1/sessions", "agent", "main"],
    ["/v1/sessions/", "agent", "main"],
    ["/v1/agents/work/memory", "agent", "work"],
    ["/v1/recall", "agent", "main"],
    ["/v2/sessions/garden", "agent", "main"],
    ["/", "agent", "main"],
  ];
  for (const [path, kind, name] of rows) assert.deepEqual(route(path), { kind, name }, path);
  for (const bad of ["/v1/sessions/%zz", "/v1/agents/%ff", "/v1/recall%zz", "/v1/sessions/main/%zz"]) assert.match(route(bad).error, /not valid percent-encoding/, bad);
  assert.deepEqual(route("/v1/sessions", new URLSearchParams("agent=work")), { kind: "agent", name: "work" });
  for (const [query, kind, name] of [
    ["q=x", "agent", "main"], ["q=x&agent=work", "agent", "work"], ["session=agent:work:web:dm:a", "agent", "work"], ["session=a%23b&scope=agent", "agent", "main"],
    ["session=a%23b&scope=session", "session", "agent:main:local:dm:a"], ["session=a%20b&scope=session", "agent", "main"], ["scope=session", "agent", "main"],
  ]) assert.deepEqual(route("/v1/recall", new URLSearchParams(query)), { kind, name }, query);
  for (const path of ["/ws", "/events"]) {
    assert.deepEqual(route(path, new URLSearchParams("session=a%23b")), { kind: "session", name: "agent:main:local:dm:a" });
    assert.deepEqual(route(path, new URLSearchParams("session=a b")), { kind: "agent", name: "main" }, "no key");
  }
});

test("keys are read as in Go", () => {
  const rows = JSON.parse(readFileSync(new URL("../testdata/keys.json", import.meta.url)));
  assert.ok(rows.length > 30);
  for (const { key, root } of rows) assert.equal(rootKey(key), root, JSON.stringify(key));
});

// What the front and the door in Go must both say: worker/front_test.go reads the same.
const table = JSON.parse(readFileSync(new URL("../testdata/front.json", import.meta.url)));

test("a token in the path is taken out of it, as in Go", () => {
  for (const { path, token, rest } of table.paths) assert.deepEqual(split(path), { path: rest, token }, path);
  // No request of Go has such a path.
  for (const path of ["/t/%zz/v1", "/t/a/%zz"]) assert.deepEqual(split(path), { path, token: "" }, path);
});

test("internal paths in every spelling", () => {
  for (const path of [
    "/internal/agent/tell", "/internal", "/internal/", "/INTERNAL/x", "//internal/x", "///internal", "/./internal/x", "/%2e/internal/x",
    "/%69nternal/x", "/%69%6e%74%65%72%6e%61%6c/x", "/%2569nternal/x", "/%252569nternal/x", "/%2finternal/x", "/%2Finternal%2Fx", "/internal%2fagent",
    "/\\internal\\x", "/%5cinternal/x", "/t/x/internal/agent", "/t/x//internal", "/t/x/%69nternal/y", "/t/a/t/b/internal/x",
    "/v1/../internal/x", "/v1/%2e%2e/internal/x", "/v1/..%2finternal/x", "/v1/sessions/a/..%2f..%2f..%2finternal%2fx", "/v1/sessions/a%2f..%2f..%2f..%2finternal",
    "/t/x/../internal/y", "/t/..%2finternal/x", "/v1/sessions/%252e%252e%252finternal",
  ]) assert.equal(internal(`${site}${path}`), true, path);
  for (const path of [
    "/", "/v1/sessions/internal/messages", "/v1/agents/main/memory/internal/notes.md", "/v1/agents/internal/memory", "/v1/sessions?x=/internal/",
    "/internals/x", "/t/internal/v1/sessions", "/v1/agents/main/memory/a..b/internal", "/v1/sessions/100%25/view", "/v1/sessions/internal%23b",
  ]) assert.equal(internal(`${site}${path}`), false, path);
});

test("internal is 404 with a token and without", async () => {
  for (const headers of [{}, bearer]) {
    const got = await ask("/%69nternal/agent/tell", { method: "POST", headers });
    assert.deepEqual([got.status, got.error.type], [404, "not_found"]);
  }
});

test("the token, by any of the ways", async () => {
  const rows = [
    ["bearer", "/v1/sessions/a", bearer, 0],
    ["scheme in another case", "/v1/sessions/a", { authorization: `bEARER  ${token} ` }, 0],
    ["own header", "/v1/sessions/a", { "x-tidemark-token": token }, 0],
    ["own header beside another's bearer", "/v1/sessions/a", { "x-tidemark-token": token, authorization: "Bearer sk-1" }, 0],
    ["path", `/t/${encodeURIComponent(token)}/v1/sessions/a`, {}, 0],
    ["path beside another's bearer", `/t/${encodeURIComponent(token)}/v1/sessions/a`, { authorization: "Bearer sk-1" }, 0],
    ["subprotocol of a socket", "/ws?session=a", { upgrade: "websocket", "sec-websocket-protocol": `tidemark.v1, tidemark.token.${encodeURIComponent(token)}` }, 0],
    ["subprotocol of a socket, wrong", "/ws?session=a", { upgrade: "websocket", "sec-websocket-protocol": "tidemark.v1, tidemark.token.no" }, /^wrong token/],
    ["subprotocol, broken encoding", "/ws?session=a", { upgrade: "websocket", "sec-websocket-protocol": "tidemark.token.%zz" }, /^wrong token/],
    ["subprotocol of no socket", "/ws?session=a", { "sec-websocket-protocol": `tidemark.token.${encodeURIComponent(token)}` }, /^no token/],
    ["none", "/v1/sessions/a", {}, /^no token: send "Authorization: Bearer TOKEN" or "x-tidemark-token: TOKEN" \(TIDEMARK_TOKEN as it was deployed, by make deploy from \.secrets\)$/],
    ["empty bearer", "/v1/sessions/a", { authorization: "Bearer " }, /^no token/],
    ["basic", "/v1/sessions/a", { authorization: `Basic ${token}` }, /^no token/],
    ["no scheme", "/v1/sessions/a", { authorization: token }, /^no token|^wrong token/],
    ["wrong", "/v1/sessions/a", { authorization: "Bearer close sesame" }, /^wrong token: it is not this server's \(TIDEMARK_TOKEN as it was deployed, by make deploy from \.secrets\)$/],
    ["a part", "/v1/sessions/a", { authorization: `Bearer ${token.slice(0, -1)}` }, /^wrong token/],
    ["more", "/v1/sessions/a", { authorization: `Bearer ${token}x` }, /^wrong token/],
    ["wrong in the path wins", "/t/no/v1/sessions/a", bearer, /^wrong token/],
  ];
  for (const [name, path, headers, want] of rows) {
    const got = await ask(path, { headers });
    if (want === 0) assert.deepEqual(got, { to: { kind: "session", name: "agent:main:local:dm:a" } }, name);
    else {
      assert.equal(got.status, 401, name);
      assert.match(got.error.message, want, name);
      assert.equal(got.error.type, "unauthorized");
      assert.equal(got.error.requestId, got.headers.get("x-request-id"));
      assert.equal(got.headers.get("www-authenticate"), 'Bearer realm="tidemark"');
    }
  }
});

test("without a token in the settings nobody comes in, and it says how to set one", async () => {
  for (const TIDEMARK_TOKEN of [undefined, ""]) {
    for (const headers of [{}, bearer, { authorization: "Bearer " }, { "x-tidemark-token": "undefined" }]) {
      const got = await ask("/v1/sessions/a", { headers, env: { TIDEMARK_TOKEN } });
      assert.equal(got.status, 401);
      assert.equal(got.error.message, "this server has no token and lets nobody in; run: npx --prefix build wrangler secret put TIDEMARK_TOKEN --env=\"\"");
    }
  }
});

test("what helps in an environment of wrangler.toml names it", async () => {
  const say = async (env, headers) => (await ask("/v1/sessions/a", { headers, env: { TIDEMARK_ENV: "staging", ...env } })).error.message;
  assert.equal(await say({ TIDEMARK_TOKEN: "" }), "this server has no token and lets nobody in; run: npx --prefix build wrangler secret put TIDEMARK_TOKEN --env staging");
  for (const headers of [{}, { "x-tidemark-token": "no" }]) assert.match(await say({}, headers), /\(TIDEMARK_TOKEN as it was deployed, by make deploy ENV=staging from \.secrets\.staging\)$/);
  assert.match(await say({ TIDEMARK_DEV: "1", TIDEMARK_TOKEN: "" }), /\.dev\.vars/);
});

test("pages of other origins", async () => {
  const env = { TIDEMARK_SERVER_ORIGINS: "https://chat.example.com, https://b.example" };
  const rows = [
    ["own", site, 0], ["own in capitals", "HTTPS://TIDEMARK.EXAMPLE", 0], ["allowed", "https://b.example", 0], ["empty", "", 0],
    ["another", "https://evil.example", /^a page of https:\/\/evil\.example may not call this server; to allow it, list "https:\/\/evil\.example" in server\.origins/],
    ["another port", `${site}:8443`, /server\.origins/], ["an allowed one longer", "https://chat.example.com.evil", /server\.origins/],
    ["a file", "null", /^a page without an origin/], ["no URL", "x", /server\.origins/], ["long", `https://${"x".repeat(300)}`, /x…/],
  ];
  for (const [name, origin, want] of rows) {
    const got = await ask("/v1/sessions/a", { headers: { ...bearer, origin }, env });
    if (want === 0) assert.deepEqual(got.to, { kind: "session", name: "agent:main:local:dm:a" }, name);
    else assert.deepEqual([got.status, want.test(got.error.message)], [403, true], `${name}: ${got.text}`);
  }
  assert.equal((await ask("/v1/sessions/a", { headers: { origin: "https://chat.example.com" } })).status, 403, "none is allowed by default");
});

test("a preflight is no way in", async () => {
  const headers = { origin: site, "access-control-request-method": "POST" };
  const got = await ask("/v1/sessions/a/messages", { method: "OPTIONS", headers });
  assert.equal(got.status, 401);
  assert.equal(got.headers.get("access-control-allow-origin"), null);
  assert.equal((await ask("/healthz", { method: "OPTIONS" })).status, 401);
});

test("what is open, as in Go", async () => {
  for (const { method, path, open } of table.open) {
    const { status } = await ask(path, { method, env: { TIDEMARK_TOKEN: "" } });
    assert.equal(status, open ? 200 : 401, `${method} ${path}`);
  }
  for (const path of ["//healthz", "/%68ealthz"]) assert.equal((await ask(path)).status, 401, `${path}: Go reads it as another spelling`);
  assert.equal((await ask("/healthz")).text, '{"ok":true,"version":""}\n');
  assert.equal((await ask("/healthz", { env: { VERSION: { id: "a1", tag: "" } } })).text, '{"ok":true,"version":"a1"}\n');
  assert.match((await ask("/")).text, /^Tidemark .*docs\/http\.md/);
});

test("who has the token hears from the main agent what the settings are worth, a stranger wakes nobody", async () => {
  let asked = 0;
  const agent = (answer) => ({
    idFromName: (name) => name,
    get: (name) => ({
      fetch: (url, { headers }) => {
        asked++;
        assert.deepEqual([name, url, headers.authorization], ["main", `${site}/healthz`, `Bearer ${token}`]);
        return answer();
      },
    }),
  });
  const bad = { ok: false, version: "", status: "settings", problems: [{ setting: "model.provider", message: "m", fix: "f" }] };
  const AGENT = agent(() => Response.json(bad));
  const get = async (path, headers, env) => JSON.parse((await ask(path, { headers, env: { VERSION: { id: "a1" }, ...env } })).text);
  for (const [path, headers] of [["/healthz", bearer], [`/t/${encodeURIComponent(token)}/healthz`, {}]]) {
    assert.deepEqual(await get(path, headers, { AGENT }), { ...bad, version: "a1" });
  }
  assert.equal(asked, 2);
  for (const headers of [{}, { authorization: "Basic x" }, { ...bearer, origin: "https://evil.example" }, { "x-tidemark-token": "no", origin: "https://evil.example" }]) {
    assert.deepEqual(await get("/healthz", headers, { AGENT }), { ok: true, version: "a1" });
  }
  for (const [path, headers] of [["/healthz", { "x-tidemark-token": "no" }], ["/healthz", { authorization: "Bearer no" }], ["/t/no/healthz", bearer]]) {
    const got = await ask(path, { headers, env: { AGENT } });
    assert.deepEqual([got.status, got.error.type], [401, "unauthorized"], "a monitor whose token is not good any more");
    assert.match(got.error.message, /^wrong token/);
  }
  assert.match((await ask("/", { headers: { "x-tidemark-token": "no" } })).text, /^Tidemark/);
  assert.equal(asked, 2);
  const rows = [
    [() => { throw new Error("overloaded"); }, /^the main agent does not answer \(overloaded\)$/],
    [() => new Response("x", { status: 500 }), /^the main agent does not answer/],
    [() => Response.json({ error: { message: "the Go module did not start" } }, { status: 500 }), /^the Go module did not start$/],
  ];
  for (const [answer, want] of rows) {
    const got = await get("/healthz", bearer, { AGENT: agent(answer) });
    assert.deepEqual([got.ok, got.status], [false, "down"]);
    assert.match(got.problems[0].message, want);
  }
  const none = await get("/healthz", bearer, { AGENT, TIDEMARK_TOKEN: "" });
  assert.deepEqual(none, { ok: false, version: "a1", status: "settings", problems: [{ setting: "TIDEMARK_TOKEN", message: "is not set: nobody is let in", fix: "run: npx --prefix build wrangler secret put TIDEMARK_TOKEN --env=\"\"" }] });
});

test("under make dev a hint names .dev.vars", async () => {
  const say = async (headers, env) => (await ask("/v1/sessions/a", { headers, env: { TIDEMARK_DEV: "1", ...env } })).error.message;
  assert.match(await say({}), /\(TIDEMARK_TOKEN as it stood in \.dev\.vars when make dev was started\)$/);
  assert.match(await say({ "x-tidemark-token": "no" }), /^wrong token: it is not this server's \(TIDEMARK_TOKEN as it stood in \.dev\.vars when make dev was started\)$/);
  assert.match(await say({}, { TIDEMARK_TOKEN: "" }), /; set TIDEMARK_TOKEN in \.dev\.vars and start make dev again, which reads it when it starts$/);
});

test("sizes", async () => {
  const of = (path, length) => ask(path, { method: "POST", headers: { ...bearer, "content-length": String(length) } });
  const most = table.maxBody, import_ = 100 << 20;
  assert.ok((await of("/v1/sessions/a/messages", most)).to);
  const got = await of("/v1/sessions/a/messages", most + 1);
  assert.deepEqual([got.status, got.error.type, got.error.message], [413, "too_large", `body of ${most + 1} bytes, at most ${most}`]);
  assert.ok((await of("/v1/sessions/a/import", most + 1)).to);
  assert.ok((await of(`/t/${encodeURIComponent(token)}/v1/sessions/a/import?format=jsonl`, import_)).to);
  assert.equal((await of("/v1/sessions/a/import", import_ + 1)).status, 413);
  assert.equal((await of("/v1/agents/import/import", most + 1)).status, 413);
  assert.ok((await ask(`/v1/sessions/a?${"q".repeat(8192 - 15)}`, { headers: bearer })).to);
  assert.equal((await ask(`/v1/sessions/a?${"q".repeat(8192 - 14)}`, { headers: bearer })).status, 414);
  const strange = await ask("/v1/sessions/a/messages", { method: "POST", headers: { "content-length": "99999999" } });
  assert.equal(strange.status, 401, "a stranger learns of no limit");
});

test("an id of a request is kept if it is one, as in Go", () => {
  for (const { id, kept } of table.ids) {
    if (kept) assert.equal(requestID(id), id);
    else assert.match(requestID(id), /^[0-9A-HJKMNP-TV-Z]{26}$/);
  }
  assert.notEqual(requestID(null), requestID(null));
});

test("an answer of the front is no page", async () => {
  for (const { headers } of await Promise.all([ask("/healthz"), ask("/"), ask("/v1/sessions/a")])) {
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.match(headers.get("content-security-policy"), /default-src 'none'/);
    assert.equal(headers.get("cache-control"), "no-store");
  }
});

test("who asked an object that was restarted hears so, in the words of the door", async () => {
  const broken = new Error("Durable Object reset because its code was updated");
  const say = (path) => lost({ method: "POST", url: site + path, headers: new Headers({ "x-tidemark-session": "a" }) }, { TIDEMARK_TOKEN: token }, "id-1", broken);
  const ours = await say("/v1/sessions/a/messages");
  assert.equal(ours.status, 503);
  assert.equal(ours.headers.get("retry-after"), "2");
  const { error } = await ours.json();
  assert.equal(error.type, "unavailable");
  assert.equal(error.requestId, "id-1");
  assert.match(error.message, /its code was updated/);
  const theirs = await say("/v1/chat/completions");
  assert.equal(theirs.headers.get("x-should-retry"), "true");
  assert.match((await theirs.json()).error.message, /its code was updated/);
});

// Tests of the way of a webhook in front of any object, without workerd. Run by: node --test build/

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { front } from "./front.mjs";
import { MAX_WEBHOOK, Porch, SHARDS, STORE, webhook } from "./webhook.mjs";

const env = { TIDEMARK_TOKEN: "t", WHATSAPP_APP_SECRET: "app", WHATSAPP_VERIFY_TOKEN: "walnut", TELEGRAM_WEBHOOK_SECRET: "tele" };
const site = "https://tidemark.example";
const sign = (body, secret = "app") => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

async function post(path, body, headers = {}, more = {}) {
  const request = new Request(site + path, { method: "POST", body, headers, duplex: "half" });
  const { answer, to, request: ready } = await front(request, { ...env, ...more });
  return { status: answer?.status, to, ready };
}

test("a signed webhook goes to one of the objects that take them, as it came", async () => {
  const seen = new Set();
  for (let i = 0; i < 200; i++) {
    const body = JSON.stringify({ i, text: "h\u00e9" });
    const { to, ready } = await post("/webhooks/whatsapp", body, { "x-hub-signature-256": sign(body), authorization: "Bearer x", "x-request-id": "r1" });
    assert.equal(to.kind, "agent");
    assert.match(to.name, /^in:main:\d+$/);
    seen.add(to.name);
    assert.equal(await ready.text(), body);
    assert.equal(ready.headers.get("x-hub-signature-256"), sign(body));
    assert.equal(ready.headers.get("x-request-id"), "r1");
    assert.equal(ready.headers.get("authorization"), null);
    const again = await post("/webhooks/whatsapp", body, { "x-hub-signature-256": sign(body) });
    assert.deepEqual(again.to, to, "the same body has one object");
  }
  assert.equal(seen.size, SHARDS);
  const { to } = await post("/webhooks/telegram", "{}", { "x-telegram-bot-api-secret-token": "tele" }, { TIDEMARK_CHANNELS_TELEGRAM_AGENT: "work" });
  assert.match(to.name, /^in:work:\d+$/);
});

test("what one person writes, or a group, goes to one object", async () => {
  const whatsapp = async (value) => {
    const body = JSON.stringify({ object: "whatsapp_business_account", entry: [{ id: "9", changes: [{ field: "messages", value }] }] });
    return (await post("/webhooks/whatsapp", body, { "x-hub-signature-256": sign(body) })).to.name;
  };
  const telegram = async (update) => (await post("/webhooks/telegram", JSON.stringify(update), { "x-telegram-bot-api-secret-token": "tele" })).to.name;
  const message = (from, text, more) => ({ metadata: { phone_number_id: "4400" }, contacts: [{ profile: { name: '","wa_id":"1' }, wa_id: from }], messages: [{ ...more, from, id: text, text: { body: text } }] });
  const ada = await whatsapp(message("15550001", "one"));
  const rows = [
    ["again", whatsapp(message("15550001", "two"))],
    ["an answer, which names the business before the person", whatsapp(message("15550001", "three", { context: { from: "4400", id: "w" } }))],
    ["a text that names somebody else", whatsapp(message("15550001", '"wa_id":"15550002"'))],
    ["a status of what was sent to them", whatsapp({ statuses: [{ id: "w", recipient_id: "15550001", status: "read" }] })],
  ];
  for (const [name, to] of rows) assert.equal(await to, ada, name);
  const people = await Promise.all(Array.from({ length: 200 }, (_, i) => whatsapp(message(`1555${i}`, "hello"))));
  assert.equal(new Set(people).size, SHARDS, "people are spread");
  const group = (from) => whatsapp({ ...message(from, "hi"), messages: [{ from, group_id: "g1", id: from }] });
  assert.equal(await group("15550001"), await group("15550002"));
  assert.equal(await telegram({ update_id: 1, message: { chat: { id: -42 }, text: "a" } }), await telegram({ update_id: 2, message: { message_id: 3, from: { id: 7 }, chat: { id: -42 }, text: "b" } }));
});

test("a stranger costs no object", async () => {
  const rows = [
    ["unsigned", "/webhooks/whatsapp", "{}", {}, 401],
    ["another secret", "/webhooks/whatsapp", "{}", { "x-hub-signature-256": sign("{}", "other") }, 401],
    ["of another body", "/webhooks/whatsapp", "{} ", { "x-hub-signature-256": sign("{}") }, 401],
    ["no hash", "/webhooks/whatsapp", "{}", { "x-hub-signature-256": "sha256=" }, 401],
    ["another algorithm", "/webhooks/whatsapp", "{}", { "x-hub-signature-256": sign("{}").replace("sha256", "sha1") }, 401],
    ["our token does not help", "/webhooks/whatsapp", "{}", { authorization: "Bearer t" }, 401],
    ["another word", "/webhooks/telegram", "{}", { "x-telegram-bot-api-secret-token": "Tele" }, 401],
    ["too large", "/webhooks/whatsapp", new Uint8Array(MAX_WEBHOOK + 1), { "x-hub-signature-256": sign("") }, 413],
    ["unknown platform", "/webhooks/smoke", "{}", {}, 404],
    ["of the language", "/webhooks/constructor", "{}", {}, 404],
  ];
  for (const [name, path, body, headers, want] of rows) {
    const { status, to } = await post(path, body, headers);
    assert.deepEqual([status, to], [want, undefined], name);
  }
  const { status } = await post("/webhooks/whatsapp", "{}", { "x-hub-signature-256": sign("{}", "") }, { WHATSAPP_APP_SECRET: "" });
  assert.equal(status, 404, "a platform without its secret");
});

test("the largest that a platform posts is taken", async () => {
  const body = new Uint8Array(3 << 20).fill(32);
  assert.ok((await post("/webhooks/whatsapp", body, { "x-hub-signature-256": sign(body) })).to);
  assert.equal(MAX_WEBHOOK, JSON.parse(readFileSync(new URL("../testdata/front.json", import.meta.url))).maxWebhook);
});

test("the handshake needs the word", async () => {
  const get = (query) => front(new Request(`${site}/webhooks/whatsapp?${query}`), env);
  assert.equal((await get("hub.mode=subscribe&hub.verify_token=walnut&hub.challenge=7")).to.name, "in:main:0");
  for (const query of ["hub.verify_token=other", "", "hub.verify_token="]) assert.equal((await get(query)).answer.status, 403, query);
});

test("a body that never ends is given up", async () => {
  let cancelled = false;
  const body = new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(1)), cancel: () => { cancelled = true; } });
  const request = new Request(`${site}/webhooks/whatsapp`, { method: "POST", body, headers: { "x-hub-signature-256": sign("x") }, duplex: "half" });
  const answer = await webhook(request, new URL(request.url), "/webhooks/whatsapp", env, { refuse: (status) => status, readMs: 20 });
  assert.equal(answer, 408);
  assert.ok(cancelled, "the rest is read by nobody");
});

test("no name of an agent leads to them", async () => {
  const { to } = await front(new Request(`${site}/v1/agents/in%3Amain%3A3/memory`, { headers: { authorization: "Bearer t" } }), env);
  assert.equal(to.name, "main");
});

// porch gives a Porch over a fake object, and what it did.
function porch(more = {}) {
  const did = { stored: [], asked: [], alarm: null };
  const storage = {
    transactionSync: (f) => f(),
    sql: { exec: (sql, ...args) => did.stored.push({ sql, args }) },
    kv: { get: () => "in:main:0", put() {} },
    getAlarm: async () => did.alarm,
    setAlarm: async (at) => { did.alarm = at; },
  };
  const p = new Porch(() => ({ id: { name: "in:main:0" }, storage }), async (request) => {
    did.asked.push(new URL(request.url).pathname);
    await more.wait;
    return new Response(null, { status: more.status ?? 200 });
  });
  return { p, did };
}

const posted = (body, headers = { "x-webhook-hash": "ab", "content-length": String(body.length) }) =>
  new Request(`${site}/webhooks/whatsapp`, { method: "POST", body, headers });

test("behind one that Go took, webhooks are stored without it, and it is told once", async () => {
  const { p, did } = porch();
  assert.equal((await p.take(posted("one"))).status, 200);
  assert.deepEqual([did.stored.length, did.asked], [0, ["/webhooks/whatsapp"]]);
  for (const body of ["two", "three"]) assert.equal((await p.take(posted(body))).status, 200);
  assert.deepEqual(did.stored.map(({ sql, args }) => [sql === STORE, args[0], args[1], args[2], Buffer.from(args[4]).toString()]),
    [[true, "whatsapp", "ab", 0, "two"], [true, "whatsapp", "ab", 0, "three"]]);
  assert.ok(did.alarm > Date.now(), "an alarm looks after it");
  while (did.asked.length < 2) await new Promise((go) => setTimeout(go, 5));
  assert.deepEqual(did.asked, ["/webhooks/whatsapp", "/internal/channel/kick"]);
});

test("while bodies are there of which Go was not told, no alarm is set for later", async () => {
  const more = {};
  const { p, did } = porch(more);
  const far = Date.now() + 1_800_000;
  const clock = p.clock({ set: async (ms) => { did.alarm = ms; }, delete: async () => { did.alarm = null; } });
  await p.take(posted("one"));
  await clock.set(far);
  assert.equal(did.alarm, far);
  let answer;
  more.wait = new Promise((go) => { answer = go; });
  const near = (what) => assert.ok(did.alarm > 0 && did.alarm < Date.now() + 10_000, what);
  await p.take(posted("two"));
  near("an alarm that is set is brought forward");
  await clock.set(far);
  near("stored");
  await clock.delete();
  near("stored, and none is asked for");
  while (did.asked.length < 2) await new Promise((go) => setTimeout(go, 5));
  await clock.set(far);
  near("Go is being told");
  answer();
  await new Promise((go) => setImmediate(go));
  await clock.set(far);
  assert.equal(did.alarm, far, "Go was told, and looks after it");
});

test("what Go refuses, what is long and what the front did not see goes to Go", async () => {
  const { p, did } = porch({ status: 404 });
  for (let i = 0; i < 2; i++) assert.equal((await p.take(posted("x"))).status, 404);
  const good = porch();
  await good.p.take(posted("x"));
  await good.p.take(posted("x", { "x-webhook-hash": "ab", "content-length": "3000000" }));
  await good.p.take(posted("x", { "x-webhook-hash": "ab" }));
  assert.deepEqual([did.stored.length, did.asked.length, good.did.stored.length, good.did.asked.length], [0, 2, 0, 3]);
  assert.equal(p.take(posted("x", {})), null);
  assert.equal(p.take(new Request(`${site}/internal/channel/kick`, { headers: { "x-webhook-hash": "ab" } })), null);
});

// The fake Graph API, held against a client that others wrote (@chat-adapter/whatsapp): what it posts
// is verified and read by them, what they send is taken, and its errors are theirs to read. So our own
// client and the fake cannot be wrong in the same way.

import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { get, createServer } from "node:http";
import { after, before, test } from "node:test";

import { createWhatsAppAdapter, WhatsAppApiError } from "@chat-adapter/whatsapp";

import { wait } from "../patience.mjs";
import { start } from "./fake.mjs";

const ada = { number: "15557654321", userId: "US.9aZ", name: "Ada" };
const quiet = { debug() {}, info() {}, warn() {}, error() {}, child: () => quiet };

let fake, adapter, server, waiting = [], arrived = [];
const statuses = [];

// chat is what the adapter hands on to: it keeps what came, and wakes who waits for it.
const kept = new Map(), history = [];
const chat = {
  getState: () => ({
    get: async (k) => kept.get(k) ?? null, set: async (k, v) => { kept.set(k, v); }, delete: async (k) => { kept.delete(k); },
    getList: async () => history,
  }),
  processMessage: (_, thread, message) => {
    history.push(message.toJSON());
    arrive({ thread, message });
  },
  processReaction: (reaction) => arrive({ reaction }),
  processAction: (action) => arrive({ action }),
};

function arrive(what) {
  const next = waiting.shift();
  next ? next(what) : arrived.push(what);
}

const arrival = () => arrived.length ? arrived.shift() : new Promise((done) => waiting.push(done));

before(async () => {
  fake = await start({ FAKE_FILES: "https://lookaside.fbsbx.com" });
  adapter = createWhatsAppAdapter({
    accessToken: fake.token, appSecret: fake.appSecret, verifyToken: fake.verifyToken, phoneNumberId: fake.account,
    apiUrl: fake.url, apiVersion: fake.version, logger: quiet,
  });
  await adapter.initialize(chat);
  server = createServer(async (req, res) => {
    const chunks = [];
    for await (const c of req) chunks.push(c);
    const body = chunks.length ? Buffer.concat(chunks) : undefined;
    const answer = await adapter.handleWebhook(new Request(`http://localhost${req.url}`, { method: req.method, headers: req.headers, body }));
    const text = await answer.text();
    if (body && answer.status === 200) {
      for (const s of JSON.parse(body).entry[0].changes[0].value.statuses ?? []) statuses.push(`${s.id} ${s.status}`);
    }
    res.writeHead(answer.status).end(text);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  await fake.webhook(`http://127.0.0.1:${server.address().port}/hook`); // by the handshake
});

after(async () => {
  await fake?.stop();
  server?.close();
});

const until = (what, done) => wait(done, what);

test("a signed text with escapes is verified and read", async () => {
  const id = await fake.say({ ...ada, text: "hé / 🌊" });
  const { message, thread } = await arrival();
  assert.equal(message.text, "hé / 🌊");
  assert.equal(message.id, id);
  assert.equal(message.author.fullName, "Ada");
  assert.match(thread, /4400/);
});

test("what it sends is taken, and statuses follow", async () => {
  await fake.say({ ...ada, text: "hi" });
  const { thread, message } = await arrival();
  const sent = await adapter.postMessage(thread, { markdown: "**hello**" });
  const { sent: taken } = await fake.state();
  const last = taken.at(-1);
  assert.equal(last.id, sent.id);
  assert.equal(last.to, ada.number);
  assert.equal(last.text, "*hello*");
  await until("statuses", () => statuses.filter((s) => s.startsWith(sent.id)).length === 3);
  assert.deepEqual(statuses.filter((s) => s.startsWith(sent.id)).map((s) => s.split(" ")[1]), ["sent", "delivered", "read"]);
  await adapter.markAsRead(message.id);
  assert.deepEqual((await fake.state()).reads.at(-1), { id: message.id, typing: false });
  await adapter.startTyping(thread);
  assert.deepEqual((await fake.state()).reads.at(-1), { id: message.id, typing: true });
});

test("somebody without a number is addressed by user id", async () => {
  await fake.say({ userId: "DE.anna1", name: "Anna", text: "hallo" });
  const { thread } = await arrival();
  await adapter.postMessage(thread, "hi");
  const last = (await fake.state()).sent.at(-1);
  assert.equal(last.to, "DE.anna1");
  assert.equal(last.body.recipient, "DE.anna1");
});

test("an image comes in two steps, with its hash", async () => {
  const data = Buffer.from("not a picture, but bytes");
  await fake.say({ ...ada, type: "image", mime: "image/png", data: data.toString("base64"), text: "look" });
  const { message } = await arrival();
  const { image } = message.raw.message;
  assert.equal(image.caption, "look");
  assert.equal(image.sha256, createHash("sha256").update(data).digest("base64"));
  // Theirs asks no address of this machine for media: the fake names one of Meta's, which is asked here.
  const plain = (url, signal, headers) => new Promise((done, fail) => {
    assert.equal(url.origin, "https://lookaside.fbsbx.com");
    get(fake.url + url.pathname, { signal, headers }, done).on("error", fail);
  });
  assert.deepEqual(await adapter.downloadMedia(image.id, plain), data);
  await assert.rejects(adapter.downloadMedia("12345", plain), (e) => e instanceof WhatsAppApiError && e.errorCode === 100);
});

test("a file of theirs is kept, and sent by its id", async () => {
  await fake.say({ ...ada, text: "hi" });
  const { thread } = await arrival();
  await adapter.postMessage(thread, { markdown: "a picture", files: [{ data: Buffer.from("png bytes"), filename: "a.png", mimeType: "image/png" }] });
  const last = (await fake.state()).sent.at(-1);
  assert.equal(last.type, "image");
  const info = await (await fetch(`${fake.url}/${fake.version}/${last.body.image.id}`, { headers: { authorization: `Bearer ${fake.token}` } })).json();
  assert.equal(info.mime_type, "image/png");
  assert.equal(info.file_size, 9);
});

test("buttons and reactions are what they are", async () => {
  await fake.say({ ...ada, type: "interactive", payload: { type: "button_reply", button_reply: { id: "approve:42", title: "Approve" } } });
  assert.ok((await arrival()).action);
  await fake.say({ ...ada, type: "reaction", payload: { message_id: "wamid.B", emoji: "👍" } });
  assert.ok((await arrival()).reaction);
});

test("errors have their code and status", async () => {
  await fake.say({ ...ada, text: "hi" });
  const { thread } = await arrival();
  for (const [code, status] of [[131047, 400], [131056, 400], [190, 401], [131000, 500], [131026, 400], [368, 403]]) {
    await fake.fail(ada.number, { Code: code });
    await assert.rejects(adapter.postMessage(thread, "x"), (e) => e instanceof WhatsAppApiError && e.errorCode === code && e.status === status, `${code}`);
  }
});

test("their signature is ours", () => {
  const body = '{"a":"\\u00e9 \\/"}';
  const sum = createHmac("sha256", fake.appSecret).update(body).digest("hex");
  assert.equal(adapter.verifySignature(body, `sha256=${sum}`), true);
});

// Pages of other origins in a real Chromium, on both hosts: its own preflights decide, not what we think they are.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { Model } from "../clients/model.mjs";
import { TOKEN, host, hosts, launch } from "./rig.mjs";

// site is an empty page on an origin of its own.
async function site() {
  const server = createServer((_, res) => res.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>elsewhere</title>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { origin: `http://localhost:${server.address().port}`, close: () => server.close() };
}

// call makes a request in a page: what its script may see of the answer.
const call = (page, url, { method = "POST", headers = {}, body } = {}) => page.evaluate(async ({ url, method, headers, body }) => {
  try {
    const r = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
    return { status: r.status, text: await r.text(), headers: Object.fromEntries(r.headers) };
  } catch (e) {
    return { failed: e.name };
  }
}, { url, method, headers, body });

const chat = (text, more) => ({ model: "tidemark", messages: [{ role: "user", content: text }], ...more });
const bearer = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

for (const kind of hosts) {
  describe(kind, { timeout: 600_000 }, () => {
    let model, server, listed, stranger, friend, foe;
    before(async () => {
      model = await new Model().start();
      [listed, stranger] = [await site(), await site()];
      server = await host(kind, model, { vars: { TIDEMARK_SERVER_ORIGINS: listed.origin } });
      [friend, foe] = [await browser.newPage(), await browser.newPage()];
      await friend.goto(listed.origin);
      await foe.goto(stranger.origin);
    });
    after(async () => {
      for (const page of [friend, foe]) await page?.close();
      await server?.close();
      for (const s of [listed, stranger]) s?.close();
      await model?.stop();
    });

    const sdk = { ...bearer, "x-stainless-lang": "js", "x-stainless-retry-count": "0" };
    const rows = [
      ["a completion", "/v1/chat/completions", { headers: sdk, body: chat("hi") }, /You said: hi/],
      ["chunks", "/v1/chat/completions", { headers: sdk, body: chat("hi", { stream: true }) }, /\[DONE\]/],
      ["a conversation of the Messages API", "/v1/messages", { headers: { "x-api-key": TOKEN, "anthropic-version": "2023-06-01", "anthropic-dangerous-direct-browser-access": "true", "x-tidemark-session": "afar", "content-type": "application/json" }, body: chat("hi", { max_tokens: 9 }) }, /You said: hi/],
      ["a request that is passed on", "/v1/messages", { headers: { "x-tidemark-token": TOKEN, "x-api-key": "k", "content-type": "application/json" }, body: chat("hi", { max_tokens: 9 }) }, /"msg_fake"/],
      ["a chat of useChat", "/api/chat", { headers: bearer, body: { id: "Afar", trigger: "submit-message", messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "hi" }] }] } }, /\[DONE\]/],
      ["a message", "/v1/sessions/afar/messages", { headers: bearer, body: { text: "hi there" } }, /You said: hi there/],
      ["a look", "/v1/sessions", { method: "GET", headers: bearer }, /"sessions"/],
    ];
    for (const [name, path, init, want] of rows) {
      test(`${name}: a page that is listed reads it, one that is not does not`, async () => {
        const got = await call(friend, server.url + path, init);
        assert.equal(got.status, 200, JSON.stringify(got));
        assert.match(got.text, want);
        const before = model.calls.length;
        assert.deepEqual(await call(foe, server.url + path, init), { failed: "TypeError" });
        assert.equal(model.calls.length, before, "and nothing was done for it");
      });
    }

    test("a script reads the headers that say what became of its request", async () => {
      const { headers } = await call(friend, `${server.url}/v1/chat/completions`, { headers: { ...bearer, "x-tidemark-session": "afar" }, body: chat("again", { top_p: 1 }) });
      assert.deepEqual([headers["x-tidemark-session"], headers["x-tidemark-ignored"]], ["agent:main:local:dm:afar", "top_p"]);
      assert.ok(headers["x-request-id"]);
    });

    test("a refusal is read, too", async () => {
      const got = await call(friend, `${server.url}/v1/chat/completions`, { headers: { ...bearer, authorization: "Bearer wrong" }, body: chat("x") });
      assert.deepEqual([got.status, JSON.parse(got.text).error.code], [401, "invalid_api_key"]);
    });

    test("what needs no preflight is refused as well", async () => {
      const before = model.calls.length;
      const plain = { headers: { "content-type": "text/plain" }, body: chat("x") };
      assert.deepEqual(await call(foe, `${server.url}/t/${TOKEN}/v1/chat/completions`, plain), { failed: "TypeError" });
      assert.equal(model.calls.length, before);
    });
  });
}

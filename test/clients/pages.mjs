// Pages of other origins, by the requests that a browser makes for them.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, test } from "node:test";
import { page, token } from "./targets.mjs";

// pages tests what runs at site().url.
export function pages(site, user) {
  describe("pages of other origins", () => {
    const send = (method, path, headers, body = "") => new Promise((done, failed) => {
      const req = http.request(site().url + path, { method, headers }, async (res) => done({ status: res.statusCode, headers: res.headers, body: Buffer.concat(await res.toArray()).toString() }));
      req.on("error", failed).end(body);
    });

    test("a page that is listed asks, calls and reads, also a refusal", async () => {
      for (const path of ["/v1/chat/completions", "/v1/messages", "/api/chat", "/v1/sessions/main/messages"]) {
        const asks = { origin: page, "access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type,x-stainless-lang" };
        const pre = await send("OPTIONS", path, asks);
        assert.deepEqual([pre.status, pre.headers["access-control-allow-origin"], pre.headers["access-control-allow-headers"], pre.headers.vary], [204, page, asks["access-control-request-headers"], "Origin"], path);
        assert.match(pre.headers["access-control-allow-methods"], /POST/);
        const no = await send("POST", path, { origin: page });
        assert.deepEqual([no.status, no.headers["access-control-allow-origin"]], [401, page], path);
        const evil = await send("OPTIONS", path, { ...asks, origin: "https://evil.example" });
        assert.deepEqual([evil.status, evil.headers["access-control-allow-origin"]], [403, undefined], path);
      }
      const yes = await send("POST", "/v1/chat/completions", { origin: page, authorization: `Bearer ${token}` }, JSON.stringify({ model: "tidemark", messages: [user("from afar")] }));
      assert.deepEqual([yes.status, yes.headers["access-control-allow-origin"]], [200, page]);
      assert.match(yes.headers["access-control-expose-headers"], /x-request-id/);
      const relayed = await send("POST", "/v1/messages", { origin: page, "x-tidemark-token": token, "x-api-key": "k" }, JSON.stringify({ model: "m", max_tokens: 1, messages: [user("from afar")] }));
      assert.deepEqual([relayed.status, relayed.headers["access-control-allow-origin"]], [200, page]);
    });
  });
}

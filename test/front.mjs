// Proves in workerd what stands before Go and around it, with the probe (host/probe): the front, which
// lets no stranger wake an object, and the life of Go instances: one that does not start, ends, grows or is
// idle. Run by: node test/front.mjs [folder of the built probe] [folder of the built Worker]

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { PATIENCE, compatibility, start, wait } from "./workerd.mjs";

const probe = path.resolve(process.argv[2] ?? ".cache/probe");
const worker = path.resolve(process.argv[3] ?? "dist");
const token = "open sesame";
const at = (key, what) => `/v1/sessions/${encodeURIComponent(key)}/${what}`;
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const range = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const folder = () => mkdtempSync(path.join(tmpdir(), "front-"));

// events reads an SSE answer to its end.
const events = async (res) => [...(await res.text()).matchAll(/^data: (.*)$/gm)].map((m) => m[1]);

// raw sends a request line as it is: fetch would put the path in order first.
function raw(base, line, headers = "") {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = net.connect(Number(port), hostname, () => {
      socket.write(`${line} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: close\r\n${headers}\r\n`);
    });
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error("no answer")));
    socket.on("error", reject).on("data", (b) => {
      const [, status] = (got += b).match(/^HTTP\/1\.1 (\d+) /) ?? [];
      if (!status) return;
      resolve(Number(status));
      socket.destroy();
    });
  });
}

// objects counts the databases under a folder of objects.
const objects = (disk) => readdirSync(path.join(disk, "objects"), { recursive: true })
  .filter((f) => /[0-9a-f]{64}\.sqlite$/.test(f)).length;

// Each has workerds of its own, and mostly waits for one to start.
describe("the front", { concurrency: 3 }, () => {
  describe("a stranger", { concurrency: 1 }, () => {
    let w, disk;
    before(async () => {
      disk = folder();
      w = await start(probe, { TIDEMARK_TOKEN: token }, { disk });
    });
    after(async () => {
      await w.dispose();
      rmSync(disk, { recursive: true });
    });

    test("wakes no object, whatever he asks for", async () => {
      const paths = ["/", "/healthz", "/v1/sessions", "/v1/agents/x/memory", "/t/wrong/v1/sessions/y/rows", "/internal/agent/tell", "/nothing", "/v1/sessions/%zz", "/debug/host"];
      for (let round = 0; round < 10; round++) {
        await Promise.all(range(40, async (i) => {
          const p = i < paths.length ? paths[i] : at(`stranger ${round} ${i}`, "rows");
          const init = [{}, { method: "POST", body: "x".repeat(1000) }, { headers: { authorization: "Bearer no" } }, { method: "OPTIONS" }][round % 4];
          const { status } = await w.get(p, init);
          assert.ok([200, 401, 404].includes(status), `${p}: ${status}`);
        }));
      }
      assert.equal(objects(disk), 0);
      await w.json(at("owner", "write?text=x"), { headers: { authorization: `Bearer ${token}` } });
      assert.equal(objects(disk), 1, "the count would not have seen them");
    });

    test("a body that says it is too large is refused before it is sent", async () => {
      const headers = `authorization: Bearer ${token}\r\nexpect: 100-continue\r\ncontent-length: ${(32 << 20) + 1}\r\n`;
      assert.equal(await raw(w.url("/"), `POST ${at("large", "count")}`, headers), 413);
      assert.equal(objects(disk), 1);
    });

    test("nobody comes to where objects talk to each other, even with the token", async () => {
      const headers = `authorization: Bearer ${token}\r\n`;
      for (const p of [
        "/internal/agent/tell", "//internal/x", "/%69nternal/x", "/%2569nternal/x", "/./internal/x", "/v1/../internal/x", "/v1/%2e%2e/internal/x",
        "/v1/..%2finternal/x", "/\\internal\\x", "/%5cinternal/x", `/t/${encodeURIComponent(token)}/internal/x`, `/t/${encodeURIComponent(token)}//internal/x`,
        "/INTERNAL/x", "/v1/sessions/a/..%2f..%2f..%2finternal",
      ]) assert.equal(await raw(w.url("/"), `POST ${p}`, headers), 404, p);
      assert.equal(objects(disk), 1);
    });
  });

  test("tests run on the runtime that wrangler.toml asks for", () => {
    const toml = readFileSync(new URL("../wrangler.toml", import.meta.url), "utf8");
    assert.ok(toml.includes(`compatibility_date = "${compatibility.compatibilityDate}"`));
    assert.ok(toml.includes(`compatibility_flags = ${JSON.stringify(compatibility.compatibilityFlags)}`));
  });

  // Behind the front stands the door in Go with a check of its own: asked past the front, it must say the same.
  test("the front says what the door in Go says", async () => {
    for (const [TIDEMARK_TOKEN, TIDEMARK_ENV] of [[token, ""], ["", "staging"], ["", ""], [token, "staging"]].slice(0, process.env.SOAK ? 4 : 2)) {
      const w = await start(worker, { TIDEMARK_TOKEN, TIDEMARK_ENV, TIDEMARK_SERVER_ORIGINS: "https://chat.example.com" });
      const space = await w.mf.getDurableObjectNamespace("SESSION");
      const key = "agent:main:web:dm:p";
      const door = space.get(space.idFromName(key));
      for (const headers of [
        {}, { authorization: "Bearer no" }, { authorization: "Basic x" }, { "x-tidemark-token": "no" }, { origin: "null" }, { origin: "https://evil.example" },
        { origin: "https://evil.example", authorization: `Bearer ${token}` }, { origin: "https://chat.example.com" }, { origin: "" },
        { authorization: `bearer  ${token}` }, { "x-tidemark-token": token, authorization: "Bearer sk" },
      ]) {
        for (const [method, p] of [["GET", at(key, "view")], ["OPTIONS", at(key, "messages")], ["GET", `/t/no${at(key, "view")}`], ["GET", "/healthz"], ["GET", "/t/no/healthz"]]) {
          const init = { method, headers: { "x-request-id": "same", "accept-encoding": "identity", ...headers } };
          const [a, b] = await Promise.all([w.get(p, init), door.fetch(w.url(p), init)]);
          const shown = async (r) => ({ status: r.status, text: await r.text(), headers: Object.fromEntries([...r.headers].filter(([k]) => !["date", "transfer-encoding", "content-length", "connection", "keep-alive"].includes(k))) });
          assert.deepEqual(await shown(a), await shown(b), `${method} ${p} ${JSON.stringify(headers)}`);
        }
      }
      await w.dispose();
    }
  });

  test("a look for what is not there stores nothing", async () => {
    const disk = folder();
    const w = await start(worker, {}, { disk, token });
    const written = () => readdirSync(path.join(disk, "objects"), { recursive: true })
      .filter((f) => /[0-9a-f]{64}\.sqlite-wal$/.test(f)).map((f) => statSync(path.join(disk, "objects", f)).size);
    for (const p of [at("nothing", "view"), at("nothing", "events"), "/v1/agents/nobody/memory"]) assert.equal((await w.get(p)).status, 404, p);
    assert.deepEqual(written(), [0, 0], "a session and an agent");
    assert.equal((await w.get(at("somebody", "messages"), { method: "POST", body: '{"text":"hi"}' })).status, 200);
    assert.ok(written().some((n) => n > 0), "the sizes would not have seen it");
    await w.dispose();
  });

  test("/healthz tells who has the token what is wrong with the settings", async () => {
    const rows = [
      ["nothing", {}, "", { ok: true, status: "ok", model: /^offline / }],
      ["a key is missing", { TIDEMARK_MODEL_PROVIDER: "anthropic" }, "", { ok: false, status: "settings", setting: "ANTHROPIC_API_KEY", message: /is not set/, fix: /run: npx --prefix build wrangler secret put ANTHROPIC_API_KEY --env=""$/ }],
      ["the same in staging", { TIDEMARK_MODEL_PROVIDER: "anthropic", TIDEMARK_ENV: "staging" }, "", { ok: false, setting: "ANTHROPIC_API_KEY", fix: /secret put ANTHROPIC_API_KEY --env staging$/ }],
      ["models of Cloudflare, without the binding", { TIDEMARK_MODEL_PROVIDER: "workers-ai" }, "", { ok: false, status: "settings", setting: "model.provider", message: /^is "workers-ai", and wrangler\.toml binds no AI$/, fix: /^add \[ai\]/ }],
      ["the same under make dev", { TIDEMARK_MODEL_PROVIDER: "workers-ai", TIDEMARK_AI: "off", AI: "bound", TIDEMARK_DEV: "1" }, "", { ok: false, status: "settings", setting: "model.provider", fix: /^set TIDEMARK_MODEL_PROVIDER=offline in \.dev\.vars .*; or reach the same models by their API/ }],
      ["the same, switched off", { TIDEMARK_MODEL_PROVIDER: "workers-ai", TIDEMARK_AI: "off", AI: "bound" }, "", { ok: false, setting: "model.provider", message: /TIDEMARK_AI is "off"$/, fix: /^take the variable TIDEMARK_AI away/ }],
      ["an endpoint without a model", { OPENAI_BASE_URL: "http://127.0.0.1:1/v1" }, "", { ok: false, setting: "model.id", message: /^TIDEMARK_MODEL_ID: missing; OPENAI_BASE_URL is set/, fix: /\[vars\]/ }],
      ["a secret in the document", {}, '{"model":{"apiKey":"sk-hush"}}', { ok: false, setting: "model.apiKey", message: /a secret does not belong in the document$/, fix: /^take it out of config\.json; run: npx .* secret put \w+ .*, or put it into \.secrets/ }],
      ["the same under make dev", { TIDEMARK_DEV: "1" }, '{"model":{"apiKey":"sk-hush"}}', { ok: false, setting: "model.apiKey", fix: /^take it out of config\.json; set \w+( or \w+)* in \.dev\.vars/ }],
      ["the same in staging", { TIDEMARK_ENV: "staging" }, '{"model":{"apiKey":"sk-hush"}}', { ok: false, setting: "model.apiKey", fix: /--env staging, or put it into \.secrets\.staging and deploy again$/ }],
      ["the document and a variable", { TIDEMARK_LOG_LEVEL: "loud" }, '{"model":{"maxTokens":"many"}}', { ok: false, setting: "model.maxTokens", last: "log.level" }],
      ["the same under make dev", { TIDEMARK_MODEL_PROVIDER: "anthropic", TIDEMARK_DEV: "1" }, "", { ok: false, status: "settings", setting: "ANTHROPIC_API_KEY", message: /is not set/, fix: /^set ANTHROPIC_API_KEY in \.dev\.vars and start make dev again/ }],
      ["a variable", { TIDEMARK_MODEL_MAXTOKENS: "many" }, "", { ok: false, status: "settings", setting: "model.maxTokens", message: /^TIDEMARK_MODEL_MAXTOKENS: found "many", want/, fix: /\[vars\]/ }],
      ["a time zone", { TIDEMARK_USERTIMEZONE: "Europe/Berln" }, "", { ok: false, status: "settings", setting: "userTimezone", message: /found "Europe\/Berln", want an IANA time zone such as "Europe\/Berlin"$/, fix: /\[vars\]/ }],
      ["the document", {}, '{"model":{"maxTokens":"many"}}', { ok: false, status: "settings", setting: "model.maxTokens", message: /^config\.json:1:\d+: found/, fix: /config\.json in the bucket/ }],
      ["channels", { WHATSAPP_TOKEN: "t", WHATSAPP_APP_SECRET: "s", WHATSAPP_VERIFY_TOKEN: "v" }, '{"channels":{"whatsapp":{"agent":"nope","phoneNumberId":"+49 151"}}}', { ok: true, status: "settings", channels: "WhatsApp (pairing, agent nope), Telegram off", setting: "channels.whatsapp.phoneNumberId", message: /which is no id/, fix: /\(config\.json:1:\d+\)$/, warnings: /^channels\.whatsapp\.agent is "nope", and agents\.list has no such agent/ }],
      ["half a channel", { TELEGRAM_TOKEN: "1:a" }, "", { ok: true, status: "settings", channels: "WhatsApp off, Telegram off (TELEGRAM_WEBHOOK_SECRET is not set)", setting: "TELEGRAM_WEBHOOK_SECRET", fix: /secret put TELEGRAM_WEBHOOK_SECRET --env=""$/ }],
      ["no document", {}, "{", { ok: false, status: "settings", setting: /^config\.json/, message: /no JSON/, fix: /config\.json in the bucket/ }],
    ];
    // Each starts a Worker. What differs from another in words only is for SOAK=1, which make soak sets.
    const some = rows.filter(([name]) => process.env.SOAK || !/the same|switched off|an endpoint|a variable|a time zone|^the document$|half a channel/.test(name));
    for (const [name, vars, text, want] of some) {
      const w = await start(worker, vars, { token });
      if (text) await (await w.mf.getR2Bucket("BUCKET")).put("config.json", text);
      const res = await w.get("/healthz");
      const { ok, status, model, problems = [], channels = [], warnings = [] } = await res.json();
      assert.equal(res.status, 200, name);
      const got = { ok, status, model, ...problems[0], last: problems.at(-1)?.setting, channels: channels.map((c) => c.text).join(", "), warnings: warnings.join("\n") };
      for (const [key, value] of Object.entries(want)) {
        if (value instanceof RegExp) assert.match(got[key], value, `${name}: ${key}`);
        else assert.equal(got[key], value, `${name}: ${key}`);
      }
      assert.deepEqual(await (await w.get("/healthz", { headers: { authorization: "" } })).json(), { ok: true, version: "" }, name);
      const said = await w.get(at("a", "messages"), { method: "POST", body: '{"text":"hi"}' });
      const { error } = await said.json();
      if (ok) assert.equal(said.status, 200, name);
      else {
        assert.deepEqual([said.status, error.type], [503, "unavailable"], name);
        for (const { setting, message, fix } of problems) for (const part of [setting, message, fix]) assert.ok(error.message.includes(part), `${name}: ${part} in ${error.message}`);
      }
      await w.dispose();
    }
  });

  test("a mistake in the settings is logged once a minute, whoever finds it", async () => {
    let text = "";
    const handleRuntimeStdio = (out, err) => { for (const s of [out, err]) s.on("data", (b) => { text += b; }); };
    const w = await start(worker, { TIDEMARK_LOG_LEVEL: "loud" }, { token, more: { handleRuntimeStdio } });
    for (let i = 0; i < 5; i++) {
      for (const p of [at("a", "view"), at(`b${i}`, "view"), "/v1/agents", "/healthz"]) await (await w.get(p)).text();
    }
    await wait(() => text.includes("configuration is not taken up"));
    await w.dispose();
    assert.deepEqual(text.split("\n").filter((s) => s.includes("loud")).length, 1, text);
  });

  describe("a Go instance", { concurrency: 1 }, () => {
    let w;
    const begin = async (limits, vars, from = probe) => {
      await w?.dispose();
      w = await start(from, { TIDEMARK_LIMITS: JSON.stringify(limits), ...vars }, { token });
    };
    // host looks at the instance of an object, behind an event of it.
    const host = async (key = "look") => {
      await w.get(at(key, "empty"));
      return w.json(at(key, "debug/host"));
    };
    // held begins a request of an object that lasts until end is called; its answer then is {bytes}.
    const held = async (key) => {
      let end;
      const body = new ReadableStream({ start(c) { c.enqueue(new Uint8Array(1000)); end = () => { c.enqueue(new Uint8Array(500)); c.close(); }; } });
      const answer = w.get(at(key, "count"), { method: "POST", body, duplex: "half", signal: AbortSignal.timeout(60_000) });
      await wait(async () => (await w.json(at(key, "debug/host"))).pending.calls === 1);
      return { end, answer };
    };
    const notes = async (key) => (await w.json(at(key, "rows"))).map(([, text]) => text);
    after(() => w.dispose());

    test("that does not start says so, and each event tries again", async () => {
      const broken = folder();
      cpSync(probe, broken, { recursive: true });
      writeFileSync(path.join(broken, "app.wasm"), new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
      await begin({}, {}, broken);
      for (let i = 0; i < 3; i++) {
        const res = await w.get(at("a", "rows"));
        const { error } = await res.json();
        assert.equal(res.status, 500);
        assert.equal(error.type, "internal");
        assert.match(error.message, /the Go module did not start: .*; nothing was lost, and the next request tries again/);
        assert.equal(error.requestId, res.headers.get("x-request-id"));
      }
      assert.equal((await w.get("/healthz")).status, 200);
      rmSync(broken, { recursive: true });
    });

    test("that ends says what happened, and the next request is fine", async () => {
      await begin({});
      for (const [what, cause] of [["fatal", /exited with code 2/], ["recurse", /call stack/]]) {
        await w.json(at("a", "write?text=kept"));
        const res = await w.get(at("a", what), { headers: { "x-request-id": "of-mine" } });
        const { error } = await res.json();
        assert.deepEqual([res.status, error.type, error.requestId], [500, "internal", "of-mine"]);
        assert.match(error.message, cause);
        assert.match(error.message, /what was stored before is kept and goes on; send it again by its id/);
        assert.ok((await notes("a")).includes("kept"));
      }
      const res = await w.get(at("a", "panic"));
      assert.match((await res.json()).error.message, /^internal error/);
      assert.equal((await host()).boots, 3, "a panic that is recovered ends nothing");
    });

    test("that has grown is left: idle objects move, what is in flight ends on the old one", async () => {
      await begin({ drainBytes: 24 << 20 });
      for (const k of ["a", "b", "c"]) await w.json(at(k, "write?text=before"));
      const { end, answer } = await held("flow");
      const stream = events(await w.get(at("flow", "stream?n=60&ms=20")));
      await w.json(at("hog", "hog?mb=30"));
      const now = await host("a");
      assert.deepEqual([now.boots, now.draining, now.objects], [2, false, 1]);
      assert.ok(now.memory < 24 << 20, `${now.memory} bytes`);
      assert.deepEqual([now.leaving.objects, now.leaving.draining], [1, true], "only what is in flight is still there");
      assert.deepEqual(await notes("b"), ["before", "rows"]);
      assert.deepEqual(await stream, range(60, (i) => `flow ${i}`));
      end();
      assert.equal((await (await answer).json()).bytes, 1500);
      const then = await host("a");
      assert.deepEqual([then.leaving, then.total.left, then.violations, then.boots], [null, 1, 0, 2]);
    });

    test("that drains ends at last when the next one drains", async () => {
      await begin({ drainBytes: 24 << 20 });
      const stream = events(await w.get(at("endless", "stream?n=100000&ms=20")));
      await w.json(at("hog", "hog?mb=30"));
      assert.equal((await host()).leaving.objects, 1);
      await w.json(at("hog", "hog?mb=30"));
      const got = await stream;
      assert.match(got.at(-1), /cut off/);
      assert.deepEqual(got.slice(0, -1), range(got.length - 1, (i) => `endless ${i}`));
      assert.deepEqual([(await host()).leaving, (await notes("endless")).at(-1)], [null, "rows"]);
    });

    // The collector takes its time: what is shown is that nothing holds the memory of those that ended.
    for (const how of ["was left", "has ended"]) {
      test(`that ${how} gives its memory back`, { skip: how !== "was left" && !process.env.SOAK && "make soak" }, async () => {
        await begin({ drainBytes: how === "was left" ? 24 << 20 : 1 << 30 });
        await wait(async () => {
          await Promise.all(range(4, (i) => w.json(at(`k${i}`, "write?text=x"))));
          await (await w.get(at("hog", "hog?mb=30"))).text();
          if (how === "has ended") await (await w.get(at("hog", "fatal"))).text();
          await sleep(100);
          const { total } = await host();
          return total.freed >= 10 && total.freed >= total.boots - 8;
        });
        assert.equal((await host()).violations, 0);
      });
    }

    test("lets go of objects that are quiet, not of one with something in flight", async () => {
      await begin({ quietMs: 200, sweepMs: 50 });
      const { end, answer } = await held("busy");
      await Promise.all(range(10, (i) => w.json(at(`quiet${i}`, "write?text=before"))));
      await wait(async () => (await host()).objects === 2);
      assert.ok((await host()).total.swept >= 10);
      end();
      assert.equal((await (await answer).json()).bytes, 1500);
      assert.deepEqual(await notes("quiet3"), ["before", "rows"]);
      assert.equal((await host()).boots, 1);
    });

    test("lets go of an object that was not heard of for long, whatever it waits for", async () => {
      await begin({ lostMs: 1500, sweepMs: 50 });
      const { answer } = await held("hang");
      await wait(async () => (await host()).total.swept === 1);
      const res = await answer;
      assert.equal(res.status, 500);
      assert.match((await res.json()).error.message, /replaced in the middle of the request/);
    });
  });

  // A change of variables or bindings without one of the code leaves the isolate, and its Go instance, in place
  // (https://developers.cloudflare.com/workers/configuration/bindings/#making-changes-to-bindings): the objects that
  // begin behind it have another environment.
  test("variables and bindings that changed alone are those of the objects that begin behind it", async () => {
    const changed = folder();
    cpSync(probe, changed, { recursive: true });
    renameSync(path.join(changed, "shim.mjs"), path.join(changed, "served.mjs"));
    writeFileSync(path.join(changed, "shim.mjs"), `import served, * as classes from "./served.mjs";
      let changed;
      export class Session extends classes.Session {
        constructor(ctx, env) {
          super(ctx, ctx.id.name.includes("later") ? (changed ??= { ...env, PROBE: "ebb", BUCKET: env.OTHER }) : env);
        }
      }
      export class Agent extends classes.Agent {}
      export default served;`);
    const w = await start(changed, { PROBE: "tide" }, { token, r2Buckets: { BUCKET: "bucket", OTHER: "other" } });
    const keys = async (name) => (await (await w.mf.getR2Bucket(name)).list()).objects.map((o) => o.key);
    try {
      for (const key of ["before", "later1", "later2", "before2"]) {
        assert.equal((await w.json(at(key, "env"))).value, key.startsWith("later") ? "ebb" : "tide", key);
        await w.json(at(key, "blob?key=k&size=10"));
      }
      assert.deepEqual([await keys("BUCKET"), await keys("OTHER")], [["before/k", "before2/k"], ["later1/k", "later2/k"]]);
      assert.equal((await w.json(at("before", "debug/host"))).boots, 2, "one for each environment");
    } finally {
      await w.dispose();
      rmSync(changed, { recursive: true });
    }
  });

  // The runtime closes a connection behind a request that nobody read to its end, and the client's next one
  // is reset.
  test("a connection outlives answers that need no body", async () => {
    const w = await start(worker, { TIDEMARK_TOKEN: token, TIDEMARK_LIMITS: JSON.stringify({ busy: 0, roomMs: 0 }) });
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const post = (path, headers, status, size = 500) => new Promise((resolve, reject) => {
      const body = JSON.stringify({ pad: "x".repeat(size) });
      const q = http.request(w.url(path), { agent, method: "POST", headers: { ...headers, "content-length": body.length } }, (r) => {
        r.resume().on("end", () => resolve(r.statusCode === status && q.reusedSocket)).on("error", reject);
      });
      q.on("error", reject).end(body);
    });
    try {
      const known = { authorization: `Bearer ${token}` };
      await post("/v1/agents/main/nothing", known);
      for (let i = 0; i < 20; i++) {
        assert.ok(await post("/v1/agents/main/nothing", known, 404), "behind an answer of Go");
        assert.ok(await post("/v1/sessions/a/abort", {}, 401), "behind an answer of the front");
        for (const size of [500, 1_000_000]) assert.ok(await post("/v1/sessions/a/abort", known, 503, size), `behind an object that has no room, ${size} bytes`);
      }
    } finally {
      agent.destroy();
      await w.dispose();
    }
  });
});

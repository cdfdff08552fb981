// The edges of the platform: a message of 1.9 and of 2.1 MB, a session of 10,000 messages, one of 30 MB, and
// the connections, memory and time on the thread that each costs. The same is expected of the built Worker in
// workerd, where test/limits-meter.mjs measures, and of the native binary. A fake of the Messages API
// answers. Run by: node test/limits.mjs [built folder] [native binary]

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { gist } from "./gist.mjs";
import { PATIENCE, start, wait } from "./workerd.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const built = path.resolve(process.argv[2] ?? "dist");
const binary = path.resolve(process.argv[3] ?? "bin/tidemark");
const MB = 1e6, MiB = 1 << 20;
// A long log; at least 10, so that a log of another tool of 9 MB is in it.
const LOG_MB = Number(process.env.LOG_MB ?? 30);
const range = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// prose gives text of an exact length that compresses like a conversation; seed tells it from others.
const words = "tide rises falls harbour lamp keeper stone north rope salt gull anchor chart ebb".split(" ");
function prose(length, seed) {
  let n = seed * 7919 + 1, s = `[${seed}]`;
  while (s.length < length) {
    n = (n * 1103515245 + 12345) % 2147483648;
    s += ` ${words[n % words.length]}${n % 11 ? "" : ` ${n}.`}`;
  }
  return s.slice(0, length);
}

// image is a block whose data has about that many bytes.
const image = (size, seed) => ({
  type: "image", source: { type: "base64", media_type: "image/png", data: Buffer.from(prose((size * 3) / 4, seed)).toString("base64") },
});

// fakeModel answers every call, when its gate is open, and remembers what it was last asked.
async function fakeModel() {
  const it = { open: 0, most: 0, calls: 0, gate: null, last: null };
  const server = http.createServer(async (req, res) => {
    if (req.method === "GET") return res.writeHead(404).end(); // it lists no models
    it.most = Math.max(it.most, ++it.open);
    it.calls++;
    res.on("close", () => it.open--);
    const parts = [];
    for await (const p of req) parts.push(p);
    const body = Buffer.concat(parts);
    const summary = body.includes("<summary>");
    if (!summary) it.last = JSON.parse(body);
    res.writeHead(200, { "content-type": "text/event-stream" });
    const send = (e) => res.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`);
    const usage = { input_tokens: Math.ceil(body.length / 4), output_tokens: 10 };
    send({ type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "fake", content: [], usage } });
    send({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
    if (it.gate) send({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "… " } });
    await it.gate;
    const text = summary ? `<summary>They spoke of tides.\n${gist(JSON.parse(body).messages.at(-1))}</summary>\n<memories>none</memories>` : "Noted.";
    send({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
    send({ type: "content_block_stop", index: 0 });
    send({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } });
    send({ type: "message_stop" });
    res.end();
  });
  server.keepAliveTimeout = 300_000; // closing an idle connection would race with its next request
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.close = () => { server.closeAllConnections(); server.close(); };
  return it;
}

const variables = (model) => ({
  TIDEMARK_MODEL_PROVIDER: "anthropic", TIDEMARK_MODEL_ID: "fake", TIDEMARK_MODEL_BASEURL: model.url, ANTHROPIC_API_KEY: "key",
});

// metered starts the Worker behind the meter.
async function metered(model) {
  const folder = mkdtempSync(path.join(tmpdir(), "limits-"));
  cpSync(built, folder, { recursive: true });
  renameSync(path.join(folder, "shim.mjs"), path.join(folder, "served.mjs"));
  cpSync(path.join(here, "limits-meter.mjs"), path.join(folder, "shim.mjs"));
  const w = await start(folder, variables(model), { token: "token" });
  return {
    url: w.url, body: 7 * MiB, meter: () => w.json("/debug/meter"), host: () => w.json("/debug/host"),
    evict: (p) => w.get(`${p}/debug/evict`).then((r) => r.text()),
    end: async () => { await w.dispose(); rmSync(folder, { recursive: true }); },
  };
}

// native starts the binary.
async function native(model) {
  const home = mkdtempSync(path.join(tmpdir(), "limits-"));
  const env = { ...process.env, ...variables(model), TIDEMARK_TOKEN: "token", TIDEMARK_HOME: home };
  const p = spawn(binary, ["serve", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "ignore"] });
  let said = "";
  p.stdout.on("data", (d) => (said += d));
  const [, base] = await wait(() => /serves at (http:\S+)/.exec(said));
  return {
    url: (at) => new URL(at, base).href, body: 32 * MiB,
    end: () => new Promise((r) => { p.on("exit", () => { rmSync(home, { recursive: true }); r(); }); p.kill("SIGKILL"); }),
  };
}

// edges are the tests of one host.
function edges(name, begin) {
  describe(`edges of ${name}`, { concurrency: 1 }, () => {
    let model, w;
    const at = (key, what = "") => `/v1/sessions/${encodeURIComponent(key)}${what}`;
    const headers = { authorization: "Bearer token", "content-type": "application/json" };
    const ask = (p, init) => fetch(w.url(p), { signal: AbortSignal.timeout(PATIENCE), ...init, headers: { ...headers, ...init?.headers } });
    // text is an answer. A server that has its memory full of large requests is asked again, as a client does.
    const text = async (p, init) => {
      for (const end = Date.now() + PATIENCE; ;) {
        const r = await ask(p, init), body = await r.text();
        if (r.status !== 503 || JSON.parse(body).error.type !== "busy" || Date.now() > end) {
          assert.ok(r.ok, `${p}: ${r.status} ${body.slice(0, 500)}`);
          return body;
        }
        await sleep(200);
      }
    };
    const get = (p) => text(p).then(JSON.parse);
    const post = (p, body) => text(p, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) }).then(JSON.parse);
    const widen = (key, window) => text(at(key), { method: "PATCH", body: JSON.stringify({ window }) });
    const read = (lines) => lines.split("\n").filter(Boolean).map((l) => JSON.parse(l)).map(({ role, content }) => ({ role, content }));
    const log = async (key) => read(await text(at(key, "/log?format=jsonl")));

    // reset ends a conversation and gives its archive: as stored, and its messages.
    async function reset(key) {
      const { events } = await post(at(key, "/reset"), {});
      const { archivedTo } = events.find((e) => e.type === "reset").data;
      const file = path.basename(archivedTo);
      const raw = Buffer.from(await (await ask(`/v1/agents/main/archives/${file}?format=gz`)).arrayBuffer());
      const { verdicts } = await post("/v1/agents/main/archives-verify", { archive: archivedTo });
      assert.deepEqual(verdicts.map((v) => [v.ok, v.problems]), [[true, undefined]]);
      return { file, raw, messages: read(gunzipSync(raw).toString()) };
    }

    // wholeOfParts holds a session's archive against its parts, which it begins with, byte for byte.
    async function wholeOfParts({ file, raw }, least) {
      const id = file.slice(0, -".jsonl.gz".length);
      const parts = await wait(async () => {
        const { archives } = await get(`/v1/agents/main/archives?session=${id}&limit=1000`);
        return archives.length > least && archives.filter((a) => a.partNumber).sort((a, b) => a.partNumber - b.partNumber);
      });
      let n = 0;
      for (const p of parts) {
        const part = Buffer.from(await (await ask(`/v1/agents/main/archives/${path.basename(p.key)}?format=gz`)).arrayBuffer());
        assert.ok(part.equals(raw.subarray(n, n + part.length)), `part ${p.partNumber} is not in the whole`);
        n += part.length;
      }
    }

    // measured holds what the platform saw against its limits, and tells it.
    async function measured(what) {
      if (!w.meter) return {};
      const m = await w.meter(), h = await w.host();
      console.log(`# ${what}: ${(m.memory / MiB).toFixed(1)} MiB, ${m.section} ms at a time and ${(m.busy / 1000).toFixed(1)} s in all, ${m.peak} connections, ${m.args} arguments of ${m.argBytes} bytes, page ${m.pageBytes} bytes, R2 ${m.gets} gets ${m.puts} puts`);
      assert.ok(m.args <= 100 && m.argBytes < 1_900_000 && m.pageBytes < 16 * MiB && m.peak <= 6, JSON.stringify(m));
      assert.ok(m.memory < 64 * MiB, `${m.memory} bytes of memory`);
      assert.deepEqual([h.violations, h.total.fatals, m.open], [0, 0, 0]);
      return { ...m, boots: h.boots };
    }

    // among makes requests of another session while f runs, and counts the answers.
    async function among(f) {
      let done = false, n = 0;
      const others = (async () => {
        while (!done) {
          await get(at("other"));
          n++;
          await sleep(20);
        }
      })();
      others.catch(() => {}); // it is told below
      try {
        await f();
      } finally {
        done = true;
        await others;
      }
      return n;
    }

    before(async () => {
      model = await fakeModel();
      w = await begin(model);
      await widen("other", 100_000);
    });
    after(async () => {
      await w?.end();
      model.close();
    });

    test("a message of 1.9 MB and one of 2.1 MB come back as they were", async () => {
      const want = [];
      for (const [i, size] of [1.9 * MB, 2.1 * MB].entries()) {
        const key = `size-${i}`, said = prose(size, i);
        await widen(key, 4_000_000);
        assert.equal((await post(at(key, "/messages"), { text: said })).reply.content[0].text, "Noted.");
        const [sent] = model.last.messages;
        assert.equal(sent.content[0].text ?? sent.content, said, "what the model was sent");
        assert.deepEqual((await log(key))[0], { role: "user", content: said });
        assert.deepEqual((await reset(key)).messages[0], { role: "user", content: said });
        want.push(said);
      }
      await measured("messages of 1.9 and 2.1 MB");
    });

    test("results of tools and images of 1.9 MB and 2.1 MB come back as they were", { skip: begin === metered && !process.env.SOAK && "make soak" }, async () => {
      const key = "blocks";
      const want = [1.9 * MB, 2.1 * MB].flatMap((size, i) => [
        { role: "user", content: [{ type: "text", text: `read ${i}` }, image(size, i)] },
        { role: "assistant", content: [{ type: "tool_use", id: `c${i}`, name: "read", input: { path: `f${i}` } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: `c${i}`, content: prose(size, i) }] },
        { role: "assistant", content: [{ type: "text", text: `read it ${i}` }] },
      ]);
      const got = await post(at(key, "/import?format=jsonl&window=4000000"), want.map((m) => JSON.stringify(m)).join("\n"));
      assert.equal(got.messages, want.length);
      assert.deepEqual(await log(key), want);
      // Together they are more than a view may weigh in a Worker: the conversation goes on all the same.
      for (const n of [1, 2]) assert.equal((await post(at(key, "/messages"), { content: [{ type: "text", text: `and ${n}` }, image(2.1 * MB, 9)] })).reply.content[0].text, "Noted.");
      assert.deepEqual((await reset(key)).messages.slice(0, want.length), want);
      await measured("blocks of 1.9 and 2.1 MB");
    });

    test("a body over the limit is refused with the limit, and loses nothing", async () => {
      const key = "large";
      await post(at(key, "/messages"), { text: "before" });
      const r = await ask(at(key, "/messages"), { method: "POST", body: JSON.stringify({ text: prose(w.body, 1) }) });
      const { error } = await r.json();
      assert.deepEqual([r.status, error.type], [413, "too_large"]);
      assert.match(error.message, /\d{7,}|too large/);
      assert.deepEqual((await log(key)).map((m) => m.role), ["user", "assistant"]);
    });

    // `make soak` has more.
    const MANY = process.env.SOAK ? 10_000 : 4000;
    test(`${MANY} messages`, async () => {
      const key = "many";
      const want = range(MANY, (i) => ({ role: i % 2 ? "assistant" : "user", content: `Message ${i}: ${prose(120, i)}${i === 2711 ? " quokka" : ""}` }));
      const lines = want.map((m) => JSON.stringify(m) + "\n");
      // The client leaves in the middle; what is there stays, and the same log again goes on behind it.
      const leave = new AbortController();
      const half = new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode(lines.slice(0, MANY / 2).join(""))); } });
      const cut = ask(at(key, "/import?format=jsonl"), { method: "POST", body: half, duplex: "half", signal: leave.signal }).catch(() => {});
      await wait(async () => (await ask(at(key)).then((r) => r.ok && r.json()))?.messages > 1000);
      leave.abort();
      await cut;
      const send = () => ask(at(key, "/import?format=jsonl"), { method: "POST", body: lines.join("") });
      const res = await wait(async () => { const r = await send(); return r.status !== 503 && r; });
      const got = await res.json();
      assert.equal(got.messages, want.length, JSON.stringify(got));
      assert.ok(got.skipped > 1000 && got.compactions > 0, JSON.stringify(got));
      await measured(`${MANY} messages, import`);

      await w.evict?.(at(key));
      const info = await get(at(key));
      assert.equal(info.messages, want.length);
      const woke = await measured(`${MANY} messages, wake`);
      if (w.meter) assert.ok(woke.pageBytes < 64 << 10, "waking read the history");

      assert.deepEqual(await log(key), want);
      assert.ok((await get(at(key, "/view?messages=1"))).length > 1);
      assert.match((await get(at(key, "/search?q=quokka"))).found[0].text, /Message 2711:/);
      const page = await get(at(key, "/log?limit=50"));
      assert.equal(page.entries.length, 50);
      await measured(`${MANY} messages, read`);

      const calls = model.calls;
      await post(at(key, "/compact"), {});
      assert.ok(model.calls - calls >= 1 && model.calls - calls <= 10, `${model.calls - calls} calls for one compaction`);
      await measured(`${MANY} messages, compact`);
      const whole = await reset(key);
      assert.deepEqual(whole.messages, want);
      await wholeOfParts(whole, 1);
      await measured(`${MANY} messages, reset`);
    });

    test(`${LOG_MB} MB`, { skip: begin === metered && !process.env.SOAK && "make soak" }, async () => {
      const key = "long-log", from = "long-log-again";
      const want = range(Math.ceil(LOG_MB * 2.5), (i) => [
        { role: "user", content: `Read file ${i}. ${prose(20_000, i)}` },
        { role: "assistant", content: [{ type: "tool_use", id: `c${i}`, name: "read", input: { path: `f${i}` } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: `c${i}`, content: prose(300_000, i) }] },
        { role: "assistant", content: [{ type: "text", text: `It says ${prose(60_000, i)}.` }] },
        { role: "user", content: prose(20_000, i) },
        { role: "assistant", content: "Yes." },
      ]).flat();
      const lines = want.map((m) => JSON.stringify(m) + "\n").join("");
      assert.ok(lines.length > LOG_MB * MB);
      let exported;
      const others = await among(async () => {
        const got = await post(at(key, "/import?format=jsonl"), lines);
        assert.equal(got.messages, want.length);
        assert.ok(got.compactions > 0 && got.archivedParts > 0, JSON.stringify(got));
        exported = await text(at(key, "/log?format=jsonl"));
        assert.deepEqual(read(exported), want);
      });
      assert.ok(others >= LOG_MB, `only ${others} requests of another session were answered meanwhile`);
      await measured(`${LOG_MB} MB, import and export`);
      const whole = await reset(key);
      assert.deepEqual(whole.messages, want);
      await wholeOfParts(whole, 1);
      const { boots } = await measured(`${LOG_MB} MB, reset`);
      if (w.meter) assert.equal(boots, 1, "the instance grew until it was replaced");
      // A log of another tool is read twice, from the session's own database.
      const claude = want.slice(0, 138).map(({ role, content }, i) => JSON.stringify({ type: role, sessionId: "s", uuid: `u${i}`, message: { role, content } })).join("\n");
      assert.equal((await post(at(from, "/import?format=claude"), claude)).messages, 138);
      assert.deepEqual(await log(from), want.slice(0, 138));
      await measured("a log of 9 MB of another tool");
    });

    test("turns, blocks, a compaction and clients that leave share six connections", async () => {
      const root = "busy", branches = range(8, (i) => `${root}#b${i}`);
      const block = prose(300_000, 5);
      await post(at(root, "/import?format=jsonl"), [{ role: "user", content: block }, { role: "assistant", content: "ok" }].map((m) => JSON.stringify(m)).join("\n"));
      await Promise.all(branches.map((_, i) => post(at(root, "/branch"), { name: `b${i}`, trim: false })));
      let open;
      model.gate = new Promise((r) => { open = r; });
      model.most = 0;
      const cut = new AbortController();
      const left = branches.slice(0, 3).map((key) => ask(at(key, "/messages"), { method: "POST", signal: cut.signal, headers: { accept: "text/event-stream" }, body: `{"text":"I leave"}` }).catch(() => {}));
      const all = branches.flatMap((key) => [
        post(at(key, "/messages"), { text: "go on" }), log(key), log(key), get(at(key, "/view")),
      ]);
      await wait(() => model.open >= 4); // so many connections are held at once
      cut.abort();
      model.gate = null;
      open();
      for (const got of await Promise.all(all)) assert.ok(got);
      await Promise.all(left);
      await Promise.all(branches.map((key) => post(at(key, "/compact"), {})));
      for (const key of branches) assert.equal((await log(key))[0].content, block);
      await wait(() => model.open === 0);
      if (w.meter) {
        assert.ok(model.most <= 6, `${model.most} calls of the model at a time`);
        const { pending } = await get(at(root, "/debug/host"));
        assert.deepEqual([pending.bodies, pending.puts, pending.connections, pending.queued], [0, 0, 0, 0]);
      }
      await measured("turns and blocks at once");
    });
  });
}

describe("edges", { concurrency: 2 }, () => {
  edges("the Worker", metered);
  edges("the native binary", native);
});

// The socket of a session with real clients (ws of npm, whose sockets can be told not to read), on the
// native binary and on the Worker in workerd. A fake of the Messages API says its pieces when a test lets
// it. Run by: node test/ws.mjs [folder of the Worker built with the tag chaos] [native binary]

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { dial, Model } from "./ws/client.mjs";
import { PATIENCE, start, wait } from "./workerd.mjs";

const folder = path.resolve(process.argv[2] ?? ".cache/chaos");
const binary = path.resolve(process.argv[3] ?? "bin/tidemark");
const TOKEN = "open (sesame), 100%";
const range = (n, f) => Array.from({ length: n }, (_, i) => f(i));

const settings = (model) => ({
  TIDEMARK_TOKEN: TOKEN, ANTHROPIC_API_KEY: "fake", TIDEMARK_MODEL_BASEURL: model.url, TIDEMARK_MODEL_ID: "fake",
  TIDEMARK_SERVER_ORIGINS: "https://chat.example.com",
});

// native starts the binary; again ends it without a word and starts the next one on its store.
async function native(model) {
  const home = mkdtempSync(path.join(tmpdir(), "ws-"));
  const env = { PATH: process.env.PATH, HOME: home, TIDEMARK_HOME: home, ...settings(model) };
  const p = spawn(binary, ["serve", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  p.stdout.on("data", (d) => (said += d));
  const [, base] = await wait(() => /serves at (http:\S+)/.exec(said));
  return {
    url: (at) => new URL(at, base).href,
    stop: () => p.kill("SIGTERM"),
    end: () => new Promise((r) => { p.on("exit", () => { rmSync(home, { recursive: true, force: true }); r(); }); p.kill("SIGKILL"); }),
  };
}

async function workerd(model) {
  const w = await start(folder, settings(model));
  return { url: w.url, end: () => w.dispose() };
}

function sockets(name, begin, worker) {
  describe(`sockets of ${name}`, { concurrency: 1 }, () => {
    let model, w;
    const own = { "x-tidemark-token": TOKEN };
    const call = async (method, at, body) => {
      const r = await fetch(w.url(at), { method, headers: own, body: body && JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE) });
      return { status: r.status, value: await r.json().catch(() => null) };
    };
    const open = (query, options) => dial(w.url(`/ws?${query}`), { token: TOKEN, ...options });
    const say = (key, text, id) => call("POST", `/v1/sessions/${key}/messages?wait=0`, { text, id });
    before(async () => { model = await Model.start(); w = await begin(model); });
    after(async () => { await w.end(); model.close(); });

    test("a turn is pushed to two tabs, from either door", async () => {
      const a = await open("session=tabs&create=1&name=Ada"), ha = await a.next("hello"); // before Bo comes
      const b = await open("session=tabs&name=Bo"), hb = await b.next("hello");
      assert.deepEqual([ha.version, ha.count, ha.messages, ha.run], [1, 1, 0, undefined]);
      assert.deepEqual([hb.count, hb.people.map((p) => p.name), hb.sessionId], [2, ["Ada", "Bo"], ha.sessionId]);
      assert.deepEqual((await a.next("presence")).people.map((p) => p.name), ["Ada", "Bo"]);
      a.say({ type: "post", id: "one", text: "[[hold]]", ref: "r" });
      const receipt = await a.next("receipt");
      assert.deepEqual([receipt.id, receipt.ref, receipt.state, receipt.sessionId], ["one", "r", "new", ha.sessionId]);
      for (const c of [a, b]) assert.deepEqual((await c.next("taken")).inputs, ["one"]);
      await model.give("ti"), await model.give("de"), await model.end();
      for (const c of [a, b]) {
        const { message } = await c.next("reply");
        assert.equal(message.content[0].text, "tide");
        assert.equal(c.text(), "tide");
        await c.next("done");
      }
      assert.ok(!b.got.some((m) => m.type === "receipt"), "a receipt is for the one who posted");
      await say("tabs", "[[plain]]", "two");
      for (const c of [a, b]) assert.deepEqual((await c.next("done")).inputs, ["two"]);
      assert.equal((await call("GET", "/v1/sessions/tabs")).value.messages, 4);
      a.close(), b.close();
    });

    test("who comes in the middle gets the rest, also before the first word", async () => {
      const a = await open("session=middle&create=1");
      await a.next("hello");
      a.say({ type: "post", text: "[[hold]]" });
      const { run } = await a.next("taken");
      const early = await open("session=middle");
      const h = await early.next("hello");
      assert.deepEqual([h.run, h.text], [run, undefined]);
      await model.give("one ");
      await a.next("text");
      const late = await open("session=middle");
      const l = await late.next("hello");
      assert.deepEqual([l.run, l.text], [run, "one "]);
      await model.give("two"), await model.end();
      for (const c of [a, early, late]) await c.next("done");
      assert.deepEqual([a.text(), early.text(), late.text()], ["one two", "one two", "two"]);
      for (const c of [a, early, late]) c.close();
    });

    test("one id is one turn", async () => {
      const a = await open("session=once&create=1");
      for (let i = 0; i < 3; i++) a.say({ type: "post", id: "same", text: "[[plain]]" });
      await a.next("done");
      a.say({ type: "post", id: "same", text: "[[plain]]" });
      const receipts = [];
      for (let i = 0; i < 4; i++) receipts.push(await a.next("receipt"));
      assert.deepEqual(receipts.map((r) => !!r.duplicate), [false, true, true, true]);
      assert.equal((await call("GET", "/v1/sessions/once")).value.messages, 2);
      a.close();
    });

    test("abort, typing, ping and leaving", async () => {
      const [a, b] = [await open("session=acts&create=1&name=A"), await open("session=acts&name=B")];
      const { id } = await a.next("hello");
      await b.next("hello");
      a.say({ type: "abort", ref: "none" });
      assert.deepEqual(await a.next("aborted"), { type: "aborted", ref: "none", aborted: false });
      a.say({ type: "post", text: "[[hold]]" });
      await a.next("taken"), await model.give("x"), await b.next("text");
      b.say({ type: "abort" });
      assert.equal((await b.next("aborted")).aborted, true);
      assert.equal((await a.next("error")).error.type, "aborted");
      a.say({ type: "typing" }), a.say({ type: "typing" }), a.say({ type: "typing", on: false }), a.say({ type: "ping", ref: "p" });
      assert.deepEqual(await b.next("typing"), { type: "typing", id, name: "A", on: true });
      assert.equal((await b.next("typing")).on, false);
      assert.deepEqual(await a.next("pong"), { type: "pong", ref: "p" });
      assert.ok(!a.got.some((m) => m.type === "typing"), "nobody is told of himself");
      a.raw('{"type":"ping"}');
      assert.deepEqual(await a.next("pong"), { type: "pong" });
      a.close();
      assert.deepEqual((await b.next("presence", (m) => m.count === 1)).people.map((p) => p.name), ["B"]);
      b.close();
    });

    test("nobody without the token, and no foreign page", async () => {
      const refused = async (status, type, query, options) => {
        const e = await assert.rejects(open(query, options), (e) => {
          assert.deepEqual([e.status, e.body?.error?.type], [status, type], JSON.stringify([query, options, e.body]));
          return true;
        });
        return e;
      };
      const key = "session=guarded&create=1";
      await refused(401, "unauthorized", key, { token: "" });
      await refused(401, "unauthorized", key, { token: "wrong" });
      await refused(403, "forbidden", key, { headers: { origin: "https://evil.example.com" } });
      await refused(403, "forbidden", key, { headers: { origin: "null" } });
      await refused(404, "not_found", "session=guarded");
      await refused(400, "invalid", "session=");
      await refused(400, "invalid", "session=a%20b");
      await refused(400, "invalid", `${key}&name=${encodeURIComponent("a\nb")}`);
      await refused(400, "invalid", `${key}&name=${"x".repeat(81)}`);
      await refused(400, "invalid", key, { protocols: ["tidemark.v9"] });
      assert.equal((await call("GET", "/v1/sessions/guarded")).status, 404, "what was refused made no session");
      // Each in a room of its own: one that has closed is counted until the server has noticed.
      for (const [i, options] of [
        { headers: { origin: "https://chat.example.com" } }, { headers: { origin: w.url("/").slice(0, -1) } },
        { token: "", protocols: [], headers: { authorization: `Bearer ${TOKEN}` } }, { token: "", headers: own },
      ].entries()) {
        const c = await open(`session=let-in-${i}&create=1`, options);
        assert.equal((await c.next("hello")).count, 1);
        c.close();
        await c.closed;
      }
      const inPath = await dial(w.url(`/t/${encodeURIComponent(TOKEN)}/ws?${key}`), {});
      await inPath.next("hello");
      inPath.close();
      assert.equal((await call("GET", "/ws?session=guarded")).status, 426);
    });

    test("hostile frames end nothing but themselves", async () => {
      const [a, other] = [await open("session=hostile&create=1"), await open("session=hostile")];
      await a.next("hello"), await other.next("hello");
      for (const [text, why] of [
        ["", /no JSON/], ["null", /JSON object/], ["[]", /JSON object/], ["{}", /unknown type/], ['{"type":1}', /"type"/], ['{"type":"pst"}', /did you mean "post"/],
        ['{"type":"ping","x":1}', /unknown field/], ['{"type":"post"}', /exactly one/], ['{"type":"post","text":" "}', /empty/],
        ['{"type":"post","text":"a","id":5}', /"id"/], ['{"type":"post","content":[{"type":"tool_result","tool_use_id":"x"}]}', /./],
        [`{"type":"post","text":"a","id":"${"x".repeat(201)}"}`, /200/], [`{"type":"ping","ref":"${"x".repeat(65)}"}`, /"ref"/],
        ["[".repeat(200), /deep/], ['{"type":"seen","n":"9"}', /"n"/], ['{"type":"post","text":"a","type":"ping"}', /./], ['{"type":"abort"} x', /./],
      ]) {
        a.raw(text);
        const { error } = await a.next("error");
        assert.equal(error.type, "invalid", text);
        assert.match(error.message, why);
      }
      a.say({ type: "ping", ref: "alive" });
      assert.equal((await a.next("pong")).ref, "alive");
      for (const [bad, code] of [[Buffer.from("bytes"), 1003], ["x".repeat((1 << 20) + 1), 1009]]) {
        const c = await open("session=hostile");
        await c.next("hello");
        c.raw(bad);
        assert.equal((await c.closed).code, code);
      }
      const flood = await open("session=hostile");
      await flood.next("hello");
      for (let i = 0; i < 400; i++) flood.say({ type: "abort" });
      assert.equal((await flood.closed).code, 1008);
      assert.ok(flood.got.some((m) => m.error?.type === "rate"), "it was told first");
      other.say({ type: "post", text: "[[plain]]" });
      await other.next("done");
      assert.equal((await call("GET", "/v1/sessions/hostile")).value.messages, 2);
      a.close(), other.close();
    });

    test("a slow reader is cut off and holds nobody up", async () => {
      const [quick, slow] = [await open("session=slow&create=1"), await open("session=slow", { silent: true })];
      await quick.next("hello"), await slow.next("hello");
      slow.pause();
      quick.say({ type: "post", text: "[[hold]]" });
      await quick.next("taken");
      const piece = "x".repeat(64 << 10);
      for (let i = 1; i <= 80; i++) {
        await model.give(piece);
        if (i % 20 === 0) await wait(() => quick.text().length === i * piece.length);
      }
      await model.end();
      await quick.next("done");
      assert.equal(quick.got.find((m) => m.type === "reply").message.content[0].text.length, 80 * piece.length);
      await new Promise((r) => setTimeout(r, 6000)); // longer than the patience that it has
      quick.say({ type: "typing" });
      quick.say({ type: "ping", ref: "behind it" });
      await quick.next("pong");
      slow.resume();
      await wait(() => slow.ws.readyState >= 2); // it has the close frame, or the end
      assert.equal((await slow.next("error")).error.type, "behind");
      assert.equal(slow.got.at(-1).type, "error", "it was told more");
      await wait(() => ["presence", "hello"].includes(quick.got.at(-1).type) && quick.got.at(-1).count === 1);
      slow.ws.terminate(), quick.close();
    });

    test("1,000 sockets hear one turn", async () => {
      const first = await open("session=many&create=1");
      await first.next("hello");
      const all = [first];
      for (let i = 0; i < 20; i++) all.push(...await Promise.all(range(i === 19 ? 49 : 50, () => open("session=many"))));
      await first.next("presence", (m) => m.count === 1000 && m.people === undefined);
      first.say({ type: "post", text: "[[plain]]" });
      await Promise.all(all.map((c) => c.next("done")));
      for (const c of all) assert.equal(c.text(), "Noted.");
      for (const c of all.slice(1)) c.close();
      await first.next("presence", (m) => m.count === 1);
      first.close();
    });

    worker?.({ open, call, say, model: () => model });
  });
}

// sleepers are what only a Worker has: objects that sleep, and instances that end.
function sleepers({ open, call, model }) {
  const host = async (key) => (await call("GET", `/v1/sessions/${key}/debug/host`)).value;

  test("an instance ends in the middle of an answer, its sockets do not", async () => {
    const [a, b] = [await open("session=killed&create=1&name=A"), await open("session=killed&name=B")];
    const { id } = await a.next("hello");
    await b.next("hello");
    a.say({ type: "post", id: "m", text: "[[hold]]" });
    await a.next("taken"), await model().give("lost "), await b.next("text");
    const before = await host("killed");
    await call("GET", "/v1/sessions/killed/debug/fatal").catch(() => {});
    const again = await a.next("hello", (m) => m.again);
    assert.deepEqual([again.id, again.count, again.people.map((p) => p.name)], [id, 2, ["A", "B"]]);
    await model().asked();
    await model().give("whole"), await model().end();
    for (const c of [a, b]) {
      const { message } = await c.next("reply");
      assert.equal(message.content[0].text, "whole");
      assert.equal(c.text(), "whole", "the pieces behind the last hello or start");
    }
    const now = await host("killed");
    assert.ok(now.total.fatals > before.total.fatals || now.boots > before.boots, "nothing was killed");
    assert.equal(now.sockets, 2);
    assert.equal((await call("GET", "/v1/sessions/killed")).value.messages, 2);
    a.close(), b.close();
  });

  test("an instance ends twice in a row, and the object asks for the third by itself", async () => {
    const a = await open("session=twice&create=1");
    await a.next("hello");
    a.say({ type: "post", id: "m", text: "[[hold]]" });
    await a.next("taken");
    for (let i = 0; i < 2; i++) {
      await model().give("lost ");
      await a.next("text");
      await call("GET", "/v1/sessions/twice/debug/fatal").catch(() => {});
      await a.next("hello", (m) => m.again); // and nobody but the object has asked
      await model().asked();
    }
    await model().give("whole"), await model().end();
    assert.equal((await a.next("reply")).message.content[0].text, "whole");
    assert.equal(a.text(), "whole");
    a.close();
  });

  test("an object sleeps, and a message wakes it", async () => {
    const [a, b] = [await open("session=sleeper&create=1&name=A"), await open("session=sleeper&name=B")];
    await a.next("hello"), await b.next("hello");
    let before;
    await wait(async () => {
      before = await host("sleeper");
      return before.pending.calls + before.pending.waits === 0; // what is in flight keeps it awake
    });
    assert.equal(before.sockets, 2);
    let now = before;
    for (let i = 0; i < 3 && now.generation === before.generation && now.boots === before.boots; i++) {
      await new Promise((r) => setTimeout(r, 13_000)); // workerd evicts what was idle for 10 s, in its own time
      a.raw('{"type":"ping"}');
      await a.next("pong"); // by the platform
      b.say({ type: "typing" });
      assert.equal((await a.next("typing")).name, "B");
      now = await host("sleeper");
    }
    assert.ok(now.generation > before.generation || now.boots > before.boots, "it did not sleep");
    assert.deepEqual((await a.next("hello", (m) => m.again)).people.map((p) => p.name), ["A", "B"]);
    a.say({ type: "post", text: "[[plain]]" });
    for (const c of [a, b]) await c.next("done");
    assert.deepEqual([now.sockets, now.total.violations], [2, 0]);
    a.close(), b.close();
  });
}

// Side by side: each has a server of its own, and waits for readers that are slow and objects that fall asleep.
describe("sockets", { concurrency: 3 }, () => {
  sockets("native", native, undefined);
  sockets("workerd", workerd, sleepers);
});

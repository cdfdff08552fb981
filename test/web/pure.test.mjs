// The parts of the page that need no browser.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, createApi, tokenWords } from "../../web/src/api.js";
import { cutter } from "../../web/src/blocks.js";
import { pauseAfter } from "../../web/src/chat.js";
import { afterReset, fileBlock, merge, noteOf, prepend, readFile, rows } from "../../web/src/entries.js";
import { parser } from "../../web/src/sse.js";
import { ago, channelOf, count, fillOf, fullKey, keyFrom, nameOf, newKey, proxied, readInput, titleFrom, typedOf } from "../../web/src/words.js";

// some gives numbers that look like chance and are the same in every run.
function some(seed) {
  let n = seed;
  return (most) => {
    n = (Math.imul(n, 1103515245) + 12345) & 0x7fffffff;
    return (n >> 8) % most;
  };
}

describe("server-sent events", () => {
  const read = (...pieces) => {
    const out = [];
    const feed = parser((name, data) => out.push([name, data]));
    for (const p of pieces) feed(p);
    return out;
  };
  for (const [name, text, want] of [
    ["one", "event: a\ndata: 1\n\n", [["a", "1"]]],
    ["without a name", "data: 1\n\n", [["message", "1"]]],
    ["several lines", "data: 1\ndata:2\ndata\n\n", [["message", "1\n2\n"]]],
    ["pings and comments", ": ping\n\n: x\ndata: 1\n\n", [["message", "1"]]],
    ["an end that is missing", "data: 1\n\ndata: 2\n", [["message", "1"]]],
    ["every line end", "data: 1\r\n\r\nevent: b\rdata: 2\r\rdata: 3\n\n", [["message", "1"], ["b", "2"], ["message", "3"]]],
    ["a name alone", "event: a\n\ndata: 1\n\n", [["message", "1"]]],
  ]) test(name, () => assert.deepEqual(read(text), want));

  test("pieces do not matter", () => {
    const text = "event: a\r\ndata: 1\r\ndata: ≈\r\n\r\n: ping\n\ndata: {\"x\":\"\\n\"}\n\nevent: end\rdata:\r\r";
    const want = read(text);
    assert.equal(want.length, 3);
    for (let seed = 1; seed < 200; seed++) {
      const next = some(seed), pieces = [];
      for (let at = 0; at < text.length;) pieces.push(text.slice(at, at += 1 + next(7)));
      assert.deepEqual(read(...pieces), want, `seed ${seed}`);
    }
  });
});

describe("cuts of a growing text", () => {
  for (const [name, text, want] of [
    ["paragraphs", "one\n\ntwo\n\nthree", ["one\n\n"]],
    ["an open fence", "a\n\n```\nx\n\ny\n\nz", ["a\n\n"]],
    ["a closed fence", "```\nx\n\ny\n```\n\nafter\n\nend\n", ["```\nx\n\ny\n```\n\nafter\n\n"]],
    ["a fence within a longer one", "````\n```\n\nx\n", [""]],
    ["a loose list", "- a\n\n- b\n\n- c\n", [""]],
    ["numbers", "1. a\n\n2. b\n\nend\n", ["1. a\n\n2. b\n\n"]],
    ["an indented paragraph", "- a\n\n  more\n\n", [""]],
    ["a line that is not whole", "a\n\nb", [""]],
  ]) test(name, () => assert.equal(text.slice(0, cutter()(text)), want[0]));

  test("growing by pieces gives the same cut, and it never moves back", () => {
    const parts = ["word\n", "\n", "```\n", "- item\n", "> q\n", "  in\n", "1. x\n", "~~~\n", "text"];
    for (let seed = 1; seed < 300; seed++) {
      const next = some(seed);
      const cut = cutter();
      let text = "", last = 0;
      for (let i = 0; i < 40; i++) {
        text += parts[next(parts.length)];
        const now = cut(text);
        assert.ok(now >= last && now <= text.length);
        assert.equal(now, cutter()(text), `seed ${seed}`);
        last = now;
      }
    }
  });
});

describe("history", () => {
  const entry = (seq, more) => ({ seq, id: `e${seq}`, kind: "message", at: "2026-11-22T01:00:00Z", message: { role: seq % 2 ? "user" : "assistant", content: `m${seq}` }, ...more });
  const page = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => entry(to - i));
  const seqs = (log) => log.entries.map((e) => e.seq);
  for (const [name, old, next, newest, pageNext, want, wantNext] of [
    ["the first page", [], undefined, page(5, 9), 5, [5, 6, 7, 8, 9], 5],
    ["what is older stays", page(1, 6).reverse(), undefined, page(4, 9), 4, [1, 2, 3, 4, 5, 6, 7, 8, 9], undefined],
    ["a gap drops what is older", page(1, 3).reverse(), undefined, page(7, 9), 7, [7, 8, 9], 7],
    ["another log", page(1, 3).reverse(), undefined, [entry(20)], undefined, [20], undefined],
    ["nothing, after a reset", page(1, 3).reverse(), 1, [], undefined, [], undefined],
    ["what was shown too soon goes", [...page(4, 6).reverse(), entry(Infinity, { provisional: true })], 4, page(5, 7), 5, [4, 5, 6, 7], 4],
  ]) {
    test(name, () => {
      const got = merge({ entries: old, next }, newest, pageNext);
      assert.deepEqual(seqs(got), want);
      assert.equal(got.next, wantNext);
    });
  }
  test("an older page", () => assert.deepEqual(seqs(prepend({ entries: page(4, 6).reverse(), next: 4 }, page(2, 4), 2)), [2, 3, 4, 5, 6]));
  test("results stand with their calls", () => {
    const got = rows([
      entry(1, { message: { role: "assistant", content: [{ type: "tool_use", id: "a", name: "x", input: {} }, { type: "tool_use", id: "b", name: "y", input: {} }] } }),
      entry(2, { message: { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "ok" }, { type: "tool_result", tool_use_id: "gone", content: "?" }] } }),
      { seq: 3, id: "o", kind: "overlay" }, { seq: 4, id: "v", kind: "event", event: { type: "reset", text: "r" } },
    ]);
    assert.deepEqual(got.map((r) => (r.event ? r.event.type : r.blocks.map((b) => [b.type, b.result?.content]))), [[["call", "ok"], ["call", undefined]], [["tool_result", undefined]], "reset"]);
  });
  test("a note of a branch says itself that it is there", () => {
    const note = entry(1, { origin: { from: "system", channel: "branch" } });
    const event = (id) => ({ seq: 2, id: "v", kind: "event", event: { type: "merge", text: "It stands here.", data: { id } } });
    assert.deepEqual(rows([note, event("e1")]).map((r) => r.key), ["e1"]);
    assert.deepEqual(rows([note, event("gone")]).map((r) => r.key), ["e1", "v"]);
  });
  for (const [text, want] of [
    ['[Outcome of branch "hb" (from snapshot "plan (1)", 4 messages): Two\nlines [1]]', ['Outcome of branch "hb" (from snapshot "plan (1)", 4 messages)', "Two\nlines [1]"]],
    ['[Outcome of branch "a \\"b" (12 messages): (3 messages): x]', ['Outcome of branch "a \\"b" (12 messages)', "(3 messages): x"]],
    ["[Outcome of a day]", null], ["Outcome of branch", null],
  ]) test(`a note: ${JSON.stringify(text)}`, () => assert.deepEqual(noteOf(text), want && { head: want[0], note: want[1] }));
  for (const [name, event, want] of [
    ["with an archive", { text: "New session (manual). 12 messages archived to main/2026/x.jsonl.gz, 3 memories offered.", data: { archivedTo: "main/2026/x.jsonl.gz" } }, ["New session (manual). ", "12 messages archived", ", 3 memories offered."]],
    ["of one message", { text: "New session (new). 1 messages archived to a.gz.", data: { archivedTo: "a.gz" } }, ["New session (new). ", "1 message archived", "."]],
    ["of nothing", { text: "New session (manual). 0 messages archived.", data: {} }, ["New session (manual). 0 messages archived.", "", ""]],
    ["in other words", { text: "Anew.", data: { archivedTo: "a.gz" } }, ["Anew.", "", ""]],
  ]) test(`a reset ${name}`, () => assert.deepEqual(Object.values({ ...afterReset(event), archive: undefined }).filter((v) => v !== undefined), want));
  test("a file in a message comes back", () => {
    assert.deepEqual(readFile(fileBlock("a]b\n.txt", "x\ny").text), { name: "a b .txt", text: "x\ny" });
    assert.equal(readFile("[file: no end"), null);
  });
});

describe("words", () => {
  for (const [typed, want] of [
    ["hello", { say: "hello" }], ["//reset", { say: "/reset" }], ["/reset", { command: "reset", rest: "" }],
    ["/Compact keep the prices\nand names", { command: "compact", rest: "keep the prices\nand names" }],
    ["/model small", { command: "model", rest: "small" }], ["/status", { command: "status", rest: "" }], ["/memory", { command: "memory", rest: "" }],
    ["/new", { command: "new", rest: "" }], ["/open The garden", { command: "open", rest: "The garden" }], ["/NEW ", { command: "new", rest: "" }],
    ["/reset the router please", { wrong: "/reset takes nothing behind it" }], ["/new day", { wrong: "/new takes nothing behind it" }],
    ["/snapshot before the move", { command: "snapshot", rest: "before the move" }], ["/branch", { command: "branch", rest: "" }], ["/branch a\nb", { wrong: "/branch takes one name" }],
    ["/stop it", { wrong: "/stop takes nothing behind it" }], ["/model two names", { wrong: "/model takes one name, or default" }],
    ["/nope", { unknown: "/nope" }], ["/", { unknown: "/" }], ["a /reset", { say: "a /reset" }], ["/etc/passwd", { unknown: "/etc" }],
  ]) {
    test(`typed ${JSON.stringify(typed)}`, () => {
      const got = readInput(typed);
      if (typed === "/etc/passwd") assert.ok(got.unknown); // never sent as it is
      else assert.deepEqual(got, want);
    });
  }
  for (const [key, want] of [["main", "agent:main:main"], ["Garden", "agent:main:local:dm:garden"], ["agent:work:main", "agent:work:main"], ["garden#b1", "agent:main:local:dm:garden#b1"]]) {
    test(`key ${key}`, () => assert.equal(fullKey(key), want));
  }
  for (const [kind, text, want] of [["message", "hi", "hi"], ["ask", "model small", "/model small"], ["reset", "new", "/new"], ["reset", "manual", "/reset"], ["compact", "", "/compact"], ["compact", "keep names", "/compact keep names"]]) {
    test(`waiting ${want}`, () => assert.equal(typedOf({ kind, text }), want));
  }
  for (const [used, limit, share, level] of [
    [0, 0, "0 %", ""], [undefined, 100, "0 %", ""], [1, 1000, "<1 %", ""], [9326, 190_000, "5 %", ""], [850, 1000, "85 %", ""],
    [851, 1000, "85 %", "near"], [1000, 1000, "100 %", "near"], [1001, 1000, "100 %", "over"], [1500, 1000, "150 %", "over"],
  ]) test(`a context of ${used} of ${limit}`, () => assert.deepEqual([fillOf(used, limit).share, fillOf(used, limit).level], [share, level]));
  for (const [title, n, want] of [
    ["My Fence: back & ünï", 1, "my-fence-back-uni"], ["Walnut table, restored", 2, "walnut-table-restored-2"], ["Back-native", 1, "back-native"],
    ["海", 1, "restored"], [" … ", 3, "restored-3"], ["#/:", 1, "restored"], [`${"x".repeat(59)} y`, 1, "x".repeat(59)], ["agent:main:main", 1, "agent-main-main"],
  ]) test(`key of ${title}`, () => assert.equal(keyFrom(title, "ada", n), `agent:ada:local:dm:${want}`));
  test("counts", () => assert.deepEqual([0, 1, 2, 1234].map((n) => count(n, "message")), ["0 messages", "1 message", "2 messages", "1,234 messages"]));
  test("names", () => {
    assert.equal(nameOf({ key: newKey(1, 2) }), "New chat");
    assert.equal(nameOf({ key: "agent:main:local:dm:garden" }), "garden");
    assert.equal(nameOf({ key: "agent:main:main" }), "Main conversation");
    const annas = ["local", "user", "whatsapp", "api"].map((channel) => nameOf({ key: `agent:main:${channel}:dm:anna` }));
    assert.deepEqual(annas, ["anna", "anna · user", "anna · WhatsApp", "anna · API"]);
    assert.equal(nameOf({ key: "agent:main:proxy:dm:0f3c9a2b0f3c9a2b0f3c9a2b0f3c9a2b" }), "Client 0f3c9a · Proxy");
    assert.deepEqual(["agent:main:proxy:dm:0f", "agent:main:proxy:dm:0f#t2", "agent:main:local:dm:proxy", "agent:main:main", ""].map(proxied), [true, true, false, false, false]);
    assert.equal(nameOf({ key: "agent:main:telegram:group:-7" }), "-7 · Telegram group");
    assert.equal(nameOf({ key: "agent:main:whatsapp:dm:anna", title: "Anna" }), "Anna");
    assert.deepEqual(["agent:main:main", "agent:main:web:dm:x", "agent:main:whatsapp:dm:anna"].map(channelOf), ["", "", "WhatsApp"]);
    assert.equal(titleFrom("  a\n b "), "a b");
    assert.ok(titleFrom("word ".repeat(40)).length <= 61);
  });
  for (const [ms, want] of [[10_000, "now"], [120_000, "2m ago"], [7_200_000, "2h ago"], [3 * 86_400_000, "3d ago"], [400 * 86_400_000, "last yr."]]) {
    test(`ago ${want}`, () => assert.equal(ago(0, ms, "en"), want));
  }
  test("pauses grow to a bound", () => {
    for (let n = 0; n < 40; n++) assert.ok(pauseAfter(n, 0) >= 375 && pauseAfter(n, 1) <= 18_750);
    assert.ok(pauseAfter(3, 0.5) > pauseAfter(1, 0.5));
  });
});

describe("client", () => {
  const answering = (status, body, headers = {}) => {
    const seen = [], refusals = [];
    const api = createApi({ token: () => "secret", refused: (e) => refusals.push(e.message), base: "http://x", fetch: async (url, init) => (seen.push([url, init]), new Response(body, { status, headers })) });
    return { api, seen, refusals };
  };
  test("sends the token in a header and never in the address", async () => {
    const { api, seen } = answering(200, '{"a":1}');
    assert.deepEqual(await api.get("/v1/sessions", { query: { agent: "main", cursor: undefined, q: "" } }), { a: 1 });
    assert.equal(seen[0][0], "http://x/v1/sessions?agent=main");
    assert.equal(seen[0][1].headers.get("authorization"), "Bearer secret");
  });
  for (const [name, status, body, want, again] of [
    ["in the server's words", 404, '{"error":{"type":"not_found","message":"no such session","requestId":"r1"}}', { status: 404, type: "not_found", message: "no such session", requestId: "r1" }, false],
    ["of a proxy", 502, "<html>", { status: 502, type: "gateway", message: "The server answered 502." }, true],
    ["of a proxy that writes JSON", 504, '{"error":"upstream"}', { status: 504, type: "gateway", message: "The server answered 504." }, true],
    ["of the model's provider", 502, '{"error":{"type":"auth","message":"wrong key"}}', { status: 502, type: "auth", message: "wrong key" }, false],
    ["of the way to the provider", 502, '{"error":{"type":"network","message":"cut off"}}', { status: 502, type: "network", message: "cut off" }, true],
    ["within", 500, '{"error":{"type":"internal","message":"sorry"}}', { status: 500, type: "internal", message: "sorry" }, true],
    ["that stays", 501, '{"error":{"type":"not_implemented","message":"no"}}', { status: 501, type: "not_implemented", message: "no" }, false],
    ["that passes", 503, '{"error":{"type":"busy","message":"later"}}', { status: 503, type: "busy", message: "later" }, true],
  ]) {
    test(`an error ${name}`, async () => {
      const e = await answering(status, body).api.post("/x").catch((x) => x);
      assert.ok(e instanceof ApiError);
      for (const [k, v] of Object.entries(want)) assert.equal(e[k], v, k);
      assert.equal(e.again, again);
    });
  }
  test("a refused token is told", async () => {
    const { api, refusals } = answering(401, '{"error":{"type":"unauthorized","message":"wrong token"}}');
    await assert.rejects(api.get("/x"));
    assert.deepEqual(refusals, ["wrong token"]);
  });
  test("a missing token is told to a person, all else in the server's words", () => {
    const send = 'no token: send "Authorization: Bearer TOKEN" or "x-tidemark-token: TOKEN"';
    assert.equal(tokenWords(`${send} (TIDEMARK_TOKEN as it stood in .dev.vars when make dev was started)`), "It is TIDEMARK_TOKEN as it stood in .dev.vars when make dev was started.");
    assert.equal(tokenWords(send), "It is TIDEMARK_TOKEN as the server was started with.");
    for (const m of ["wrong token: it is not this server's (TIDEMARK_TOKEN as the server was started with)", "this server has no token and lets nobody in; set one"]) assert.equal(tokenWords(m), m);
  });
  test("nobody there", async () => {
    const api = createApi({ fetch: async () => { throw new TypeError("failed"); } });
    const e = await api.get("/x").catch((x) => x);
    assert.deepEqual([e.status, e.type, e.again], [0, "offline", true]);
  });
});

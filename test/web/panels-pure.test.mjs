// The parts of the panels that need no browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changes, stubsOf } from "../../web/src/panels/changes.js";
import { served, tracksOf, treatmentName } from "../../web/src/panels/client.js";
import { byFolder, firstWords, parts, readable, readLines } from "../../web/src/panels/content.js";
import { diff, hunks, lines, tally } from "../../web/src/panels/diff.js";
import { bars, cameOf, marked, nameOf, stateName, states } from "../../web/src/panels/episodes.js";
import { kindOf, money, when } from "../../web/src/panels/format.js";
import { paged, share, zoneName } from "../../web/src/panels/paging.js";
import { columnAt, columnBy, limits, linear, stack, stairs, ticks } from "../../web/src/panels/scale.js";
import { join, since, steps, totals } from "../../web/src/panels/series.js";
import { add, cost, parsePrice, pricesOf, total } from "../../web/src/panels/usage.js";

test("diff: applied to the one text it gives the other", () => {
  const rows = [
    ["", ""], ["", "a\n"], ["a\n", ""], ["a\nb\nc\n", "a\nb\nc\n"], ["a\nb\nc\n", "a\nx\nc\n"], ["a\nb\nc\n", "c\nb\na\n"],
    ["one\ntwo\nthree\nfour\n", "zero\none\nthree\nfive\nfour\n"], ["a\na\na\n", "a\na\n"], ["x", "x\ny"], ["\n\n\n", "\n\n"],
  ];
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let i = 0; i < 300; i++) rows.push([0, 1].map(() => Array.from({ length: random(14) }, () => "abcd"[random(4)]).join("\n")));
  for (const [a, b] of rows) {
    const d = diff(a, b);
    assert.deepEqual(d.filter((l) => l.op !== "+").map((l) => l.text), lines(a), JSON.stringify([a, b]));
    assert.deepEqual(d.filter((l) => l.op !== "-").map((l) => l.text), lines(b), JSON.stringify([a, b]));
    for (const l of d) {
      if (l.a) assert.equal(lines(a)[l.a - 1], l.text);
      if (l.b) assert.equal(lines(b)[l.b - 1], l.text);
    }
  }
});

test("diff: is as short as the longest common subsequence allows", () => {
  const lcs = (a, b) => {
    const t = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++) t[i][j] = a[i - 1] === b[j - 1] ? t[i - 1][j - 1] + 1 : Math.max(t[i - 1][j], t[i][j - 1]);
    return t[a.length][b.length];
  };
  let seed = 3;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let i = 0; i < 200; i++) {
    const [a, b] = [0, 1].map(() => Array.from({ length: random(12) }, () => "abc"[random(3)]));
    const same = diff(a.join("\n"), b.join("\n")).filter((l) => l.op === " ").length;
    assert.equal(same, lcs(lines(a.join("\n")), lines(b.join("\n"))), `${a} / ${b}`);
  }
});

test("diff: texts without a common line are replaced whole, also large ones", () => {
  const text = (p) => Array.from({ length: 3000 }, (_, i) => p + i).join("\n");
  assert.deepEqual(tally(diff(text("a"), text("b"))), { added: 3000, removed: 3000 });
});

test("hunks: leave out what is far from a change", () => {
  const a = Array.from({ length: 40 }, (_, i) => `l${i}`);
  const b = a.with(20, "changed");
  const h = hunks(diff(a.join("\n"), b.join("\n")), 2);
  assert.deepEqual(h.map((l) => l.op), ["…", " ", " ", "-", "+", " ", " ", "…"]);
  assert.deepEqual([h[0].count, h.at(-1).count], [18, 17]);
  assert.deepEqual(hunks(diff("a\nb", "a\nb")), [{ op: "…", count: 2 }]);
});

test("ticks: round, from 0, over the largest value", () => {
  for (const [max, want] of [[0, [0, 1]], [1, [0, 0.5, 1]], [3622, [0, 1000, 2000, 3000, 4000]], [200000, [0, 50000, 100000, 150000, 200000]], [0.003, [0, 0.001, 0.002, 0.003]]]) {
    assert.deepEqual(ticks(max), want);
  }
});

test("stairs: a call rises, a compaction falls, the area closes", () => {
  const s = [{ kind: "call", before: 10, after: 20, limit: 50 }, { kind: "compaction", before: 20, after: 5, limit: 40 }];
  const x = (i) => i * 100, y = linear(100, 100, 0);
  assert.equal(stairs(s, x, y), "M0 90L85 80L100 80L150 95L200 95");
  assert.equal(stairs(s, x, y, 100), "M0 90L85 80L100 80L150 95L200 95L200 100L0 100Z");
  assert.equal(stairs([], x, y), "");
  assert.equal(limits(s, x, y), "M0 50L100 50L100 60L200 60");
});

test("stack: fills the width in proportion, small portions stay visible", () => {
  const p = stack([{ kind: "a", tokens: 50 }, { kind: "b", tokens: 0 }, { kind: "c", tokens: 25 }], 100, 200);
  assert.deepEqual(p.map(({ kind, x, width }) => [kind, x, width]), [["a", 0, 100], ["c", 100, 50]]);
  const tiny = stack([{ kind: "a", tokens: 9999 }, { kind: "b", tokens: 1 }], 10000, 100, 2);
  assert.ok(tiny[1].width > 1.9 && tiny[1].x + tiny[1].width <= 100.01, JSON.stringify(tiny));
  const over = stack([{ kind: "a", tokens: 300 }], 100, 200);
  assert.equal(over[0].width, 200);
});

const call = (n, more) => ({ n, at: n * 1000, sessionId: "s", model: "m", size: 100 * n, context: 100 * n + 50, limit: 1000, usage: { input_tokens: 100 * n, output_tokens: 50 }, ...more });

test("steps: calls, compactions and resets in order, each once", () => {
  const compaction = { at: new Date(2500).toISOString(), id: "e1", event: { type: "compaction", text: "Compacted", data: { beforeTokens: 250, afterTokens: 90, limitTokens: 1000, overlay: "o1", usage: { input_tokens: 7, output_tokens: 1 } } } };
  const got = steps([call(3, { overlays: ["o1"] }), call(2), call(1)], [compaction, { at: "2020-01-01T00:00:00Z", event: { type: "notice", text: "x" } }]);
  assert.deepEqual(got.map((s) => [s.kind, s.before, s.after]), [["call", 100, 150], ["call", 200, 250], ["compaction", 250, 90], ["call", 300, 350]]);
});

test("steps: what no event tells shows in the calls", () => {
  const got = steps([call(1), call(2, { overlays: ["o1"] }), call(3, { sessionId: "t" })], []);
  assert.deepEqual(got.map((s) => s.kind), ["call", "compaction", "call", "reset", "call"]);
  const told = steps([call(1), call(3, { sessionId: "t" })], [{ at: new Date(2000).toISOString(), event: { type: "reset", text: "r", data: { tokensCleared: 150, newSessionId: "t" } } }]);
  assert.deepEqual(told.map((s) => s.kind), ["call", "reset", "call"]);
});

test("since: begins with a call while older calls are not loaded", () => {
  const all = [{ kind: "compaction" }, { kind: "call" }, { kind: "reset" }];
  assert.equal(since(all, true).length, 2);
  assert.equal(since(all, false).length, 3);
  assert.equal(since([{ kind: "compaction" }], true).length, 1);
});

test("totals: tokens and cost; unknown while a price is missing", () => {
  const all = [{ kind: "call", model: "m", usage: { input_tokens: 1e6, output_tokens: 1e6 } }, { kind: "compaction", usage: { input_tokens: 1e6 } }];
  assert.equal(totals(all, { m: { input: 3, output: 15 } }).cost, 21);
  assert.equal(totals(all, { m: { input: 3 } }).cost, null);
  const t = totals(all, {});
  assert.deepEqual([t.calls, t.compactions, total(t.usage), total(t.inner), t.cost], [1, 1, 2e6, 1e6, null]);
});

test("cost: cache has its own prices, what was not used needs none", () => {
  const u = { input_tokens: 10, cache_read_input_tokens: 1000, output_tokens: 0 };
  assert.equal(cost(u, { input: 1 }), null);
  assert.equal(cost(u, { input: 1, cacheRead: 0.1 }), (10 + 100) / 1e6);
  assert.deepEqual(add(u, { output_tokens: 5 }), { input_tokens: 10, cache_read_input_tokens: 1000, cache_creation_input_tokens: 0, output_tokens: 5 });
});

test("prices: read as typed and as kept; what is not ours is left out", () => {
  for (const [text, want] of [["3", 3], [" 0,25 ", 0.25], [".5", 0.5], ["", undefined], ["-1", NaN], ["1e3", NaN], ["three", NaN], ["Infinity", NaN]]) {
    assert.equal(parsePrice(text), want, text);
  }
  assert.deepEqual(pricesOf({ m: { input: 3, output: 0, other: 1 } }), { m: { input: 3, output: 0 } });
  for (const bad of [null, 7, "x", { m: { input: "3", output: -1 } }, { m: null }, { m: { input: Infinity } }]) {
    assert.deepEqual(Object.values(pricesOf(bad)).flatMap(Object.values), [], JSON.stringify(bad));
  }
});

test("readable: leaves out our comments and nothing else", () => {
  for (const [text, want] of [
    ["- a <!-- tidemark: 01..02 -->\n- b", "- a\n- b"], ["<!-- mine -->", "<!-- mine -->"], ["<!-- tidemark: a", "<!-- tidemark: a"],
    ["<!-- tidemark: x --> kept <!-- tidemark: y -->", " kept"], ["<!-- tidemark: two\nlines -->", "<!-- tidemark: two\nlines -->"],
  ]) assert.equal(readable(text), want);
});

test("join: a newer page over what is known", () => {
  const of = (...ns) => ns.map((n) => ({ n }));
  const known = { items: of(3, 2, 1), next: 1 };
  for (const [name, page, want] of [
    ["overlaps", { items: of(5, 4, 3), next: 3 }, { items: of(5, 4, 3, 2, 1), next: 1 }],
    ["leaves a gap", { items: of(9, 8), next: 8 }, { items: of(9, 8), next: 8 }],
    ["is the whole list", { items: of(9, 3) }, { items: of(9, 3) }],
    ["covers all that is known, and more follow", { items: of(4, 3, 2, 1), next: 1 }, { items: of(4, 3, 2, 1), next: 1 }],
    ["is empty", { items: [] }, { items: [] }],
  ]) assert.deepEqual(join(known, page, (x) => x.n), want, name);
  assert.deepEqual(join({ items: [] }, { items: of(2, 1), next: 1 }, (x) => x.n), { items: of(2, 1), next: 1 });
});

test("parts: every block has something to show, whatever it is", () => {
  const rows = [
    ["hello", ["text:hello"]],
    [[{ type: "text", text: "a" }, { type: "thinking", thinking: "b" }], ["text:a", "thinking:b"]],
    [[{ type: "tool_use", name: "Bash", input: { command: "ls" } }], ['call:{\n  "command": "ls"\n}']],
    [[{ type: "tool_result", content: [{ type: "text", text: "x" }, { type: "image", source: { media_type: "image/png", data: "AAAA" } }] }], ["result:x\n[Image (image/png, about 1 KB)]"]],
    [[{ type: "tool_result", is_error: true, content: "no" }], ["result:no"]],
    [[{ type: "image", source: { type: "url", url: "https://x" } }], ["media:"]],
    [[{ type: "new_thing", a: 1 }], ['other:{\n  "type": "new_thing",\n  "a": 1\n}']],
    [[null, 7, { type: "text", text: { not: "a string" } }], ["other:null", "other:7", 'text:{\n  "not": "a string"\n}']],
    [undefined, []], [{ odd: true }, ['other:{\n  "odd": true\n}']],
  ];
  for (const [content, want] of rows) assert.deepEqual(parts(content).map((p) => `${p.kind}:${p.text}`), want);
});

test("readLines: a bad line does not take the others with it", () => {
  const got = readLines('{"role":"user","content":"a","id":"1","timestamp":5,"origin":{"from":"person"}}\nnot json\n\n[1]\n{"role":"assistant","content":[{"type":"text","text":"b"}]}\n');
  assert.deepEqual(got.map((m) => [m.line, m.role, Boolean(m.bad), m.parts[0].text]), [[1, "user", false, "a"], [2, "", true, "not json"], [4, "", true, "[1]"], [5, "assistant", false, "b"]]);
  assert.deepEqual(readLines(""), []);
});

test("format: what people read", () => {
  assert.deepEqual([0, 12.345, 0.0123, 0.0000456].map(money), ["$0", "$12.35", "$0.012", "$0.000046"]);
  assert.equal(firstWords("a\n\n b  c", 10), "a b c");
  assert.equal(firstWords("😀".repeat(20), 3), "😀😀😀…");
  assert.equal(when("nonsense"), "");
  assert.deepEqual([{ summary: true, source: "system" }, { stubs: 1, source: "tool" }, { source: "tool" }, { source: "" }, { source: "system", role: "user" }].map(kindOf), ["summary", "stub", "tool", "other", "other"]);
});

test("byFolder: kept by hand, by day with the newest first, by person", () => {
  const g = byFolder(["MEMORY.md", "SOUL.md", "memory/2026-01-01.md", "memory/2026-01-02.md", "memory/peers/ann/2026-01-01.md"].map((path) => ({ path })));
  assert.deepEqual(g.map((x) => x.files.map((f) => f.path)), [["MEMORY.md", "SOUL.md"], ["memory/2026-01-02.md", "memory/2026-01-01.md"], ["memory/peers/ann/2026-01-01.md"]]);
  assert.deepEqual(byFolder([]), []);
});

const overlay = (id, more) => ({ id, at: "2026-01-01T00:00:00Z", kind: "overlay", overlay: { by: ["summary"], edits: [{ from: "a", to: "b", messages: [] }], reason: "threshold", ...more } });
const told = (id, of) => ({ id, at: "2026-01-01T00:00:00Z", kind: "event", event: { type: "compaction", text: "Compacted 2 messages", data: { overlay: of, beforeTokens: 9, afterTokens: 4, strategies: ["summary"], reason: "manual", archive: "x" } } });
const undo = (id, lifted) => overlay(id, { by: ["person"], reason: "undo", edits: undefined, lifts: [lifted] });

test("changes: an overlay and the event that tells of it are one row", () => {
  const rows = changes([told("e1", "o1"), overlay("o1"), overlay("o0"), { id: "n", at: "", event: { type: "notice", text: "Nothing to compact" } }], ["o1"]);
  assert.deepEqual(rows.map((r) => [r.kind, r.title, r.overlay, r.state, r.why]), [
    ["compaction", "Compacted", "o1", "on", "somebody asked for it"], ["overlay", "Summary", "o0", "covered", "the context was over its limit"], ["notice", "Notice", "", "", ""]]);
  assert.deepEqual([rows[0].before, rows[0].after, rows[0].archive, rows[0].edits.length], [9, 4, "x", 1]);
});

test("changes: undone, and undone again", () => {
  const states = (entries, on) => changes(entries, on).map((r) => `${r.kind} ${r.state}`);
  assert.deepEqual(states([undo("u1", "o1"), overlay("o1")], []), ["undo on", "overlay undone"]);
  assert.deepEqual(states([undo("u2", "u1"), undo("u1", "o1"), overlay("o1")], ["o1"]), ["undo on", "undo undone", "overlay on"]);
  assert.deepEqual(states([undo("u3", "u2"), undo("u2", "u1"), undo("u1", "o1"), overlay("o1")], []), ["undo on", "undo undone", "undo on", "overlay undone"]);
});

test("changes: what this page does not know is told in the server's words", () => {
  const [row] = changes([{ id: "e", at: "", event: { type: "tidied", text: "Tidied up", data: { reason: "spring" } } }], []);
  assert.deepEqual([row.title, row.text, row.why], ["tidied", "Tidied up", "spring"]);
});

test("stubsOf: the newest in effect, by block", () => {
  const stub = (id, block, text) => overlay(id, { edits: [{ from: "m", block, blocks: [{ type: "text", text }] }] });
  const got = stubsOf([stub("o3", 2, "lifted"), stub("o2", 1, "new"), stub("o1", 1, "old"), overlay("o0")], "m", ["o2", "o1", "o0"]);
  assert.deepEqual([...got].map(([n, b]) => [n, b[0].text]), [[1, "new"]]);
  assert.equal(stubsOf([], "m", []).size, 0);
});

test("columnAt and columnBy: every column can be pointed at, by the eye and by keys", () => {
  const box = { width: 100, left: 20, right: 0 };
  assert.deepEqual([0.1, 0.2, 0.59, 0.61, 0.99, 1].map((share) => columnAt(share, 2, box)), [null, 0, 0, 1, 1, null]);
  assert.deepEqual([["ArrowLeft", null], ["ArrowRight", null], ["ArrowLeft", 0], ["ArrowRight", 2], ["Home", 2], ["End", 0], ["a", 1]].map(([k, now]) => columnBy(k, now, 3)), [2, 0, 0, 2, 0, 2, null]);
});

test("tracksOf: which history of a client is shown, and the others, the newest first", () => {
  const at = (n) => `2026-01-01T00:00:${String(n).padStart(2, "0")}Z`;
  const track = (n, main) => ({ key: `k#t${n}`, messages: n, updatedAt: at(n), main });
  assert.equal(tracksOf(null), null);
  assert.equal(tracksOf({ key: "main" }), null);
  assert.equal(tracksOf({ track: "k#t1", tracks: [track(1, true)] }), null);
  const got = tracksOf({ track: "k#t2", tracks: [track(1), track(2, true), track(3)] });
  assert.deepEqual([got.here, got.main, got.others.map((t) => t.n), got.more], [2, true, [3, 1], 0]);
  const many = tracksOf({ track: "k#t20", tracks: Array.from({ length: 20 }, (_, i) => track(i + 1, i === 4)) });
  assert.deepEqual([many.here, many.main, many.others.length, many.others[0].n, many.more], [20, false, 12, 19, 7]);
});

test("served: what became of a client's requests, the newest first", () => {
  assert.equal(served([]), null);
  assert.equal(served([{ n: 1, at: 1 }]), null);
  const got = served([
    { n: 1, at: 10, proxy: { treatment: "observe", legs: 1, phantom: 0, trimmedBytes: 0, untouched: "an odd body" } }, { n: 2, at: 20 },
    { n: 3, at: 30, error: "cut off", proxy: { treatment: "page", legs: 3, phantom: 2, trimmedBytes: 40 } },
  ]);
  assert.deepEqual(got, { treatment: "page", calls: 2, legs: 4, phantom: 2, trimmed: 40, untouchedCount: 1, untouched: [{ n: 1, at: 10, why: "an odd body" }], failed: [{ n: 3, at: 30, why: "cut off" }] });
  assert.equal(treatmentName("later"), "later");
  assert.match(treatmentName("observe"), /^observe: nothing is changed/);
});

test("paged: what has no totals is added up of what was read", () => {
  const none = { calls: 0, evicted: 0, faults: 0 };
  const call = (n, paging) => ({ n, at: n, paging: { zone: "advisory", evicted: 0, collected: 0, inputs: 0, images: 0, pins: 0, bytesIn: 100, bytesSent: 50, totals: none, ...paging } });
  const got = paged([call(2, { evicted: 3, faults: [{ call: "b", of: "a", path: "x" }] }), call(1, { inputs: 2 })]);
  assert.deepEqual(got.totals, { calls: 2, evicted: 3, collected: 0, inputs: 2, images: 0, faults: 1, pins: 0, bytesIn: 200, bytesSent: 100 });
  assert.equal(got.loaded, true);
});

test("paged: the calls that paging decided, their faults, and what stands now", () => {
  const call = (n, more) => ({ n, at: n, paging: { zone: "normal", size: 10, fill: 1, tau: 4, stubs: 0, outBytes: 0, evicted: 0, collected: 0, inputs: 0, images: 0, pins: 0, bytesIn: 0, bytesSent: 0, totals: { faults: n }, ...more } });
  const fault = (path) => ({ call: "c", of: "o", path });
  assert.equal(paged([]), null);
  assert.equal(paged([{ n: 1, at: 1 }]), null);
  const got = paged([ // newest first, as they are read
    call(3, { zone: "advisory", bytesIn: 900, bytesSent: 300, evicted: 1, collected: 2, inputs: 3, images: 4, faults: [fault("b"), fault("c")] }),
    call(2, { bytesIn: 500, bytesSent: 500, faults: [fault("a")] }), call(1), { n: 0, at: 0 }]);
  assert.equal(got.now.zone, "advisory");
  assert.deepEqual(["page", "observe", "episodes+trim"].map((treatment) => paged([{ ...call(1), proxy: { treatment } }]).pages), [true, true, false]);
  assert.equal(got.pages, true);
  assert.deepEqual(got.totals, { faults: 3 });
  assert.deepEqual(got.steps, [{ n: 2, at: 2, zone: "normal", whole: 500, sent: 500, left: 0, faults: 1 }, { n: 3, at: 3, zone: "advisory", whole: 900, sent: 300, left: 10, faults: 2 }]);
  assert.deepEqual(got.faults.map((f) => `${f.path}${f.n}`), ["c3", "b3", "a2"]);
  assert.equal(paged(Array.from({ length: 30 }, (_, n) => call(n, { faults: [fault("x")] }))).faults.length, 20);
});

test("zoneName and share: of what this page knows, and of what it does not", () => {
  assert.match(zoneName("advisory"), /^Advisory: old results leave/);
  assert.equal(zoneName("other"), "Other");
  assert.deepEqual([share(1, 3), share(0, 5), share(1, 0)], ["33 %", "0 %", ""]);
});

test("episodes: asked for only where the agent can mark them", () => {
  const tools = (...names) => ({ tools: names.map((name) => ({ name })) });
  assert.equal(marked(tools("recall", "delimiter")), true);
  assert.equal(marked(tools("recall")), false);
  assert.equal(marked(null, undefined), false);
  for (const [treatment, is] of [["episodes", true], ["episodes+trim", true], ["page+episodes", true], ["page+trim", false], ["", false]]) {
    assert.equal(marked({ tools: [] }, { proxy: { treatment } }), is, treatment);
  }
});

test("episodes: columns, names and what came of each", () => {
  const list = [{ tokens: 200, standing: 50 }, { tokens: 100, standing: 900 }, { tokens: 0, standing: 0 }];
  assert.deepEqual(bars(list).map(({ had, has }) => [had, has]), [[1, 0.25], [0.5, 0.5], [0, 0]]);
  assert.deepEqual(bars([]), []);
  assert.equal(nameOf({ type: "expl", name: "a" }), "exploration “a”");
  assert.equal(nameOf({ type: "act", name: "b" }), "action “b”");
  assert.equal(nameOf({}), "unmarked work");
  assert.equal(cameOf({ description: "seen", changed: ["a"], read: ["b"] }), "seen");
  assert.equal(cameOf({ changed: ["a", "c"], read: ["b"] }), "changed a, c");
  assert.equal(cameOf({ read: ["b"] }), "read b");
  assert.equal(cameOf({}), "");
  assert.equal(new Set(states.map(([s]) => stateName(s))).size, 5);
  assert.equal(stateName("other"), "other");
});

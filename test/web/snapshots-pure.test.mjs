// Tests of the tree, of costs and of the list of branches, without a browser.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { branchOf, families } from "../../web/src/family.js";
import { barsOf, paysOf } from "../../web/src/panels/cost.js";
import { snapshotID } from "../../web/src/panels/snapshotfile.js";
import { grow, homeKey, lines, moved, shortKey, speaker, told } from "../../web/src/panels/tree.js";
import { nameOf } from "../../web/src/words.js";

const at = (n) => new Date(Date.UTC(2026, 10, 1, 0, 0, n)).toISOString();
const snap = (id, n, parent, session = "agent:main:main") => ({ id, kind: "snapshot", of: "session", name: id.toUpperCase(), session, parent, created_at: at(n), message_count: n });
const branch = (id, n, parent) => ({ id, kind: "branch", of: "session", name: id, session: id, parent, created_at: at(n), message_count: n });
const drawn = (nodes) => grow(nodes).rows.map((r) => `${"  ".repeat(r.depth)}${r.node.id}${r.lost ? "?" : ""}`);

describe("tree", () => {
  test("roots by time, under each branches first, then snapshots", () => {
    const nodes = [snap("c", 9), snap("a", 1), snap("a2", 2, "a"), branch("b2", 5, "a"), branch("b1", 4, "a"), snap("b1s", 6, "a"), branch("deep", 7, "b1s")];
    const want = ["a", "  b1", "  b2", "  a2", "  b1s", "    deep", "c"];
    assert.deepEqual(drawn(nodes), want);
    assert.deepEqual(drawn([...nodes].reverse()), want, "the order in which they come does not matter");
  });

  test("times with fewer digits of a second", () => {
    const stamped = (id, time) => ({ ...snap(id, 0), created_at: `2026-11-01T00:00:00${time}Z` });
    assert.deepEqual(drawn([stamped("c", ".95"), stamped("b", ".9"), stamped("a", ""), stamped("d", ".951")]), ["a", "b", "c", "d"]);
  });

  test("newest first, roots change their places and nothing below them does", () => {
    const nodes = [snap("a", 1), snap("c", 3, "a"), snap("d", 4, "a"), snap("b", 2), snap("e", 5, "lost")];
    assert.deepEqual(grow(nodes, true).rows.map((r) => r.node.id), ["e", "b", "a", "c", "d"]);
    assert.deepEqual(grow(nodes).rows.map((r) => r.node.id), ["a", "c", "d", "b", "e"]);
    assert.deepEqual(lines(grow(nodes, true).rows[3]).marks, ["├"]);
  });

  test("a lost parent makes a root, circles are cut once, of two with one id the first counts", () => {
    assert.deepEqual(drawn([snap("x", 1, "gone")]), ["x?"]);
    const { rows, circles } = grow([snap("a", 1, "b"), snap("b", 2, "a"), snap("c", 3), snap("self", 4, "self")]);
    assert.deepEqual([rows.map((r) => r.node.id), circles], [["c", "a", "b", "self"], 2]);
    assert.equal(grow([snap("a", 1), { ...snap("a", 2), name: "other" }]).rows[0].node.name, "A");
    assert.deepEqual(grow([{}, null, { id: 5 }]).rows, []);
  });

  test("a line of 12,000 and a bush of 12,000", () => {
    const line = Array.from({ length: 12_000 }, (_, i) => snap(`n${i}`, i, i ? `n${i - 1}` : ""));
    const rows = grow(line).rows;
    assert.equal(rows.at(-1).depth, 11_999);
    assert.deepEqual([lines(rows.at(-1)).marks.length, lines(rows.at(-1)).more], [6, true]);
    assert.equal(grow(line.map((n, i) => ({ ...n, parent: i ? "n0" : "" }))).rows.at(-1).depth, 1);
  });

  test("lines", () => {
    const { rows } = grow([snap("a", 1), snap("b", 2, "a"), snap("c", 3, "b"), snap("d", 4, "a"), snap("e", 5, "d")]);
    assert.deepEqual(rows.map((r) => lines(r).marks.join("")), ["", "├", "│└", "└", " └"]);
  });

  test("keys", () => {
    const { rows } = grow([snap("a", 1), snap("b", 2, "a"), snap("c", 3)]);
    const rowsOf = [["ArrowDown", 0, 1], ["ArrowDown", 2, 2], ["ArrowUp", 0, 0], ["Home", 2, 0], ["End", 0, 2], ["ArrowLeft", 1, 0], ["ArrowLeft", 0, 0], ["ArrowRight", 0, 1], ["ArrowRight", 1, 1], ["x", 1, null]];
    for (const [key, from, to] of rowsOf) assert.equal(moved(key, from, rows), to, `${key} from ${from}`);
  });

  test("words", () => {
    assert.equal(told({ ...snap("a", 1), created_at: at(0), message_count: 120, tokens: 84_000 }, Date.parse(at(0)) + 3 * 3600e3), "snapshot, 3h ago, 120 messages, 84K tokens");
    assert.match(told({ ...branch("a", 1), trimmed: true }), /^branch, .*trimmed$/);
    assert.deepEqual(["agent:main:main", "agent:main:main#b", "agent:work:web:dm:x#b"].map(shortKey), ["main", "main#b", "x#b"]);
    assert.match(told({ ...branch("a", 1), message_count: 120, tokens: 84_000, trimmed: true }), /^branch, [^,]*, trimmed$/, "the counts are of its beginning");
    assert.deepEqual([["user", "person"], ["user", "tool"], ["user", "recall"], ["user", "system"], ["user", ""], ["assistant", "model"]].map(([role, from]) => speaker({ role, from })), ["You", "Tool", "Tool", "Note", "You", "Model"]);
    const nodes = [snap("s", 1, "", "agent:main:main#x"), branch("agent:main:main#y", 2, "s")];
    assert.equal(homeKey(nodes[1], nodes), "agent:main:main#x");
    assert.equal(homeKey(nodes[1], []), "agent:main:main");
  });
});

describe("the id in a file", () => {
  const id = "snap-01k0000000000000000000abcd";
  const member = (name, data, size = Buffer.byteLength(data)) => {
    const head = Buffer.alloc(512);
    head.write(name, 0);
    head.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
    head.write("ustar", 257);
    return Buffer.concat([head, Buffer.from(data), Buffer.alloc((512 - (Buffer.byteLength(data) % 512)) % 512)]);
  };
  const manifest = (more) => JSON.stringify({ format: "tidemark-snapshot", version: 1, kind: "session", node: { id, name: "ü" }, ...more });
  const packed = (...all) => new Blob([gzipSync(Buffer.concat(all))]);
  const long = manifest({ lineage: Array.from({ length: 5000 }, (_, i) => ({ id: `snap-${i * 7919}` })) });
  for (const [name, file] of [
    ["a small one", packed(member("manifest.json", manifest()))],
    ["a long manifest, and more behind it", packed(member("manifest.json", long), member("log/000001.jsonl", "x".repeat(3 << 20)))],
    ["in two parts", new Blob([gzipSync(Buffer.concat([member("manifest.json", manifest()), Buffer.alloc(1 << 20)])), gzipSync("more")])],
    ["cut off behind it", new Blob([gzipSync(Buffer.concat([member("manifest.json", manifest()), Buffer.from(long)])).subarray(0, -100)])],
  ]) test(name, async () => assert.equal(await snapshotID(file), id));
  for (const [name, file, want] of [
    ["no gzip", new Blob(["x"]), /no file of a snapshot/],
    ["nothing", new Blob([]), /no file of a snapshot/],
    ["another tar", packed(member("notes.txt", manifest())), /no file of a snapshot/],
    ["another program's manifest", packed(member("manifest.json", `{"name":"x"}`)), /no file of a snapshot/],
    ["no id", packed(member("manifest.json", manifest({ node: {} }))), /no file of a snapshot/],
    ["cut off in it", packed(Buffer.from(member("manifest.json", manifest()).subarray(0, 540))), /no file of a snapshot/],
    ["a manifest over its bound", packed(member("manifest.json", manifest(), 2 ** 30), Buffer.alloc(17 << 20)), /no file of a snapshot/],
    ["a size that is none", packed(Buffer.from(member("manifest.json", manifest()).fill("z", 124, 135))), /no file of a snapshot/],
    ["of Claude Code", packed(member("manifest.json", manifest({ kind: "claude" }))), /Claude Code: `tidemark snapshot import`/],
  ]) test(name, () => assert.rejects(snapshotID(file), want));
});

test("branches stand under their session, a family where its newest is", () => {
  const s = (key) => ({ key });
  const list = ["agent:main:local:dm:a#x", "agent:main:local:dm:b", "agent:main:local:dm:a", "agent:main:local:dm:a#w", "agent:main:local:dm:gone#z", "agent:main:proxy:dm:1#t2", "agent:main:proxy:dm:1"].map(s);
  assert.deepEqual(families(list).map((f) => `${f.under ? "- " : ""}${f.session.key.split(":").at(-1)}`), ["a", "- a#x", "- a#w", "b", "gone#z", "1#t2", "1"]);
  assert.deepEqual([branchOf("agent:main:main#x"), branchOf("agent:main:main"), branchOf("agent:main:proxy:dm:1#t2")], ["x", "", ""]);
  assert.equal(nameOf({ key: "agent:main:main#x" }), "Main conversation › x");
  assert.equal(nameOf({ key: "agent:main:local:dm:a#x" }), "a › x");
});

test("what a trim costs, in words and bars", () => {
  const trim = { before: 100, after: 40, prefixTokens: 10, break_even: 12, verdict: "worth it in a long session", live: { break_even: 12 } };
  assert.deepEqual(barsOf(trim, 640), [640, 256, 64]);
  assert.deepEqual(barsOf({ before: 0, after: 0 }, 640), [0, 0, 0]);
  assert.equal(paysOf(trim), "It pays for itself after 12 turns: worth it in a long session.");
  assert.equal(paysOf({ ...trim, live: { break_even: 1 } }), "It pays for itself at once; after 12 turns if nothing stays in the cache.");
  assert.equal(paysOf({ ...trim, break_even: null, live: { break_even: null } }), "It pays for itself never: worth it in a long session.");
});

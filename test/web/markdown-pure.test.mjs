// Reading markdown within bounds: nothing throws, nothing takes long, nothing is lost.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { shares } from "../../web/src/blocks.js";
import { LONGEST, read } from "../../web/src/bounded.js";

// A piece may take some tens of milliseconds of the processor. The best of some tries counts; without bounds the
// same takes seconds.
const BOUND = 100;
function cost(text) {
  let best = Infinity;
  for (let i = 0; i < 4 && best > BOUND; i++) {
    const began = process.cpuUsage().user;
    read(text);
    best = Math.min(best, (process.cpuUsage().user - began) / 1_000);
  }
  return best;
}

function some(seed) {
  let n = seed;
  return (most) => {
    n = (Math.imul(n, 1103515245) + 12345) & 0x7fffffff;
    return (n >> 8) % most;
  };
}

const UNITS = ["[", "]", "[]", "[a", "*a ", "_a", "*", "_", "a**b ", "<", "<a ", "<a b=\"", "![", ">", "> a\n", ">\n", "- ", "- a\n", "1. a\n", "~a", "~~a ", "[a](", "[a](b \"",
  "http://a", "www.a.", "a@", "a.b", "|", "| a ", "|a\n", "a|b\n-|-\n", "&", "&a", "\\", "\\*", "<!--", " ", "a ", "\t", "\u00a0", "\u3000", "`", "`a", "``a`", "*_", "[a]: b\n", "[a]:\n", "[a][a]", "# ", "#\n",
  "a\n=\n", "a\n-\n", "\n", " \n", "```\n", "~~~\n", "---\n", "- - ", "    a\n", "  - a\n", "<![CDATA[", "<?", "<!A ", "<div>\n", "- [ ] a\n", "a  \n", "__a", "😀*", "(", "a(b)", "a", "\r", "\r\n", "\0", "\ud800"];

describe("markdown within bounds", () => {
  for (const [name, text, want] of [
    ["words", "One **two** `three`", "<p>One <strong>two</strong> <code>three</code></p>\n"],
    ["markup is text", "a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"],
    ["a table", "a|b\n-|-\n1|2", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody><tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody></table>\n"],
    ["quotes in quotes", "> a\n>> b", "<blockquote>\n<p>a</p>\n<blockquote>\n<p>b</p>\n</blockquote>\n</blockquote>\n"],
    ["a definition", "[a][b]\n\n[b]: https://x.example/", '<p><a href="https://x.example/">a</a></p>\n'],
    ["nothing", "", ""],
    ["a long code", `\`\`\`\n${"let x = [1, 2];\n".repeat(3_000)}\`\`\``, null],
    ["a long list", "- a *fact* of some length, as one is remembered\n".repeat(600), null],
    ["a long table", `|a|b|\n|-|-|\n${"| some *words* | and `others` |\n".repeat(500)}`, null],
    ["a long paragraph", "Some words with *one* here and [one](https://x.example/) there. ".repeat(150), null],
  ]) test(`shows ${name}`, () => (want === null ? assert.ok(read(text)?.length > text.length / 2) : assert.equal(read(text), want)));

  for (const [name, text] of [
    ["quotes beyond the stack", ">".repeat(6_000)], ["unclosed emphasis", "_a".repeat(30_000)], ["blanks", `a${" ".repeat(50_000)}b`], ["more than is read at once", "a".repeat(LONGEST + 1)],
    ["lists in lists", Array.from({ length: 300 }, (_, i) => `${"  ".repeat(i)}- a`).join("\n")],
  ]) test(`leaves ${name}`, () => assert.equal(read(text), null));

  test("no text takes long", () => {
    const slow = [];
    for (const unit of UNITS) {
      for (const [a, b] of [["", ""], ["a", "b"], ["- ", ""], ["x\n\n", "\ny"]]) {
        const text = `${a}${unit.repeat(LONGEST / unit.length - 4)}${b}`;
        const ms = cost(text);
        if (ms > BOUND) slow.push(`${JSON.stringify(unit)} between ${JSON.stringify([a, b])}: ${Math.round(ms)} ms`);
      }
    }
    assert.deepEqual(slow, []);
  });

  test("no mixture throws or takes long", () => {
    const slow = [];
    for (let seed = 1; seed <= 250; seed++) {
      const next = some(seed), few = Array.from({ length: 1 + next(5) }, () => UNITS[next(UNITS.length)]);
      let text = "";
      for (const size = 100 + next(seed % 5 ? 4_000 : LONGEST); text.length < size;) text += few[next(few.length)].repeat(1 + next(seed % 3 ? 3 : 40));
      const ms = cost(text);
      if (ms > BOUND) slow.push(`${JSON.stringify(few)} ${text.length}: ${Math.round(ms)} ms`);
    }
    assert.deepEqual(slow, []);
  });
});

describe("shares of a text", () => {
  const LINES = ["word *a*\n", "\n", "\n", "```\n", "- item\n", "> q\n", "1. x\n", "a long line without an end ", "~~~\n", "# h\n"];
  const all = (text, pick = () => false) => {
    const s = shares(40, 300), out = [];
    for (let p; (p = s.next(text, true));) if (!pick() || !s.split(p)) out.push(p);
    return out;
  };
  test("together they are the text, split or not", () => {
    for (let seed = 1; seed < 400; seed++) {
      const next = some(seed);
      const text = Array.from({ length: next(120) }, () => LINES[next(LINES.length)]).join("");
      for (const pick of [() => false, () => true, () => next(2)]) {
        const got = all(text, pick);
        assert.equal(got.map((p) => text.slice(p.from, p.to)).join(""), text, `seed ${seed}`);
        assert.ok(got.every((p) => p.to > p.from));
      }
    }
  });
  test("of a growing text they are its beginning", () => {
    for (let seed = 1; seed < 200; seed++) {
      const next = some(seed), s = shares(40, 300);
      let text = "", seen = "";
      for (let i = 0; i < 60; i++) {
        text += LINES[next(LINES.length)];
        for (let p; (p = s.next(text, false));) seen += text.slice(p.from, p.to);
        if (!next(20)) { // the end alone was too much
          const p = s.skip(text);
          seen += text.slice(p.from, p.to);
        }
        assert.ok(text.startsWith(seen), `seed ${seed}`);
        assert.ok(text.length - seen.length <= 300, "what has no cut in sight is handed out as it stands");
      }
    }
  });
  test("one block that is too much takes no other with it", () => {
    const text = "One.\n\nTwo.\n\nThree.\n";
    const s = shares(1_000, 2_000), whole = s.next(text, true);
    assert.equal(text.slice(whole.from, whole.to), "One.\n\nTwo.\n\n");
    assert.ok(s.split(whole));
    const got = [];
    for (let p; (p = s.next(text, true));) {
      if (p.to <= whole.to) assert.ok(!s.split(p), "it is one block");
      got.push(text.slice(p.from, p.to));
    }
    assert.deepEqual(got, ["One.\n\n", "Two.\n\n", "Three.\n"]); // and what stands behind them
  });
  test("a long list is cut between its items", () => {
    const text = "- an item of a list\n".repeat(2_000);
    const s = shares(8_000, LONGEST), got = [];
    for (let p; (p = s.next(text, true));) got.push(p);
    assert.ok(got.length > 1 && got.every((p) => !p.raw && text[p.from] === "-" && p.to - p.from < 20_000));
  });
});

// Titles have no markup, and no text takes long to have one. Run by: node --test test/web/title-pure.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { titleFrom } from "../../web/src/words.js";

for (const [text, want] of [
  ["We decided on **larch** for the fence", "We decided on larch for the fence"],
  ["# Plan\n\n- _really_ ~~old~~ new\n> said", "Plan really old new said"],
  ["see [the `docs`](https://x.example/a_b_c) and ![a cat](c.png)", "see the docs and a cat"],
  ["**bold with `a*b*c` and *more***", "bold with a*b*c and more"],
  ["```js\nlet a_b = 1;\n```\nwhy?", "let a_b = 1; why?"],
  ["what does __init__ do in snake_case_name", "what does __init__ do in snake_case_name"],
  ["__very much__ so", "very much so"],
  ["2*3*4, 2 * 3 * 4, C# and 5 > 3 - 1", "2*3*4, 2 * 3 * 4, C# and 5 > 3 - 1"],
  ["a[0](1) and **unfinished", "a0 and **unfinished"],
  ["**", "**"], ["![]()", "![]()"], ["```", "```"], ["#", "#"],
  [`${"**word** ".repeat(40)}`, `${"word ".repeat(12).trim()}…`],
]) {
  test(`title of ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(titleFrom(text), want));
}
// A pattern that tries all ways would not end here.
test("a title of a long text is short", () => {
  for (const odd of ["*", "_", "`", "[", "**a", "~~", "__ ", "- ", "*a "]) assert.ok(titleFrom(odd.repeat(500_000)).length < 100, odd);
});

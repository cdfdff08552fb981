// Markdown to markup within bounds: who reads an answer must not wait for what the reader of markdown makes of it.
// Some texts cost it the square of their length, others more depth than the stack has. Pure; not yet safe to show.

import { Lexer, Marked, Parser, Tokenizer } from "marked";

export const LONGEST = 64_000; // characters that are read at once
const STEPS = 4_000_000; // characters looked at for one reading, some tens of milliseconds
const EACH = 500; // what a step costs however little it looks at
const DEEP = 24; // levels of quotes, lists and emphasis within another

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);

// Markup within markdown is shown as the text that it is, and a picture from elsewhere as its words and its
// address: to fetch it would tell its server who reads.
const { defaults } = new Marked({ gfm: true, breaks: true }, {
  renderer: {
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escape(text)),
    image({ href, text }) {
      const words = escape(text || "picture");
      return `<span class="picture">🖼 <a href="${escape(href)}">${words}</a></span>`;
    },
  },
});

class TooMuch extends Error {}

// Counting is asked first at each step, in the loop over blocks and in that over what is within one.
class Counting extends Tokenizer {
  space(src) {
    this.lexer.step(src.length / 8);
    return super.space(src);
  }

  escape(src) {
    this.lexer.step("*_~[!<`\\".includes(src[0]) ? src.length : 0);
    return super.escape(src);
  }
}

class Bounded extends Lexer {
  constructor() {
    super({ ...defaults, tokenizer: new Counting() });
    this.left = STEPS;
    this.depth = 0;
  }

  step(looks) {
    this.left -= EACH + looks;
    if (this.left < 0) throw new TooMuch();
  }

  within(read) {
    if (++this.depth > DEEP) throw new TooMuch();
    try {
      return read();
    } finally {
      this.depth--;
    }
  }

  blockTokens(...all) {
    return this.within(() => super.blockTokens(...all));
  }

  inlineTokens(...all) {
    return this.within(() => super.inlineTokens(...all));
  }
}

// spread says that a text has blanks, brackets or lines of a list in such numbers that one step alone would take
// too long.
function spread(text) {
  const lines = text.split("\n");
  let cost = /^[ >]*([-*+]|\d+[.)])\s/m.test(text) ? lines.length ** 2 / 2 : lines.length ** 2 / 8;
  for (const [run] of text.matchAll(/[^\S\n]{16,}/g)) cost += run.length ** 2;
  for (const line of lines) cost += line.length > 2_000 ? (line.match(/[[<]/g)?.length ?? 0) * line.length / 8 : 0;
  return cost > STEPS;
}

// read gives the markup of a text, or null when it is too much.
export function read(text) {
  if (text.length > LONGEST || spread(text)) return null;
  try {
    return Parser.parse(new Bounded().lex(text), defaults);
  } catch {
    return null; // too much, or something that it cannot read: the text is shown as it stands
  }
}

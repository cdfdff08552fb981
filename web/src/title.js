// What a title is made of: words, without the markup around them.

// MARKUP is what stands around words and is no part of them: code, pictures and links, bold, struck, italic. A
// name such as __init__ or snake_case is none of it, nor is 2*3*4.
const MARKUP = /(`+)(.+?)\1|!?\[([^\]]*)\]\([^)\s]*\)|\*\*(?=\S)(.*?\S)\*\*(?!\*)|~~(?=\S)(.*?\S)~~|__(?=\S)(.*?\W.*?)__(?!\w)|\*(?=[^\s*])(.*?[^\s*])\*(?![\w*])|_(?=[^\s_])(.*?[^\s_])_(?!\w)/g;

const unmarked = (text) => text.replace(MARKUP, (all, ticks, code, words, bold, struck, ...rest) => {
  const [strong, star, under, at] = rest;
  if (code !== undefined) return code;
  const inner = words ?? bold ?? struck;
  if (inner !== undefined) return unmarked(inner);
  return /\w/.test(text[at - 1] ?? "") ? all[0] + unmarked(all.slice(1)) : unmarked(strong ?? star ?? under);
});

// plain takes the markup out of the start of a text, for where it is not drawn.
export function plain(text) {
  const lines = text.trim().slice(0, 1000).replace(/^[ \t]*(?:(?:#{1,6}|>|[-*+])[ \t]+|(?:```|~~~)[^\n]*$)+/gm, "");
  return unmarked(lines.replace(/\s+/g, " ").trim()).trim();
}

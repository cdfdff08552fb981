// The prompt cache of a provider, as https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching tells: a
// prefix is read when an equal one was marked before; a marker looks back some blocks. It counts tokens as bytes
// by four.

import { createHash } from "node:crypto";
import { blocksOf } from "./rules.mjs";

const BACK = 20; // blocks that a marker looks back
const tokens = (bytes) => Math.ceil(bytes / 4);

// unmarked is a block as it counts for the cache. A content that is a string is one block of text.
function unmarked(v) {
  const { cache_control: marker, ...rest } = v;
  if (Array.isArray(rest.content)) rest.content = rest.content.map((c) => { const { cache_control: _, ...plain } = c; return plain; });
  const inner = Array.isArray(v.content) ? v.content.some((c) => c.cache_control) : false;
  return { json: JSON.stringify(rest), marked: Boolean(marker) || inner };
}

// unitsOf are the blocks of a request in the order of the cache: tools, system, messages.
export function unitsOf({ tools = [], system = [], messages }) {
  return [
    ...tools.map((t) => ["tool", t]), ...blocksOf(system).map((b) => ["system", b]),
    ...messages.flatMap((m, i) => blocksOf(m.content ?? "").map((b, j) => [j === 0 ? `${m.role} ${i}` : m.role, b])),
  ].map(([place, b]) => { const u = unmarked(b); return { ...u, json: `${place} ${u.json}` }; });
}

export class Cache {
  #known = new Map(); // key and model to hashes of prefixes

  // take tells what of a request is read, written and new, and remembers it. With all, each block is marked, as
  // providers do that cache by themselves.
  take(scope, body, { all = false, looking = false } = {}) {
    const known = this.#known.get(scope) ?? new Set();
    if (!looking) this.#known.set(scope, known);
    let size = 0, read = 0, marked = 0, hash = "";
    const seen = [];
    for (const u of unitsOf(body)) {
      size += u.json.length;
      hash = createHash("sha256").update(hash).update(u.json).digest("base64");
      seen.push([hash, size]);
      if (!u.marked && !all) continue;
      marked = size;
      for (const [h, s] of seen.slice(-BACK)) if (known.has(h)) read = Math.max(read, s);
    }
    if (!looking) for (const [i, u] of unitsOf(body).entries()) if (u.marked || all) known.add(seen[i][0]);
    return { input: tokens(size - marked), read: tokens(read), created: tokens(marked) - tokens(read), size: tokens(size) };
  }
}

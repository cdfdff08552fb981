// What somebody writes into a memory file is kept in this browser until it is saved or thrown away: no
// closed panel and no reload may lose it.

const prefix = "tidemark.memory.";
const held = new Map(); // where the browser keeps nothing

const name = (agent, path) => `${prefix}${agent}/${path}`;

// draft gives {text, etag}: what was written, and the version that it was written over; null without one.
export function draft(agent, path) {
  try {
    const d = JSON.parse(globalThis.localStorage.getItem(name(agent, path)));
    if (typeof d?.text === "string") return { text: d.text, etag: String(d.etag ?? "") };
  } catch {
    // not ours, or blocked
  }
  return held.get(name(agent, path)) ?? null;
}

export function keepDraft(agent, path, d) {
  held.set(name(agent, path), d);
  try {
    globalThis.localStorage.setItem(name(agent, path), JSON.stringify(d));
  } catch {
    // full or blocked: held until the page is closed
  }
}

export function drop(agent, path) {
  held.delete(name(agent, path));
  try {
    globalThis.localStorage.removeItem(name(agent, path));
  } catch {
    // blocked
  }
}

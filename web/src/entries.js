// The history as the page holds it: entries of the log, oldest first. Pure.

// merge puts the newest page of the server's log over what is shown. What the page covers is the page's; what
// is older stays if it is of the same log and nothing can be missing between. It returns the entries, and
// whether older ones than the first remain to be read (next of the page, or of what was kept).
export function merge(old, page, next) {
  const fresh = [...page].reverse();
  if (!fresh.length) return { entries: [], next: undefined };
  const first = fresh[0];
  const known = new Set(fresh.map((e) => e.id));
  const touches = old.entries.some((e) => known.has(e.id) && !e.provisional);
  if (!touches || !old.entries.length) return { entries: fresh, next };
  const older = old.entries.filter((e) => e.seq < first.seq && !e.provisional);
  return { entries: [...older, ...fresh], next: older.length ? old.next : next };
}

// prepend puts an older page before what is shown.
export function prepend(old, page, next) {
  const known = new Set(old.entries.map((e) => e.id));
  return { entries: [...[...page].reverse().filter((e) => !known.has(e.id)), ...old.entries], next };
}

const listOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : []);

// rows are what is drawn: messages with their blocks, calls of tools with their results, events. Results of
// tools are shown with their call, overlays not at all.
export function rows(entries) {
  const results = new Map();
  for (const e of entries) {
    for (const b of listOf(e.message?.content)) if (b.type === "tool_result") results.set(b.tool_use_id, b);
  }
  const calls = new Set(), ids = new Set(entries.map((e) => e.id));
  const out = [];
  for (const e of entries) {
    if (e.kind === "event" && e.event.type === "merge" && ids.has(e.event.data?.id)) continue; // the note itself says it
    if (e.kind === "event") out.push({ key: e.id, event: e.event, at: e.at });
    if (e.kind !== "message") continue;
    const blocks = [];
    for (const b of listOf(e.message.content)) {
      if (b.type === "tool_use") {
        calls.add(b.id);
        blocks.push({ type: "call", call: b, result: results.get(b.id) });
      } else if (b.type !== "tool_result" || !calls.has(b.tool_use_id)) {
        blocks.push(b);
      }
    }
    if (blocks.length) out.push({ key: e.id, role: e.message.role, blocks, at: e.at, origin: e.origin ?? {}, call: e.call, large: blocks.some((b) => (b.call ?? b).tidemark_blob || b.result?.tidemark_blob) });
  }
  return out;
}

// noteOf parts the note of a branch's outcome, which is one text for the model, into whose it is and what it says; null
// for another text.
export function noteOf(text) {
  const [, head, note] = text.match(/^\[(Outcome of branch .*?\d+ messages\)): (.*)\]$/s) ?? [];
  return head === undefined ? null : { head, note };
}

// textOf is the words of a block's content, for a result of a tool.
export function textOf(content) {
  return listOf(content).map((b) => (b.type === "text" ? b.text : `[${b.type}]`)).join("\n");
}

// afterReset cuts the line of a reset for people: what of it opens the archive, and its name in the bucket
// left out, which says nothing to them.
export function afterReset({ text = "", data }) {
  const archive = data?.archivedTo ?? "";
  const line = archive ? text.replace(` to ${archive}`, "").replace(/\b1 messages/, "1 message") : text;
  const archived = line.match(/\d+ messages? archived/)?.[0];
  if (!archive || !archived) return { before: line, archived: "", archive: "", after: "" };
  const at = line.indexOf(archived);
  return { before: line.slice(0, at), archived, archive, after: line.slice(at + archived.length) };
}

// FILE marks a text block that is an attached file.
const FILE = /^\[file: ([^\n]{1,200})\]\n/;
export const fileBlock = (name, text) => ({ type: "text", text: `[file: ${name.replace(/[\n\]]/g, " ").slice(0, 200)}]\n${text}` });
export function readFile(text) {
  const [head, name] = text.match(FILE) ?? [];
  return head ? { name, text: text.slice(head.length) } : null;
}

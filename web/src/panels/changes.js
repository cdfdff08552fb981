// What was done to a conversation, of the overlays and events of its log.

import { afterReset } from "../entries.js";
import { count, why } from "./format.js";

const names = {
  compaction: "Compacted", reset: "Reset", notice: "Notice", error: "Error", abort: "Stopped", restart: "Restarted",
  memory: "Remembered", evict: "Evicted", recall: "Recalled", fault: "Recalled", undo: "Undone",
};

// changes gives a row for each act, newest first as the entries are. An overlay and the event that tells
// of it are one row. effective lists the overlays that the view shows.
//
// state of an overlay: "on" while it is in effect, "undone" when another one lifted it, "covered" when a
// later one stands over it; "" where there is none.
export function changes(entries, effective) {
  const lifted = liftedBy(entries);
  const told = new Set(entries.map((e) => e.event?.data?.overlay));
  const known = new Map(entries.filter((e) => e.overlay).map((e) => [e.id, e]));
  const rows = [];
  for (const e of entries) {
    if (e.overlay) {
      if (!told.has(e.id)) rows.push(overlayRow(e));
    } else if (e.event) {
      rows.push(eventRow(e, known.get(e.event.data?.overlay)));
    }
  }
  const on = new Set(effective);
  for (const r of rows) {
    if (!r.overlay) continue;
    if (r.lifts.length > 0) r.state = lifted.has(r.overlay) ? "undone" : "on";
    else r.state = on.has(r.overlay) ? "on" : lifted.has(r.overlay) ? "undone" : "covered";
  }
  return rows;
}

// liftedBy gives what is lifted in the end: newest first, an act lifts unless a newer one lifted it.
function liftedBy(entries) {
  const lifted = new Set();
  for (const e of entries) {
    if (!e.overlay || lifted.has(e.id)) continue;
    for (const id of e.overlay.lifts ?? []) lifted.add(id);
  }
  return lifted;
}

function overlayRow(e) {
  const o = e.overlay, undo = (o.lifts ?? []).length > 0;
  const spans = (o.edits ?? []).filter((x) => !x.block).length, blocks = (o.edits ?? []).length - spans;
  const did = undo ? `Brought back what ${count(o.lifts.length, "change")} had replaced` : [spans && `replaced ${count(spans, "span")}`, blocks && `shortened ${count(blocks, "block")}`].filter(Boolean).join(", ");
  return { id: e.id, at: e.at, kind: undo ? "undo" : "overlay", title: undo ? names.undo : title(o.by), text: did, why: why(o.reason), by: o.by ?? [],
    before: o.before, after: o.after, edits: o.edits ?? [], lifts: o.lifts ?? [], overlay: e.id, state: "" };
}

const title = (by) => (by?.length ? by.map((b) => names[b] ?? b[0].toUpperCase() + b.slice(1)).join(", ") : "Changed");

const wordsOf = ({ before, archived, after }) => before + archived + after;

function eventRow(e, of) {
  const d = e.event.data ?? {}, o = of?.overlay;
  return { id: e.id, at: e.at, kind: e.event.type, title: names[e.event.type] ?? e.event.type, text: e.event.type === "reset" ? wordsOf(afterReset(e.event)) : e.event.text, why: why(d.reason ?? o?.reason),
    by: d.strategies ?? o?.by ?? [], before: d.beforeTokens ?? o?.before ?? (e.event.type === "reset" ? d.tokensCleared : undefined), after: d.afterTokens ?? o?.after,
    tier: d.tier, memories: d.memories, archive: d.archive ?? d.archivedTo, instructions: d.instructions, usage: d.usage,
    edits: o?.edits ?? [], lifts: o?.lifts ?? [], overlay: d.overlay ?? "", state: "" };
}

// stubsOf finds what stands at the place of blocks of an entry: Map of block number (from 1) to blocks.
export function stubsOf(entries, entry, effective) {
  const on = new Set(effective), out = new Map();
  for (const e of entries) {
    if (!e.overlay || !on.has(e.id)) continue;
    for (const edit of e.overlay.edits ?? []) if (edit.from === entry && edit.block > 0 && !out.has(edit.block)) out.set(edit.block, edit.blocks ?? []);
  }
  return out;
}

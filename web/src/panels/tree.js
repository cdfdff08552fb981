// The tree of snapshots and branches, from a list of them.

import { ago, count } from "../words.js";
import { few } from "./format.js";

// grow gives {rows, circles} of nodes as the server lists them: rows are in the order in which the tree is drawn, each {node,
// depth, last, up}: last says that nothing follows it under its parent, up is the row of the parent, null of a root. Roots
// stand by age, with newest the other way round. One whose parent is not there is a root, and lost. A circle is cut where
// its oldest node stands.
//
// It does not recurse, since lines of snapshots may be longer than a stack is deep.
export function grow(nodes, newest = false) {
  const byId = new Map(), under = new Map();
  for (const n of nodes) if (typeof n?.id === "string" && !byId.has(n.id)) byId.set(n.id, n);
  const roots = [];
  for (const n of byId.values()) {
    if (!n.parent || !byId.has(n.parent)) roots.push(n);
    else if (under.has(n.parent)) under.get(n.parent).push(n);
    else under.set(n.parent, [n]);
  }
  for (const list of under.values()) list.sort(order);
  const rows = [], seen = new Set();
  const draw = (starts) => {
    const todo = starts.sort(born).map((node) => ({ node, depth: 0, last: true, up: null }));
    if (!newest) todo.reverse();
    while (todo.length) {
      const row = todo.pop();
      if (seen.has(row.node.id)) continue;
      seen.add(row.node.id);
      rows.push(row);
      const list = (under.get(row.node.id) ?? []).filter((n) => !seen.has(n.id));
      for (let i = list.length - 1; i >= 0; i--) todo.push({ node: list[i], depth: row.depth + 1, last: i === list.length - 1, up: row });
    }
  };
  draw(roots);
  let circles = 0;
  if (seen.size < byId.size) {
    for (const n of [...byId.values()].sort(born)) {
      if (seen.has(n.id)) continue;
      circles++;
      draw([n]);
    }
  }
  for (const r of rows) r.lost = r.depth === 0 && Boolean(r.node.parent);
  return { rows, circles };
}

// by time, and not by its text: that has as many digits of a second as it needs
const born = (a, b) => (Date.parse(a.created_at) || 0) - (Date.parse(b.created_at) || 0) || (a.id < b.id ? -1 : 1);
// branches first
const order = (a, b) => (a.kind === b.kind ? born(a, b) : a.kind === "branch" ? -1 : 1);

const LEVELS = 6;

// lines gives what stands before a row, outermost first, of "│", "├", "└" and " ", and whether levels are left out.
export function lines(row) {
  const out = [];
  let at = row;
  for (; at.up && out.length < LEVELS; at = at.up) out.unshift(at === row ? (at.last ? "└" : "├") : at.last ? " " : "│");
  return { marks: out, more: Boolean(at.up) };
}

// moved is the place that a key leads to in a tree of rows, null for a key that leads nowhere.
export function moved(key, at, rows) {
  switch (key) {
    case "ArrowDown": return Math.min(at + 1, rows.length - 1);
    case "ArrowUp": return Math.max(at - 1, 0);
    case "Home": return 0;
    case "End": return rows.length - 1;
    case "ArrowLeft": return rows[at].up ? rows.indexOf(rows[at].up) : at;
    case "ArrowRight": return rows[at + 1]?.up === rows[at] ? at + 1 : at;
  }
  return null;
}

// shortKey is what of a key tells it from the others of its agent: its name, and that of its branch.
export function shortKey(key = "") {
  const [root, branch] = key.split("#");
  const parts = root.split(":");
  const name = parts.length === 3 ? "main" : parts.at(-1);
  return branch === undefined ? name : `${name}#${branch}`;
}

// told is what is said of a node beside its name. Of a branch no counts: they are those of its beginning.
export function told(n, now = Date.now()) {
  const size = n.kind === "branch" ? [] : [n.message_count > 0 && count(n.message_count, "message"), n.tokens > 0 && `${few(n.tokens)} tokens`];
  return [n.kind === "branch" ? "branch" : "snapshot", ago(n.created_at, now), ...size, n.trimmed && "trimmed"].filter(Boolean).join(", ");
}

// speaker is who said a message of a comparison: the API gives a person's role to what tools answer and to notes, too.
export function speaker({ role, from }) {
  if (role !== "user") return "Model";
  return { tool: "Tool", recall: "Tool", system: "Note" }[from] ?? "You";
}

// homeKey is the session that a merge of a branch goes to: the one that its snapshot is of, else the root.
export function homeKey(node, nodes) {
  const parent = nodes.find((n) => n.id === node.parent && n.kind !== "branch");
  return parent?.session ?? node.session.split("#")[0];
}

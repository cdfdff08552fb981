// Conversations and their branches in the list.

import { proxied } from "./words.js";

// branchOf is what stands behind the # of a branch's key, "" for any other. What a client's conversation has there are
// tracks, which the list does not take for branches.
export const branchOf = (key = "") => (proxied(key) ? "" : key.split("#")[1] ?? "");

// families gives the sessions with each branch behind its root, where that is in the list: {session, under}. A family
// stands where its newest member would; branches are in the order of the list.
export function families(list) {
  const roots = new Set(list.filter((s) => !branchOf(s.key)).map((s) => s.key));
  const homes = new Map();
  for (const s of list) {
    const root = s.key.split("#")[0], home = branchOf(s.key) && roots.has(root) ? root : s.key;
    if (!homes.has(home)) homes.set(home, { session: null, branches: [] });
    if (home === s.key) homes.get(home).session = s;
    else homes.get(home).branches.push(s);
  }
  return [...homes.values()].flatMap((f) => [{ session: f.session, under: false }, ...f.branches.map((session) => ({ session, under: true }))]);
}

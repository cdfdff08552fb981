// The timeline of a session as steps that a chart can draw: model calls, compactions, resets, oldest
// first. Steps are counted, not timed: a night without a word would leave no room for the day.

import { add, cost, total } from "./usage.js";

const time = (at) => (typeof at === "number" ? at : Date.parse(at));

// steps puts the records of calls (…/anatomy) and the events of the log in order. Each step has kind,
// at, before and after (tokens), and limit where it is known; calls have n, usage, model and session.
//
// Events are known of the current session alone. Of the sessions before a reset, a compaction shows in
// the overlays that the next call names, so it is put before that call.
export function steps(calls, events) {
  const told = new Set(), resets = new Set();
  const all = [];
  for (const e of events) {
    const step = eventStep(e);
    if (!step) continue;
    if (step.kind === "reset") resets.add(step.session);
    else told.add(step.overlay);
    all.push(step);
  }
  const oldest = [...calls].sort((a, b) => a.n - b.n);
  let previous;
  for (const c of oldest) {
    if (previous && c.sessionId !== previous.sessionId) {
      if (!resets.has(c.sessionId)) all.push({ kind: "reset", at: c.at, before: previous.context, after: 0, text: "The session was reset.", session: c.sessionId });
    } else if (previous) {
      const gone = (c.overlays ?? []).find((id) => !(previous.overlays ?? []).includes(id) && !told.has(id));
      if (gone) all.push({ kind: "compaction", at: c.at, before: previous.context, after: c.size, limit: c.limit, overlay: gone, text: "The context was compacted." });
    }
    all.push({ kind: "call", at: c.at, before: c.size, after: c.context || c.size, limit: c.limit, window: c.window, n: c.n,
      model: c.model, usage: c.usage, session: c.sessionId, anchored: c.anchored, stop: c.stopReason });
    previous = c;
  }
  const rank = { reset: 0, compaction: 1, call: 2 };
  return all.map((s, i) => [s, i]).sort(([a, i], [b, j]) => a.at - b.at || rank[a.kind] - rank[b.kind] || i - j).map(([s]) => s);
}

function eventStep({ at, id, event }) {
  const d = event?.data ?? {};
  if (event?.type === "compaction") {
    return { kind: "compaction", at: time(at), before: d.beforeTokens ?? 0, after: d.afterTokens ?? 0, limit: d.limitTokens, overlay: d.overlay ?? id, usage: d.usage, text: event.text };
  }
  if (event?.type === "reset") {
    return { kind: "reset", at: time(at), before: d.tokensCleared ?? 0, after: 0, usage: d.usage, text: event.text, session: d.newSessionId };
  }
  return null;
}

// since leaves out the steps before the oldest call that is loaded: a chart that begins with
// compactions alone would show calls as if there had been none.
export function since(all, more) {
  const first = all.findIndex((s) => s.kind === "call");
  return more && first > 0 ? all.slice(first) : all;
}

// totals adds up the steps: used by calls, by compactions and resets, and what it cost, null while a
// price is missing. Compactions name no model; they count as the last model before them.
export function totals(all, prices) {
  const sum = { calls: 0, compactions: 0, resets: 0, usage: {}, inner: {}, cost: 0 };
  let model = all.find((s) => s.model)?.model;
  for (const s of all) {
    if (s.model) model = s.model;
    if (s.kind === "call") sum.calls++;
    else sum[`${s.kind}s`]++;
    if (s.kind === "call") sum.usage = add(sum.usage, s.usage);
    else sum.inner = add(sum.inner, s.usage);
    if (sum.cost !== null && total(s.usage) > 0) {
      const c = cost(s.usage, prices[model]);
      sum.cost = c === null ? null : sum.cost + c;
    }
  }
  return sum;
}

// join lays a newer first page {items, next} of a list over what is known of it, by id. A page without a
// next one is the whole list: what it lacks is gone, as after a reset. A page that shares nothing with what
// is known leaves a gap, so that is dropped and read again when it is asked for.
export function join(known, page, idOf) {
  if (!page.next) return page;
  const ids = new Set(page.items.map(idOf));
  const rest = known.items.filter((x) => !ids.has(idOf(x)));
  if (rest.length === known.items.length) return page;
  return { ...page, items: [...page.items, ...rest], next: rest.length > 0 ? known.next : page.next };
}

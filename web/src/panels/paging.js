// What paging did with the calls of a session, from their records (…/anatomy).

const most = 20;

// paged gives {now, pages, totals, loaded, steps, faults} of calls, null where paging is off. pages says that paging decides what
// leaves, and not what the model marked. totals are of the conversation,
// or where loaded says so of the calls that were given. steps are the calls that it decided,
// oldest first: bytes of the messages as they are (`whole`) and as they were sent, and how many faults the call told
// of. faults are the newest first.
export function paged(calls) {
  const all = calls.filter((c) => c.paging).sort((a, b) => a.n - b.n);
  if (all.length === 0) return null;
  const now = all.at(-1).paging;
  const totals = now.totals && now.totals.calls !== 0 ? now.totals : sums(all);
  const steps = all.filter(({ paging: p }) => p.bytesIn > 0).map(({ n, at, paging: p }) => (
    { n, at, zone: p.zone, whole: p.bytesIn, sent: p.bytesSent, left: p.evicted + p.collected + p.inputs + p.images, faults: p.faults?.length ?? 0 }));
  const faults = all.flatMap(({ n, at, paging: p }) => (p.faults ?? []).map((f) => ({ ...f, n, at }))).reverse().slice(0, most);
  const pages = !/^episodes/.test(all.at(-1).proxy?.treatment ?? "");
  return { now, pages, totals, loaded: totals !== now.totals, steps, faults };
}

// sums adds up what was loaded: the records of a proxied conversation have no totals, since its tracks go beside
// each other.
function sums(all) {
  const out = { calls: 0, evicted: 0, collected: 0, inputs: 0, images: 0, faults: 0, pins: 0, bytesIn: 0, bytesSent: 0 };
  for (const { paging: p } of all) {
    for (const k of Object.keys(out)) if (typeof p[k] === "number") out[k] += p[k];
    out.calls++;
    out.faults += p.faults?.length ?? 0;
  }
  return out;
}

const zones = {
  normal: "nothing leaves yet",
  advisory: "old results leave when that pays for a new prompt cache",
  involuntary: "old results leave at once",
  aggressive: "results leave at half the age",
};

// zoneName says a zone and what it means; one that this page does not know stays as it is.
export const zoneName = (zone) => `${zone.charAt(0).toUpperCase()}${zone.slice(1)}${zones[zone] ? `: ${zones[zone]}` : ""}`;

// share is a part of a whole in words, "" where there is no whole.
export const share = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "");

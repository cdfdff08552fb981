// What the proxy did with the requests of a client, from the records of their calls (…/anatomy).

const most = 20;

// served gives {treatment, calls, legs, phantom, trimmed, untouchedCount, untouched, failed} of calls, null where none went through the
// proxy. untouchedCount is how many were sent on untouched; untouched and failed are the newest first, each {n, at, why}.
export function served(calls) {
  const all = calls.filter((c) => c.proxy).sort((a, b) => b.n - a.n);
  if (all.length === 0) return null;
  const sum = (of) => all.reduce((n, c) => n + (of(c.proxy) ?? 0), 0);
  const told = (why) => all.flatMap((c) => (why(c) ? [{ n: c.n, at: c.at, why: why(c) }] : [])).slice(0, most);
  return {
    treatment: all[0].proxy.treatment, calls: all.length, legs: sum((p) => p.legs), phantom: sum((p) => p.phantom), trimmed: sum((p) => p.trimmedBytes),
    untouchedCount: all.filter((c) => c.proxy.untouched).length, untouched: told((c) => c.proxy.untouched), failed: told((c) => c.error),
  };
}

const mostTracks = 12;

// tracksOf gives of a session as the server tells it {here, main, others, more}: the number of the track that is shown,
// whether it is the longest, the others with their numbers, the newest first, and how many are left out; null where there
// is one only.
export function tracksOf(session) {
  const all = (session?.tracks ?? []).map((t) => ({ ...t, n: Number(t.key.split("#t")[1]) || 1 }));
  const here = all.find((t) => t.key === session.track);
  if (all.length < 2 || !here) return null;
  const others = all.filter((t) => t !== here).sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : b.n - a.n));
  return { here: here.n, main: Boolean(here.main), others: others.slice(0, mostTracks), more: Math.max(0, others.length - mostTracks) };
}

const treatments = {
  observe: "nothing is changed, all is logged",
  trim: "definitions of unused tools and what stands twice are shortened",
  page: "old results leave, and come back when the model asks",
  "page+trim": "old results leave, and definitions of unused tools are shortened",
  episodes: "what the model marked as done leaves, and comes back when it asks",
  "episodes+trim": "what the model marked as done leaves, and definitions of unused tools are shortened",
};

// treatmentName says a treatment and what it means; one that this page does not know stays as it is.
export const treatmentName = (name) => (treatments[name] ? `${name}: ${treatments[name]}` : name);

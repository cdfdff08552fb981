// What the proxy did with the requests of a client, from the records of their calls (…/anatomy).

const most = 20;

// served gives {treatment, calls, legs, phantom, trimmed, untouched, failed} of calls, null where none went through the
// proxy. untouched and failed are the newest first, each {n, at, why}.
export function served(calls) {
  const all = calls.filter((c) => c.proxy).sort((a, b) => b.n - a.n);
  if (all.length === 0) return null;
  const sum = (of) => all.reduce((n, c) => n + (of(c.proxy) ?? 0), 0);
  const told = (why) => all.flatMap((c) => (why(c) ? [{ n: c.n, at: c.at, why: why(c) }] : [])).slice(0, most);
  return {
    treatment: all[0].proxy.treatment, calls: all.length, legs: sum((p) => p.legs), phantom: sum((p) => p.phantom), trimmed: sum((p) => p.trimmedBytes),
    untouched: told((c) => c.proxy.untouched), failed: told((c) => c.error),
  };
}

const treatments = {
  observe: "nothing is changed, all is logged",
  trim: "definitions of unused tools and what stands twice are shortened",
  page: "old results leave, and come back when the model asks",
  "page+trim": "old results leave, and definitions of unused tools are shortened",
};

// treatmentName says a treatment and what it means; one that this page does not know stays as it is.
export const treatmentName = (name) => (treatments[name] ? `${name}: ${treatments[name]}` : name);

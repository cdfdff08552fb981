// What an agent's work is divided into (…/episodes), for the panel.

export const states = [["open", "open"], ["whole", "in the context"], ["partial", "partly evicted"], ["gone", "evicted"], ["prologue", "prologue"]];

export const stateName = (state) => states.find(([s]) => s === state)?.[1] ?? state;

// marked reports whether the agent of a view, or of a client's newest call, can mark episodes: only then they are asked for.
export const marked = (view, call) => Boolean(view?.tools?.some((t) => t.name === "delimiter")) || /(^|\+)episodes(\+|$)/.test(call?.proxy?.treatment ?? "");

// nameOf names an episode.
export const nameOf = (e) => (e.type === "expl" ? `exploration “${e.name}”` : e.type === "act" ? `action “${e.name}”` : "unmarked work");

// cameOf says what came of it: what was learned, else what it changed or read.
export function cameOf(e) {
  if (e.description) return e.description;
  if (e.changed?.length) return `changed ${e.changed.join(", ")}`;
  return e.read?.length ? `read ${e.read.join(", ")}` : "";
}

// stands is what stands of an episode: of all that it brought at most, since the server counts blocks one by one.
export const stands = (e) => Math.min(e.standing, e.tokens);

// bars gives a column for each episode: how high what it brought and what stands of that are, 0 to 1.
export function bars(list) {
  const most = Math.max(1, ...list.map((e) => e.tokens));
  return list.map((e) => ({ e, had: e.tokens / most, has: stands(e) / most }));
}

// What the costs of a trim mean to a person.

import { count } from "../words.js";

// barsOf gives the widths of the context as it is, trimmed, and of what stands before the first change.
export function barsOf(trim, width) {
  const whole = Math.max(trim.before, 1), at = (n) => Math.max(0, Math.min(width, Math.round((width * (n ?? 0)) / whole)));
  return [at(trim.before), at(trim.after), Math.min(at(trim.prefixTokens), at(trim.after))];
}

// paysOf says after how many turns a trim has paid for itself, by the model of the paper, and by the truer one where
// that says another thing.
export function paysOf(trim) {
  const turns = (n) => (n === null || n === undefined ? "never" : n <= 1 ? "at once" : `after ${count(n, "turn")}`);
  const paper = turns(trim.break_even), live = trim.live ? turns(trim.live.break_even) : paper;
  if (live === paper) return `It pays for itself ${paper}: ${trim.verdict}.`;
  return `It pays for itself ${live}; ${paper} if nothing stays in the cache.`;
}

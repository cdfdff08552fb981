// How numbers, times and names of the server read to people.

export { agentOf, bytes, count, fillOf, fitTitle, keyFrom, nameOf } from "../words.js";

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const tokens = (n) => whole.format(Math.round(n ?? 0));
export const few = (n) => (Math.abs(n) < 10_000 ? whole.format(Math.round(n)) : short.format(n));

// money keeps two digits that say something, however small the sum.
export function money(n) {
  if (!n) return "$0";
  if (Math.abs(n) >= 1) return `$${n.toFixed(2)}`;
  return `$${n.toFixed(Math.min(8, 1 - Math.floor(Math.log10(Math.abs(n)))))}`;
}

const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

// when reads a time of the server, RFC 3339 or milliseconds, in the reader's zone; today's without the day.
export function when(at, now = Date.now()) {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return "";
  return d.toDateString() === new Date(now).toDateString() ? clock.format(d) : moment.format(d);
}

export const fileName = (key) => String(key).split("/").at(-1);

const kinds = {
  system: "System prompt", tools: "Tools", summary: "Summary", marker: "Evicted", stub: "Shortened",
  person: "Person", model: "Model", tool: "Tool result", recall: "Recalled", other: "Other",
};

// kindOf sorts an item of the view as the server's anatomy does.
export function kindOf(item) {
  if (item.summary) return "summary";
  if (item.marker) return "marker";
  if (item.stubs > 0) return "stub";
  if (item.source === "system") return item.role === "assistant" ? "model" : "other";
  return kinds[item.source] ? item.source : "other";
}

export const kindName = (kind) => kinds[kind] ?? kind;
export const kindOrder = Object.keys(kinds);

const reasons = {
  threshold: "the context was over its limit",
  overflow: "the model's provider said that the context did not fit",
  manual: "somebody asked for it",
  again: "an extract stood in for a summary until the model could write one",
  undo: "somebody undid an earlier change",
  fork: "a branch took over what held where it began",
};

// why says a reason of the server in words; one that this page does not know stays as it is.
export const why = (reason) => reasons[reason] ?? reason ?? "";

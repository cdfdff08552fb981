// What calls used, and what that costs at prices that the reader entered. No price is shipped: they
// change, and differ by contract.

export const fields = [
  ["input_tokens", "Input", "input"],
  ["cache_read_input_tokens", "Read from cache", "cacheRead"],
  ["cache_creation_input_tokens", "Written to cache", "cacheWrite"],
  ["output_tokens", "Output", "output"],
];

export const total = (usage) => fields.reduce((n, [name]) => n + (usage?.[name] ?? 0), 0);

export function add(a, b) {
  const sum = {};
  for (const [name] of fields) sum[name] = (a?.[name] ?? 0) + (b?.[name] ?? 0);
  return sum;
}

// cost is in the currency of the prices, which are for a million tokens; null when a price is missing
// for something that was used, since a sum without it would look like the whole.
export function cost(usage, prices) {
  let sum = 0;
  for (const [name, , price] of fields) {
    const used = usage?.[name] ?? 0;
    if (used === 0) continue;
    const per = prices?.[price];
    if (typeof per !== "number" || !Number.isFinite(per)) return null;
    sum += (used * per) / 1e6;
  }
  return sum;
}

// parsePrice reads what somebody typed: a number of zero or more, with a point or a comma; undefined
// for an empty field, NaN for anything else.
export function parsePrice(text) {
  const s = String(text).trim().replace(",", ".");
  if (s === "") return undefined;
  return /^\d+(\.\d*)?$|^\.\d+$/.test(s) ? Number(s) : NaN;
}

// pricesOf keeps what is a price of what was stored: {model: {input, cacheRead, cacheWrite, output}}.
export function pricesOf(stored) {
  const out = {};
  if (stored === null || typeof stored !== "object") return out;
  for (const [model, p] of Object.entries(stored)) {
    out[model] = {};
    for (const [, , name] of fields) if (Number.isFinite(p?.[name]) && p[name] >= 0) out[model][name] = p[name];
  }
  return out;
}

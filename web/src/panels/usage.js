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

const key = "tidemark.prices";

// readPrices gives {model: {input, cacheRead, cacheWrite, output}} as this browser keeps it.
export function readPrices(storage) {
  const out = {};
  try {
    for (const [model, p] of Object.entries(JSON.parse(storage.getItem(key)) ?? {})) {
      const kept = {};
      for (const [, , name] of fields) if (typeof p?.[name] === "number" && p[name] >= 0) kept[name] = p[name];
      out[model] = kept;
    }
  } catch {
    // blocked, or not ours: without prices
  }
  return out;
}

export function writePrices(storage, prices) {
  try {
    storage.setItem(key, JSON.stringify(prices));
    return true;
  } catch {
    return false;
  }
}

// What the browser keeps for us. Storage may be blocked or full: then it lasts as long as the page.

const memory = new Map();

function area(kind) {
  try {
    return globalThis[kind];
  } catch {
    return null;
  }
}

// kept gives a value by name, null when there is none.
export function kept(name, kind = "localStorage") {
  try {
    return area(kind)?.getItem(`tidemark.${name}`) ?? memory.get(name) ?? null;
  } catch {
    return memory.get(name) ?? null;
  }
}

// keep stores a text under a name; null removes it.
export function keep(name, value, kind = "localStorage") {
  memory.delete(name);
  try {
    if (value === null) area(kind)?.removeItem(`tidemark.${name}`);
    else area(kind).setItem(`tidemark.${name}`, value);
  } catch {
    if (value !== null) memory.set(name, value);
  }
}

// keptNames gives the names that begin so.
export function keptNames(prefix, kind = "localStorage") {
  const names = new Set([...memory.keys()].filter((n) => n.startsWith(prefix)));
  try {
    const all = area(kind);
    for (let i = 0; i < all.length; i++) if (all.key(i).startsWith(`tidemark.${prefix}`)) names.add(all.key(i).slice("tidemark.".length));
  } catch {
    // blocked: only what the page itself holds
  }
  return [...names];
}

// onChanged calls back with the name and text of what another tab stored or removed (then null), until the
// function that it returns is called.
export function onChanged(prefix, call) {
  const hear = ({ key, newValue }) => {
    if (key?.startsWith(`tidemark.${prefix}`)) call(key.slice("tidemark.".length), newValue);
  };
  globalThis.addEventListener?.("storage", hear);
  return () => globalThis.removeEventListener?.("storage", hear);
}

// keptJSON gives a decoded value, otherwise when there is none or it is broken.
export function keptJSON(name, otherwise) {
  try {
    return JSON.parse(kept(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

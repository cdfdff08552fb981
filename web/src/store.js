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

// keptJSON gives a decoded value, otherwise when there is none or it is broken.
export function keptJSON(name, otherwise) {
  try {
    return JSON.parse(kept(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

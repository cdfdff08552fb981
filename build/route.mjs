// Paths: which object owns one, the token that may stand in it, and which are never let in.

// Longest session key in bytes after decoding; ids of objects are made from it.
const MAX_KEY = 512;

// split takes a token out of "/t/{token}/…", as worker/guard.go does: one whose encoding is broken is none.
export function split(path) {
  const [, escaped, rest] = path.match(/^\/t\/([^/]+)(\/.*)$/s) ?? [];
  try {
    decodeURIComponent(rest);
    return escaped === undefined ? { path, token: "" } : { path: rest, token: decodeURIComponent(escaped) };
  } catch {
    return { path, token: "" };
  }
}

// route gives {kind, name} or {error} for a path without a token. A session's branches live with it, so
// the part of the key before "#" decides. Everything that is not one session's is its agent's.
export function route(path, agent) {
  const [, version, kind, part] = path.split("/");
  if (version !== "v1" || !part || (kind !== "sessions" && kind !== "agents")) return { kind: "agent", name: agent };
  let key;
  try {
    key = decodeURIComponent(part);
  } catch {
    return { error: `path ${kind}: "${part.slice(0, 80)}" is not valid percent-encoding` };
  }
  const name = kind === "sessions" ? key.split("#")[0] : key;
  if (!name) return { error: `path ${kind}: the key is empty` };
  if (new TextEncoder().encode(name).length > MAX_KEY) return { error: `path ${kind}: the key is over ${MAX_KEY} bytes` };
  return { kind: kind === "sessions" ? "session" : "agent", name };
}

// How often an encoding may be encoded again until nobody reads it.
const MAX_LAYERS = 5;

// internal reports whether a URL could be read as a path under /internal/, where objects talk to each
// other, by any reader behind: encoded, even more than once, with doubled slashes, backslashes, dots or
// a token before it. Where dots climb, any "internal" is one.
export function internal(url) {
  let path = url.replace(/^[a-z]+:\/\/[^/?#\\]*/i, "").replace(/[?#].*$/s, "");
  for (let i = 0; i < MAX_LAYERS; i++) {
    let parts = path.toLowerCase().split(/[/\\]+/).filter((s) => s !== "" && s !== ".");
    if (parts.includes("..") && parts.includes("internal")) return true;
    while (parts[0] === "t" && parts.length > 2) parts = parts.slice(2);
    if (parts[0] === "internal") return true;
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  }
  return false;
}

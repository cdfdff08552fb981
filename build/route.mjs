// Which object owns a path. A session's branches live with it, so the part of the key before "#"
// decides.

// Longest session key in bytes after decoding; ids of objects are made from it.
const MAX_KEY = 512;

// route gives {kind, name} or {error}. Everything that is not one session's is its agent's. A token may
// stand before the path, as in /t/{token}/v1/….
export function route(path, agent) {
  const [, version, kind, part] = path.replace(/^\/t\/[^/]+(?=\/)/, "").split("/");
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

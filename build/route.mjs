// Paths: which object owns one, the token that may stand in it, and which are never let in.

import { rootKey } from "./key.mjs";
import { homeOf } from "./snapshots.mjs";

// split takes a token out of "/t/{token}/…", as worker/guard.go does: one whose encoding is broken is none, and slashes
// behind it that are doubled are one.
export function split(path) {
  const [, escaped, rest] = path.match(/^\/t\/([^/]+)(\/.*)$/s) ?? [];
  try {
    decodeURIComponent(rest);
    return escaped === undefined ? { path, token: "" } : { path: rest.replace(/\/{2,}/g, "/"), token: decodeURIComponent(escaped) };
  } catch {
    return { path, token: "" };
  }
}

// route gives {kind, name} or {error} for a path without a token. A session's branches live with it. With seek it is the
// agent that must be asked first, whose session the snapshot {id} is of.
// Everything that is not one session's is its agent's, which the path or the query names. What is no
// key or no name goes to the main agent: the door there says what is wrong with it.
export function route(path, query = new URLSearchParams(), method = "GET") {
  if (decoded(path) === null) return { error: `path "${path.slice(0, 80)}" is not valid percent-encoding` };
  if (path === "/ws" || path === "/events") return session(query.get("session") ?? "");
  const [, version, kind, part] = path.split("/");
  if (version !== "v1") return agent(MAIN);
  if (kind === "recall" && part === undefined) return recall(query);
  const home = homeOf(method, path, query);
  if (home?.session) return session(home.session);
  if (home?.id) return { ...agent(query.get("agent") ?? MAIN), seek: { id: home.id } };
  if (!part || (kind !== "sessions" && kind !== "agents")) return agent(query.get("agent") ?? MAIN);
  const name = decodeURIComponent(part);
  if (kind === "agents") return agent(name);
  return session(name);
}

// recall looks into one session, or asks the agent of the session that it is for, as worker/recall.go does.
function recall(query) {
  const root = rootKey(query.get("session") ?? "");
  if (!root) return agent(query.get("agent") ?? MAIN);
  return query.get("scope") === "session" ? session(root) : agent(root.split(":")[1]);
}

function session(name) {
  const root = rootKey(name);
  return root ? { kind: "session", name: root } : agent(MAIN);
}

// decoded gives null for what is not valid percent-encoding.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

// The agent that is always there.
const MAIN = "main";

export const agent = (name) => ({ kind: "agent", name: !name.includes(":") && rootKey(`agent:${name}:main`) === `agent:${name}:main` ? name : MAIN });

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

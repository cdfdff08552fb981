// Requests about snapshots that do not name their session in the path: whose object they are for. The rules are those of
// worker/snapshots_find.go; testdata/snapshots.json holds both to the same rows.

import { rootKey } from "./key.mjs";

// An id as room/snapshots gives one: what looks so is never a bare name of a session.
const ID = /^snap-[0-9a-hjkmnp-tv-z]{26}$/;

// An archive that is read comes in as a stream, like an import.
export const streamed = (method, path) => method === "PUT" && /^\/v1\/snapshots\/[^/]+\/archive$/.test(path);

// homeOf gives of a path whose encoding is sound {session}, a root key ("" for what is no key), or {id}, a snapshot whose session the agent
// knows; null for a path that this is not about.
export function homeOf(method, path, query) {
  const [, version, kind, id, rest, more] = path.split("/").map(decodeURIComponent);
  const named = query.get("session");
  if (version !== "v1" || more !== undefined) return null;
  if (kind === "snapshots" && rest === "archive") {
    if (named) return { session: rootKey(named) };
    return method === "PUT" ? { session: ID.test(id) ? rootKey(id) : "" } : sought(id);
  }
  if (kind !== "compare" || id !== undefined) return null;
  if (named) return { session: rootKey(named) };
  const sides = ["a", "b"].map((s) => query.get(s) ?? "");
  const key = sides.find((s) => s && !ID.test(s));
  return key === undefined ? sought(sides[0]) : { session: rootKey(key) };
}

const sought = (id) => (ID.test(id) ? { id } : { session: "" });

// found asks the object of the agent which session a snapshot is of, and gives the request with that in its query: {to,
// request}, or {answer} in the agent's words.
export async function found(request, { id, agent, token, as }, env) {
  const { url, method, headers, signal } = request;
  const to = new URL(url);
  const ask = `${to.origin}/v1/snapshots/${id}?agent=${agent}`;
  const answer = await env.AGENT.get(env.AGENT.idFromName(agent)).fetch(ask, { headers: { authorization: `Bearer ${token}`, "x-request-id": as } });
  if (!answer.ok) return { answer };
  const session = rootKey((await answer.json()).session);
  to.searchParams.set("session", session);
  return { to: { kind: "session", name: session }, request: new Request(to, { method, headers, signal, redirect: "manual" }) };
}

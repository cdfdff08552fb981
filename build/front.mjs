// The front: what is decided before any object wakes, so that a stranger costs no object and no Go. The
// rules of who may come in, their words and the form of an error are those of worker/guard.go and
// worker/errors.go; the door in Go holds them again.

import { drained } from "./body.mjs";
import { cross, door, originsOf, shard, told } from "./doors.mjs";
import { faced, onward, other } from "./proxy.mjs";
import { internal, route, split } from "./route.mjs";
import { found, streamed } from "./snapshots.mjs";
import { webhook } from "./webhook.mjs";

// Most bytes of a body that is read whole, as in cmd/worker (maxBody): testdata/front.json holds both.
const MAX_BODY = 7 << 20;
// An import is read as it comes; more than this the platform itself takes on paid plans only.
export const MAX_IMPORT = 100 << 20;
// What answers with the headers of a request, the key in them.
const SECRET_METHODS = /^(connect|trace|track)$/i;
// Longest path and query.
const MAX_URL = 8 << 10;

const MAX_REQUEST_ID = 64;

// local is what `make dev` starts: its secrets are those of .dev.vars.
const local = (env) => env.TIDEMARK_DEV === "1";
// How a secret is set, and where the token is kept: the words of cmd/worker.
const help = (env) => (local(env) ? "set TIDEMARK_TOKEN in .dev.vars and start make dev again, which reads it when it starts"
  : `run: npx --prefix build wrangler secret put TIDEMARK_TOKEN ${env.TIDEMARK_ENV ? `--env ${env.TIDEMARK_ENV}` : '--env=""'}`);
const deployed = (name) => (name ? `make deploy ENV=${name} from .secrets.${name}` : "make deploy from .secrets");
const where = (env) => `TIDEMARK_TOKEN as it ${local(env) ? "stood in .dev.vars when make dev was started" : `was deployed, by ${deployed(env.TIDEMARK_ENV)}`}`;

// What every answer has: nothing of it is a page, to be framed, sniffed or kept.
const SECURE = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

// front gives {answer}, a Response, or {to}, the {kind, name} of the object that the request is for, and
// {request} if that is one that was read already. An answer that is final is told in its client's words already.
export async function front(request, env) {
  const { pathname, host } = new URL(request.url);
  if (cross(request, host, env).asked) return { answer: await told(request, "", env, new Response(null, { status: 204, headers: SECURE })) };
  const out = await judge(request, env);
  if (out.answer) out.answer = await told(request, split(pathname).path, env, out.answer, out.final);
  return out;
}

async function judge(request, env) {
  const url = new URL(request.url);
  const id = requestID(request.headers.get("x-request-id"));
  const refuse = (status, type, message) => ({ answer: failure(id, status, type, message) });

  const long = url.pathname.length + url.search.length;
  if (long > MAX_URL) return refuse(414, "too_large", `path and query of ${long} bytes, at most ${MAX_URL}`);
  if (internal(request.url) || internal(url.href)) {
    return refuse(404, "not_found", `no route ${clip(request.method, 20)} ${clip(url.pathname, 200)}; docs/http.md lists them`);
  }
  const { path, token } = split(url.pathname);
  const posted = await webhook(request, url, path, env, { refuse, same });
  if (posted) return posted;
  const open = request.method === "GET" || request.method === "HEAD" ? OPEN[path] : undefined;
  const no = foreign(request, url, env) ?? await strange(request, token, env);
  if (open && !(no?.[0] === 401 && path === "/healthz" && env.TIDEMARK_TOKEN && given(request, token))) {
    return { answer: await open(id, url, env, no) };
  }
  if (no) return refuse(...no);

  const to = route(path, url.searchParams, request.method);
  if (to.error) return refuse(400, "invalid", to.error);
  const size = Number(request.headers.get("content-length") ?? 0);
  const beside = other(request, path);
  if (beside && SECRET_METHODS.test(request.method)) return refuse(405, "method_not_allowed", `${request.method} goes no further`);
  const passed = beside || faced(request, path, env.TIDEMARK_TOKEN)?.sure;
  const most = passed || /^\/v1\/sessions\/[^/]+\/import$/.test(path) || streamed(request.method, path) ? MAX_IMPORT : MAX_BODY;
  if (size > most) {
    await drained(request, MAX_IMPORT);
    return refuse(413, "too_large", `body of ${size} bytes, at most ${most}`);
  }
  if (beside || (passed && size > MAX_BODY)) {
    const { name } = shard();
    try {
      return { answer: await onward(request, path, url.search, env.AGENT.get(env.AGENT.idFromName(name))), final: true };
    } catch (e) {
      const why = beside ? "the request could not be passed on" : "the request is too large for an object to hold, and could not be passed on as it came";
      return refuse(502, "network", `${why} (${e.message})`);
    }
  }

  if (to.seek) {
    try {
      return await found(request, { ...to.seek, agent: to.name, token: env.TIDEMARK_TOKEN, as: id }, env);
    } catch (e) {
      return refuse(503, "unavailable", `the agent, who knows which session the snapshot is of, does not answer (${e.message}); name the session with session=KEY, or try again`);
    }
  }
  const own = await door(request, path, url.searchParams, MAX_BODY, env.TIDEMARK_TOKEN);
  if (own?.large) return refuse(413, "too_large", `body of more than ${MAX_BODY} bytes`);
  return own ?? { to };
}

// lost is what a client hears when the object of its request did not answer: it was restarted, as each
// deployment does, or is overloaded.
export async function lost(request, env, id, e) {
  const answer = failure(id, 503, "unavailable", `the object of this request was restarted or is overloaded (${e.message}); what was stored before is kept and goes on; send it again by its id, one without an id only if the log lacks it`);
  answer.headers.set("retry-after", "2");
  return told(request, split(new URL(request.url).pathname).path, env, answer);
}

// version is the id of what was uploaded; a local one has none.
const version = (env) => env.VERSION?.tag || env.VERSION?.id || "";

// What anybody may ask.
const OPEN = {
  "/healthz": async (id, url, env, no) => say(id, 200, Object.assign({ ok: true, version: "" }, await health(id, url, env, no), { version: version(env) })),
  // [assets] of wrangler.toml puts a page here; this is for those who deploy without it.
  "/": (id, _, env) => new Response(`Tidemark ${version(env)}. The routes are in docs/http.md.\n`, {
    headers: { ...SECURE, "x-request-id": id, "content-type": "text/plain; charset=utf-8" },
  }),
};

// health is what there is to say of the settings. The object of the main agent reads them, on behalf of who
// has the token; a stranger, whom no refuses, hears that this answers, and wakes nobody. Who sends a wrong
// token does not come here: a monitor must not take that for a good answer.
async function health(id, url, env, no) {
  if (!env.TIDEMARK_TOKEN) {
    return { ok: false, status: "settings", problems: [{ setting: "TIDEMARK_TOKEN", message: "is not set: nobody is let in", fix: help(env) }] };
  }
  if (no) return { ok: true };
  const down = (message) => ({ ok: false, status: "down", problems: [{ message, fix: "look into the server's log" }] });
  try {
    const to = env.AGENT.get(env.AGENT.idFromName("main"));
    const answer = await to.fetch(`${url.origin}/healthz`, { headers: { authorization: `Bearer ${env.TIDEMARK_TOKEN}`, "x-request-id": id } });
    const told = await answer.json();
    return answer.ok ? told : down(told.error.message);
  } catch (e) {
    return down(`the main agent does not answer (${e.message})`);
  }
}

// foreign says why a page may not call, as status, type and message. Without any, all others may not.
function foreign(request, url, env) {
  const origin = request.headers.get("origin");
  if (origin === null) return null;
  if (origin === "null") {
    return [403, "forbidden", "a page without an origin (a file, a sandboxed frame) may not call this server; serve the page over http"];
  }
  if (origin === "" || sameOrigin(origin, url.host) || originsOf(env).includes(origin)) return null;
  const name = clip(origin, 100);
  return [403, "forbidden", `a page of ${name} may not call this server; to allow it, list ${JSON.stringify(name)} in server.origins of the configuration (on Workers: TIDEMARK_SERVER_ORIGINS)`];
}

// The scheme is not compared: a proxy in front may have taken the TLS off.
function sameOrigin(origin, host) {
  try {
    return new URL(origin).host.toLowerCase() === host.toLowerCase();
  } catch {
    return false;
  }
}

// given is the token of a request, by any of the ways.
function given(request, inPath) {
  const [, bearer = ""] = request.headers.get("authorization")?.match(/^bearer (.*)$/is) ?? [];
  return inPath || request.headers.get("x-tidemark-token") || bearer.trim() || request.headers.get("x-api-key") || offered(request);
}

// offered is the token among the subprotocols of a socket, which is all that a page can set.
function offered(request) {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") return "";
  const of = "tidemark.token.";
  const found = (request.headers.get("sec-websocket-protocol") ?? "").split(",").map((p) => p.trim()).find((p) => p.startsWith(of));
  try {
    return decodeURIComponent(found?.slice(of.length) ?? "");
  } catch {
    return found.slice(of.length);
  }
}

// strange says why somebody is not let in by the token.
async function strange(request, inPath, env) {
  const want = env.TIDEMARK_TOKEN;
  if (!want) return [401, "unauthorized", `this server has no token and lets nobody in; ${help(env)}`];
  const got = given(request, inPath);
  if (!got) return [401, "unauthorized", `no token: send "Authorization: Bearer TOKEN" or "x-tidemark-token: TOKEN" (${where(env)})`];
  if (!await same(want, got)) return [401, "unauthorized", `wrong token: it is not this server's (${where(env)})`];
  return null;
}

// same compares digests, so that the time it takes says nothing about the token.
async function same(a, b) {
  const digest = async (s) => new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(s)));
  const [x, y] = await Promise.all([digest(a), digest(b)]);
  let differ = 0;
  for (let i = 0; i < x.length; i++) differ |= x[i] ^ y[i];
  return differ === 0;
}

// failure is the answer that reports an error.
export function failure(id, status, type, message) {
  const answer = say(id, status, { error: { type, message, requestId: id } });
  if (status === 401) answer.headers.set("www-authenticate", 'Bearer realm="tidemark"');
  return answer;
}

function say(id, status, body) {
  return new Response(`${JSON.stringify(body)}\n`, {
    status, headers: { ...SECURE, "x-request-id": id, "content-type": "application/json" },
  });
}

// requestID keeps the id that a client gave, if it is one, or makes one: time first, like those of Go.
export function requestID(given) {
  if (given && given.length <= MAX_REQUEST_ID && /^[\w-]+$/.test(given)) return given;
  const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  let time = "";
  for (let ms = Date.now(); time.length < 10; ms = Math.floor(ms / 32)) time = digits[ms % 32] + time;
  return time + Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => digits[b % 32]).join("");
}

// clip cuts a text that is only quoted. What it quotes is ASCII: a URL, a method, an origin.
const clip = (s, most) => (s.length > most ? `${s.slice(0, most)}…` : s);

// What messaging platforms post, in front of any object: the body is read within a bound and a time, its
// signature is looked at, so that a stranger costs no object and no Go, and it goes to one of some objects
// that store and work off such bodies. The door in Go (worker/webhooks.go, channel/) verifies it again.

import { joined } from "./body.mjs";
import { keepName } from "./workerd.mjs";

// Most bytes of a body, as channel.MaxBody: testdata/front.json holds both. Platforms post 3 MB at most.
export const MAX_WEBHOOK = (3 << 20) + (64 << 10);
// Objects that share the bodies of an agent.
export const SHARDS = 16;

const READ_MS = 15_000;
// Bytes in which the first person is looked for: a platform names them before what they wrote, or soon behind.
const LOOK = 16 << 10;

// Tells an object that the front has verified a body, and its SHA-256. Nobody else reaches an object.
const HASH = "x-webhook-hash";

// What each platform signs with. A platform without its secrets is not there.
export const PLATFORMS = {
  whatsapp: { secret: "WHATSAPP_APP_SECRET", agent: "TIDEMARK_CHANNELS_WHATSAPP_AGENT", header: "x-hub-signature-256", signed: hmac, greeted: "WHATSAPP_VERIFY_TOKEN", whose: ["group_id", "wa_id", "user_id", "recipient_id", "from"].map((f) => new RegExp(`"${f}"\\s*:\\s*"([^"\\\\]{1,64})"`)) },
  telegram: { secret: "TELEGRAM_WEBHOOK_SECRET", agent: "TIDEMARK_CHANNELS_TELEGRAM_AGENT", header: "x-telegram-bot-api-secret-token", signed: (given, secret, body, same) => same(given, secret), whose: [/"chat"\s*:\s*\{\s*"id"\s*:\s*(-?\d{1,20})/] },
};

// webhook gives null for a path that is none of a platform's, else what front gives.
export async function webhook(request, url, path, env, { refuse, same, readMs = READ_MS }) {
  const [, name] = path.match(/^\/webhooks\/([a-z]+)$/) ?? [];
  if (!name) return null;
  const platform = Object.hasOwn(PLATFORMS, name) ? PLATFORMS[name] : null;
  const secret = platform && env[platform.secret];
  if (!secret) return refuse(404, "not_found", `channel ${name} is not set up`);
  const to = (shard) => ({ kind: "agent", name: `in:${env[platform.agent] || "main"}:${shard}` });
  if (request.method === "GET") {
    const word = platform.greeted && env[platform.greeted];
    if (!word || !await same(word, url.searchParams.get("hub.verify_token") ?? "")) return refuse(403, "forbidden", "the verify token is not this server's");
    return { to: to(0) };
  }
  if (request.method !== "POST") return refuse(405, "method_not_allowed", `${request.method} is not for this route; it takes GET, POST`);
  const given = request.headers.get(platform.header) ?? "";
  if (!given) return refuse(401, "unauthorized", "the webhook is not signed");
  if (Number(request.headers.get("content-length")) > MAX_WEBHOOK) return refuse(413, "too_large", `webhook of more than ${MAX_WEBHOOK} bytes`);
  const { body, status } = await read(request, readMs);
  if (status === 413) return refuse(413, "too_large", `webhook of more than ${MAX_WEBHOOK} bytes`);
  if (status) return refuse(408, "timeout", "the body was cut off, or took too long");
  if (!await platform.signed(given, secret, body, same)) return refuse(401, "unauthorized", "the signature is not the platform's");
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  const headers = { [platform.header]: given, "content-type": "application/json", [HASH]: Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("") };
  const id = request.headers.get("x-request-id");
  if (id) headers["x-request-id"] = id;
  return { to: to(shardOf(platform, body, sum)), request: new Request(url.href, { method: "POST", headers, body }) };
}

// shardOf keeps what a person writes, or a group, in one object, where it is worked off in the order in which
// it came: by the first whom the body names, and by its hash where it names nobody. What stands in the text
// of a message is escaped there, so it names nobody.
export function shardOf({ whose }, body, sum) {
  const text = new TextDecoder().decode(body.subarray(0, LOOK));
  const who = whose.reduce((found, field) => found ?? text.match(field)?.[1], undefined);
  if (who === undefined) return sum[0] % SHARDS;
  let h = 0x811c9dc5; // FNV-1a
  for (let i = 0; i < who.length; i++) h = Math.imul(h ^ who.charCodeAt(i), 0x01000193) >>> 0;
  return h % SHARDS;
}

// read gives the body, or a status: 413 when it is too long, 408 when it does not come to its end in time.
async function read(request, ms) {
  if (!request.body) return { body: new Uint8Array() };
  const reader = request.body.getReader();
  let timer;
  const late = new Promise((done) => { timer = setTimeout(() => done({ late: true }), ms); });
  try {
    const parts = [];
    for (let size = 0; ;) {
      const piece = await Promise.race([reader.read(), late]);
      if (piece.late) return { status: 408 };
      if (piece.done) return { body: joined(parts) };
      if ((size += piece.value.length) > MAX_WEBHOOK) return { status: 413 };
      parts.push(piece.value);
    }
  } catch {
    return { status: 408 };
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}

// hmac holds the bytes as they came against the signature; the platform's own verify takes constant time.
async function hmac(given, secret, body) {
  const [, hex] = given.match(/^sha256=([0-9a-f]{64})$/i) ?? [];
  if (!hex) return false;
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  return crypto.subtle.verify("HMAC", key, Uint8Array.from(hex.match(/../g), (h) => parseInt(h, 16)), body);
}

// Bounds of a Porch.
const ROW = 1_800_000; // bytes; what is longer Go stores in pieces
const TRUST_MS = 60_000; // as long as settings are good without a look (configAge of cmd/worker)
const PAUSE_MS = 25; // bodies that come together are worked off together
const LONGEST_MS = 1_000; // receipts go before the work for so long
const BUSY = 4; // receipts at once
const RESCUE_MS = 5_000;

// STORE is a statement of channel/ingress.go (bodyStmts), which a test holds to it.
export const STORE = "INSERT INTO channel_bodies(platform, hash, piece, at, bytes) VALUES(?, ?, ?, ?, ?) ON CONFLICT(platform, hash, piece) DO UPDATE SET at = excluded.at, due = 0, error = '' WHERE due <> 0";

// What waits to be stored, in all objects of the isolate.
let receiving = 0;

// Porch stores webhooks in an object without waking Go for each: a receipt must not wait behind the work of
// those before. Go has taken one of that platform lately, so that its settings hold; it is told of many at
// once. object gives the state of the object, go lets Go answer a request.
export class Porch {
  #object;
  #go;
  #taken = {}; // platform -> when Go last took a body
  #since = 0; // when the first came of which Go was not told; 0: none
  #telling = 0; // how often it is being told

  constructor(object, go) {
    this.#object = object;
    this.#go = go;
  }

  // take gives null for what is no webhook.
  take(request) {
    const hash = request.headers.get(HASH);
    const [, platform] = (hash && new URL(request.url).pathname.match(/^\/webhooks\/([a-z]+)$/)) ?? [];
    return platform ? this.#take(request, platform, hash) : null;
  }

  async #take(request, platform, hash) {
    receiving++;
    try {
      const size = Number(request.headers.get("content-length") ?? Infinity);
      if (!(size <= ROW) || Date.now() - (this.#taken[platform] ?? 0) > TRUST_MS) {
        const answer = await this.#go(request);
        if (answer.status === 200) this.#taken[platform] = Date.now();
        return answer;
      }
      const { storage } = this.#object();
      const body = await request.arrayBuffer();
      storage.transactionSync(() => storage.sql.exec(STORE, platform, hash, 0, Date.now(), body));
      await this.#tell(request.url);
      return new Response(null, { headers: { "x-request-id": request.headers.get("x-request-id") ?? crypto.randomUUID() } });
    } finally {
      receiving--;
    }
  }

  // tell has Go look, soon; an alarm does when the object ends before.
  async #tell(url) {
    if (this.#since) return;
    this.#since = Date.now();
    setTimeout(() => this.#kick(new URL("/internal/channel/kick", url).href), PAUSE_MS);
    await this.arm();
  }

  #kick(url) {
    if (receiving > BUSY && Date.now() - this.#since < LONGEST_MS) {
      setTimeout(() => this.#kick(url), PAUSE_MS);
      return;
    }
    this.#since = 0;
    this.#telling++;
    const told = Promise.resolve(this.#go(new Request(url, { method: "POST" }))).then((r) => r.body?.cancel(), () => {}); // the alarm looks again
    told.finally(() => { this.#telling--; });
  }

  // clock gives the alarm to Go, which knows nothing of bodies it was not told of: it rings soon while there are
  // such. When it was told, it asks for an alarm itself (channel.Ingress.Kick).
  clock(alarm) {
    const soon = () => Date.now() + RESCUE_MS;
    return {
      set: (ms) => alarm.set(this.#holds() ? Math.min(ms, soon()) : ms),
      delete: () => (this.#holds() ? alarm.set(soon()) : alarm.delete()),
    };
  }

  #holds() { return this.#since > 0 || this.#telling > 0; }

  // arm sets the alarm, unless it rings soon.
  async arm() {
    const object = this.#object();
    const soon = Date.now() + RESCUE_MS;
    const at = await object.storage.getAlarm();
    if (at !== null && at <= soon) return;
    keepName(object);
    await object.storage.setAlarm(soon);
  }

  // rung is told when Go is done with an alarm: it may have put off the one that looks after a body.
  async rung() {
    if (this.#holds()) await this.arm();
  }
}

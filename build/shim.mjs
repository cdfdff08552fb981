// The Worker: the front, which finds the object that owns a request, and the Durable Object classes, which
// hold no business: they hand events to the Go instance.

import "./wasm_exec.js";
import module from "./app.wasm";
import { DurableObject } from "cloudflare:workers";
import { drained } from "./body.mjs";
import { MAX_IMPORT, failure, front, lost, requestID } from "./front.mjs";
import { GoHost, HostObject, tally } from "./host.mjs";
import { Sockets } from "./sockets.mjs";
import { Porch } from "./webhook.mjs";
import { keepName, mustHaveName, nameOf, platformOf } from "./workerd.mjs";

// One Go instance serves all objects of the isolate that have the same environment (RATIONALE, "Why one Go
// instance for all objects?").
const shared = new WeakMap(); // by environment
// The instance before, while it drains. There is room for one: what it still has in flight when the next
// one drains is ended.
let leaving = null;

// The platform gives an alarm up after six failures. Behind them it is set again, for later.
const ALARM_TRIES = 5;
const ALARM_AGAIN_MS = 5 * 60_000;

// How long a session waits for room among those that are busy, and how often the first ones look; those behind look less often,
// as looks cost as much as turns when there are five a second of a thousand.
const ROOM_MS = 120_000;
const ASK_MS = 200;

// Seconds after which one that found none is to come again. Not all at once, and not when it has been idle for 5 s: the runtime
// then ends the connection that its client is about to use.
const AGAIN_S = () => 10 + Math.floor(Math.random() * 20);

// Between two times that sockets wake an object whose instance has ended.
const REVIVE_MS = 10_000;

// log writes a line like those of Go.
function log(msg, fields) {
  console.error(JSON.stringify({ time: new Date().toISOString(), level: "ERROR", msg, ...fields }));
}

// limits are those of tests.
const limits = (env) => (env.TIDEMARK_DEBUG === "1" && env.TIDEMARK_LIMITS ? JSON.parse(env.TIDEMARK_LIMITS) : {});

function bootGo(env) {
  const started = Date.now();
  const host = new GoHost({
    module,
    env,
    limits: limits(env),
    onFatal(e, host) {
      if (shared.get(env) === host) shared.delete(env);
      log("go instance ended", { object: host.current?.name, objects: host.objects.size, err: `${e.name}: ${e.message}` });
    },
    onDrain(host) {
      if (shared.get(env) !== host) return;
      shared.delete(env);
      leaving?.fatal(new Error("it drained for too long"));
      leaving = host;
    },
  });
  host.bootMillis = Date.now() - started;
  return host;
}

function instance(env) {
  if (leaving?.dead) leaving = null;
  if (!shared.has(env)) shared.set(env, bootGo(env));
  return shared.get(env);
}

// told is what a client hears of an event that failed.
function told(e, host) {
  if (e.name === "Boot") return `${e.message}; nothing was lost, and the next request tries again`;
  const cause = host?.cause;
  if (cause) {
    return `the Go instance of this object ended in the middle of the request (${cause.message}); what was stored before is kept and goes on; send it again by its id, one without an id only if the log lacks it; the next request has a new instance`;
  }
  if (e.name === "Dead") return "this object was replaced in the middle of the request; what was stored before is kept and goes on; send it again by its id, one without an id only if the log lacks it";
  return "internal error; the server's log has it under this requestId";
}

// Host is what Session and Agent share. Go learns of an object at its first event.
class Host extends DurableObject {
  #attached = null;
  #revived = 0;
  #reviving = null;
  #sockets;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sockets = new Sockets(ctx, { opened: () => keepName(ctx) });
  }

  // The object in a live Go instance. One that drains, or that dropped the object as idle, was left.
  object() {
    const o = this.#attached;
    if (o && !o.dead && !o.host.dead) return o;
    const host = instance(this.env);
    const kind = this.constructor.name;
    try {
      return (this.#attached = new HostObject(host, { kind, name: nameOf(this.ctx), platform: this.platform(), owner: this }));
    } catch (e) {
      throw host.cause ?? e; // that it has ended says less than why
    }
  }

  platform() { return { ...platformOf(this.ctx), sockets: this.#sockets, lost: () => this.#revive() }; }

  // revive has the next instance take up the sockets of one that ended in the middle of something. One that
  // ends at once is asked again only when its time has come.
  #revive() {
    clearTimeout(this.#reviving);
    const o = this.#attached;
    if (this.#sockets.size === 0 || (o && !o.dead && !o.host.dead)) return;
    const early = this.#revived + REVIVE_MS - Date.now();
    if (early > 0) {
      this.#reviving = setTimeout(() => this.#revive(), early);
      return;
    }
    this.#revived = Date.now();
    this.#event("sockets", (o) => o.socket("wake")).catch(() => {}); // it was logged
  }

  // room waits until one more session may be busy. One that is busy has its room.
  async room() {
    const end = Date.now() + (limits(this.env).roomMs ?? ROOM_MS);
    let queue, ticket;
    while (!this.#attached || this.#attached.dead || this.#attached.idle) {
      const now = Date.now();
      let host;
      try {
        host = instance(this.env);
      } catch {
        break; // the event says why none starts
      }
      if (queue !== host.queue) ({ queue } = host), ticket = queue.ticket(now); // the instance before was left
      if (queue.admit(ticket, now)) break;
      if (now >= end) {
        queue.leave(ticket);
        return false;
      }
      await new Promise((again) => setTimeout(again, ASK_MS * (1 + queue.ahead(ticket) / host.limits.busy)));
    }
    queue?.leave(ticket);
    return true;
  }

  // event runs f with the object; what fails is logged with the object, and thrown with what a client is told.
  async #event(id, f) {
    let host;
    try {
      const o = this.object();
      host = o.host;
      return await f(o);
    } catch (e) {
      log("event failed", { object: `${this.constructor.name}/${this.ctx.id.name ?? this.ctx.id}`, id, err: `${e.name}: ${e.message}` });
      throw new Error(told(e, host), { cause: e });
    }
  }

  async fetch(request) {
    mustHaveName(this.ctx);
    if (this.env.TIDEMARK_DEBUG === "1") {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/debug/host")) return this.#debug();
      if (pathname.endsWith("/debug/evict")) this.ctx.abort("evicted on request"); // as a deploy does, in mid-turn
    }
    const id = requestID(request.headers.get("x-request-id"));
    try {
      return await this.#event(id, (o) => o.fetch(request, id));
    } catch (e) {
      await drained(request, MAX_IMPORT); // Go may not have started
      return failure(id, 500, "internal", e.message);
    }
  }

  async webSocketMessage(ws, message) {
    const heard = this.#sockets.heard(ws, message);
    if (!heard) return;
    const id = requestID(null);
    try {
      await this.#event(id, (o) => o.socket("message", heard.id, heard.text));
    } catch (e) {
      this.#sockets.tell(ws, { type: "error", error: { type: "internal", message: e.message, requestId: id } });
    }
  }

  async webSocketClose(ws, code) {
    const id = this.#sockets.gone(ws, code);
    await this.#event("socket", (o) => o.socket("close", id)).catch(() => {}); // it was logged, and nobody waits
  }

  webSocketError(ws) { return this.webSocketClose(ws, 1011); }

  async alarm(info) {
    try {
      await this.#event("alarm", (o) => o.alarm());
    } catch (e) {
      if ((info?.retryCount ?? 0) < ALARM_TRIES) throw e;
      await this.ctx.storage.setAlarm(Date.now() + ALARM_AGAIN_MS);
    }
  }

  #debug() {
    const o = this.object();
    const { host, generation, pending } = o;
    return Response.json({
      id: this.ctx.id.toString(), sockets: this.#sockets.size, boots: tally.boots, bootMillis: host.bootMillis, generation, pending, total: tally,
      leaving: leaving && !leaving.dead ? leaving.stats() : null, ...host.stats(),
    });
  }
}

export class Session extends Host {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    // What another object asks for belongs to a turn that is busy already: it must not wait for that to end.
    if (request.method === "POST" && !pathname.startsWith("/internal/") && !(await this.room())) {
      const full = failure(requestID(request.headers.get("x-request-id")), 503, "busy", "too many conversations are at work at once; nothing was stored; send it again in a moment");
      full.headers.set("retry-after", AGAIN_S());
      await drained(request, MAX_IMPORT);
      return full;
    }
    return super.fetch(request);
  }
}
export class Agent extends Host {
  #porch = new Porch(() => this.ctx, (request) => super.fetch(request));

  platform() {
    const platform = super.platform();
    return { ...platform, alarm: this.#porch.clock(platform.alarm) };
  }

  fetch(request) {
    mustHaveName(this.ctx); // the porch keeps what it takes under it
    return this.#porch.take(request) ?? super.fetch(request);
  }

  async alarm(info) {
    await super.alarm(info);
    await this.#porch.rung();
  }
}

export default {
  // A request goes to the object that owns it, after everything that can be said without one.
  async fetch(request, env) {
    const { answer, to, request: ready = request } = await front(request, env);
    if (answer) {
      await drained(request);
      return answer;
    }
    const space = to.kind === "session" ? env.SESSION : env.AGENT;
    try {
      return await space.get(space.idFromName(to.name)).fetch(ready);
    } catch (e) {
      const id = requestID(request.headers.get("x-request-id"));
      log("object failed", { object: to.name, id, err: e.message });
      return lost(request, env, id, e);
    }
  },
};

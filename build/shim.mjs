// The Worker: a front that finds the object which owns a request, and the Durable Object classes,
// which hold no business: they hand events to the Go instance.

import "./wasm_exec.js";
import module from "./app.wasm";
import { DurableObject } from "cloudflare:workers";
import { GoHost, HostObject, tally } from "./host.mjs";
import { platformOf } from "./workerd.mjs";
import { route } from "./route.mjs";

// One Go instance serves all objects of the isolate (RATIONALE, "Why one Go instance for all
// objects?"). With TIDEMARK_INSTANCE=object each object has its own.
let shared = null;
let boots = 0;

function bootGo(env) {
  const started = Date.now();
  const host = new GoHost({
    module,
    env,
    onFatal(e) {
      if (shared === host) shared = null;
      console.error(`go instance ended: ${e.message}`);
    },
  });
  boots++;
  host.bootMillis = Date.now() - started;
  return host;
}

function instance(env) {
  if (env.TIDEMARK_INSTANCE === "object") return bootGo(env);
  if (!shared || shared.dead || shared.draining) shared = bootGo(env);
  return shared;
}

const internal = () => Response.json({ error: { type: "internal", message: "internal error" } }, { status: 500 });

// Host is what Session and Agent share. Go learns of an object at its first event.
class Host extends DurableObject {
  #attached = null;

  // The object in a live Go instance. An instance that drains is left as soon as nothing is in flight.
  object() {
    let o = this.#attached;
    if (o && !o.dead && !o.host.dead && !(o.host.draining && o.idle)) return o;
    if (o && !o.host.dead) o.host.kill(o.generation);
    const host = instance(this.env);
    o = new HostObject(host, {
      kind: this.constructor.name,
      name: this.#name(),
      platform: platformOf(this.ctx, this.env),
      owner: this,
    });
    return (this.#attached = o);
  }

  // The name comes with the first request; an object that its alarm wakes in a new process is not told
  // any more, so it keeps it.
  #name() {
    const { id, storage } = this.ctx;
    const kept = storage.kv.get("name");
    if (kept !== undefined) return kept;
    if (id.name === undefined) throw new Error("an object without a name: it was not reached by the front");
    storage.kv.put("name", id.name);
    return id.name;
  }

  async fetch(request) {
    try {
      if (this.env.TIDEMARK_DEBUG === "1") {
        const { pathname } = new URL(request.url);
        if (pathname.endsWith("/debug/host")) return this.#debug();
        if (pathname.endsWith("/debug/evict")) this.ctx.abort("evicted on request"); // as a deploy does, in mid-turn
      }
      return await this.object().fetch(request);
    } catch (e) {
      console.error(`${this.constructor.name} ${request.method}: ${e.message}`);
      return internal();
    }
  }

  async alarm() { await this.object().alarm(); }

  #debug() {
    const o = this.object();
    const { host, generation, pending } = o;
    return Response.json({
      id: this.ctx.id.toString(), boots, bootMillis: host.bootMillis, generation, pending, total: tally, ...host.stats(),
    });
  }
}

export class Session extends Host {}
export class Agent extends Host {}

export default {
  // A request goes to the object that owns it; token and size are checked before any object wakes.
  async fetch(request, env) {
    const to = route(new URL(request.url).pathname, env.TIDEMARK_AGENT || "main");
    if (to.error) return Response.json({ error: { type: "invalid_request_error", message: to.error } }, { status: 400 });
    const space = to.kind === "session" ? env.SESSION : env.AGENT;
    return space.get(space.idFromName(to.name)).fetch(request);
  },
};

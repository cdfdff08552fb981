// The JavaScript half of host/cloudflare: one Go instance (GoHost) and the objects that live in it
// (HostObject). The Worker's shim and the test runner of Node both build on it.
//
// Everything with an I/O context (responses, readers, writers, controllers, timers) stays here; Go
// holds integers. An event enters Go through GoHost.enter, which notes whose event it is; a host call
// of another object is refused and counted.

import { pack } from "./codec.mjs";
import { Ops, named } from "./ops.mjs";
import { Queue } from "./queue.mjs";

// Bounds of an instance; tests set others.
export const LIMITS = {
  // Beyond this much memory an instance takes no new objects, its own move as soon as they are idle, and
  // it is left: a Go heap in WASM never shrinks, and an isolate has 128 MB. Messages with blocks of 2 MB
  // bring one to 55 MB.
  drainBytes: 60 << 20,
  // So many sessions are busy at a time, the others wait: a turn takes some 0.2 MB while it lasts.
  busy: 128,
  // An object that was idle for so long leaves Go; its next event brings it back from its database.
  quietMs: 5 * 60_000,
  // An object that heard nothing for so long, whatever it waits for, was dropped by the platform, which
  // tells nobody: the longest turn is as long, and a stream is heard of every few seconds.
  lostMs: 2 * 60 * 60_000,
  // Between two looks for such objects.
  sweepMs: 30_000,
};

// What all instances of the isolate have counted: those that ended took their own counts with them.
// left: instances that were drained or dropped when idle; freed: instances whose memory was collected.
export const tally = { violations: 0, timers: 0, events: 0, fatals: 0, boots: 0, failed: 0, left: 0, freed: 0, swept: 0 };

const freed = new FinalizationRegistry(() => tally.freed++);

// What an object that has ended belongs to: nothing of its instance may stay in memory through it.
const NOWHERE = Object.freeze({ dead: true, draining: false, strict: true, current: null });

// GoHost boots one Go instance. Options:
//   module    the compiled WebAssembly.Module
//   env       bindings and variables, for syumai/workers
//   strict    refuse host calls outside the object's own events, and let go of idle ones (default true)
//   limits    other values of LIMITS
//   onFatal   told once when the instance has ended by an error, with it and the instance
//   onDrain   told once when it has grown too large, with the instance
//   configure sets arguments and the like before Go starts
//
// A module that does not start throws an error of the name Boot.
export class GoHost {
  dead = false;
  draining = false;
  violations = 0; // host calls for another object than the one whose event runs
  timers = 0; // Go timers asked for; they never fire
  events = 0;
  cause = null; // the error that ended it
  objects = new Map(); // generation -> HostObject
  #current = null;
  #depth = 0; // of events within events
  #swept = Date.now();
  #generation = 0;
  #names = new Map(); // class/name -> HostObject
  #reaper = new FinalizationRegistry((generation) => this.kill(generation));

  constructor({ module, env, strict = true, limits, onFatal, onDrain, configure }) {
    this.strict = strict;
    this.limits = { ...LIMITS, ...limits };
    this.onFatal = onFatal;
    this.onDrain = onDrain;
    this.queue = new Queue(this.limits.busy, () => this.busy);
    this.binding = {};
    const go = new globalThis.Go();
    // No GOMEMLIMIT: near what is alive it starts a collection with each event, and never ends.
    go.env = { GOGC: "75" };
    go.exit = (code) => this.fatal(new Error(`go exited with code ${code}`));
    configure?.(go, this);
    this.#noTimers(go);
    this.#watch(go);
    this.#go = go;
    try {
      const instance = new WebAssembly.Instance(module, go.importObject);
      this.#run(go, instance, env);
      if (strict && !this.binding.call) throw new Error("it has no functions to be called by");
      freed.register(instance.exports.mem);
    } catch (e) {
      this.cause ??= e;
    }
    if (this.cause) {
      this.dead = true;
      tally.failed++;
      throw named("Boot", `the Go module did not start: ${this.cause.message}`);
    }
    tally.boots++;
  }
  #go;

  // Go reads globalThis.context once, synchronously, while its packages initialise (the contract of
  // syumai/workers). env is that of all its objects; what is the booting one's own has no place in it.
  #run(go, instance, env) {
    globalThis.context = { env, binding: this.binding };
    try {
      this.exited = go.run(instance);
    } finally {
      delete globalThis.context;
    }
    // The promise belongs to the I/O context of the booting object: nobody waits for it.
    this.exited.catch((e) => this.fatal(e));
  }

  // Go keeps one timeout for all objects and looks at its timers in every event, so a Go timer would
  // fire in the event of whichever object comes next. With this it does not fire at all, which a test
  // notices at once.
  #noTimers(go) {
    go.importObject.gojs["runtime.scheduleTimeoutEvent"] = (sp) => {
      this.timers++;
      tally.timers++;
      go.mem.setInt32((sp >>> 0) + 16, 1, true);
    };
    go.importObject.gojs["runtime.clearTimeoutEvent"] = () => {};
  }

  // A trap or a stack overflow leaves resume() by an exception and Go in an unknown state.
  #watch(go) {
    const resume = go._resume.bind(go);
    go._resume = () => {
      try {
        resume();
      } catch (e) {
        this.fatal(e);
        throw e;
      }
    };
  }

  get busy() {
    let n = 0;
    for (const h of this.objects.values()) if (h.kind === "Session" && !h.idle) n++;
    return n;
  }
  get memory() { return this.#go.mem.buffer.byteLength; }
  get refs() { return this.#go._values.length; }
  get current() { return this.#current; }

  // violate notes a host call for another object than the one whose event runs.
  violate() {
    this.violations++;
    tally.violations++;
  }

  // enter runs f, which calls into Go, as an event of object h.
  enter(h, f) {
    if (this.dead) throw named("Dead", "the Go instance has ended");
    const previous = this.#current;
    this.#current = h;
    this.#depth++;
    this.events++;
    tally.events++;
    try {
      return f();
    } finally {
      this.#current = previous;
      if (h) h.heard = Date.now(); // behind the event, which may be a long one
      if (this.#depth === 1 && this.strict) this.#tidy();
      this.#depth--;
    }
  }

  // tidy lets go of objects behind an event: of those that were not heard of for long, and, when the
  // instance drains, of all that are idle. Their next event finds another instance.
  #tidy() {
    if (this.dead) return;
    if (!this.draining && this.memory > this.limits.drainBytes) this.#drain();
    const now = Date.now();
    if (!this.draining && now - this.#swept < this.limits.sweepMs) return;
    this.#swept = now;
    for (const h of [...this.objects.values()]) {
      const quiet = now - h.heard;
      const move = this.draining && h.idle;
      if (!move && quiet <= (h.idle ? this.limits.quietMs : this.limits.lostMs)) continue;
      if (!move) tally.swept++;
      this.kill(h.generation, h.idle ? undefined : named("Dead", "the object was not heard of for long"));
    }
    if (this.draining && this.objects.size === 0) this.leave();
  }

  #drain() {
    this.draining = true;
    this.onDrain?.(this);
  }

  // leave ends an instance that no object is in any more.
  leave() {
    if (this.dead) return;
    this.dead = true;
    tally.left++;
  }

  // attach adds an object and tells Go. An older generation of the same name ends: its host is gone.
  // owner, if given, is the Durable Object whose collection ends the generation.
  attach(h, owner) {
    h.generation = ++this.#generation;
    h.heard = Date.now();
    const name = `${h.kind}/${h.name}`;
    const old = this.#names.get(name);
    if (old) this.kill(old.generation);
    this.objects.set(h.generation, h);
    this.#names.set(name, h);
    if (owner) this.#reaper.register(owner, h.generation, h);
  }

  // kill ends one generation from any event; its goroutines unwind without touching JavaScript. What may
  // still be in flight ends by cause, in its own I/O context; without one the object is idle or its
  // context is gone, and nothing of it is touched.
  kill(generation, cause) {
    const h = this.objects.get(generation);
    if (!h || this.dead) return;
    const { go } = h;
    h.leave();
    this.objects.delete(generation);
    this.#reaper.unregister(h);
    const name = `${h.kind}/${h.name}`;
    if (this.#names.get(name) === h) this.#names.delete(name);
    if (cause) h.die(cause);
    try {
      this.enter(null, () => go.kill(generation));
    } catch (e) {
      this.fatal(e);
    }
  }

  // fatal ends everything in flight. Other objects' streams must not be touched from here, their I/O
  // contexts are not ours: each object armed a promise in its own context, and we only resolve it.
  fatal(e) {
    if (this.dead) return;
    this.dead = true;
    this.cause = e;
    tally.fatals++;
    const all = [...this.objects.values()];
    this.objects.clear();
    this.#names.clear();
    this.onFatal?.(e, this);
    for (const h of all) {
      if (h.idle) h.leave(); // the platform may have dropped it, and its context with it
      else h.die(e);
    }
  }

  stats() {
    return {
      violations: this.violations, timers: this.timers, events: this.events, objects: this.objects.size,
      memory: this.memory, refs: this.refs, draining: this.draining, dead: this.dead,
    };
  }
}

// HostObject is one object in a Go instance: what Go may call, in ops.mjs, and how events reach it.
// Options: kind and name; platform gives sql, alarm, streams, sockets and fetch; binding, the Go functions,
// defaults to the instance's own.
export class HostObject extends Ops {
  constructor(host, { kind, name, platform, binding, owner }) {
    super(host, platform);
    this.kind = kind;
    this.name = name;
    this.go = binding ?? host.binding;
    new Promise((resolve) => (this.#wake = resolve)).then((e) => this.failAll(e)); // in this object's I/O context
    host.attach(this, owner);
    if (binding) return;
    this.opening = true;
    host.enter(this, () => this.go.open(this.generation, kind, name, this));
    this.opening = false;
  }

  #wake;

  // die has what is in flight end by e, from the context of any object: at once by a promise of this one,
  // and if the runtime loses that, by the object's own look.
  die(e) {
    this.cause ??= e;
    this.#wake(e);
  }

  // leave parts it from its instance, so that the instance's memory can be collected.
  leave() {
    this.dead = true;
    this.host = NOWHERE;
    this.go = null;
  }

  // fetch serves a request and answers with a Response, streaming if the handler flushed. id, if given,
  // is the request's.
  fetch(request, id) {
    return this.call("fetch", this.request(request, id), { head: request.method === "HEAD", signal: request.signal });
  }

  // socket tells what a socket of the object says ("message", with the text), or that it has ended
  // ("close"). Of "wake" an object hears only that it is there: opened anew, it takes its sockets up.
  socket(what, id = "", text = "") { return this.call("socket", pack([[what, id, text]]), {}); }

  // alarm runs the object's alarm handler; a rejection makes the platform try again.
  alarm() { return this.call("alarm", null, {}); }
}

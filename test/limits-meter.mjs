// Stands before the Worker in test/limits.mjs and measures what the platform limits, where the platform
// sees it: what reaches SQL, R2 and fetch, how long nobody else had the thread, how much memory there was.
// GET /debug/meter gives it once nothing is in flight, and begins anew. The shim is served.mjs here.

import * as served from "./served.mjs";
import { GoHost } from "./host.mjs";
import { Ops } from "./ops.mjs";

const fresh = () => ({
  args: 0, argBytes: 0, pageBytes: 0, // the most of one SQL statement, and of a page read
  open: 0, peak: 0, // connections of one object: fetch and R2, from the call to the end of the body
  fetches: 0, gets: 0, puts: 0,
  memory: 0, section: 0, busy: 0, // bytes of an instance; ms in Go at a time, and in all
});
let meter = fresh();

const size = (v) => (typeof v === "string" ? new TextEncoder().encode(v).length : v?.byteLength ?? 0);
const most = (name, n) => { if (n > meter[name]) meter[name] = n; };

// Connections of one object; a body that is neither read to its end nor cancelled keeps its own.
class Connections {
  n = 0;
  hold() {
    most("peak", ++this.n);
    meter.open++;
    let held = true;
    return () => { if (held) { held = false; this.n--; meter.open--; } };
  }
  async during(p) {
    const end = this.hold();
    try { return await p(); } finally { end(); }
  }
}

// watched makes the end of a body end its connection.
function watched(stream, end) {
  const getReader = stream.getReader.bind(stream);
  stream.getReader = () => {
    const reader = getReader();
    const read = reader.read.bind(reader), cancel = reader.cancel.bind(reader);
    reader.read = () => read().then((r) => { if (r.done) end(); return r; }, (e) => { end(); throw e; });
    reader.cancel = (why) => { end(); return cancel(why); };
    return reader;
  };
}

function bucketOf(bucket, connections) {
  return {
    put: (...a) => { meter.puts++; return connections.during(() => bucket.put(...a)); },
    delete: (...a) => connections.during(() => bucket.delete(...a)),
    list: (...a) => connections.during(() => bucket.list(...a)),
    async get(...a) {
      meter.gets++;
      const end = connections.hold();
      const o = await bucket.get(...a);
      if (!o?.body) { end(); return o; }
      const whole = o.arrayBuffer.bind(o);
      o.arrayBuffer = () => whole().finally(end);
      watched(o.body, end);
      return o;
    },
  };
}

// One conversation at a time talks to the network in the test, so that its fetches are those of the
// object which has this.
const outward = new Connections();
const plain = globalThis.fetch;
globalThis.fetch = async (...a) => {
  meter.fetches++;
  const end = outward.hold();
  try {
    const res = await plain(...a);
    if (res.body) watched(res.body, end);
    else end();
    return res;
  } catch (e) {
    end();
    throw e;
  }
};

let patched = false;
function watchSQL(sql) {
  if (patched) return;
  patched = true;
  const proto = Object.getPrototypeOf(sql);
  const { exec } = proto;
  proto.exec = function (text, ...args) {
    most("args", args.length);
    most("argBytes", args.reduce((n, v) => n + size(v), 0));
    return exec.call(this, text, ...args);
  };
}

const { query } = Ops.prototype;
Ops.prototype.query = function (packed) {
  const rows = query.call(this, packed);
  most("pageBytes", rows.length);
  return rows;
};

const { enter } = GoHost.prototype;
let inside = 0;
GoHost.prototype.enter = function (h, f) {
  const began = Date.now();
  inside++;
  try {
    return enter.call(this, h, f);
  } finally {
    if (--inside === 0) {
      meter.busy += Date.now() - began;
      most("section", Date.now() - began);
    }
    most("memory", this.memory);
  }
};

// Go names the bucket in each call.
const others = new WeakMap();
const connectionsOf = (o) => (o.kind === "Session" ? outward : others.get(o) ?? others.set(o, new Connections()).get(o));
for (const [name, at] of Object.entries({ put: 1, putStart: 0, get: 1, delete: 1, list: 1 })) {
  const ask = Ops.prototype[name];
  Ops.prototype[name] = function (...args) {
    args[at] = bucketOf(args[at], connectionsOf(this));
    return ask.apply(this, args);
  };
}

const metered = (Base) => class extends Base {
  constructor(ctx, env) {
    watchSQL(ctx.storage.sql);
    super(ctx, env);
  }
};

// The kind of an object is the name of its class.
export const Session = metered(served.Session), Agent = metered(served.Agent);
Object.defineProperty(Session, "name", { value: "Session" });
Object.defineProperty(Agent, "name", { value: "Agent" });

export default {
  async fetch(request, env, ctx) {
    if (new URL(request.url).pathname === "/debug/meter") {
      // What goes on behind an answer, like a digest, has its connection for a moment; a lost one for good.
      for (let tries = 500; meter.open && tries--;) await new Promise((r) => setTimeout(r, 20));
      const { open, ...was } = meter;
      meter = { ...fresh(), open };
      return Response.json({ ...was, open });
    }
    return served.default.fetch(request, env, ctx);
  },
};

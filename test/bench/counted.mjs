// The Worker with a tally of what crosses between JavaScript and Go: this module stands before the shim
// and wraps the methods that Go calls and the functions by which events enter it. GET /debug/tally on
// any path gives what was counted since the last one.

import * as shim from "./shim.mjs";
import { GoHost } from "./host.mjs";
import { Ops } from "./ops.mjs";

let tally = {};
const kinds = new Map(); // generation/wait -> kind of the operation that is answered later

const size = (v) => (v instanceof Uint8Array ? v.length : typeof v === "string" ? v.length : 0);
const sum = (args) => args.reduce((n, v) => n + size(v), 0);

function count(kind, calls, out, back) {
  const t = (tally[kind] ??= { calls: 0, out: 0, in: 0 });
  t.calls += calls;
  t.out += out;
  t.in += back;
}

const later = new Set(["sent", "sleep", "setAlarm", "read", "fetchOut", "put", "putWrite", "putEnd", "get", "delete", "list", "model"]);
const quiet = new Set(["constructor", "call", "request", "failAll"]); // called by JavaScript alone
for (const name of Object.getOwnPropertyNames(Ops.prototype)) {
  const d = Object.getOwnPropertyDescriptor(Ops.prototype, name);
  if (quiet.has(name) || typeof d.value !== "function") continue;
  Ops.prototype[name] = function (...args) {
    if (later.has(name)) kinds.set(`${this.generation}/${args[0]}`, name);
    const v = d.value.apply(this, args);
    count(name, 1, sum(args), size(v));
    return v;
  };
}

const attach = GoHost.prototype.attach;
GoHost.prototype.attach = function (...args) {
  if (!this.tallied) {
    this.tallied = true;
    const { call, deliver } = this.binding;
    this.binding.call = (g, n, kind, payload) => {
      count(`event ${kind}`, 1, 0, size(payload));
      return call(g, n, kind, payload);
    };
    this.binding.deliver = (g, id, ok, v) => {
      const key = `${g}/${id}`;
      count(`answer to ${kinds.get(key) ?? "?"}`, 1, 0, size(v));
      kinds.delete(key);
      return deliver(g, id, ok, v);
    };
  }
  return attach.apply(this, args);
};

export class Session extends shim.Session {}
export class Agent extends shim.Agent {}
export default {
  fetch(request, env, ctx) {
    if (!request.url.endsWith("/debug/tally")) return shim.default.fetch(request, env, ctx);
    const was = tally;
    tally = {};
    return Response.json(was);
  },
};

// The probe with both bridges: requests with bridge=theirs go to the handler of syumai/workers. A function by which
// that library is called back runs as an event of the object that made it: without that, which BARE takes away, the
// guard refuses all that Go asks for next.

import * as shim from "./shim.mjs";
import { GoHost } from "./host.mjs";

let event = null; // the instance and the object that are in Go
let bare = false;

const { enter } = GoHost.prototype;
GoHost.prototype.enter = function (h, f) {
  const before = event;
  event = { host: this, h };
  try {
    return enter.call(this, h, f);
  } finally {
    event = before;
  }
};

globalThis.Go = class extends globalThis.Go {
  _makeFuncWrapper(id) {
    const f = super._makeFuncWrapper(id), made = event;
    return made?.h && !bare ? (...args) => made.host.enter(made.h, () => f(...args)) : f;
  }
};

export class Session extends shim.Session {
  fetch(request) {
    bare = this.env.BARE === "1";
    const o = this.object();
    if (!request.url.includes("bridge=theirs")) return super.fetch(request);
    return o.host.enter(o, () => o.go.handleRequest(request));
  }
}
export class Agent extends shim.Agent {}
export default shim.default;

// The probe with two more doors, for the part library: this module stands before the shim.
//
//   …/debug/refs                how many functions that Go made JavaScript still holds for it
//   …/debug/bridge?by=&n=       n requests through our bridge or the library's, in microseconds each

import * as shim from "./shim.mjs";

let go; // the instance
globalThis.Go = class extends globalThis.Go {
  constructor() {
    super();
    go = this;
  }
};

export class Session extends shim.Session {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.endsWith("/debug/refs")) return Response.json(refs());
    if (pathname.endsWith("/debug/bridge")) return Response.json(await this.bridge(searchParams.get("by"), Number(searchParams.get("n"))));
    return super.fetch(request);
  }

  async bridge(by, n) {
    const o = this.object();
    const through = by === "library" ? (r) => o.host.binding.handleRequest(r) : (r) => o.fetch(r);
    const begun = performance.now();
    for (let i = 0; i < n; i++) {
      const res = await through(new Request("https://object/v1/sessions/any/zeros?size=1024", { headers: { accept: "*/*" } }));
      const { byteLength } = await res.arrayBuffer();
      if (byteLength !== 1024) throw new Error(`${by}: ${res.status}, ${byteLength} bytes`);
    }
    return ((performance.now() - begun) * 1000) / n;
  }
}
export class Agent extends shim.Agent {}
export default shim.default;

function refs() {
  // A function that Go made has no name; one that Go took of the platform has.
  return { funcs: go._values.filter((v) => typeof v === "function" && v.name === "").length };
}

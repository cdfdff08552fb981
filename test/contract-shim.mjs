// Runs a Go test binary inside one Durable Object of workerd, so that the contract tests of
// host/hosttest meet the real SQLite and R2 of the runtime. test/contract.mjs starts it.

import "./wasm_exec.js";
import module from "./app.wasm";
import { DurableObject } from "cloudflare:workers";
import { GoHost, HostObject } from "./host.mjs";
import { platformOf } from "./workerd.mjs";

export class Session extends DurableObject {
  // fetch runs the tests whose names match and answers with their output and exit code.
  fetch(request) {
    const match = new URL(request.url).searchParams.get("run") ?? "";
    const out = [];
    const decoder = new TextDecoder();
    globalThis.fs.writeSync = (_, bytes) => {
      const text = decoder.decode(bytes, { stream: true });
      out.push(text);
      console.log(text); // what a run that does not end has said
      return bytes.length;
    };
    const { env } = this;
    let buckets = 0; // each that is asked for is an empty one
    return new Promise((resolve) => new GoHost({
      module,
      env: { get BUCKET() { return env[`BUCKET${buckets++}`]; } },
      strict: false, // a test's goroutines begin outside of any object's event
      configure: (go, host) => {
        go.argv = ["contract", "-test.v", "-test.timeout=0", `-test.run=${match}`];
        go.exit = (code) => resolve(Response.json({ code, out: out.join("") }));
        this.#offer(host);
      },
      onFatal: (e) => resolve(Response.json({ code: 2, out: out.join("") + e.stack })),
    }));
  }

  // offer lets a test open objects one after the other: each finds the database empty.
  #offer(host) {
    let opened = 0;
    globalThis.tidemarkOpen = (kind, name, binding) => {
      this.#wipe();
      return new HostObject(host, { kind, name: `${name} ${++opened}`, binding, platform: platformOf(this.ctx) });
    };
  }

  #wipe() {
    const { sql } = this.ctx.storage;
    const own = "type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_cf_%'";
    for (;;) {
      // A virtual table takes its shadow tables along.
      const [row] = sql.exec(`SELECT name FROM sqlite_master WHERE ${own} ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC LIMIT 1`).raw();
      if (!row) return;
      sql.exec(`DROP TABLE "${row[0]}"`);
    }
  }
}

export class Agent extends Session {}

export default {
  fetch: (request, env) => env.SESSION.get(env.SESSION.idFromName("contract")).fetch(request),
};

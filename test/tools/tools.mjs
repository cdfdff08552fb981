// Tools through whole turns, on both hosts: a model that plays parts calls tools of real servers of MCP, of modules and of
// our own, and what it is sent of them is held against what they said.
// Run by: node test/tools/tools.mjs [binary] [folder of the built Worker] [native,workerd] [parts,…]

import { after, before, describe } from "node:test";
import { World } from "./world.mjs";

const parts = ["calls", "approval", "modules", "delegation", "schedules", "skills", "faults", "secrets"];
const [binary = "bin/tidemark", folder = "dist", hosts = "native,workerd", only = parts.join(",")] = process.argv.slice(2);

for (const host of hosts.split(",")) {
  describe(host, { timeout: 600_000 }, () => {
    const w = new World(host, { binary, folder });
    before(() => w.start());
    after(() => w.stop());
    for (const part of only.split(",")) {
      describe(part, async () => (await import(`./${part}.mjs`)).default(w));
    }
  });
}

// Claude Code itself behind the proxy on both hosts, against a provider of ours that is as strict as the real one
// (test/proxy/upstream.mjs). After each test no request may have broken a rule of the API, and in each run nothing of
// Tidemark may be in what Claude Code says or keeps. SHOW=file keeps what was refused; CLAUDE=program runs another one.
// Run by: node test/agents/agents.mjs [binary] [folder of the built Worker] [native,workerd] [parts,…]

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, afterEach, before, describe } from "node:test";
import { find } from "./claude.mjs";
import { World } from "./world.mjs";

const parts = ["work", "ways", "faults", "beside"];
const [binary = "bin/tidemark", folder = "dist", hosts = "native,workerd", only = parts.join(",")] = process.argv.slice(2);
const { program, version, skip } = find();
console.log(skip ? `# skipped: ${skip}` : `# Claude Code ${version}`);
const tests = await Promise.all(only.split(",").map(async (name) => [name, (await import(`./${name}.mjs`)).default]));

for (const host of hosts.split(",")) {
  describe(`Claude Code, ${host}`, { skip }, () => {
    const w = new World(host, { binary, folder, program });
    before(() => w.start());
    after(() => w.stop());
    afterEach(() => {
      const broken = w.up.broken();
      if (process.env.SHOW && broken.length) writeFileSync(process.env.SHOW, JSON.stringify(broken.map((c) => ({ broken: c.broken, raw: JSON.parse(c.raw) }))));
      assert.deepEqual(broken.map((c) => `${c.path}: ${c.broken}`), [], "requests that the API refused");
      assert.equal(w.up.failed, undefined);
    });
    for (const [name, add] of tests) describe(name, { concurrency: 3 }, () => add(w));
  });
}

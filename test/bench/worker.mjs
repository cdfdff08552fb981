// The benchmarks of the Worker: prints Markdown. Linux only (figures of processes come from /proc).
//
//   node test/bench/worker.mjs [--folder dist] [--probe .cache/probe] [--quick] [part …]
//
// Parts: size start cold boot turn rate wake recall growth live crossings library; all of them without a name. workerd runs
// from the pinned npm package, without the proxy of `wrangler dev`. Ours and the baseline, a Durable
// Object in JavaScript (plain.mjs), run at the same time and are asked in turns.

import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { library } from "./library.mjs";
import { startModel, startWorker } from "./rig.mjs";
import * as space from "./space.mjs";
import * as time from "./time.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const args = process.argv.slice(2);
const take = (name, otherwise) => {
  const i = args.indexOf(name);
  return i < 0 ? otherwise : args.splice(i, 2)[1];
};
const folder = path.resolve(take("--folder", path.join(root, "dist")));
const probeFolder = path.resolve(take("--probe", path.join(root, ".cache/probe")));
const quick = args.includes("--quick") && args.splice(args.indexOf("--quick"), 1).length > 0;
const parts = args.length > 0 ? args : ["size", "start", "cold", "boot", "turn", "rate", "wake", "recall", "growth", "live", "crossings", "library"];
const few = (all, some) => (quick ? some : all);

const budget = JSON.parse(readFileSync(path.join(root, "build/budget.json"), "utf8"));

const model = await startModel();
const say = (lines) => lines.forEach((l) => console.log(`${l}\n`));
const begun = Date.now();
console.log(`<!-- ${cpus().length} cores (${cpus()[0].model}), Node ${process.version}${quick ? ", a quick run" : ""} -->\n`);

// with starts the workers that a part compares and ends them after it.
async function withWorkers(kinds, f) {
  const got = {};
  try {
    for (const k of kinds) got[k] = await startWorker(k === "probe" ? "ours" : k, { folder: k === "probe" ? probeFolder : folder, model });
    say(await f({ ...got, model }));
  } finally {
    for (const w of Object.values(got)) await w.stop();
  }
}

const run = {
  size: () => say(space.size({ folder, root })),
  async start() {
    const { lines, over } = await time.start({ folder, rounds: few(7, 3), budget });
    say(lines);
    for (const o of over) console.error(o);
    if (over.length > 0) process.exitCode = 1;
  },
  cold: () => withWorkers(["ours", "probe", "plain"], (w) => time.cold({ ...w, n: few(500, 100) })),
  boot: async () => say(await time.boot({ folder, probeFolder, model, rounds: few(5, 2) })),
  turn: () => withWorkers(["ours", "plain"], (w) => time.turn({ ...w, rounds: few(5, 2), n: few(60, 20) })),
  rate: () => withWorkers(["ours", "plain"], (w) => time.rate({ ...w, rounds: few(5, 2), n: few(1500, 400) })),
  wake: async () => say(await time.wake({ folder, model, rounds: few(7, 2), lengths: few([50, 500, 5000], [50, 500]) })),
  recall: () => withWorkers(["ours"], (w) => time.recall({ ...w, rounds: few(5, 2), n: few(100, 30), length: 5000 })),
  growth: async () => say(await space.growth({ folder, model, turns: few(1000, 200) })),
  live: async () => say(await space.live({ folder, model, counts: few([1, 10, 50, 200, 1000], [1, 10, 50]) })),
  crossings: async () => say(await space.crossings({ folder, model, n: few(20, 5) })),
  library: async () => say(await library({ folder: probeFolder, rounds: few(5, 2), n: few(200, 20) })),
};

try {
  for (const part of parts) {
    if (!run[part]) throw new Error(`no part ${part}: there are ${Object.keys(run).join(", ")}`);
    const from = Date.now();
    await run[part]();
    console.error(`${part}: ${((Date.now() - from) / 1000).toFixed(1)} s`);
  }
} catch (e) {
  console.error(e);
  process.exitCode = 1;
} finally {
  await model.stop();
}
console.error(`${((Date.now() - begun) / 1000).toFixed(0)} s in all`);

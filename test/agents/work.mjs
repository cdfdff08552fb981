// The work that treatments are measured by: 40 calls of tools whose results have 15 KB each, with each treatment and
// without one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { call, text, think } from "../proxy/upstream.mjs";
import { OLDER, OPUS, SONNET } from "./world.mjs";

const FILES = 40, MORE = 5; // chapters that are read in one run, and in a second one that continues it
const BYTES = 15_000;
const BAR = 0.45; // of the tokens of the same work without a proxy, at most

// prose gives lines of words, no two files alike.
export function prose(seed, bytes) {
  const words = "tide shore harbour lantern rope anchor gull current channel buoy keel rudder sail mast chart compass".split(" ");
  const lines = [];
  for (let n = 0, size = 0; size < bytes; n++, size += lines.at(-1).length + 1) {
    lines.push(Array.from({ length: 9 }, (_, k) => words[(seed * 7 + n * 5 + k * (seed + 3)) % words.length]).join(" ") + ` ${seed}.${n}`);
  }
  return `${lines.join("\n")}\n`;
}

const has = (body, name) => (body.tools ?? []).some((t) => t.name === name);

// open reads a file, every fifth time through Bash.
const open = (files, i) => (i % 5 === 3 ? call("Bash", { command: `cat ${files[i]}` }) : call("Read", { file_path: files[i] }));

// steady is what a model says that reads one file after another and thinks now and then.
export const steady = (files) => [...files.map((_, i) => [...(i % 3 === 0 ? [think(`What is in ${i}?`)] : []), text(`Now ${i}.`), open(files, i)]), [text("All of them are read.")]];

// busy reads them with several calls at once, and where it is offered our tools and marks it uses them, alone and
// beside the client's.
export function busy(files) {
  const steps = [];
  for (let i = 0; i < files.length; ) {
    const many = i % 10 === 6 ? 4 : 1, first = i;
    if (first === 24) steps.push((body) => (has(body, "memory_fault") ? [call("memory_fault", { paths: [files[1]] })] : null));
    steps.push((body) => {
      const out = [...(first % 3 === 0 ? [think(`What is in ${first}?`)] : []), text(`Now ${first}.`)];
      if (first === 20 && has(body, "memory_fault")) out.push(call("memory_fault", { paths: [files[0]] }));
      if (first === 30 && has(body, "memory_release")) out.push(text(`\n<memory_cleanup>\nrelease: ${files[25]}\n</memory_cleanup>\n`));
      if (first === 32 && has(body, "memory_release")) out.push(call("memory_release", { paths: [files[26]] }));
      if (first % 10 === 0 && has(body, "delimiter")) {
        if (first > 0) out.push(call("delimiter", { action: "end", description: `files up to ${first} are about ships` }));
        out.push(call("delimiter", { action: "start", name: `look ${first}`, type: "expl" }));
      }
      return [...out, ...Array.from({ length: many }, (_, k) => open(files, first + k))];
    });
    i += many;
  }
  return [...steps, [text("All of them are read.")]];
}

// figures are those of requests as the provider counts them: tokens are bytes by four of tools, system and messages
// (cache.mjs).
const figures = (sent) => ({
  requests: sent.length, bytes: sum(sent, (c) => c.raw.length), tokens: sum(sent, (c) => c.figures.size), cached: sum(sent, (c) => c.figures.read),
});
const sum = (list, of) => list.reduce((n, c) => n + of(c), 0);
const share = (a, b) => `${((100 * a) / b).toFixed(1)} %`;

// work does it at a desk; with more, the last files are read in a second run that continues the first. Claude Code's
// own compaction is off and the model has a large window ([1m]), so that the history is the same with and without a
// proxy: of 200,000 tokens it would not fit without one.
async function work(desk, say, { model, treatment, more = 0 }) {
  const files = Array.from({ length: FILES + more }, (_, i) => desk.file(`chapter-${i}.txt`, prose(i, BYTES)));
  const how = { model: `${model}[1m]`, treatment, env: { DISABLE_AUTO_COMPACT: "1" } };
  const read = async (words, some, ...args) => {
    desk.script(say(some));
    const run = await desk.claude([...args, words], how);
    assert.equal(run.text, "All of them are read.");
    assert.equal(run.calls.length, some.length, "each call came through");
    assert.deepEqual([...new Set(run.calls.map((c) => c.name))].sort(), ["Bash", "Read"]);
  };
  await read("Read all the chapters.", files.slice(0, FILES));
  const first = figures(desk.sent);
  if (more) await read("And the last ones.", files.slice(FILES), "--continue");
  return { first, all: figures(desk.sent) };
}

const runs = new Map();
// without does work with a model and no proxy, once for all that compare with it.
function without(w, say, model, more) {
  const name = `${say.name} ${model}`;
  if (!runs.has(name)) runs.set(name, work(w.desk("plain"), say, { model, treatment: null, more }));
  return runs.get(name);
}

// treated holds that each request of the work had the treatment.
function treated(desk, treatment) {
  const own = desk.sent.filter((c) => has(c.body, "Read"));
  const offers = treatment.startsWith("page") ? ["memory_fault", "memory_release"] : treatment.startsWith("episodes") ? ["delimiter", "memory_fault"] : [];
  for (const name of ["memory_fault", "memory_release", "delimiter"]) {
    const with_ = own.filter((c) => has(c.body, name)).length;
    assert.equal(with_, offers.includes(name) ? own.length : 0, `${name} is offered with ${with_} of ${own.length} requests`);
  }
  for (const c of desk.sent) assert.doesNotMatch(JSON.stringify(c.rawHeaders), /tidemark/i, "headers of ours");
}

// Treatments of the same work, as a share of the tokens without one. Models without a share are compared with nothing:
// what they were sent at most is held against the whole history.
const rows = {
  native: [["observe", OPUS, 1.01], ["trim", OPUS, 1], ["page+trim", OPUS, 0.6], ["episodes", OPUS, 0.8], ["episodes+trim", OPUS, 0.8], ["page", SONNET], ["page", OLDER]],
  workerd: [["episodes+trim", OPUS, 0.8], ["page+trim", OLDER]],
};

export default function (w) {
  const told = (a, b) => (b ? `${a.tokens} of ${b.tokens} tokens (${share(a.tokens, b.tokens)})` : `${a.tokens} tokens`);
  // compared does the work with a treatment and holds it to its share.
  async function compared(say, treatment, model, bar, more) {
    const desk = w.desk("work");
    const [plain, mine] = [bar && (await without(w, say, model, more)), await work(desk, say, { model, treatment, more })];
    console.log(`# ${w.host}, ${model}, ${treatment}: ${told(mine.first, plain?.first)}` + (more ? `, with what was continued ${told(mine.all, plain.all)}` : "") +
      `; ${mine.all.requests} calls, ${mine.all.bytes}${plain ? ` of ${plain.all.bytes}` : ""} bytes, ${share(mine.all.cached, mine.all.tokens)}${plain ? ` (${share(plain.all.cached, plain.all.tokens)})` : ""} from the cache`);
    const systems = desk.sent.filter((c) => c.body.messages.some((m) => m.role === "system")).length;
    assert.equal(systems, model === OLDER ? 0 : desk.sent.length, "requests with system messages");
    treated(desk, treatment);
    if (bar) {
      for (const part of ["first", "all"]) {
        assert.ok(mine[part].tokens <= bar * plain[part].tokens, `${part}: ${share(mine[part].tokens, plain[part].tokens)} of the tokens without, want ${100 * bar} % at most`);
      }
    } else assert.ok(Math.max(...desk.sent.map((c) => c.raw.length)) < 0.7 * FILES * BYTES, "the largest request has most of the history");
    if (treatment === "observe") assert.equal(mine.all.requests, plain.all.requests);
  }

  test(`${FILES} calls of 15 KB one by one and ${MORE} more, ${OPUS}, page`, () => compared(steady, "page", OPUS, BAR, MORE));
  for (const [treatment, model, bar] of rows[w.host]) {
    test(`${FILES} calls of 15 KB, some at once, ${model}, ${treatment}`, () => compared(busy, treatment, model, bar));
  }
}

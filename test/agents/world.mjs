// A host with the proxy, the fake provider behind it, and desks at which Claude Code works: each a project, a HOME and
// a store of its own.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { token, workerd } from "../clients/targets.mjs";
import { Upstream } from "../proxy/upstream.mjs";
import { environment, events, headless, started } from "./claude.mjs";

export const OPUS = "claude-opus-4-8", SONNET = "claude-sonnet-5"; // get system messages between the others
export const OLDER = "claude-sonnet-4-5"; // gets none

// What Tidemark adds, by names that are in nothing else.
const ours = [/memory_release/, /memory_fault/, /memory_cleanup/, /"delimiter"/, /Paged out:/, /\[Evicted/, /tidemark/i];

// none holds that nothing of ours is in what a client got or keeps.
export function none(what, where) {
  for (const name of ours) {
    const at = what.search(name);
    assert.ok(at < 0, `${where} has ${name}: ${what.slice(Math.max(0, at - 200), at + 200)}`);
  }
}

export class World {
  #desks = 0;
  constructor(host, { binary, folder, program }) {
    Object.assign(this, { host, binary: path.resolve(binary), folder: path.resolve(folder), program });
  }

  async start() {
    this.up = await new Upstream().start();
    this.home = mkdtempSync(path.join(tmpdir(), "agents-"));
    if (this.host === "workerd") this.site = await workerd(this.folder, this.up.url, { home: path.join(this.home, "worker") });
  }

  async stop() {
    await this.site?.stop();
    await this.up?.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  desk(name) {
    return new Desk(this, `${name}-${++this.#desks}x`);
  }
}

class Desk {
  constructor(world, name) {
    Object.assign(this, { world, up: world.up, name, folder: path.join(world.home, name) });
    this.home = path.join(this.folder, "home");
    this.project = path.join(this.folder, "project");
    this.store = path.join(this.folder, "store");
    this.logs = path.join(this.home, ".claude/projects", this.project.replace(/[^a-zA-Z0-9]/g, "-"));
    for (const d of [this.home, this.project]) mkdirSync(d, { recursive: true });
  }

  // file writes a file of the project and gives its path.
  file(name, content) {
    const at = path.join(this.project, name);
    writeFileSync(at, content);
    return at;
  }

  // script says what the model answers at this desk, one answer a request; a function is given the request. Each
  // request of Claude Code names the folder that it works in. mark tells requests of a sub-agent from the others.
  script(answers, mark = this.project) {
    let next = 0;
    this.up.script(mark, async (body, c) => {
      for (;;) {
        const a = answers[next++];
        const given = typeof a === "function" ? await a(body, c) : a;
        if (given !== null) return given; // null: not with this request
      }
    });
  }

  // sent are the requests for answers that came from this desk.
  get sent() {
    return this.up.of(this.project);
  }

  environment(more) {
    const own = this.world.host === "workerd" ? { TIDEMARK_SERVER: this.world.site.url, TIDEMARK_TOKEN: token } : {};
    return environment(this.home, this.up.url, { TIDEMARK_HOME: this.store, ...own, ...more });
  }

  // tidemark runs a command of ours, which does well.
  async tidemark(...args) {
    const { code, out, err } = await started([this.world.binary, ...args], { cwd: this.project, env: { ...this.environment(), TIDEMARK_SERVER: "" } }).ended;
    assert.equal(code, 0, `tidemark ${args.join(" ")}: ${out}\n${err}`);
    return out;
  }

  // launch starts Claude Code behind the proxy, or without it where there is no treatment; talk names the conversation.
  launch(args, { model = OPUS, treatment = "page", talk = this.name, env, heard } = {}) {
    const proxy = treatment ? [this.world.binary, "proxy", "--treatment", treatment, ...(talk ? ["--name", talk] : []), "--"] : [];
    return started([...proxy, this.world.program, ...headless, "--model", model, ...args], { cwd: this.project, env: this.environment(env), heard });
  }

  // claude runs it to its end: {code, out, err, events, result, session, text}. It did well and saw nothing of
  // ours, and none of its requests went untouched.
  async claude(args, { fails = false, mixed = false, ...how } = {}) {
    const run = await this.launch(args, how).ended;
    run.events = events(run.out);
    run.result = run.events.findLast((e) => e.type === "result");
    run.session = run.events.find((e) => e.session_id)?.session_id;
    run.text = run.result?.result;
    run.calls = run.events.filter((e) => e.type === "assistant").flatMap((e) => e.message.content).filter((b) => b.type === "tool_use");
    if (!fails) assert.ok(run.code === 0 && run.result?.is_error === false, `it ended with ${run.code}: ${JSON.stringify(run.result)?.slice(0, 2000)}\n${run.err}`);
    if (!mixed) {
      for (const [name, what] of [["its output", run.out], ...this.log()]) none(this.placeless(what), name);
    }
    if (how.treatment !== null && !fails) assert.doesNotMatch(run.err, /untouched/, "requests were passed on untouched");
    return run;
  }

  // placeless takes the folder away, whose path may say anything; a path is a name, too, with dashes.
  placeless(text) {
    return text.replaceAll(this.world.home, "").replaceAll(this.world.home.replace(/[^a-zA-Z0-9]/g, "-"), "");
  }

  // log gives what Claude Code keeps of this project: names and texts.
  log() {
    return readdirSync(this.logs, { recursive: true, withFileTypes: true }).filter((f) => f.name.endsWith(".jsonl")).map((f) => [f.name, readFileSync(path.join(f.parentPath, f.name), "utf8")]);
  }
}

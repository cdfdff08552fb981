// A host with servers of tools and a model that plays parts, for the tests of tools. It keeps all that the host says,
// so that a secret in any of it is found.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Model } from "../clients/model.mjs";
import { native, token, workerd } from "../clients/targets.mjs";
import { PATIENCE, wait } from "../patience.mjs";
import { freePort } from "../port.mjs";
import { Everything, Own, program, telling } from "./servers.mjs";

export const secrets = { TOOL_OWN: "hush-own-5b1f77", TOOL_LOCKED: "hush-locked-93ac02", TOOL_PIPE: "hush-pipe-c0ffee" };
const starts = { native, workerd };
let count = 0;

export class World {
  said = ""; // what the host wrote to its outputs, and answered

  constructor(host, { binary, folder }) {
    Object.assign(this, { host, binary: path.resolve(binary), native: host === "native", built: host === "native" ? binary : folder });
  }

  async start() {
    this.home = realpathSync(mkdtempSync(path.join(tmpdir(), "tools-")));
    this.files = path.join(this.home, "notes");
    mkdirSync(this.files);
    this.model = await new Model().start();
    this.every = await new Everything(this.told("every")).start();
    this.own = await new Own(secrets.TOOL_OWN).start();
    this.late = new Own(secrets.TOOL_OWN);
    this.late.port = await freePort();
    writeFileSync(path.join(this.home, "tidemark.jsonc"), JSON.stringify(this.document()));
    await this.serve();
  }

  // told is a file that is there when a long operation of a server has begun.
  told(server) { return path.join(this.home, `${server}-told`); }

  document() {
    const mcp = {
      every: { url: this.every.url, timeoutMs: 30_000 },
      own: { url: this.own.url, secret: "TOOL_OWN", parallel: 5 },
      late: { url: `http://127.0.0.1:${this.late.port}/mcp`, secret: "TOOL_OWN" },
      locked: { url: this.own.url, secret: "TOOL_LOCKED" },
    };
    const rules = [{ tool: "own__note", action: "ask" }, { tool: "files__write_file", when: [{ path: "path", op: "contains", value: "/ask-" }], action: "ask" }];
    if (this.native) {
      mcp.files = { command: process.execPath, args: [program("server-filesystem"), this.files] };
      mcp.pipe = { command: process.execPath, args: [...telling(this.told("pipe")), "stdio"], env: ["HUSH=TOOL_PIPE"] };
    } else {
      mcp.files = { command: "node" };
    }
    return { tools: { schemaTokens: 100_000, mcp }, toolApproval: { rules } };
  }

  async serve() {
    const more = { ...secrets, TIDEMARK_LOG_LEVEL: "debug" };
    this.site = await starts[this.host](this.built, this.model.url, { home: this.home, more, hear: (text) => { this.said += text; } });
    if (!this.native) await (await this.site.bucket()).put("config.json", JSON.stringify(this.document()));
  }

  // cut ends the host where it stands and begins anew on what it kept.
  async cut() {
    await this.site.stop("SIGKILL");
    await this.serve();
  }

  async stop() {
    await this.site?.stop();
    for (const s of [this.every, this.own, this.late]) await (s?.kill ?? s?.stop)?.call(s);
    await this.model?.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  // fresh is a word that is in no other test: it names a conversation, and a part of the model.
  fresh(what) {
    return `${what}-${process.pid}-${++count}x`;
  }

  async api(at, init = {}) {
    const body = init.body === undefined || typeof init.body === "string" ? init.body : JSON.stringify(init.body);
    const r = await fetch(this.site.url + at, { ...init, body, signal: AbortSignal.timeout(PATIENCE), headers: { authorization: `Bearer ${token}`, ...(typeof init.body === "object" && { "content-type": "application/json" }), ...init.headers } });
    const text = await r.text();
    this.said += text;
    assert.equal(r.status, init.status ?? 200, `${at}: ${r.status} ${text.slice(0, 500)}`);
    return r.headers.get("content-type")?.includes("json") && text ? JSON.parse(text) : text;
  }

  // say sends a message and gives the answer.
  say(session, text, status) {
    return this.api(`/v1/sessions/${encodeURIComponent(session)}/messages`, { method: "POST", body: { text }, status });
  }

  // turn has the model play a part in a conversation of its own, and gives the answer with the results of the calls of
  // each round, as the model was sent them.
  async turn(what, ...steps) {
    const word = this.fresh(what);
    this.model.play(word, ...steps);
    const answer = await this.say(word, `Now ${word}, please.`);
    return { word, answer, results: this.results(word) };
  }

  // results are those that each request of a part ended with, without the marks of the cache.
  results(word) {
    const rounds = this.model.of(word).map((b) => b.messages.at(-1).content).map((c) => (Array.isArray(c) ? c.filter((b) => b.type === "tool_result").map(({ cache_control, ...r }) => r) : []));
    return rounds.filter((r) => r.length > 0);
  }

  approvals(session) {
    return this.api(`/v1/sessions/${encodeURIComponent(session)}/approvals`).then((r) => r.approvals);
  }

  // cli runs the program beside the server: at its home natively, else by its address.
  async cli(...args) {
    const env = { PATH: process.env.PATH, HOME: this.home, TIDEMARK_HOME: this.native ? this.home : path.join(this.home, "none"), TIDEMARK_TOKEN: token, NO_COLOR: "1" };
    if (!this.native) env.TIDEMARK_SERVER = this.site.url;
    const r = await new Promise((done) => {
      execFile(this.binary, args, { env, timeout: PATIENCE }, (e, stdout, stderr) => done({ code: e ? (e.code ?? -1) : 0, stdout, stderr, text: stdout + stderr }));
    });
    this.said += r.text;
    return r;
  }

  // until waits for something that is true.
  until(what, look) { return wait(look, what); }

  // hushed looks for the values of secrets in all that was said.
  hushed() {
    for (const [name, value] of Object.entries(secrets)) {
      const at = this.said.indexOf(value);
      assert.ok(at < 0, `the value of ${name} is shown: ${this.said.slice(Math.max(0, at - 300), at + 100)}`);
    }
  }
}

// The proxy, tried with the official clients on both hosts against a provider of ours that is as strict as the real
// ones (upstream.mjs). After each test no request may have broken a rule of the API.
// SHOW=file keeps what was refused.
// Run by: node test/proxy/proxy.mjs [binary] [folder of the built Worker] [native,workerd] [parts,…]

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, describe } from "node:test";
import { native, token, workerd } from "../clients/targets.mjs";
import { anthropicAt, openaiAt } from "./client.mjs";
import { Upstream } from "./upstream.mjs";

const parts = ["untouched", "faults", "phantom", "chat", "tags", "identity", "paging", "episodes", "storm", "sizes", "others"];
const [binary = "bin/tidemark", folder = "dist", hosts = "native,workerd", only = parts.join(",")] = process.argv.slice(2);
const starts = { native: (...a) => native(binary, ...a), workerd: (...a) => workerd(folder, ...a) };
export const WINDOW = 40_000; // tokens, so that a session of a test passes all zones

let count = 0;

// World is a host with the proxy, and the provider behind it.
class World {
  constructor(host) {
    Object.assign(this, { host, binary: path.resolve(binary), folder: path.resolve(folder), token, window: WINDOW });
  }

  async start() {
    this.up = await new Upstream().start();
    this.home = mkdtempSync(path.join(tmpdir(), "proxy-"));
    await this.serve();
  }

  async serve() {
    this.site = await starts[this.host](this.up.url, { home: this.home, more: this.variables() });
    this.url = this.site.url;
  }

  variables() {
    return { TIDEMARK_PROXY_WINDOW: String(WINDOW), TIDEMARK_PROXY_CHATUPSTREAM: `${this.up.url}/v1`, TIDEMARK_COMPACTION_EPISODES_BUDGET: "9000" };
  }

  async stop() {
    await this.site?.stop();
    await this.up?.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  // restart ends the server where it stands and begins anew on what it kept.
  async restart() {
    await this.site.stop("SIGKILL");
    await this.serve();
  }

  // fresh names a conversation; its words are in no other test.
  fresh(what = "talk") {
    return `${what}-${process.pid}-${++count}x`;
  }

  anthropic({ key = "sk-clients-own", headers, ...more } = {}) {
    return anthropicAt(this.url, { apiKey: key, defaultHeaders: { "x-tidemark-token": token, ...headers }, ...more });
  }
  openai({ key = "sk-clients-own", headers, ...more } = {}) {
    return openaiAt(this.url, { apiKey: key, defaultHeaders: { "x-tidemark-token": token, ...headers }, ...more });
  }

  // key names the conversation that the proxy keeps of a client.
  key(session, key = "sk-clients-own") {
    return `agent:main:proxy:dm:${createHash("sha256").update(`Bearer ${key}\n${session}`).digest("hex").slice(0, 32)}`;
  }
  async api(at, init = {}) {
    const r = await fetch(this.url + at, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
    const text = await r.text();
    assert.equal(r.status, 200, `${at}: ${r.status} ${text.slice(0, 300)}`);
    return r.headers.get("content-type")?.includes("json") && !at.includes("jsonl") ? JSON.parse(text) : text;
  }
}

const tests = await Promise.all(only.split(",").map(async (name) => [name, (await import(`./${name}.mjs`)).default]));

for (const host of hosts.split(",")) {
  describe(host, () => {
    const w = new World(host);
    before(() => w.start());
    after(() => w.stop());
    afterEach(() => {
      const broken = w.up.broken().map((c) => `${c.path}: ${c.broken}`);
      if (process.env.SHOW && broken.length) writeFileSync(process.env.SHOW, JSON.stringify(w.up.calls.filter((c) => c.told).map((c) => ({ broken: c.broken, raw: JSON.parse(c.raw) }))));
      assert.deepEqual(broken, [], "requests that the API refused");
      assert.equal(w.up.failed, undefined);
    });
    for (const [name, add] of tests) describe(name, () => add(w));
  });
}

// Tests of what stands before wrangler. Run by: node --test build/

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { hold, secrets, started, taken, upload } from "./cloud.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "cloud-"));
after(() => rmSync(folder, { recursive: true }));
const tokenOf = (file) => readFileSync(file, "utf8").match(/^TIDEMARK_TOKEN=(.*)$/m)[1];

test("a file of secrets gets a token once, and nobody else reads it", () => {
  const made = secrets(path.join(folder, "none"));
  const copied = path.join(folder, "copied");
  copyFileSync(new URL("../.dev.vars.example", import.meta.url), copied);
  secrets(copied);
  for (const file of [made, copied]) {
    assert.match(tokenOf(file), /^[\w-]{32}$/);
    assert.equal(statSync(file).mode & 0o077, 0);
    const first = tokenOf(file);
    secrets(file);
    assert.equal(tokenOf(file), first);
  }
  assert.notEqual(tokenOf(made), tokenOf(copied));
  const own = path.join(folder, "own");
  writeFileSync(own, "OPENAI_API_KEY=k\nTIDEMARK_TOKEN=mine\n");
  secrets(own);
  assert.equal(readFileSync(own, "utf8"), "OPENAI_API_KEY=k\nTIDEMARK_TOKEN=mine\n");
});

test("one at a time has the state; who has gone does not", () => {
  const lock = path.join(folder, "state", "dev.pid");
  assert.equal(hold(lock), 0);
  assert.equal(hold(lock), process.pid);
  for (const stale of ["2147483646", "", "x"]) {
    writeFileSync(lock, stale);
    assert.equal(hold(lock), 0, stale);
  }
});

test("a port that somebody listens at is taken", async () => {
  const server = net.createServer();
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  const { port } = server.address();
  assert.equal(await taken(port), true);
  await new Promise((r) => server.close(r));
  assert.equal(await taken(port), false);
});

test("whoever reads a file of secrets into a shell has it in the programs started from there", () => {
  const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
  for (const [name, text] of [["make dev", started(8787)], ["README.md", read("README.md")], ["docs/deploy.md", read("docs/deploy.md")]]) {
    const lines = text.match(/[^\n`]*\. \.\/\.(?:dev\.vars|secrets)(?!\.)[^\n`]*/g);
    assert.ok(lines, `${name} shows none`);
    for (const line of lines) {
      const command = line.match(/(?:set -a; )?\. \.\/\.(?:dev\.vars|secrets)(?:; set \+a)?/)[0];
      const cwd = mkdtempSync(path.join(folder, "shell-"));
      for (const file of [".dev.vars", ".secrets"]) writeFileSync(path.join(cwd, file), "TIDEMARK_TOKEN=mine\n");
      const env = { PATH: process.env.PATH };
      assert.equal(execFileSync("sh", ["-c", `${command}; printenv TIDEMARK_TOKEN || true`], { cwd, env, encoding: "utf8" }), "mine\n", `${name}: ${line}`);
    }
  }
});

test("what wrangler says of an upload is read", () => {
  const text = "Total Upload: 9704.45 KiB / gzip: 2409.18 KiB\nBinding  Resource\nenv.SESSION (Session)  Durable Object\nenv.AI  AI\n";
  assert.deepEqual(upload(text), { bytes: 9937357, bindings: ["AI", "SESSION"] });
  assert.ok(Number.isNaN(upload("nothing").bytes));
});

test("an environment of wrangler.toml says its name, the one without a name says none", () => {
  const toml = readFileSync(new URL("../wrangler.toml", import.meta.url), "utf8");
  const [top, ...rest] = toml.split(/^\[env\./m);
  assert.ok(rest.length > 0 && !top.includes("TIDEMARK_ENV"));
  for (const text of rest) assert.match(text, new RegExp(`^vars = .*TIDEMARK_ENV = "${text.match(/^\w+/)[0]}"`, "m"));
});

// The fake Graph API as a program, for tests in JavaScript: start() runs it and returns what it trusts
// and the doors by which a test holds its strings.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export async function start(env = {}) {
  const child = spawn("go", ["run", "./test/whatsapp"], { cwd: root, stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  const ended = new Promise((done) => child.once("exit", done));
  const line = await Promise.race([
    new Promise((done) => createInterface({ input: child.stdout }).once("line", done)),
    ended.then((code) => { throw new Error(`the fake ended with ${code}`); }),
  ]);
  const fake = JSON.parse(line);
  const ask = async (method, path, body) => {
    const res = await fetch(`${fake.url}/fake/${path}`, { method, body: body && JSON.stringify(body) });
    const answer = await res.json();
    if (!res.ok) throw new Error(`${path}: ${answer.error}`);
    return answer;
  };
  return {
    ...fake,
    say: async (said) => (await ask("POST", "say", said)).id,
    fail: (to, ...faults) => ask("POST", "fail", { to, faults }),
    webhook: (url) => ask("POST", "webhook", { url }),
    expire: (to) => ask("POST", "expire", { to }),
    state: () => ask("GET", "state"),
    stop: async () => { child.stdin.end(); await ended; },
  };
}

// Runs the pinned wrangler for `make dev`, `make deploy` and `make check`: without telemetry, and with what
// each needs made or checked before. Run by: node build/cloud.mjs dev|deploy|check [name of an environment]

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const wrangler = path.join(root, "build/node_modules/wrangler/bin/wrangler.js");

// Nothing but what was asked for goes over the network.
const quiet = {
  WRANGLER_SEND_METRICS: "false", WRANGLER_SEND_ERROR_REPORTS: "false", WRANGLER_HIDE_BANNER: "true", CLOUDFLARE_CF_FETCH_ENABLED: "false",
};

// The whole upload, uncompressed. Cloudflare counts no other size.
const { platform: { uploadBytes: MAX_UPLOAD } } = JSON.parse(readFileSync(new URL("budget.json", import.meta.url), "utf8"));

const HOST = "127.0.0.1";
// What make wasm touches and wrangler.toml has watched.
const built = path.join(root, ".cache", "wasm");
const state = path.join(root, ".wrangler", "state");

function fail(message) {
  console.error(message);
  process.exit(1);
}

// run starts wrangler in the foreground and gives its exit code. A signal that ends this program ends it; of
// Ctrl-C in a terminal it hears by itself.
function run(args) {
  const child = spawn(process.execPath, [wrangler, ...args], { cwd: root, stdio: "inherit", env: { ...process.env, ...quiet } });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => signal === "SIGINT" && process.stdin.isTTY || child.kill(signal));
  return new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? (signal ? 0 : 1))));
}

// secrets gives the file of an environment's secrets. Where there is none it is made from the example, and
// where its token is empty it gets one.
export function secrets(name) {
  const file = path.resolve(root, name);
  const text = readFileSync(existsSync(file) ? file : path.join(root, ".dev.vars.example"), "utf8");
  if (!/^TIDEMARK_TOKEN=/m.test(text)) fail(`${name} sets no TIDEMARK_TOKEN: add the line TIDEMARK_TOKEN=, and it is filled in`);
  const token = randomBytes(24).toString("base64url");
  const filled = text.replace(/^TIDEMARK_TOKEN=[ \t]*$/m, `TIDEMARK_TOKEN=${token}`);
  if (filled === text) return file;
  writeFileSync(file, filled, { mode: 0o600 });
  chmodSync(file, 0o600);
  console.log(`${name} has a new TIDEMARK_TOKEN; a model's key goes there, too`);
  return file;
}

// taken tells whether somebody listens at a port.
export function taken(port) {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", (e) => (e.code === "EADDRINUSE" ? resolve(true) : reject(e)));
    server.listen(port, HOST, () => server.close(() => resolve(false)));
  });
}

// hold keeps a second one off the same state: two workerd over one database would damage it. It gives the
// id of the process that has it, or 0 and it is ours.
export function hold(lock) {
  mkdirSync(path.dirname(lock), { recursive: true });
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx" });
    return 0;
  } catch (e) {
    if (e.code !== "EEXIST") throw e;
  }
  const pid = Number(readFileSync(lock, "utf8"));
  try {
    process.kill(pid, 0);
    if (pid > 0) return pid;
  } catch { /* it is gone */ }
  rmSync(lock, { force: true });
  return hold(lock);
}

// started says where it runs. The line for the shell exports what it reads, as other programs need it.
export const started = (port) => `http://${HOST}:${port}; the token is in .dev.vars: set -a; . ./.dev.vars; set +a (read at start only: after a change start make dev again); state is in .wrangler/state`;

async function dev() {
  const port = Number(process.env.PORT || 8787);
  if (!Number.isInteger(port) || port < 1 || port > 65535) fail(`PORT=${process.env.PORT}: want a number from 1 to 65535`);
  const lock = path.join(state, "dev.pid");
  const other = hold(lock);
  if (other) fail(`make dev runs already (process ${other}) on the state in .wrangler/state: use that one or end it first`);
  process.on("exit", () => rmSync(lock, { force: true }));
  if (await taken(port)) fail(`port ${port} is taken, by make run or another program: end it, or choose one with PORT=8788 make dev`);
  secrets(".dev.vars");
  mkdirSync(path.dirname(built), { recursive: true });
  writeFileSync(built, "");
  console.log(started(port));
  // Without an account the AI binding is there and always fails.
  return run(["dev", "--local", "--var", "TIDEMARK_AI:off", "--var", "TIDEMARK_DEV:1", "--ip", HOST, "--port", String(port), "--persist-to", state, "--env", ""]);
}

async function deploy(env) {
  const file = secrets(process.env.SECRETS || (env ? `.secrets.${env}` : ".secrets"));
  const code = await run(["deploy", "--env", env, "--secrets-file", file]);
  if (code === 0) console.log(`The token is in ${path.basename(file)}. More secrets go there and up with the next make deploy.`);
  return code;
}

// upload gives what a deployment would send: bytes, uncompressed, and the names of its bindings.
export function upload(text) {
  const size = text.match(/Total Upload: ([\d.]+) KiB/);
  const bindings = [...text.matchAll(/^env\.(\w+)/gm)].map((m) => m[1]).sort();
  return { bytes: size ? Math.round(Number(size[1]) * 1024) : NaN, bindings };
}

// environments gives the names of those in wrangler.toml.
const environments = () => [...readFileSync(path.join(root, "wrangler.toml"), "utf8").matchAll(/^\[env\.(\w+)\]/gm)].map((m) => m[1]);

// check makes every upload without sending it.
function check() {
  let first;
  for (const env of ["", ...environments()]) {
    const out = path.join(root, ".cache", "upload");
    const args = ["deploy", "--dry-run", "--env", env, "--outdir", out];
    const r = spawnSync(process.execPath, [wrangler, ...args], { cwd: root, encoding: "utf8", env: { ...process.env, ...quiet } });
    const { bytes, bindings } = upload(r.stdout);
    if (r.status !== 0 || !bytes) fail(`wrangler ${args.join(" ")}\n${r.stdout}${r.stderr}`);
    console.log(`upload${env && ` of ${env}`}: ${bytes} of ${MAX_UPLOAD} bytes; ${bindings.join(" ")}`);
    if (bytes > MAX_UPLOAD) fail(`the upload is ${bytes - MAX_UPLOAD} bytes over what Cloudflare takes`);
    const alike = bindings.filter((b) => b !== "TIDEMARK_ENV"); // the one thing in which they differ
    first ??= alike;
    if (String(first) !== String(alike)) fail(`wrangler.toml: env.${env} has the bindings ${alike}, the top has ${first}; they are not inherited`);
  }
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [what, env = ""] = process.argv.slice(2);
  const all = { dev, deploy, check };
  if (!Object.hasOwn(all, what ?? "")) fail("usage: cloud.mjs dev|deploy|check [name of an environment]");
  if (env && !environments().includes(env)) fail(`ENV=${env}: wrangler.toml has no such environment, only ${environments().join(", ")} and the one without a name`);
  process.exit(await all[what](env));
}

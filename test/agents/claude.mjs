// Claude Code itself: where npm put its program, and a headless run of it with nothing of this machine's user.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const NAME = "@anthropic-ai/claude-code";

// find gives {program, version}, or {skip}, which says why there is none for this platform. npm installs the program
// of a platform as an optional dependency, which it leaves out in silence where it does not fit, so a program that is
// missing on a platform that has one is an error. CLAUDE names another program.
export function find() {
  if (process.env.CLAUDE) return { program: process.env.CLAUDE, version: process.env.CLAUDE };
  const require = createRequire(import.meta.url);
  const { version, optionalDependencies } = JSON.parse(readFileSync(require.resolve(`${NAME}/package.json`)));
  const musl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime ? "-musl" : "";
  const platform = `${process.platform}-${process.arch}${musl}`, name = `${NAME}-${platform}`;
  if (!optionalDependencies[name]) return { skip: `npm has no program of Claude Code ${version} for ${platform}` };
  const program = require.resolve(`${name}/package.json`).replace(/package\.json$/, process.platform === "win32" ? "claude.exe" : "claude");
  if (!existsSync(program)) throw new Error(`${name} has no ${program}; run npm ci --prefix test/agents`);
  return { program, version };
}

// quiet keeps Claude Code from all that is not a call of the model. IS_SANDBOX lets root skip permissions; the key is
// nobody's.
const quiet = {
  ANTHROPIC_API_KEY: "sk-ant-nobodys-key", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", DISABLE_ERROR_REPORTING: "1",
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", IS_SANDBOX: "1", TERM: "dumb",
};
export const environment = (home, upstream, more) => ({ PATH: process.env.PATH, HOME: home, ANTHROPIC_BASE_URL: upstream, ...quiet, ...more });

// headless are the arguments of a run that answers once, a JSON line for each event.
export const headless = ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"];

// started runs a command and gives {child, ended}; ended is {code, signal, out, err}. It is killed with whoever waits.
export function started([program, ...args], { cwd, env, input = "", heard }) {
  const child = spawn(program, args, { cwd, env, stdio: "pipe" });
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  let out = "", err = "";
  child.stdout.on("data", (d) => { out += d; heard?.(out); });
  child.stderr.on("data", (d) => { err += d; });
  child.stdin.on("error", () => {}); // of a command that reads none
  child.stdin.end(input);
  const ended = new Promise((done, failed) => {
    child.once("error", failed);
    child.once("close", (code, signal) => { process.off("exit", end); done({ code, signal, out, err }); });
  });
  return { child, ended };
}

// events are the JSON lines of a run.
export const events = (out) => out.split("\n").filter(Boolean).map((line) => JSON.parse(line));

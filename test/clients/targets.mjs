// The two hosts that real clients are tried against: the native binary and the Worker in workerd. Both talk
// to one model of ours, and want one token.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import "../connections.mjs";

export const token = "open-sesame-1f2e3d";
export const page = "https://chat.example.com"; // another origin, which may call

const variables = (model) => ({
  ANTHROPIC_API_KEY: "the-servers-own-key", TIDEMARK_MODEL_BASEURL: model, TIDEMARK_MODEL_ID: "fake-1", TIDEMARK_TOKEN: token,
  TIDEMARK_SERVER_ORIGINS: page, TIDEMARK_LOG_LEVEL: "warn", TIDEMARK_SERVER_PINGSECONDS: "2",
});

// native serves with a binary. With home, a folder, what it keeps outlives it; more are variables of the server; hear is
// told what it writes.
export async function native(binary, model, { home: kept, more, hear } = {}) {
  const home = kept ?? mkdtempSync(path.join(tmpdir(), "clients-"));
  const child = spawn(path.resolve(binary), ["serve", "--listen", "127.0.0.1:0"], {
    env: { PATH: process.env.PATH, HOME: home, TIDEMARK_HOME: home, TIDEMARK_SERVER_GRACESECONDS: "1", ...variables(model), ...more },
    stdio: ["ignore", "pipe", hear ? "pipe" : "inherit"],
  });
  if (hear) for (const s of [child.stdout, child.stderr]) s.on("data", (d) => hear(String(d)));
  const ended = new Promise((done) => child.once("exit", done));
  let said = "";
  const url = await new Promise((found, failed) => {
    child.once("exit", (code) => failed(new Error(`it ended with ${code}: ${said}`)));
    child.stdout.on("data", (d) => {
      const [, at] = (said += d).match(/serves at (http:\S+)/) ?? [];
      if (at) found(at);
    });
  });
  const stop = async (signal = "SIGTERM") => {
    child.kill(signal);
    await ended;
    if (!kept) rmSync(home, { recursive: true, force: true });
  };
  return { url, stop, pid: child.pid };
}

// workerd serves the Worker that was built into a folder; home, more and hear are those of native. bucket is its own.
export async function workerd(folder, model, { home, more, hear } = {}) {
  const { start } = await import("../workerd.mjs");
  const { TIDEMARK_TOKEN, ...bindings } = { ...variables(model), ...more };
  const w = await start(path.resolve(folder), bindings, {
    token: TIDEMARK_TOKEN, disk: home,
    more: hear && { handleRuntimeStdio: (out, err) => { for (const s of [out, err]) s.on("data", (d) => hear(String(d))); } },
  });
  return { url: w.url("/").replace(/\/$/, ""), stop: w.dispose, get: w.get, bucket: () => w.mf.getR2Bucket("BUCKET") };
}

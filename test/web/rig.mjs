// What the tests of the page stand on: a host of ours, a browser, and a page that may not complain.

import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import "../connections.mjs";
import { PATIENCE } from "../patience.mjs";
import { freePort } from "../port.mjs";

export { PATIENCE };

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const TOKEN = "open sesame";

// What is tested: HOSTS=native or workerd, or both.
export const hosts = (process.env.HOSTS ?? "native,workerd").split(",");
const binary = path.resolve(root, process.env.TIDEMARK_BIN ?? "bin/tidemark");
const worker = path.resolve(root, process.env.TIDEMARK_WORKER ?? "dist");
const assets = path.resolve(root, process.env.TIDEMARK_ASSETS ?? "web/dist");

// host is a running server at url that can be killed, as by a power cut, and started again on the same port
// and disk.
export async function host(kind, model, { token = TOKEN, vars = {} } = {}) {
  const disk = mkdtempSync(path.join(tmpdir(), "tidemark-web-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { ANTHROPIC_API_KEY: "fake-key", TIDEMARK_MODEL_BASEURL: model.url, TIDEMARK_MODEL_ID: "fake-1", TIDEMARK_TOKEN: token, TIDEMARK_SERVER_GRACESECONDS: "1", TIDEMARK_LOG_LEVEL: "warn", ...vars };
  const self = { kind, url, disk, said: "" };
  const command = kind === "native"
    ? [binary, ["serve", "--listen", `127.0.0.1:${port}`], { ...env, HOME: disk, TIDEMARK_HOME: disk, PATH: process.env.PATH }]
    : [process.execPath, [path.join(root, "test/serve.mjs"), "--folder", worker, "--disk", disk, "--port", String(port), "--assets", assets, ...Object.entries(env).flatMap(([k, v]) => ["--var", `${k}=${v}`])], process.env];
  let child;
  self.start = async () => {
    child = spawn(command[0], command[1], { cwd: disk, env: command[2], detached: true, stdio: ["ignore", "pipe", "pipe"] });
    child.stderr.on("data", (d) => { self.said += d; });
    await new Promise((up, no) => {
      let out = "";
      child.stdout.on("data", (d) => {
        out += d;
        if (/ serves at |"url"/.test(out)) up();
      });
      child.once("exit", (code) => no(new Error(`${kind} ended with ${code}: ${self.said}`)));
    });
  };
  self.kill = () => new Promise((done) => {
    if (!child || child.exitCode !== null || child.signalCode) return done();
    child.once("exit", done);
    process.kill(-child.pid, "SIGKILL");
  });
  self.close = async () => {
    await self.kill();
    rmSync(disk, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  // ask is a request beside the page's.
  self.ask = async (method, where, body) => {
    const r = await fetch(url + where, { method, headers: { authorization: `Bearer ${token}` }, body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body) });
    const text = await r.text();
    if (!r.ok) throw new Error(`${method} ${where}: ${r.status} ${text}`);
    return text.startsWith("{") ? JSON.parse(text) : text;
  };
  await self.start();
  return self;
}

function browserPath() {
  const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
  const places = (process.env.PATH ?? "").split(path.delimiter).flatMap((dir) => names.map((n) => path.join(dir, n)));
  for (const p of [process.env.CHROMIUM, ...places].filter(Boolean)) {
    try {
      accessSync(p, constants.X_OK);
      return p;
    } catch {
      // not this one
    }
  }
  throw new Error("no Chromium here: run test/web/chromium.sh, or set CHROMIUM to one");
}

export const launch = () => chromium.launch({ executablePath: browserPath(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });

// visit opens the page as a person with the token. What it complains of, and every request to elsewhere, is in
// complaints; a test that expects some takes them out by allow, a pattern.
export async function visit(browser, server, { key = "", token = TOKEN, allow, size = {}, context } = {}) {
  context ??= await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true, ...size });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !allow?.test(m.text())) complaints.push(`${m.type()}: ${m.text()} ${m.location().url}`); });
  page.on("pageerror", (e) => complaints.push(`uncaught: ${e.stack ?? e}`));
  page.on("request", (r) => { if (!r.url().startsWith(server.url) && !/^(data|blob):/.test(r.url())) complaints.push(`request to ${r.url()}`); });
  if (token) await page.addInitScript((t) => localStorage.getItem("tidemark.token") ?? localStorage.setItem("tidemark.token", t), token);
  await page.goto(`${server.url}/${key ? `#/s/${encodeURIComponent(key)}` : ""}`);
  return Object.assign(page, { complaints });
}

export const box = (page) => page.getByRole("textbox", { name: "Message" });
export async function say(page, text) {
  await box(page).fill(text);
  await box(page).press("Enter");
}
// shown waits until a text stands in the conversation.
export const shown = (page, text) => page.locator(".log").getByText(text).first().waitFor();
// idle waits until no answer is in work and nothing waits.
export const idle = (page) => page.waitForFunction(() => !document.querySelector(".working, .sent") && document.querySelector(".log")).catch(async (e) => {
  throw new Error(`${e.message}\nit shows ${JSON.stringify(await page.locator(".working, .sent").evaluateAll((all) => all.map((x) => x.outerHTML.slice(0, 300))))}`);
});

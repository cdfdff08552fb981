// What open sockets cost: memory of the process by their number, and how long one turn takes to reach all of
// them, on the native binary and in workerd (Linux); and in workerd without us, which is the floor. Run by: node test/bench/sockets.mjs [built Worker]
// [native binary]

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Miniflare, compatibility, start, wait } from "../workerd.mjs";
import { dial } from "../ws/client.mjs";

const folder = path.resolve(process.argv[2] ?? "dist");
const binary = path.resolve(process.argv[3] ?? "bin/tidemark");
const COUNT = Number(process.env.SOCKETS || 1000);
const TOKEN = "bench";
const SPREAD = 100; // sessions, in the second row

const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);

// child finds the workerd that this process started.
function child() {
  for (const pid of readdirSync("/proc").filter((f) => /^\d+$/.test(f))) {
    try {
      const [, name, , parent] = /^\d+ \((.*)\) (\S) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
      if (Number(parent) === process.pid && name.startsWith("workerd")) return Number(pid);
    } catch {
      // it has ended
    }
  }
  throw new Error("no workerd");
}

async function native() {
  const home = mkdtempSync(path.join(tmpdir(), "sockets-"));
  const env = { PATH: process.env.PATH, HOME: home, TIDEMARK_HOME: home, TIDEMARK_TOKEN: TOKEN };
  const p = spawn(binary, ["serve", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  p.stdout.on("data", (d) => (said += d));
  const [, base] = await wait(() => /serves at (http:\S+)/.exec(said));
  return {
    pid: p.pid, url: (at) => new URL(at, base).href,
    stop: () => new Promise((r) => { p.on("exit", () => { rmSync(home, { recursive: true, force: true }); r(); }); p.kill("SIGTERM"); }),
  };
}

async function workerd() {
  const w = await start(folder, { TIDEMARK_TOKEN: TOKEN });
  return { pid: child(), url: w.url, stop: () => w.dispose() };
}

// A Worker whose object keeps sockets and says the least that measure listens for.
const BARE = `
import { DurableObject } from "cloudflare:workers";
export class Keeper extends DurableObject {
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server, ["k"]);
    server.serializeAttachment({ id: "x" });
    server.send('{"type":"hello"}');
    return new Response(null, { status: 101, webSocket: client, headers: { "sec-websocket-protocol": "tidemark.v1" } });
  }
  webSocketMessage() { for (const ws of this.ctx.getWebSockets("k")) ws.send('{"type":"done"}'); }
}
export default { fetch(r, env) { return env.KEEPER.get(env.KEEPER.idFromName(new URL(r.url).searchParams.get("session"))).fetch(r); } };`;

async function bare() {
  const mf = new Miniflare({
    ...compatibility, modules: true, script: BARE, cf: false, host: "127.0.0.1", port: 0,
    durableObjects: { KEEPER: { className: "Keeper", useSQLite: true } },
  });
  const base = await mf.ready;
  return { pid: child(), url: (at) => new URL(at, base).href, stop: () => mf.dispose() };
}

// measure opens the sockets over some sessions and has one of them post.
async function measure(name, begin, sessions) {
  const w = await begin();
  const open = (i) => dial(w.url(`/ws?session=s${i % sessions}&create=1`), { token: TOKEN });
  const first = [];
  for (let i = 0; i < sessions; i++) first.push(await open(i)); // what a session costs is none of it
  await Promise.all(first.map((c) => c.next("hello")));
  await new Promise((r) => setTimeout(r, 2000));
  const before = rss(w.pid);
  const began = performance.now();
  const all = [...first];
  while (all.length < sessions + COUNT) {
    const more = Array.from({ length: Math.min(50, sessions + COUNT - all.length) }, (_, i) => open(all.length + i));
    all.push(...await Promise.all(more));
  }
  await Promise.all(all.slice(sessions).map((c) => c.next("hello", undefined, 60_000)));
  const opened = performance.now() - began;
  await new Promise((r) => setTimeout(r, 3000));
  const idle = rss(w.pid);
  const asked = performance.now();
  first[0].say({ type: "post", text: "What does the tide do?" });
  await Promise.all(all.filter((_, i) => i % sessions === 0).map((c) => c.next("done", undefined, 60_000)));
  const turn = performance.now() - asked;
  console.log(`${name}: sockets=${COUNT} sessions=${sessions} rss_before=${(before / 1024).toFixed(1)}MB rss_idle=${(idle / 1024).toFixed(1)}MB ` +
    `each=${((idle - before) / COUNT).toFixed(1)}KB opened=${opened.toFixed(0)}ms turn_to_all=${turn.toFixed(0)}ms rss_after_turn=${(rss(w.pid) / 1024).toFixed(1)}MB`);
  for (const c of all) c.ws.terminate();
  await w.stop();
}

for (const sessions of [1, SPREAD]) {
  await measure("native", native, sessions);
  await measure("workerd", workerd, sessions);
  await measure("workerd without us", bare, sessions);
}
process.exit(0);

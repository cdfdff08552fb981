// How much things take: the module, memory by live sessions and by turns, bytes between JavaScript and Go.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { memory, num, pool, startWorker, table } from "./rig.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const MB = (n) => num(n / 1e6);
const debug = async (w) => w.json("GET", "/debug/host");

// size of the module and of what a deployment uploads.
export function size({ folder, root }) {
  const wasm = readFileSync(path.join(folder, "app.wasm"));
  const out = mkdtempSync(path.join(tmpdir(), "bench-"));
  const packed = (b) => [b.length, gzipSync(b, { level: 9 }).length,
    brotliCompressSync(b, { params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: b.length } }).length];
  const rows = [["app.wasm", ...packed(wasm).map((n) => n.toLocaleString("en-US")), ""]];
  try {
    const said = execFileSync(process.execPath, [path.join(root, "build/node_modules/wrangler/bin/wrangler.js"), "deploy", "--dry-run", "--config", path.join(root, "wrangler.toml"), "--outdir", out], {
      cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, WRANGLER_SEND_METRICS: "false", WRANGLER_HIDE_BANNER: "true", CLOUDFLARE_CF_FETCH_ENABLED: "false", WRANGLER_SEND_ERROR_REPORTS: "false" },
    });
    const files = readdirSync(out).filter((f) => /\.(js|mjs|wasm)$/.test(f)).map((f) => packed(readFileSync(path.join(out, f))));
    const total = [0, 1, 2].map((i) => files.reduce((n, f) => n + f[i], 0).toLocaleString("en-US"));
    rows.push(["upload of wrangler deploy --dry-run", ...total, /Total Upload.*/.exec(said)?.[0] ?? ""]);
  } catch (e) {
    rows.push(["upload of wrangler deploy --dry-run", "–", "–", "–", `failed: ${String(e.stderr || e.message).trim().split("\n").at(-1)}`]);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
  return ["### Size, bytes", table(["", "raw", "gzip -9", "brotli -9", "as wrangler says"], rows)];
}

// growth: memory of the instance over many turns, in one session and spread over 200. The window is small,
// so that the long session compacts now and then.
export async function growth({ folder, model, turns }) {
  const columns = {};
  for (const [label, sessions] of [["one session", 1], ["200 sessions", 200]]) {
    const w = await startWorker("ours", { folder, model, vars: { TIDEMARK_DEBUG: "1" } });
    for (let i = 0; i < sessions; i++) await w.call("PATCH", w.at(`grow-${i}`), { window: 32_000 });
    const line = [];
    const look = async () => { const h = await debug(w); line.push([h.memory, h.refs, memory(w.pid).rss, h.draining]); };
    await look();
    for (let done = 0; done < turns; done += turns / 10) {
      await pool(sessions === 1 ? 1 : 8, turns / 10, (i) => w.turn(`grow-${(done + i) % sessions}`, `Turn ${done + i}: what does the tide do? ${"The boat waits. ".repeat(20)}`));
      await look();
    }
    const infos = await w.json("GET", w.at("grow-0"));
    columns[label] = { line, compactions: infos.compactions };
    await w.stop();
  }
  const [one, many] = Object.values(columns);
  const rows = one.line.map(([m, refs, rss], i) => {
    const [m2, refs2, rss2] = many.line[i];
    return [String((i * turns) / 10), MB(m), String(refs), num(rss), MB(m2), String(refs2), num(rss2)];
  });
  return [`### Memory over ${turns.toLocaleString("en-US")} turns (the one session compacted ${one.compactions} times)`,
    table(["turns", "one session: WASM MB", "JS refs", "RSS MB", "200 sessions: WASM MB", "JS refs", "RSS MB"], rows)];
}

// live: memory by the number of sessions that are awake, each with a turn.
export async function live({ folder, model, counts }) {
  const rows = [];
  const seen = {};
  for (const [mode, kind, list] of [["JavaScript", "plain", counts], ["tables", "plain", counts], ["shared", "ours", counts]]) {
    const w = await startWorker(kind, { folder, model, vars: { TIDEMARK_DEBUG: "1", ...(mode === "tables" && { TABLES: "1" }) } });
    let there = 0;
    for (const n of [0, ...list]) {
      const more = n - there;
      await pool(8, more, (i) => w.turn(`live-${there + i}`, "What does the tide do?"));
      there = n;
      if (kind === "ours" && n === 0) await debug(w); // boots
      await sleep(1500);
      const m = memory(w.pid);
      if (kind === "ours") {
        const one = await debug(w);
        m.wasm = one.memory / 1e6;
        m.boots = one.boots;
        m.draining = one.draining;
      }
      (seen[mode] ??= {})[n] = m;
    }
    await w.stop();
  }
  const from = 10; // by then V8 has compiled what is hot
  for (const n of [0, ...counts]) {
    const [js, sh] = [seen.JavaScript[n], seen.shared[n]];
    const each = (mode) => (n > from && seen[mode][n] ? num((seen[mode][n].rss - seen[mode][from].rss) / (n - from)) : "");
    rows.push([n.toLocaleString("en-US"), num(js.rss), each("JavaScript"), each("tables"), num(sh.rss), each("shared"), num(sh.wasm), num(sh.code), String(sh.boots)]);
  }
  return [`### Memory of live sessions, MB (each: over the ${from} first, a session)`,
    table(["sessions", "JS: RSS", "each", "each, with as many tables", "shared: RSS", "each", "WASM", "compiled code", "boots"], rows)];
}

// crossings: what passes between JavaScript and Go in one turn.
export async function crossings({ folder, model, n }) {
  const w = await startWorker("counted", { folder, model });
  const out = [];
  for (const [label, shape] of [["an answer at once", { pieces: 20, pause: 0 }], ["an answer in 100 pieces 2 ms apart", { pieces: 100, pause: 2 }]]) {
    await model.take(shape);
    for (let i = 0; i < 3; i++) await w.turn(`cross-${shape.pause}`, "Good morning.");
    await sleep(300);
    await w.json("GET", "/debug/tally");
    for (let i = 0; i < n; i++) {
      await w.turn(`cross-${shape.pause}`, `What does the tide do at station ${i}?`);
      await sleep(20);
    }
    const tally = await w.json("GET", "/debug/tally");
    const kinds = Object.entries(tally).sort((a, b) => b[1].out + b[1].in - a[1].out - a[1].in);
    const total = kinds.reduce((t, [, k]) => ({ calls: t.calls + k.calls, out: t.out + k.out, in: t.in + k.in }), { calls: 0, out: 0, in: 0 });
    const row = ([kind, t]) => [kind, num(t.calls / n), Math.round(t.out / n).toLocaleString("en-US"), Math.round(t.in / n).toLocaleString("en-US")];
    out.push(`### Between JavaScript and Go in a turn: ${label}`, table(["", "crossings", "bytes out of Go", "bytes into Go"], [...kinds.map(row), row(["all", total])]));
  }
  await model.take({ pieces: 20, pause: 0 });
  await w.stop();
  return out;
}

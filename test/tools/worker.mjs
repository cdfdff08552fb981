// The small client of MCP where it lives: a Worker in workerd asks a server from npm, and says of one that is a program
// that it cannot be started.
//
//   node test/tools/worker.mjs dist

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../port.mjs";
import { start, wait } from "../workerd.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));

const port = await freePort(), url = `http://127.0.0.1:${port}/mcp`;
const every = spawn("node", [path.join(here, "../node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp"],
  { env: { ...process.env, PORT: String(port) }, stdio: "ignore" });
const w = await start(process.argv[2] ?? "dist", { TOOL_EVERY: "hush-hush-7" }, { token: "a-token-for-this-test" });
try {
  await wait(() => fetch(url).then(() => true, () => false));
  const bucket = await w.mf.getR2Bucket("BUCKET");
  await bucket.put("config.json", JSON.stringify({ tools: { mcp: {
    every: { url, secret: "TOOL_EVERY", allow: ["echo", "get-*"] }, files: { command: "node" }, gone: { url: "http://127.0.0.1:9/mcp" },
    unset: { url, secret: "TOOL_UNSET" },
  } } }));
  const text = await (await w.get("/v1/agents/main/tools")).text();
  const { sources, tools } = JSON.parse(text);
  const of = Object.fromEntries(sources.map((s) => [s.name, s]));
  assert.equal(of.every.state, "reachable", text);
  assert.equal(of.every.version, "2025-11-25");
  assert.ok(tools.some((t) => t.name === "every__echo") && !tools.some((t) => t.name.includes("toggle")), text);
  assert.equal(of.files.state, "gap");
  assert.match(of.files.error, /tools\.mcp\.files\.url/);
  assert.equal(of.gone.state, "error");
  assert.match(of.unset.error, /TOOL_UNSET is not set/);
  assert.ok(!text.includes("hush-hush-7"), "a secret is shown");
  const health = await (await w.get("/healthz")).text();
  assert.match(health, /TOOL_UNSET/);
  console.log("ok: a Worker asks servers of tools");
} finally {
  every.kill();
  await w.dispose();
}

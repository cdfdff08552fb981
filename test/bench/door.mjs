// What the proxy door adds to a request of 1 MB, natively: until the API has it, and until the client has a short
// answer. Each of 60 requests adds two messages to a history of 200 and is made straight to the API, passed on (off),
// observed and paged; the medians are told. Run by: node test/bench/door.mjs [binary]

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";

const binary = process.argv[2] ?? "bin/tidemark";
const answer = JSON.stringify({
  id: "m", type: "message", role: "assistant", model: "m", content: [{ type: "text", text: "ok" }], stop_reason: "end_turn",
  usage: { input_tokens: 60000, output_tokens: 1 },
});
let arrived = 0;
const api = http.createServer((q, r) => {
  q.resume();
  q.on("end", () => {
    arrived = performance.now();
    r.writeHead(200, { "content-type": "application/json" }).end(answer);
  });
}).listen(0, "127.0.0.1");
await once(api, "listening");
const base = `http://127.0.0.1:${api.address().port}`;
const home = mkdtempSync(path.join(tmpdir(), "door-"));
const server = spawn(binary, ["serve", "--listen", "127.0.0.1:0"], {
  env: { ...process.env, TIDEMARK_HOME: home, ANTHROPIC_API_KEY: "k", TIDEMARK_MODEL_BASEURL: base, TIDEMARK_MODEL_ID: "m", TIDEMARK_TOKEN: "t", TIDEMARK_LOG_LEVEL: "info" },
  stdio: ["ignore", "pipe", "pipe"],
});
const door = await new Promise((found, lost) => {
  let said = "";
  for (const s of [server.stdout, server.stderr]) {
    s.on("data", (d) => {
      const at = (said += d).match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
      if (at) found(at);
    });
  }
  server.on("exit", () => lost(new Error(said)));
});

const agent = new http.Agent({ keepAlive: true });
const post = (to, body, headers) => new Promise((done, failed) => {
  const from = performance.now();
  const q = http.request(`${to}/v1/messages`, {
    method: "POST", agent, headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "mine", "content-length": body.length, ...headers },
  }, (r) => r.resume().on("end", () => (r.statusCode === 200 ? done([arrived - from, performance.now() - from]) : failed(new Error(`status ${r.statusCode}`)))));
  q.on("error", failed);
  q.end(body);
});

let messages = [{ role: "user", content: "begin" }];
for (let i = 0; i < 100; i++) {
  messages.push({ role: "assistant", content: [{ type: "tool_use", id: `c${i}`, name: "Read", input: { file_path: `f${i}.go` } }] });
  messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: `c${i}`, content: `line of f${i}\n`.repeat(800) }] });
}
const tools = [{ name: "Read", description: "Read a file.", input_schema: { type: "object", properties: { file_path: { type: "string" } } } }];
const ways = { direct: [base, {}] };
for (const mode of ["off", "observe", "page"]) ways[mode] = [door, { "x-tidemark-token": "t", "x-tidemark-mode": mode, "x-tidemark-proxy": mode }];
const times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
let bytes = 0;
for (let n = 0; n < 60; n++) {
  messages = [...messages, { role: "assistant", content: "ok" }, { role: "user", content: `and ${n}` }];
  const body = Buffer.from(JSON.stringify({ model: "m", max_tokens: 10, tools, messages }));
  bytes = body.length;
  for (const [way, [to, headers]] of Object.entries(ways)) times[way].push(await post(to, body, headers));
}
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1].toFixed(2);
console.log(`${bytes} bytes; ms until the API has the request, and until the client has the answer`);
for (const [way, list] of Object.entries(times)) console.log(way.padEnd(8), median(list.slice(5).map((t) => t[0])), median(list.slice(5).map((t) => t[1])));
server.kill();
await once(server, "exit");
api.close();
rmSync(home, { recursive: true, force: true });
process.exit();

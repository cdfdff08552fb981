// The server of docs/page.md, as it stands there: what a browser sends it, and what it passes on.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const docs = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../docs/page.md");
const listening = (server) => new Promise((up) => server.listen(0, "127.0.0.1", () => up(server.address().port)));
const got = []; // what reached the server behind it
let behind, between, folder, url;

before(async () => {
  behind = createServer(async (req, res) => {
    let body = "";
    for await (const piece of req) body += piece;
    got.push({ path: decodeURIComponent(req.url), ...JSON.parse(body) });
    res.writeHead(200, { "content-type": "text/event-stream" }).end("data: {}\n\n");
  });
  const port = await listening(behind);
  const [sample] = [...readFileSync(docs, "utf8").matchAll(/^```js\n([\s\S]*?)^```/gm)].map((m) => m[1]).filter((code) => code.includes("createServer"));
  folder = mkdtempSync(path.join(tmpdir(), "tidemark-docs-"));
  // a free port, and its number told: the one change to it
  writeFileSync(path.join(folder, "between.mjs"), sample.replace(/\}\)\.listen\(.*\);/, '}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });'));
  between = spawn(process.execPath, ["between.mjs"], { cwd: folder, env: { ...process.env, TIDEMARK: `http://127.0.0.1:${port}`, TIDEMARK_TOKEN: "t" }, stdio: ["ignore", "pipe", "inherit"] });
  url = await new Promise((up, no) => {
    between.stdout.once("data", (d) => up(`http://127.0.0.1:${Number(d)}/chat`));
    between.once("exit", (code) => no(new Error(`between.mjs ended with ${code}`)));
  });
});
after(() => {
  between?.kill();
  behind?.close();
  behind?.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});
const send = async (body, cookie = "user=Ada") => {
  const answer = await fetch(url, { method: "POST", headers: { cookie }, body });
  await answer.text();
  return answer.status;
};

test("what is no question is refused, and nothing of it sent on", async () => {
  got.length = 0;
  for (const body of ["", "{", "null", "7", "{}", '{"id":"1"}', '{"text":7}', '{"text":" "}', '{"text":"a","id":7}', '{"text":"a","id":null}']) assert.equal(await send(body), 400, body);
  assert.equal(await send('{"text":"a"}', ""), 401);
  assert.deepEqual(got, []);
});

test("a question keeps its id; one without gets one of its own", async () => {
  got.length = 0;
  assert.equal(await send('{"text":"Hello","id":"1"}'), 200);
  for (let i = 0; i < 2; i++) assert.equal(await send('{"text":"Hello"}'), 200);
  assert.deepEqual(got[0], { path: "/v1/sessions/agent:main:site:dm:ada/messages?stream=1", text: "Hello", id: "1", channel: "site" });
  for (const { id } of got.slice(1)) assert.match(id, /^[0-9a-f-]{36}$/);
  assert.notEqual(got[1].id, got[2].id);
});

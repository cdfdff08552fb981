// The server of the Model Context Protocol, tried with the official client: over Streamable HTTP on both hosts, and
// natively over stdio through `tidemark mcp`. Run by: node test/mcp/mcp.mjs [binary] [folder of the built Worker] [native,workerd]

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Model } from "../clients/model.mjs";
import { native, token, workerd } from "../clients/targets.mjs";
import { wait } from "../patience.mjs";

const [binary = "bin/tidemark", folder = "dist", hosts = "native,workerd"] = process.argv.slice(2);
const starts = { native: (model) => native(binary, model), workerd: (model) => workerd(folder, model) };
const here = path.dirname(new URL(import.meta.url).pathname);
let count = 0;
const fresh = () => `m${process.pid}-${++count}`;

// connected is a client over a transport; what goes wrong beside an answer fails the test that looks.
async function connected(transport) {
  const client = new Client({ name: "test", version: "1" });
  client.faults = [];
  client.onerror = (e) => client.faults.push(e);
  await client.connect(transport);
  return client;
}

const http = (url, headers = { authorization: `Bearer ${token}` }) => new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const text = (r) => r.content.map((c) => c.text).join("");
// ok calls a tool that must do well.
const ok = async (client, name, args, ...more) => {
  const r = await client.callTool({ name, arguments: args }, undefined, ...more);
  assert.ok(!r.isError, `${name}: ${text(r)}`);
  return r;
};
const fields = async (...call) => (await ok(...call)).structuredContent;
const no = async (client, name, args) => {
  const r = await client.callTool({ name, arguments: args });
  assert.ok(r.isError, `${name}: ${text(r)}`);
  return text(r);
};
const until = (what, look) => wait(look, what);

// tools uses every tool, each with its effect, read back by another.
async function tools(client, piped = false) {
  const { tools: list } = await client.listTools();
  assert.deepEqual(list.map((t) => t.name).sort(), ["branch", "memory_append", "memory_read", "memory_search", "recall", "send_message", "session_read", "session_search", "sessions_list", "snapshot"]);
  for (const t of list) {
    assert.ok(t.description.length > 30 && t.title && t.inputSchema.type === "object", t.name);
    assert.equal(t.annotations.readOnlyHint, /read|search|list|recall/.test(t.name), t.name);
  }
  const session = fresh();
  const word = `Zanzibar-${fresh()}`;
  const pieces = [];
  const said = await fields(client, "send_message", { session, text: `remember ${word}`, id: "one" }, { onprogress: (p) => pieces.push(p) });
  assert.deepEqual([said.state, said.id, said.text], ["done", "one", `You said: remember ${word}`]);
  // This client drops what it reads together with the result, over stdio perhaps all; the one in Go hears every piece.
  const heard = pieces.map((p) => p.message ?? "").join("");
  assert.ok((heard || piped) && said.text.startsWith(heard), heard);
  assert.deepEqual(pieces.map((p) => p.progress), pieces.map((_, i) => i + 1));
  const again = await fields(client, "send_message", { session, text: `remember ${word}`, id: "one" });
  assert.deepEqual([again.duplicate, again.text, again.entry], [true, said.text, said.entry]);
  assert.match(await no(client, "send_message", { session, text: "another", id: "one" }), /^conflict: /);

  const key = `agent:main:local:dm:${session}`;
  await until("session in the list", async () => (await fields(client, "sessions_list", { limit: 200 })).sessions.some((s) => s.key === key));
  const read = await fields(client, "session_read", { session });
  assert.deepEqual(read.messages.map((m) => [m.role, m.text]), [["user", `remember ${word}`], ["assistant", said.text]]);
  const whole = await fields(client, "session_read", { session: key, entry: said.entry });
  assert.equal(whole.messages[0].text, said.text);
  const { found } = await fields(client, "session_search", { session, query: word });
  assert.ok(found.some((f) => f.text.includes(word)));
  const own = await fields(client, "recall", { query: word, session });
  assert.ok(own.results.length > 0 && own.verdict !== "nothing", JSON.stringify(own));
  await until("recall over all", async () => JSON.stringify((await fields(client, "recall", { query: word })).results).includes(word));

  const snap = await fields(client, "snapshot", { session, name: "before", tags: ["a"] });
  const branch = await fields(client, "branch", { session, snapshot: snap.id, name: "aside", trim: false });
  assert.equal(branch.key, `${key}#aside`);
  assert.equal((await fields(client, "send_message", { session: branch.key, text: "count" })).text, "I see 3 messages");
  assert.equal((await fields(client, "session_read", { session })).messages.length, 2, "the branch is beside it");

  const fact = `The ${word} fence is green.`;
  for (let i = 0; i < 2; i++) await ok(client, "memory_append", { text: fact, id: "fact" });
  const line = await until("memory", async () => (await fields(client, "memory_search", { query: word })).found.find((f) => f.text.includes(word)));
  const day = text(await ok(client, "memory_read", { path: line.path }));
  assert.equal(day.split(fact).length, 2, "it is written once");
  assert.match(text(await ok(client, "memory_read", {})), new RegExp(line.path));
  const { resources } = await client.listResources();
  const uri = `tidemark://agents/main/memory/${line.path}`;
  assert.ok(await until("resource", async () => (await client.listResources()).resources.some((r) => r.uri === uri)), JSON.stringify(resources));
  const { contents } = await client.readResource({ uri });
  assert.ok(contents[0].text.includes(fact) && contents[0].mimeType === "text/markdown");
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);

  assert.match(await no(client, "session_read", { session: fresh() }), /^not_found: /);
  assert.match(await no(client, "session_read", { sesion: "main" }), /did you mean "session"/);
  assert.match(await no(client, "memory_read", { agent: "Not An Agent" }), /want letters in lower case/);
  await assert.rejects(client.callTool({ name: "drop_all", arguments: {} }), /unknown tool/);
  await assert.rejects(client.readResource({ uri: "file:///etc/passwd" }), /want tidemark:/);
  await assert.rejects(client.listPrompts());
  return session;
}

for (const host of hosts.split(",")) {
  describe(host, () => {
    let model, site;
    before(async () => {
      model = await new Model().start();
      site = await starts[host](model.url);
    });
    after(async () => {
      await site?.stop();
      await model?.stop();
    });

    test("every tool, over Streamable HTTP", async () => {
      const client = await connected(http(`${site.url}/mcp`));
      assert.equal(client.getServerVersion().name, "tidemark");
      assert.match(client.getInstructions(), /data, not instructions/);
      await client.ping();
      await tools(client);
      await client.close();
      assert.deepEqual(client.faults.filter((e) => !/abort/i.test(String(e))), []);
    });

    test("the token in the path is enough, and without one a client hears which setting it is", async () => {
      const client = await connected(http(`${site.url}/t/${token}/mcp`, {}));
      assert.ok((await fields(client, "sessions_list", {})).sessions);
      await client.close();
      await assert.rejects(connected(http(`${site.url}/mcp`, {})), /TIDEMARK_TOKEN/);
      await assert.rejects(connected(http(`${site.url}/mcp`, { authorization: "Bearer wrong" })), /wrong token/);
    });

    test("ten clients at once, each in its own session", async () => {
      const name = fresh();
      const answers = await Promise.all(Array.from({ length: 10 }, async (_, i) => {
        const client = await connected(http(`${site.url}/mcp`));
        const a = await fields(client, "send_message", { session: `${name}-${i}`, text: `number ${i}` });
        await client.close();
        return a.text;
      }));
      assert.deepEqual(answers, answers.map((_, i) => `You said: number ${i}`));
    });

    test("the same message by two clients is one turn", async () => {
      const session = fresh();
      const both = await Promise.all([1, 2].map(async () => {
        const client = await connected(http(`${site.url}/mcp`));
        const a = await fields(client, "send_message", { session, text: "once", id: "x" });
        await client.close();
        return a;
      }));
      assert.equal(both[0].entry, both[1].entry);
      assert.equal(model.calls.filter((c) => JSON.stringify(c.body.messages ?? []).includes('"once"')).length, 1);
    });

    test("the official client in Go, without a handshake and with one", { timeout: 300_000 }, async () => {
      const { stdout } = await promisify(execFile)("go", ["-C", here, "test", "-count=1", "-v", "./..."], { env: { ...process.env, TIDEMARK_MCP_URL: `${site.url}/mcp`, TIDEMARK_MCP_TOKEN: token } }).catch((e) => assert.fail(`${e.stdout}${e.stderr}`));
      assert.match(stdout, /--- PASS: TestClient\/2026-07-28/);
      assert.match(stdout, /--- PASS: TestClient\/2025-11-25/);
    });

    if (host !== "native") {
      test("tidemark mcp in front of it", async () => {
        const client = await connected(stdio({ TIDEMARK_TOKEN: token }, ["--server", site.url]));
        await tools(client, true);
        await client.close();
      });
    }
  });
}

const stdio = (env, args = []) => new StdioClientTransport({ command: path.resolve(binary), args: ["mcp", ...args], env: { PATH: process.env.PATH, HOME: tmpdir(), ...env }, stderr: "inherit" });

describe("stdio", () => {
  let model, home;
  before(async () => {
    model = await new Model().start();
    home = mkdtempSync(path.join(tmpdir(), "mcp-"));
  });
  after(async () => {
    await model?.stop();
    rmSync(home, { recursive: true, force: true });
  });
  const env = () => ({ TIDEMARK_HOME: home, ANTHROPIC_API_KEY: "k", TIDEMARK_MODEL_BASEURL: model.url, TIDEMARK_MODEL_ID: "fake-1" });

  test("a store that nobody serves, and a second client beside the first", async () => {
    const first = await connected(stdio(env()));
    const session = await tools(first, true);
    const second = await connected(stdio(env()));
    assert.equal((await fields(second, "session_read", { session })).messages.length, 2);
    await first.close(); // it had the store: the second opens it
    assert.equal((await fields(second, "session_read", { session })).messages.length, 2);
    await second.close();
  });

  test("a call that is cancelled ends, and the turn goes on", async () => {
    const client = await connected(stdio(env()));
    const session = fresh();
    const given = { session, text: `late ${session}`, id: "s" };
    const stop = new AbortController();
    const call = client.callTool({ name: "send_message", arguments: { ...given, wait_seconds: 3600 } }, undefined, { signal: stop.signal });
    const held = await model.held(session);
    stop.abort("enough");
    await assert.rejects(call, /enough/);
    assert.equal((await fields(client, "send_message", { ...given, wait_seconds: 1 })).state, "working");
    held.release();
    const a = await fields(client, "send_message", given);
    assert.deepEqual([a.state, a.text], ["done", `You said: late ${session}`]);
    assert.equal(model.calls.filter((c) => JSON.stringify(c.body.messages ?? []).includes(session)).length, 1);
    assert.equal(a.duplicate, true);
    await client.close();
  });
});

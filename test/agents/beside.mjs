// What stands beside the proxy: a session trimmed and resumed, hooks, and our server of the Model Context Protocol.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { token } from "../clients/targets.mjs";
import { call, text } from "../proxy/upstream.mjs";
import { started } from "./claude.mjs";
import { prose } from "./work.mjs";

export default function (w) {
  // read has a session read so many files of 15 KB, four at once.
  async function read(desk, count, how) {
    const files = Array.from({ length: count }, (_, i) => desk.file(`chapter-${i}.txt`, prose(i, 15_000)));
    const rounds = [];
    for (let i = 0; i < count; i += 4) rounds.push(files.slice(i, i + 4).map((f) => call("Read", { file_path: f })));
    desk.script([...rounds, [text("I know the book.")]]);
    const run = await desk.claude(["Read the book."], how);
    assert.equal(run.text, "I know the book.");
    return run;
  }

  if (w.host === "native") {
    for (const known of [true, false]) {
      test(`tidemark trim, and claude --resume of it${known ? "" : ", with lines of unknown types"}`, async () => {
        const desk = w.desk("trim"), how = { treatment: null, mixed: true };
        const { session } = await read(desk, 24, how);
        const log = path.join(desk.logs, `${session}.jsonl`), was = readFileSync(log, "utf8");
        if (!known) {
          // As of a version to come: beside the chain, and a link of it.
          const lines = was.trimEnd().split("\n"), at = lines.findIndex((l) => JSON.parse(l).type === "assistant"), { uuid, timestamp } = JSON.parse(lines[at]);
          lines.splice(at + 1, 0, JSON.stringify({ type: "novelty", of: "2027", sessionId: session, timestamp }), JSON.stringify({ type: "gauge", parentUuid: uuid, uuid: crypto.randomUUID(), sessionId: session, timestamp, message: { gauge: [1, 2] } }));
          lines.push(JSON.stringify({ type: "farewell", sessionId: session, content: null }));
          writeFileSync(log, `${lines.join("\n")}\n`);
        }
        const kept = readFileSync(log, "utf8"), whole = desk.sent.at(-1).raw.length;
        const branch = JSON.parse(await desk.tidemark("trim", "--claude", "latest", "--json")), id = branch.session;
        assert.notEqual(id, session);
        assert.equal(readFileSync(log, "utf8"), kept, "the log itself stays");
        desk.script([[text("I still know it.")]]);
        const on = await desk.claude(["--resume", id, "What was it about?"], how);
        assert.deepEqual([on.text, on.session], ["I still know it.", id]);
        const now = desk.sent.at(-1);
        console.log(`# trimmed: ${now.raw.length} bytes in place of ${whole}`);
        assert.ok(now.raw.length < whole / 3, `${now.raw.length} of ${whole} bytes`);
        assert.ok(now.raw.includes("Read the book.") && now.raw.includes("I know the book."));
        if (!known) for (const type of ["novelty", "gauge", "farewell"]) assert.ok(readFileSync(branch.log, "utf8").includes(`"${type}"`), `the branch keeps ${type}`);
        await desk.tidemark("snapshot", "again", "--claude", session);
        await desk.tidemark("import", log, "--session", "imported");
        assert.match(await desk.tidemark("log", "imported"), /I know the book/);
      });
    }

    test("hooks are installed and fire", async () => {
      const desk = w.desk("hooks"), how = { treatment: null, mixed: true };
      await desk.tidemark("hook", "install", "--tokens", "30000");
      const run = await read(desk, 12, how);
      const kept = async () => JSON.parse(await desk.tidemark("snapshot", "ls", "--json", "--claude"));
      const prepared = await kept();
      assert.ok(prepared.length > 0 && prepared.every((n) => n.session === run.session && n.name.startsWith("before trim") && n.tags.includes("auto")), JSON.stringify(prepared));
      assert.match(await desk.tidemark("tree", "--claude"), /trimmed .* → [0-9a-f-]{36}/);
      desk.script([[text("<summary>A book about ships.</summary>")]]);
      await desk.claude(["--continue", "/compact"], how);
      const [newest, ...rest] = await kept();
      assert.match(newest.name, /^before manual compaction/);
      assert.deepEqual(rest.map((n) => n.id), prepared.map((n) => n.id));
      const status = await desk.tidemark("hook", "status");
      assert.match(status, /settings\.json: PreCompact, PostToolUse/);
      assert.doesNotMatch(status, /fail/i);
      // The prepared branch is a session that Claude Code goes on with.
      const [, branch] = (await desk.tidemark("tree", "--claude")).match(/→ ([0-9a-f-]{36})/);
      desk.script([[text("Here we are.")]]);
      assert.equal((await desk.claude(["--resume", branch, "Where were we?"], how)).text, "Here we are.");
      assert.ok(desk.sent.at(-1).raw.length < desk.sent[2].raw.length, "the branch is smaller than what it was made of");
    });
  }

  test("claude mcp add, and the model calls a tool of ours", async () => {
    const desk = w.desk("mcp");
    const server = w.host === "workerd" ? ["-e", `TIDEMARK_SERVER=${w.site.url}`, "-e", `TIDEMARK_TOKEN=${token}`] : ["-e", `TIDEMARK_HOME=${desk.store}`];
    const added = await started([w.program, "mcp", "add", "--scope", "user", "tidemark", ...server, "--", w.binary, "mcp"], { cwd: desk.project, env: desk.environment() }).ended;
    assert.equal(added.code, 0, added.out + added.err);
    const words = `The lantern of ${desk.name} is green.`;
    desk.script([
      [call("mcp__tidemark__memory_append", { text: words })],
      [call("mcp__tidemark__memory_search", { query: `lantern ${desk.name}` })],
      [text("It is kept.")],
    ]);
    const run = await desk.claude(["Keep that the lantern is green."], { mixed: true });
    assert.equal(run.text, "It is kept.");
    assert.deepEqual(run.events.find((e) => e.subtype === "init").mcp_servers, [{ name: "tidemark", status: "connected" }]);
    const results = run.events.filter((e) => e.type === "user").flatMap((e) => e.message.content).map((b) => JSON.stringify(b.content));
    assert.equal(results.length, 2);
    assert.match(results[0], /Remembered in/);
    assert.ok(results[1].includes(words), results[1]);
  });
}

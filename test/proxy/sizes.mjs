// Large requests, what they cost in memory, and a client that is started behind the proxy.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { workerd } from "../clients/targets.mjs";
import { PATIENCE } from "../patience.mjs";
import { anthropicAt, asked, textOf, user } from "./client.mjs";
import { recall, shape } from "./phantom.mjs";
import { read, send } from "./untouched.mjs";
import { call, text } from "./upstream.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const MiB = 1 << 20;

// long is a history of about so many bytes, in results of a size each.
function long(name, bytes, each = 20_000) {
  const messages = [user(name)];
  for (let i = 0, size = 0; size < bytes; i++, size += each + 300) {
    messages.push({ role: "assistant", content: [{ type: "tool_use", id: `toolu_${i}`, name: "Read", input: { file_path: `/f${i}.go` } }] });
    messages.push(user([{ type: "tool_result", tool_use_id: `toolu_${i}`, content: `${i} ${"the tide rises, the tide falls. ".repeat(each / 32)}` }]));
  }
  return messages;
}

// resident gives the bytes that a process has in memory now, and at most so far.
function resident(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const [now, peak] = ["VmRSS", "VmHWM"].map((f) => 1024 * Number(status.match(new RegExp(`${f}:\\s+(\\d+)`))[1]));
  return { now, peak };
}

// children lists the processes that this one started.
const each = process.env.SOAK ? 10 : 2; // large requests of each of three clients
const children = () => readdirSync("/proc").filter((p) => /^\d+$/.test(p)).filter((p) => {
  try {
    return readFileSync(`/proc/${p}/stat`, "utf8").split(") ")[1].split(" ")[1] === String(process.pid) && readFileSync(`/proc/${p}/comm`, "utf8").startsWith("workerd");
  } catch {
    return false;
  }
});

export default function (w) {
  const ask = (name, messages) => ({ model: "fake-1", max_tokens: 4000, tools: [read], metadata: { user_id: name }, messages });
  const own = () => ({ "x-tidemark-token": w.token, "x-api-key": "sk-k" });

  test("a request of 30 MB", async () => {
    const name = w.fresh(), raw = JSON.stringify(ask(name, long(name, 30.3e6)));
    assert.ok(raw.length > 30e6 && raw.length < 32 * MiB, `${raw.length}`);
    w.up.script(name, [text("That was long.")]);
    const began = Date.now(), r = await send(`${w.url}/v1/messages`, own(), raw);
    console.log(`# ${w.host}: 30 MB took ${Date.now() - began} ms: ${r.status}${w.site.pid ? `, ${(resident(w.site.pid).peak / MiB).toFixed(0)} MiB at most` : ""}`);
    if (w.host === "workerd") { // over the bound of its memory: it passes through, a few pieces at a time
      assert.equal(r.status, 200, r.body.slice(0, 300));
      assert.ok(w.up.of(name)[0].raw.equals(Buffer.from(raw)), "as it came");
      return;
    }
    assert.equal(r.status, 200, r.body.slice(0, 300));
    const [c] = w.up.of(name);
    assert.ok(c.raw.length < raw.length / 5, `${c.raw.length} bytes are sent`);
  });

  test("a request over every bound is the API's to refuse, or says its bound", async () => {
    const name = w.fresh(), raw = JSON.stringify(ask(name, long(name, 34e6)));
    const r = await send(`${w.url}/v1/messages`, own(), raw);
    assert.equal(r.status, 413, r.body.slice(0, 300));
    assert.equal(JSON.parse(r.body).error.type, "request_too_large");
  });

  // admitted asks until there is memory for the request: others may be in work, which the server says. Nothing else is
  // asked again.
  async function admitted(...request) {
    for (;;) {
      try {
        return await asked(...request);
      } catch (e) {
        if (e.status !== 529 || !/memory is bounded/.test(e.message)) throw e;
        await new Promise((r) => setTimeout(r, 100));
      }
    }
  }

  // Each adds a round to a history of 5 to 7 MB, some at once.
  async function many(url, up, name) {
    up.script(name, () => [text("One more."), recall("/f3.go"), call("Read", { file_path: "/more.go" })]);
    const client = anthropicAt(url, { apiKey: "sk-k", defaultHeaders: { "x-tidemark-token": w.token }, maxRetries: 0 });
    const messages = long(name, 5.2e6);
    let done = 0;
    await Promise.all(Array.from({ length: 3 }, async (_, k) => {
      const mine = [...messages, { role: "assistant", content: `I am ${k}.` }, user("go on")];
      for (let i = 0; i < each; i++) {
        const m = await admitted(client, ask(name, mine), i % 2 === 0);
        assert.deepEqual(m.content.map((b) => b.text ?? b.name), ["One more.", "Read"]);
        mine.push({ role: "assistant", content: m.content }, user([{ type: "tool_result", tool_use_id: m.content[1].id, content: `${k}.${i} ${"more of it. ".repeat(12_000)}` }]));
        done++;
      }
    }));
    assert.equal(done, 3 * each);
    const sent = up.of(name);
    assert.ok(sent.every((c) => c.raw.length < 2e6), `${Math.max(...sent.map((c) => c.raw.length))} bytes at most; ${shape(sent.at(-1).body.messages).length} messages`);
  }

  test(`memory under ${3 * each} large requests`, async () => {
    const name = w.fresh("large"), began = Date.now();
    if (w.host === "native") {
      await w.restart(); // for a peak of its own
      await many(w.url, w.up, name);
      const { now, peak } = resident(w.site.pid);
      console.log(`# native: ${(now / MiB).toFixed(0)} MiB behind ${3 * each} large requests, ${(peak / MiB).toFixed(0)} at most, ${Date.now() - began} ms`);
      assert.ok(peak < 700 * MiB, `${peak}`);
      return;
    }
    const folder = mkdtempSync(path.join(tmpdir(), "proxy-")), known = children();
    cpSync(w.folder, folder, { recursive: true });
    renameSync(path.join(folder, "shim.mjs"), path.join(folder, "served.mjs"));
    cpSync(path.join(here, "../limits-meter.mjs"), path.join(folder, "shim.mjs"));
    const site = await workerd(folder, w.up.url, { more: w.variables() });
    try {
      const pids = children().filter((p) => !known.includes(p));
      await many(site.url, w.up, name);
      const meter = await (await site.get("/debug/meter")).json(), host = await (await site.get("/debug/host")).json();
      const process_ = pids.length === 1 ? `${(resident(pids[0]).peak / MiB).toFixed(0)} MiB of the process at most, ` : "";
      console.log(`# workerd: ${(meter.memory / MiB).toFixed(1)} MiB of WASM, ${process_}${meter.section} ms at a time, ${(meter.busy / 1000).toFixed(1)} s in all, ${Date.now() - began} ms`);
      assert.ok(meter.memory < 100 * MiB, `${meter.memory} bytes of memory`);
      assert.ok(meter.args <= 100 && meter.argBytes < 1_900_000 && meter.peak <= 6, JSON.stringify(meter));
      assert.deepEqual([host.violations, host.total.fatals, meter.open], [0, 0, 0]);
    } finally {
      await site.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("tidemark proxy runs a client that knows nothing of it", { skip: w.host !== "native" }, async () => {
    const name = w.fresh(), home = mkdtempSync(path.join(tmpdir(), "proxy-"));
    w.up.script(name, [text("Both."), recall("/b"), call("Read", { file_path: "/a" })], [text("Done.")], [text("And by chat.")]);
    const env = { PATH: process.env.PATH, HOME: home, TIDEMARK_HOME: home, ANTHROPIC_API_KEY: "sk-clients-own", ANTHROPIC_BASE_URL: w.up.url, OPENAI_API_KEY: "sk-openai", OPENAI_BASE_URL: `${w.up.url}/v1` };
    const { code, stdout, stderr } = await new Promise((done) => execFile(w.binary, ["proxy", "--treatment", "page", "--name", "mine", "--", process.execPath, path.join(here, "script.mjs"), name], { env, timeout: PATIENCE }, (e, stdout, stderr) => done({ code: e?.code ?? 0, stdout, stderr })));
    assert.equal(code, 7, `the exit code is the client's: ${stdout}\n${stderr}`);
    const [lines, said] = stdout.trim().split("\n");
    assert.deepEqual(JSON.parse(lines), ["Both. Read", "Done."]);
    assert.equal(said, "And by chat.");
    const calls = w.up.of(name);
    assert.deepEqual(calls.map((c) => c.path), ["/v1/messages", "/v1/messages", "/v1/chat/completions"]);
    assert.deepEqual(shape(calls[1].body.messages), ["u: text", "a: text memory_fault! Read!", "u: = ="]);
    assert.match(`${calls[0].headers.authorization} ${calls[0].headers["x-api-key"]}`, /sk-clients-own/);
    assert.match(calls[2].headers.authorization, /sk-openai/);
    assert.ok(!/tidemark/i.test(JSON.stringify(calls.map((c) => c.rawHeaders))));
    rmSync(home, { recursive: true, force: true });
  });
}

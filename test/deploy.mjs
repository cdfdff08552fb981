// Deploys to a fake of Cloudflare's API, as far as the pinned wrangler asks it: what a deployment sends, that
// it makes the bucket when there is none, and its secrets. It proves nothing of Cloudflare itself. Run by:
// node test/deploy.mjs

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const account = "0123456789abcdef0123456789abcdef";

// cloud answers wrangler and notes what it was asked.
async function cloud() {
  const seen = { buckets: new Set(), uploads: [], assets: [], asked: [] };
  const no = (status, code, message) => ({ status, body: { success: false, errors: [{ code, message }], messages: [], result: null } });
  const answer = async (method, p, req) => {
    const [, name] = p.match(/\/r2\/buckets\/([\w-]+)$/) ?? [];
    if (name) return seen.buckets.has(name) ? { name } : no(404, 10006, "The specified bucket does not exist.");
    if (p.endsWith("/r2/buckets") && method === "GET") return { buckets: [...seen.buckets].map((name) => ({ name })) };
    if (p.endsWith("/r2/buckets")) {
      seen.buckets.add(JSON.parse(await req.text()).name);
      return {};
    }
    if (p.endsWith("/assets-upload-session")) {
      seen.assets.push(JSON.parse(await req.text()).manifest);
      return { jwt: "e30.e30.x", buckets: [] };
    }
    if (/\/workers\/scripts\/[\w-]+(\/versions)?$/.test(p) && method !== "GET") {
      const form = await req.formData();
      const metadata = JSON.parse(await (async (m) => (typeof m === "string" ? m : m.text()))(form.get("metadata")));
      const modules = await Promise.all([...form].filter(([k]) => k !== "metadata").map(async ([k, v]) => [k, (await v.arrayBuffer()).byteLength]));
      seen.uploads.push({ path: p, metadata, modules });
      return { id: "v1", etag: "e", startup_time_ms: 1, deployment_id: "d1", pipeline_hash: "h", mutable_pipeline_id: null, entry_point: "shim.js" };
    }
    if (p.endsWith("/workers/subdomain")) return { subdomain: "example" };
    if (p.endsWith("/subdomain")) return { enabled: true, previews_enabled: true };
    if (/\/(memberships|scripts)$/.test(p)) return [];
    if (/\/workers\/(scripts|services)\//.test(p)) return no(404, 10007, "This Worker does not exist on your account.");
    return {};
  };
  const server = http.createServer(async (req, res) => {
    const chunks = [];
    for await (const c of req) chunks.push(c);
    const url = new URL(req.url, "http://x");
    seen.asked.push(`${req.method} ${url.pathname}`);
    const body = Buffer.concat(chunks);
    const asked = new Request(url, { method: req.method, headers: req.headers, body: body.length ? body : undefined });
    const got = await answer(req.method, url.pathname, asked);
    res.writeHead(got.status ?? 200, { "content-type": "application/json" });
    res.end(JSON.stringify(got.body ?? { success: true, errors: [], messages: [], result: got }));
  });
  server.keepAliveTimeout = 300_000; // closing an idle connection would race with its next request
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { ...seen, url: `http://127.0.0.1:${server.address().port}/client/v4`, close: () => server.close() };
}

let api, folder;
before(async () => {
  api = await cloud();
  folder = mkdtempSync(path.join(tmpdir(), "deploy-"));
  // The Worker is there: built anew it would change under tests that run beside this one. That it is asked for is noted.
  writeFileSync(path.join(folder, "go"), `#!/bin/sh\necho "go $*" >> "${folder}/asked"\n`, { mode: 0o755 });
});
after(() => {
  api.close();
  rmSync(folder, { recursive: true });
});

// deploy runs what make deploy runs.
const deploy = (...args) => new Promise((resolve) => {
  const env = { ...process.env, CLOUDFLARE_API_BASE_URL: api.url, CLOUDFLARE_API_TOKEN: "fake", CLOUDFLARE_ACCOUNT_ID: account, SECRETS: path.join(folder, `secrets${args}`), CI: "1", PATH: `${folder}:${process.env.PATH}` };
  execFile(process.execPath, [path.join(root, "build/cloud.mjs"), "deploy", ...args], { cwd: root, env, timeout: 240_000 }, (error, stdout, stderr) => {
    resolve({ code: error?.code ?? 0, out: stdout + stderr });
  });
});

for (const [env, name] of [["", "tidemark"], ["staging", "tidemark-staging"]]) {
  test(`a deployment of ${name} from nothing`, async () => {
    const { code, out } = await deploy(...(env ? [env] : []));
    assert.equal(code, 0, out + api.asked.join("\n"));
    assert.ok(api.buckets.has(name), `the bucket was not made\n${out}\n${api.asked.join("\n")}`);
    const { path: at, metadata, modules } = api.uploads.at(-1);
    assert.ok(at.includes(`/workers/scripts/${name}`), at);
    assert.equal(metadata.migrations.new_sqlite_classes ? 1 : metadata.migrations.steps.length, 1);
    assert.match(JSON.stringify(metadata.migrations), /"new_sqlite_classes":\["Session","Agent"\]/);
    assert.deepEqual(metadata.compatibility_flags, ["enable_request_signal"]);
    assert.equal(metadata.observability.enabled, true);
    const bindings = Object.fromEntries(metadata.bindings.map((b) => [b.name, b]));
    assert.equal(bindings.BUCKET.bucket_name, name);
    assert.deepEqual([bindings.SESSION.class_name, bindings.AGENT.class_name, bindings.AI.type], ["Session", "Agent", "ai"]);
    const file = path.join(folder, `secrets${env}`);
    assert.deepEqual([bindings.TIDEMARK_TOKEN.type, `TIDEMARK_TOKEN=${bindings.TIDEMARK_TOKEN.text}`], ["secret_text", readFileSync(file, "utf8").match(/^TIDEMARK_TOKEN=.*$/m)[0]]);
    assert.ok(bindings.TIDEMARK_TOKEN.text.length >= 32);
    assert.equal(statSync(file).mode & 0o077, 0, "others may read the token");
    assert.ok(modules.some(([n, size]) => n.endsWith(".wasm") && size > 1 << 20), JSON.stringify(modules));
    const names = Object.keys(api.assets.at(-1)).map((n) => n.replace(/-[A-Z0-9]{8}\./, "-HASH.")).sort();
    assert.deepEqual(names, ["/assets/icon-HASH.svg", "/assets/licenses.txt", "/assets/main-HASH.css", "/assets/main-HASH.js", "/assets/theme-HASH.js", "/index.html"]);
    assert.ok(!out.includes(bindings.TIDEMARK_TOKEN.text), "the token is in the log");
    assert.match(readFileSync(path.join(folder, "asked"), "utf8"), /^(go run \.\/build\n)+$/, "the Worker is built before it is sent");
    rmSync(path.join(folder, "asked"));
  });
}

test("a second deployment keeps bucket and token", async () => {
  const before = api.uploads.at(-1).metadata.bindings.find((b) => b.name === "TIDEMARK_TOKEN").text;
  const made = () => api.asked.filter((a) => a.startsWith("POST") && a.endsWith("/r2/buckets")).length;
  const n = made();
  const { code, out } = await deploy("staging");
  assert.equal(code, 0, out);
  assert.equal(made(), n);
  assert.equal(api.uploads.at(-1).metadata.bindings.find((b) => b.name === "TIDEMARK_TOKEN").text, before);
});

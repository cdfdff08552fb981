// Runs the contract tests of the host's ports, and the bridge's own tests, in workerd. Run by: node test/contract.mjs [-run pattern]

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { start } from "./workerd.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const folder = path.join(root, ".cache", "contract");
const run = process.argv[2] === "-run" ? process.argv[3] : "^Test"; // fuzz targets look for a folder

mkdirSync(folder, { recursive: true });
const goroot = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
copyFileSync(path.join(goroot, "lib", "wasm", "wasm_exec.js"), path.join(folder, "wasm_exec.js"));
for (const f of ["host.mjs", "ops.mjs", "body.mjs", "queue.mjs", "slots.mjs", "bucket.mjs", "codec.mjs", "workerd.mjs"]) copyFileSync(path.join(root, "build", f), path.join(folder, f));
copyFileSync(path.join(root, "test", "contract-shim.mjs"), path.join(folder, "shim.mjs"));

// Every test opens an empty bucket.
const r2Buckets = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`BUCKET${i}`, `bucket${i}`]));

// tests runs those of the program that was built last.
async function tests() {
  let said = "";
  const hear = (stream) => stream.on("data", (d) => { said = (said + d).slice(-4000); });
  const w = await start(folder, {}, { r2Buckets, more: { handleRuntimeStdio: (out, err) => { hear(out); hear(err); } } });
  try {
    return await w.json(`/?run=${encodeURIComponent(run)}`, { signal: AbortSignal.timeout(300_000) });
  } catch (e) {
    console.log(said);
    throw e;
  } finally {
    await w.dispose();
  }
}

let failed = false;
for (const pkg of ["./host/hosttest", "./host/cloudflare"]) {
  execFileSync("go", ["test", "-c", "-trimpath", "-o", path.join(folder, "app.wasm"), pkg], {
    cwd: root, stdio: "inherit", env: { ...process.env, GOOS: "js", GOARCH: "wasm" },
  });
  const { code, out } = await tests();
  const count = (mark) => out.split(mark).length - 1;
  const passed = count("--- PASS");
  if (code !== 0 || passed === 0) {
    console.log(out);
    failed = true;
  }
  console.log(`${pkg} in workerd: ${passed} passed, ${count("--- FAIL")} failed, exit code ${code}`);
}
process.exit(failed ? 1 : 0);

// Modules: the example is built, installed beside a server that runs, and called; where none can be, that is said.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { words } from "../clients/model.mjs";

const example = fileURLToPath(new URL("../../examples/datecalc", import.meta.url));

export default function (w) {
  if (!w.native) {
    test("a Worker has none, and says so", async () => {
      for (const args of [["add", "datecalc.wasm"], ["rm", "datecalc"], ["test", "datecalc"]]) {
        const r = await w.cli("tool", ...args, "--server", w.site.url);
        assert.ok(r.code !== 0 && /home folder of the machine/.test(r.stderr) && /MCP server/.test(r.stderr), r.text);
      }
      const ls = await w.cli("tool", "ls");
      assert.equal(ls.code, 0, ls.text);
      assert.match(ls.stdout, /own__knock/);
    });
    return;
  }

  test("the example: added to a server that runs, called, replaced, and gone again", { timeout: 300_000 }, async () => {
    const wasm = path.join(w.home, "datecalc.wasm");
    await promisify(execFile)("go", ["build", "-trimpath", "-ldflags=-s -w", "-o", wasm, example], { env: { ...process.env, GOOS: "wasip1", GOARCH: "wasm" } });
    const add = await w.cli("tool", "add", wasm, "--manifest", path.join(example, "tool.json"));
    assert.equal(add.code, 0, add.text);
    assert.match(add.stdout, /tool datecalc is installed/);
    const { word, results, answer } = await w.turn("module",
      { calls: [["datecalc", { from: "2024-02-28", to: "2024-03-01" }], ["datecalc", { from: "2024-01-31", add: { months: 1 } }], ["datecalc", { from: "the day before" }]] },
      (r) => ({ text: words(r[0]) }));
    assert.ok(w.model.of(word)[0].tools.some((t) => t.name === "datecalc"), "the server took it up");
    assert.deepEqual(results[0].map((r) => !!r.is_error), [false, false, true], JSON.stringify(results));
    assert.equal(JSON.parse(answer.text).days, 2, answer.text);
    assert.match(words(results[0][1]), /2024-02-29/);
    const ls = await w.cli("tool", "ls");
    for (const name of [/^datecalc /m, /own__knock/, /^locked .*tools\.mcp\.locked\.secret/m, /^every +\d+ +reachable/m]) assert.match(ls.stdout, name);
    const again = await w.cli("tool", "add", wasm, "--manifest", path.join(example, "tool.json"));
    assert.ok(again.code !== 0 && /--force/.test(again.stderr), again.text);
    assert.equal((await w.cli("tool", "rm", "datecalc")).code, 0);
    const gone = await w.turn("nomodule", { calls: [["datecalc", {}]] }, { text: "gone" });
    assert.ok(!w.model.of(gone.word)[0].tools.some((t) => t.name === "datecalc"));
    assert.ok(gone.results[0][0].is_error);
    rmSync(wasm);
  });
}

// Calls and their results: what reaches the model is what the server said.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { words } from "../clients/model.mjs";
import { page } from "./servers.mjs";

export default function (w) {
  const servers = w.native ? ["every", "pipe"] : ["every"];

  for (const server of servers) {
    test(`server-everything as ${server}: texts and numbers come to the model byte for byte`, async () => {
      const message = 'low at "six"\n\t€ 𝄞 </x>';
      const { answer, results, word } = await w.turn("echo", { text: "I ask.", calls: [[`${server}__echo`, { message }], [`${server}__get-sum`, { a: 2, b: 40 }]] }, (r) => ({ text: r.map(words).join(" | ") }));
      const ids = w.model.of(word)[1].messages.at(-2).content.filter((b) => b.type === "tool_use").map((b) => b.id);
      assert.deepEqual(results, [[
        { type: "tool_result", tool_use_id: ids[0], content: `Echo: ${message}` },
        { type: "tool_result", tool_use_id: ids[1], content: "The sum of 2 and 40 is 42." },
      ]]);
      assert.deepEqual([answer.text, answer.stop], [`Echo: ${message} | The sum of 2 and 40 is 42.`, "end_turn"]);
    });
  }

  test("the model is offered the tools by their schemas, and those of the owner's servers only", async () => {
    const { word } = await w.turn("offer", { text: "ok" });
    const [{ tools }] = w.model.of(word);
    const sum = tools.find((t) => t.name === "every__get-sum");
    assert.deepEqual([sum.input_schema.required, sum.input_schema.properties.a.type], [["a", "b"], "number"]);
    assert.equal(new Set(tools.map((t) => t.name)).size, tools.length);
    assert.equal(tools.some((t) => t.name.startsWith("files__")), w.native, "a program is started natively only");
    const peer = w.fresh("offer");
    w.model.play(peer, { calls: [["every__echo", { message: "for a stranger" }]] }, { text: "no" });
    await w.say(`agent:main:whatsapp:dm:${peer}`, `For ${peer}.`);
    assert.ok(!w.model.of(peer)[0].tools.some((t) => t.name.includes("__")), "tools.peers names none");
    assert.ok(w.results(peer)[0][0].is_error);
  });

  test("an image is an image to the model", async () => {
    const { results } = await w.turn("image", { calls: [["every__get-tiny-image", {}]] }, { text: "a small one" });
    const [{ content }] = results[0];
    const image = content.find((b) => b.type === "image");
    assert.deepEqual([image.source.type, image.source.media_type], ["base64", "image/png"]);
    assert.deepEqual([...Buffer.from(image.source.data, "base64").subarray(1, 4)], [..."PNG"].map((c) => c.charCodeAt(0)));
    assert.ok(content.some((b) => b.type === "text"), "with the words around it");
  });

  test("a long text comes whole; of a longer one beginning and end, and recall reads the middle", async () => {
    const [whole, long] = [100_000, 900_000];
    const { results } = await w.turn("long", { calls: [["own__page", { bytes: whole }], ["own__page", { bytes: long }]] }, (r) => {
      const [, entry] = words(r[1]).match(/"entry": ?"([^"]+)"/) ?? words(r[1]).match(/entry (\S+?)[.,\] ]/) ?? [];
      return { calls: [["recall", { entry, offset: 440_000 }]] };
    }, { text: "read" });
    assert.equal(words(results[0][0]), page(whole));
    const shown = words(results[0][1]);
    assert.ok(shown.length < 600_000 && shown.includes(page(16)) && shown.trim().endsWith(page(long).slice(-16).trim()), `${shown.slice(0, 300)} … ${shown.slice(-300)}`);
    const middle = words(results[1][0]);
    assert.ok(!results[1][0].is_error && page(long).includes(middle.match(/(line \d{10}\n){20}/)?.[0] ?? "-"), middle.slice(0, 500));
  });

  test("a refusal of a server is an error to the model, and so is a tool that is not there", async () => {
    const { results, answer } = await w.turn("refused", { calls: [["every__get-sum", { a: "two" }], ["every__nothing", {}]] }, { text: "so be it" });
    assert.deepEqual(results[0].map((r) => r.is_error), [true, true], JSON.stringify(results[0]));
    assert.match(words(results[0][0]), /-32602/);
    assert.match(words(results[0][1]), /there is no tool "every__nothing"/);
    assert.equal(answer.text, "so be it");
  });

  test("100 calls in one reply: some at a time, all answered, in order", async () => {
    const n = 100;
    const { results, answer } = await w.turn("many", { calls: Array.from({ length: n }, (_, i) => ["own__knock", { n: i }]) }, (r) => ({ text: `${r.length} answers` }));
    assert.deepEqual(results[0].map(words), Array.from({ length: n }, (_, i) => `knocked ${i}`));
    assert.equal(answer.text, `${n} answers`);
    assert.ok(w.own.most > 1 && w.own.most <= 5, `${w.own.most} ran side by side, with tools.mcp.own.parallel 5`);
  });

  if (!w.native) return;

  test("server-filesystem writes and reads in its folder, and refuses what is outside", async () => {
    const inside = path.join(w.files, "tide.txt"), outside = path.join(w.home, "outside.txt");
    writeFileSync(outside, "not for tools");
    const { results } = await w.turn("files",
      { calls: [["files__write_file", { path: inside, content: "low at six\n" }]] },
      { calls: [["files__read_text_file", { path: inside }], ["files__read_text_file", { path: outside }], ["files__write_file", { path: path.join(w.files, "../out2.txt"), content: "x" }]] },
      { text: "done" });
    assert.equal(readFileSync(inside, "utf8"), "low at six\n");
    assert.deepEqual(results[1].map((r) => !!r.is_error), [false, true, true]);
    assert.equal(words(results[1][0]), "low at six\n");
    assert.match(words(results[1][1]), /outside allowed directories/);
    assert.ok(!existsSync(path.join(w.home, "out2.txt")));
  });

  test("a program has of our environment what it is given alone", async () => {
    const { results } = await w.turn("environ", { calls: [["pipe__get-env", {}]] }, { text: "read" });
    const given = JSON.parse(words(results[0][0]));
    for (const name of ["ANTHROPIC_API_KEY", "TIDEMARK_TOKEN", "TOOL_OWN", "TOOL_PIPE"]) assert.ok(!(name in given), name);
    assert.ok("HUSH" in given && "PATH" in given);
  });
}

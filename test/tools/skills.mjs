// Skills: what is put there stands in the prompt by name, and the tool gives its body.

import assert from "node:assert/strict";
import { test } from "node:test";
import { words } from "../clients/model.mjs";

export default function (w) {
  test("put, named in the prompt, read by the model, listed in a shell, and gone", async () => {
    await w.say(w.fresh("hello"), "Hello.");
    const name = w.fresh("ferry"), body = "Ask for the amethyst pier.\n";
    await w.api(`/v1/agents/main/skills/${name}`, { method: "PUT", body: `---\nname: ${name}\ndescription: How to book a ferry.\n---\n${body}`, headers: { "content-type": "text/markdown" } });
    const { word, results, answer } = await w.turn("skill", { calls: [["skill", { name }], ["skill", { name: "no-such" }]] }, { text: "From the amethyst pier." });
    const [first] = w.model.of(word);
    assert.ok(JSON.stringify(first.system).includes(`- ${name}: How to book a ferry.`), JSON.stringify(first.system));
    assert.ok(!JSON.stringify(first.system).includes("amethyst"), "the body is read when it is used");
    assert.ok(words(results[0][0]).includes(body.trim()) && !results[0][0].is_error, words(results[0][0]));
    assert.ok(results[0][1].is_error && words(results[0][1]).includes(name), "the error names those there are");
    assert.equal(answer.stop, "end_turn");
    const ls = await w.cli("skill", "ls");
    assert.ok(ls.code === 0 && ls.stdout.includes(name) && ls.stdout.includes("How to book a ferry."), ls.text);
    await w.api(`/v1/agents/main/skills/${name}`, { method: "DELETE", status: 204 });
    const later = await w.turn("noskill", { text: "ok" });
    assert.ok(!JSON.stringify(w.model.of(later.word)[0].system).includes(name));
  });
}

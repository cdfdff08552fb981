// Servers that die, are not there yet, or want another token: the turn goes on, and says what is missing.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { words } from "../clients/model.mjs";
import { LONG } from "./told.mjs";

export default function (w) {
  const source = async (name) => (await w.api("/v1/agents/main/tools")).sources.find((s) => s.name === name);
  // interrupted has a call die while it runs, and then made anew in the same conversation.
  const interrupted = async (server, kill, mend) => {
    const word = w.fresh("dies");
    w.model.play(word, { calls: [[`${server}__trigger-long-running-operation`, LONG]] }, () => ({ calls: [[`${server}__echo`, { message: "back" }]] }), (r) => ({ text: words(r[0]) }));
    const answer = w.say(word, `Go ${word}.`);
    await w.until("call", () => existsSync(w.told(server)));
    await kill();
    await w.until("failure", () => w.model.of(word).length > 1);
    await mend();
    await answer;
    const [[failed]] = w.results(word);
    assert.ok(failed.is_error, words(failed));
    assert.match(words(failed), new RegExp(`server ${server}`), "it names the server");
    const again = await w.turn("back", { calls: [[`${server}__echo`, { message: "back" }]] }, (r) => ({ text: words(r[0]) }));
    assert.equal(again.answer.text, "Echo: back");
    return words(failed);
  };

  test("a server over HTTP is killed in the middle of a call and started again: the next call works", async () => {
    const failed = await interrupted("every", () => w.every.kill(), () => w.every.start());
    assert.match(failed, /may have run|cannot be reached/);
  });

  test("a call that is not answered is stopped with the turn", async () => {
    const word = w.fresh("rest");
    w.model.play(word, { calls: [["own__rest", { word }]] }, { text: "never" });
    const answer = w.say(word, `Go ${word}.`, 409);
    await w.until("call", () => w.own.resting.includes(word));
    await w.api(`/v1/sessions/${word}/abort`, { method: "POST" });
    assert.match(JSON.stringify(await answer), /stopped|abort/);
    assert.equal(w.model.of(word).length, 1);
  });

  test("a server that is not there: the turn works, the gap is said, and its tools come when it is back", async () => {
    const missing = await w.turn("missing", { calls: [["late__knock", { n: 1 }]] }, { text: "later then" });
    assert.equal(missing.answer.text, "later then");
    const [{ tools }] = w.model.of(missing.word);
    assert.ok(!tools.some((t) => t.name.startsWith("late__")) && tools.some((t) => t.name.startsWith("own__")));
    assert.match(words(missing.results[0][0]), /tools of server late are not known: the server cannot be reached/);
    const down = await source("late");
    assert.equal(down.state, "error");
    assert.ok(down.error.length > 10, down.error);
    await w.late.start();
    await w.until("tools of the server", async () => {
      const { results } = await w.turn("back", { calls: [["late__knock", { n: 7 }]] }, { text: "there" });
      return words(results[0][0]) === "knocked 7";
    });
    await w.until("offer", async () => {
      const { word } = await w.turn("offer", { text: "there" });
      return w.model.of(word)[0].tools.some((t) => t.name === "late__knock");
    });
    if (w.native) assert.equal((await source("late")).state, "reachable"); // on a Worker another instance answers, which asks later
  });

  test("a token that is refused: the message names the setting, and not the token", async () => {
    const locked = await source("locked");
    assert.equal(locked.state, "error");
    assert.match(locked.error, /401.*tools\.mcp\.locked\.secret/);
    const { results } = await w.turn("locked", { calls: [["locked__knock", { n: 1 }]] }, { text: "no" });
    assert.match(words(results[0][0]), /tools\.mcp\.locked\.secret/);
    w.hushed();
  });

  if (!w.native) {
    test("a server that is a program is a gap, which says what to do", async () => {
      const files = await source("files");
      assert.equal(files.state, "gap");
      assert.match(files.error, /tools\.mcp\.files\.url/);
    });
    return;
  }

  test("a program is killed in the middle of a call: the next call starts it again", async () => {
    await w.turn("warm", { calls: [["pipe__echo", { message: "there" }]] }, { text: "ok" });
    const pid = () => execFileSync("pgrep", ["-P", String(w.site.pid), "-f", "server-everything"]).toString().trim().split("\n").map(Number);
    const [first] = pid();
    await interrupted("pipe", () => process.kill(first, "SIGKILL"), () => {});
    assert.notEqual(pid()[0], first);
  });
}

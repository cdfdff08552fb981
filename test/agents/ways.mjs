// One session in all the ways that Claude Code goes on with one: continued, resumed, forked, rewound, summed up, with a
// sub-agent, a picture and thinking.

import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32, deflateSync } from "node:zlib";
import { call, text, think } from "../proxy/upstream.mjs";
import { prose } from "./work.mjs";
import { OLDER, OPUS } from "./world.mjs";

// picture makes a PNG of noise.
function picture(side) {
  const part = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]), size = Buffer.alloc(4), sum = Buffer.alloc(4);
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2], 8); // bits of a channel, RGB
  const rows = Buffer.from(Array.from({ length: side * (3 * side + 1) }, (_, i) => (i % (3 * side + 1) ? (i * 7919) & 255 : 0)));
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), part("IHDR", head), part("IDAT", deflateSync(rows)), part("IEND", Buffer.alloc(0))]);
}

const says = (c, words) => c.raw.includes(words);

export default function (w) {
  // Under one name the runs are one conversation of the proxy, without a name each is one of its own.
  for (const [model, named] of w.host === "native" ? [[OPUS, true], [OLDER, false]] : [[OPUS, false]]) {
    test(`a session goes on in every way, ${model}, ${named ? "one conversation" : "a conversation each run"}`, async () => {
      const desk = w.desk("ways"), how = { model: `${model}[1m]`, ...(!named && { talk: null }) };
      const files = Array.from({ length: 20 }, (_, i) => desk.file(`chapter-${i}.txt`, prose(i, 15_000)));
      const image = desk.file("chart.png", picture(48));
      const open = (i) => call("Read", { file_path: files[i] });
      // go runs one prompt and gives the run with the requests that it made.
      const go = async (answers, args, asked) => {
        const before = desk.sent.length;
        desk.script(answers, asked ?? desk.project);
        const run = await desk.claude(args, how);
        return { ...run, sent: desk.sent.slice(before) };
      };

      const thought = think("Four at a time."), four = (n) => [text(`From ${n}.`), ...[0, 1, 2, 3].map((k) => open(n + k))];
      const one = await go([[thought, ...four(0)], four(4), four(8), four(12), [open(16)], [text("I know the book.")]], ["Read the book."]);
      assert.equal(one.text, "I know the book.");
      assert.equal(one.calls.length, 17);
      const thoughts = one.events.filter((e) => e.type === "assistant").flatMap((e) => e.message.content).filter((b) => b.type === "thinking");
      assert.deepEqual(thoughts.map((b) => [b.thinking, b.signature]), [[thought.thinking, thought.signature]]);

      const two = await go([[call("Read", { file_path: image })], [text("A chart.")]], ["--continue", "Look at the chart."]);
      assert.deepEqual([two.text, two.session], ["A chart.", one.session]);
      assert.match(JSON.stringify(two.sent.at(-1).body.messages.at(-1)) + JSON.stringify(two.sent.at(-1).body.messages.at(-2)), /"type":"image"/);
      assert.ok(two.sent.every((c) => says(c, "Paged out: Read")), "what was read before is out");

      const ask = `Ask an agent, ${desk.name}.`; // is in no request of the agent's
      desk.script([[open(17)], [open(18)], [text("They are about ships.")]]);
      const hand = call("Agent", { description: "read", prompt: "Read seventeen and eighteen for me.", subagent_type: "general-purpose" });
      const three = await go([[hand], [text("Ships, says the agent.")]], ["--resume", one.session, ask], ask);
      assert.equal(three.text, "Ships, says the agent.");
      const [inner, outer] = [three.sent.filter((c) => !says(c, "Read the book.")), three.sent.filter((c) => says(c, "Read the book."))];
      assert.deepEqual([inner.length, outer.length], [3, 2], "requests of the agent and of the session");
      assert.ok(says(outer.at(-1), "They are about ships."));

      const made = desk.project + "/notes.txt";
      const four_ = await go([[call("Write", { file_path: made, content: "ships\n" })], [call("Edit", { file_path: made, old_string: "ships", new_string: "boats" })], [text("Noted.")]], ["--resume", one.session, "Write it down."]);
      assert.equal(four_.text, "Noted.");

      const fork = await go([[text("The other way.")]], ["--resume", one.session, "--fork-session", "Now another way."]);
      assert.equal(fork.text, "The other way.");
      assert.notEqual(fork.session, one.session);
      assert.ok(says(fork.sent[0], "Write it down.") && says(fork.sent[0], "Paged out: Read"));

      // Headless, a rewind is a session that is resumed at an earlier message.
      const at = one.events.findLast((e) => e.type === "assistant").uuid;
      const back = await go([[open(19)], [text("From there on.")]], ["--resume", one.session, "--resume-session-at", at, "Once more from the book."]);
      assert.equal(back.text, "From there on.");
      assert.ok(back.sent.every((c) => says(c, "Read the book.") && !says(c, "Look at the chart.") && !says(c, "Write it down.")), "what came behind is gone");
      assert.ok(back.sent.every((c) => says(c, "Paged out: Read")));

      const sum = await go([[text("<summary>The book is about ships.</summary>")]], ["--resume", fork.session, "/compact"]);
      assert.ok(sum.events.some((e) => e.subtype === "compact_boundary"), JSON.stringify(sum.events.at(-1)));
      const on = await go([[open(2)], [text("On we go.")]], ["--resume", fork.session, "And now?"]);
      assert.equal(on.text, "On we go.");
      assert.ok(on.sent.every((c) => says(c, "The book is about ships.") && !says(c, "Look at the chart.")), "the summary stands for the rest");
    });
  }
}

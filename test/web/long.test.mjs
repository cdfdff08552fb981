// Long and wild texts in the page, in a real Chromium, on both hosts: all of it is shown, and the page goes on.
// TIMES=1 prints what they cost.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gate, model } from "./model.mjs";
import { host, hosts, idle, launch, say, visit } from "./rig.mjs";

let browser, count = 0;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

const prose = "Some *words* of an answer with `code`, and [one link](https://x.example/) there.\n\n- one\n- two\n\n";
// All of them are shown by the page, whoever serves it: a further host gets the last two; without SOAK=1 it is the last alone.
const texts = [
  ["quotes beyond the stack", ">".repeat(6_000)], ["unclosed emphasis", "_a".repeat(60_000)], ["a megabyte of it", "_a ".repeat(330_000)], ["blanks", `a${" ".repeat(50_000)}b`],
  ["a megabyte of paragraphs", "a\n\n".repeat(330_000)], ["a megabyte on one line", "abcdefgh ".repeat(110_000)], ["a megabyte of prose", prose.repeat(10_000)], ["poison in each share", `${prose.repeat(40)}${"_a".repeat(15_000)}\n\n`.repeat(25)],
];

for (const kind of hosts) {
  describe(kind, { timeout: 600_000 }, () => {
    let fake, server;
    before(async () => {
      fake = await model();
      server = await host(kind, fake);
    });
    after(async () => {
      await server?.close();
      fake?.close();
    });

    // busy are the tasks of the page that took long, in ms, for TIMES.
    const watch = (page) => page.addInitScript(() => {
      window.busy = [];
      new PerformanceObserver((list) => window.busy.push(...list.getEntries().map((e) => Math.round(e.duration)))).observe({ type: "longtask", buffered: true });
    });
    for (const [name, text] of texts.slice(process.env.SOAK ? kind === hosts[0] ? 0 : -2 : -1)) {
      test(`an answer of ${name} is shown whole, and the page goes on`, async () => {
        const key = `agent:main:local:dm:long-${++count}`;
        const bare = (t) => t.replace(/[^a-z]/g, "");
        const whole = async (page, where) => {
          await page.waitForFunction(([w, n]) => document.querySelector(w)?.textContent.replace(/[^a-z>]/g, "").length >= n, [where, name.startsWith("quotes") ? 6_000 : bare(text).length - bare("httpsxexample").length * text.split("https://").length - 50], { polling: 200 });
          if (!process.env.TIMES) return;
          const busy = await page.evaluate(() => window.busy);
          console.log(kind, name, where, `longest task ${Math.max(0, ...busy)} ms, all over 50 ms: ${busy.reduce((a, b) => a + b, 0)} ms`);
        };
        await server.ask("POST", `/v1/sessions/${encodeURIComponent(key)}/import?format=jsonl`, [{ role: "user", content: "go" }, { role: "assistant", content: text }].map((m) => JSON.stringify(m)).join("\n"));
        const page = await visit(browser, server, { allow: /404 \(Not Found\)/ });
        await watch(page);
        await page.goto(`${server.url}/#/s/${encodeURIComponent(key)}`);
        await page.reload();
        await page.locator(".message.theirs").waitFor();
        const more = page.getByRole("button", { name: "Show the large parts" });
        if (await more.count()) await more.click();
        await whole(page, ".message.theirs .markdown");
        assert.ok(!name.startsWith("poison") || (await page.locator(".message.theirs .markdown li").count()) > 40);
        await page.evaluate(() => { window.busy = []; });
        const g = gate();
        fake.answer = () => ({ text: Array.from({ length: 20 }, (_, i) => text.slice((i * text.length) / 20, ((i + 1) * text.length) / 20)).concat("\n\nthe end."), gate: g });
        await say(page, "again");
        await page.locator(".working").waitFor();
        g.let(22);
        await whole(page, ".working .markdown");
        g.open();
        await idle(page);
        assert.deepEqual(page.complaints, []);
        await page.context().close();
      });
    }
  });
}

// The side panel in a real Chromium, on both hosts: what it shows is what the server says.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, truncateSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { model } from "./model.mjs";
import { host, hosts, launch, say, shown, visit } from "./rig.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

let number = 0;
const fresh = () => `agent:main:local:dm:panel-${++number}`;
const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>[a](javascript:window.hacked=3) <svg onload=window.hacked=4>`;
const picture = process.env.PICTURES; // a folder for pictures to look at

for (const kind of hosts) {
  describe(`panels, ${kind}`, { timeout: 600_000 }, () => {
    let fake, server, contexts = [];
    before(async () => {
      fake = await model();
      server = await host(kind, fake);
    });
    after(async () => {
      await server?.close();
      fake?.close();
    });
    afterEach(async () => {
      fake.answer = null;
      for (const c of contexts.splice(0)) await c.close();
    });
    const at = (key) => `/v1/sessions/${encodeURIComponent(key)}`;
    // filled is a session that was compacted at least so often.
    const filled = async (times = 2, text = "") => {
      const key = fresh();
      await server.ask("PATCH", at(key), { window: 6000 });
      for (let i = 0; i < 60; i++) {
        await server.ask("POST", `${at(key)}/messages`, { text: `Fact ${i}: lamp ${i} stands in room ${i * 7}. ${text} ${"It is lit in the evening. ".repeat(12)}` });
        if ((await server.ask("GET", at(key))).compactions >= times) return key;
      }
      throw new Error("no compaction");
    };
    const open = async (key, tab = "Context", options = {}) => {
      const page = await visit(browser, server, { key, allow: /404 \(Not Found\)/, ...options });
      contexts.push(page.context());
      await page.getByRole("button", { name: "Context" }).click();
      const panel = page.getByRole("complementary", { name: "Context, memory and archives" });
      await panel.getByRole("tab", { name: tab }).click();
      return Object.assign(page, { panel });
    };
    const look = async (page, name) => picture && page.screenshot({ path: path.join(picture, `${kind}-${name}.png`) });
    const quiet = (page) => assert.deepEqual(page.complaints, []);
    const group = (n) => n.toLocaleString("en");

    test("context: the gauge, the blocks and the changes are the server's", async () => {
      const key = await filled();
      const page = await open(key), { panel } = page;
      const view = await server.ask("GET", `${at(key)}/view?messages=0`);
      const meter = panel.getByRole("meter", { name: "Context" });
      await meter.waitFor();
      assert.equal(await meter.getAttribute("aria-valuetext"), `${group(view.size)} of ${group(view.limit)} tokens`);
      await panel.getByText(`${view.items.length} messages after the system prompt`).waitFor();

      await panel.locator("summary", { hasText: "Summary" }).first().click();
      await panel.locator(".p-text", { hasText: "They talked." }).first().waitFor();
      await panel.getByText("The originals, word for word").first().click();
      await panel.locator("summary", { hasText: "Fact 0: lamp 0 stands" }).first().click();
      await panel.locator(".p-text", { hasText: "room 0. " }).first().waitFor();

      const acts = (await server.ask("GET", `${at(key)}/log?messages=0`)).entries.filter((e) => e.event?.type === "compaction");
      assert.equal(await panel.locator(".p-badge-compaction").count(), acts.length);
      assert.equal(await panel.locator(".p-drop").count(), acts.length + 1); // one in the key
      await panel.locator(".p-change summary").first().click();
      await panel.getByText(acts[0].event.text, { exact: true }).waitFor();
      await panel.getByText("the context was over its limit").waitFor();
      await look(page, "context");
      quiet(page);
    });

    test("context: a change is undone and put in effect again", async () => {
      const key = await filled(1);
      const page = await open(key), { panel } = page;
      const before = await server.ask("GET", `${at(key)}/view?messages=0`);
      assert.equal(before.overlays.length, 1);
      await panel.locator(".p-change summary").first().click();
      await panel.getByRole("button", { name: "Undo" }).click();
      await panel.getByRole("group", { name: "Show the model the originals again?" }).getByRole("button", { name: "Undo" }).click();
      await panel.getByText("Undone. The context is").waitFor();
      const after = await server.ask("GET", `${at(key)}/view?messages=0`);
      assert.ok(after.overlays.length === 0 && after.items.length > before.items.length, `${after.items.length} items, before ${before.items.length}`);
      await panel.getByText(`${after.items.length} messages after the system prompt`).waitFor();
      await panel.locator(".p-change-undone .p-badge", { hasText: "Compacted" }).waitFor();
      await panel.locator(".p-change", { has: page.locator(".p-badge-undo") }).locator("summary").first().click();
      await panel.getByRole("button", { name: "Redo" }).click();
      await panel.getByRole("group").getByRole("button", { name: "Redo" }).click();
      await panel.getByText(`${before.items.length} messages after the system prompt`).waitFor();
      assert.deepEqual((await server.ask("GET", `${at(key)}/view?messages=0`)).overlays, before.overlays);
      quiet(page);
    });

    test("context: of a shortened message what the model sees, and the whole", async () => {
      const key = fresh();
      await server.ask("PATCH", at(key), { window: 4000 });
      await server.ask("POST", `${at(key)}/messages`, { text: "hello" });
      await server.ask("POST", `${at(key)}/messages`, { text: Array.from({ length: 800 }, (_, i) => `line ${i} of the report`).join("\n") });
      const overlay = (await server.ask("GET", `${at(key)}/log?messages=0`)).entries.find((e) => e.overlay).overlay;
      const page = await open(key), { panel } = page;
      await panel.locator("summary", { hasText: "Shortened message" }).click();
      const seen = panel.locator(".p-fold", { hasText: "As the model sees it" });
      await seen.locator(".p-text").first().waitFor();
      assert.equal(await seen.locator(".p-text").first().innerText(), overlay.edits[0].blocks[0].text);
      await seen.getByText("As it was, whole").click();
      await seen.locator(".p-fold .p-text", { hasText: "line 799 of the report" }).waitFor();
      // what is hidden from the eye must not make the page itself scroll
      assert.equal(await page.evaluate(() => document.scrollingElement.scrollHeight - innerHeight), 0);
      quiet(page);
    });

    test("context: follows the conversation; prices are kept here", async () => {
      const key = fresh();
      const page = await open(key), { panel } = page;
      await panel.getByText("Nothing was said here yet.").waitFor();
      await say(page, "hello");
      await shown(page, "You said: hello");
      await panel.getByText("2 messages after the system prompt").waitFor();
      await panel.getByText("enter prices below").waitFor();
      await panel.locator("summary", { hasText: "Prices" }).click();
      await panel.getByLabel("Input", { exact: true }).fill("1,5");
      await panel.getByLabel("Output", { exact: true }).fill("x");
      await panel.getByText("a number, such as 3 or 0.25").waitFor();
      await panel.getByLabel("Output", { exact: true }).fill("2");
      const { usage } = (await server.ask("GET", `${at(key)}/anatomy`)).calls[0];
      const want = (usage.input_tokens * 1.5 + usage.output_tokens * 2) / 1e6;
      const said = async () => Number((await panel.locator("dt", { hasText: "Cost" }).locator("xpath=following-sibling::dd").innerText()).slice(1));
      assert.ok(Math.abs((await said()) - want) < want / 20, `${await said()}, want ${want}`);
      await page.reload();
      await panel.getByRole("meter").waitFor();
      assert.ok(Math.abs((await said()) - want) < want / 20);
      assert.deepEqual(Object.keys(JSON.parse(await page.evaluate(() => localStorage.getItem("tidemark.prices")))), ["fake-1"]);
      await say(page, "more");
      await panel.getByText("4 messages after the system prompt").waitFor();
      await panel.locator("summary", { hasText: "As a table" }).click();
      await panel.locator("tbody tr").nth(1).waitFor(); // a fold is filled once it is open
      assert.equal(await panel.locator("tbody tr").count(), 2);
      quiet(page);
    });

    test("context: after a reset it is of the new conversation, the chart is of both", async () => {
      const key = await filled(1);
      const page = await open(key), { panel } = page;
      await panel.locator(".p-badge-compaction").first().waitFor();
      await server.ask("POST", `${at(key)}/reset`, { reason: "a new season" });
      await panel.locator(".p-badge-reset").waitFor();
      assert.equal(await panel.locator(".p-badge-compaction").count(), 0);
      await panel.getByText("0 messages after the system prompt").waitFor();
      assert.ok((await panel.locator("svg .p-cut").count()) >= 2); // and in the key
      await panel.locator(".p-change summary").first().click();
      await panel.locator("dd", { hasText: "a new season" }).waitFor();
      await panel.getByRole("button", { name: "Open the archive" }).click();
      await panel.locator("summary", { hasText: "Fact 0: lamp 0" }).first().waitFor();
      quiet(page);
    });

    test("a server that is gone is told, and asked again", async () => {
      const key = await filled(1);
      const page = await open(key, "Archives", { allow: /404 \(Not Found\)|ERR_/ }), { panel } = page;
      await panel.locator(".p-row-tall").first().waitFor();
      await server.kill();
      await panel.locator(".p-row-tall").first().click();
      await panel.getByRole("alert").filter({ hasText: "The server cannot be reached." }).waitFor();
      await panel.getByRole("tab", { name: "Memory" }).click();
      await panel.getByRole("alert").filter({ hasText: "The server cannot be reached." }).waitFor();
      const again = panel.getByRole("button", { name: "Try again" });
      const asked = page.waitForRequest(/\/memory\?/);
      await again.click();
      await asked;
      await server.start();
      const press = () => again.evaluateAll(([b]) => b?.click()); // gone where the page heard that the server is back
      await press();
      await panel.getByRole("button", { name: /MEMORY.md/ }).waitFor();
      await panel.getByRole("tab", { name: "Archives" }).click();
      await press();
      await panel.locator("summary", { hasText: "Fact 0: lamp 0" }).first().waitFor();
      quiet(page);
    });

    test("context: the chart is walked by keys", async () => {
      const page = await open(await filled()), { panel } = page;
      await panel.getByRole("img", { name: /Tokens of the context over/ }).focus();
      await page.keyboard.press("Home");
      await panel.locator("figcaption", { hasText: "Call, " }).waitFor();
      await page.keyboard.press("End");
      await page.keyboard.press("ArrowLeft");
      assert.match(await panel.locator("figcaption").innerText(), /(Call|Compacted), .* → .* tokens/);
      await page.keyboard.press("Escape");
      await panel.locator("figcaption", { hasText: "limit" }).waitFor();
      quiet(page);
    });

    test("memory: written, changed by somebody else meanwhile, nothing lost, undone", async () => {
      const file = "/v1/agents/main/memory/MEMORY.md";
      const page = await open(fresh(), "Memory", { allow: /404 \(Not Found\)|412/ }), { panel } = page;
      await panel.getByRole("button", { name: /MEMORY.md/ }).click();
      await panel.getByRole("button", { name: "Write" }).click();
      const field = panel.getByRole("textbox", { name: "Text of the file" });
      await field.fill("# Lamps\n\n- one\n- two\n");
      await page.keyboard.press("Control+s");
      await panel.getByRole("heading", { name: "Lamps" }).waitFor();
      assert.equal(await server.ask("GET", file), "# Lamps\n\n- one\n- two\n");

      await panel.getByRole("button", { name: "Edit", exact: true }).click();
      await field.fill("# Lamps\n\n- one\n- mine\n");
      await page.reload(); // a draft outlives it
      await panel.getByRole("button", { name: /MEMORY.md/ }).click();
      await panel.getByText("This is what you were writing when you left").waitFor();
      assert.equal(await field.inputValue(), "# Lamps\n\n- one\n- mine\n");
      await server.ask("PUT", file, "# Lamps\n\n- one\n- lantern\n");
      await panel.getByRole("button", { name: "Save" }).click();
      await panel.getByText("The file changed while you were writing.").waitFor();
      await panel.locator(".p-diff del", { hasText: "- lantern" }).waitFor();
      await panel.locator(".p-diff ins", { hasText: "- mine" }).waitFor();
      assert.equal(await server.ask("GET", file), "# Lamps\n\n- one\n- lantern\n");
      await look(page, "conflict");
      await panel.getByRole("button", { name: "Save mine over it" }).click();
      await panel.locator(".markdown li", { hasText: "mine" }).waitFor();
      assert.equal(await server.ask("GET", file), "# Lamps\n\n- one\n- mine\n");

      await panel.getByRole("button", { name: "History" }).click();
      await panel.locator(".p-fold summary", { hasText: "Edited" }).first().click();
      await panel.locator(".p-diff del", { hasText: "- lantern" }).waitFor();
      await panel.getByRole("button", { name: "Undo last edit" }).click();
      await panel.getByRole("button", { name: "Undo", exact: true }).click();
      await panel.getByText("The last edit is undone").waitFor();
      assert.equal(await server.ask("GET", file), "# Lamps\n\n- one\n- lantern\n");
      await panel.getByRole("button", { name: "All files" }).click();
      await panel.getByRole("searchbox", { name: "Search memory" }).fill("lantern");
      await page.keyboard.press("Enter");
      await panel.getByRole("button", { name: /- lantern|lantern/ }).first().click();
      await panel.locator("mark", { hasText: "lantern" }).waitFor();
      quiet(page);
    });

    test("memory: a refused path is told in the server's words", async () => {
      const page = await open(fresh(), "Memory", { allow: /40[04]/ }), { panel } = page;
      await panel.getByRole("textbox", { name: "Path of a memory file" }).fill("notes/x.txt");
      await page.keyboard.press("Enter");
      await panel.getByRole("alert").filter({ hasText: "is no memory file: want MEMORY.md" }).waitFor();
      quiet(page);
    });

    test("archives: searched, opened, downloaded, restored", async () => {
      const key = await filled(2, "Its bulb is ultramarine.");
      await server.ask("PATCH", at(key), { title: "Lamps" });
      const page = await open(key, "Archives", { allow: /409 \(Conflict\)/ }), { panel } = page;
      const { archives } = await server.ask("GET", `/v1/agents/main/archives?session=${(await server.ask("GET", at(key))).id}`);
      await panel.getByRole("checkbox", { name: /Only of this session/ }).check();
      await panel.locator(".p-row-tall").nth(archives.length - 1).waitFor();
      await page.waitForFunction((n) => document.querySelectorAll(".p-row-tall").length === n, archives.length);
      await panel.getByRole("searchbox", { name: "Search archives" }).fill("ultramarine");
      await page.keyboard.press("Enter");
      await panel.locator(".p-row-tall", { hasText: "ultramarine" }).first().click();
      await panel.locator(".p-hit .p-text", { hasText: "Its bulb is ultramarine." }).waitFor();
      await look(page, "archive");
      const [download] = await Promise.all([page.waitForEvent("download"), panel.getByRole("button", { name: "Download" }).click()]);
      const lines = gunzipSync(readFileSync(await download.path())).toString().trim().split("\n");
      assert.ok(lines.length > 1 && lines.every((l) => JSON.parse(l).role));
      await panel.locator(".p-path", { hasText: /^Lamps$/ }).waitFor();
      const title = panel.getByRole("textbox", { name: "Title of the restored conversation" });
      assert.equal(await title.inputValue(), "Lamps, restored");
      const restored = `Back: ${kind} & ünï`;
      await server.ask("POST", `${at(`back-${kind}-uni`)}/messages`, { text: "the name is taken" });
      await title.fill(restored);
      await page.keyboard.press("Enter");
      await page.waitForFunction((k) => decodeURIComponent(location.hash).endsWith(k), `agent:main:local:dm:back-${kind}-uni-2`);
      await shown(page, "Its bulb is ultramarine.");
      await page.getByRole("heading", { name: restored }).waitFor();
      assert.deepEqual(await page.locator(".message.mine .who").evaluateAll((all) => [...new Set(all.map((e) => e.textContent))]), ["You"]);
      const { messages, title: named } = await server.ask("GET", at(`back-${kind}-uni-2`));
      assert.deepEqual([messages, named], [lines.length, restored]);
      quiet(page);
    });

    test("archives: one that is damaged is told so", { skip: kind !== "native" && "its bucket is no folder" }, async () => {
      const key = await filled(1);
      const { id } = await server.ask("GET", at(key));
      const name = (await server.ask("GET", `/v1/agents/main/archives?session=${id}`)).archives[0].key.split("/").at(-1);
      const file = readdirSync(server.disk, { recursive: true }).find((f) => f.endsWith(name));
      truncateSync(path.join(server.disk, file), 200);
      const page = await open(key, "Archives", { allow: /422|404/ }), { panel } = page;
      await panel.getByRole("checkbox", { name: /Only of this session/ }).check();
      await page.waitForFunction(() => document.querySelectorAll(".p-row-tall").length === 1);
      await panel.locator(".p-row-tall").click();
      await panel.getByRole("alert").filter({ hasText: "is damaged" }).waitFor();
      quiet(page);
    });

    test("hostile text is text wherever it is shown", async () => {
      const key = await filled(1, hostile);
      await server.ask("PUT", "/v1/agents/main/memory/SOUL.md", `# Soul ${hostile}\n\n${hostile}\n\n![x](https://elsewhere.example/x.png)\n`);
      await server.ask("PUT", "/v1/agents/main/memory/SOUL.md", `# Soul\n\n${hostile}\n`);
      const page = await open(key), { panel } = page;
      await panel.locator("summary", { hasText: "Summary" }).first().click();
      await panel.getByText("The originals, word for word").first().click();
      await panel.locator("summary", { hasText: "Fact 0: lamp 0 stands" }).first().click();
      await panel.locator(".p-text", { hasText: "window.hacked=2" }).first().waitFor();
      await panel.locator(".p-change summary").first().click();
      await panel.getByText("What the model reads instead").first().click();
      await panel.getByRole("tab", { name: "Memory" }).click();
      await panel.getByRole("button", { name: /SOUL.md/ }).click();
      await panel.locator(".markdown", { hasText: "window.hacked=2" }).waitFor();
      await panel.getByRole("button", { name: "History" }).click();
      await panel.locator(".p-fold summary", { hasText: "Edited" }).first().click();
      await panel.locator(".p-diff del", { hasText: "elsewhere.example" }).first().waitFor();
      await panel.getByRole("button", { name: "All files" }).click();
      await panel.getByRole("searchbox", { name: "Search memory" }).fill("hacked");
      await page.keyboard.press("Enter");
      await panel.locator(".p-row-tall", { hasText: "onerror" }).first().waitFor();
      await panel.getByRole("tab", { name: "Archives" }).click();
      await panel.getByRole("searchbox", { name: "Search archives" }).fill("hacked");
      await page.keyboard.press("Enter");
      await panel.locator(".p-row-tall:visible", { hasText: "Fact" }).first().click();
      await panel.locator(".p-hit .p-text", { hasText: "window.hacked=2" }).waitFor();
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      assert.deepEqual(await panel.evaluate((el) => [...el.querySelectorAll("script, img, iframe, [onerror], [onload], a[href^='javascript']")].map((x) => x.outerHTML)), []);
      quiet(page);
    });

    test("paging: the zone, what left, and the bytes that were not sent", async () => {
      const own = await host(kind, fake, { vars: { TIDEMARK_COMPACTION_STRATEGIES: "paging" } });
      try {
        const key = fresh();
        fake.answer = () => ({ text: "Noted." });
        await own.ask("PATCH", at(key), { window: 30_000 });
        const words = Array.from({ length: 1500 }, (_, i) => `line ${i}`).join(", ");
        await own.ask("POST", `${at(key)}/messages`, { text: `Keep this: ${words}` });
        const { entries } = await own.ask("GET", `${at(key)}/log?limit=10`);
        const { id } = entries.find((e) => e.message?.role === "user");
        let round = 0;
        fake.answer = () => (round++ < 9 ? { calls: [{ id: `toolu_${round}`, name: "recall", input: { entry: id } }] } : { text: "Read it nine times." });
        await own.ask("POST", `${at(key)}/messages`, { text: "Read it again and again." });
        const { paging } = (await own.ask("GET", `${at(key)}/anatomy`)).calls[0];
        assert.ok(paging.stubs > 0 && paging.totals.bytesSent < paging.totals.bytesIn, JSON.stringify(paging));
        const page = await visit(browser, own, { key });
        contexts.push(page.context());
        await page.getByRole("button", { name: "Context", exact: true }).click();
        const section = page.getByRole("region", { name: "Paging" });
        await section.getByText(new RegExp(`^${paging.zone}: `, "i")).waitFor();
        const facts = await section.locator(".p-facts").innerText();
        assert.match(facts, new RegExp(`Out of the context now\\s+${paging.stubs} blocks?, `));
        assert.match(facts, new RegExp(`${paging.totals.collected} other results?`));
        await section.getByRole("img").focus();
        await page.keyboard.press("End");
        await section.getByText(/Call of .* sent of /).waitFor();
        await look(page, "paging");
        quiet(page);
      } finally {
        await own.close();
      }
    });

    test("episodes: which is open, what became of the others, and that it is live", async () => {
      const own = await host(kind, fake, { vars: { TIDEMARK_COMPACTION_STRATEGIES: "episodes", TIDEMARK_COMPACTION_EPISODES_BUDGET: "12k" } });
      try {
        const key = fresh();
        const words = Array.from({ length: 2000 }, (_, i) => `line ${i}`).join(", ");
        fake.answer = () => ({ text: "Noted." });
        await own.ask("POST", `${at(key)}/messages`, { text: `Keep this: ${words}` });
        const { entries } = await own.ask("GET", `${at(key)}/log?limit=10`);
        const { id } = entries.find((e) => e.message?.role === "user");
        // turn lets the model make some calls, one a reply.
        const turn = async (text, ...calls) => {
          let n = 0;
          fake.answer = () => (n < calls.length ? { calls: [{ id: `toolu_${text}_${++n}`, name: calls[n - 1][0], input: calls[n - 1][1] }] } : { text: "Done." });
          await own.ask("POST", `${at(key)}/messages`, { text });
        };
        const page = await visit(browser, own, { key });
        contexts.push(page.context());
        await page.getByRole("button", { name: "Context", exact: true }).click();
        const section = page.getByRole("region", { name: "Episodes" });
        await page.getByText("of the limit").first().waitFor();
        assert.equal(await section.count(), 0, "shown before there are any");

        const read = ["recall", { entry: id }], name = `look <img src=x onerror="window.hacked=1">`;
        await turn("first", ["delimiter", { action: "start", name, type: "expl" }], read, read, ["delimiter", { action: "end", description: "Lines go up to 1999." }]);
        await turn("second", ["delimiter", { action: "start", name: "act on it", type: "act", dependencies: [name] }], read, read);
        await section.getByText("Open: action “act on it”.").waitFor();
        const told = await own.ask("GET", `${at(key)}/episodes`);
        assert.equal(told.active, true);
        assert.deepEqual([told.open, told.budget, told.episodes.map((e) => e.name).filter(Boolean)], ["act on it", 12_000, [name, "act on it"]]);
        await section.getByText(`of the budget, ${group(told.size)} of 12,000 tokens; over it finished ones leave, down to 9,000.`).waitFor();
        const gauge = section.getByRole("meter", { name: "Budget of the episodes" });
        const filled = () => gauge.evaluate((g) => [g.querySelector(".p-kind-all"), g.querySelector(".p-free")].map((r) => r.getBoundingClientRect().width).reduce((a, b) => a / b));
        assert.equal(await gauge.getAttribute("aria-valuetext"), `${group(told.size)} of 12,000 tokens`);
        assert.ok(told.size > 0 && Math.abs((await filled()) - Math.min(1, told.size / 12_000)) < 0.02, `${await filled()} is drawn of ${told.size}`);
        await turn("third", ["delimiter", { action: "end" }]);
        await section.getByText("None is open.").waitFor();
        await section.getByText("One by one").click();
        await section.locator("b", { hasText: "<img src=x" }).waitFor();
        await section.getByText("Lines go up to 1999.").waitFor();
        await section.getByRole("img", { name: /^Tokens of \d+ episodes/ }).focus();
        await page.keyboard.press("Home");
        await section.getByText(/^1, exploration .* tokens, 2 calls; Lines go up/).waitFor();
        assert.equal(await page.evaluate(() => window.hacked), undefined);
        await look(page, "episodes");
        quiet(page);
      } finally {
        await own.close();
      }
    });

    test("phone width, by keys: over the chat, nothing sticks out, Escape goes back", async () => {
      const key = await filled(1, "a-very-long-word-".repeat(20));
      await server.ask("PUT", "/v1/agents/main/memory/USER.md", `# ${"long".repeat(60)}\n\n${"x".repeat(300)}\n`);
      const page = await visit(browser, server, { key, allow: /404 \(Not Found\)/, size: { viewport: { width: 360, height: 740 }, hasTouch: true } });
      contexts.push(page.context());
      const panel = page.getByRole("complementary", { name: "Context, memory and archives" });
      const wide = () => page.evaluate(() => Math.max(document.scrollingElement.scrollWidth, ...[...document.querySelectorAll(".p-body")].map((b) => b.scrollWidth - b.clientWidth + innerWidth)) - innerWidth);
      await page.getByRole("button", { name: "Context" }).focus();
      await page.keyboard.press("Enter");
      await panel.getByRole("meter").waitFor();
      assert.equal(await page.evaluate(() => `${document.activeElement.role} ${document.activeElement.textContent}`), "tab Context");
      await panel.locator(".p-change summary").first().click();
      await look(page, "phone");
      assert.equal(await wide(), 0, "context");
      await panel.getByRole("tab", { name: "Context" }).focus();
      await page.keyboard.press("ArrowRight");
      await panel.getByRole("textbox", { name: "Name of the snapshot" }).waitFor();
      assert.equal(await wide(), 0, "snapshots");
      await page.keyboard.press("ArrowRight");
      await panel.getByRole("button", { name: /USER.md/ }).focus();
      await page.keyboard.press("Enter");
      await panel.locator(".markdown").waitFor();
      assert.equal(await wide(), 0, "memory");
      await panel.getByRole("tab", { name: "Memory" }).focus();
      await page.keyboard.press("End");
      await panel.locator(".p-row-tall:visible").first().focus();
      await page.keyboard.press("Enter");
      await panel.locator(".p-list summary:visible").first().waitFor();
      assert.equal(await wide(), 0, "archives");
      await page.keyboard.press("Escape");
      await panel.waitFor({ state: "detached" });
      assert.equal(await page.evaluate(() => document.activeElement.className), "panelbutton ");
      quiet(page);
    });
  });
}

// Snapshots and branches in the panel in a real Chromium, on both hosts: what it shows is what the server says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { model } from "./model.mjs";
import { host, hosts, launch, say, shown, visit } from "./rig.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

let number = 0;
const fresh = () => `agent:main:local:dm:snap-${++number}`;
const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>`;
const picture = process.env.PICTURES; // a folder for pictures to look at

for (const kind of hosts) {
  describe(`snapshots, ${kind}`, { timeout: 600_000 }, () => {
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
    const begun = async (...texts) => {
      const key = fresh();
      for (const text of texts) await server.ask("POST", `${at(key)}/messages`, { text });
      return key;
    };
    const open = async (key, tab = "Snapshots", options = {}) => {
      const page = await visit(browser, server, { key, allow: /404 \(Not Found\)|409 \(Conflict\)/, ...options });
      contexts.push(page.context());
      await page.getByRole("button", { name: "Context", exact: true }).click();
      const panel = page.getByRole("complementary", { name: "Context, memory and archives" });
      await panel.getByRole("tab", { name: tab }).click();
      return Object.assign(page, { panel, node: (name) => panel.getByRole("treeitem", { name }) });
    };
    const look = async (page, name) => picture && page.screenshot({ path: path.join(picture, `${kind}-${name}.png`) });
    const quiet = (page) => assert.deepEqual(page.complaints, []);
    const nodes = async (key) => (await server.ask("GET", `${at(key)}/snapshots`)).nodes;

    test("a snapshot is taken, a branch made of it and opened, and its outcome merged back", async () => {
      const key = await begun("We build a table.", "Of walnut.");
      const page = await open(key), { panel } = page;
      await panel.getByText("None yet.").waitFor();
      await panel.getByRole("textbox", { name: "Name of the snapshot" }).fill("base plan");
      await panel.getByRole("button", { name: "Snapshot", exact: true }).click();
      await panel.getByText("“base plan” is taken, with 4 messages.").waitFor();
      await page.node(/^base plan, snapshot/).waitFor();
      const [snap] = await nodes(key);
      assert.deepEqual([snap.name, snap.message_count], ["base plan", 4]);

      // what was taken is chosen, so its acts stand under it
      await panel.locator(".p-nodebox").getByRole("button", { name: "Branch…" }).click();
      await panel.getByRole("textbox", { name: "Name, or one is made" }).fill("round legs");
      await panel.getByRole("textbox", { name: "What it is told first" }).fill("You explore round legs.");
      await panel.getByRole("checkbox", { name: /^Trimmed/ }).uncheck();
      await panel.getByRole("button", { name: "Branch", exact: true }).click();
      const branch = `${key}#round-legs`;
      await page.waitForFunction((k) => decodeURIComponent(location.hash) === `#/s/${k}`, branch);
      await page.node(/^round legs, branch.*shown now$/).waitFor();
      await shown(page, "Of walnut.");
      fake.answer = () => ({ text: "Round legs are turned." });
      await say(page, "What of the legs?");
      await shown(page, "Round legs are turned.");
      await page.locator(".sessions li.under", { hasText: /round/ }).waitFor();
      await look(page, "branch");

      await page.node(/^round legs/).click();
      await panel.getByRole("button", { name: "Merge back…" }).click();
      await panel.getByRole("button", { name: "Merge back", exact: true }).click();
      await panel.getByText("It stands as a note at the end").waitFor();
      await panel.getByRole("button", { name: /^Open / }).last().click();
      await page.waitForFunction((k) => decodeURIComponent(location.hash) === `#/s/${k}`, key);
      const note = page.getByRole("article", { name: /^Outcome of branch "round legs"/ });
      await note.locator(".body", { hasText: /^\s*Round legs are turned\.\s*$/ }).waitFor();
      assert.equal(await page.locator(".message.mine", { hasText: "Outcome of" }).count(), 0, "nobody said it");
      assert.equal(await page.locator(".event", { hasText: "stands here as a note" }).count(), 0, "it is told once");
      await look(page, "merged");
      quiet(page);
    });

    test("a snapshot is removed from the tree, when nothing was made of it", async () => {
      const key = await begun("We build a chair.");
      const keep = await server.ask("POST", `${at(key)}/snapshots`, { name: "keep" });
      await server.ask("POST", `${at(key)}/snapshots`, { name: "wrong" });
      await server.ask("POST", `${at(key)}/branch`, { snapshot: keep.id, name: "on" });
      const page = await open(key), { panel } = page;
      await page.node(/^keep/).click();
      await panel.getByRole("button", { name: "Export" }).waitFor();
      assert.equal(await panel.getByRole("button", { name: "Remove…" }).count(), 0);
      await page.node(/^wrong/).click();
      await panel.getByRole("button", { name: "Remove…" }).click();
      await panel.getByRole("button", { name: "Keep it" }).click();
      await panel.getByRole("button", { name: "Remove…" }).click();
      await panel.getByRole("button", { name: "Remove", exact: true }).click();
      await page.node(/^wrong/).waitFor({ state: "detached" });
      assert.deepEqual((await nodes(key)).map((n) => n.name).sort(), ["keep", "on"]);
      await shown(page, "We build a chair.");
      quiet(page);
    });

    test("two are compared side by side, and nothing in them is markup", async () => {
      const key = await begun("We build a table.");
      const snap = await server.ask("POST", `${at(key)}/snapshots`, { name: "base", description: hostile, tags: ["v1"] });
      const left = await server.ask("POST", `${at(key)}/branch`, { snapshot: snap.id, name: "left", orientation: hostile });
      fake.answer = () => ({ text: `Left: ${hostile}` });
      await server.ask("POST", `${at(left.key)}/messages`, { text: `Go left. ${hostile}` });
      const page = await open(key), { panel } = page;
      await page.node(/^base, snapshot/).click();
      await panel.locator(".p-nodebox").getByText("<script>").waitFor();
      await panel.getByRole("button", { name: "Compare", exact: true }).click();
      await page.node(/^left, branch/).click();
      await panel.getByRole("button", { name: "Compare with “base”" }).click();
      await panel.getByText(/^They share \d+ messages?/).waitFor();
      const side = panel.getByRole("article", { name: "left" });
      await side.locator(".p-outcome", { hasText: "Left: <img" }).waitFor();
      const told = await server.ask("GET", `/v1/compare?a=${snap.id}&b=${encodeURIComponent(left.key)}`);
      assert.equal(await side.locator("dd").first().textContent(), String(told.b.messagesSince));
      await look(page, "compare");
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      await panel.getByRole("button", { name: "Back to the tree" }).click();
      await page.node(/^left, branch/).waitFor();
      quiet(page);
    });

    test("a snapshot is saved as a file, and read on another server", async () => {
      const key = await begun("The harbour is grey.");
      const snap = await server.ask("POST", `${at(key)}/snapshots`, { name: "harbour" });
      const page = await open(key);
      await page.node(/^harbour/).click();
      const [file] = await Promise.all([page.waitForEvent("download"), page.panel.getByRole("button", { name: "Export" }).click()]);
      assert.equal(file.suggestedFilename(), `${snap.id}.tar.gz`);
      assert.match(gunzipSync(readFileSync(await file.path())).subarray(0, 100).toString(), /^manifest\.json/);
      quiet(page);
      const other = await host(kind, fake);
      try {
        const there = await visit(browser, other, { key: fresh(), allow: /404 \(Not Found\)/ });
        contexts.push(there.context());
        await there.getByRole("button", { name: "Context", exact: true }).click();
        await there.getByRole("tab", { name: "Snapshots" }).click();
        const field = there.locator("input[type=file][accept*=gzip]");
        await field.setInputFiles({ name: "notes.tar.gz", mimeType: "application/gzip", buffer: Buffer.from("x") });
        await there.getByText("This is no file of a snapshot").waitFor();
        await field.setInputFiles({ name: "before.tgz", mimeType: "application/gzip", buffer: readFileSync(await file.path()) });
        await there.waitForFunction((id) => decodeURIComponent(location.hash).endsWith(`:${id}`), snap.id);
        await shown(there, "The harbour is grey.");
        await there.getByRole("treeitem", { name: /^harbour/ }).waitFor();
        quiet(there);
      } finally {
        await other.close();
      }
    });

    test("the tree by keys", async () => {
      const key = await begun("one");
      const a = await server.ask("POST", `${at(key)}/snapshots`, { name: "first" });
      await server.ask("POST", `${at(key)}/branch`, { snapshot: a.id, name: "side" });
      await server.ask("POST", `${at(key)}/messages`, { text: "two" });
      await server.ask("POST", `${at(key)}/snapshots`, { name: "second" });
      const page = await open(key);
      const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label")?.split(",")[0]);
      await page.node(/^first/).focus();
      for (const [press, want] of [["ArrowDown", "side"], ["ArrowLeft", "first"], ["ArrowRight", "side"], ["End", "side"], ["ArrowDown", "side"], ["Home", "second"], ["ArrowDown", "first"]]) {
        await page.keyboard.press(press);
        assert.equal(await focused(), want, `${press} of ${await page.panel.getByRole("treeitem").evaluateAll((all) => all.map((e) => `${e.dataset.at} ${e.getAttribute("aria-label")}`))}`);
      }
      assert.equal(await page.node(/^side/).getAttribute("aria-level"), "2");
      await page.keyboard.press("Enter");
      assert.equal(await page.node(/^first/).getAttribute("aria-selected"), "true");
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Branch…");
      await page.keyboard.press("Enter");
      const name = page.panel.getByRole("textbox", { name: "Name, or one is made" });
      await name.waitFor();
      await page.waitForFunction(() => document.activeElement.tagName === "INPUT");
      await page.keyboard.press("Escape");
      await page.panel.locator(".p-nodebox").getByRole("button", { name: "Compare" }).waitFor();
      quiet(page);
    });

    test("a tree of thousands is cut, and said to be", async () => {
      const key = await begun("one");
      const page = await open(key);
      const many = (n, from) => Array.from({ length: n }, (_, i) => ({ id: `snap-${from + i}`, kind: "snapshot", of: "session", name: `n ${from + i}`, session: key, parent: i % 3 ? `snap-${from + i - 1}` : "", created_at: new Date(1e12 + from + i).toISOString(), message_count: i }));
      let asked = 0;
      await page.route(/\/v1\/tree/, (r) => r.fulfill({ json: { nodes: many(1000, 1000 * asked++), next: "more" } }));
      await page.panel.getByRole("checkbox", { name: "Of all conversations" }).check();
      await page.panel.getByText("These are the 2,000 newest.").waitFor();
      assert.deepEqual([asked, await page.panel.getByRole("treeitem").count()], [2, 150]);
      await page.panel.getByRole("button", { name: "Show 500 more of 2,000" }).click();
      await page.panel.getByRole("button", { name: "Show 500 more of 2,000" }).waitFor();
      assert.equal(await page.panel.getByRole("treeitem").count(), 650);
      asked = 0;
      await page.panel.getByRole("button", { name: "Read older ones" }).click();
      await page.panel.getByText("These are the 4,000 newest.").waitFor();
      assert.equal(asked, 4);
      quiet(page);
    });

    test("what the context costs is what the server says", async () => {
      const key = await begun("What does it cost?");
      const page = await open(key, "Context"), { panel } = page;
      await panel.getByText("The prices of this model are not known").waitFor();
      await panel.getByRole("combobox", { name: "Prices of which model" }).selectOption("opus");
      await panel.getByText("to read with the next turn").waitFor();
      const told = await server.ask("GET", `${at(key)}/cost?model=opus`);
      const digits = await panel.locator("#p-cost .p-big").textContent();
      assert.ok(Math.abs(Number(digits.slice(1)) / told.next.likely - 1) < 0.06, `${digits}, ${told.next.likely}`);
      await panel.getByText("How this is reckoned").click();
      await panel.getByText(`Prices of ${told.price.date}`).waitFor();
      await look(page, "cost");
      quiet(page);
    });

    test("on a phone nothing stands over the edge", async () => {
      const key = await begun("one");
      await server.ask("POST", `${at(key)}/snapshots`, { name: `a long name ${"that goes on ".repeat(6)}`.trim() });
      const page = await open(key, "Snapshots", { size: { viewport: { width: 360, height: 700 }, colorScheme: "dark" } });
      await page.node(/^a long name/).click();
      await look(page, "phone");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll(".panels button")].filter((b) => b.offsetParent).every((b) => b.getBoundingClientRect().right <= innerWidth)));
      quiet(page);
    });
  });
}

// The page in a real Chromium, on both hosts. Nothing waits for a time: a gate lets the model go on when the
// test has seen what it wants. Every test fails on a complaint of the browser and on a request to elsewhere.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, describe, test } from "node:test";
import { gate, model } from "./model.mjs";
import { box, host, hosts, idle, launch, say, shown, visit } from "./rig.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

let count = 0;
const fresh = () => `agent:main:local:dm:test-${++count}`;
const words = (page) => page.locator(".log .message .body").allInnerTexts();

for (const kind of hosts) {
  describe(kind, { timeout: 600_000 }, () => {
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
    const go = async (options = {}) => {
      const page = await visit(browser, server, { key: fresh(), allow: /404 \(Not Found\)/, ...options });
      if (!contexts.includes(page.context())) contexts.push(page.context());
      return page;
    };
    const quiet = (...pages) => { for (const p of pages) assert.deepEqual(p.complaints, []); };
    // history is the server's: what the page must equal.
    const history = async (key) => (await server.ask("GET", `/v1/sessions/${encodeURIComponent(key)}/log`)).entries.reverse().filter((e) => e.kind === "message")
      .map((e) => (typeof e.message.content === "string" ? e.message.content : e.message.content.map((b) => b.text ?? "").join("")));
    const keyOf = (page) => page.evaluate(() => decodeURIComponent(location.hash.slice(4)));

    test("streams", async () => {
      const page = await go({ key: "", allow: /^$/ });
      const g = gate();
      fake.answer = () => ({ text: ["One **two**\n\n", "```js\nlet x", " = 1;\n```\n\nthe ", "end."], gate: g });
      await box(page).fill("first line");
      await box(page).press("Shift+Enter");
      await box(page).pressSequentially("second");
      await box(page).press("Enter");
      await page.getByText("Working…").waitFor();
      g.let(3); // the head, the block, one piece
      await page.locator(".working strong", { hasText: "two" }).waitFor();
      assert.equal(await page.locator(".working pre").count(), 0);
      g.let(1);
      await page.locator(".working pre", { hasText: "let x" }).waitFor();
      g.open();
      await idle(page);
      assert.deepEqual(await words(page), ["first line\nsecond", "One two\n\nlet x = 1;\n\nCopy\n\nthe end."]);
      await page.getByRole("heading", { name: "first line second" }).waitFor();
      await page.locator(".sessions .current .name", { hasText: "first line second" }).waitFor();
      assert.deepEqual((await history(await keyOf(page))).map((t) => t.length > 0), [true, true]);
      quiet(page);
    });

    test("stops", async () => {
      const page = await go();
      const g = gate();
      fake.answer = () => ({ text: ["begun ", "never"], gate: g });
      await say(page, "go on");
      g.let(3);
      await page.locator(".working", { hasText: "begun" }).waitFor();
      await page.keyboard.press("Escape");
      await idle(page);
      await shown(page, "Stopped.");
      assert.ok(!(await words(page)).join().includes("never"));
      quiet(page);
    });

    for (const [name, pieces, mark] of [["before the first token", 0, "Working…"], ["in mid-answer", 3, "begun"]]) {
      test(`is opened again ${name}`, async () => {
        const page = await go();
        const g = gate();
        fake.answer = () => ({ text: ["begun ", "and ended"], gate: g });
        await say(page, "tell me");
        await page.locator(".working").waitFor();
        g.let(pieces);
        await page.locator(".working", { hasText: mark }).waitFor();
        await page.reload();
        await page.locator(".working", { hasText: mark }).waitFor();
        g.open();
        await idle(page);
        await shown(page, "begun and ended");
        assert.deepEqual(await words(page), ["tell me", "begun and ended"]);
        quiet(page);
      });
    }

    test("two tabs are in step", async () => {
      const key = fresh();
      const one = await go({ key });
      await say(one, "hello");
      await shown(one, "You said: hello");
      const two = await visit(browser, server, { key, context: one.context() });
      await shown(two, "You said: hello");
      const g = gate();
      fake.answer = (said) => ({ text: [`heard ${said.slice(0, 6)}`, " so"], gate: g });
      await say(one, "second");
      await two.locator(".log").getByText("second", { exact: true }).waitFor();
      await two.locator(".working").waitFor();
      await say(two, "third"); // waits for its turn, and both see it
      await two.locator(".sent", { hasText: "third" }).waitFor();
      await one.locator(".sent", { hasText: "third" }).waitFor();
      await say(two, "/memory");
      await one.locator(".sent", { hasText: /^\/memory/ }).waitFor();
      g.open();
      await Promise.all([idle(one), idle(two)]);
      assert.deepEqual(await words(two), await words(one));
      assert.deepEqual((await words(one)).length, (await history(key)).length);
      quiet(one, two);
    });

    test("the server is killed and comes back", async () => {
      const key = fresh();
      const page = await go({ key, allow: /404 \(Not Found\)|ERR_|503|500/ });
      await say(page, "one");
      await idle(page);
      const g = gate();
      fake.answer = () => ({ text: ["lost piece ", "of an answer"], gate: g });
      await say(page, "two");
      g.let(3);
      await page.locator(".working", { hasText: "lost piece" }).waitFor();
      await server.kill();
      await page.getByText("Try now").waitFor();
      await say(page, "three"); // said to nobody
      await page.locator(".sent.trying", { hasText: "three" }).waitFor();
      await box(page).fill("a draft");
      fake.answer = (said) => ({ text: said.includes("three") ? "all heard" : "again" });
      await server.start();
      g.open();
      await page.getByText("Try now").click({ timeout: 2_000 }).catch(() => {}); // it may have come back by itself
      await page.locator(".sent").first().waitFor({ state: "detached" });
      await idle(page);
      const [shownNow, stored] = [await words(page), await history(key)];
      assert.deepEqual(shownNow.map((w) => w.trim()), stored.map((w) => w.trim()));
      assert.equal(stored.filter((w) => w === "three").length, 1);
      assert.equal(await box(page).inputValue(), "a draft");
      await page.reload();
      await shown(page, "three");
      assert.equal(await box(page).inputValue(), "a draft");
      quiet(page);
    });

    test("what is discarded in one tab is sent by none", async () => {
      const key = fresh();
      const one = await go({ key, allow: /404 \(Not Found\)|ERR_/ });
      await say(one, "hello");
      await idle(one);
      await one.context().route("**/v1/**", (r) => r.abort()); // the server is away for both
      await say(one, "the password");
      await one.locator(".sent.trying", { hasText: "the password" }).waitFor();
      const two = await visit(browser, server, { key, context: one.context(), allow: /404 \(Not Found\)|ERR_/ });
      await two.locator(".sent.trying", { hasText: "the password" }).waitFor();
      await say(two, "something else");
      await two.locator(".sent", { hasText: "something else" }).waitFor();
      await one.locator(".sent.trying", { hasText: "the password" }).getByRole("button", { name: "Discard" }).click();
      await two.locator(".sent", { hasText: "the password" }).waitFor({ state: "detached" });
      await one.reload();
      await one.locator(".sent", { hasText: "something else" }).waitFor();
      await one.context().unroute("**/v1/**");
      await Promise.all([shown(one, "You said: something else"), shown(two, "You said: something else")]);
      await Promise.all([idle(one), idle(two)]);
      assert.deepEqual((await history(key)).filter((w) => !w.startsWith("You said")), ["hello", "something else"]);
      quiet(one, two);
    });

    test("takes pictures and text files", async () => {
      const page = await go();
      const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
      const pick = page.locator("input[type=file]");
      await pick.setInputFiles([{ name: "dot.png", mimeType: "image/png", buffer: png }, { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("walnut ≈ oak") }]);
      await page.getByText("notes.txt").waitFor();
      await pick.setInputFiles([{ name: "x.pdf", mimeType: "application/pdf", buffer: Buffer.from([37, 80, 68, 70, 0, 255]) }]);
      await page.getByRole("alert").getByText("x.pdf is no text").waitFor();
      await pick.setInputFiles([{ name: "long.txt", mimeType: "text/plain", buffer: Buffer.alloc(600_000, "a") }]);
      await page.getByRole("alert").getByText("a text file may have 500 KB").waitFor();
      await say(page, "what is this?");
      await idle(page);
      await page.locator("img.picture").waitFor();
      await page.locator(".fold.file", { hasText: "notes.txt" }).click();
      await shown(page, "walnut ≈ oak");
      const { content } = fake.calls.at(-1).messages[0];
      assert.deepEqual(content.map((b) => b.type).slice(0, 3), ["image", "text", "text"]);
      assert.equal(content[0].source.data, png.toString("base64"));
      // A picture over the bound is made smaller in the browser.
      const big = await page.evaluate(async () => {
        const c = new OffscreenCanvas(2400, 1800);
        const on = c.getContext("2d"), noise = on.createImageData(2400, 1800);
        for (let i = 0; i < noise.data.length; i += 60_000) crypto.getRandomValues(noise.data.subarray(i, i + 60_000));
        for (let i = 3; i < noise.data.length; i += 4) noise.data[i] = 255;
        on.putImageData(noise, 0, 0);
        const raw = new Uint8Array(await (await c.convertToBlob()).arrayBuffer());
        const transfer = new DataTransfer();
        transfer.items.add(new File([raw], "big.png", { type: "image/png" }));
        document.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
        return raw.length;
      });
      assert.ok(big > 4_000_000, `${big}`);
      await page.getByText("big.png").waitFor();
      await say(page, "and this?");
      await idle(page);
      const sent = fake.calls.at(-1).messages.flatMap((m) => m.content).filter((b) => b.type === "image").at(-1);
      assert.equal(sent.source.media_type, "image/jpeg");
      assert.ok(sent.source.data.length < 5_000_000);
      quiet(page);
    });

    test("renames, searches, exports, resets", async () => {
      const key = fresh();
      const page = await go({ key });
      await say(page, "the **walnut** table");
      await idle(page);
      await page.getByRole("button", { name: "Acts on this conversation" }).click();
      await page.getByLabel("Title").fill("Workshop");
      await page.getByRole("button", { name: "Rename" }).click();
      await page.getByRole("heading", { name: "Workshop" }).waitFor();
      await page.locator(".sessions .current .name", { hasText: "Workshop" }).waitFor();
      for (const [name, ext] of [["Export as Markdown", "md"], ["Export as JSON lines", "jsonl"]]) {
        await page.getByRole("button", { name: "Acts on this conversation" }).click();
        const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
        assert.equal(file.suggestedFilename(), `Workshop.${ext}`);
        assert.match(readFileSync(await file.path(), "utf8"), /the \*\*walnut\*\* table/);
      }
      await page.keyboard.press("Control+k");
      await page.keyboard.type("walnut");
      await page.getByText("2 found").waitFor();
      await page.keyboard.press("Enter");
      await page.locator(".lit").waitFor();
      await say(page, "/nonsense");
      await page.getByText("/nonsense is no command").waitFor();
      await page.getByRole("button", { name: "Search" }).click(); // the next act clears the note
      await page.getByText("/nonsense is no command").waitFor({ state: "detached" });
      await page.keyboard.press("Escape");
      await say(page, "/reset the router please");
      await page.getByText("/reset takes nothing behind it").waitFor();
      await say(page, "/new"); // the same as /reset
      await page.getByRole("button", { name: "Cancel" }).click();
      assert.equal((await words(page)).length, 2, "only asked");
      await say(page, "/reset");
      await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
      await page.locator(".event.reset").waitFor();
      await idle(page);
      assert.deepEqual(await words(page), []);
      assert.match(await page.locator(".event.reset").textContent(), /^New session \(manual\)\. 2 messages archived/);
      await page.getByRole("button", { name: "2 messages archived" }).click();
      const panel = page.getByRole("complementary", { name: "Context, memory and archives" });
      await panel.getByRole("tab", { name: "Archives", selected: true }).waitFor();
      await panel.getByText("the **walnut** table").first().waitFor();
      await panel.getByRole("button", { name: "Close the panel" }).click();
      await page.keyboard.press("Control+k");
      await page.keyboard.type("walnut");
      await page.locator(".found button").first().click();
      await page.getByText("Of an earlier session").waitFor();
      await page.keyboard.press("Escape");
      await say(page, "//slash");
      await idle(page);
      assert.equal((await words(page))[0], "/slash");
      await say(page, "/compact keep names");
      await shown(page, "Nothing to compact yet");
      quiet(page);
    });

    test("the main conversation stands first, and has MEMORY.md", async () => {
      const page = await go({ key: "", allow: /^$/ });
      const pinned = page.locator(".sessions li").first();
      await pinned.getByText("knows MEMORY.md and the persona").waitFor();
      await page.getByRole("button", { name: "New" }).click();
      await page.getByRole("button", { name: "Context", exact: true }).click();
      const panel = page.getByRole("complementary", { name: "Context, memory and archives" });
      await panel.getByText("Nothing was said here yet").waitFor();
      await panel.getByRole("tab", { name: "Memory" }).click();
      await panel.getByText("MEMORY.md and the persona are only in that of the main conversation").waitFor();
      await panel.getByRole("button", { name: "main conversation" }).click();
      await page.getByRole("heading", { name: "Main conversation" }).waitFor();
      assert.equal(await keyOf(page), "agent:main:main");
      await panel.getByText("The prompt of this conversation has MEMORY.md").waitFor();
      await say(page, "hello, main");
      await shown(page, "You said: hello, main");
      await idle(page);
      await pinned.getByText("2 messages").waitFor();
      await say(page, "/open The shed");
      await page.getByRole("heading", { name: "The shed" }).waitFor();
      assert.match(await keyOf(page), /:chat-/);
      assert.equal(await page.locator(".sessions .name", { hasText: "Main conversation" }).count(), 1);
      await page.getByRole("button", { name: "New" }).click();
      await page.getByRole("heading", { name: "New chat" }).waitFor();
      const listing = page.waitForResponse((r) => r.url().includes("/v1/sessions?"));
      await page.reload(); // one in which nothing was said is not asked for, after a reload neither
      await listing;
      await page.getByRole("heading", { name: "New chat" }).waitFor();
      await pinned.locator(".session").click();
      await shown(page, "You said: hello, main");
      quiet(page);
    });

    test("a context that is nearly full is told", async () => {
      const key = fresh();
      await server.ask("PATCH", `/v1/sessions/${encodeURIComponent(key)}`, { window: 8000 });
      const page = await go({ key, allow: /^$/ });
      const meter = page.getByRole("meter", { name: "How full the context is" }).first();
      for (let share = 0; share <= 85;) {
        await say(page, "Larch boards, 28 mm thick. ".repeat(12));
        await idle(page);
        const { contextTokens, limit } = await server.ask("GET", `/v1/sessions/${encodeURIComponent(key)}`);
        share = (100 * contextTokens) / limit;
        const words = `${Math.round(share)} % of the limit`;
        await page.locator(".fill", { hasText: words }).waitFor();
        assert.equal(await meter.getAttribute("aria-valuetext"), `${words}${share > 85 ? ", nearly full: it is compacted soon" : ""}`);
      }
      await page.locator(".fill.near").waitFor();
      await page.getByRole("button", { name: "Context", exact: true }).click();
      await page.locator(".p-fill", { hasText: "of the limit, compacted soon" }).waitFor();
      const colour = (at) => page.locator(at).evaluate((e) => getComputedStyle(e).color);
      assert.equal(await colour(".p-big"), await colour(".fill"));
      quiet(page);
    });

    test("questions to the server", async () => {
      const page = await go({ allow: /40[04] \((Bad Request|Not Found)\)/ });
      await page.keyboard.press("Alt+Shift+N"); // of which the page knows that it does not exist
      await say(page, "/status");
      await page.getByText("There is nothing to ask about yet").waitFor();
      await say(page, "hello");
      await idle(page);
      const answer = page.locator(".event.answer");
      for (const [line, want] of [["/status", /Model: fake-1\nContext: \d+ /], ["/model other-1", /^Model from now on: other-1/], ["/model", /^Model: other-1/], ["/memory", /^Memory files:/]]) {
        const before = await answer.count();
        await say(page, line);
        await answer.nth(before).waitFor();
        assert.match(await answer.nth(before).innerText(), want);
      }
      await say(page, "/model two names");
      await page.getByText("/model takes one name, or default").waitFor();
      assert.deepEqual((await words(page))[0], "hello");
      assert.equal((await history(await keyOf(page))).length, 2, "a question is no message");
      await page.setViewportSize({ width: 1200, height: 400 }); // less than help is high
      await say(page, "/help");
      await page.getByRole("heading", { name: "Keys" }).waitFor();
      assert.equal(await page.locator("dialog").evaluate((d) => [d, ...d.querySelectorAll("*")].some((e) => e.scrollTop > 0)), false, "it opens at its beginning");
      for (const name of ["new", "reset", "compact", "stop", "status", "model", "memory", "help"]) await page.locator("dialog dt", { hasText: `/${name}` }).waitFor();
      quiet(page);
    });

    test("long histories are read in pages", async () => {
      const key = fresh();
      const lines = Array.from({ length: 400 }, (_, i) => JSON.stringify({ role: i % 2 ? "assistant" : "user", content: `line ${i}` })).join("\n");
      await server.ask("POST", `/v1/sessions/${encodeURIComponent(key)}/import?format=jsonl`, lines);
      const page = await go({ key });
      await shown(page, "line 399");
      const many = await page.locator(".message").count();
      assert.ok(many <= 60, `${many}`);
      for (let seen = many; seen < 400;) {
        await page.locator(".log").evaluate((e) => { e.scrollTop = 0; e.dispatchEvent(new Event("scroll")); });
        await page.waitForFunction((n) => document.querySelectorAll(".message").length > n, seen);
        seen = await page.locator(".message").count();
      }
      assert.deepEqual(await words(page), Array.from({ length: 400 }, (_, i) => `line ${i}`));
      quiet(page);
    });

    test("shows tools and thinking folded", async () => {
      const page = await go();
      const g = gate();
      fake.answer = (said) => (/plan/.test(said) ? { thinking: "let me see", text: "I look.", calls: [{ id: "toolu_1", name: "memory_search", input: { query: "plan" } }, { id: "toolu_2", name: "no_such_tool", input: { a: 1 } }] } : { text: "Found.", gate: g });
      await say(page, "the plan?");
      await page.locator(".call.done", { hasText: "memory_search" }).waitFor();
      await page.locator(".call.failed", { hasText: "no_such_tool" }).click();
      await page.locator(".call.failed h4", { hasText: "Error" }).waitFor();
      assert.ok(!(await page.getByText("let me see").isVisible()));
      g.open();
      await idle(page);
      await page.locator(".thinking summary").first().click();
      await page.getByText("let me see").waitFor();
      quiet(page);
    });

    test("hostile text stays text", async () => {
      const evil = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><svg onload="window.pwned=1"><a href="javascript:window.pwned=1">x</a>`;
      const md = `${evil}\n\n[x](javascript:window.pwned=1) ![pic](https://evil.example/p.png) [ok](https://good.example/) <iframe src="https://evil.example"></iframe> \`<b>\`\n\n[y]: data:text/html,x\n[y] <style>*{display:none}</style><base href="https://evil.example"><form action="https://evil.example">`;
      const key = fresh();
      fake.answer = (said) => (said.includes("go") ? { thinking: evil, text: md, calls: [{ id: "toolu_9", name: "memory_search", input: { query: evil } }] } : said.includes("fail") ? { status: 400, error: evil } : { text: md });
      const page = await go({ key });
      await say(page, `go ${evil}`);
      await idle(page);
      await server.ask("PATCH", `/v1/sessions/${encodeURIComponent(key)}`, { title: evil.slice(0, 190) });
      await server.ask("PUT", "/v1/agents/main/memory/memory/2026-01-02.md", `# x\n\n- ${md}`).catch(() => {});
      await say(page, "fail");
      await page.locator(".event.error").first().waitFor();
      await page.reload();
      await page.locator(".call").first().waitFor();
      for (const d of await page.locator(".log details").all()) await d.evaluate((e) => { e.open = true; });
      await page.keyboard.press("Control+k");
      await page.keyboard.type("go");
      await page.locator(".found button").first().waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Acts on this conversation" }).click();
      await page.keyboard.press("Escape");
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      assert.equal(await page.locator(".log script, .log iframe, .log form, .log style, .log base, .log svg, .log [onerror], .log [onload], .markdown img").count(), 0);
      const links = await page.locator(".log a[href]").evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.rel]));
      assert.ok(links.length >= 2 && links.every(([href, rel]) => /^https:\/\//.test(href) && rel.includes("noopener")), JSON.stringify(links));
      quiet(page);
    });

    test("asks for the token, and forgets it", async () => {
      const key = fresh();
      await server.ask("PATCH", `/v1/sessions/${encodeURIComponent(key)}`, { title: "guarded" });
      const page = await go({ key, token: "", allow: /401 \(Unauthorized\)/ });
      const field = page.getByRole("textbox", { name: "Token" });
      await page.getByText(/^It is TIDEMARK_TOKEN as /).waitFor();
      assert.equal(await page.getByText("Bearer").count(), 0);
      await field.fill("wrong");
      await field.press("Enter");
      await page.getByText("wrong token").first().waitFor();
      assert.equal(await page.getByText("wrong token").count(), 1, "told once");
      assert.equal(await page.locator(".link").count(), 0);
      await field.fill("open sesame");
      await field.press("Enter");
      await page.getByRole("heading", { name: "guarded" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "guarded" }).waitFor();
      await page.getByRole("button", { name: "Forget token" }).click();
      await page.getByRole("textbox", { name: "Token" }).waitFor();
      quiet(page);
    });

    test("works with the keyboard alone, on a phone", async () => {
      const page = await go({ size: { viewport: { width: 380, height: 700 } } });
      await say(page, "hello there");
      await idle(page);
      const wide = () => page.evaluate(() => document.scrollingElement.scrollWidth > innerWidth);
      assert.equal(await wide(), false);
      await page.locator(".head button").first().focus();
      await page.keyboard.press("Enter");
      await page.locator(".sidebar.open").waitFor();
      await page.keyboard.press("Escape");
      await page.locator(".sidebar.open").waitFor({ state: "detached" });
      await page.locator(".log").focus();
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keys" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("heading", { name: "Keys" }).waitFor({ state: "detached" });
      await page.keyboard.press("/");
      await page.keyboard.type("typed blind");
      await page.keyboard.press("Enter");
      await idle(page);
      await shown(page, "You said: typed blind");
      // Every control has a name, and Tab reaches the field.
      const nameless = await page.locator("button:visible, input:visible, textarea:visible").evaluateAll((all) => all.filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length || e.placeholder)).map((e) => e.outerHTML));
      assert.deepEqual(nameless, []);
      await page.keyboard.press("Alt+Shift+N");
      await page.getByText("Say something").waitFor();
      quiet(page);
    });

    test("the heads are those of the file", async () => {
      const r = await fetch(`${server.url}/`);
      assert.equal(r.status, 200);
      assert.match(r.headers.get("content-security-policy"), /default-src 'none'.*require-trusted-types-for 'script'/);
      assert.equal(r.headers.get("x-content-type-options"), "nosniff");
      assert.match(r.headers.get("cache-control"), /no-cache|max-age=0/);
      const [, script] = (await r.text()).match(/src="(\/assets\/main-[A-Z0-9]+\.js)"/);
      const s = await fetch(server.url + script);
      assert.match(s.headers.get("cache-control"), /immutable/);
      assert.match(s.headers.get("content-type"), /javascript/);
    });
  });
}


// The card of a call that waits for leave, in a real Chromium. A front before the native host holds the calls and
// tells of them as docs/http.md says, so that a test decides when one comes, goes and is out of time.

import assert from "node:assert/strict";
import http from "node:http";
import { after, afterEach, before, describe, test } from "node:test";
import { model } from "./model.mjs";
import { host, idle, launch, say, shown, visit } from "./rig.mjs";

const KEY = "agent:main:local:dm:asks";

// front passes everything on to a server but what is about approvals.
async function front(to) {
  const self = { list: [], decided: [], streams: new Set(), away: false, url: "" };
  self.tell = () => { for (const s of self.streams) s.write(`event: approval\ndata: ${JSON.stringify({ type: "approval", run: "r1", ...(self.list.length ? { approvals: self.list } : {}) })}\n\n`); };
  self.set = (...list) => {
    self.list = list;
    self.tell();
  };
  const answer = (res, status, body) => res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const approvals = async (req, res) => {
    if (self.away) return res.destroy();
    if (req.method === "GET") return answer(res, 200, { approvals: self.list });
    let raw = "";
    for await (const piece of req.setEncoding("utf8")) raw += piece;
    const { code, allow } = JSON.parse(raw);
    if (!self.list.some((a) => a.code === code)) return answer(res, 409, { error: { type: "conflict", message: `${code} was decided already` } });
    self.decided.push({ code, allow });
    answer(res, 200, {});
    self.set(...self.list.filter((a) => a.code !== code));
  };
  const server = http.createServer((req, res) => {
    if (/^\/v1\/sessions\/[^/]+\/approvals$/.test(req.url)) return approvals(req, res);
    const headers = { ...req.headers, host: new URL(to).host };
    if (headers.origin) headers.origin = to;
    const onward = http.request(`${to}${req.url}`, { method: req.method, headers }, (r) => {
      res.writeHead(r.statusCode, r.headers);
      r.pipe(res);
      if (req.url.endsWith("/events")) {
        res.flushHeaders();
        self.streams.add(res);
        res.on("close", () => { self.streams.delete(res); onward.destroy(); });
      }
    });
    onward.on("error", () => res.destroy());
    req.pipe(onward);
  });
  await new Promise((up) => server.listen(0, "127.0.0.1", up));
  self.url = `http://127.0.0.1:${server.address().port}`;
  self.close = () => { server.close(); server.closeAllConnections(); };
  return self;
}

const call = (code, more = {}) => ({ code, tool: "send_mail", input: '{"to":"ann@example.com","subject":"Tomorrow"}', session: KEY, expires: new Date(Date.now() + 600_000).toISOString(), ...more });

describe("approvals", { timeout: 600_000 }, () => {
  let browser, fake, server, door, contexts = [];
  before(async () => {
    browser = await launch();
    fake = await model();
    server = await host("native", fake);
    door = await front(server.url);
    await server.ask("POST", `/v1/sessions/${encodeURIComponent(KEY)}/messages`, { text: "Write to Ann." });
  });
  after(async () => {
    door?.close();
    await server?.close();
    fake?.close();
    await browser?.close();
  });
  afterEach(async () => {
    Object.assign(door, { list: [], decided: [], away: false });
    for (const c of contexts.splice(0)) await c.close();
  });
  const go = async (options = {}) => {
    const page = await visit(browser, door, { key: KEY, ...options });
    if (!contexts.includes(page.context())) contexts.push(page.context());
    await shown(page, "You said: Write to Ann.");
    return page;
  };
  const card = (page) => page.getByRole("region", { name: /May .* be used/ });
  const gone = (page) => card(page).first().waitFor({ state: "detached" });
  const quiet = (...pages) => { for (const p of pages) assert.deepEqual(p.complaints, []); };

  test("comes with the notice, is allowed once, and goes in every tab", async () => {
    const one = await go(), two = await go({ context: one.context() });
    assert.equal(await card(one).count(), 0);
    door.set(call("a"));
    await Promise.all([card(one).waitFor(), card(two).waitFor()]);
    const words = await card(one).innerText();
    for (const w of ["May send_mail be used?", '"to": "ann@example.com"', "10 minutes left", "Allow once", "Deny"]) assert.ok(words.includes(w), `${w} in ${words}`);
    await card(two).getByRole("button", { name: "Allow once" }).click();
    await Promise.all([gone(one), gone(two)]);
    assert.deepEqual(door.decided, [{ code: "a", allow: true }]);
    quiet(one, two);
  });

  test("is there after a reload, and goes when its time is over", async () => {
    const page = await go();
    door.set(call("a"));
    await card(page).waitFor();
    await page.reload();
    await card(page).waitFor();
    door.set();
    await gone(page);
    assert.deepEqual(door.decided, []);
    quiet(page);
  });

  test("is decided by the keyboard alone, and what one writes is not disturbed", async () => {
    const page = await go();
    const box = page.getByRole("textbox", { name: "Message" });
    await box.focus();
    door.set(call("a"), call("b", { tool: "delete_file" }));
    await card(page).nth(1).waitFor();
    assert.ok(await box.evaluate((e) => e === document.activeElement), "the focus stays where it was");
    await page.keyboard.press("Enter"); // of the empty field: it decides nothing
    await page.locator('.approval button[aria-disabled="false"]').nth(3).waitFor();
    await page.keyboard.press("Shift+Tab"); // from the field back into the cards, whatever is between
    const at = () => page.evaluate(() => `${document.activeElement.closest(".approval")?.querySelector("code").innerText ?? ""} ${document.activeElement.innerText}`);
    for (let i = 0; i < 8 && await at() !== "delete_file Allow once"; i++) await page.keyboard.press("Shift+Tab");
    assert.equal(await at(), "delete_file Allow once");
    await page.keyboard.press("Shift+Tab");
    assert.equal(await at(), "delete_file Deny");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".approval").length === 1);
    assert.deepEqual(door.decided, [{ code: "b", allow: false }]);
    await page.waitForFunction(() => document.activeElement.closest(".approval"));
    await page.locator('.approval button[aria-disabled="false"]').first().waitFor();
    await page.keyboard.press("Enter"); // the first button of what is left
    await gone(page);
    assert.deepEqual(door.decided[1], { code: "a", allow: false });
    await page.waitForFunction(() => document.activeElement.matches(".composer textarea"));
    quiet(page);
  });

  test("shows arguments as text, and what is hidden in them", async () => {
    const page = await go();
    door.set(call("a", { tool: "run<b>\u202e", input: JSON.stringify({ html: "<img src=x onerror=document.title='got'><script>document.title='got'</script>", name: "a\u202egpj.exe", long: "word ".repeat(3_000) }) }));
    await card(page).waitFor();
    const words = await card(page).innerText();
    assert.ok(words.includes("May run<b>\\u{202e} be used?") && words.includes("<img src=x") && words.includes("a\\u{202e}gpj.exe"), words.slice(0, 500));
    assert.equal(await card(page).locator("img, script, b").count(), 0);
    assert.ok(!(await page.title()).includes("got"));
    quiet(page);
  });

  test("tells of a decision that came too late, and of one that did not arrive", async () => {
    const page = await go({ allow: /409 \(Conflict\)|ERR_EMPTY_RESPONSE/ });
    door.set(call("a"));
    await card(page).waitFor();
    door.away = true;
    await card(page).getByRole("button", { name: "Deny" }).click();
    await card(page).getByText("The server cannot be reached.").waitFor();
    door.away = false;
    door.list = []; // decided elsewhere, and the notice was lost
    await card(page).getByRole("button", { name: "Deny" }).click();
    await page.getByText("a was decided already").waitFor();
    await gone(page);
    quiet(page);
  });

  for (const [name, size] of [["light", { viewport: { width: 1200, height: 800 } }], ["dark on a phone", { viewport: { width: 390, height: 700 }, colorScheme: "dark" }]]) {
    test(`leaves room for the conversation: ${name}`, async () => {
      const page = await go({ size });
      door.set(...Array.from({ length: 6 }, (_, i) => call(`c${i}`, { input: JSON.stringify({ text: "word ".repeat(800) }) })));
      await card(page).nth(5).waitFor();
      const at = await page.evaluate(() => Object.fromEntries([".log", ".approvals", ".composer textarea"].map((q) => [q, document.querySelector(q).getBoundingClientRect().toJSON()])));
      assert.ok(at[".log"].height > 80 && at[".approvals"].bottom <= at[".composer textarea"].top + 1 && at[".composer textarea"].bottom <= size.viewport.height, JSON.stringify(at));
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the window");
      const first = card(page).first();
      for (const b of ["Allow once", "Deny"]) assert.ok(await first.getByRole("button", { name: b }).isVisible());
      if (process.env.SHOTS) await page.screenshot({ path: `approvals-${name.split(" ")[0]}.png` });
      quiet(page);
    });
  }

  test("the conversation goes on meanwhile", async () => {
    const page = await go();
    door.set(call("a"));
    await card(page).waitFor();
    await say(page, "and tell Bob");
    await idle(page);
    await shown(page, "You said: and tell Bob");
    assert.equal(await card(page).count(), 1);
    quiet(page);
  });
});

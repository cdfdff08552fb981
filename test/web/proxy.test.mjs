// A client that keeps its history itself, as the page shows it: in the list, to be read, and live while it works.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { model } from "./model.mjs";
import { host, hosts, launch, shown, TOKEN, visit } from "./rig.mjs";

const picture = process.env.PICTURES; // a folder for pictures to look at
let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

const tools = [{ name: "Read", description: "Reads a file.", input_schema: { type: "object", properties: { file_path: { type: "string" } }, required: ["file_path"] } }];
const file = (i) => Array.from({ length: 60 }, (_, n) => `line ${n} of file ${i}: ${"the walnut stands behind the shed. ".repeat(2)}`).join("\n");

// agent is a client of the Messages API with a history of its own: each turn reads a file.
function agent(server, name) {
  const history = [];
  const send = async () => {
    const res = await fetch(`${server.url}/v1/messages`, { method: "POST",
      headers: { "content-type": "application/json", "x-tidemark-token": TOKEN, "x-api-key": "sk-of-the-client", "x-tidemark-proxy": name },
      body: JSON.stringify({ model: "claude-fake", max_tokens: 500, stream: true, tools, messages: history }) });
    const text = await res.text();
    assert.equal(res.status, 200, text);
    history.push({ role: "assistant", content: history.at(-1).content[0].type === "text" ? [{ type: "tool_use", id: `toolu_${history.length}`, name: "Read", input: { file_path: `src/${history.length}.go` } }] : [{ type: "text", text: said(history.length) }] });
    assert.match(text, history.at(-1).content[0].type === "text" ? /"text_delta"/ : /"input_json_delta"/);
    return res.headers.get("x-tidemark-session");
  };
  const said = (n) => `I have read it, message ${n}.`;
  return {
    history,
    async turn() {
      history.push({ role: "user", content: [{ type: "text", text: `Look into the next file, please (${history.length}).` }] });
      await send();
      history.push({ role: "user", content: [{ type: "tool_result", tool_use_id: history.at(-1).content[0].id, content: file(history.length) }] });
      return send();
    },
  };
}

// answer is what the model says to it: a call for what a person says, words for a result.
const answer = (_, { messages }) => {
  const last = messages.at(-1).content.find((b) => b.type !== "text" || /^Look into/.test(b.text));
  return last.type === "text"
    ? { calls: [{ id: `toolu_${messages.length}`, name: "Read", input: { file_path: `src/${messages.length}.go` } }] }
    : { text: `I have read it, message ${messages.length}.` };
};

for (const kind of hosts) {
  describe(`a client behind the proxy, ${kind}`, { timeout: 600_000 }, () => {
    let fake, server;
    before(async () => {
      fake = await model();
      fake.answer = answer;
      server = await host(kind, fake, { vars: { TIDEMARK_PROXY_WINDOW: "16000" } });
    });
    after(async () => {
      await server?.close();
      fake?.close();
    });

    test("it is listed, can be read, and is shown while it works", async () => {
      const client = agent(server, "review");
      let key;
      for (let i = 0; i < 12; i++) key = await client.turn();
      assert.match(key, /^agent:main:proxy:dm:[0-9a-f]{32}$/);
      const at = `/v1/sessions/${encodeURIComponent(key)}`;
      const view = await server.ask("GET", `${at}/view?messages=0`);
      const stubs = view.items.reduce((n, it) => n + (it.stubs ?? 0), 0);
      assert.ok(stubs > 0, "nothing left the context");

      const page = await visit(browser, server, { size: { viewport: { width: 1440, height: 1000 } } });
      await page.getByRole("navigation", { name: "Conversations" }).locator(`[title="${key}"]`).click();
      await shown(page, "I have read it, message 47.");
      await page.getByRole("note").getByText("belongs to a client").waitFor();
      assert.equal(await page.getByRole("textbox", { name: "Message" }).count(), 0);

      await page.getByRole("button", { name: "Context", exact: true }).click();
      const panel = page.getByRole("complementary", { name: "Context, memory and archives" });
      await panel.getByText("of the window").first().waitFor();
      await panel.getByText("page: old results leave").waitFor();
      const fact = (name) => panel.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd");
      assert.equal(await fact("Requests").first().innerText(), "24");
      assert.match(await fact("Out of the context now").innerText(), new RegExp(`^${stubs} block`));
      assert.equal(await panel.locator(".p-chart").count(), 2);
      assert.equal(await panel.getByRole("button", { name: "Undo" }).count(), 0);
      if (picture) await page.screenshot({ path: path.join(picture, `${kind}-client.png`) });
      await panel.locator("summary", { hasText: "Shortened message" }).first().click();
      await panel.getByText("As the model sees it").waitFor();
      await panel.locator(".p-text", { hasText: /^\[Paged out: Read src/ }).first().waitFor();

      await client.turn(); // while somebody looks
      await shown(page, "I have read it, message 51.");
      await panel.locator("dd", { hasText: /^26$/ }).first().waitFor();
      assert.deepEqual(page.complaints, []);
      await page.context().close();
    });

    test("of several histories the longest is shown, and the others are a click away", async () => {
      const first = agent(server, "titles"), work = agent(server, "titles");
      await first.turn();
      let key;
      work.history.push({ role: "user", content: [{ type: "text", text: "Look into the next file, please: this is the work." }] }, { role: "assistant", content: [{ type: "text", text: "I shall." }] });
      for (let i = 0; i < 3; i++) key = await work.turn();
      const page = await visit(browser, server, { size: { viewport: { width: 1440, height: 1000 } } });
      await page.getByRole("navigation", { name: "Conversations" }).locator(`[title="${key}"]`).click();
      await shown(page, "this is the work");
      await page.getByRole("button", { name: "Context", exact: true }).click();
      await page.getByText("This is track 2, the longest.").waitFor();
      await page.getByRole("list", { name: "Other tracks" }).getByRole("link", { name: /^1: Look into/ }).click();
      await page.getByText("This is track 1.").waitFor();
      await page.getByRole("list", { name: "Other tracks" }).getByRole("link", { name: /^2: .*\(the longest\)$/ }).waitFor();
      await first.turn(); // it is live, too
      await shown(page, "I have read it, message 7.");
      assert.deepEqual(page.complaints, []);
      await page.context().close();
    });

    test("what the model marked is shown, and the client sees nothing of it", async () => {
      const own = await host(kind, fake, { vars: { TIDEMARK_COMPACTION_EPISODES_BUDGET: "14k" } });
      try {
        const history = [], marked = (input) => ["delimiter", input], read = ["Read", { file_path: "src/a.go" }];
        const whole = Array.from({ length: 900 }, (_, i) => `line ${i}`).join(", ");
        let key, calls = 0;
        // turn says something; the model answers with calls, some a reply, and the client runs those that it sees.
        const turn = async (text, ...replies) => {
          let n = 0;
          fake.answer = () => (n < replies.length ? { calls: replies[n++].map(([name, input]) => ({ id: `toolu_${++calls}`, name, input })) } : { text: "Done." });
          history.push({ role: "user", content: text });
          for (let stop = "tool_use"; stop === "tool_use";) {
            const res = await fetch(`${own.url}/v1/messages`, { method: "POST",
              headers: { "content-type": "application/json", "x-tidemark-token": TOKEN, "x-api-key": "sk-of-the-client", "x-tidemark-proxy": "marked", "x-tidemark-mode": "episodes" },
              body: JSON.stringify({ model: "claude-fake", max_tokens: 500, stream: true, tools, messages: history }) });
            const content = [], lines = (await res.text()).split("\n").filter((l) => l.startsWith("data: ")).map((l) => JSON.parse(l.slice(6)));
            for (const l of lines) {
              if (l.type === "content_block_start") content.push(l.content_block);
              else if (l.delta?.text) content.at(-1).text += l.delta.text;
              else if (l.delta?.partial_json) content.at(-1).input = JSON.parse(l.delta.partial_json);
              else if (l.delta?.stop_reason) stop = l.delta.stop_reason;
            }
            key = res.headers.get("x-tidemark-session");
            assert.ok(!content.some((b) => b.name === "delimiter"), JSON.stringify(content));
            history.push({ role: "assistant", content });
            if (stop === "tool_use") history.push({ role: "user", content: content.filter((b) => b.type === "tool_use").map((b) => ({ type: "tool_result", tool_use_id: b.id, content: whole })) });
          }
        };
        for (let i = 0; i < 4; i++) {
          await turn(`task ${i}`, [marked({ action: "start", name: `look ${i}`, type: "expl" })], [read],
            [marked({ action: "end", description: `File ${i} has lines.` }), marked({ action: "start", name: `do ${i}`, type: "act", dependencies: [`look ${i}`] }), read], [marked({ action: "end" })]);
        }
        const page = await visit(browser, own, { key });
        await page.getByRole("button", { name: "Context", exact: true }).click();
        const section = page.getByRole("region", { name: "Episodes" });
        await section.getByText(/% of the budget, .* of 14,000 tokens; over it finished ones leave, down to 10,500\.$/).waitFor();
        await turn("open", [marked({ action: "start", name: "look more", type: "expl" }), read]);
        await section.getByText("Open: exploration “look more”.").waitFor();
        const told = await own.ask("GET", `/v1/sessions/${encodeURIComponent(key)}/episodes`);
        assert.deepEqual([told.active, told.budget, told.open, told.total], [true, 14_000, "look more", 9]);
        assert.ok(told.counts.gone > 0 && told.size <= told.budget, JSON.stringify(told.counts));
        await section.locator(`[role=meter][aria-valuetext="${told.size.toLocaleString("en")} of 14,000 tokens"]`).waitFor();
        await section.getByText(new RegExp(`^\\s*evicted ${told.counts.gone}$`)).waitFor();
        await page.getByRole("region", { name: "What was sent" }).waitFor();
        if (picture) await page.screenshot({ path: path.join(picture, `${kind}-proxy-episodes.png`) });
        assert.deepEqual(page.complaints, []);
        await page.context().close();
      } finally {
        fake.answer = answer;
        await own.close();
      }
    });
  });
}

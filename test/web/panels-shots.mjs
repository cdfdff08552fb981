// Pictures of the panel for docs/, of a conversation that was compacted: `node test/web/panels-shots.mjs [folder]`.

import path from "node:path";
import { model } from "./model.mjs";
import { host, launch, visit } from "./rig.mjs";

const to = path.resolve(process.argv[2] ?? "docs");
const key = "agent:main:local:dm:workshop";
const parts = ["top", "legs", "long aprons", "short aprons", "breadboard ends", "drawer", "runners", "finish"];
const asked = ["What do we need for the", "How long shall I let dry the", "Which joint did we choose for the", "What did we pay for the"];

const fake = await model();
const server = await host(process.env.HOSTS ?? "native", fake);
const browser = await launch();
try {
  const at = `/v1/sessions/${encodeURIComponent(key)}`;
  await server.ask("PATCH", at, { title: "Walnut table", window: 6000 });
  await server.ask("PUT", "/v1/agents/main/memory/MEMORY.md", "# Workshop\n\n- Walnut for the table, oak for the drawer.\n- Ann prefers short answers.\n");
  fake.answer = (said) => ({ text: `${said.split("\n")[0]} I keep it with what was decided. ${"Board by board, along the grain, with the offcuts in mind. ".repeat(4)}` });
  for (const question of asked) {
    for (const p of parts) await server.ask("POST", `${at}/messages`, { text: `${question} ${p}?\n${"Measured twice this morning, in millimetres. ".repeat(6)}` });
  }
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, reducedMotion: "reduce" });
  await context.addInitScript(() => localStorage.setItem("tidemark.prices", JSON.stringify({ "fake-1": { input: 3, output: 15 } })));
  const page = await visit(browser, server, { key, context });
  await page.getByRole("button", { name: "Context", exact: true }).click();
  await page.locator(".p-change").first().waitFor();
  await page.screenshot({ path: path.join(to, "page-context.png") });
  await page.setViewportSize({ width: 390, height: 780 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: path.join(to, "page-context-phone.png") });
  if (page.complaints.length) throw new Error(page.complaints.join("\n"));
} finally {
  await browser.close();
  await server.close();
  fake.close();
}

// Pictures of the panel for docs/, of a conversation that was compacted: `node test/web/panels-shots.mjs [folder]`.

import path from "node:path";
import { model } from "./model.mjs";
import { host, launch, visit } from "./rig.mjs";

const to = path.resolve(process.argv[2] ?? "docs");
const key = "agent:main:local:dm:workshop";
const parts = ["top", "legs", "long aprons", "short aprons", "breadboard ends", "drawer", "runners", "finish"];
const told = ["Measured twice this morning, in millimetres.", "The boards lie in the dry since March.", "Two of them have a knot near the end, which can be cut off.", "The saw is sharp again.", "Jo brings the long clamps on Friday.",
  "The cellar has 55 % humidity, by the gauge at the door.", "I would rather glue once than twice.", "Last time we were short of one board."];
const answered = ["Board by board, along the grain, with the offcuts in mind.", "Leave 3 mm at each end: the wood works across the year.", "The receipt said 14 boards, two of which went into the drawer.", "A dry run with clamps first, then the glue.",
  "Mortise and tenon for the legs, dowels for the rest.", "Two days at least, three if the cellar stays as damp.", "The offcuts suffice for the runners."];
let turn = 0;
const some = (list) => list[turn++ % list.length];
const asked = ["What do we need for the", "How long shall I let dry the", "Which joint did we choose for the", "What did we pay for the"];

const fake = await model();
const server = await host(process.env.HOSTS ?? "native", fake);
const browser = await launch();
try {
  const at = `/v1/sessions/${encodeURIComponent(key)}`;
  await server.ask("PATCH", at, { title: "Walnut table", window: 4600 });
  await server.ask("PUT", "/v1/agents/main/memory/MEMORY.md", "# Workshop\n\n- Walnut for the table, oak for the drawer.\n- Ann prefers short answers.\n");
  fake.answer = (said) => ({ text: `${some(answered)} ${some(answered)} ${some(answered)}` });
  for (const question of asked) {
    for (const p of parts) await server.ask("POST", `${at}/messages`, { text: `${question} ${p}? ${some(told)} ${some(told)} ${some(told)}` });
  }
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
  await context.addInitScript(() => localStorage.setItem("tidemark.prices", JSON.stringify({ "fake-1": { input: 3, output: 15 } })));
  const page = await visit(browser, server, { key, context });
  await page.getByRole("button", { name: "Context", exact: true }).click();
  await page.locator(".p-change").first().waitFor();
  await page.waitForFunction(() => ![...document.querySelectorAll(".log .markdown")].some((e) => e.querySelector(":scope > .plain")));
  await page.screenshot({ path: path.join(to, "page-context.png") });
  const panel = page.locator("aside");
  await panel.locator(".p-change").first().evaluate((e) => e.scrollIntoView({ block: "center" }));
  await panel.screenshot({ path: path.join(to, "page-panel.png") });
  await panel.getByText("of the limit").first().scrollIntoViewIfNeeded();
  await page.setViewportSize({ width: 390, height: 780 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: path.join(to, "page-context-phone.png") });
  if (page.complaints.length) throw new Error(page.complaints.join("\n"));
} finally {
  await browser.close();
  await server.close();
  fake.close();
}

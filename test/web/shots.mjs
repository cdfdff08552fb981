// Pictures of the page for docs/, with something in it to see: `node test/web/shots.mjs [folder]`.

import path from "node:path";
import { gate, model } from "./model.mjs";
import { host, launch, say, visit } from "./rig.mjs";

const to = path.resolve(process.argv[2] ?? "docs");
const key = "agent:main:local:dm:workshop";

const answers = [
  ["What do we need for the table?", { text: "For a table of **1.8 × 0.9 m** in walnut:\n\n| part | size | pieces |\n| --- | --- | --- |\n| top | 1800 × 900 × 30 mm | 1 |\n| legs | 70 × 70 × 720 mm | 4 |\n| aprons | 1600 / 700 × 100 × 22 mm | 2 + 2 |\n\nBuy about 15 % more than that: boards have knots." }],
  ["How much is that in board feet?", { thinking: "30 mm top: 1.8*0.9*0.03 = 0.0486 m3 …", text: "I look up what we said about waste first.", calls: [{ id: "toolu_a", name: "memory_search", input: { query: "walnut waste" } }] }],
  ["", { text: "About **32 board feet**, waste included:\n\n```py\nvolume = 1.8 * 0.9 * 0.03 + 4 * 0.07**2 * 0.72 + 0.0101  # m³\nprint(round(volume / 0.00236 * 1.15))\n```\n\n1. The top takes two thirds of it.\n2. Legs can come from offcuts." }],
];

const fake = await model();
const server = await host(process.env.HOSTS ?? "native", fake);
const browser = await launch();
let step = 0;
fake.answer = () => answers[Math.min(step++, answers.length - 1)][1];
const close = [];
const shoot = async (name, { width = 1280, height = 800, dark = false, keep } = {}) => {
  const page = await visit(browser, server, { key, size: { viewport: { width, height }, colorScheme: dark ? "dark" : "light", deviceScaleFactor: 1, reducedMotion: "reduce" } });
  close.push(() => page.context().close());
  await page.locator(".message").last().waitFor();
  await keep?.(page);
  await page.screenshot({ path: path.join(to, `page-${name}.png`) });
  if (page.complaints.length) console.error(name, page.complaints);
};
try {
  for (const [k, title, text] of [["garden", "Garden", "The tomatoes stand behind the shed."], ["taxes", "Taxes 2026", "Receipts are in the blue folder."], ["trip", "Trip to the coast", "The ferry leaves at nine."], ["main", "", "Ann is allergic to nuts: please remember."]]) {
    if (title) await server.ask("PATCH", `/v1/sessions/${k}`, { title });
    const was = fake.answer;
    fake.answer = null;
    await server.ask("POST", `/v1/sessions/${k}/messages`, { text });
    fake.answer = was;
  }
  await server.ask("PATCH", `/v1/sessions/${encodeURIComponent(key)}`, { title: "Walnut table" });
  for (const [text] of answers) if (text) await server.ask("POST", `/v1/sessions/${encodeURIComponent(key)}/messages`, { text });
  const open = gate();
  await shoot("light");
  await shoot("dark", { dark: true });
  await shoot("phone", { width: 390, height: 780 });
  await shoot("phone-list", { width: 390, height: 780, dark: true, keep: (p) => p.getByRole("button", { name: "Conversations" }).click() });
  await shoot("help", { keep: (p) => p.getByRole("button", { name: "Commands and keys" }).click() });
  fake.answer = () => ({ text: ["Sand along the grain: **120**, then ", "180, ", "then 240."], gate: open });
  await shoot("working", { keep: async (p) => { await say(p, "And the finish?"); open.let(3); await p.locator(".working strong").waitFor(); await say(p, "Oil or wax?"); await p.locator(".sent", { hasText: "Waiting" }).waitFor(); } });
  open.open();
} finally {
  for (const f of close) await f();
  await browser.close();
  await server.close();
  fake.close();
}

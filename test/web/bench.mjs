// What the page costs: `node test/web/bench.mjs`. Time from the start of loading to the first token of an
// answer, and time on the browser's main thread for each piece of a long one.

import { model } from "./model.mjs";
import { box, host, hosts, launch, visit } from "./rig.mjs";

const ROUNDS = 7, PIECES = 3_000;
const median = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)];
const words = "the tide rises and falls, a boat lies at the quay and waits for the morning".split(" ");
const piece = (i) => `${words[i % words.length]}${i % 13 === 12 ? ".\n\n" : i % 300 === 299 ? "\n\n```\ncode\n```\n\n" : " "}`;

const fake = await model();
const browser = await launch();
for (const kind of hosts) {
  const server = await host(kind, fake);
  const ready = [], first = [], said = [];
  for (let i = 0; i < ROUNDS; i++) {
    fake.answer = () => ({ text: `token ${i} is here` });
    const page = await visit(browser, server, { key: "agent:main:local:dm:bench", allow: /404/ });
    const since = async (f, arg) => (await page.waitForFunction(f, arg)).jsonValue(); // since loading began
    ready.push(await since(() => document.querySelector(".composer textarea") && performance.now()));
    await box(page).fill(`question ${i}`);
    const asked = await page.evaluate(() => performance.now());
    await box(page).press("Enter");
    const told = await since((text) => document.querySelector(".log").textContent.includes(text) && performance.now(), `token ${i} is here`);
    said.push(told - asked);
    first.push(told);
    await page.context().close();
  }
  console.log(`${kind}: page ready ${median(ready).toFixed(0)} ms, first token ${median(first).toFixed(0)} ms after loading began, ${median(said).toFixed(0)} ms after Enter (median of ${ROUNDS}, cold browser cache)`);

  const page = await visit(browser, server, { key: "agent:main:local:dm:stream", allow: /404/ });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const spent = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value]));
  await box(page).fill("x");
  fake.answer = () => ({ text: Array.from({ length: PIECES }, (_, i) => piece(i)) });
  const [before, began] = [await spent(), performance.now()];
  await box(page).press("Enter");
  await page.waitForFunction(() => !document.querySelector(".working, .sent") && document.querySelectorAll(".message").length === 2, null, { polling: 200 });
  const [after, wall] = [await spent(), performance.now() - began];
  const per = (name) => (((after[name] - before[name]) * 1e6) / PIECES).toFixed(0);
  console.log(`${kind}: ${PIECES} pieces in ${(wall / 1000).toFixed(1)} s; main thread ${per("TaskDuration")} µs a piece, of it script ${per("ScriptDuration")}, layout ${per("LayoutDuration")}, style ${per("RecalcStyleDuration")}`);
  await page.context().close();
  await server.close();
}
await browser.close();
fake.close();

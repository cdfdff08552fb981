// Measures how fast webhooks are acknowledged: signed bodies of one message each, from as many people, at
// a rate that does not wait for answers. Time counts from when a request was due, so that a server which
// stalls is seen. Who writes is not let in: what is measured is the receipt and the work behind it, not the
// model.
//
//   node test/bench/webhook.mjs dist/worker bin/tidemark [--rate 1000] [--seconds 10] [--hosts native,workerd]

import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { cpu, startWorker } from "./rig.mjs";

const { values: flags, positionals: [folder, binary] } = parseArgs({
  allowPositionals: true,
  options: { rate: { type: "string", default: "1000" }, seconds: { type: "string", default: "10" }, hosts: { type: "string", default: "native,workerd" } },
});
const vars = {
  TIDEMARK_TOKEN: "bench", TIDEMARK_MODEL_PROVIDER: "offline", TIDEMARK_LOG_LEVEL: "error", TIDEMARK_CHANNELS_WHATSAPP_ACCESS: "owner",
  WHATSAPP_TOKEN: "t", WHATSAPP_APP_SECRET: "bench", WHATSAPP_VERIFY_TOKEN: "v", TIDEMARK_CHANNELS_WHATSAPP_BASEURL: "http://127.0.0.1:9",
};

// start gives {url, stop, pid} for a host. workerd is reached without a proxy before it.
async function start(host, disk) {
  if (host === "workerd") return startWorker("ours", { folder, disk, vars });
  const child = spawn(binary, ["serve", "--listen", "127.0.0.1:0"], { env: { PATH: process.env.PATH, HOME: disk, TIDEMARK_HOME: disk, ...vars }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => child.once("exit", done));
  const stop = () => (child.kill("SIGTERM"), ended);
  return new Promise((ready, failed) => {
    ended.then((code) => failed(new Error(`${host} ended with ${code}`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const url = line.match(/ serves at (\S+)/)?.[1];
      if (url) ready({ url, stop, pid: child.pid });
    });
  });
}

function bodyOf(n) {
  const from = String(15550000000 + n);
  return JSON.stringify({ object: "whatsapp_business_account", entry: [{ id: "1", changes: [{ field: "messages", value: {
    messaging_product: "whatsapp", metadata: { display_phone_number: "15550001111", phone_number_id: "4400" }, contacts: [{ profile: { name: "Ada" }, wa_id: from }],
    messages: [{ from, id: `wamid.${process.pid}.${n}`, timestamp: "1795200000", type: "text", text: { body: "how are the tomatoes" } }] } }] }] });
}

const agent = new Agent({ keepAlive: true, maxSockets: 256, timeout: 2000 });

function post(url, body) {
  return new Promise((done) => {
    const signature = `sha256=${createHmac("sha256", "bench").update(body).digest("hex")}`;
    const req = request(`${url}/webhooks/whatsapp`, { method: "POST", agent, headers: { "x-hub-signature-256": signature, "content-length": Buffer.byteLength(body) } }, (res) => {
      res.resume().once("end", () => done(res.statusCode));
    });
    req.once("error", () => done(0)).end(body);
  });
}

async function run(url, rate, seconds, from) {
  const took = [], bad = {}, open = [];
  const begun = performance.now();
  for (let n = 0; n < rate * seconds; n++) {
    const due = begun + (n * 1000) / rate;
    const wait = due - performance.now();
    if (wait > 1) await new Promise((go) => setTimeout(go, wait));
    open.push(post(url, bodyOf(from + n)).then((status) => {
      if (status === 200) took.push(performance.now() - due);
      else bad[status] = (bad[status] ?? 0) + 1;
    }));
  }
  await Promise.all(open);
  const all = (performance.now() - begun) / 1000;
  took.sort((a, b) => a - b);
  const at = (q) => (took[Math.min(took.length - 1, Math.floor(took.length * q))] ?? NaN).toFixed(1);
  return { acknowledged: took.length, perSecond: Math.round(took.length / all), p50: at(0.5), p99: at(0.99), max: at(1), bad };
}

for (const host of flags.hosts.split(",")) {
  const disk = mkdtempSync(path.join(tmpdir(), "webhook-"));
  const { url, stop, pid } = await start(host, disk);
  try {
    await run(url, 50, 2, 0); // objects and connections are warm
    const before = cpu(pid);
    const r = await run(url, Number(flags.rate), Number(flags.seconds), 1_000_000);
    console.log(`${host.padEnd(8)} ${flags.rate}/s for ${flags.seconds} s: ${r.acknowledged} acknowledged, ${r.perSecond}/s; ms p50 ${r.p50}, p99 ${r.p99}, max ${r.max}; ${((cpu(pid) - before) / r.acknowledged).toFixed(1)} ms of processor each${Object.keys(r.bad).length ? `; refused ${JSON.stringify(r.bad)}` : ""}`);
  } finally {
    await stop();
    rmSync(disk, { recursive: true, force: true });
  }
}
agent.destroy();

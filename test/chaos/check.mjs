// After the storm: every session comes to rest, and what it holds is its own, whole, once.

import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";
import { PATIENCE } from "../patience.mjs";
import { reply, tokens } from "./provider.mjs";
import { at } from "./storm.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// Why a turn may have ended without an answer. The third: it was begun three times, and each time
// the instance ended or the object was evicted.
const EXPECTED = [/aborted/i, /stopped/i, /was begun 3 times/];

// rest asks after a session until no run is in work and no input waits. The first request to a session
// whose instance died takes up what it left.
export async function rest(client, session) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const { status, value } = await client.json("GET", at(session));
    if (status === 404) return null; // nobody was heard by it
    if (status === 200 && !value.busy) {
      const host = await client.json("GET", at(session, "/debug/host"));
      const { calls, waits, bodies, puts } = host.value?.pending ?? { calls: 1 };
      if (calls + waits + bodies + puts + host.value?.sockets === 0) return host.value;
    }
    if (Date.now() > end) throw new Error(`${session} has not come to rest: status ${status}, ${JSON.stringify(value)}`);
    await sleep(50);
  }
}

// log reads all entries of a session over HTTP, oldest first.
export async function log(client, session) {
  const all = [];
  for (let before = ""; ; ) {
    const { status, value } = await client.json("GET", at(session, `/log?limit=200&all=1${before && `&before=${before}`}`));
    if (status !== 200) throw new Error(`log of ${session}: status ${status}`);
    all.push(...value.entries);
    if (!value.next) return all.reverse();
    before = value.next;
  }
}

const textOf = (m) => m.content.map((b) => b.text ?? "").join("");

// history checks the messages of a session, as {origin, role, message}, against what was sent to it.
export function history(storm, session, messages) {
  const said = new Map(), answers = new Map();
  for (const { origin, call, message } of messages) {
    const text = typeof message.content === "string" ? message.content : textOf(message);
    const [first] = tokens(text);
    const other = tokens(JSON.stringify(message)).find((t) => t.session !== session);
    if (other) storm.fault("foreign", `${other.token} in a row of ${session}`);
    if (message.role === "user") {
      if (first?.token !== origin.input) storm.fault("wrong", `input ${origin.input} of ${session} says ${text.slice(0, 60)}`);
      said.set(origin.input, (said.get(origin.input) ?? 0) + 1);
    } else if (call?.stop_reason === "aborted") {
      if (first && !reply(first.token).startsWith(text)) storm.fault("wrong", `a partial answer of ${session}: ${text.slice(0, 200)}`);
    } else {
      if (!first || text !== reply(first.token)) storm.fault("wrong", `an answer of ${session}: ${text.slice(0, 200)}`);
      answers.set(first?.token, (answers.get(first?.token) ?? 0) + 1);
    }
  }
  for (const [id, input] of storm.inputs) {
    if (input.session !== session) continue;
    const n = said.get(id) ?? 0;
    if (input.acked && n === 0) storm.fault("missing", `${id} was acknowledged and is not in the log`);
    if (n > 1) storm.fault("wrong", `${id} is in the log ${n} times`);
    if ((answers.get(id) ?? 0) > 1) storm.fault("wrong", `${id} was answered ${answers.get(id)} times`);
  }
  return answers;
}

// files reads the database of each object after workerd has ended.
export function files(folder) {
  const tools = path.resolve(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "../../build/node_modules");
  const node = readdirSync(tools).filter((f) => f.startsWith("node-")).map((f) => path.join(tools, f, "bin/node"))[0];
  const script = new URL("rows.mjs", import.meta.url).pathname;
  const out = execFileSync(node, ["--no-warnings", script, folder], { maxBuffer: 1 << 30, encoding: "utf8" });
  return new Map(out.split("\n").filter(Boolean).map((l) => JSON.parse(l)).map((o) => [o.object, o]));
}

// stored checks the database file of a session: rows of no other, every input done, every run ended,
// each answered input answered by the row that its run names.
export function stored(storm, session, file) {
  const key = `agent:main:web:dm:${session}`;
  if (!file) return storm.fault("missing", `${session} has no database`);
  if (file.check !== "ok") storm.fault("wrong", `database of ${session}: ${file.check}`);
  for (const k of file.keys) if (k !== key) storm.fault("foreign", `rows of ${k} in the database of ${session}`);
  const entries = new Map(file.entries.map((e) => [e.id, e]));
  for (const e of file.entries) {
    const other = tokens(e.payload).find((t) => t.session !== session);
    if (other) storm.fault("foreign", `${other.token} in the database of ${session}`);
  }
  history(storm, session, file.entries.filter((e) => e.kind === "message")
    .map((e) => ({ origin: JSON.parse(e.origin || "{}"), call: e.call && JSON.parse(e.call), message: JSON.parse(e.payload) })));
  const runs = new Map(file.runs.map((r) => [r.id, r]));
  const last = new Map(); // run -> newest input that it took
  for (const i of file.inputs) last.set(i.run, i.id);
  for (const i of file.inputs) answered(storm, session, i, runs.get(i.run), last.get(i.run), entries);
  for (const [id, input] of storm.inputs) {
    if (input.session === session && input.acked && !file.inputs.some((i) => i.id === id)) storm.fault("missing", `${id} was acknowledged and is not in the database`);
  }
}

// answered checks what became of one input.
function answered(storm, session, input, run, last, entries) {
  if (input.state !== "done") return storm.fault("missing", `${input.id} is ${input.state} in the end`);
  if (!run) return storm.fault("missing", `${input.id} has no run`);
  if (run.state === "done") {
    const text = textOf(JSON.parse(entries.get(run.reply)?.payload ?? '{"content":[]}'));
    if (text !== reply(last)) storm.fault("wrong", `${input.id} was answered by ${text.slice(0, 60)}, want the answer to ${last}`);
    return;
  }
  if (storm.inputs.get(input.id)?.answered) storm.fault("wrong", `${input.id} was answered to its client, but its run is ${run.state}: ${run.error}`);
  if (run.state !== "failed" || !EXPECTED.some((e) => e.test(run.error))) storm.fault("wrong", `the run of ${input.id} is ${run.state}: ${run.error}`);
}

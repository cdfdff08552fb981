// A client that ends and begins anew at random places: no request that goes upstream ever breaks a rule (the check
// behind each test holds that), and what the client has is what the model sees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, asked, textOf, user } from "./client.mjs";
import { recall, release } from "./phantom.mjs";
import { faithful, file, stubsOf } from "./paging.mjs";
import { bash, read, write } from "./untouched.mjs";
import { call, text, think } from "./upstream.mjs";

// chance gives a seeded source of numbers in [0, 1).
export function chance(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const most = process.env.SOAK ? 100 : 40;

export default function (w) {
  for (const seed of (process.env.SEEDS ?? "1").split(",").map(Number)) {
    test(`${most} restarts of the client at random, seed ${seed}`, async () => {
      const name = w.fresh(), random = chance(seed), pick = (list) => list[Math.floor(random() * list.length)];
      let n = 0;
      w.up.script(name, (body) => {
        const k = ++n, out = [];
        if (random() < 0.5) out.push(think(`thought ${k}`));
        if (random() < 0.7) out.push(text(random() < 0.15 ? `Step ${k}.\n<memory_cleanup>\nrelease: /f${k % 20}.go\n</memory_cleanup>\nOn.` : `Step ${k}.`));
        const stub = pick(stubsOf(body.messages));
        const handle = stub && /"paths": \["([^"]+)"\]/.exec(JSON.stringify(stub).replaceAll('\\"', '"'))?.[1];
        if (random() < 0.3) out.push(recall(handle ?? `/f${k % 20}.go`));
        if (random() < 0.2) out.push(release(`/f${k % 20}.go`));
        if (random() < 0.6) out.push(call("Read", { file_path: `/f${k % 20}.go` }));
        if (random() < 0.2) out.push(call("Bash", { command: `run ${k}` }));
        if (random() < 0.1) out.push(call("Write", { file_path: `/f${k % 20}.go`, content: `anew ${k}` }));
        if (!out.some((b) => b.type !== "thinking")) out.push(text("Well."));
        const offered = (body.tools ?? []).map((t) => t.name);
        if (!offered.includes("memory_fault")) out.splice(0, out.length, ...out.filter((b) => !b.name?.startsWith("memory_")), text("As you say."));
        const form = { content: out, piece: 5 + Math.floor(random() * 40), burst: true };
        if (random() < 0.08) form.cut = 2 + Math.floor(random() * 6);
        else if (random() < 0.05) form.slice = 64;
        return form;
      });
      const options = { tools: [read, bash, write], run: (c) => (c.name === "Read" ? file(c.input.file_path) : "done") };
      const more = { metadata: { user_id: name }, thinking: { type: "enabled", budget_tokens: 2000 } };
      let saved = [[]]; // histories of which the client may go on
      for (let restarts = 0; restarts < most; restarts++) {
        const agent = new Agent({ ...options, client: w.anthropic(), stream: random() < 0.7, more });
        agent.history = structuredClone(pick(saved.slice(-4)));
        // What a client does between: it edits, throws away, changes what it says of itself.
        const last = agent.history.at(-1);
        if (last?.role !== "user" || random() < 0.2) {
          if (last?.role === "user") agent.history.pop();
          if (agent.history.at(-1)?.role !== "assistant" || !(await agent.answer())) agent.history.push(user(`${name}: say ${restarts}`));
        }
        if (random() < 0.2) for (const m of agent.history) if (m.role === "user" && Array.isArray(m.content) && random() < 0.3) m.content.push(text(`<system-reminder>${restarts}</system-reminder>`));
        const steps = 1 + Math.floor(random() * 3);
        for (let i = 0; i < steps; i++) {
          const body = agent.body();
          try {
            const m = await asked(agent.client, body, agent.stream, random() < 0.1 ? { signal: AbortSignal.timeout(5 + Math.floor(random() * 30)) } : undefined);
            assert.ok(!/memory_(fault|release|cleanup)/.test(JSON.stringify(m)), JSON.stringify(m));
            if (m.content.length === 0) break;
            agent.history.push({ role: "assistant", content: m.content });
            if (!(await agent.answer())) agent.history.push(user(`${name}: and then ${restarts}.${i}`));
          } catch (e) {
            assert.notEqual(e.status, 400, e.message);
            assert.notEqual(e.name, "AssertionError", e.message);
            break;
          }
          saved.push(structuredClone(agent.history));
        }
        if (restarts === most * 0.4 || restarts === most * 0.7) await w.restart();
      }
      assert.ok(n > most, `${n} requests`);
      for (const c of w.up.of(name)) faithful(c.body.messages, (path) => [file(path)]);
      assert.ok(w.up.of(name).some((c) => stubsOf(c.body.messages).length > 0), "something was out");
    });
  }

  test("after a storm a plain question has a plain answer", async () => {
    const name = w.fresh();
    w.up.script(name, [text("Calm.")]);
    assert.equal(textOf(await w.anthropic().messages.create({ model: "m", max_tokens: 10, messages: [user(name)] })), "Calm.");
  });
}

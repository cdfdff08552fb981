// What fails: the API before and behind its first byte, the network at every event, the client in the middle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Anthropic, OpenAI, asked, soon, streamed, textOf, user } from "./client.mjs";
import { read, send } from "./untouched.mjs";
import { call, fault, gate, text, think } from "./upstream.mjs";

export default function (w) {
  const ask = (name, more = {}) => ({ model: "fake-1", max_tokens: 4000, tools: [read], messages: [user(name)], ...more });
  const failed = (p) => p.then(() => assert.fail("it did not fail"), (e) => e);

  for (const mode of ["observe", "page"]) {
    test(`a refusal of the API comes as it is, ${mode}`, async () => {
      const heads = { "retry-after": "7", "retry-after-ms": "6500", "x-should-retry": "true", "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:00Z" };
      for (const [status, Class] of [[400, Anthropic.BadRequestError], [401, Anthropic.AuthenticationError], [429, Anthropic.RateLimitError], [529, Anthropic.InternalServerError]]) {
        for (const stream of [true, false]) {
          const name = w.fresh();
          // What is refused as invalid with edits of ours in it is tried once more as the client wrote it.
          const twice = status === 400 && mode === "page";
          w.up.script(name, ...(twice ? [fault(status, "to us", heads)] : []), fault(status, `no to ${name}`, heads), [text("now yes")]);
          const client = w.anthropic({ headers: { "x-tidemark-mode": mode } });
          const e = await failed(asked(client, ask(name), stream));
          assert.ok(e instanceof Class, `${e}`);
          assert.deepEqual([e.status, e.error.error.message, e.requestID, ...Object.keys(heads).map((h) => e.headers.get(h))], [status, `no to ${name}`, "req_fake", ...Object.values(heads)]);
          assert.equal(textOf(await asked(client, ask(name), stream)), "now yes");
          assert.equal(w.up.of(name).length, twice ? 3 : 2);
          if (twice) assert.deepEqual(w.up.of(name)[1].body.tools, [read]);
          const chat = w.fresh();
          w.up.script(chat, fault(status, "no", heads), fault(status, "no", heads));
          const body = { model: "m", stream, messages: [user(chat)] };
          const o = await failed(w.openai({ headers: { "x-tidemark-mode": mode } }).chat.completions.create(body));
          assert.ok(o instanceof OpenAI.APIError);
          assert.deepEqual([o.status, o.headers.get("retry-after"), o.error.message], [status, "7", "no"]);
        }
      }
    });
  }

  test("a client that tries again by itself gets its answer, and the conversation has one of it", async () => {
    const name = w.fresh();
    w.up.script(name, fault(429, "slow", { "retry-after-ms": "20" }), fault(529, "busy", { "retry-after-ms": "20" }), [text("third time")], [text("fourth")]);
    const client = w.anthropic({ maxRetries: 2 });
    const m = await asked(client, ask(name), true);
    assert.equal(textOf(m), "third time");
    await asked(client, ask(name, { messages: [user(name), { role: "assistant", content: m.content }, user("more")] }), false);
    assert.deepEqual(w.up.of(name).map((c) => c.body.messages.length), [1, 1, 1, 3]);
  });

  test("an error behind the first byte is an event of the stream", async () => {
    for (const at of [1, 2, 4]) {
      const name = w.fresh();
      w.up.script(name, { content: [text("half of it, and")], error: ["overloaded_error", "Overloaded"], at }, [text("whole")]);
      const e = await failed(streamed(w.anthropic(), ask(name)));
      assert.ok(e instanceof Anthropic.APIError, `${e}`);
      assert.equal(e.error.error.type, "overloaded_error");
      assert.equal((await streamed(w.anthropic(), ask(name))).text, "whole");
    }
    const chat = w.fresh();
    w.up.script(chat, { content: [text("half of it")], error: ["server_error", "broke"], at: 2 });
    const e = await failed(w.openai().chat.completions.stream({ model: "m", user: chat, messages: [user(chat)] }, { headers: { "x-tidemark-mode": "page" } }).finalChatCompletion());
    assert.match(e.message, /broke/);
  });

  // The events of this reply: start, ping, thinking (start, some, signature, stop), text, call, delta, stop.
  const reply = () => [think("hm"), text("So be it."), call("Read", { file_path: "/a" })];

  test("a stream that is cut at any event is no answer, and what comes next is sound", async () => {
    const probe = w.fresh();
    w.up.script(probe, reply());
    await streamed(w.anthropic(), ask(probe));
    const { events } = w.up.of(probe)[0];
    assert.ok(events > 12);
    for (let cut = 0; cut < events; cut++) {
      const name = w.fresh(), body = ask(name, { metadata: { user_id: name } });
      w.up.script(name, { content: reply(), cut }, [text("whole")], [text("more")]);
      const e = await failed(soon(streamed(w.anthropic(), body)));
      assert.ok(!/still not after/.test(e.message), `cut at ${cut}: it hangs`);
      const m = await soon(streamed(w.anthropic(), body));
      assert.equal(m.text, "whole", `cut at ${cut}`);
      const next = [...body.messages, { role: "assistant", content: m.message.content }, user("go on")];
      await soon(streamed(w.anthropic(), { ...body, messages: next }));
      assert.deepEqual(w.up.of(name).at(-1).body.messages, next, `cut at ${cut}`);
    }
  });

  test("a whole answer that is cut is no answer", async () => {
    const name = w.fresh();
    w.up.script(name, { content: reply(), cut: 0 }, [text("whole")]);
    const e = await failed(soon(w.anthropic().messages.create(ask(name))));
    assert.ok(e instanceof Error && !/still not/.test(e.message), `${e}`);
    assert.equal(textOf(await w.anthropic().messages.create(ask(name))), "whole");
  });

  test("a client that keeps half an answer is right", async () => {
    const name = w.fresh(), body = ask(name);
    w.up.script(name, { content: [text("The answer is forty-two.")], cut: 5 }, [text("I see.")]);
    await failed(streamed(w.anthropic(), body));
    const half = [...body.messages, { role: "assistant", content: "The ans" }, user("You broke off.")];
    assert.equal((await streamed(w.anthropic(), { ...body, messages: half })).text, "I see.");
    assert.deepEqual(w.up.of(name).at(-1).body.messages, half);
  });

  test("a first byte that takes its time keeps the line alive, also between two events", async () => {
    const name = w.fresh(), g = gate();
    w.up.script(name, { content: [text("late, but here")], wait: 2600, gate: g, at: 4 });
    const answer = streamed(w.anthropic(), ask(name));
    await g.reached;
    await sleep(2600);
    g.open();
    assert.equal((await answer).text, "late, but here");
    const other = w.fresh();
    w.up.script(other, { ...fault(429, "after a while", { "retry-after": "3" }), wait: 2600 });
    const e = await failed(streamed(w.anthropic(), ask(other)));
    assert.deepEqual([e.status, e.headers?.get("retry-after")], [429, "3"], "the status waits for the API's");
  });

  for (const [what, at] of [["before the first event", 0], ["in the middle", 4]]) {
    test(`who leaves ${what} ends the call, and may come back`, async () => {
      const name = w.fresh(), g = gate(), body = ask(name);
      w.up.script(name, { content: [text("nobody hears it")], gate: g, at }, [text("heard")]);
      const stream = w.anthropic().messages.stream(body);
      stream.done().catch(() => {});
      const c = await g.reached;
      stream.abort();
      await soon(c.left);
      assert.equal(c.gone, true, "the call of the API ends");
      assert.equal((await streamed(w.anthropic(), body)).text, "heard");
    });
  }

  // The platform of Workers tells an object that a client left only once its answer has begun.
  test("who leaves while a whole answer is awaited ends the call", { skip: w.host === "workerd" }, async () => {
    const whole = w.fresh(), h = gate();
    w.up.script(whole, { content: [text("nobody")], gate: h });
    const leave = new AbortController();
    const left = failed(w.anthropic().messages.create(ask(whole), { signal: leave.signal }));
    const d = await h.reached;
    leave.abort();
    await left;
    await soon(d.left);
    assert.equal(d.gone, true);
  });

  test("an API that is not there is a failure that may be tried again", async () => {
    const name = w.fresh();
    w.up.script(name, { content: [text("x")], wait: 0, cut: 0 });
    const e = await failed(soon(streamed(w.anthropic(), ask(name))));
    assert.ok(e instanceof Error);
  });

  test("a server that ends in the middle of a stream goes on with what it has", async () => {
    const name = w.fresh(), g = gate(), body = ask(name, { metadata: { user_id: name } });
    w.up.script(name, [text("first")], { content: [text("torn")], gate: g, at: 4 }, [text("again")], [text("after")]);
    const one = await streamed(w.anthropic(), body);
    const two = { ...body, messages: [...body.messages, { role: "assistant", content: one.message.content }, user("second")] };
    const torn = failed(soon(streamed(w.anthropic(), two)));
    await g.reached;
    await w.restart();
    await torn;
    const again = await streamed(w.anthropic(), two);
    assert.equal(again.text, "again");
    const three = [...two.messages, { role: "assistant", content: again.message.content }, user("third")];
    assert.equal((await streamed(w.anthropic(), { ...body, messages: three })).text, "after");
    assert.deepEqual(w.up.of(name).at(-1).body.messages, three);
  });

  test("who has no token comes nowhere", async () => {
    const name = w.fresh();
    const r = await send(`${w.url}/v1/messages`, { "x-api-key": "sk-k" }, JSON.stringify(ask(name)));
    assert.equal(r.status, 401);
    assert.equal(w.up.of(name).length, 0);
  });
}

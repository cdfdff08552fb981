// The official clients as agents use them, and what must hold of every stream that they get.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

export { soon } from "../patience.mjs";

export { Anthropic, OpenAI };
export const user = (content) => ({ role: "user", content });

export const anthropicAt = (baseURL, more = {}) => new Anthropic({ apiKey: "sk-clients-own", authToken: null, baseURL, maxRetries: 0, ...more });
export const openaiAt = (baseURL, more = {}) => new OpenAI({ apiKey: "sk-clients-own", baseURL: `${baseURL}/v1`, maxRetries: 0, ...more });


// wellFormed holds the events of a stream of the Messages API to its order: one start and one stop, blocks counted from 0
// without a gap, each of them ended before the next.
export function wellFormed(events) {
  const known = events.filter((e) => !["ping", "novelty"].includes(e.type));
  const types = known.map((e) => e.type);
  assert.equal(types[0], "message_start", types.join(" "));
  assert.equal(types.at(-1), "message_stop", types.slice(-5).join(" "));
  assert.deepEqual(["message_start", "message_delta", "message_stop"].map((t) => types.filter((x) => x === t).length), [1, 1, 1], types.join(" "));
  let open = -1, next = 0;
  for (const e of known.slice(1, -2)) {
    if (e.type === "content_block_start") {
      assert.deepEqual([e.index, open], [next, -1], "a block begins where the one before ended");
      open = next++;
    } else {
      assert.ok(["content_block_delta", "content_block_stop"].includes(e.type), e.type);
      assert.equal(e.index, open, `${e.type} of another block`);
      if (e.type === "content_block_stop") open = -1;
    }
  }
  assert.equal(open, -1, "the last block ends");
}

// streamed asks for a stream and gives its message, its events and its head.
export async function streamed(client, body, options) {
  const events = [];
  const stream = client.messages.stream(body, options);
  stream.on("streamEvent", (e) => events.push(structuredClone(e)));
  const message = await stream.finalMessage();
  wellFormed(events);
  return { message, events, response: stream.response, text: textOf(message) };
}

// asked asks streaming or not and gives the message.
export const asked = (client, body, stream, options) => (stream ? streamed(client, body, options).then((s) => s.message) : client.messages.create(body, options));

export const textOf = (message) => message.content.filter((b) => b.type === "text").map((b) => b.text).join("");

// seen holds what a client got: nothing in it is ours.
export function nothingOfOurs(what) {
  const s = JSON.stringify(what);
  for (const name of ["memory_release", "memory_fault", "memory_cleanup"]) assert.ok(!s.includes(name), `the client sees ${name}: ${s.slice(0, 500)}`);
}

// Agent is a client that keeps its own history and runs its own tools, as Claude Code does: the cache markers wander
// along, and what it sends is what it saw.
export class Agent {
  constructor({ client, tools, run = () => "done", stream = true, more = {}, options, mark = true }) {
    Object.assign(this, { client, tools, run, stream, more, options, mark, history: [], replies: [] });
  }

  body() {
    const messages = structuredClone(this.history);
    if (this.mark) {
      for (const m of messages.filter((m) => m.role === "user").slice(-2)) {
        if (typeof m.content === "string") m.content = [{ type: "text", text: m.content }];
        m.content.at(-1).cache_control = { type: "ephemeral" };
      }
    }
    return { model: "fake-1", max_tokens: 4000, ...(this.tools && { tools: this.tools }), ...this.more, messages };
  }

  // once asks for one reply and keeps it.
  async once() {
    const m = await asked(this.client, this.body(), this.stream, this.options);
    nothingOfOurs(m);
    this.replies.push(m);
    this.history.push({ role: "assistant", content: m.content });
    return m;
  }

  // answer runs the calls of the last reply; false when there were none.
  async answer() {
    const calls = this.history.at(-1).content.filter((b) => b.type === "tool_use");
    if (calls.length === 0) return false;
    const results = [];
    for (const c of calls) results.push({ type: "tool_result", tool_use_id: c.id, content: await this.run(c) });
    this.history.push(user(results));
    return true;
  }

  // say says something and goes on until the model is done.
  async say(words) {
    this.history.push(user(words));
    for (;;) {
      const m = await this.once();
      if (!(await this.answer())) return m;
    }
  }
}

// The doors, tried with the official clients of the APIs that they speak, on both hosts.
// Run by: node test/clients/clients.mjs [binary] [folder of the built Worker] [native,workerd]

import assert from "node:assert/strict";
import http from "node:http";
import { after, before, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { DefaultChatTransport, generateText, readUIMessageStream, streamText, tool, jsonSchema } from "ai";
import { lossy, pinged } from "./fetches.mjs";
import { Model } from "./model.mjs";
import { pages } from "./pages.mjs";
import { soon } from "../patience.mjs";
import { native, token, workerd } from "./targets.mjs";

const [binary = "bin/tidemark", folder = "dist", hosts = "native,workerd"] = process.argv.slice(2);
const starts = { native: (model) => native(binary, model), workerd: (model) => workerd(folder, model) };
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const user = (content) => ({ role: "user", content });
let count = 0;
const fresh = () => `t${process.pid}-${++count}`;

for (const host of hosts.split(",")) {
  describe(host, () => {
    let model, site;
    before(async () => {
      model = await new Model().start();
      site = await starts[host](model.url);
    });
    after(async () => {
      await site?.stop();
      await model?.stop();
    });

    const api = async (path, init = {}) => {
      const r = await fetch(site.url + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
      assert.equal(r.status, 200, `${path}: ${r.status}`);
      return r.json();
    };
    // messages are those that the model would see of a conversation.
    const messages = (key) => api(`/v1/sessions/${encodeURIComponent(key)}/view?messages=1`);
    const mine = (text) => model.calls.filter((c) => JSON.stringify(c.body.messages ?? []).includes(text));
    const openai = (more = {}) => new OpenAI({ apiKey: token, baseURL: `${site.url}/v1`, maxRetries: 0, ...more });
    const anthropic = (more = {}) => new Anthropic({ apiKey: token, authToken: null, baseURL: site.url, maxRetries: 0, ...more });
    const kept = (name) => ({ headers: { "x-tidemark-session": name } });

    describe("openai", () => {
      test("an answer without a conversation is the model's, and nothing is kept", async () => {
        const r = await openai().chat.completions.create({ model: "tidemark", temperature: 0.3, stop: "END", seed: 7, messages: [{ role: "system", content: "Be brief" }, user("hello")] }).withResponse();
        assert.equal(r.data.choices[0].message.content, "You said: hello");
        assert.deepEqual([r.data.object, r.data.choices[0].finish_reason, r.data.choices.length], ["chat.completion", "stop", 1]);
        assert.equal(r.data.usage.prompt_tokens, 10 + 1 + 4);
        assert.deepEqual([r.data.usage.completion_tokens, r.data.usage.total_tokens, r.data.usage.prompt_tokens_details.cached_tokens], [7, 22, 4]);
        assert.equal(r.response.headers.get("x-tidemark-ignored"), "seed", "which this model's API has not");
        assert.ok(r.request_id);
        const [call] = mine("hello");
        assert.deepEqual([call.body.model, call.body.temperature, call.body.stop_sequences], ["fake-1", 0.3, ["END"]]);
        assert.match(JSON.stringify(call.body.system), /Be brief/);
        assert.equal(call.body.messages.length, 1);
        assert.deepEqual((await api("/v1/sessions")).sessions.filter((s) => /hello/.test(JSON.stringify(s))), []);
      });

      test("a stream has the role first, one id, pieces, the reason, figures and its end", async () => {
        const stream = await openai().chat.completions.create({ model: "other-model", stream: true, stream_options: { include_usage: true }, messages: [user("a streamed hello")] });
        const chunks = [];
        for await (const c of stream) chunks.push(c);
        assert.equal(chunks[0].choices[0].delta.role, "assistant");
        assert.ok(chunks.length > 5);
        assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
        assert.equal(chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""), "You said: a streamed hello");
        assert.equal(chunks.at(-2).choices[0].finish_reason, "stop");
        assert.deepEqual(chunks.at(-1).choices, []);
        assert.equal(chunks.at(-1).usage.total_tokens, 22);
        assert.ok(chunks.slice(0, -1).every((c) => c.usage === null));
        assert.equal(mine("a streamed hello")[0].body.model, "other-model");
      });

      test("tools of the client: calls come back, results go in, streamed and not", async () => {
        const tools = [{ type: "function", function: { name: "weather", description: "of a city", parameters: { type: "object", properties: { city: { type: "string" } } } } }];
        const first = [user(`tool please ${fresh()}`)];
        const whole = await openai().chat.completions.create({ model: "tidemark", tools, messages: first });
        const { message, finish_reason } = whole.choices[0];
        assert.equal(finish_reason, "tool_calls");
        assert.deepEqual([message.tool_calls[0].id, message.tool_calls[0].function.name, JSON.parse(message.tool_calls[0].function.arguments)], ["toolu_1", "weather", { city: "Oslo" }]);
        const streamed = await openai().chat.completions.stream({ model: "tidemark", tools, messages: first }).finalChatCompletion();
        assert.deepEqual(streamed.choices[0].message.tool_calls[0].function.arguments, message.tool_calls[0].function.arguments);
        assert.equal(streamed.choices[0].message.content, "Let me look. ");
        const second = await openai().chat.completions.create({ model: "tidemark", tools, messages: [...first, message, { role: "tool", tool_call_id: "toolu_1", content: "sunny" }] });
        assert.equal(second.choices[0].message.content, "The tool said: sunny");
        let ran = 0;
        const runner = openai().chat.completions.runTools({ model: "tidemark", messages: first, tools: [{ type: "function", function: { name: "weather", parse: JSON.parse, parameters: { type: "object", properties: {} }, function: async ({ city }) => { ran++; return `rain in ${city}`; } } }] });
        assert.equal(await runner.finalContent(), "The tool said: rain in Oslo");
        assert.equal(ran, 1);
      });

      test("failures are those of the SDK, with codes and ids", async () => {
        const ask = (text, more = {}, client = openai()) => client.chat.completions.create({ model: "tidemark", messages: [user(text)], ...more });
        const rows = [
          [() => ask("fail 429"), OpenAI.RateLimitError, 429, "rate_limit_exceeded"],
          [() => ask("fail 429", { stream: true }), OpenAI.RateLimitError, 429, "rate_limit_exceeded"],
          [() => ask("fail 413"), OpenAI.BadRequestError, 400, "context_length_exceeded"],
          [() => ask("fail 400"), OpenAI.BadRequestError, 400, "bad_request"],
          [() => ask("fail 500"), OpenAI.InternalServerError, 503, "overloaded"],
          [() => ask("fail 401"), OpenAI.InternalServerError, 502, "auth"],
          [() => ask("x", {}, openai({ apiKey: "wrong" })), OpenAI.AuthenticationError, 401, "invalid_api_key"],
          [() => ask("x", { n: 2 }), OpenAI.BadRequestError, 400, "invalid_value"],
          [() => ask("x", { functions: [{ name: "f" }] }), OpenAI.BadRequestError, 400, "invalid_value"],
          [() => ask("x", { response_format: { type: "json_object" } }), OpenAI.BadRequestError, 400, "invalid_value"],
          [() => ask("x", { messages: [user([{ type: "input_audio", input_audio: { data: "", format: "wav" } }])] }), OpenAI.BadRequestError, 400, "invalid_value"],
          [() => openai().models.retrieve("no-such"), OpenAI.NotFoundError, 404, "model_not_found"],
          [() => openai().chat.completions.create({ model: "tidemark:nobody", user: "anna", messages: [user("x")] }), OpenAI.NotFoundError, 404, "model_not_found"],
        ];
        for (const [f, Class, status, code] of rows) {
          const e = await f().then(() => assert.fail(`${f}: it did not fail`), (e) => e);
          assert.ok(e instanceof Class, `${f}: ${e.name} ${e.message}`);
          assert.deepEqual([e.status, e.code], [status, code], String(f));
          assert.ok(e.requestID && e.message.length > 10, String(f));
        }
        const e = await ask("x", { n: 2 }).catch((e) => e);
        assert.match(e.message, /n: 2 is not supported/);
      });

      test("models", async () => {
        const list = [];
        for await (const m of openai().models.list()) list.push(m.id);
        assert.deepEqual([list[0], list.includes("tidemark:main"), list.includes("fake-1")], ["tidemark", true, true]);
        assert.equal((await openai().models.retrieve("fake-1")).owned_by, "tidemark");
      });

      test("with a user the conversation is kept, whatever history the client sends", async () => {
        const name = `User ${fresh()}`;
        const ask = (messages) => openai().chat.completions.create({ model: "tidemark", user: name, messages }).withResponse();
        const first = await ask([user("my name is Ada")]);
        const key = first.response.headers.get("x-tidemark-session");
        assert.match(key, /^agent:main:user:dm:user_t\d+-\d+-[0-9a-f]{32}$/);
        const second = await ask([{ role: "assistant", content: "what the client made up" }, user("count")]);
        assert.equal(second.data.choices[0].message.content, "I see 3 messages");
        assert.deepEqual((await messages(key)).map((m) => m.role), ["user", "assistant", "user", "assistant"]);
        assert.ok(!JSON.stringify(await messages(key)).includes("made up"));
        const other = await openai().chat.completions.create({ model: "tidemark", user: name.toUpperCase(), messages: [user("count")] });
        assert.equal(other.choices[0].message.content, "I see 1 messages", "another case is another user");
      });

      test("a retry is one turn, a second yes is another", async () => {
        const name = fresh();
        const ask = (messages, more) => openai(more).chat.completions.create({ model: "tidemark", messages }, kept(name)).withResponse();
        const one = await ask([user(`yes ${name}`)]);
        const again = await ask([user(`yes ${name}`)]);
        assert.equal(again.data.choices[0].message.content, one.data.choices[0].message.content);
        assert.deepEqual([one.response.headers.get("x-tidemark-duplicate"), again.response.headers.get("x-tidemark-duplicate")], [null, "1"]);
        const history = [user(`yes ${name}`), one.data.choices[0].message];
        await ask([...history, user(`yes ${name}`)]);
        assert.equal((await messages(name)).filter((m) => m.role === "user").length, 2);
        const lost = await ask([...history, user("lost once")], { maxRetries: 2, fetch: lossy() });
        assert.equal(lost.data.choices[0].message.content, "You said: lost once");
        assert.equal(lost.response.headers.get("x-tidemark-duplicate"), "1");
        assert.equal(mine("lost once").length, 1);
        const two = await ask([...history, user("the first half"), user("the second half")]);
        assert.match(two.data.choices[0].message.content, /first half[^]*second half/, "all that follows the last answer counts");
        const later = await ask([user(`yes ${name}`)]);
        assert.equal(later.response.headers.get("x-tidemark-duplicate"), null, "without a history it is new, since more was said");
        const twice = await ask([user(`yes ${name}`)]);
        assert.equal(twice.response.headers.get("x-tidemark-duplicate"), "1");
        const keyed = (key) => openai().chat.completions.create({ model: "tidemark", messages: [user(`yes ${name}`)] }, { headers: { "x-tidemark-session": name, "idempotency-key": key } }).withResponse();
        assert.deepEqual([(await keyed("k1")).response.headers.get("x-tidemark-duplicate"), (await keyed("k1")).response.headers.get("x-tidemark-duplicate")], [null, "1"]);
      });

      test("a turn that failed is tried anew when the client asks again, by hand only", async () => {
        const name = fresh();
        const ask = () => openai({ maxRetries: 2 }).chat.completions.create({ model: "tidemark", messages: [user(`fail 400 ${name}`)] }, kept(name)).catch((e) => e);
        for (const tries of [1, 2]) {
          const e = await ask();
          assert.ok(e instanceof OpenAI.BadRequestError, `${e}`);
          assert.equal(e.headers.get("x-should-retry"), "false");
          assert.ok(mine(`fail 400 ${name}`).length >= tries);
        }
      });

      test("what a conversation lacks is refused, what it ignores is said", async () => {
        const name = fresh();
        const ask = (body) => openai().chat.completions.create({ model: "tidemark", ...body }, kept(name)).withResponse();
        const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
        const rows = [
          [{ messages: [user("x")], tools, tool_choice: "required" }, /the model chooses/],
          [{ messages: [user("x"), { role: "assistant", content: "begun" }] }, /end with what the user says/],
          [{ messages: [] }, /none from the user/],
          [{ messages: [user([{ type: "image_url", image_url: { url: "https://x.example/a.png" } }])] }, /send its bytes as a data URL/],
        ];
        for (const [body, want] of rows) {
          const e = await ask(body).catch((e) => e);
          assert.ok(e instanceof OpenAI.BadRequestError, `${e}`);
          assert.match(e.message, want);
        }
        const said = await ask({ messages: [{ role: "system", content: "You are a pirate" }, user([{ type: "text", text: "see" }, { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }])], tools, tool_choice: "auto", max_tokens: 5, top_p: 1 });
        assert.equal(said.response.headers.get("x-tidemark-ignored"), "tools, top_p, max_tokens, system");
        const call = mine(png).at(-1);
        assert.equal(call.body.messages[0].content.find((b) => b.type === "image").source.media_type, "image/png");
        assert.ok(!JSON.stringify(call.body.system).includes("pirate"));
        assert.ok(!call.body.tools.some((t) => t.name === "f"), "tools of the client");
      });

      test("who leaves a stateless stream ends the model's call", async () => {
        const text = `hold ${fresh()}`;
        const stream = await openai().chat.completions.create({ model: "tidemark", stream: true, messages: [user(text)] });
        for await (const c of stream) if (c.choices[0].delta.content) break;
        const { call } = await model.held(text);
        stream.controller.abort();
        await soon(call.left);
        assert.equal(call.gone, true);
      });

      test("a sign of life in a silent stream is nothing to a client, before its first piece and behind it", async () => {
        await Promise.all(["late", "hold"].map(async (word) => {
          const text = `${word} ${fresh()}`;
          const { seen, listening } = pinged();
          const answer = openai({ fetch: listening }).chat.completions.stream({ model: "tidemark", messages: [user(text)] }).finalChatCompletion();
          const held = await model.held(text);
          await soon(seen);
          held.release();
          assert.equal((await answer).choices[0].message.content, `You said: ${text}`);
        }));
      });

      test("who leaves a kept conversation stops nothing", async () => {
        const name = fresh();
        const stream = await openai().chat.completions.create({ model: "tidemark", stream: true, messages: [user(`hold ${name}`)] }, kept(name));
        for await (const c of stream) if (c.choices[0].delta.content) break;
        stream.controller.abort();
        const held = await model.held(name);
        const back = openai().chat.completions.stream({ model: "tidemark", messages: [user(`hold ${name}`)] }, kept(name)); // joins the turn in work
        const piece = new Promise((tell) => back.once("content", tell));
        assert.equal(await piece, "You s", "what was said before it came");
        held.release();
        assert.equal(await back.finalContent(), `You said: hold ${name}`);
        assert.equal(mine(`hold ${name}`).length, 1);
      });

      test("long answers, streamed and not, in a conversation and without one", async () => {
        for (const options of [kept(fresh()), {}]) {
          const messages = [user("long 400000")];
          const { content } = (await openai().chat.completions.stream({ model: "tidemark", messages }, options).finalChatCompletion()).choices[0].message;
          assert.equal(content.length, 400000);
          assert.equal((await openai().chat.completions.create({ model: "tidemark", messages }, options)).choices[0].message.content, content);
        }
      });

      test("many clients at once", async () => {
        const name = fresh();
        const both = await Promise.all(Array.from({ length: 12 }, (_, i) => openai().chat.completions.create(
          { model: "tidemark", messages: [user(`at once ${i} of ${name}`)] }, i < 6 ? kept(name) : kept(`${name}-${i}`))));
        for (const r of both) assert.match(r.choices[0].message.content, /^You said: /);
        assert.equal((await messages(name)).filter((m) => m.role === "user").flatMap((m) => JSON.stringify(m).match(/at once \d/g)).length, 6);
      });

      test("an answer cut off by its bound says so", async () => {
        const r = await openai().chat.completions.create({ model: "tidemark", messages: [user("short")], max_completion_tokens: 3 });
        assert.equal(r.choices[0].finish_reason, "length");
        assert.equal(mine("short").at(-1).body.max_tokens, 3);
      });
    });

    describe("anthropic", () => {
      const say = (text, more = {}) => ({ model: "tidemark", max_tokens: 100, messages: [user(text)], ...more });

      test("a conversation, whole and as a stream, and how large it is", async () => {
        const name = fresh();
        const first = await anthropic().messages.create(say(`I like ${name}`), kept(name)).withResponse();
        assert.deepEqual(first.data.content, [{ type: "text", text: `You said: I like ${name}` }]);
        assert.deepEqual([first.data.stop_reason, first.data.type, first.data.role], ["end_turn", "message", "assistant"]);
        assert.equal(first.data.usage.cache_read_input_tokens, 4);
        assert.ok(first.request_id && first.response.headers.get("x-tidemark-session").endsWith(name));
        const before = await anthropic().messages.countTokens({ model: "tidemark", messages: [user("count")] }, kept(name));
        const none = await anthropic().messages.countTokens({ model: "tidemark", messages: [user("count")] }, kept(fresh()));
        assert.ok(before.input_tokens > none.input_tokens && none.input_tokens > 0);
        const stream = anthropic().messages.stream(say("count", { system: "x" }), kept(name));
        const types = [];
        stream.on("streamEvent", (e) => types.push(e.type));
        const final = await stream.finalMessage();
        assert.equal(final.content[0].text, "I see 3 messages");
        assert.deepEqual([final.usage.input_tokens, final.usage.output_tokens, final.stop_reason], [13, 7, "end_turn"]);
        assert.deepEqual([types[0], types[1], ...types.slice(-3)], ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]);
        const short = await anthropic({ baseURL: `${site.url}/s/${name}` }).messages.create(say("short"));
        assert.equal(short.stop_reason, "max_tokens");
        assert.equal((await messages(name)).length, 6);
      });

      test("a retry is one turn", async () => {
        const name = fresh();
        const r = await anthropic({ maxRetries: 2, fetch: lossy() }).messages.create(say(`lost ${name}`), kept(name)).withResponse();
        assert.equal(r.response.headers.get("x-tidemark-duplicate"), "1");
        assert.equal(mine(`lost ${name}`).length, 1);
        const marked = [user([{ type: "text", text: `lost ${name}`, cache_control: { type: "ephemeral" } }])];
        const again = await anthropic().messages.create(say("", { messages: marked }), kept(name)).withResponse();
        assert.equal(again.response.headers.get("x-tidemark-duplicate"), "1", "a cache marker is no other message");
      });

      test("failures are those of the SDK", async () => {
        const tools = [{ name: "f", input_schema: { type: "object" } }];
        const rows = [
          [() => anthropic().messages.create(say("x", { tools, tool_choice: { type: "any" } }), kept("a")), Anthropic.BadRequestError, "invalid_request_error", /the model chooses/],
          [() => anthropic().messages.create(say("x"), kept("no key!")), Anthropic.BadRequestError, "invalid_request_error", /session key/],
          [() => anthropic({ apiKey: "wrong" }).messages.create(say("x"), kept("a")), Anthropic.AuthenticationError, "authentication_error", /token/],
          [() => anthropic().messages.create(say("fail 413"), kept(fresh())), Anthropic.BadRequestError, "invalid_request_error", /window/],
        ];
        for (const [f, Class, type, want] of rows) {
          const e = await f().then(() => assert.fail("it did not fail"), (e) => e);
          assert.ok(e instanceof Class, `${f}: ${e.name} ${e.message}`);
          assert.equal(e.error.error.type, type, String(f));
          assert.match(e.message, want);
          assert.ok(e.requestID, String(f));
        }
      });

      test("tools of the client and what is new are not heeded in a conversation, and the answer says so", async () => {
        const name = fresh();
        const more = { tools: [{ name: "f", input_schema: { type: "object" } }], mcp_servers: [{ type: "url", url: "https://x.example", name: "x" }], container: "c", context_management: { edits: [] }, unheard_of: 1 };
        const said = await anthropic().messages.create(say(`tools ${name}`, more), kept(name)).withResponse();
        assert.equal(said.data.stop_reason, "end_turn");
        assert.equal(said.response.headers.get("x-tidemark-ignored"), "container, context_management, max_tokens, mcp_servers, tools, unheard_of");
        assert.ok(!mine(`tools ${name}`)[0].body.tools.some((t) => t.name === "f"));
      });

      test("without a key of its own it has the server's", async () => {
        const m = await anthropic().messages.create(say(`no key ${fresh()}`)).withResponse();
        assert.match(m.response.headers.get("x-tidemark-session"), /^agent:main:proxy:dm:[0-9a-f]{32}$/);
        assert.equal(m.request_id, "req_fake");
      });

      const own = { apiKey: "sk-clients-own", defaultHeaders: { "x-tidemark-token": token } };

      test("without a conversation it is the model's API itself, with the client's key", async () => {
        const text = `tool ${fresh()}`;
        const tools = [{ name: "weather", input_schema: { type: "object" } }];
        const body = say(text, { tools, system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }], metadata: { user_id: "u" } });
        for (const client of [anthropic(own), anthropic({ apiKey: "sk-clients-own", baseURL: `${site.url}/t/${token}` })]) {
          const r = await client.messages.create(body).withResponse();
          assert.equal(r.data.content[1].name, "weather");
          assert.equal(r.response.headers.get("x-odd"), "kept");
          assert.equal(r.request_id, "req_fake");
          assert.equal((await client.messages.stream(body).finalMessage()).content[1].input.city, "Oslo");
          assert.equal((await client.beta.messages.create({ ...body, betas: ["some-beta"] })).stop_reason, "tool_use");
          assert.deepEqual(await client.messages.countTokens({ model: "m", messages: [user("x")] }), { input_tokens: 42 });
        }
        const calls = mine(text);
        assert.equal(calls.length, 6);
        for (const c of calls) assert.equal(c.headers.authorization, "Bearer sk-clients-own", "as this SDK sends its key");
        const beta = calls.find((c) => c.headers["anthropic-beta"]);
        assert.deepEqual([beta.headers["anthropic-beta"], beta.path], ["some-beta", "/v1/messages"]);
      });

      test("the bytes of request and answer are the same, and nothing of ours goes on", async () => {
        const raw = `{ "model":"m" , "stream":true,\n "max_tokens":1.0e1, "zz":[1.50,"\\u00e9\\ud83d\\ude00 \u00e9"], "messages":[{"role":"user","content":"bytes ${fresh()}"}] }  `;
        const send = (url, headers) => new Promise((done, failed) => {
          const req = http.request(url, { method: "POST", headers: { "content-type": "application/json", ...headers } }, async (res) => done({ res, body: Buffer.concat(await res.toArray()) }));
          req.on("error", failed).end(raw);
        });
        const direct = await send(`${model.url}/v1/messages`, { "x-api-key": "k" });
        const ways = [
          [`${site.url}/v1/messages?beta=true`, { "x-tidemark-token": token, "x-api-key": "k", "anthropic-version": "2023-06-01", cookie: `a=${token}`, referer: `${site.url}/t/${token}/x`, "x-mine": "kept", "x-forwarded-for": "203.0.113.9" }],
          [`${site.url}/t/${token}/v1/messages`, { authorization: "Bearer oauth-of-client" }],
          [`${site.url}/v1/messages`, { authorization: `Bearer ${token}`, "x-api-key": "k", "x-note": `has ${token} within` }],
        ];
        for (const [url, headers] of ways) {
          const before = model.calls.length;
          const { res, body } = await send(url, headers);
          assert.equal(res.statusCode, 200);
          assert.deepEqual(body, direct.body);
          assert.equal(res.headers["content-type"], direct.res.headers["content-type"]);
          const call = model.calls[before];
          assert.equal(call.raw.toString(), raw);
          const all = JSON.stringify([call.path, call.query, call.rawHeaders]);
          assert.ok(!all.includes(token), all);
          assert.ok(!/tidemark|the-servers-own-key|cookie|referer|forwarded|203\.0\.113/i.test(all), all);
          if (headers["x-mine"]) assert.deepEqual([call.headers["x-mine"], call.query], ["kept", "?beta=true"]);
          if (headers.authorization?.includes("oauth")) assert.equal(call.headers.authorization, "Bearer oauth-of-client");
        }
        for (const c of model.calls) assert.ok(!JSON.stringify([c.path, c.query, c.rawHeaders]).includes(token));
      });

      test("a sign of life in what is passed on is nothing to a client", async () => {
        const text = `hold ${fresh()}`;
        const { seen, listening } = pinged();
        const answer = anthropic({ ...own, fetch: listening }).messages.stream(say(text)).finalText();
        const held = await model.held(text);
        await soon(seen);
        held.release();
        assert.equal(await answer, `You said: ${text}`);
      });

      test("failures of the API come through as they are, and who leaves ends the call", async () => {
        const e = await anthropic(own).messages.create(say("fail 429")).catch((e) => e);
        assert.ok(e instanceof Anthropic.RateLimitError);
        assert.deepEqual([e.error.error.message, e.requestID, e.headers.get("retry-after")], ["slow down", "req_fake", "1"]);
        const busy = await anthropic(own).messages.create(say("fail 529")).catch((e) => e);
        assert.equal(busy.status, 529);
        const text = `hold ${fresh()}`;
        const stream = anthropic(own).messages.stream(say(text));
        const ended = assert.rejects(stream.done(), Anthropic.APIUserAbortError);
        const { call } = await model.held(text);
        stream.abort();
        await ended;
        await soon(call.left);
        assert.equal(call.gone, true);
      });

      test("models, in the words of this API", async () => {
        const list = await anthropic().models.list();
        assert.equal(list.data[0].id, "tidemark");
        assert.equal((await anthropic().models.retrieve("tidemark")).type, "model");
      });
    });

    describe("ai", () => {
      const transport = () => new DefaultChatTransport({ api: `${site.url}/api/chat`, headers: { authorization: `Bearer ${token}` } });
      const message = (text, id = fresh()) => ({ id, role: "user", parts: [{ type: "text", text }] });
      const send = (chatId, messages, more = {}) => transport().sendMessages({ chatId, messages, trigger: "submit-message", messageId: undefined, abortSignal: undefined, ...more });
      const read = async (stream) => {
        let last;
        const transient = [];
        const seen = stream.pipeThrough(new TransformStream({ transform(c, to) { if (c.transient) transient.push(c); to.enqueue(c); } }));
        for await (const m of readUIMessageStream({ stream: seen, terminateOnError: true })) last = m;
        return { ...last, transient, text: last?.parts.filter((p) => p.type === "text").map((p) => p.text).join("") };
      };

      test("useChat's transport: an answer, its figures, a history that is the server's", async () => {
        const chat = `Ab${fresh()}`;
        const first = message("hello");
        const got = await read(await send(chat, [first]));
        assert.equal(got.text, "You said: hello");
        assert.deepEqual([got.id, got.role, got.metadata.input], [`answer-${first.id}`, "assistant", first.id]);
        assert.equal(got.parts.find((p) => p.type === "data-usage").data.usage.output_tokens, 7);
        assert.deepEqual(got.transient.map((c) => c.data.state), ["waiting", "taken"]);
        const more = await read(await send(chat, [first, { ...got, parts: [{ type: "text", text: "changed by the page" }] }, message("count")]));
        assert.equal(more.text, "I see 3 messages");
        const again = await read(await send(chat, [first]));
        assert.deepEqual([again.text, again.id], ["You said: hello", got.id], "the same id is the same message");
        const other = await read(await send(chat.toLowerCase(), [message("count")]));
        assert.equal(other.text, "I see 1 messages", "ids that differ in case are two chats");
      });

      test("files", async () => {
        const parts = [{ type: "text", text: "see" }, { type: "file", mediaType: "image/png", url: `data:image/png;base64,${png}` },
          { type: "file", mediaType: "text/plain", filename: "a.txt", url: `data:text/plain;base64,${Buffer.from("grün").toString("base64")}` }];
        await read(await send(fresh(), [{ id: fresh(), role: "user", parts }]));
        const { content } = mine(png).at(-1).body.messages[0];
        assert.deepEqual(content.slice(0, 3).map((b) => b.type), ["text", "image", "document"]);
        assert.equal(content[2].source.data, "grün");
      });

      test("a page that comes back goes on with the answer, also before its first piece", async () => {
        for (const word of ["hold", "late"]) {
          const chat = `C${fresh()}`;
          assert.equal(await transport().reconnectToStream({ chatId: chat }), null, "no such chat");
          const leave = new AbortController();
          const first = message(`${word} ${chat}`);
          await send(chat, [first], { abortSignal: leave.signal });
          const held = await model.held(`${word} ${chat}`);
          leave.abort();
          const back = await transport().reconnectToStream({ chatId: chat });
          held.release();
          const got = await read(back);
          assert.deepEqual([got.text, got.id], [`You said: ${word} ${chat}`, `answer-${first.id}`]);
          assert.equal(await transport().reconnectToStream({ chatId: chat }), null, "nothing in work");
          assert.equal(mine(`${word} ${chat}`).length, 1);
        }
      });

      test("what is not there yet is refused in words", async () => {
        await assert.rejects(send(fresh(), [message("x")], { trigger: "regenerate-message" }), /cannot be made anew yet/);
        await assert.rejects(send(fresh(), [{ id: "a", role: "assistant", parts: [] }]), /must be the user's/);
        const failed = send(fresh(), [message("fail 400")]).then(read);
        await assert.rejects(failed, /too many/);
      });

      test("@ai-sdk/openai-compatible and @ai-sdk/anthropic", async () => {
        const tools = { weather: tool({ description: "of a city", inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }), execute: async ({ city }) => `snow in ${city}` }) };
        const compatible = createOpenAICompatible({ name: "tidemark", baseURL: `${site.url}/v1`, apiKey: token, includeUsage: true });
        const original = createAnthropic({ baseURL: `${site.url}/v1`, apiKey: "sk-own", headers: { "x-tidemark-token": token } });
        const stopWhen = ({ steps }) => steps.length > 2;
        for (const provider of [compatible, original]) {
          assert.equal((await generateText({ model: provider("tidemark"), prompt: "tool", tools, stopWhen, maxRetries: 0 })).text, "The tool said: snow in Oslo");
          const s = streamText({ model: provider("tidemark"), prompt: "hi there", maxRetries: 0 });
          assert.equal(await s.text, "You said: hi there");
          assert.equal((await s.usage).outputTokens, 7);
        }
        const name = fresh();
        const keeping = createOpenAICompatible({ name: "tidemark", baseURL: `${site.url}/v1`, apiKey: token, headers: { "x-tidemark-session": name } });
        await generateText({ model: keeping("tidemark"), prompt: "one", maxRetries: 0 });
        assert.equal((await generateText({ model: keeping("tidemark"), prompt: "count", maxRetries: 0 })).text, "I see 3 messages");
      });
    });

    pages(() => site, user);
  });
}

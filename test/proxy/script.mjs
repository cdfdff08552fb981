// A client as people write one: it knows nothing of Tidemark, and takes its address and key from the environment.
// `tidemark proxy -- node script.mjs WORDS` runs it in the tests.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [words] = process.argv.slice(2);
const client = new Anthropic({ maxRetries: 0 });
const tools = [{ name: "Read", description: "Read a file.", input_schema: { type: "object", properties: { file_path: { type: "string" } } } }];
const messages = [{ role: "user", content: words }];
const one = await client.messages.stream({ model: "fake-1", max_tokens: 100, tools, messages }).finalMessage();
messages.push({ role: "assistant", content: one.content }, { role: "user", content: one.content.filter((b) => b.type === "tool_use").map((b) => ({ type: "tool_result", tool_use_id: b.id, content: "of it" })) });
const two = await client.messages.create({ model: "fake-1", max_tokens: 100, tools, messages });
console.log(JSON.stringify([one, two].map((m) => m.content.map((b) => b.text ?? b.name).join(" "))));
const chat = await new OpenAI({ maxRetries: 0 }).chat.completions.create({ model: "fake-1", messages: [{ role: "user", content: words }] });
console.log(chat.choices[0].message.content);
process.exit(7);

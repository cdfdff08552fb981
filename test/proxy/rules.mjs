// What the APIs refuse, as far as a proxy could cause it: the rules of the Messages API
// (https://docs.anthropic.com/en/api/messages and the pages on tool use, thinking and caching) and of chat
// completions. A rule that is broken is a text as the API would say it, none is null. Pure, but for the
// replies that are given: those that came from here are known by their signatures and calls.

const isObject = (v) => v !== null && typeof v === "object" && !Array.isArray(v);
const blank = (s) => typeof s !== "string" || s.trim() === "";
export const blocksOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
const thinks = (b) => b.type === "thinking" || b.type === "redacted_thinking";

// Given is what a fake has answered so far: it may be changed in no later request.
export class Given {
  #signed = new Map(); // signature to its thinking
  #calls = new Map(); // id of a call to the blocks of its reply
  add(content) {
    for (const b of content) {
      if (b.type === "thinking") this.#signed.set(b.signature, b.thinking);
      if (b.type === "tool_use") this.#calls.set(b.id, content);
    }
  }
  thinking(b) {
    return b.type !== "thinking" || this.#signed.get(b.signature) === b.thinking;
  }
  reply(id) {
    return this.#calls.get(id);
  }
}

// Who takes system messages between the others: models that need no beta, and, to the fakes, whoever sends the beta
// (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
const instructed = /^claude-(opus-4-8|opus-5|sonnet-5-5|haiku-5-5|fable-|mythos-)/;
const takesSystem = ({ model }, betas = "") => instructed.test(model) || betas.includes("mid-conversation-system-");

// messagesBroken looks at a request of the Messages API, with the betas that it names.
export function messagesBroken(body, given = new Given(), counting = false, betas = "") {
  if (!isObject(body)) return "the body is not an object";
  if (blank(body.model)) return "model: Field required";
  if (!counting && !(Number.isInteger(body.max_tokens) && body.max_tokens > 0)) return "max_tokens: Field required";
  if (!Array.isArray(body.messages) || body.messages.length === 0) return "messages: at least one message is required";
  if (body.messages.some((m) => m?.role === "system") && !takesSystem(body, betas)) return "role 'system' is not supported on this model";
  return shapes(body) ?? systemBroken(body) ?? toolsBroken(body) ?? pairs(merged(body.messages)) ?? markers(body) ?? thinkingBroken(body, given);
}

// merged puts messages of one role that follow each other together, as the API does.
function merged(messages) {
  const out = [];
  for (const { role, content } of messages) {
    if (out.at(-1)?.role === role) out.at(-1).content.push(...blocksOf(content));
    else out.push({ role, content: [...blocksOf(content)] });
  }
  return out;
}

// systemBroken: a system message stands alone behind one of the user, and before one of the assistant or at the end.
function systemBroken({ messages }) {
  for (const [i, m] of messages.entries()) {
    if (m.role !== "system") continue;
    if (i === 0) return "messages.0: use the top-level 'system' parameter for the initial system prompt";
    const before = messages[i - 1];
    const served = before.role === "assistant" && /(server_tool_use|_tool_result)$/.test(blocksOf(before.content).at(-1)?.type);
    if (before.role !== "user" && !served) return `messages.${i}: a system message must follow a user message`;
    if (messages[i + 1] && messages[i + 1].role !== "assistant") return `messages.${i}: a system message must be last or precede an assistant message`;
    for (const b of blocksOf(m.content)) if (!["text", "tool_addition", "tool_removal"].includes(b.type)) return `messages.${i}: ${b.type} is not allowed in a system message`;
  }
  return null;
}

function shapes({ messages, system }) {
  for (const [i, m] of messages.entries()) {
    if (!["user", "assistant", "system"].includes(m?.role)) return `messages.${i}.role: Input should be 'user' or 'assistant'`;
    const last = i === messages.length - 1 && m.role === "assistant";
    if (typeof m.content !== "string" && !Array.isArray(m.content)) return `messages.${i}.content: Input should be a valid list`;
    if (m.content.length === 0 && !last) return `messages.${i}: all messages must have non-empty content except for the optional final assistant message`;
    for (const [j, b] of blocksOf(m.content).entries()) {
      const why = blockBroken(b, m.role);
      if (why && !(last && m.content === "")) return `messages.${i}.content.${j}: ${why}`;
    }
  }
  if (messages[0].role !== "user") return "messages: first message must use the \"user\" role";
  if (system !== undefined && typeof system !== "string" && !Array.isArray(system)) return "system: Input should be a valid list";
  for (const b of blocksOf(system ?? [])) if (b.type !== "text" || blank(b.text)) return "system: text content blocks must be non-empty";
  return null;
}

function blockBroken(b, role) {
  if (!isObject(b) || typeof b.type !== "string") return "type: Field required";
  switch (b.type) {
    case "text":
      return blank(b.text) ? "text content blocks must be non-empty" : null;
    case "tool_use":
      if (role !== "assistant") return "`tool_use` blocks can only be in `assistant` messages";
      if (!/^[a-zA-Z0-9_-]+$/.test(b.id ?? "")) return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
      if (!/^[a-zA-Z0-9_-]{1,200}$/.test(b.name ?? "")) return "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'";
      return isObject(b.input) ? null : "tool_use.input: Input should be a valid dictionary";
    case "tool_result": {
      if (role !== "user") return "`tool_result` blocks can only be in `user` messages";
      const { content } = b;
      if (content === undefined || typeof content === "string") return null;
      if (!Array.isArray(content)) return "tool_result.content: Input should be a valid list";
      for (const c of content) {
        if (!["text", "image", "document", "search_result", "tool_reference"].includes(c?.type)) return `tool_result.content: ${c?.type} is not allowed`;
        if (c.type === "text" && blank(c.text)) return "tool_result.content: text content blocks must be non-empty";
      }
      return null;
    }
    case "thinking": case "redacted_thinking":
      if (role !== "assistant") return "`thinking` blocks can only be in `assistant` messages";
      return b.cache_control ? "thinking.cache_control: Extra inputs are not permitted" : null;
    default:
      return null;
  }
}

// pairs: each call is answered in the next message, once and before all else, and nothing else is.
function pairs(messages) {
  const seen = new Set();
  for (const [i, m] of messages.entries()) {
    const calls = m.role === "assistant" ? m.content.filter((b) => b.type === "tool_use").map((b) => b.id) : [];
    for (const id of calls) {
      if (seen.has(id)) return `messages.${i}: \`tool_use\` ids must be unique: ${id}`;
      seen.add(id);
    }
    const next = messages[i + 1];
    const answered = (next?.content ?? []).filter((b) => b.type === "tool_result").map((b) => b.tool_use_id);
    const open = calls.filter((id) => !answered.includes(id));
    if (open.length > 0) return `messages.${i}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    if (m.role !== "user") continue;
    const before = messages[i - 1]?.content.filter((b) => b.type === "tool_use").map((b) => b.id) ?? [];
    const results = m.content.filter((b) => b.type === "tool_result").map((b) => b.tool_use_id);
    for (const id of results) if (!before.includes(id)) return `messages.${i}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    if (new Set(results).size !== results.length) return `messages.${i}: each tool_use must have a single result`;
    if (m.content.slice(0, results.length).some((b) => b.type !== "tool_result")) return `messages.${i}: \`tool_result\` blocks must come before all other content`;
  }
  const last = messages.at(-1);
  if (last.role === "assistant" && last.content.at(-1)?.type === "text" && /\s$/.test(last.content.at(-1).text)) return "messages: final assistant content cannot end with trailing whitespace";
  return null;
}

function toolsBroken({ tools = [], tool_choice: choice }) {
  if (!Array.isArray(tools)) return "tools: Input should be a valid list";
  const names = tools.map((t) => t.name);
  if (new Set(names).size !== names.length) return "tools: Tool names must be unique.";
  for (const [i, t] of tools.entries()) {
    if (t.type !== undefined && t.type !== "custom") continue; // a tool of the server's
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(t.name ?? "")) return `tools.${i}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
    if (t.input_schema?.type !== "object") return `tools.${i}.input_schema.type: Field required`;
  }
  if (choice === undefined) return null;
  if (!["auto", "any", "tool", "none"].includes(choice?.type)) return "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'";
  if (tools.length === 0 && choice.type !== "none") return "tool_choice: may only be specified while providing tools";
  return choice.type === "tool" && !names.includes(choice.name) ? `tool_choice.name: ${choice.name} is not among tools` : null;
}

// markersOf counts the cache markers of a request, wherever they are.
export function markersOf({ tools = [], system = [], messages }) {
  const all = [...tools, ...blocksOf(system), ...messages.flatMap((m) => blocksOf(m.content))];
  return all.flatMap((b) => [b, ...(b.type === "tool_result" && Array.isArray(b.content) ? b.content : [])]).filter((b) => b.cache_control).map((b) => b.cache_control);
}

function markers(body) {
  const all = markersOf(body);
  if (all.length > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${all.length}.`;
  let short = false;
  for (const { type, ttl = "5m" } of all) {
    if (type !== "ephemeral") return "cache_control.type: Input should be 'ephemeral'";
    if (ttl === "1h" && short) return "cache_control.ttl: a ttl='1h' block must not come after a ttl='5m' block";
    short ||= ttl === "5m";
  }
  return null;
}

// thinkingBroken: what is sent back of thinking is as it was given; in an open tool loop none is missing or moved.
function thinkingBroken({ messages, thinking, tool_choice: choice, max_tokens: most }, given) {
  for (const [i, m] of messages.entries()) {
    for (const [j, b] of blocksOf(m.content).entries()) {
      if (thinks(b) && !given.thinking(b)) return `messages.${i}.content.${j}: Invalid \`signature\` in \`thinking\` block`;
    }
  }
  if (!["enabled", "adaptive"].includes(thinking?.type)) return null;
  if (thinking.type === "enabled" && !(thinking.budget_tokens >= 1024 && thinking.budget_tokens < (most ?? Infinity))) return "thinking.budget_tokens: at least 1024 and less than max_tokens";
  if (["any", "tool"].includes(choice?.type)) return "Thinking may not be enabled when tool_choice forces tool use.";
  const all = merged(messages);
  const said = all.findLastIndex((m) => m.role === "user" && m.content.some((b) => b.type !== "tool_result") && !m.content.some((b) => b.type === "tool_result"));
  for (const [i, m] of all.entries()) {
    if (i <= said || m.role !== "assistant") continue;
    const call = m.content.find((b) => b.type === "tool_use");
    const reply = call && given.reply(call.id);
    if (!reply?.some(thinks)) continue; // the model may choose not to think
    const shape = (bs) => JSON.stringify(bs.filter((b) => thinks(b) || b.type === "tool_use").map((b) => (thinks(b) ? b : b.id)));
    if (shape(m.content) !== shape(reply)) return `messages.${i}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`;
  }
  return null;
}

// chatBroken looks at a request of chat completions.
export function chatBroken(body) {
  if (!isObject(body)) return "the body is not an object";
  if (blank(body.model)) return "you must provide a model parameter";
  if (!Array.isArray(body.messages) || body.messages.length === 0) return "messages: at least one is required";
  let open = new Set();
  for (const [i, m] of body.messages.entries()) {
    if (!["system", "developer", "user", "assistant", "tool"].includes(m?.role)) return `messages[${i}].role: not a role`;
    if (m.role === "tool") {
      if (!open.delete(m.tool_call_id)) return `messages[${i}]: messages with role 'tool' must be a response to a preceding message with 'tool_calls': ${m.tool_call_id}`;
      if (typeof m.content !== "string" && !Array.isArray(m.content)) return `messages[${i}].content: expected a string or a list`;
      continue;
    }
    if (open.size > 0) return `an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...open].join(", ")}`;
    const why = m.role === "assistant" ? assistantBroken(m) : Array.isArray(m.content) ? partsBroken(m.content) : typeof m.content === "string" ? null : "content: expected a string or a list";
    if (why) return `messages[${i}].${why}`;
    open = new Set((m.tool_calls ?? []).map((c) => c.id));
  }
  if (open.size > 0) return `an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...open].join(", ")}`;
  return chatTools(body);
}

const partsBroken = (parts) => (parts.length > 0 && parts.every((p) => isObject(p) && typeof p.type === "string" && (p.type !== "text" || typeof p.text === "string")) ? null : "content: a list of parts must have some");

function assistantBroken({ content, tool_calls: calls }) {
  if (calls === undefined) return typeof content === "string" ? null : Array.isArray(content) ? partsBroken(content) : "content: null without tool_calls";
  if (!Array.isArray(calls) || calls.length === 0) return "tool_calls: [] is too short";
  for (const c of calls) {
    if (c.type === "custom") continue;
    if (c.type !== "function" || blank(c.id) || blank(c.function?.name) || typeof c.function.arguments !== "string") return "tool_calls: not a call of a function";
    try {
      JSON.parse(c.function.arguments);
    } catch {
      return `tool_calls: arguments are not JSON: ${c.function.arguments}`;
    }
  }
  return new Set(calls.map((c) => c.id)).size === calls.length ? null : "tool_calls: ids must be unique";
}

function chatTools({ tools, tool_choice: choice }) {
  if (tools !== undefined && (!Array.isArray(tools) || tools.length === 0)) return "tools: [] is too short";
  const names = [];
  for (const t of tools ?? []) {
    if (t.type !== "function") continue;
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(t.function?.name ?? "")) return "tools.function.name: does not match '^[a-zA-Z0-9_-]+$'";
    if (t.function.parameters !== undefined && !isObject(t.function.parameters)) return "tools.function.parameters: not an object";
    names.push(t.function.name);
  }
  if (new Set(names).size !== names.length) return "tools: names must be unique";
  if (choice !== undefined && tools === undefined) return "tool_choice is only allowed when 'tools' are specified";
  return isObject(choice) && choice.type === "function" && !names.includes(choice.function?.name) ? `tool_choice: ${choice.function?.name} is not among tools` : null;
}

// How an answer looks on the wire: the events of its stream, or its JSON, in the words of both APIs.

// pieces cuts a text into pieces of so many characters, a surrogate pair never.
function pieces(text, size) {
  const chars = [...text], out = [];
  for (let i = 0; i < chars.length; i += size) out.push(chars.slice(i, i + size).join(""));
  return out;
}

const start = (b) => {
  switch (b.type) {
    case "text": return { ...b, text: "" };
    case "thinking": return { ...b, thinking: "", signature: "" };
    case "tool_use": case "server_tool_use": return { ...b, input: {} };
    default: return b;
  }
};

function deltas(b, size) {
  switch (b.type) {
    case "text": return pieces(b.text, size).map((text) => ({ type: "text_delta", text }));
    case "thinking": return [...pieces(b.thinking, size).map((thinking) => ({ type: "thinking_delta", thinking })), { type: "signature_delta", signature: b.signature }];
    case "tool_use": case "server_tool_use": return ["", ...pieces(JSON.stringify(b.input), size)].map((partial_json) => ({ type: "input_json_delta", partial_json }));
    default: return [];
  }
}

// messageEvents are the events of a reply of the Messages API.
export function messageEvents({ id, model, content, stop, usage, output, piece = 7, extra = {} }) {
  const out = [{ type: "message_start", message: { id, type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 }, ...extra } }];
  out.push({ type: "ping" });
  for (const [index, b] of content.entries()) {
    out.push({ type: "content_block_start", index, content_block: start(b) });
    for (const delta of deltas(b, piece)) out.push({ type: "content_block_delta", index, delta });
    out.push({ type: "content_block_stop", index });
  }
  out.push({ type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: output } });
  out.push({ type: "message_stop" });
  return out;
}

export const messageJSON = ({ id, model, content, stop, usage, output, extra = {} }) => ({
  id, type: "message", role: "assistant", model, content, stop_reason: stop, stop_sequence: null, usage: { ...usage, output_tokens: output }, ...extra,
});

const reasons = { end_turn: "stop", tool_use: "tool_calls", max_tokens: "length", refusal: "content_filter" };
const textOf = (content) => content.filter((b) => b.type === "text").map((b) => b.text).join("");
const callsOf = (content) => content.filter((b) => b.type === "tool_use").map((b) => ({ id: b.id, type: "function", function: { name: b.name, arguments: JSON.stringify(b.input) } }));

export function chatJSON({ id, model, content, stop, usage, n = 1, extra = {} }) {
  const calls = callsOf(content), text = textOf(content);
  const choice = (index) => ({ index, message: { role: "assistant", content: text || null, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) }, logprobs: null, finish_reason: reasons[stop] ?? "stop" });
  return { id, object: "chat.completion", created: 1760000000, model, choices: Array.from({ length: n }, (_, i) => choice(i)), usage, system_fingerprint: "fp_fake", ...extra };
}

// chatEvents are the chunks of a reply, and what ends them.
export function chatEvents({ id, model, content, stop, usage, n = 1, piece = 7, figures = false, extra = {} }) {
  const chunk = (choices, more) => ({ id, object: "chat.completion.chunk", created: 1760000000, model, system_fingerprint: "fp_fake", choices, ...(figures && { usage: null }), ...extra, ...more });
  const out = [];
  for (let index = 0; index < n; index++) {
    const say = (delta, finish_reason = null) => out.push(chunk([{ index, delta, logprobs: null, finish_reason }]));
    say({ role: "assistant", content: "", refusal: null });
    for (const content_ of pieces(textOf(content), piece)) say({ content: content_ });
    for (const [i, c] of callsOf(content).entries()) {
      say({ tool_calls: [{ index: i, ...c, function: { name: c.function.name, arguments: "" } }] });
      for (const part of pieces(c.function.arguments, piece)) say({ tool_calls: [{ index: i, function: { arguments: part } }] });
    }
    say({}, reasons[stop] ?? "stop");
  }
  if (figures) out.push(chunk([], { usage }));
  return [...out, "[DONE]"];
}

// frame is an event as server-sent events have it; forms vary as the standard allows.
export function frame(event, { named = true, crlf = false, behind = false, split = false } = {}) {
  const data = typeof event === "string" ? event : JSON.stringify(event);
  const lines = split && data.startsWith("{") ? [`data: {`, `data: ${data.slice(1)}`] : [`data: ${data}`];
  const name = named && typeof event !== "string" ? [`event: ${event.type}`] : [];
  const end = crlf ? "\r\n" : "\n";
  return [...(behind ? [...lines, ...name] : [...name, ...lines]), "", ""].join(end);
}

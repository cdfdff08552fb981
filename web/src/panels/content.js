// Content blocks of messages as plain parts that a list can show.

// parts turns the content of a message into [{kind, title, text, error?}]; kind is text, thinking, call,
// result, media or other. Text is never markup here.
export function parts(content) {
  if (typeof content === "string") return [{ kind: "text", title: "", text: content }];
  if (!Array.isArray(content)) return content == null ? [] : [other(content)];
  return content.map(part);
}

function part(b) {
  switch (b?.type) {
    case "text":
      return { kind: "text", title: "", text: string(b.text) };
    case "thinking":
      return { kind: "thinking", title: "Thinking", text: string(b.thinking) };
    case "redacted_thinking":
      return { kind: "thinking", title: "Thinking, encrypted by the provider", text: "" };
    case "tool_use":
    case "server_tool_use":
      return { kind: "call", title: `Calls ${string(b.name)}`, text: pretty(b.input) };
    case "tool_result":
      return { kind: "result", title: b.is_error ? "Result: an error" : "Result", text: resultText(b.content), error: Boolean(b.is_error) };
    case "image":
    case "document":
      return { kind: "media", title: media(b), text: "" };
  }
  return other(b);
}

const string = (s) => (typeof s === "string" ? s : s == null ? "" : pretty(s));
const pretty = (v) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v, null, 2));
const other = (b) => ({ kind: "other", title: typeof b?.type === "string" ? b.type : "Unknown block", text: pretty(b) });

function resultText(content) {
  return parts(content).map((p) => (p.kind === "text" ? p.text : `[${p.title}]${p.text && `\n${p.text}`}`)).join("\n");
}

function media(b) {
  const name = b.type === "image" ? "Image" : "Document";
  const s = b.source ?? {};
  const size = typeof s.data === "string" ? `, about ${Math.max(1, Math.round((s.data.length * 3) / 4 / 1000))} KB` : "";
  const type = typeof s.media_type === "string" ? ` (${s.media_type}${size})` : "";
  return `${name}${type}`;
}

// firstWords is the beginning of a text on one line.
export function firstWords(text, most = 120) {
  const line = string(text).slice(0, most * 4).replace(/\s+/g, " ").trim();
  const letters = [...line];
  return letters.length > most ? `${letters.slice(0, most).join("")}…` : line;
}

// readLines decodes an archive, one message a line. A line that is no JSON is kept as it is, told by its
// number: the others must not be lost for it.
export function readLines(text) {
  const out = [];
  text.split("\n").forEach((line, i) => {
    if (line.trim() === "") return;
    try {
      const m = JSON.parse(line);
      if (m === null || typeof m !== "object" || Array.isArray(m)) throw new Error("no object");
      const { role = "", content, id = "", timestamp, origin, model } = m;
      out.push({ line: i + 1, id, role: string(role), at: timestamp, from: origin?.from ?? "", model: string(model), parts: parts(content) });
    } catch {
      out.push({ line: i + 1, id: "", role: "", from: "", bad: true, parts: [{ kind: "other", title: "This line is no message", text: line }] });
    }
  });
  return out;
}

// readable leaves out where a remembered line came from: comments of ours, which the file keeps for the
// server. What a person wrote is never left out.
export const readable = (text) => text.replace(/ ?<!-- tidemark: (?:(?!-->).)*-->/g, "");

// byFolder sorts memory files for the list: curated ones, then daily ones newest first, then peers'.
export function byFolder(files) {
  const groups = [{ name: "Kept by hand", files: [] }, { name: "By day", files: [] }, { name: "By person", files: [] }];
  for (const f of files) {
    const at = !f.path.includes("/") ? 0 : f.path.startsWith("memory/peers/") ? 2 : 1;
    groups[at].files.push(f);
  }
  groups[1].files.sort((a, b) => (a.path < b.path ? 1 : -1));
  return groups.filter((g) => g.files.length > 0);
}

// promptOf says whose prompt a conversation has: "main", that of another one of the owner's, a "peer"'s, as the
// server sorts keys, or that of a "client" which keeps its own.
export function promptOf(session) {
  const parts = session.split("#")[0].split(":");
  if (parts.length === 3) return "main";
  if (parts[2] === "proxy") return "client";
  return ["local", "web", "api", "cli"].includes(parts[2]) ? "owner" : "peer";
}

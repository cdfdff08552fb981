// Which object a session key belongs to: the JavaScript twin of ParseKey in key.go, as far as the front
// needs it. testdata/keys.json holds both to the same rows.

const MAX_PART = 128; // bytes of each part
const PLAIN = /^[A-Za-z0-9_-]+$/;
const WIDE = /^[A-Za-z0-9_.@+-]+$/;

// rootKey gives the key without its branch, in full and in lower case, or "" for what is no key: the
// door then says what is wrong with it.
export function rootKey(text) {
  const at = text.indexOf("#");
  const root = at < 0 ? text : text.slice(0, at);
  if (at >= 0 && !part(text.slice(at + 1), WIDE)) return "";
  let parts = root.split(":");
  if (parts.length === 1) parts = parts[0].toLowerCase() === "main" ? ["agent", "main", "main"] : ["agent", "main", "local", "dm", parts[0]];
  parts = parts.map((p, i) => part(p, i === 1 ? PLAIN : WIDE));
  if (parts[0] !== "agent" || parts.includes("")) return "";
  if (parts.length !== 5 && !(parts.length === 3 && parts[2] === "main")) return "";
  return parts.join(":");
}

function part(text, allowed) {
  return allowed.test(text) && !/^\.+$/.test(text) && text.length <= MAX_PART ? text.toLowerCase() : "";
}

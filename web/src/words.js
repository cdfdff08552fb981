// Small pure functions: names, times, sizes, commands.

import { plain } from "./title.js";

// peerOf is what a person would call a session that has no title, whatever channel it came by.
export function peerOf(key = "") {
  const [root, branch] = key.split("#");
  if (branch !== undefined && !proxied(key)) return `${peerOf(root)} › ${branch}`;
  if (/^agent:[^:]+:main$/.test(key)) return "Main conversation";
  const parts = key.split(":");
  const name = parts.length > 2 ? parts.slice(parts.length === 5 ? 4 : 2).join(":") : key;
  if (proxied(key)) return `Client ${name.slice(0, 6)}`; // the rest is of a hash
  if (parts[2] === "delegate") return `Task ${name.slice(0, 6)}`;
  return /^chat-[0-9a-z]+$/.test(name) ? "New chat" : name;
}

// proxied says that a client keeps the history of a conversation and goes on with it; here it is only shown.
export const proxied = (key = "") => key.split(":")[2] === "proxy";

const channels = { whatsapp: "WhatsApp", telegram: "Telegram", api: "API", proxy: "Proxy", delegate: "Delegated" };

// channelOf says by which channel a session is held, and if it is not with one person, how; empty for those
// that begin on this machine, as most do.
export function channelOf(key = "") {
  const [, , channel, kind, peer] = key.split(":");
  if (!peer || ["local", "web"].includes(channel)) return "";
  return `${channels[channel] ?? channel}${kind === "dm" ? "" : ` ${kind}`}`;
}

// nameOf tells a session from others: its title, or with whom it is, and by what channel.
export function nameOf({ key, title }) {
  return title || [peerOf(key), channelOf(key)].filter(Boolean).join(" · ");
}

// fullKey is a key as the server writes it: a bare name is a conversation of the main agent.
export function fullKey(key) {
  const low = key.toLowerCase();
  const [root, ...branch] = low.split("#");
  const whole = root === "main" ? "agent:main:main" : root.includes(":") ? root : `agent:main:local:dm:${root}`;
  return [whole, ...branch].join("#");
}

export const agentOf = (key) => fullKey(key).split(":")[1];

// newKey names a new chat: time, then chance, so that two tabs do not meet.
export function newKey(now = Date.now(), chance = crypto.getRandomValues(new Uint32Array(1))[0]) {
  return fullKey(`chat-${now.toString(36)}${chance.toString(36)}`);
}

// fitTitle keeps a title within the server's bound, which is in bytes.
export function fitTitle(text) {
  let out = text;
  while (new TextEncoder().encode(out).length > 200) out = [...out].slice(0, -1).join("");
  return out;
}

// keyFrom makes of a title a key that may be one: no marks on letters, nothing else between them than a dash.
// n tells it from others of the same title.
export function keyFrom(title, agent = "main", n = 1) {
  const plain = title.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const name = plain.replace(/[^a-z0-9]+/g, "-").slice(0, 60).replace(/^-+|-+$/g, "") || "restored";
  return `agent:${agent}:local:dm:${name}${n > 1 ? `-${n}` : ""}`;
}

// titleFrom is the first words of a text, for a list.
export function titleFrom(text) {
  const line = plain(text) || text.replace(/\s+/g, " ").trim();
  if (line.length <= 60) return line;
  const cut = line.slice(0, 60).replace(/\s+\S*$/, "");
  return `${cut || line.slice(0, 60)}…`;
}

const steps = [["second", 60], ["minute", 60], ["hour", 24], ["day", 7], ["week", 4.35], ["month", 12], ["year", Infinity]];

// ago says how long ago a time was.
export function ago(time, now = Date.now(), locale = undefined) {
  let left = (new Date(time).getTime() - now) / 1000;
  if (Number.isNaN(left)) return "";
  if (Math.abs(left) < 45) return "now";
  const say = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "narrow" });
  for (const [unit, most] of steps) {
    if (Math.abs(left) < most) return say.format(Math.round(left), unit);
    left /= most;
  }
  return "";
}

const whole = new Intl.NumberFormat("en");
export const count = (n, one, many = `${one}s`) => `${whole.format(n ?? 0)} ${n === 1 ? one : many}`;

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${Math.round(n / 1000)} KB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}

// NEAR is the share of the limit from which on a context is called nearly full.
export const NEAR = 0.85;

// fillOf says how full a context is, for the head and the panel alike: of the limit at which it is compacted,
// not of the window. level is "", "near" or "over", by the tokens and not by the rounded share.
export function fillOf(used, limit) {
  const part = limit > 0 ? (used ?? 0) / limit : 0;
  const share = part > 0 && part < 0.01 ? "<1 %" : `${Math.round(100 * part)} %`;
  return { part, share, level: part > 1 ? "over" : part > NEAR ? "near" : "" };
}

// COMMANDS are what may be typed after a slash.
export const COMMANDS = [
  { name: "open", takes: "title", says: "begin another conversation" },
  { name: "new", takes: "", says: "archive this conversation, remember it, begin it anew" },
  { name: "reset", takes: "", says: "the same as /new" },
  { name: "compact", takes: "instructions", says: "make the context smaller now" },
  { name: "snapshot", takes: "name", says: "name this place, to come back to" },
  { name: "branch", takes: "name", says: "go on from here in a session of its own, trimmed" },
  { name: "stop", takes: "", says: "stop the answer" },
  { name: "status", takes: "", says: "how this conversation stands" },
  { name: "model", takes: "name or default", says: "show or change which model answers" },
  { name: "memory", takes: "", says: "what is remembered" },
  { name: "help", takes: "", says: "show commands and keys" },
];

// most a name behind /model, /snapshot or /branch may have, as the server holds it
const LONGEST_NAME = 200;

// readInput tells a command from something said, as strictly as the server does (tidemark.ParseCommand): a
// sentence that begins with a slash must not reset anything. "//" says a slash.
export function readInput(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("//")) return { say: trimmed.slice(1) };
  const [, name, rest] = trimmed.match(/^\/([^\s/]*)\s*([\s\S]*)$/) ?? [];
  if (name === undefined) return { say: trimmed };
  const command = COMMANDS.find((c) => c.name === name.toLowerCase());
  if (!command) return { unknown: `/${name}` };
  const behind = rest.trim();
  if (behind && !command.takes) return { wrong: `/${command.name} takes nothing behind it` };
  if (/^(snapshot|branch)$/.test(command.name) && (/[\r\n]/.test(behind) || new TextEncoder().encode(behind).length > LONGEST_NAME)) return { wrong: `/${command.name} takes one name` };
  if (command.name === "model" && (/\s/.test(behind) || new TextEncoder().encode(behind).length > LONGEST_NAME)) return { wrong: "/model takes one name, or default" };
  return { command: command.name, rest: behind };
}

// typedOf is what somebody typed for an input that waits in the queue.
export function typedOf({ kind, text = "" }) {
  switch (kind) {
    case "message": return text;
    case "ask": return `/${text}`;
    case "reset": return text === "new" ? "/new" : "/reset";
  }
  return `/${kind} ${text}`.trim();
}

// What the page knows: which session is shown, the directory, the token, the dialogs.

import { batch, computed, effect, signal } from "@preact/signals";
import { agentPath, createApi, sessionPath, tokenWords } from "./api.js";
import { Conversation } from "./chat.js";
import { keep, kept } from "./store.js";
import { agentOf, fitTitle, fullKey, nameOf, newKey, titleFrom } from "./words.js";

export const token = signal(kept("token") ?? kept("token", "sessionStorage") ?? "");
export const refusal = signal(null); // the server's words when it wants a token
export const dialog = signal(null); // {kind, …}, one at a time
export const drawer = signal(false); // the list, on a phone
export const panel = signal(kept("panel") === "1");
export const theme = signal(kept("theme") ?? "system");
export const toast = signal(null);

export const api = createApi({
  token: () => token.peek(),
  refused: (error, used) => {
    if (used === token.peek()) refusal.value = tokenWords(error.message);
  },
});

// useToken takes a token; remember keeps it beyond this tab.
export function useToken(value, remember) {
  keep("token", remember && value ? value : null);
  keep("token", !remember && value ? value : null, "sessionStorage");
  batch(() => {
    token.value = value;
    refusal.value = null;
  });
  for (const c of open.values()) {
    c.again();
    for (const m of c.outbox.peek()) if (m.refused) c.retry(m.id);
  }
  refresh();
}

export function forgetToken() {
  keep("token", null);
  keep("token", null, "sessionStorage");
  location.reload();
}

// One that is left while it answers stays connected, so that its mark is right. Few may: without HTTP/2 a
// browser has six connections to a server, for all of its tabs.
const MOST_OPEN = 2;
const HIDDEN = 20_000; // after this long out of sight a tab gives its connections back
const open = new Map();
const opened = signal(0); // counts changes of open

export const current = signal(null);
export const busy = computed(() => {
  opened.value;
  return new Set([...open.values()].filter((c) => c.answer.value).map((c) => c.key));
});

// show opens a session.
export function show(key, fresh = false) {
  key = fullKey(key);
  let c = open.get(key);
  fresh ||= isFresh(key) || (key === mainKey.peek() && noMain());
  if (!c) c = new Conversation(api, key, { onChange: changed, onSeek: look, fresh });
  open.delete(key);
  open.set(key, c); // the last is the newest
  for (const [k, old] of open) {
    if (k === key || (open.size <= MOST_OPEN && (old.answer.peek() || old.outbox.peek().length))) continue;
    old.close();
    open.delete(k);
  }
  c.open();
  batch(() => {
    current.value = c;
    drawer.value = false;
    opened.value++;
  });
  if (!fresh) keep("last", key);
  const hash = `#/s/${encodeURIComponent(key)}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
}

export const keyInHash = () => {
  const [, escaped] = location.hash.match(/^#\/s\/(.+)$/) ?? [];
  try {
    return escaped ? decodeURIComponent(escaped) : "";
  } catch {
    return "";
  }
};

// A chat that this tab began and nobody has said anything in is not asked for, after a reload neither.
const isFresh = (key) => kept(`fresh.${key}`, "sessionStorage") === "1";
const setFresh = (key, is) => keep(`fresh.${key}`, is ? "1" : null, "sessionStorage");

export function newChat() {
  const key = newKey();
  setFresh(key, true);
  show(key, true);
}

// mainKey is the one conversation whose prompt has MEMORY.md and the persona. It is shown even before it exists.
export const mainKey = computed(() => `agent:${agent.value}:main`);

// noMain says that it does not exist, as far as the directory tells.
function noMain() {
  const { state, list, next } = sessions.peek();
  return state === "ready" && !next && !list.some((s) => s.key === mainKey.peek());
}

// The directory of the agent whose session is shown.
export const agent = computed(() => (current.value ? agentOf(current.value.key) : "main"));
export const sessions = signal({ list: [], next: "", state: "loading", error: "" });

// refresh reads the first page of the directory again; more reads the next one.
let reading = 0;
export async function refresh() {
  const turn = ++reading;
  try {
    const limit = Math.min(1000, Math.max(50, sessions.peek().list.length));
    const page = await api.get("/v1/sessions", { query: { agent: agent.peek(), limit } });
    if (turn !== reading) return;
    sessions.value = { list: page.sessions, next: page.next ?? "", state: "ready", error: "" };
    for (const { key } of page.sessions) if (open.get(key)?.missing.peek()) open.get(key).again();
  } catch (e) {
    if (turn === reading) sessions.value = { ...sessions.peek(), state: "failed", error: e.message };
  }
}

export async function more() {
  const { next, list } = sessions.peek();
  const turn = ++reading;
  try {
    const page = await api.get("/v1/sessions", { query: { agent: agent.peek(), limit: 50, cursor: next } });
    const known = new Set(list.map((s) => s.key));
    if (turn === reading) sessions.value = { list: [...list, ...page.sessions.filter((s) => !known.has(s.key))], next: page.next ?? "", state: "ready", error: "" };
  } catch (e) {
    if (turn === reading) sessions.value = { ...sessions.peek(), error: e.message };
  }
}

// listed is the directory with what this tab knows better: the session that is shown.
export const listed = computed(() => {
  const { list } = sessions.value;
  opened.value;
  const own = new Map([...open.values()].filter((c) => c.info.value && agentOf(c.key) === agent.value).map((c) => [c.key, c.info.value]));
  const out = list.map((s) => {
    const better = own.get(s.key);
    own.delete(s.key);
    return better ? { ...s, ...better, updatedAt: better.updatedAt > s.updatedAt ? better.updatedAt : s.updatedAt } : s;
  });
  return [...own.values(), ...out].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));
});

// changed tells the other tabs, and looks at the directory in a moment.
const others = typeof BroadcastChannel === "function" ? new BroadcastChannel("tidemark") : null;
let soon = 0;
function look() {
  clearTimeout(soon);
  soon = setTimeout(refresh, 400);
}
export function changed(key = "") {
  others?.postMessage(key);
  look();
}
others?.addEventListener("message", ({ data: key }) => {
  look();
  const c = open.get(key);
  if (c?.missing.peek()) c.again();
  else c?.soon();
});

// say sends what was typed. The first words of a new chat are its title, until a person gives one.
export function say(conversation, content, words) {
  if (conversation.missing.peek() && !conversation.titled && /:chat-[0-9a-z]+$/.test(conversation.key)) {
    conversation.titled = true;
    setFresh(conversation.key, false);
    conversation.before(async () => {
      await api.patch(sessionPath(conversation.key), { title: fitTitle(titleFrom(words)) || null });
      conversation.again(); // the title made it
    });
  }
  keep("last", conversation.key);
  conversation.say(content);
}

export async function rename(key, title) {
  const info = await api.patch(sessionPath(key), { title: title || null });
  setFresh(key, false);
  const c = open.get(key);
  if (c) c.info.value = info;
  sessions.value = { ...sessions.peek(), list: sessions.peek().list.map((s) => (s.key === key ? { ...s, title: info.title } : s)) };
  changed();
}

// download saves a history as a file.
export async function download(key, format) {
  const body = await api.get(`${sessionPath(key)}/log`, { query: { format, all: 1 }, as: "blob" });
  const name = nameOf(listed.peek().find((s) => s.key === key) ?? { key }).replace(/[^\p{L}\p{N} ._-]+/gu, "-").trim() || "conversation";
  const url = URL.createObjectURL(body);
  const link = Object.assign(document.createElement("a"), { href: url, download: `${name}.${format}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// openArchive shows an archive in the panel.
export const archive = signal(null); // {key} that the panel has not opened yet
export function openArchive(key) {
  batch(() => {
    archive.value = { key };
    panel.value = true;
  });
}

// tell shows a line for a moment; one that asks for an act stays until it is closed.
export function tell(text, stays = false) {
  const it = { text };
  toast.value = it;
  if (!stays) setTimeout(() => { if (toast.peek() === it) toast.value = null; }, 5_000);
}

export function start() {
  effect(() => {
    const chosen = theme.value;
    keep("theme", chosen === "system" ? null : chosen);
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
  });
  effect(() => keep("panel", panel.value ? "1" : null));
  effect(() => {
    agent.value;
    refresh();
  });
  effect(() => {
    const c = current.value;
    const name = c ? nameOf(c.info.value ?? { key: c.key }) : "";
    document.title = `${c?.answer.value ? "… " : ""}${name ? `${name} · ` : ""}Tidemark`;
  });
  addEventListener("popstate", () => keyInHash() && show(keyInHash()));
  addEventListener("hashchange", () => keyInHash() && show(keyInHash()));
  let sleep = 0;
  const wake = () => {
    clearTimeout(sleep);
    if (document.visibilityState === "hidden") {
      sleep = setTimeout(() => { for (const c of open.values()) c.close(); }, HIDDEN);
      return;
    }
    for (const c of open.values()) c.open();
    for (const c of open.values()) if (c.link.peek().state === "offline") c.again();
    look();
  };
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", wake);
  const key = keyInHash() || kept("last");
  if (key) return show(key);
  // Somebody who comes for the first time begins at once, or goes on with what there is.
  newChat();
  const fresh = current.peek();
  const stop = effect(() => {
    const { state, list } = sessions.value;
    if (state !== "ready") return;
    queueMicrotask(() => stop());
    if (list.length && current.peek() === fresh && fresh.missing.peek() && !kept(`draft.${fresh.key}`)) queueMicrotask(() => show(list[0].key));
  });
}

export { agentPath };

// Calls of tools that wait for the owner's leave: which they are, and what was decided. The server is the truth; a
// notice tells the whole list anew, and where none came the list is read. It is never shortened by the clock of
// this machine, which may be wrong: what is out of time the server takes off.

import { signal } from "@preact/signals";
import { ApiError } from "./api.js";

const MOST = 20; // cards at once; the next come up as these are decided
const LONGEST = 20_000; // characters of arguments
const LATE = 2_000; // behind the end of a time, before the list is read again
const FARTHEST = 2 ** 31 - 1; // milliseconds that a timer takes

// approvalsOf is what of a list can be shown and decided.
export function approvalsOf(list) {
  const seen = new Set(), out = [];
  for (const a of Array.isArray(list) ? list : []) {
    if (typeof a?.code !== "string" || !a.code || typeof a.tool !== "string" || seen.has(a.code)) continue;
    seen.add(a.code);
    const input = typeof a.input === "string" ? a.input : JSON.stringify(a.input ?? {});
    out.push({ code: a.code, tool: a.tool, input, session: a.session ?? "", expires: a.expires ?? "" });
  }
  return out;
}

// HIDDEN are characters that are not seen, or that turn the order of others: in what is to be allowed they show.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\u{e0000}-\u{e007f}]/gu;

export const visible = (text) => text.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// layOut writes JSON in lines as it stands: only what is between its words changes, so that a number or a name reads
// as it will be sent. What is no whole JSON stays as it is.
export function layOut(json) {
  let cut = "";
  if (json.length > LONGEST) cut = `\n… ${json.length - LONGEST} characters more are not shown here`;
  const text = json.slice(0, LONGEST);
  let whole = !cut;
  try {
    JSON.parse(text);
  } catch {
    whole = false;
  }
  if (!whole) return visible(text) + cut;
  let out = "", depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [word] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|[^\s[\]{},:"]+/g)) {
    if (/^[[{]\s*[\]}]$/.test(word)) out += word.replace(/\s+/, "");
    else if (word === "{" || word === "[") {
      depth++;
      out += word + line();
    } else if (word === "}" || word === "]") {
      depth--;
      out += line() + word;
    } else if (word === ",") out += word + line();
    else if (word === ":") out += ": ";
    else out += word;
  }
  return visible(out);
}

// untilWords says until when a decision is waited for; empty for a time that is none.
export function untilWords(expires, now = Date.now(), locale = undefined) {
  const at = new Date(expires), left = at.getTime() - now;
  if (!expires || Number.isNaN(left)) return "";
  const day = new Date(now).toDateString() === at.toDateString() ? {} : { day: "numeric", month: "short" };
  const time = new Intl.DateTimeFormat(locale, { ...day, hour: "numeric", minute: "2-digit" }).format(at);
  if (left <= 0) return `until ${time}, which is over`;
  const minutes = Math.ceil(left / 60_000);
  const words = minutes < 2 ? "a minute at most" : minutes < 120 ? `${minutes} minutes left` : `${Math.floor(minutes / 60)} hours left`;
  return `until ${time}, ${words}`;
}

export class Approvals {
  constructor(api, path) {
    this.api = api;
    this.path = `${path}/approvals`;
    this.all = signal([]);
    this.states = signal({}); // of a code: sending, or an error
    this.told = signal(""); // what became of a decision that came too late
    this.asked = 0; // numbers the looks: what is older than a notice does not count
  }

  get shown() {
    return this.all.value.slice(0, MOST);
  }

  // take makes the list that of the server.
  take(list) {
    this.asked++;
    this.all.value = approvalsOf(list);
    const here = new Set(this.all.peek().map((a) => a.code));
    this.states.value = Object.fromEntries(Object.entries(this.states.peek()).filter(([code]) => here.has(code)));
    if (here.size) this.told.value = "";
    this.lookLater();
  }

  // lookLater reads the list when the time of one is over and no notice said so.
  lookLater() {
    clearTimeout(this.timer);
    const ends = this.all.peek().map((a) => new Date(a.expires).getTime()).filter((t) => t > Date.now());
    if (ends.length) this.timer = setTimeout(() => this.read(), Math.min(FARTHEST, Math.min(...ends) - Date.now() + LATE));
  }

  // read asks which calls wait. A server that knows of none, because it is older, has none.
  async read() {
    const turn = ++this.asked;
    try {
      const { approvals } = await this.api.get(this.path);
      if (turn === this.asked) this.take(approvals);
    } catch (e) {
      if (turn === this.asked && e instanceof ApiError && [404, 405, 501].includes(e.status)) this.take([]);
    }
  }

  // decide tells the server. A call that was decided elsewhere, or too late, says so and is gone.
  async decide(code, allow) {
    if (this.states.peek()[code]?.sending || !this.all.peek().some((a) => a.code === code)) return;
    const set = (state) => { this.states.value = { ...this.states.peek(), [code]: state }; };
    set({ sending: true });
    try {
      await this.api.post(this.path, { code, allow });
      this.take(this.all.peek().filter((a) => a.code !== code));
    } catch (e) {
      if (e.status !== 404 && e.status !== 409) return set({ error: e.message });
      this.take(this.all.peek().filter((a) => a.code !== code));
      this.told.value = e.message;
      await this.read();
      this.told.value = e.message;
    }
  }

  close() {
    clearTimeout(this.timer);
    this.asked++;
  }
}

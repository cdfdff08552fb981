// A conversation: what is shown of it and how it stays equal to the server's. The log is the truth; notices
// only say sooner what will stand in it. Whenever a turn ends, or the connection was away, the log is read
// again and replaces what differs.

import { batch, signal } from "@preact/signals";
import { ApiError, sessionPath } from "./api.js";
import { Approvals } from "./approvals.js";
import { merge, prepend } from "./entries.js";
import { keep, kept, keptJSON, keptNames, onChanged } from "./store.js";
import { proxied } from "./words.js";

const PAGE = 60;
const QUIET = 40_000; // the server pings every 15 s
const SLOWEST = 15_000;
const MISSING = 60_000; // between looks for a conversation that is not there

// pauseAfter is how long to wait after the n-th failure in a row, with some chance, so that not all come at once.
export const pauseAfter = (n, chance = Math.random()) => Math.min(SLOWEST, 500 * 2 ** n) * (0.75 + chance / 2);

// newID names an input: it stays the same however often it is sent.
const newID = () => `web-${crypto.randomUUID ? crypto.randomUUID() : [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("")}`;

export class Conversation {
  // fresh says that nobody knows of it yet: nothing is asked before something is said.
  // onSeek is called now and then while it does not exist, so that somebody who can see looks for it.
  constructor(api, key, { onChange = () => {}, onSeek = () => {}, fresh = false } = {}) {
    this.api = api;
    this.key = key;
    this.path = sessionPath(key);
    this.onChange = onChange; // the directory may differ now
    this.onSeek = onSeek;
    this.log = signal({ entries: [], next: undefined });
    this.loaded = signal(fresh);
    this.missing = signal(fresh); // it does not exist yet
    this.info = signal(null);
    this.answer = signal(null); // of the run in work: {run, text, thinking: signals, tools}
    this.doing = signal(""); // what it does beside answering
    this.failure = signal("");
    this.approvals = new Approvals(api, this.path); // calls that wait for leave
    this.waiting = signal([]); // inputs in the server's queue
    this.outbox = signal([]); // inputs on their way there
    this.link = signal({ state: fresh ? "live" : "connecting" }); // live, offline {error, at}, refused {error}
    this.listeners = new Set();
    this.live = { subscribe: (f) => (this.listeners.add(f), () => this.listeners.delete(f)) };
    this.early = []; // replies noticed before the log was read
    this.asked = 0; // numbers the looks at log and queue, so that only the last counts
    this.sending = new Set();
    this.away = null;
    this.readOutbox();
  }

  // open begins to listen; close ends it.
  open() {
    if (this.away) return;
    this.away = new AbortController();
    this.run(this.away.signal);
    this.readOutbox();
    this.deaf = onChanged(this.stored(""), (name, value) => {
      if (value === null) this.forget(this.outbox.peek().filter((m) => this.stored(m.id) === name));
    });
    for (const item of this.outbox.peek()) if (item.state !== "failed") this.send(item);
  }

  close() {
    this.away?.abort();
    this.away = null;
    this.approvals.close();
    this.deaf?.();
  }

  // again connects at once instead of after its pause.
  again() {
    this.wake?.();
  }

  async run(closed) {
    for (let failures = 0; !closed.aborted; ) {
      await this.existing(closed);
      if (closed.aborted) return;
      try {
        await this.listen(closed, () => { failures = 0; });
        throw new ApiError("The connection was cut off.");
      } catch (e) {
        if (closed.aborted) return;
        this.missing.value = e.status === 404;
        const error = e instanceof ApiError ? e : new ApiError(e.name === "AbortError" ? "The server fell silent." : e.message);
        if (e.status === 404) this.loaded.value = true;
        if (e.status === 404) {
          this.link.value = { state: "live" };
          continue;
        }
        const pause = Math.max(pauseAfter(failures++), error.retryAfter * 1000);
        this.link.value = { state: e.status === 401 || e.status === 403 ? "refused" : "offline", error, at: Date.now() + pause };
        await this.pause(e.status === 401 ? 2 ** 31 - 1 : pause, closed);
        if (!closed.aborted && this.link.peek().state !== "live") this.link.value = { ...this.link.peek(), state: "connecting" };
      }
    }
  }

  // existing waits while it does not exist: to listen would be refused. again() ends that.
  async existing(closed) {
    for (let woken = false; this.missing.peek() && !woken && !closed.aborted; ) {
      woken = await this.pause(MISSING, closed);
      if (!woken && !closed.aborted) this.onSeek();
    }
  }

  // pause waits; it gives true when again() ended it before its time.
  pause(ms, closed) {
    return new Promise((done) => {
      const end = (woken = false) => {
        clearTimeout(timer);
        closed.removeEventListener("abort", aborted);
        this.wake = null;
        done(woken);
      };
      const aborted = () => end();
      const timer = setTimeout(end, ms);
      closed.addEventListener("abort", aborted);
      this.wake = () => end(true);
    });
  }

  // listen reads notices until the connection ends or falls silent.
  async listen(closed, accepted) {
    const cut = new AbortController();
    const stop = () => cut.abort();
    closed.addEventListener("abort", stop);
    let timer = 0;
    const beat = () => {
      clearTimeout(timer);
      timer = setTimeout(stop, QUIET);
    };
    beat();
    try {
      await this.api.stream(`${this.path}/events`, {
        signal: cut.signal, onBeat: beat,
        onOpen: () => {
          accepted();
          this.link.value = { state: "live" };
          this.missing.value = false;
        },
        onEvent: ({ data }) => batch(() => this.see(data)),
      });
    } finally {
      clearTimeout(timer);
      closed.removeEventListener("abort", stop);
    }
  }

  begin(run, text = "") {
    this.answer.value = run ? { run, text: signal(text), thinking: signal(""), tools: signal([]), began: Date.now() } : null;
  }

  // see takes one notice.
  see(n) {
    const now = this.answer.peek();
    const ours = () => {
      if (!this.answer.peek()) this.begin(n.run ?? "?");
      return this.answer.peek();
    };
    switch (n.type) {
      case "hello":
        this.begin(n.run, n.text);
        this.sync();
        if (!proxied(this.key)) this.approvals.read(); // there the client has its tools itself
        break;
      case "queued":
        this.soon();
        break;
      case "start":
        this.begin(n.run);
        this.failure.value = "";
        this.doing.value = "";
        break;
      case "taken":
        if (n.run && now?.run !== n.run) this.begin(n.run);
        this.sync();
        break;
      case "text":
        ours().text.value += n.text;
        this.doing.value = "";
        break;
      case "thinking":
        ours().thinking.value += n.text;
        break;
      case "tool":
        ours().tools.value = [...ours().tools.peek(), n.text];
        break;
      case "restart":
        this.begin(n.run ?? now?.run);
        this.doing.value = "Beginning the answer again";
        break;
      case "stalled":
        this.doing.value = n.text ? `Waiting: ${n.text}` : "";
        break;
      case "approval":
        this.approvals.take(n.approvals);
        break;
      case "compacting":
        this.doing.value = n.text ? `Compacting: ${n.text}` : "Compacting";
        break;
      case "result":
        this.soon();
        break;
      case "reply":
        this.committed(n);
        this.soon();
        break;
      case "event":
        this.doing.value = "";
        this.soon();
        break;
      case "done":
      case "error":
        if (n.type === "error" && n.run) this.failure.value = n.text ?? n.error?.message ?? "The turn failed.";
        this.ended(n.type === "error");
        break;
    }
    for (const f of this.listeners) f(n);
  }

  // committed shows a reply as it stands in the log before the log was read again. Before it was read at all the
  // reply waits: it would stand there without its question.
  committed(n) {
    this.said = n.message;
    if (this.loaded.peek()) this.place(n);
    else this.early.push(n);
    this.begin(n.run);
  }

  place(n) {
    const log = this.log.peek();
    if (n.message && n.entry && !log.entries.some((e) => e.id === n.entry)) {
      const entry = { id: n.entry, seq: Infinity, kind: "message", at: new Date().toISOString(), origin: { from: "model" }, call: n.call, message: n.message, provisional: true };
      this.log.value = { ...log, entries: [...log.entries, entry] };
    }
  }

  ended(failed) {
    const said = failed ? null : this.said, answer = this.answer.peek();
    const over = () => {
      if (this.answer.peek() === answer) this.answer.value = null;
    };
    this.said = null;
    this.doing.value = "";
    if (this.loaded.peek()) over();
    this.sync().then(() => {
      over();
      if (said) this.onSaid?.(said);
    });
    this.onChange(this.key);
  }

  // soon looks at the log in a moment, once for many notices.
  soon() {
    this.later ??= setTimeout(() => {
      this.later = null;
      this.sync();
    }, 120);
  }

  // sync makes history and queue equal to the server's. A look that was overtaken by another does not count.
  async sync() {
    const turn = ++this.asked;
    const { signal: closed } = this.away ?? new AbortController();
    for (let failures = 0; ; ) {
      try {
        const [page, queue, info] = await Promise.all([
          this.api.get(`${this.path}/log`, { query: { limit: PAGE }, signal: closed }),
          this.api.get(`${this.path}/queue`, { signal: closed }),
          this.api.get(this.path, { signal: closed }),
        ]);
        if (turn === this.asked || !this.loaded.peek()) batch(() => this.settle(page, queue, info));
        return;
      } catch (e) {
        if (closed.aborted || turn !== this.asked || !e.again) return;
        await this.pauseFor(pauseAfter(failures++));
      }
    }
  }

  pauseFor(ms) {
    return new Promise((done) => setTimeout(done, ms));
  }

  settle(page, queue, info) {
    this.log.value = merge(this.log.peek(), page.entries, page.next);
    this.loaded.value = true;
    for (const n of this.early.splice(0)) this.place(n);
    this.info.value = info;
    const here = new Set(page.entries.map((e) => e.origin?.input).filter(Boolean));
    this.waiting.value = queue.waiting;
    if (page.entries.slice(0, 5).some((e) => e.event?.text === this.failure.peek())) this.failure.value = ""; // it stands there
    const there = new Set(queue.waiting.map((w) => w.id));
    this.forget(this.outbox.peek().filter((m) => here.has(m.id) || there.has(m.id) || m.state === "sent"));
    const now = this.answer.peek();
    if (queue.run && !now) this.begin(queue.run); // it was in work before we came and has not said anything
    if (!queue.run && now && !queue.waiting.length && this.link.peek().state === "live" && Date.now() - now.began > 5_000) this.begin(null);
  }

  // older reads the page before the first entry; false when there is none.
  async older(limit = 100) {
    const { next } = this.log.peek();
    if (!next || this.reading) return false;
    this.reading = true;
    try {
      const page = await this.api.get(`${this.path}/log`, { query: { before: next, limit } });
      if (this.log.peek().next === next) this.log.value = prepend(this.log.peek(), page.entries, page.next);
      return true;
    } finally {
      this.reading = false;
    }
  }

  // What was said is stored message by message until the server has it, for every tab of the conversation. The
  // entry is the leave to send it: who takes it back removes the entry, and no tab posts it any more. A tab that
  // holds it too may post it too, which the id makes one turn. Commands last as long as the page.
  stored(id) {
    return `outbox.${this.key}/${id}`;
  }

  store({ id, content, at, state, error }) {
    keep(this.stored(id), JSON.stringify({ id, content, at, state, error }));
  }

  valid(item) {
    return item.command ? this.outbox.peek().some((m) => m.id === item.id) : kept(this.stored(item.id)) !== null;
  }

  // readOutbox takes in what is stored and not known here.
  readOutbox() {
    const now = this.outbox.peek(), known = new Set(now.map((m) => m.id));
    const found = keptNames(this.stored("")).map((name) => [name, keptJSON(name, null)]).filter(([name, m]) => m && this.stored(m.id) === name && !known.has(m.id)).map(([, m]) => m);
    if (found.length) this.outbox.value = [...now, ...found].sort((a, b) => a.at - b.at);
  }

  add(item) {
    this.outbox.value = [...this.outbox.peek(), item];
    if (!item.command) this.store(item);
    this.send(item);
  }

  // forget takes inputs off, here and for every tab.
  forget(items) {
    if (!items.length) return;
    const gone = new Set(items.map((m) => m.id));
    this.outbox.value = this.outbox.peek().filter((m) => !gone.has(m.id));
    for (const m of items) if (!m.command) keep(this.stored(m.id), null);
  }

  // change tells how an input stands. Only a refusal, and the end of one, outlasts the page.
  change(id, fields) {
    const was = this.outbox.peek().find((m) => m.id === id);
    if (!was) return;
    if (!this.valid(was)) return this.forget([was]);
    const item = { ...was, ...fields };
    this.outbox.value = this.outbox.peek().map((m) => (m.id === id ? item : m));
    if (!item.command && (was.state === "failed" || item.state === "failed")) this.store(item);
  }

  // say puts a message on its way: content is a text or blocks. It is sent until the server has it.
  say(content) {
    this.failure.value = "";
    this.add({ id: newID(), content, at: Date.now(), state: "sending" });
  }

  // before does something ahead of what is said next.
  before(act) {
    this.line = (this.line ?? Promise.resolve()).then(act).catch(() => {});
  }

  // command queues /compact, /reset or a question, in order with what was said; name is its route.
  command(name, body, words) {
    this.add({ id: newID(), content: words, command: name, body, at: Date.now(), state: "sending" });
  }

  // send posts until it was taken or refused. The order is that of saying: one after the other.
  async send(item) {
    if (this.sending.has(item.id)) return;
    this.sending.add(item.id);
    const before = this.line ?? Promise.resolve();
    const turn = before.then(() => this.post(item)).finally(() => this.sending.delete(item.id));
    this.line = turn.catch(() => {});
    return turn;
  }

  async post(item) {
    for (let failures = 0; ; ) {
      if (!this.valid(item)) return this.forget([item]); // taken back
      try {
        const path = item.command ? `${this.path}/${item.command}` : `${this.path}/messages`;
        const body = item.command ? { ...item.body, id: item.id } : { id: item.id, content: item.content, channel: "web" };
        const receipt = await this.api.post(path, body, { query: { wait: 0 } });
        this.change(item.id, { state: item.command || receipt.state === "done" ? "sent" : "queued", error: undefined });
        if (this.missing.peek()) this.again();
        this.soon();
        this.onChange(this.key);
        return;
      } catch (e) {
        if (!e.again) {
          this.change(item.id, { state: "failed", error: e.message, refused: e.status === 401 });
          return;
        }
        this.change(item.id, { state: "trying", error: e.message });
        await this.pauseFor(Math.max(pauseAfter(failures++), e.retryAfter * 1000));
      }
    }
  }

  // retry sends what was refused once more; drop takes it back.
  retry(id) {
    const item = this.outbox.peek().find((m) => m.id === id);
    if (!item) return;
    this.change(id, { state: "sending", error: undefined });
    this.send({ ...item, state: "sending" });
  }

  drop(id) {
    this.forget(this.outbox.peek().filter((m) => m.id === id));
  }

  stop() {
    return this.api.post(`${this.path}/abort`);
  }
}

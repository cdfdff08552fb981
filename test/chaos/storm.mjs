// The storm: clients that talk, leave and come back, and what is done to the objects meanwhile.

import { reply, token, tokens } from "./provider.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
export const at = (session, what = "") => `/v1/sessions/${encodeURIComponent(`agent:main:web:dm:${session}`)}${what}`;

// Storm holds what was sent and what came back. Everything that must not happen is a line in faults.
export class Storm {
  counts = { turns: 0, complete: 0, cut: 0, aborted: 0, again: 0, queued: 0, broken: 0, sockets: 0, greeted: 0, reopened: 0, failed: 0, panics: 0, fatals: 0, evictions: 0, collections: 0, hogs: 0 };
  faults = [];
  inputs = new Map(); // token -> {session, acked, answered}
  latencies = []; // ms from a fatal error to the end of each stream of the dead instance
  greetings = []; // ms from a fatal error to the next word on each socket of the dead instance
  evicted = []; // the same from the request to evict its object
  live = 0; // most objects of one instance at once
  peak = 0; // most streams at once
  pings = []; // ms that a trivial request took in the storm
  streams = new Set(); // in flight, with a receipt
  #busy = new Set();
  #numbers = new Map();
  #hogging = false;

  constructor({ client, random, sessions, compacting }) {
    Object.assign(this, { client, random, sessions, compacting: new Set(compacting) });
  }

  // run keeps clients talking for a time, then waits for the last of them.
  async run({ seconds, clients }) {
    this.until = performance.now() + seconds * 1000;
    // What ends instances ends earlier: what the last one lost count of must show.
    const mild = performance.now() + seconds * 700;
    const loop = async (pause, f, until = this.until) => {
      for (;;) {
        await sleep(pause * (0.5 + this.random()));
        if (performance.now() > until) return;
        await f();
      }
    };
    const many = (n, f) => Array.from({ length: n }, f);
    const often = (pause, share) => Math.min(pause, seconds * 1000 * share); // a short storm has some of each, too
    await Promise.all([
      ...many(clients, () => loop(20, () => this.#visit())),
      loop(often(4000, 0.25), () => this.#unlessHogged(), mild),
      loop(400, () => this.evict(this.#object("/debug/evict"))),
      loop(250, () => this.panic()),
      loop(1000, () => this.#collect()),
      loop(often(10_000, 0.45), () => this.#hog(), mild),
      loop(200, () => this.#ping()),
      loop(80, () => this.#touch()),
    ]);
  }

  fault(kind, text) { this.faults.push(`${kind}: ${text}`); }

  #pick(from) { return from[Math.floor(this.random() * from.length)]; }

  // victim is a session in the middle of a stream, mostly.
  #victim() {
    const live = [...this.streams];
    return live.length > 0 && this.random() < 0.7 ? this.#pick(live).session : this.#pick(this.sessions);
  }

  // object is a path of a session in the middle of a stream, or of the agent that all of them talk to.
  #object(what) { return this.random() < 0.1 ? `/v1/agents/main${what}` : at(this.#victim(), what); }

  message(session) {
    const n = (this.#numbers.get(session) ?? 0) + 1;
    this.#numbers.set(session, n);
    const id = token(session, n);
    this.inputs.set(id, { session, acked: false, answered: false });
    const most = this.compacting.has(session) ? 100 : 20;
    return { id, text: `Answer ${id} please. ${"The tide comes and goes. ".repeat(Math.floor(this.random() * most))}` };
  }

  // visit is one client with one session: a message, and what becomes of its stream.
  async #visit() {
    const session = this.#pick(this.random() < 0.2 ? [...this.compacting] : this.sessions);
    if (this.#busy.has(session)) return;
    this.#busy.add(session);
    try {
      const message = this.message(session);
      const dice = this.random();
      if (dice < 0.1) await this.#whole(session, message);
      else if (dice > 0.7) await this.#onSocket(session, message, (dice - 0.7) / 0.3);
      else await this.#streamed(session, message, dice);
    } finally {
      this.#busy.delete(session);
    }
  }

  // whole waits for the answer in one piece.
  async #whole(session, message) {
    this.counts.turns++;
    const { status, value } = await this.client.json("POST", at(session, "/messages"), message);
    if (status !== 200) return;
    const input = this.inputs.get(message.id);
    input.acked = input.answered = true;
    this.#right(session, value.text, true);
    this.counts.complete++;
  }

  // streamed follows a stream; some are cut, some aborted, some get a second message meanwhile. One that
  // breaks is asked for again by the same id, mostly.
  async #streamed(session, message, dice) {
    const after = 2 + Math.floor(this.random() * 15);
    let act = dice < 0.22 ? "cut" : dice < 0.3 ? "abort" : dice < 0.36 ? "second" : "";
    for (let tries = 0; tries < 4; tries++) {
      const end = await this.stream(session, message, act && { act, after });
      if (end === "done" || end === "aborted" || end === "failed") return;
      if (this.random() < 0.4 || performance.now() > this.until) return; // left to the session itself
      act = "";
      this.counts.again++;
      await sleep(this.random() * 200);
    }
  }

  // stream sends a message and says how its stream ended: done, aborted, failed, broken, cut.
  async stream(session, message, { act = "", after = 0 } = {}) {
    this.counts.turns++;
    const s = { session, text: "", end: "broken" };
    let n = 0, second;
    const call = this.client.open("POST", at(session, "/messages"), { body: message, accept: "text/event-stream", on: (e) => {
      this.#event(s, message, e);
      if (e.type === "text" && ++n === after && act === "cut") call.cut();
      if (e.type === "text" && n === after && act === "abort") second = this.client.json("POST", at(session, "/abort"));
      if (e.type === "text" && n === after && act === "second") second = this.stream(session, this.message(session));
    } });
    const r = await call.done;
    this.streams.delete(s);
    if (r.end === "silent") this.fault("late", `a stream of ${session} was silent for a minute (${this.#known(s, r)})`);
    if (r.end === "cut") { s.end = "cut"; this.counts.cut++; }
    if (s.end === "broken") this.#broke(s, r);
    const other = tokens(r.raw).find((t) => t.session !== session);
    if (other) this.fault("foreign", `${other.token} in a stream of ${session}`);
    this.#right(session, s.text, false);
    if (act === "second" && second) this.counts.queued++;
    if (act === "abort" && (await second)?.value?.aborted) this.counts.aborted++;
    await second;
    return s.end;
  }

  // known tells what was done to a stream before it fell silent.
  #known(s, r) {
    const ago = (t) => `${((r.at - t) / 1000).toFixed(1)} s before its end`;
    const done = [s.killed && `its instance died ${ago(s.killed)}`, s.evicted && `its object was evicted ${ago(s.evicted)}`].filter(Boolean);
    return `status ${r.status}, ${r.raw.length} bytes, the last ${JSON.stringify(r.raw.slice(-60))}; ${done.join(", ") || "nothing was done to it"}`;
  }

  // onSocket follows a turn on a socket to its end, over as many sockets as it takes; some clients leave
  // before, some stop the turn.
  async #onSocket(session, message, dice) {
    const after = 2 + Math.floor(this.random() * 15);
    const act = dice < 0.15 ? "cut" : dice < 0.25 ? "abort" : "";
    for (let tries = 0; tries < 6; tries++) {
      if (tries > 0) this.counts.reopened++;
      const end = await this.socket(session, message, tries === 0 ? { act, after } : {});
      if (end !== "broken" || performance.now() > this.until) return;
      await sleep(this.random() * 200);
    }
  }

  // socket posts a message on a socket and says how that ended: done, told, aborted, failed, broken, cut. A
  // socket outlives its instance: with hello it is posted again, by its id, and with the end of its turn it
  // is over. told says that the receipt had the end of it.
  async socket(session, message, { act = "", after = 0 } = {}) {
    this.counts.sockets++;
    const s = { session, text: "", end: "broken", socket: true };
    let n = 0, hellos = 0;
    const c = this.client.socket(`/ws?create=1&session=${encodeURIComponent(`agent:main:web:dm:${session}`)}`, (m) => {
      if (s.killed) this.greetings.push(Math.max(0, performance.now() - s.killed));
      s.struck = s.killed = undefined;
      if (m.type === "hello") {
        if (hellos++ > 0) this.counts.greeted++;
        if (hellos > 1 && !m.again) this.fault("wrong", `a socket of ${session} was greeted twice as new`);
        this.#right(session, (s.text = m.text ?? ""), false);
        c.say({ type: "post", ...message });
      } else if (this.#onMessage(s, message, m)) {
        c.close(s.end);
      } else if (m.type === "error" && !m.run) {
        setTimeout(() => c.say({ type: "post", ...message }), 100); // the frame was lost with its instance
      } else if (m.type === "text" && ++n === after) {
        if (act === "cut") c.cut();
        if (act === "abort") c.say({ type: "abort" });
      }
    });
    const r = await c.done;
    this.streams.delete(s);
    if (r.end === "silent") this.fault("late", `a socket of ${session} was silent for a minute (${this.#known(s, r)})`);
    if (r.end === "refused" || r.end === "broken" || r.end === "closed") this.#broke(s, r);
    if (r.end === "cut") { s.end = "cut"; this.counts.cut++; }
    const other = tokens(r.raw).find((t) => t.session !== session);
    if (other) this.fault("foreign", `${other.token} on a socket of ${session}`);
    this.#right(session, s.text, false);
    return s.end;
  }

  // onMessage takes what a socket says of its session, where turns of earlier clients may be in work too. It
  // reports whether the turn of the message is over.
  #onMessage(s, message, m) {
    const own = m.inputs?.includes(message.id);
    switch (m.type) {
      case "receipt":
        this.#event(s, message, m);
        if (m.state === "done") s.end = "told";
        return m.state === "done";
      case "text": s.text += m.text; return false;
      case "start": case "restart": s.text = ""; return false;
      case "reply": {
        const text = m.message.content.map((b) => b.text ?? "").join("");
        const stopped = m.call?.stop_reason === "aborted";
        this.#right(s.session, text, !stopped);
        if (s.text && s.text !== text && !stopped) this.fault("wrong", `the pieces on a socket of ${s.session} are not the answer: ${s.text} ${text}`);
        s.text = "";
        return false;
      }
      case "done":
        if (!own) return false;
        s.end = "done";
        this.inputs.get(message.id).answered = true;
        this.counts.complete++;
        return true;
      case "error":
        s.text = "";
        if (!own) return false;
        this.#ended(s, m.error);
        if (s.end === "aborted") this.counts.aborted++;
        return s.end !== "broken";
      case "unreadable": this.fault("wrong", `a message of ${s.session} is not JSON: ${m.frame.slice(0, 200)}`);
    }
    return false;
  }

  #event(s, message, e) {
    const input = this.inputs.get(message.id);
    switch (e.type) {
      case "receipt":
        input.acked = true;
        this.streams.add(s);
        this.peak = Math.max(this.peak, this.streams.size);
        break;
      case "taken": s.taken = e.inputs.at(-1); break;
      case "text": s.text += e.text; break;
      case "restart": s.text = ""; break;
      case "done":
        s.end = "done";
        input.answered = true;
        this.counts.complete++;
        this.#right(s.session, e.text, true);
        if (s.text && s.text !== e.text) this.fault("wrong", `the pieces of ${message.id} are not its answer: ${s.text} ${e.text}`);
        if (s.taken && !e.text.startsWith(s.taken)) this.fault("wrong", `${s.taken} was answered by ${e.text.slice(0, 40)}`);
        break;
      case "error": this.#ended(s, e.error); break;
      case "unreadable": this.fault("wrong", `a frame of ${s.session} is not JSON: ${e.frame.slice(0, 200)}`);
    }
  }

  #ended(s, { type, message }) {
    if (type === "aborted") s.end = "aborted";
    else if (/cut off: try again/.test(message)) s.end = "broken"; // the instance has ended
    else {
      s.end = "failed";
      this.counts.failed++;
      this.reasons ??= new Map();
      this.reasons.set(message, (this.reasons.get(message) ?? 0) + 1);
    }
  }

  // broke notes a stream that ended with neither an answer nor an error of its turn.
  #broke(s, r) {
    this.counts.broken++;
    if (s.evicted) this.evicted.push(r.at - s.evicted);
    else if (s.struck) this.latencies.push(s.killed ? Math.max(0, r.at - s.killed) : 0);
  }

  // right compares a text with the answer that its first token asks for.
  #right(session, text, whole) {
    const first = tokens(text)[0];
    if (!first) return text && text.length > 20 && this.fault("wrong", `${session} said ${text.slice(0, 60)}`);
    if (first.session !== session) return this.fault("foreign", `${first.token} answered ${session}`);
    const want = reply(first.token);
    if (whole ? text !== want : !want.startsWith(text)) this.fault("wrong", `${session}: ${text.slice(0, 200)}`);
  }

  // Behind a hog two instances may be alive, and whose stream is in which cannot be told from here.
  async #unlessHogged() {
    if (this.#hogging) return;
    const { value } = await this.client.json("GET", at("base", "/debug/host"));
    if (value && !value.leaving && !this.#hogging) await this.#fatal(this.#victim());
  }

  // fatal ends the instance of a session, and notes when its answer came: from then on the streams of
  // that instance must not hang.
  async #fatal(session) {
    const how = this.#pick(["panic", "throw", "stack"]);
    const hit = [...this.streams];
    for (const s of hit) s.struck = true;
    const { status, end } = await this.client.json("POST", at(session, `/debug/fatal?how=${how}`));
    if (end === "silent") this.fault("late", `a request that ended its instance (${how}) was not answered`);
    if (status === 200) this.fault("wrong", `a fatal ${how} was answered with 200`);
    this.counts.fatals++;
    const now = performance.now();
    for (const s of hit) s.killed ??= now;
  }

  // strike begins a turn in each session and ends their instance in the middle. It gives the ids of what was
  // said, how each stream, or socket, ended, and how long each stream then took to end.
  async strike(sessions, how = "stream") {
    const from = this.latencies.length;
    const messages = sessions.map((s) => this.message(s));
    const all = sessions.map((s, i) => this[how](s, messages[i]));
    const end = performance.now() + 10_000;
    while (this.streams.size < all.length && performance.now() < end) await sleep(10);
    await sleep(300);
    await this.#fatal(sessions[0]);
    const ends = await Promise.all(all);
    return { ids: messages.map((m) => m.id), ends, latencies: this.latencies.slice(from) };
  }

  // ping measures how long the busy process takes to answer anything at all.
  async #ping() {
    const began = performance.now();
    const { value } = await this.client.json("GET", at("base", "/debug/host"));
    this.pings.push(performance.now() - began);
    if (value) this.live = Math.max(this.live, value.objects);
  }

  // touch wakes some objects, in turn, so that all of them are alive most of the time.
  async #touch() {
    this.touched = ((this.touched ?? 0) + 8) % this.sessions.length;
    await Promise.all(this.sessions.slice(this.touched, this.touched + 8).map((s) => this.client.json("GET", at(s, "/debug/host"))));
  }

  // evict drops an object as the platform does, without a word to it.
  async evict(path) {
    const hit = [...this.streams].filter((s) => path.startsWith(at(s.session, "/")));
    for (const s of hit) s.evicted ??= performance.now();
    await this.client.open("POST", path).done;
    this.counts.evictions++;
  }

  async panic() {
    const dice = this.random();
    const path = dice < 0.2 ? "/debug/background" : dice < 0.6 ? "/debug/panic?after=5" : "/debug/panic";
    const r = await this.client.open("POST", this.#object(path)).done;
    this.counts.panics++;
    if (dice >= 0.6 && r.end === "whole" && r.status < 500) this.fault("wrong", `a panic was answered with ${r.status}`);
  }

  async #collect() {
    await this.client.open("POST", at(this.#victim(), `/debug/gc?percent=${this.#pick([5, 5, 75])}`)).done;
    this.counts.collections++;
  }

  // hog makes an instance drain: its memory passes the limit, and its objects move on when they are idle.
  async #hog() {
    this.#hogging = true;
    await this.client.open("POST", at(this.#victim(), "/debug/hog?mb=50")).done;
    this.#hogging = false;
    this.counts.hogs++;
  }
}

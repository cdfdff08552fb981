// What Go may ask of one object. Methods whose first argument is id answer later, through deliver;
// the others answer at once. Each passes the guard first.

import { asked, joined } from "./body.mjs";
import { object, objectRow, piecesOf, putOptions } from "./bucket.mjs";
import { named, pack, packPage, unpack } from "./codec.mjs";
import { Slots } from "./slots.mjs";

export { named };

// Most bytes of a stream that cross at once. What follows is given in a turn of the event loop of its own:
// promises alone would keep every other object of the isolate waiting to the end of the stream.
const TURN_BYTES = 64 << 10;

const turn = () => new Promise((resolve) => setTimeout(resolve, 0, null));

// The end of an event stream whose handler cannot end it. workerd closes a failed chunked answer like a
// whole one, so without this a client could not tell; the official SDKs of both APIs raise it.
const CUT = new TextEncoder().encode(
  '\n\nevent: error\ndata: {"type":"error","error":{"type":"api_error","message":"the stream was cut off: try again"}}\n\n',
);

const NULL_BODY = new Set([101, 204, 205, 304]);

// Between two looks of an object with something in flight at whether its instance has ended. The promise of
// fatal wakes it at once, but workerd loses the wake-up of a promise that another object resolves when it
// comes just behind an earlier one; a stream of a dead instance must end within 200 ms.
const WATCH_MS = 100;

// said gives an error as Go reads it: "Name: message".
const said = (e) => (e instanceof Error ? `${e.name}: ${e.message}` : `Error: ${String(e)}`);

export class Ops {
  dead = false;
  opening = false;
  generation = 0;
  #platform;
  #calls = new Map(); // number of the call -> {resolve, reject, writer, head}
  #waits = new Map(); // wait id -> function that stops the operation
  #bodies = new Map(); // body number -> {reader, stop}
  #puts = new Map(); // put number -> {writer, done}
  #next = 0;
  #slots = new Slots();
  #watching = false;

  constructor(host, platform) {
    this.host = host;
    this.#platform = platform;
  }

  // idle tells whether nothing of this object would be lost if it moved to another instance. One that is
  // being opened is about to be called.
  get idle() { return !this.opening && this.#calls.size === 0 && this.#waits.size === 0; }

  // pending counts what is in flight, for a look from outside.
  get pending() {
    return {
      calls: this.#calls.size, waits: this.#waits.size, bodies: this.#bodies.size, puts: this.#puts.size,
      connections: this.#slots.open, queued: this.#slots.queued, mostConnections: this.#slots.most,
    };
  }

  // guard refuses what cannot be right: an object that has ended, or a goroutine that woke up in the
  // event of another object.
  #guard() {
    if (this.dead || this.host.dead) throw named("Dead", "the object has ended");
    if (this.host.current === this || !this.host.strict) return;
    this.host.violate();
    throw named("Guard", `host call for ${this.name} in an event of ${this.host.current?.name ?? "none"}`);
  }

  #deliver(id, ok, value) {
    if (this.dead || this.host.dead) return;
    try {
      this.host.enter(this, () => this.go.deliver(this.generation, id, ok, value));
    } catch (e) {
      console.error(said(e)); // Go has ended; fatal has told everyone
    }
  }

  // wait delivers what p gives under id, unless Go gave up before: then discard takes it.
  #wait(id, p, stop = () => {}, discard = () => {}) {
    this.#waits.set(id, stop);
    const settle = (ok, v) => {
      if (!this.#waits.delete(id)) return ok && discard(v);
      this.#deliver(id, ok, v);
    };
    p.then((v) => settle(true, v), (e) => settle(false, said(e)));
  }

  // short delivers what an operation gives that holds its connection to its end and no longer.
  #short(id, begin, discard) {
    const slot = this.#slots.take(false);
    this.#wait(id, this.#within(slot, begin), slot.leave, discard);
  }

  // within runs f while it has a slot.
  async #within(slot, f) {
    await slot.ready;
    try {
      if (this.dead) throw named("Dead", "the object has ended");
      return await f();
    } finally {
      slot.release();
    }
  }

  // cancel stops an operation whose answer Go no longer wants.
  cancel(id) {
    this.#guard();
    const stop = this.#waits.get(id);
    this.#waits.delete(id);
    stop?.();
  }

  // --- events into Go ---

  // call runs one event in Go. The promise is this object's own: none is shared between contexts.
  call(kind, payload, { head = false, signal }) {
    const n = ++this.#next;
    return new Promise((resolve, reject) => {
      if (this.dead) throw named("Dead", "the object has ended");
      this.#calls.set(n, { resolve, reject, head });
      signal?.addEventListener("abort", () => this.#gone(n), { once: true });
      this.#watch();
      try {
        this.host.enter(this, () => this.go.call(this.generation, n, kind, payload));
      } catch (e) {
        this.#calls.delete(n);
        reject(e);
      }
    });
  }

  // gone tells Go that the client of a call has left.
  #gone(n) {
    if (!this.#calls.has(n) || this.dead || this.host.dead) return;
    try {
      this.host.enter(this, () => this.go.gone(this.generation, n));
    } catch (e) {
      console.error(said(e)); // as in deliver
    }
  }

  // request gives a request as one row: method, url, body number, headers. id, if given, is the request's; it stands
  // beside that of the client, which may go on to others.
  request(r, id) {
    const body = r.body ? this.#body(asked(r.body.getReader())) : 0;
    const headers = [...r.headers].filter(([name]) => name !== "x-tidemark-id");
    if (id) headers.push(["x-tidemark-id", id]);
    return pack([[r.method, r.url, body, ...headers.flat()]]);
  }

  // reply answers a call in one piece.
  reply(n, head, body) {
    this.#guard();
    this.#calls.get(n)?.resolve(this.#response(n, head, body));
    this.#calls.delete(n);
  }

  // respond answers a call with a stream that write feeds and done ends.
  respond(n, head) {
    this.#guard();
    const call = this.#calls.get(n);
    if (!call) return;
    const { readable, writable } = this.#platform.stream();
    call.writer = writable.getWriter();
    call.writer.closed.catch(() => this.#gone(n));
    const response = this.#response(n, head, readable);
    call.events = response.headers.get("content-type")?.startsWith("text/event-stream");
    // A response without a body has no reader: a write must fail, not wait.
    if (!response.body) readable.cancel().catch(() => {});
    call.resolve(response);
  }

  #response(n, packed, body) {
    const [status, ...flat] = unpack(packed)[0];
    const headers = new Headers();
    for (let i = 0; i < flat.length; i += 2) headers.append(flat[i], flat[i + 1]);
    const none = NULL_BODY.has(status) || this.#calls.get(n)?.head;
    return new Response(none ? null : body, { status, headers });
  }

  // send adds to the stream of a call and does not wait; it gives the bytes that the client has not taken
  // yet. Of a client that has left, gone tells.
  send(n, chunk) {
    this.#guard();
    const call = this.#calls.get(n);
    if (!call?.writer) throw named("Gone", "the client has left");
    call.unread = (call.unread ?? 0) + chunk.length;
    call.sent = call.writer.write(chunk);
    call.sent.then(() => (call.unread -= chunk.length), () => {});
    return call.unread;
  }

  // sent is answered when the client has taken all that was sent, in a turn of the event loop of its own.
  sent(id, n) {
    this.#guard();
    const call = this.#calls.get(n);
    const sent = call ? call.sent : Promise.reject(named("Gone", "the client has left"));
    this.#wait(id, sent.then(turn));
  }

  // done ends a call that succeeded, fail one that did not.
  done(n) {
    this.#guard();
    const call = this.#calls.get(n);
    this.#calls.delete(n);
    call?.writer?.close().catch(() => {});
    call?.resolve();
  }

  fail(n, message) {
    this.#guard();
    const call = this.#calls.get(n);
    this.#calls.delete(n);
    if (call) this.#cut(call, new Error(message));
  }

  // cut ends a call in the middle, visibly where its form allows it.
  #cut({ writer, events, reject }, e) {
    if (events) {
      writer.write(CUT).catch(() => {});
      writer.close().catch(() => {});
    } else {
      writer?.abort(e).catch(() => {});
    }
    reject(e); // of no effect once the head is out
  }

  // watch looks, while something is in flight, whether the object has ended and was not woken.
  #watch() {
    if (this.#watching) return;
    this.#watching = true;
    setTimeout(() => {
      this.#watching = false;
      if (this.cause) this.failAll(this.cause);
      else if (!this.idle) this.#watch();
    }, WATCH_MS);
  }

  // failAll ends what is in flight after the instance has died or the object was taken out of it; it runs
  // in this object's context.
  failAll(e) {
    this.leave();
    for (const call of this.#calls.values()) this.#cut(call, e);
    for (const stop of this.#waits.values()) stop();
    for (const n of [...this.#bodies.keys()]) this.#drop(n);
    for (const put of this.#puts.values()) put.writer.abort(e).catch(() => {});
    for (const m of [this.#calls, this.#waits, this.#puts]) m.clear();
    this.#platform.lost?.();
  }

  // --- time ---

  sleep(id, ms) {
    this.#guard();
    let timer;
    this.#wait(id, new Promise((r) => (timer = setTimeout(r, ms))), () => clearTimeout(timer));
  }

  setAlarm(id, ms) {
    this.#guard();
    const { alarm } = this.#platform;
    this.#wait(id, ms === null ? alarm.delete() : alarm.set(ms));
  }

  // --- sockets: sockets.mjs ---

  // socketOpen answers a call with a socket: a head as of respond, and the row [id, note].
  socketOpen(n, head, packed) {
    this.#guard();
    const call = this.#calls.get(n);
    if (!call) throw named("Gone", "the client has left");
    const response = this.#platform.sockets.response(head, packed);
    this.#calls.delete(n);
    call.resolve(response);
  }

  // socketDo does one thing to the sockets of the object: list, keep, send or close.
  socketDo(what, ...args) { this.#guard(); return this.#platform.sockets[what](...args); }

  // --- SQL, synchronous ---

  // query gives one page: the row [sql, ...args] in, the rows out.
  query(packed) {
    this.#guard();
    const [[sql, ...args]] = unpack(packed);
    return this.#sql(() => this.#platform.sql.read(sql, args, packPage));
  }

  // tx runs rows of [sql, want, ...args] in one transaction, without Go on the stack: a nested event
  // would run every other runnable goroutine inside the transaction.
  tx(packed) {
    this.#guard();
    const stmts = unpack(packed);
    const { sql } = this.#platform;
    this.#sql(() => sql.transaction(() => stmts.forEach(([text, want, ...args], i) => {
      for (const _ of sql.run(text, args)); // a cursor left open holds the transaction
      if (!want) return;
      const [[changed]] = [...sql.run("SELECT changes()", [])];
      if (changed !== want) throw named("Conflict", `statement ${i + 1} changed ${changed} rows, want ${want}`);
    })));
  }

  #sql(f) {
    try {
      return f();
    } catch (e) {
      if (/UNIQUE constraint failed/.test(e.message)) throw named("Conflict", e.message);
      if (/SQLITE_(FULL|IOERR)|disk is full/.test(e.message)) throw named("Unavailable", e.message); // the object's 10 GB
      throw e;
    }
  }

  // --- streams in ---

  #body(reader, stop = () => {}, release = () => {}) {
    const n = ++this.#next;
    this.#bodies.set(n, { reader, stop, release });
    return n;
  }

  read(id, n) {
    this.#guard();
    const body = this.#bodies.get(n);
    this.#wait(id, body ? this.#arrived(body) : Promise.resolve(null));
  }

  // arrived gives what has come of a stream, null at its end: the next chunk and what follows it before the
  // next turn of the event loop, since each crossing costs more than many bytes. (workerd gives a chunk of
  // HTTP/1.1 in two.) The turn lets the other objects go on, however fast the stream is.
  async #arrived(body) {
    const next = () => {
      const p = body.reader.read();
      p.then((r) => r.done && body.release(), () => body.release());
      return p;
    };
    const first = await (body.ahead ?? next());
    body.ahead = null;
    if (first.done) return null;
    const later = turn();
    const parts = [first.value];
    for (let size = first.value.length; size < TURN_BYTES; size += parts.at(-1).length) {
      body.ahead = next();
      // What ends the stream is for the next read.
      const more = await Promise.race([body.ahead, later]).catch(() => null);
      if (!more || more.done) break;
      body.ahead = null;
      parts.push(more.value);
    }
    await later;
    return parts.length === 1 ? parts[0] : joined(parts);
  }

  close(n) {
    this.#guard();
    this.#drop(n);
  }

  #drop(n) {
    const body = this.#bodies.get(n);
    this.#bodies.delete(n);
    if (!body) return;
    body.reader.cancel().catch(() => {});
    body.stop();
    body.release();
  }

  // --- fetch ---

  // request out: the row [name, method, url, ...headers] and a body or null, to the object of that name in
  // a namespace, or with null for one to the open network.
  fetchOut(id, space, packed, body) {
    this.#guard();
    const [[name, method, url, ...flat]] = unpack(packed);
    const headers = new Headers();
    for (let i = 0; i < flat.length; i += 2) headers.append(flat[i], flat[i + 1]);
    const abort = new AbortController();
    const init = { method, headers, body: body ?? undefined, signal: abort.signal, redirect: "manual" };
    this.#exchange(id, abort, space === null, () => this.#platform.fetch(space, name, url, init));
  }

  // exchange delivers a response as the row [body number, status, ...headers]; abort ends it. It has its
  // connection until the body has been read to its end or closed; long says that this may last.
  #exchange(id, abort, long, send) {
    const slot = this.#slots.take(long);
    const stop = () => { slot.leave(); abort.abort(); };
    const answer = async () => {
      await slot.ready;
      try {
        if (this.dead) throw named("Dead", "the object has ended");
        const res = await send();
        if (!res.body) slot.release();
        const n = res.body ? this.#body(res.body.getReader(), stop, slot.release) : 0;
        return { n, head: pack([[n, res.status, ...[...res.headers].flat()]]) };
      } catch (e) {
        slot.release();
        throw e;
      }
    };
    let n = 0;
    this.#wait(id, answer().then((a) => { n = a.n; return a.head; }), stop, () => n && this.#drop(n));
  }

  // runModel runs a model of Workers AI: its binding, the row [model, ...headers], and the inputs as JSON.
  runModel(id, ai, packed, inputs) {
    this.#guard();
    const [[model, ...flat]] = unpack(packed);
    const extraHeaders = {};
    for (let i = 0; i < flat.length; i += 2) extraHeaders[flat[i]] = flat[i + 1];
    const abort = new AbortController();
    const options = { returnRawResponse: true, signal: abort.signal, extraHeaders };
    this.#exchange(id, abort, true, async () => ai.run(model, JSON.parse(new TextDecoder().decode(inputs)), options));
  }

  // --- bucket ---

  // put in one piece; answers null when a condition did not hold.
  put(id, b, packed, bytes) {
    this.#guard();
    const [key, options] = putOptions(packed);
    this.#short(id, () => b.put(key, bytes, options).then((o) => o && object(o)));
  }

  // putStart opens a put of a known length that putWrite feeds and putEnd ends.
  putStart(b, packed, size) {
    this.#guard();
    const [key, options] = putOptions(packed);
    const { readable, writable } = this.#platform.fixedStream(size);
    const slot = this.#slots.take(true); // until it comes a write waits: nobody reads the stream
    const done = this.#within(slot, () => b.put(key, readable, options)).then((o) => o && object(o));
    done.catch(() => {}); // putEnd reports it
    const n = ++this.#next;
    this.#puts.set(n, { writer: writable.getWriter(), done, leave: slot.leave });
    return n;
  }

  // A bucket that has refused does not read on: writing then ends with the put, not with the stream.
  putWrite(id, n, chunk) {
    this.#guard();
    const { writer, done } = this.#puts.get(n);
    const write = writer.write(chunk);
    write.catch(() => {});
    this.#wait(id, Promise.race([write.then(() => 1), done.then(() => 0)]));
  }

  putEnd(id, n) {
    this.#guard();
    const { writer, done } = this.#puts.get(n);
    this.#puts.delete(n);
    writer.close().catch(() => {});
    this.#wait(id, done);
  }

  putAbort(n) {
    this.#guard();
    const put = this.#puts.get(n);
    this.#puts.delete(n);
    put?.leave();
    put?.writer.abort(new Error("the source ended early")).catch(() => {});
  }

  get(id, b, key) {
    this.#guard();
    let n = 0;
    this.#short(id, async () => {
      const o = await b.get(key);
      if (!o) return null;
      n = this.#body(await piecesOf(b, o, (f) => this.#within(this.#slots.take(false), f)));
      return object(o, n);
    }, () => n && this.#drop(n));
  }

  delete(id, b, key) {
    this.#guard();
    this.#short(id, () => b.delete(key).then(() => null));
  }

  // list gives the row [next cursor] and one row an object.
  list(id, b, prefix, cursor, limit) {
    this.#guard();
    const options = { prefix, limit, cursor: cursor || undefined, include: ["httpMetadata", "customMetadata"] };
    this.#short(id, () => b.list(options).then((r) =>
      pack([[r.truncated ? r.cursor : ""], ...r.objects.map((o) => objectRow(o, 0))])));
  }
}

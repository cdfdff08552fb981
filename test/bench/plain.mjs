// The baseline: a Durable Object written by hand in JavaScript that does the same trivial thing, with
// the same routes and events as far as the benchmarks use them. It keeps what is said and does nothing
// else: no queue, no run, no view, no search.

import { DurableObject } from "cloudflare:workers";

export class Plain extends DurableObject {
  constructor(state, env) {
    super(state, env);
    this.sql = state.storage.sql;
    const [there] = this.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'entries'").raw();
    if (env.TABLES && !there) state.storage.transactionSync(() => this.tables());
    this.sql.exec("CREATE TABLE IF NOT EXISTS entries(seq INTEGER PRIMARY KEY, role TEXT, at INTEGER, payload TEXT)");
  }

  // tables makes as many tables and indexes as a session has, with a full-text index: 32 besides the object's
  // own. They stay empty.
  tables() {
    const columns = "log TEXT NOT NULL, at INTEGER NOT NULL, state TEXT NOT NULL DEFAULT '', data TEXT NOT NULL";
    const make = (sql) => this.sql.exec(`CREATE ${sql}`);
    for (let i = 0; i < 13; i++) make(`TABLE t${i}(key TEXT PRIMARY KEY, ${columns}) WITHOUT ROWID`);
    for (let i = 0; i < 3; i++) make(`TABLE n${i}(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, ${columns})`);
    for (let i = 0; i < 8; i++) make(`INDEX i${i} ON t${i}(log, at)`);
    make("VIRTUAL TABLE words USING fts5(terms, content='')");
  }

  async fetch(request) {
    const path = new URL(request.url).pathname;
    if (path.endsWith("/messages")) return this.turn(request);
    if (path.endsWith("/rows")) this.append("user", "rows");
    const [row] = this.sql.exec("SELECT count(*), max(at) FROM entries").raw();
    return Response.json({ sessionId: this.ctx.id.name, messages: row[0], active: row[1], limit: 180000, settings: {} });
  }

  append(role, payload) {
    this.sql.exec("INSERT INTO entries(role, at, payload) VALUES(?, ?, ?)", role, Date.now(), payload);
  }

  // turn stores what was said, asks the model, passes its words on as they come and stores them.
  async turn(request) {
    const { text } = await request.json();
    this.append("user", text);
    const res = await fetch(`${this.env.TIDEMARK_MODEL_BASEURL}/v1/messages`, {
      method: "POST", headers: { "content-type": "application/json", "x-api-key": "k" },
      body: JSON.stringify({ model: "bench", stream: true, max_tokens: 1000, messages: this.history() }),
    });
    const { readable, writable } = new TransformStream();
    this.relay(res.body, writable.getWriter());
    return new Response(readable, { headers: { "content-type": "text/event-stream" } });
  }

  history() {
    const rows = [...this.sql.exec("SELECT role, payload FROM entries ORDER BY seq DESC LIMIT 20").raw()].reverse();
    return rows.map(([role, content]) => ({ role, content }));
  }

  async relay(body, writer) {
    const decoder = new TextDecoder();
    let all = "";
    for await (const chunk of body) {
      all += decoder.decode(chunk, { stream: true });
      await writer.write(chunk);
    }
    let text = "";
    for (const line of all.split("\n")) {
      if (line.startsWith("data: ")) text += JSON.parse(line.slice(6)).delta?.text ?? "";
    }
    this.append("assistant", text);
    await writer.close();
  }
}

export default {
  fetch(request, env) {
    const key = decodeURIComponent(new URL(request.url).pathname.split("/")[3] ?? "main");
    return env.PLAIN.get(env.PLAIN.idFromName(key)).fetch(request);
  },
};

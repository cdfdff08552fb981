// What Node gives to an object in Go, so that the core's tests run under js/wasm on the same bridge
// as in the Worker: node:sqlite for the object's database, a bucket in memory, setTimeout and fetch.

import { DatabaseSync } from "node:sqlite";
import { createHash } from "node:crypto";

const named = (name, message) => Object.assign(new Error(message), { name });

// platformOf gives an empty platform of its own to each object.
export function platformOf() {
  const db = new DatabaseSync(":memory:");
  return {
    sql: {
      run: (sql, args) => run(db, sql, args),
      read: (sql, args, use) => read(db, sql, args, use),
      transaction: (f) => transaction(db, f),
    },
    alarm: { set: async () => {}, delete: async () => {} },
    stream: () => new TransformStream(),
    fixedStream: (size) => fixedLength(size),
    fetch(space, name, url, init) {
      if (space !== null) throw new Error("no namespace is bound here");
      return fetch(url, init);
    },
  };
}

// envOf adds to variables a bucket that is another one, and empty, each time it is asked for.
export const envOf = (vars) => ({ ...vars, get BUCKET() { return new Bucket(); } });

// Workers refuse these: transactionSync is the only way to a transaction.
const REFUSED = /^\s*(begin|commit|end|rollback|savepoint|release|attach|vacuum)\b/i;

// Databases that hold a text with a NUL: node:sqlite would read it to the NUL only.
const withNul = new WeakSet();

function* run(db, sql, args) {
  if (REFUSED.test(sql)) throw new Error("not authorized: use a transaction of the host");
  if (args.some((v) => typeof v === "string" && v.includes("\0"))) withNul.add(db);
  const whole = withNul.has(db) && /^\s*(select|with)\b/i.test(sql);
  const key = whole ? `whole ${sql}` : sql;
  const idle = prepared.get(db) ?? prepared.set(db, new Map()).get(db);
  const statement = idle.get(key) ?? prepare(db, sql, whole);
  idle.delete(key); // its rows are being read, and another reader needs another
  let done = false;
  try {
    for (const row of statement.iterate(...args)) {
      const values = row.map((v) => (typeof v === "bigint" ? Number(v) : v));
      yield whole ? fromPairs(values) : values;
    }
    done = true;
  } finally {
    if (done && idle.size < MAX_PREPARED) idle.set(key, statement);
  }
}

// Statements that nobody uses, by their text: compiling one takes longer than most of them run.
const prepared = new WeakMap();
const MAX_PREPARED = 256;

// prepare hides the value of a LIMIT from SQLite: it would compile anew for each, see host/native/conn.go.
function prepare(db, sql, whole) {
  let statement = db.prepare(sql.replaceAll("LIMIT ?", "LIMIT coalesce(?, NULL)"));
  if (whole) statement = db.prepare(textAsBlob(sql, statement.columns().length));
  statement.setReturnArrays(true);
  statement.setReadBigInts(true); // a Number of exactly 2^53 would be refused
  return statement;
}

// textAsBlob reads each column as its type and its value, text as its bytes.
function textAsBlob(sql, columns) {
  const names = Array.from({ length: columns }, (_, i) => `c${i}`);
  const pairs = names.map((c) => `typeof(${c}), iif(typeof(${c}) = 'text', CAST(${c} AS BLOB), ${c})`);
  return `WITH q(${names}) AS (${sql}) SELECT ${pairs} FROM q`;
}

function fromPairs(values) {
  const row = [];
  for (let i = 0; i < values.length; i += 2) {
    row.push(values[i] === "text" ? Buffer.from(values[i + 1]).toString() : values[i + 1]);
  }
  return row;
}

function read(db, sql, args, use) {
  if (/^\s*(select|values|explain|pragma)\b/i.test(sql)) return use(run(db, sql, args));
  return transaction(db, () => {
    const [[before]] = [...run(db, "SELECT total_changes()", [])];
    const result = use(run(db, sql, args));
    const [[after]] = [...run(db, "SELECT total_changes()", [])];
    if (after !== before) throw named("Invalid", "a query must not write: use Tx");
    return result;
  });
}

function transaction(db, f) {
  db.exec("BEGIN");
  try {
    const result = f();
    db.exec("COMMIT");
    return result;
  } catch (e) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw e;
  }
}

// fixedLength is FixedLengthStream of Workers: it fails unless exactly size bytes pass.
function fixedLength(size) {
  let left = size;
  return new TransformStream({
    transform(chunk, out) {
      left -= chunk.length;
      if (left < 0) throw new TypeError("more bytes than the length of the stream");
      out.enqueue(chunk);
    },
    flush() {
      if (left > 0) throw new TypeError("fewer bytes than the length of the stream");
    },
  });
}

// Bucket is R2 in memory, as far as ops.mjs uses it.
class Bucket {
  #objects = new Map();

  async put(key, body, { onlyIf, httpMetadata, customMetadata } = {}) {
    const bytes = body instanceof Uint8Array ? body.slice() : new Uint8Array(await new Response(body).arrayBuffer());
    const now = this.#objects.get(key);
    if (onlyIf?.etagDoesNotMatch === "*" && now) return null;
    if (onlyIf?.etagMatches && now?.etag !== onlyIf.etagMatches) return null;
    const etag = createHash("md5").update(bytes).digest("hex");
    const object = { key, size: bytes.length, etag, uploaded: new Date(), httpMetadata, customMetadata, bytes };
    this.#objects.set(key, object);
    return object;
  }

  async get(key, { range, onlyIf } = {}) {
    const o = this.#objects.get(key);
    if (!o) return null;
    if (onlyIf?.etagMatches && o.etag !== onlyIf.etagMatches) return { ...o };
    const { offset = 0, length = o.size } = range ?? {};
    const bytes = o.bytes.slice(offset, offset + length);
    return { ...o, body: new Blob([bytes]).stream(), arrayBuffer: async () => bytes.buffer };
  }

  async delete(key) { this.#objects.delete(key); }

  async list({ prefix = "", cursor, limit = 1000 }) {
    const after = cursor ? Buffer.from(cursor, "base64url").toString() : "";
    const all = [...this.#objects.values()]
      .filter((o) => o.key.startsWith(prefix))
      .sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)))
      .filter((o) => !after || Buffer.compare(Buffer.from(o.key), Buffer.from(after)) > 0);
    const objects = all.slice(0, limit);
    const truncated = all.length > limit;
    return { objects, truncated, cursor: truncated ? Buffer.from(objects.at(-1).key).toString("base64url") : undefined };
  }
}

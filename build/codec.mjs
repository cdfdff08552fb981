// The wire between Go and JavaScript: rows of values in one buffer, so that a page of SQL rows, a
// statement list or a set of headers crosses in one copy. host/cloudflare/codec.go is the other end.
//
//   rows: u32 count, then each row
//   row:  u16 columns, then each value
//   value: tag byte; null 0 | number 1 f64 | text 2 u32 length, UTF-8 | blob 3 u32 length, bytes
//
// All numbers are little-endian.

const NULL = 0, NUMBER = 1, TEXT = 2, BLOB = 3;

const encoder = new TextEncoder();
// Without ignoreBOM a leading U+FEFF would be swallowed.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

// Packer collects rows; it grows by doubling and gives its bytes once.
export class Packer {
  #buf = new Uint8Array(256);
  #view = new DataView(this.#buf.buffer);
  #n = 4;
  #rows = 0;

  get size() { return this.#n; }

  #room(n) {
    if (this.#n + n <= this.#buf.length) return;
    let size = this.#buf.length * 2;
    while (size < this.#n + n) size *= 2;
    const next = new Uint8Array(size);
    next.set(this.#buf.subarray(0, this.#n));
    this.#buf = next;
    this.#view = new DataView(next.buffer);
  }

  row(values) {
    this.#rows++;
    this.#room(2);
    this.#view.setUint16(this.#n, values.length, true);
    this.#n += 2;
    for (const v of values) this.#value(v);
  }

  #value(v) {
    if (typeof v === "string") return this.#text(v);
    if (v === null || v === undefined) {
      this.#room(1);
      this.#buf[this.#n++] = NULL;
      return;
    }
    if (v instanceof ArrayBuffer) v = new Uint8Array(v);
    if (v instanceof Uint8Array) {
      this.#room(5 + v.length);
      this.#buf[this.#n] = BLOB;
      this.#view.setUint32(this.#n + 1, v.length, true);
      this.#buf.set(v, this.#n + 5);
      this.#n += 5 + v.length;
      return;
    }
    this.#room(9);
    this.#buf[this.#n] = NUMBER;
    this.#view.setFloat64(this.#n + 1, Number(v), true);
    this.#n += 9;
  }

  #text(s) {
    this.#room(5 + s.length * 3); // UTF-8 needs at most 3 bytes a UTF-16 unit
    const { written } = encoder.encodeInto(s, this.#buf.subarray(this.#n + 5));
    this.#buf[this.#n] = TEXT;
    this.#view.setUint32(this.#n + 1, written, true);
    this.#n += 5 + written;
  }

  bytes() {
    this.#view.setUint32(0, this.#rows, true);
    return this.#buf.subarray(0, this.#n);
  }
}

// pack gives the buffer of a few rows.
export function pack(rows) {
  const p = new Packer();
  for (const r of rows) p.row(r);
  return p.bytes();
}

// unpack gives the rows of a buffer that Go made. Blobs are views into it.
export function unpack(buf) {
  const view = new DataView(buf.buffer, buf.byteOffset, buf.byteLength);
  let at = 4;
  const length = () => { at += 4; return view.getUint32(at - 4, true); };
  const value = () => {
    switch (buf[at++]) {
      case NULL: return null;
      case NUMBER: at += 8; return view.getFloat64(at - 8, true);
      case TEXT: { const n = length(); at += n; return decoder.decode(buf.subarray(at - n, at)); }
      case BLOB: { const n = length(); at += n; return buf.subarray(at - n, at); }
      default: throw new Error(`bad tag at byte ${at - 1}`);
    }
  };
  const rows = new Array(view.getUint32(0, true));
  for (let i = 0; i < rows.length; i++) {
    const row = new Array(view.getUint16(at, true));
    at += 2;
    for (let k = 0; k < row.length; k++) row[k] = value();
    rows[i] = row;
  }
  return rows;
}

// Bounds, the same as in the root package (db.go).
const MAX_PAGE_ROWS = 20_000;
// Bytes of one page: it is held three times while it crosses, in an isolate of 128 MB.
const MAX_PAGE_BYTES = 16 << 20;

export const named = (name, message) => Object.assign(new Error(message), { name });

// packPage packs rows within the bounds of a Query.
export function packPage(rows) {
  const p = new Packer();
  let n = 0;
  for (const row of rows) {
    if (++n > MAX_PAGE_ROWS) throw named("TooLarge", `more than ${MAX_PAGE_ROWS} rows`);
    p.row(row);
    if (p.size > MAX_PAGE_BYTES) throw named("TooLarge", `more than ${MAX_PAGE_BYTES} bytes in a page`);
  }
  return p.bytes();
}

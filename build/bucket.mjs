// What the bridge knows of R2: how an object is read, and how options and objects cross.

import { pack, unpack } from "./codec.mjs";

// Bytes of an object that are read at a time. Each piece is read to its end at once, so that no reader,
// however slow, holds a connection.
const PIECE_BYTES = 512 << 10;

// piecesOf gives a reader of an object that was asked for whole; within runs what opens a connection.
export async function piecesOf(b, o, within) {
  let piece = await firstPiece(o);
  let at = 0;
  return {
    cancel: async () => { at = o.size; piece = null; },
    read: async () => {
      if (at >= o.size) return { done: true };
      const value = piece ?? (await within(() => pieceOf(b, o, at)));
      piece = null;
      at += value.length;
      return { done: false, value };
    },
  };
}

// firstPiece reads the beginning of an object and lets the rest go.
async function firstPiece(o) {
  if (o.size <= PIECE_BYTES) return new Uint8Array(await o.arrayBuffer());
  const reader = o.body.getReader();
  const piece = new Uint8Array(PIECE_BYTES);
  for (let n = 0; n < PIECE_BYTES;) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`${o.key} ended at byte ${n} of ${o.size}`);
    piece.set(value.subarray(0, PIECE_BYTES - n), n);
    n += value.length;
  }
  reader.cancel().catch(() => {});
  return piece;
}

// pieceOf reads a further piece of the same object.
async function pieceOf(b, o, offset) {
  const length = Math.min(PIECE_BYTES, o.size - offset);
  const part = await b.get(o.key, { range: { offset, length }, onlyIf: { etagMatches: o.etag } });
  if (!part?.body) throw new Error(`${o.key} was replaced or removed while it was read`);
  const piece = new Uint8Array(await part.arrayBuffer());
  if (piece.length !== length) throw new Error(`${o.key} gave ${piece.length} bytes for ${length}`);
  return piece;
}

// putOptions reads [key, ifAbsent, ifMatch, contentType, ...metadata].
export function putOptions(packed) {
  const [[key, ifAbsent, ifMatch, contentType, ...flat]] = unpack(packed);
  const customMetadata = {};
  for (let i = 0; i < flat.length; i += 2) customMetadata[flat[i]] = flat[i + 1];
  const options = { customMetadata };
  if (contentType) options.httpMetadata = { contentType };
  if (ifAbsent) options.onlyIf = { etagDoesNotMatch: "*" };
  if (ifMatch) options.onlyIf = { etagMatches: ifMatch };
  return [key, options];
}

export const objectRow = (o, body) => [
  body, o.key, o.size, o.etag, o.uploaded.getTime(), o.httpMetadata?.contentType ?? "",
  ...Object.entries(o.customMetadata ?? {}).flat(),
];

export const object = (o, body = 0) => pack([objectRow(o, body)]);

// Files that are said: pictures as blocks of the Messages API, text files as text with their name.

import { bytes } from "./words.js";
import { fileBlock } from "./entries.js";

// Bounds. A server on Workers takes a body of 7 MB, models a picture of 5 MB in base64.
export const MAX_PICTURE = 3_600_000;
export const MAX_TEXT = 500_000;
export const MAX_ALL = 6_500_000; // of one message as it is sent
const LONGEST_SIDE = 2_000; // more is scaled down by the models themselves
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// attach reads a file. It throws an Error in words for a person.
export async function attach(file) {
  if (file.type.startsWith("image/") && file.type !== "image/svg+xml") return picture(file);
  if (file.size > MAX_TEXT) throw new Error(`${file.name} has ${bytes(file.size)}; a text file may have ${bytes(MAX_TEXT)}, and other files than text and pictures are not taken.`);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    text = "\0";
  }
  if (text.includes("\0")) throw new Error(`${file.name} is no text: pictures (PNG, JPEG, GIF, WebP) and text files are taken.`);
  return { name: file.name, size: file.size, block: fileBlock(file.name, text) };
}

async function picture(file) {
  let blob = file;
  if (file.size > MAX_PICTURE || !PICTURES.includes(file.type)) blob = await smaller(file);
  const data = await base64(blob);
  return { name: file.name || "picture", size: blob.size, url: URL.createObjectURL(blob), block: { type: "image", source: { type: "base64", media_type: blob.type, data } } };
}

// smaller draws a picture anew, smaller until it fits.
async function smaller(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name} cannot be read as a picture.`);
  }
  try {
    let scale = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
    for (let i = 0; i < 6; i++, scale *= 0.7) {
      const canvas = document.createElement("canvas");
      canvas.width = Math.max(1, Math.round(bitmap.width * scale));
      canvas.height = Math.max(1, Math.round(bitmap.height * scale));
      const on = canvas.getContext("2d");
      on.fillStyle = "#fff"; // behind what was transparent: JPEG has no such thing
      on.fillRect(0, 0, canvas.width, canvas.height);
      on.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
      if (blob && blob.size <= MAX_PICTURE) return blob;
    }
  } finally {
    bitmap.close();
  }
  throw new Error(`${file.name} cannot be made smaller than ${bytes(MAX_PICTURE)}.`);
}

async function base64(blob) {
  const raw = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let i = 0; i < raw.length; i += 0x8000) text += String.fromCharCode(...raw.subarray(i, i + 0x8000));
  return btoa(text);
}

// content is what a message with attachments says; it throws when that is too much.
export function content(text, files) {
  if (!files.length) return text;
  const blocks = [...files.map((f) => f.block), ...(text ? [{ type: "text", text }] : [])];
  const size = new TextEncoder().encode(JSON.stringify(blocks)).length;
  if (size > MAX_ALL) throw new Error(`These are ${bytes(size)} as they are sent; a message may have ${bytes(MAX_ALL)}. Take some away.`);
  return blocks;
}

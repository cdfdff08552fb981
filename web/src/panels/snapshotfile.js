// The file of a snapshot, as far as a page must know it: whose snapshot it is stands in its first member. Its name says
// nothing: people and browsers name files as they like.

const BLOCK = 512; // bytes of a header of a tar file
const MANIFEST = 16 * 2 ** 20; // bytes that the first member may have, as for the server
const PIECE = 4096; // bytes that are unpacked at once: few, since one may stand for a thousand

const NONE = "This is no file of a snapshot, as Export writes it.";

// snapshotID is the id of the snapshot that a file is of. Nothing behind the first member is read.
export async function snapshotID(file) {
  let m;
  try {
    m = JSON.parse(new TextDecoder().decode(await manifest(file)));
  } catch {
    throw new Error(NONE); // no gzip, no tar, no JSON, or cut off: all the same to a person
  }
  if (m?.format !== "tidemark-snapshot" || typeof m.node?.id !== "string") throw new Error(NONE);
  if (m.kind === "claude") throw new Error("This is a snapshot of Claude Code: `tidemark snapshot import` reads it.");
  return m.node.id;
}

// manifest gives the bytes of the first member.
async function manifest(file) {
  const read = unpacked(file);
  try {
    const head = await read(BLOCK);
    const field = (from, to) => new TextDecoder().decode(head.subarray(from, to)).replace(/[\0 ].*$/s, "");
    const size = parseInt(field(124, 136), 8);
    if (field(0, 100) !== "manifest.json" || field(257, 262) !== "ustar" || !(size <= MANIFEST)) throw new Error(NONE);
    return await read(size);
  } finally {
    read.end();
  }
}

// unpacked gives a function that reads so many bytes of a gzipped file, and throws where they are not there.
function unpacked(file) {
  let at = 0;
  const pieces = new ReadableStream({
    async pull(out) {
      if (at >= file.size) return out.close();
      out.enqueue(new Uint8Array(await file.slice(at, (at += PIECE)).arrayBuffer()));
    },
  }, { highWaterMark: 0 });
  const from = pieces.pipeThrough(new DecompressionStream("gzip")).getReader();
  let rest = new Uint8Array(0);
  const read = async (n) => {
    const parts = [rest];
    for (let have = rest.length; have < n; have += parts.at(-1).length) {
      const { value, done } = await from.read();
      if (done) throw new Error(NONE);
      parts.push(value);
    }
    const all = new Uint8Array(await new Blob(parts).arrayBuffer());
    rest = all.subarray(n);
    return all.subarray(0, n);
  };
  read.end = () => from.cancel().catch(() => {}); // it may have failed already, which read told
  return read;
}

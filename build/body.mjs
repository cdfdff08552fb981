// Bytes of a body: what is read of one that nobody wants, and pieces made one.

// MAX_REST is how much of a request's body is read though nobody wants it.
export const MAX_REST = 64 << 10;

// asked is a reader of a request's body, of which a short rest is read when it is cancelled: the runtime
// closes the connection behind a request that was not read to its end, and the client's next one, already
// on its way, would be reset.
export function asked(reader) {
  const rest = async () => {
    for (let size = 0; size <= MAX_REST;) {
      const { done, value } = await reader.read();
      if (done) return;
      size += value.length;
    }
    await reader.cancel();
  };
  return { read: () => reader.read(), cancel: rest };
}

// How long the rest of a body may take to come.
const REST_MS = 30_000;

// drained reads what is left of the body of a request that is answered without it, up to so many bytes. An object that leaves one
// unread has the runtime read on behind the answer, which fails in the Worker before it (Can't read from request stream after response
// has been sent); and it ends the connection, and the answer with it if much is left. Who waits for leave to send hears the answer at
// once, and who says that more comes is not waited for.
export async function drained(request, most = MAX_REST) {
  const { body, bodyUsed, headers } = request;
  if (!body || bodyUsed || headers.has("expect") || Number(headers.get("content-length")) > most) return;
  let size = 0;
  const sink = new WritableStream({ write(piece) { if ((size += piece.length) > most) throw new Error("too much is left"); } });
  await body.pipeTo(sink, { signal: AbortSignal.timeout(REST_MS) }).catch(() => {});
}

// whole reads a body of at most so many bytes; null when there are more.
export async function whole(body, most) {
  const parts = [];
  let size = 0;
  const reader = body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) return joined(parts);
    parts.push(value);
    if ((size += value.length) > most) {
      await reader.cancel();
      return null;
    }
  }
}

// The codings of bodies that are taken, as in worker/coding.go, and what the platform calls them.
const CODINGS = new Map([["gzip", "gzip"], ["x-gzip", "gzip"], ["deflate", "deflate"]]);

// unpacked gives what is in a body that came in a coding; nothing where it cannot be read or has more than so many bytes, as the
// door in Go says then.
export async function unpacked(bytes, coding, most) {
  if (!coding || /^identity$/i.test(coding)) return bytes;
  const format = CODINGS.get(coding.toLowerCase());
  const stream = format && new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return (await whole(stream, most).catch(() => null)) ?? new Uint8Array();
}

// joined gives pieces as one.
export function joined(parts) {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}

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

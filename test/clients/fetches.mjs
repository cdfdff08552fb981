// Networks as clients meet them, for those that take a fetch.

// lossy makes a fetch that loses the first answer behind its head, as a network does.
export const lossy = () => {
  let lost = false;
  return async (...args) => {
    const r = await fetch(...args);
    if (lost) return r;
    lost = true;
    await r.arrayBuffer();
    throw new TypeError("connection lost");
  };
};

// pinged makes a fetch that tells when the server gave a sign of life, beside the client that reads.
export const pinged = () => {
  let tell;
  const seen = new Promise((done) => (tell = done));
  const listening = async (...args) => {
    const r = await fetch(...args);
    const [mine, theirs] = r.body.tee();
    (async () => {
      let all = "";
      for await (const c of mine.pipeThrough(new TextDecoderStream())) if ((all += c).includes(": ping\n\n")) tell();
    })().catch(() => {}); // the client says what broke
    return new Response(theirs, r);
  };
  return { seen, listening };
};

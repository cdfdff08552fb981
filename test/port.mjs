import { once } from "node:events";
import { createServer } from "node:net";

// freePort is a free port below those that systems give to whoever listens at any, so that hardly anybody takes it before it is used.
export async function freePort() {
  for (let left = 100; left > 0; left--) {
    const s = createServer().listen(15_000 + Math.floor(15_000 * Math.random()), "127.0.0.1");
    try {
      await once(s, "listening");
    } catch (e) {
      if (e.code !== "EADDRINUSE") throw e;
      continue;
    }
    const { port } = s.address();
    s.close();
    await once(s, "close");
    return port;
  }
  throw new Error("no port from 15000 to 29999 is free");
}

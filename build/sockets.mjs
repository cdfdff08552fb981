// The WebSockets of one Durable Object. The platform keeps them while the object sleeps (hibernation,
// https://developers.cloudflare.com/durable-objects/best-practices/websockets/), so nothing here is needed
// to find them again: what a socket is stands in its attachment.

import { pack, unpack } from "./codec.mjs";

// Most bytes of one message of a client, as host/native has it.
export const MAX_FRAME = 1 << 20;

// What is answered without waking the object, byte for byte.
const PING = '{"type":"ping"}';
const PONG = '{"type":"pong"}';

// Bytes of UTF-8 in a string: without encoding it, unless it is near the bound.
const tooLarge = (text) => text.length > MAX_FRAME || (text.length * 3 > MAX_FRAME && new TextEncoder().encode(text).length > MAX_FRAME);

export class Sockets {
  #ctx;
  #byId = new Map(); // those that are open
  #opened;
  // opened is told of each socket before it is accepted.
  constructor(ctx, { opened = () => {} } = {}) {
    this.#ctx = ctx;
    this.#opened = opened;
    for (const ws of ctx.getWebSockets()) this.#byId.set(this.about(ws).id, ws);
  }

  get size() { return this.#byId.size; }

  // about gives {id, note} of a socket.
  about(ws) { return ws.deserializeAttachment(); }

  // response accepts a socket, of the row [id, note], and gives the answer with the client's end.
  response(head, packed) {
    const [[, ...flat]] = unpack(head);
    const [[id, note]] = unpack(packed);
    const headers = new Headers();
    for (let i = 0; i < flat.length; i += 2) headers.append(flat[i], flat[i + 1]);
    return new Response(null, { status: 101, webSocket: this.#open(id, note), headers });
  }

  #open(id, note) {
    const [client, server] = Object.values(new WebSocketPair());
    this.#opened();
    this.#ctx.acceptWebSocket(server);
    server.serializeAttachment({ id, note });
    this.#ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING, PONG));
    this.#byId.set(id, server);
    return client;
  }

  // list gives the rows [id, note] of all that are open; one that is being closed is not.
  list() {
    const open = [...this.#byId.values()].filter((ws) => ws.readyState === WebSocket.OPEN);
    return pack(open.map((ws) => this.about(ws)).map(({ id, note }) => [id, note]));
  }

  // keep gives a socket another note, for whoever serves it later.
  keep(id, note) { this.#byId.get(id)?.serializeAttachment({ id, note }); }

  // send gives each of the sockets of a row a text; one that has ended is told of by its close event.
  send(packed, text) {
    for (const id of unpack(packed)[0]) {
      try {
        this.#byId.get(id)?.send(text);
      } catch {
        // closing
      }
    }
  }

  // close ends a socket from our side; its client answers with a close event.
  close(id, code, reason) { this.shut(this.#byId.get(id), code, reason); }

  shut(ws, code, reason) {
    try {
      ws?.close(code, reason);
    } catch {
      // it has ended already
    }
  }

  // heard gives the {id, text} of a message that may pass on, or null of one that ends its socket.
  heard(ws, message) {
    if (typeof message !== "string") this.shut(ws, 1003, "text only");
    else if (tooLarge(message)) this.shut(ws, 1009, `at most ${MAX_FRAME} bytes`);
    else return { id: this.about(ws).id, text: message };
    return null;
  }

  // gone forgets a socket that has ended and gives its id.
  gone(ws, code) {
    const { id } = this.about(ws);
    this.#byId.delete(id);
    this.shut(ws, code >= 1000 && ![1004, 1005, 1006, 1015].includes(code) && code < 5000 ? code : 1000, "");
    return id;
  }

  // tell says something to a socket past Go, which has failed.
  tell(ws, value) {
    try {
      ws.send(JSON.stringify(value));
    } catch {
      // closing
    }
  }
}

// Servers of tools for the tests: server-everything as its package starts it, and one of ours, made with the official SDK,
// that sees how it is called.

import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { freePort } from "../port.mjs";
import { wait } from "../workerd.mjs";

// program is where the program of a package lies.
export const program = (name) => fileURLToPath(new URL(`../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url));

// telling are the arguments by which node runs server-everything, so that a file tells of its long operations.
export const telling = (file) => ["--import", `${new URL("told.mjs", import.meta.url)}?file=${encodeURIComponent(file)}`, program("server-everything")];

// Everything is server-everything over Streamable HTTP, at one port for its life. told is the file that tells of its long
// operations.
export class Everything {
  said = "";

  constructor(told) {
    this.told = told;
  }

  async start() {
    this.port ??= await freePort();
    this.url = `http://127.0.0.1:${this.port}/mcp`;
    this.child = spawn("node", [...telling(this.told), "streamableHttp"], { env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: String(this.port) }, stdio: ["ignore", "pipe", "pipe"] });
    for (const s of [this.child.stdout, this.child.stderr]) s.on("data", (d) => { this.said += d; });
    await wait(() => fetch(this.url).then(() => true, () => false));
    return this;
  }

  async kill() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }
}

const takes = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const TOOLS = [
  { name: "note", description: "Writes a note down.", inputSchema: takes({ text: { type: "string" } }) },
  { name: "notes", description: "Tells how many notes there are.", inputSchema: takes({}) },
  { name: "knock", description: "Gives the number back.", inputSchema: takes({ n: { type: "integer" } }) },
  { name: "page", description: "Gives a text of so many bytes.", inputSchema: takes({ bytes: { type: "integer" } }) },
  { name: "rest", description: "Answers when it is told to.", inputSchema: takes({ word: { type: "string" } }) },
];

// text of a page: its lines are numbered, so that a piece shows where it is from.
export const page = (bytes) => Array.from({ length: Math.ceil(bytes / 16) }, (_, i) => `line ${String(i).padStart(10, "0")}\n`).join("").slice(0, bytes);

// Own is a server of ours without sessions. It wants a token, keeps what was done, and counts what runs side by side.
export class Own {
  done = []; // notes, in their order
  resting = []; // words of calls that do not answer
  now = 0;
  most = 0;

  constructor(token) {
    this.token = token;
  }

  async start() {
    this.port ??= await freePort();
    this.url = `http://127.0.0.1:${this.port}/mcp`;
    this.http = http.createServer((req, res) => this.#serve(req, res).catch((e) => res.destroy(e)));
    this.http.keepAliveTimeout = 300_000;
    this.http.listen(this.port, "127.0.0.1");
    await once(this.http, "listening");
    return this;
  }

  async stop() {
    if (!this.http?.listening) return;
    const closed = once(this.http, "close");
    this.http.close();
    this.http.closeAllConnections();
    await closed;
  }

  async #serve(req, res) {
    const given = req.headers.authorization ?? "none";
    // As careless servers do, it repeats what it was sent.
    if (given !== `Bearer ${this.token}`) return res.writeHead(401, { "content-type": "application/json", "www-authenticate": `Bearer error="invalid_token", error_description="${given} is unknown"` }).end(JSON.stringify({ error: "invalid_token", error_description: `${given} is unknown` }));
    if (req.method !== "POST") return res.writeHead(405, { allow: "POST" }).end();
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    const server = new Server({ name: "own", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS }));
    server.setRequestHandler(CallToolRequestSchema, (r) => this.#call(r.params));
    res.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(req, res);
  }

  async #call({ name, arguments: given }) {
    const text = (t) => ({ content: [{ type: "text", text: t }] });
    switch (name) {
      case "note":
        this.done.push(given.text);
        return text("noted");
      case "notes":
        return text(`${this.done.length} notes`);
      case "knock":
        this.most = Math.max(this.most, ++this.now);
        await new Promise((on) => setTimeout(on, 5 + ((given.n * 7) % 20))); // they end in another order
        this.now--;
        return text(`knocked ${given.n}`);
      case "page":
        return text(page(given.bytes));
      case "rest":
        this.resting.push(given.word);
        return new Promise(() => {});
    }
    throw new Error(`no tool ${name}`);
  }
}

// Requests of clients that keep their history themselves, as far as the front needs them: whose object one is
// for. The rules are those of worker/proxy_key.go and worker/proxy.go; testdata/proxies.json holds both to the
// same rows.

// faced gives what a path and its headers say of such a request, or null: chat is chat completions, name what
// the client calls the conversation, off that nothing of it is kept, sure that it is one whatever its body says.
export function faced(request, path, token) {
  const [, inPath, what] = path.match(/^(?:\/p\/([^/]+))?\/v1\/(messages|messages\/count_tokens|chat\/completions)$/) ?? [];
  const { headers } = request;
  if (!what || request.method !== "POST" || headers.get("x-tidemark-session")) return null;
  const chat = what === "chat/completions";
  const mode = headers.get("x-tidemark-mode") ?? "";
  const name = headers.get("x-tidemark-proxy") || (inPath ? decodeURIComponent(inPath) : "");
  const own = (header) => {
    const value = headers.get(header) ?? "";
    return token && value.includes(token) ? "" : value;
  };
  const credential = own("x-api-key") || own("authorization") || "own";
  const sure = !chat || mode !== "" || name !== "";
  if (!sure && !own("authorization")) return null;
  return { chat, name, credential, sure, off: mode === "off" };
}

const KNOWN = /^(messages|messages\/count_tokens|chat\/completions)$/;

// beyond gives what stands in a path behind /p/NAME/v1/, undefined for another path.
const beyond = (path) => path.match(/^\/p\/[^/]*\/v1\/(.*)$/s)?.[1];

// other says whether a request is for another route of an API, of which nothing is kept.
export function other(request, path) {
  const what = beyond(path);
  return what !== undefined && !(request.method === "POST" && KNOWN.test(what));
}

// vendor says whose API a path under /p/NAME/v1/ is of, undefined for another path: ofOpenAI of worker/proxy_other.go.
export function vendor(path, headers) {
  const what = beyond(path);
  if (what === undefined) return undefined;
  if (/^messages(\/|$)/.test(what)) return "anthropic";
  if (/^chat\/completions(\/|$)/.test(what)) return "openai";
  return ["anthropic-version", "anthropic-beta", "x-api-key"].some((name) => headers.get(name)) ? "anthropic" : "openai";
}

// onward passes a request on that no object needs to see, or that is too large for one to hold: an object says where to, and with which
// headers; the body streams from here, and the answer back. Nothing of it is kept: the client has its history.
export async function onward(request, path, search, object) {
  const told = await object.fetch(`https://tidemark/internal/onward${path}${search}`, { headers: bare(request.headers) });
  if (!told.ok) return new Response(told.body, told); // its headers may be added to
  const { url, headers } = await told.json();
  const { method, body, signal } = request;
  const answer = await fetch(url, { method, headers, body, signal, redirect: "manual", duplex: "half" });
  const back = new Headers(told.headers);
  for (const name of ["content-type", "content-length"]) back.delete(name);
  for (const [name, value] of answer.headers) if (!OWN.test(name) && !back.has(name)) back.set(name, value);
  return new Response(answer.body, { status: answer.status, headers: back });
}

// bare gives headers without those of a body and of a connection.
function bare(headers) {
  const out = new Headers(headers);
  for (const name of ["content-length", "transfer-encoding", "expect", "connection", "upgrade"]) out.delete(name);
  return out;
}

// What is between the API and this server, or between their machines, as ownHeader of worker/anthropic.go; the runtime
// has undone an encoding.
const OWN = /^(x-tidemark-|cf-|x-forwarded-|proxy-|sec-|access-control-)|^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|set-cookie|forwarded|via)$/;

// proxyKey gives the key of the conversations that a client has under a credential and a name.
export async function proxyKey(credential, session) {
  return `agent:main:proxy:dm:${(await digest(`${credential}\n${session}`)).slice(0, 32)}`;
}

async function digest(text) {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
}

// userOf gives what a body of chat completions says of its user, "" for nothing.
export const userOf = (raw) => {
  const scan = new Scan(raw);
  return scan.text(scan.object(scan.begin(), ["user"])?.[0]) ?? "";
};

// sessionOf gives the name by which a body tells its conversation from others of its client, "" for none. A
// body has megabytes, so nothing but the name is decoded.
export async function sessionOf(raw, chat) {
  const scan = new Scan(raw);
  const ids = chat ? ["user", "prompt_cache_key"] : ["metadata"];
  const found = scan.object(scan.begin(), [...ids, "messages"]);
  if (!found) return "";
  const messages = found.pop();
  for (let at of found) {
    if (!chat && at) at = scan.object(at[0], ["user_id"], true)[0];
    const id = scan.text(at);
    if (id) return id;
  }
  const first = scan.first(messages, chat);
  return first === undefined ? "" : digest(first);
}

const byte = (c) => c.charCodeAt(0);
const QUOTE = byte('"'), ESCAPE = byte("\\"), COMMA = byte(","), COLON = byte(":");
const OPEN = byte("{"), CLOSE = byte("}"), LIST = byte("["), END = byte("]");
const SPACES = new Set([..." \t\n\r"].map(byte));

// The longest of the names that are looked for, with every character escaped.
const MAX_NAME = 6 * 16 + 2;

// Scan reads JSON without decoding it: strings and brackets are all that it looks at, so what it finds in what
// is no JSON means nothing, and nothing in it recurses. A span is [from, to].
class Scan {
  constructor(raw) {
    this.raw = raw;
  }

  // begin is where the text begins, behind a byte order mark.
  begin() {
    return this.raw[0] === 0xef && this.raw[1] === 0xbb && this.raw[2] === 0xbf ? 3 : 0;
  }

  // object gives the members of an object by name, the last of those that are given twice; null for what is no
  // object, or with partly what was found before.
  object(at, names, partly = false) {
    const { raw } = this;
    const found = names.map(() => undefined);
    const no = partly ? found : null;
    if (raw[at = this.space(at)] !== OPEN) return no;
    if (raw[at = this.space(at + 1)] === CLOSE) return found;
    for (;;) {
      let end = this.end(at);
      if (raw[at] !== QUOTE || end < 0) return no;
      const name = end - at > MAX_NAME ? undefined : this.text([at, end]);
      if (raw[at = this.space(end)] !== COLON) return no;
      at = this.space(at + 1);
      if ((end = this.end(at)) < 0) return no;
      const i = names.indexOf(name);
      if (i >= 0) found[i] = [at, end];
      at = this.space(end);
      if (raw[at] === CLOSE) return found;
      if (raw[at] !== COMMA) return no;
      at = this.space(at + 1);
    }
  }

  // each gives the elements of a list in their order.
  * each(list) {
    if (!list || this.raw[list[0]] !== LIST) return;
    for (let at = list[0]; ;) {
      at = this.space(at + 1);
      const end = this.end(at);
      if (end < 0) return;
      yield [at, end];
      if (this.raw[at = this.space(end)] !== COMMA) return;
    }
  }

  // first gives the plain text of the first message with its role, "" for none, without what agents put into it.
  // Instructions of chat completions are the same in all conversations of a client, so they are no message.
  first(list, chat) {
    for (const message of this.each(list)) {
      const [role, content] = this.object(message[0], ["role", "content"]) ?? [];
      const who = this.text(role) ?? "";
      if (!chat || (who !== "system" && who !== "developer")) return `${who}\n${this.plain(content)}`;
    }
    return undefined;
  }

  plain(content) {
    const texts = [];
    const add = (at) => {
      const text = trimmed(stripped(this.text(at) ?? ""));
      if (text !== "") texts.push(text);
    };
    add(content);
    for (const block of this.each(content)) {
      const [type, text] = this.object(block[0], ["type", "text"]) ?? [];
      if (this.text(type) === "text") add(text);
    }
    return texts.join("\n");
  }

  // text decodes a string; anything else is undefined.
  text(at) {
    if (!at || at[1] - at[0] < 2 || this.raw[at[0]] !== QUOTE) return undefined;
    try {
      return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.raw.subarray(at[0], at[1])));
    } catch {
      return undefined;
    }
  }

  // end gives where the value ends that begins at a place, -1 for none.
  end(at) {
    const { raw } = this;
    let depth = 0;
    for (let i = at; i < raw.length; i++) {
      const c = raw[i];
      if (c === QUOTE) {
        if ((i = this.quote(i)) < 0) return -1;
        if (depth === 0) return i + 1;
      } else if (c === OPEN || c === LIST) {
        depth++;
      } else if (c === CLOSE || c === END) {
        depth--;
        if (depth < 0) return i === at ? -1 : i;
        if (depth === 0) return i + 1;
      } else if (depth === 0 && (c === COMMA || c === COLON || SPACES.has(c))) {
        return i === at ? -1 : i;
      }
    }
    return -1;
  }

  // quote gives where the string ends that begins at a place, -1 for one that does not.
  quote(at) {
    const { raw } = this;
    for (let i = at + 1; i < raw.length; i++) {
      if (raw[i] === ESCAPE) i++;
      else if (raw[i] === QUOTE) return i;
    }
    return -1;
  }

  space(at) {
    while (at < this.raw.length && SPACES.has(this.raw[at])) at++;
    return at;
  }
}

// stripped is StripReminders of chain.go.
function stripped(text) {
  const open = "<system-reminder>", close = "</system-reminder>";
  if (!text.includes(open)) return text;
  let out = "";
  for (;;) {
    const from = text.indexOf(open);
    const to = from < 0 ? -1 : text.indexOf(close, from);
    if (to < 0) return trimmed(out + text);
    out += text.slice(0, from);
    text = text.slice(to + close.length);
  }
}

// trimmed takes off what Go counts as white space.
const WHITE = /[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function trimmed(text) {
  let from = 0, to = text.length;
  while (from < to && WHITE.test(text[from])) from++;
  while (to > from && WHITE.test(text[to - 1])) to--;
  return text.slice(from, to);
}

// Markdown to elements: bounded.js reads it, DOMPurify lets through what is listed here, and the browser takes
// markup only from DOMPurify's policy (Trusted Types, see _headers). What takes too long is shown as it stands.

import DOMPurify from "dompurify";
import { shares } from "./blocks.js";
import { LONGEST, read } from "./bounded.js";

const TAGS = ["a", "p", "br", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6",
  "table", "thead", "tbody", "tr", "th", "td", "hr", "input", "span"];
const ATTRIBUTES = ["href", "title", "start", "align", "class", "type", "checked", "disabled"];
const RULES = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i, RETURN_TRUSTED_TYPE: true };

const SHARE = 8_000; // characters between two looks at the clock
const SLICE = 15; // ms of work before others have their turn
const MOST = 400; // ms for one text; what is left then is shown as it stands
const LEAF = 8_000; // characters in one element: the browser lays out only those in sight

let purify;
const sanitiser = () => {
  if (purify) return purify;
  purify = DOMPurify(window);
  purify.addHook("afterSanitizeAttributes", (node) => {
    if (node.tagName === "A") {
      if (node.hasAttribute("href")) {
        node.setAttribute("target", "_blank");
        node.setAttribute("rel", "noopener noreferrer nofollow");
      }
    } else if (node.tagName === "INPUT") {
      node.setAttribute("type", "checkbox");
      node.setAttribute("disabled", "");
    }
    const kind = node.getAttribute("class");
    if (kind !== null && kind !== "picture" && !/^language-[\w+#.-]{1,40}$/.test(kind)) node.removeAttribute("class");
  });
  return purify;
};

// fill shows markdown in an element, with a button to copy each block of code; false when it is too much.
function fill(element, text) {
  const markup = read(text);
  if (markup === null) return false;
  element.innerHTML = sanitiser().sanitize(markup, RULES);
  for (const pre of element.querySelectorAll("pre")) {
    const box = document.createElement("div");
    box.className = "code";
    const copy = document.createElement("button");
    copy.type = "button";
    copy.className = "copy";
    copy.textContent = "Copy";
    copy.setAttribute("aria-label", "Copy the code");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.innerText);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Not allowed";
      }
    });
    pre.tabIndex = 0; // it scrolls: the keyboard must reach it
    pre.replaceWith(box);
    box.append(pre, copy);
  }
  return true;
}

// Sheet shows a text in an element, share by share.
class Sheet {
  constructor(element) {
    this.element = element;
    this.shares = shares(SHARE, LONGEST);
    this.spent = 0;
    this.leaf = null; // the last element of text as it stands, while it may take more
    this.tail = document.createElement("div");
    element.replaceChildren(this.tail);
  }

  // step shows one share and says whether there was one.
  step(text, last) {
    const began = performance.now();
    const piece = this.spent > MOST ? this.rest(text) : this.shares.next(text, last);
    if (!piece) return false;
    const own = text.slice(piece.from, piece.to), box = document.createElement("div");
    if (piece.raw) this.plain(own);
    else if (fill(box, own)) {
      this.leaf = null;
      if (piece.from > 2 * SHARE) box.className = "share";
      this.tail.before(box);
    } else if (!this.shares.split(piece)) this.plain(own);
    this.spent += performance.now() - began;
    return true;
  }

  rest(text) {
    return this.shares.done < text.length ? this.shares.skip(text) : null;
  }

  // plain shows a text as it stands.
  plain(text) {
    for (let at = 0; at < text.length; ) {
      if (!this.leaf || this.leaf.data.length >= LEAF) {
        const pre = document.createElement("pre");
        pre.className = "raw";
        this.leaf = pre.appendChild(document.createTextNode(""));
        this.tail.before(pre);
      }
      // It ends with a line if there is an end, and never within a character.
      let to = Math.min(text.length, at + LEAF);
      if (to < text.length) to = text.lastIndexOf("\n", to - 1) + 1 > at ? text.lastIndexOf("\n", to - 1) + 1 : to;
      if (/[\ud800-\udbff]/.test(text[to - 1]) && to < text.length) to++;
      this.leaf.appendData(text.slice(at, to));
      if (to < text.length) this.leaf = null;
      at = to;
    }
  }

  // end shows what is not finished; it is read again each time.
  end(text) {
    const own = text.slice(this.shares.done);
    if (!own || fill(this.tail, own)) return;
    this.tail.replaceChildren();
    this.shares.skip(text);
    this.plain(own);
  }
}

// All texts that are shown at once share some time; the rest comes in turns, the newest first: that is in sight.
let used = 0;
const waiting = [];
const turns = new MessageChannel();
let asked = false;
const leave = (job) => waiting.includes(job) && waiting.splice(waiting.indexOf(job), 1);
const next = () => {
  if (!asked) turns.port2.postMessage(null);
  asked = true;
};
turns.port1.onmessage = () => {
  asked = false;
  used = 0;
  const began = performance.now();
  while (waiting.length && performance.now() - began < SLICE) {
    const job = waiting.at(-1);
    if (job.work()) leave(job);
  }
  if (waiting.length) next();
};

// show shows markdown that does not change any more, at once if that is quick. grown is called when more of it
// stands there. It returns what ends it.
export function show(element, text, grown = () => {}) {
  const sheet = new Sheet(element);
  const job = {
    work() {
      const began = performance.now();
      let more = true;
      sheet.tail.replaceChildren();
      while (more && performance.now() - began < SLICE) more = sheet.step(text, true);
      used += performance.now() - began;
      if (!more) sheet.tail.remove();
      return !more;
    },
  };
  next(); // the next task has its own time
  if (used > 3 * SLICE) {
    sheet.tail.className = "plain";
    sheet.tail.textContent = text.slice(0, SHARE); // until its turn comes
  } else if (job.work()) return () => {};
  const work = job.work;
  job.work = () => {
    const ended = work();
    grown();
    return ended;
  };
  waiting.push(job);
  return () => leave(job);
}

// growing shows a text that grows: what it returns is called with the text so far, takes a slice of time for what is
// new, and says whether there is more to do at once.
export function growing(element) {
  let sheet = new Sheet(element), shown = "";
  return (text) => {
    if (!text.startsWith(shown)) sheet = new Sheet(element); // begun again
    shown = text;
    const began = performance.now();
    while (sheet.step(text, false)) if (performance.now() - began > SLICE) return true;
    sheet.end(text);
    return false;
  };
}

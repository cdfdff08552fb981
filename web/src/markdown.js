// Markdown to markup that is safe to show: marked reads it, DOMPurify lets through what is listed here,
// and the browser takes markup only from DOMPurify's policy (Trusted Types, see _headers).

import DOMPurify from "dompurify";
import { Marked } from "marked";

const TAGS = ["a", "p", "br", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6",
  "table", "thead", "tbody", "tr", "th", "td", "hr", "input", "span"];
const ATTRIBUTES = ["href", "title", "start", "align", "class", "type", "checked", "disabled"];
const RULES = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i, RETURN_TRUSTED_TYPE: true };

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);

// Markup within markdown is shown as the text that it is, and a picture from elsewhere as its words and its
// address: to fetch it would tell its server who reads.
const marked = new Marked({ gfm: true, breaks: true }, {
  renderer: {
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escape(text)),
    image({ href, text }) {
      const words = escape(text || "picture");
      return `<span class="picture">🖼 <a href="${escape(href)}">${words}</a></span>`;
    },
  },
});

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

// markup gives what an element's innerHTML may be set to.
export function markup(text) {
  return sanitiser().sanitize(marked.parse(text ?? ""), RULES);
}

// fill shows markdown in an element, with a button to copy each block of code.
export function fill(element, text) {
  element.innerHTML = markup(text);
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
}

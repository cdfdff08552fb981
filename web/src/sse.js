// Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) out of a body.

// MAX_EVENT bounds one event, so that a broken stream cannot fill the memory.
const MAX_EVENT = 64 << 20;

// parser returns a function that takes text in any pieces and calls onEvent(name, data) for each whole
// event. A line ends with CR, LF or both; an event that the stream's end cuts off is dropped.
export function parser(onEvent) {
  let rest = "", name = "", data = [], size = 0, cr = false;
  const line = (text) => {
    if (text === "") {
      if (data.length) onEvent(name || "message", data.join("\n"));
      name = "";
      data = [];
      size = 0;
      return;
    }
    const colon = text.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") name = value;
    if (field === "data") {
      data.push(value);
      size += value.length;
    }
    if (size > MAX_EVENT) throw new Error("an event is too large");
  };
  return (text) => {
    if (cr && text.startsWith("\n")) text = text.slice(1);
    if (text === "") return;
    cr = text.endsWith("\r");
    const lines = (rest + text).split(/\r\n|\r|\n/);
    rest = lines.pop();
    if (rest.length > MAX_EVENT) throw new Error("a line is too long");
    for (const one of lines) line(one);
  };
}

// readEvents reads a body to its end. onBeat is called for every piece of it.
export async function readEvents(body, onEvent, onBeat) {
  const feed = parser(onEvent);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBeat?.();
      feed(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

import { useLayoutEffect, useRef } from "preact/hooks";
import { cutter } from "./blocks.js";
import { fill } from "./markdown.js";

// Markdown shows a text that does not change any more.
export function Markdown({ text }) {
  const at = useRef(null);
  useLayoutEffect(() => fill(at.current, text), [text]);
  return <div class="markdown" ref={at} />;
}

// Growing shows a text that grows: text is a signal. What is finished of it is read once; only its last block
// is read again, at most once a frame, and less often when that takes long.
export function Growing({ text, onGrown }) {
  const at = useRef(null);
  useLayoutEffect(() => {
    let frame = 0, cut = cutter(), done = 0, next = 0, shown = "";
    const tail = document.createElement("div");
    at.current.replaceChildren(tail);
    const draw = () => {
      frame = 0;
      const began = performance.now();
      if (began < next) {
        frame = requestAnimationFrame(draw);
        return;
      }
      const now = text.peek();
      if (!now.startsWith(shown)) { // begun again
        cut = cutter();
        done = 0;
        at.current.replaceChildren(tail);
      }
      shown = now;
      const end = cut(now);
      if (end > done) {
        const whole = document.createElement("div");
        fill(whole, now.slice(done, end));
        tail.before(whole);
        done = end;
      }
      fill(tail, now.slice(done));
      next = performance.now() + 4 * (performance.now() - began);
      onGrown?.();
    };
    const stop = text.subscribe(() => {
      frame ||= requestAnimationFrame(draw);
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [text]);
  return <div class="markdown growing" ref={at} />;
}

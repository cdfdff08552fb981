import { useLayoutEffect, useRef } from "preact/hooks";
import { growing, show } from "./markdown.js";

// Markdown shows a text that does not change any more. A long one comes bit by bit: each time it tells those around.
export function Markdown({ text }) {
  const at = useRef(null);
  useLayoutEffect(() => show(at.current, text ?? "", () => at.current?.dispatchEvent(new Event("grown", { bubbles: true }))), [text]);
  return <div class="markdown" ref={at} />;
}

// Growing shows a text that grows: text is a signal. What is finished of it is read once; only its last block
// is read again, at most once a frame, and less often when that takes long.
export function Growing({ text, onGrown }) {
  const at = useRef(null);
  useLayoutEffect(() => {
    let frame = 0, next = 0;
    const draw = () => {
      frame = 0;
      const began = performance.now();
      if (began < next) {
        frame = requestAnimationFrame(draw);
        return;
      }
      const more = write(text.peek());
      const now = performance.now();
      next = now + (more ? 0 : 20 * (now - began));
      if (more) frame = requestAnimationFrame(draw);
      onGrown?.();
    };
    const write = growing(at.current);
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

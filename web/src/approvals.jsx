// What a tool wants to do and may not without leave: a card a call, with which tool, with what, and until when.

import { useEffect, useRef, useState } from "preact/hooks";
import { layOut, untilWords, visible } from "./approvals.js";
import { clock } from "./clock.js";

const TOO_SOON = 600; // milliseconds in which a click was meant for what stood there before

export function Approvals({ conversation: c }) {
  const list = c.approvals.shown, more = c.approvals.all.value.length - list.length, told = c.approvals.told.value;
  const box = useRef(null), inside = useRef(false);
  // Who decided by the keyboard goes on with the next, or with what they write.
  useEffect(() => {
    if (!inside.current || box.current?.contains(document.activeElement)) return;
    inside.current = false;
    (box.current?.querySelector("button") ?? document.querySelector(".composer textarea"))?.focus();
  }, [list.length]);
  return (
    <div class="approvals" ref={box} onFocusIn={() => { inside.current = true; }} onFocusOut={(e) => { if (e.relatedTarget) inside.current = box.current?.contains(e.relatedTarget) ?? false; }}>
      <p class="unseen" role="status">{list.length ? `Tidemark asks whether it may use ${list.map((a) => visible(a.tool)).join(", ")}.` : ""}</p>
      {list.map((a) => <Card key={a.code} approval={a} state={c.approvals.states.value[a.code] ?? {}} decide={(allow) => c.approvals.decide(a.code, allow)} />)}
      {more > 0 && <p class="aside">{more} more wait behind these.</p>}
      {told && <p class="note" role="status">{told}</p>}
    </div>
  );
}

function Card({ approval: { tool, input, expires }, state, decide }) {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), TOO_SOON);
    return () => clearTimeout(timer);
  }, []);
  const name = visible(tool), shut = !ready || Boolean(state.sending), now = clock.value && Date.now(); // the clock may be half a minute old
  return (
    <section class="approval" aria-label={`May ${name} be used?`}>
      <h3>May <code>{name}</code> be used?</h3>
      <pre tabIndex={0} aria-label="Arguments">{layOut(input)}</pre>
      {state.error && <p class="problem" role="alert">{state.error}</p>}
      <div class="buttons">
        <small>{untilWords(expires, now)}</small>
        <button type="button" aria-disabled={shut} onClick={() => { if (!shut) decide(false); }}>Deny</button>
        <button type="button" class="primary" aria-disabled={shut} onClick={() => { if (!shut) decide(true); }}>Allow once</button>
      </div>
    </section>
  );
}

// The history: pages backwards as one scrolls up, stays at the end while one is there.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { rows } from "./entries.js";
import { Icon } from "./icons.jsx";
import { Answer, Row, Sent } from "./message.jsx";
import { typedOf } from "./words.js";

const NEAR = 80; // pixels from the end that count as the end

export function Log({ conversation: c, onEdit }) {
  const box = useRef(null), end = useRef(true), height = useRef(0);
  const [state, setState] = useState("");
  const [away, setAway] = useState(false);
  const log = c.log.value;
  const list = useMemo(() => rows(log.entries), [log]);
  const answer = c.answer.value;
  const known = new Set(c.outbox.value.map((m) => m.id));
  const waiting = c.waiting.value.filter((w) => !known.has(w.id));
  const first = list[0]?.key;

  const toEnd = () => {
    if (end.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useLayoutEffect(() => {
    end.current = true;
    setAway(false);
  }, [c]);
  // What was put before the first row moves nothing that is read.
  const before = useRef(first);
  useLayoutEffect(() => {
    const b = box.current;
    if (before.current !== first && !end.current) b.scrollTop += b.scrollHeight - height.current;
    before.current = first;
    height.current = b.scrollHeight;
    toEnd();
  });
  useEffect(() => {
    const watch = new ResizeObserver(toEnd);
    watch.observe(box.current);
    box.current.addEventListener("grown", toEnd);
    return () => watch.disconnect();
  }, []);

  const older = async () => {
    setState("Reading…");
    try {
      await c.older();
      setState("");
    } catch (e) {
      setState(e.message);
    }
  };
  const onScroll = () => {
    const b = box.current;
    end.current = b.scrollHeight - b.scrollTop - b.clientHeight < NEAR;
    height.current = b.scrollHeight;
    setAway(!end.current);
    if (b.scrollTop < 300 && log.next && !state) older();
  };
  const quiet = c.loaded.value && !list.length && !answer && !waiting.length && !c.outbox.value.length;
  return (
    <div class="logbox">
      <div class="log" role="log" aria-live="off" aria-label="Conversation" tabIndex={0} ref={box} onScroll={onScroll}>
        {log.next ? <p class="older"><button type="button" onClick={older} disabled={state === "Reading…"}>Earlier messages</button> <span role="status">{state}</span></p> : null}
        {!c.loaded.value && <p class="older">Reading the conversation…</p>}
        {quiet && <Empty />}
        {list.map((row) => <Row key={row.key} row={row} conversation={c} />)}
        {c.failure.value && !answer && <div class="event error" role="alert">{c.failure.value}</div>}
        {answer && <Answer answer={answer} doing={c.approvals.all.value.length ? "Waiting for your decision" : c.doing.value} onGrown={toEnd} />}
        {!answer && c.doing.value && <p class="dots">{c.doing.value}…</p>}
        {waiting.map((w) => <Sent key={w.id} item={{ ...w, content: typedOf(w), state: "queued" }} />)}
        {c.outbox.value.map((m) => <Sent key={m.id} item={m} onRetry={() => c.retry(m.id)} onDrop={() => c.drop(m.id)} onEdit={() => onEdit(m)} />)}
      </div>
      {away && <button type="button" class="toend" onClick={() => { end.current = true; toEnd(); }} aria-label="To the newest message"><Icon name="down" /></button>}
    </div>
  );
}

function Empty() {
  return (
    <div class="empty">
      <h2>Say something</h2>
      <p>This conversation never ends: when the model's window fills, the context is made smaller, and every word stays readable here.</p>
      <p><kbd>/help</kbd> lists commands and keys.</p>
    </div>
  );
}

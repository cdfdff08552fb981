// Pieces that all panels use.

import { useEffect, useRef, useState } from "preact/hooks";
import { tokens } from "./format.js";
import { stack } from "./scale.js";

// Trouble shows the server's words for what went wrong.
export function Trouble({ error, again, what }) {
  if (!error) return null;
  return (
    <div class="p-trouble" role="alert">
      <p>{what && `${what}: `}{error.message}</p>
      {error.requestId && <p class="p-faint">Request {error.requestId}</p>}
      {again && <button type="button" onClick={again}>Try again</button>}
    </div>
  );
}

// Status is what a list shows instead of its items: that it is being read, why it is not, that there is nothing.
export function Status({ busy, error, again, what, empty, children }) {
  if (error) return <Trouble error={error} again={again} what={what} />;
  if (busy) return <p class="p-faint" role="status">Loading…</p>;
  return empty ? <div class="p-empty">{children}</div> : null;
}

// More reads the next page of a list.
export function More({ pages, children = "Show more" }) {
  if (!pages.next) return null;
  return <button type="button" class="p-more" disabled={pages.busy} onClick={pages.more}>{pages.busy ? "Loading…" : children}</button>;
}

// Fold is a heading that opens what is below it; the children are made when it is first opened.
export function Fold({ summary, children, class: name = "", open = false, label }) {
  const [is, set] = useState(open);
  const [was, setWas] = useState(open);
  return (
    <details class={`p-fold ${name}`} open={is} onToggle={(e) => { set(e.currentTarget.open); if (e.currentTarget.open) setWas(true); }}>
      <summary aria-label={label}>{summary}</summary>
      {was && <div class="p-folded">{children}</div>}
    </details>
  );
}

// Sure is a button that asks once more before it acts.
export function Sure({ children, question, yes, onYes, disabled, class: name }) {
  const [asking, ask] = useState(false);
  const no = useRef(null), first = useRef(null), was = useRef(false);
  useEffect(() => {
    if (asking) no.current?.focus();
    else if (was.current) first.current?.focus();
    was.current = asking;
  }, [asking]);
  if (!asking) return <button type="button" ref={first} class={name} disabled={disabled} onClick={() => ask(true)}>{children}</button>;
  return (
    <span class="p-sure" role="group" aria-label={question} onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); ask(false); } }}>
      <span>{question}</span>
      <button type="button" class="p-danger" onClick={() => { ask(false); onYes(); }}>{yes}</button>
      <button type="button" ref={no} onClick={() => ask(false)}>No</button>
    </span>
  );
}

// Parts shows content blocks as text; nothing in them is markup.
export function Parts({ parts }) {
  if (parts.length === 0) return <p class="p-faint">Nothing in it.</p>;
  return parts.map((p, i) => (
    <div key={i} class={`p-part p-part-${p.kind}${p.error ? " p-part-error" : ""}`}>
      {p.title && <p class="p-part-title">{p.title}</p>}
      {p.text && <Long text={p.text} />}
    </div>
  ));
}

const shown = 20_000;

// Long shows a text up to a bound, and the rest when it is asked for: a megabyte in one element would stop
// the page.
export function Long({ text }) {
  const [most, set] = useState(shown);
  return (
    <>
      <pre class="p-text" tabIndex={0}>{text.length > most ? text.slice(0, most) : text}</pre>
      {text.length > most && <button type="button" class="p-more" onClick={() => set(most * 5)}>Show more of {text.length.toLocaleString("en")} characters</button>}
    </>
  );
}

// Searching is a search field; onSearch gets the words when they are submitted, "" when it is cleared.
export function Searching({ label, onSearch, busy }) {
  const [text, set] = useState("");
  return (
    <form class="p-search" role="search" aria-label={label} onSubmit={(e) => { e.preventDefault(); onSearch(text.trim()); }}>
      <input type="search" value={text} aria-label={label} placeholder={label} onInput={(e) => { set(e.currentTarget.value); if (e.currentTarget.value === "") onSearch(""); }} />
      <button type="submit" disabled={busy || text.trim() === ""}>Search</button>
    </form>
  );
}

// Mark is the colour of a kind, as in the gauge.
export function Mark({ kind }) {
  return <svg class="p-mark" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><rect class={`p-kind-${kind}`} width="10" height="10" rx="2" /></svg>;
}

// Gauge is a size against its limit, by the kinds that it is made of; the frame goes up to whole. low is what the size is
// brought down to when it is over the limit.
export function Gauge({ label, size, limit, low, whole, kinds }) {
  const width = 1000, at = (n) => (n / Math.max(whole, size, 1)) * width;
  const parts = stack(kinds, kinds.reduce((n, k) => n + k.tokens, 0), at(size), 3);
  return (
    <svg class="p-gauge" viewBox={`0 0 ${width} 56`} preserveAspectRatio="none" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={limit}
      aria-valuenow={Math.min(size, limit)} aria-valuetext={`${tokens(size)} of ${tokens(limit)} tokens`}>
      <rect class="p-free" x="0" y="8" width={width} height="40" rx="6" />
      <rect class="p-reserve" x={at(limit)} y="8" width={Math.max(0, width - at(limit))} height="40" rx="6" />
      {parts.map((p) => <rect key={p.kind} class={`p-kind-${p.kind}`} x={p.x} y="8" width={Math.max(1, p.width - 2)} height="40" />)}
      {low > 0 && <rect class="p-low" x={at(low) - 2} y="8" width="4" height="40" />}
      <rect class="p-limit" x={Math.min(at(limit) - 2, width - 4)} y="0" width="4" height="56" />
    </svg>
  );
}

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "@preact/signals"; // components read signals
import "./style.css";
import { api, archive, current, dialog, drawer, listed, mainKey, newChat, panel, refusal, show, start, toast } from "./app.js";
import { Approvals } from "./approvals.jsx";
import { Composer, stop } from "./composer.jsx";
import { Dialogs } from "./dialogs.jsx";
import { Icon } from "./icons.jsx";
import { Log } from "./log.jsx";
import { Panels } from "./panels/index.jsx";
import { Sidebar } from "./sidebar.jsx";
import { count, fillOf, nameOf, NEAR, proxied } from "./words.js";

function Page() {
  const c = current.value;
  const [edit, setEdit] = useState(null);
  return (
    <div class={`page ${panel.value ? "withpanel" : ""}`}>
      <Sidebar />
      {drawer.value && <div class="shade" onClick={() => { drawer.value = false; }} />}
      <main>
        <Head conversation={c} />
        <Link conversation={c} />
        <Log conversation={c} onEdit={(m) => { setEdit(m); c.drop(m.id); }} />
        <Approvals key={c.key} conversation={c} />
        {proxied(c.key) ? <Elsewhere /> : <Composer conversation={c} edit={edit} />}
      </main>
      {panel.value && <Panels key={c.key} api={api} session={c.key} live={c.live} exists={!c.missing.value} wanted={archive.value} onWanted={() => { archive.value = null; }} mainSession={mainKey.value} sessions={listed.value} openSession={show} onClose={() => { panel.value = false; }} />}
      <Dialogs />
      <Spoken conversation={c} />
      {toast.value && <div class="toast" role="status">{toast.value.text}</div>}
    </div>
  );
}

// Elsewhere stands where one writes, in a conversation that is not ours to write in.
const Elsewhere = () => <p class="composer elsewhere" role="note">This conversation belongs to a client that keeps its history itself. It goes on there; here you can read along.</p>;

function Head({ conversation: c }) {
  const info = c.info.value;
  return (
    <header class="head">
      <button type="button" class="icon onlyphone" aria-label="Conversations" aria-expanded={drawer.value} onClick={() => { drawer.value = true; }}><Icon name="menu" /></button>
      <h2>{nameOf(info ?? { key: c.key })}</h2>
      {info?.window > 0 && <Fill used={info.contextTokens} limit={proxied(c.key) ? info.window : info.limit || info.window} whole={proxied(c.key)} />}
      <button type="button" class="icon" aria-label="Search" title="Search (Ctrl+K)" onClick={() => { dialog.value = { kind: "search" }; }}><Icon name="search" /></button>
      <button type="button" class="icon" aria-label="Acts on this conversation" aria-haspopup="dialog" disabled={!info} onClick={() => { dialog.value = { kind: "session", session: info }; }}><Icon name="more" /></button>
      <button type="button" class={`panelbutton ${panel.value ? "on" : ""}`} aria-pressed={panel.value} title="Alt+Shift+P" onClick={() => { panel.value = !panel.value; }}>Context</button>
    </header>
  );
}

const told = { near: "nearly full: it is compacted soon", over: "over the limit: it is compacted before the next call" };

// whole: of a window, which nothing compacts.
function Fill({ used, limit, whole }) {
  const { part, share, level } = fillOf(used, limit);
  const of = whole ? "window" : "limit", more = level && !whole ? `, ${told[level]}` : "";
  return (
    <span class={`fill ${level}`} title={`${count(used, "token")} of the ${whole ? `window of ${count(limit, "token")}` : `${count(limit, "token")} at which it is compacted`}${more}`}>
      <meter min={0} max={1} low={NEAR} high={level === "over" ? 0.99 : 1} optimum={0} value={Math.min(1, part)} aria-label="How full the context is" aria-valuetext={`${share} of the ${of}${more}`} />
      {share}<span class="rest"> of the {of}</span>{more && <span class="unseen">{more}</span>}
    </span>
  );
}

// Link says when the server is not there, and for how long.
function Link({ conversation: c }) {
  const { state, error, at } = c.link.value;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state !== "offline") return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [state, at]);
  if (state === "live" || !error || refusal.value) return null; // the dialog tells it
  const left = Math.max(0, Math.ceil((at - now) / 1000));
  return (
    <div class="link" role="status">
      <span>{error.message}</span>
      {state === "offline" && <span aria-hidden="true">{left ? `Trying again in ${left} s.` : "Trying again…"}</span>}
      {state === "connecting" && <span>Trying again…</span>}
      <button type="button" onClick={() => c.again()}>Try now</button>
    </div>
  );
}

// Spoken tells a screen reader once what happened; the answer when it is whole.
function Spoken({ conversation: c }) {
  const [words, set] = useState("");
  const working = Boolean(c.answer.value);
  useEffect(() => {
    c.onSaid = (message) => set(`Tidemark: ${[].concat(message.content).map((b) => (typeof b === "string" ? b : b.text ?? "")).join(" ").slice(0, 3_000)}`);
    return () => { c.onSaid = null; };
  }, [c]);
  useEffect(() => {
    if (working) set("Tidemark is answering");
  }, [working]);
  return <div class="unseen" role="status" aria-live="polite">{words}</div>;
}

function typing(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function onKey(e) {
  if (refusal.peek()) return;
  const shut = () => e.preventDefault();
  if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") {
    shut();
    dialog.value = { kind: "search" };
  } else if (e.altKey && e.shiftKey && e.code === "KeyN") {
    shut();
    newChat();
  } else if (e.altKey && e.shiftKey && e.code === "KeyP") {
    shut();
    panel.value = !panel.peek();
  } else if (dialog.peek() || e.defaultPrevented) {
    return;
  } else if (e.key === "Escape") {
    if (drawer.peek()) drawer.value = false;
    else if (current.peek()?.answer.peek()) stop(current.peek());
  } else if (!typing(e.target) && !e.ctrlKey && !e.metaKey && !e.altKey) {
    if (e.key === "?") {
      shut();
      dialog.value = { kind: "help" };
    } else if (e.key === "/") {
      shut();
      document.querySelector(".composer textarea")?.focus();
    }
  }
}

start();
addEventListener("keydown", onKey);
// A file that is dropped beside the field would replace the page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (e) => e.preventDefault());
render(<Page />, document.getElementById("page"));

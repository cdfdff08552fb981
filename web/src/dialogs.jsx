// What is asked in front of the page. The browser's own <dialog> keeps the focus within and gives it back.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { api, current, dialog, download, refusal, rename, show, tell, useToken } from "./app.js";
import { ago, COMMANDS, fitTitle, nameOf, peerOf, proxied } from "./words.js";

// Modal shows its children in front of everything; onClose null: it must be answered.
function Modal({ label, onClose, children, wide }) {
  const at = useRef(null);
  useLayoutEffect(() => {
    const d = at.current;
    d.showModal();
    return () => d.close();
  }, []);
  const cancel = (e) => {
    e.preventDefault();
    onClose?.();
  };
  // A search field would take the first Escape for itself.
  const onKey = (e) => {
    if (e.key === "Escape") cancel(e);
  };
  return (
    <dialog ref={at} onKeyDown={onKey} aria-label={label} class={wide ? "wide" : ""} onCancel={cancel} onClick={(e) => e.target === at.current && onClose?.()}>
      <div class="inner">{children}</div>
    </dialog>
  );
}

const close = () => { dialog.value = null; };

export function Dialogs() {
  const d = dialog.value;
  if (refusal.value) return <Token words={refusal.value} />;
  switch (d?.kind) {
    case "help": return <Help />;
    case "search": return <Search />;
    case "session": return <Session key={d.session.key} session={d.session} />;
    case "reset": return <Reset session={d.session} line={d.line} />;
    case "entry": return <Entry {...d} />;
  }
  return null;
}

function Token({ words }) {
  const [value, set] = useState(""), [remember, setRemember] = useState(true);
  const go = (e) => {
    e.preventDefault();
    if (value.trim()) useToken(value.trim(), remember);
  };
  return (
    <Modal label="Token" onClose={null}>
      <form onSubmit={go}>
        <h2>This server wants its token</h2>
        <p class="words">{words}</p>
        <label>Token <input type="password" autocomplete="current-password" autoFocus value={value} onInput={(e) => set(e.target.value)} /></label>
        <label class="check"><input type="checkbox" checked={remember} onChange={(e) => setRemember(e.target.checked)} /> Remember it on this device</label>
        <p class="buttons"><button type="submit" class="primary" disabled={!value.trim()}>Use it</button></p>
      </form>
    </Modal>
  );
}

const KEYS = [["Enter", "send"], ["Shift+Enter", "new line"], ["Esc", "stop the answer"], ["Ctrl+K", "search"], ["Alt+Shift+N", "new conversation"], ["Alt+Shift+P", "context, memory and archives"], ["/", "to the message"], ["?", "this list"]];

function Help() {
  return (
    <Modal label="Commands and keys" onClose={close}>
      {/* the focus on the button at the end would scroll to it, and the commands out of sight */}
      <h2 tabIndex={-1} autoFocus>Commands</h2>
      <dl>{COMMANDS.map((c) => [<dt key={c.name}><code>/{c.name}{c.takes && ` [${c.takes}]`}</code></dt>, <dd key={`${c.name}.`}>{c.says}</dd>])}</dl>
      <p class="aside">A text that begins with a slash is written with two.</p>
      <h2>Keys</h2>
      <dl>{KEYS.map(([k, says]) => [<dt key={k}><kbd>{k}</kbd></dt>, <dd key={`${k}.`}>{says}</dd>])}</dl>
      <p class="buttons"><button type="button" onClick={close}>Close</button></p>
    </Modal>
  );
}

function Session({ session }) {
  const [title, set] = useState(session.title ?? peerOf(session.key)), [error, setError] = useState("");
  const act = async (f) => {
    try {
      await f();
      close();
    } catch (e) {
      setError(e.message);
    }
  };
  const save = (e) => {
    e.preventDefault();
    act(() => rename(session.key, fitTitle(title.trim())));
  };
  return (
    <Modal label={`Acts on ${nameOf(session)}`} onClose={close}>
      <form onSubmit={save}>
        <h2>{nameOf(session)}</h2>
        <p class="aside">{session.key}</p>
        <label>Title <input autoFocus maxLength={200} value={title} onInput={(e) => set(e.target.value)} /></label>
        {error && <p class="note" role="alert">{error}</p>}
        <p class="buttons"><button type="submit" class="primary">Rename</button></p>
      </form>
      <p class="buttons">
        <button type="button" onClick={() => act(() => download(session.key, "md"))}>Export as Markdown</button>
        <button type="button" onClick={() => act(() => download(session.key, "jsonl"))}>Export as JSON lines</button>
        {!proxied(session.key) && <button type="button" class="danger" onClick={() => { dialog.value = { kind: "reset", session }; }}>Reset…</button>}
        <button type="button" onClick={close}>Close</button>
      </p>
    </Modal>
  );
}

function Reset({ session, line = "/reset" }) {
  const go = () => {
    close();
    show(session.key);
    current.peek().command("commands", { line }, line);
  };
  return (
    <Modal label="Reset" onClose={close}>
      <h2>Begin “{nameOf(session)}” anew?</h2>
      <p>What was said is archived and what is worth it remembered; the model will not see it any more. The archive can be read, searched and restored.</p>
      <p class="buttons"><button type="button" class="danger" onClick={go}>Reset</button><button type="button" autoFocus onClick={close}>Cancel</button></p>
    </Modal>
  );
}

function Entry({ found, entry, error }) {
  return (
    <Modal label="Message" onClose={close} wide>
      <h2>{found.role === "user" ? "You" : "Tidemark"}, {ago(found.at)}</h2>
      <p class="aside">Of an earlier session of this conversation</p>
      {error && <p class="note" role="alert">{error}</p>}
      <pre class="words" tabIndex={0}>{entry ? [].concat(typeof entry.message.content === "string" ? { text: entry.message.content } : entry.message.content).map((b) => b.text ?? `[${b.type}]`).join("\n") : found.text}</pre>
      <p class="buttons"><button type="button" onClick={close}>Close</button></p>
    </Modal>
  );
}

function Search() {
  const c = current.value;
  const [words, set] = useState(""), [state, setState] = useState({ found: null, error: "", busy: false });
  const asked = useRef(0), timer = useRef(0);
  const look = (q) => {
    set(q);
    clearTimeout(timer.current);
    const turn = ++asked.current;
    if (!q.trim()) return setState({ found: null, error: "", busy: false });
    setState({ ...state, busy: true });
    timer.current = setTimeout(async () => {
      try {
        const { found } = c.missing.peek() ? { found: [] } : await api.get(`${c.path}/search`, { query: { q, limit: 50 } });
        if (turn === asked.current) setState({ found, error: "", busy: false });
      } catch (e) {
        if (turn === asked.current) setState({ found: [], error: e.status === 404 ? "" : e.message, busy: false });
      }
    }, 150);
  };
  const onKey = (e) => {
    const all = [...e.currentTarget.querySelectorAll("input, .found button")];
    const at = all.indexOf(document.activeElement);
    const to = e.key === "ArrowDown" ? at + 1 : e.key === "ArrowUp" ? at - 1 : -1;
    if (e.key === "Enter" && at === 0 && all[1]) all[1].click();
    else if (to >= 0 && all[to]) all[to].focus();
    else return;
    e.preventDefault();
  };
  return (
    <Modal label="Search" onClose={close} wide>
      <div onKeyDown={onKey}>
        <input type="search" autoFocus placeholder="Search in this conversation" aria-label="Search in this conversation" value={words} onInput={(e) => look(e.target.value)} />
        <p role="status" class="aside">{state.error || (state.busy ? "Searching…" : state.found ? `${state.found.length} found` : "Earlier sessions are searched too.")}</p>
        <ul class="found">
          {(state.found ?? []).map((f) => (
            <li key={f.id}><button type="button" onClick={() => goTo(c, f)}>
              <small>{f.role === "user" ? "You" : "Tidemark"} · {ago(f.at)}{f.sessionId !== c.info.value?.id && " · before a reset"}</small>
              <span>{f.text}</span>
            </button></li>
          ))}
        </ul>
      </div>
    </Modal>
  );
}

// goTo shows a message that was found, reading backwards as far as it must; one of an earlier session alone.
async function goTo(c, found) {
  close();
  if (found.sessionId !== c.info.peek()?.id) {
    try {
      dialog.value = { kind: "entry", found, entry: await api.get(`${c.path}/entries/${encodeURIComponent(found.id)}`) };
    } catch (e) {
      dialog.value = { kind: "entry", found, error: e.message };
    }
    return;
  }
  const at = () => document.getElementById(`e-${found.id}`);
  try {
    for (let i = 0; !at() && i < 100 && (await c.older(500)); i++) await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  } catch (e) {
    return tell(e.message);
  }
  const el = at();
  if (!el) return tell("It is further back than the page reads at once.");
  el.scrollIntoView({ block: "center" });
  el.classList.add("lit");
  el.tabIndex = -1;
  el.focus({ preventScroll: true });
  setTimeout(() => el.classList.remove("lit"), 2_500);
}


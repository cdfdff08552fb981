// The side panel: what the model sees, snapshots of it, what is remembered, what is archived.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { keep, kept } from "../store.js";
import { Archives } from "./archives.jsx";
import { Context } from "./context.jsx";
import { agentOf } from "./format.js";
import { Memory } from "./memory.jsx";
import { Snapshots } from "./snapshots.jsx";
import "./panels.css";

const tabs = [["context", "Context"], ["snapshots", "Snapshots"], ["memory", "Memory"], ["archives", "Archives"]];

// over says whether the panel lies over the chat, as style.css lays it: then it takes the focus, and Escape
// closes it.
const over = () => matchMedia("(max-width: 1100px)").matches;

// Panels is the panel beside the chat. api is the client of ../api.js, session the key of the session
// that is shown, live.subscribe(fn) calls fn with each notice of it and returns what ends that,
// openSession(key) shows another session, onClose is called to close the panel.
//
// A tab stays as it was left: what somebody was writing is there when they come back to it.
// exists says whether anything was said in it, sessions are the directory, as far as it was read. wanted, an archive {key}, is opened, and onWanted told.
export function Panels({ api, session, exists = true, live, mainSession, wanted: asked, onWanted, sessions = [], openSession, onClose }) {
  const id = useId();
  const [tab, setTab] = useState(() => (tabs.some(([name]) => name === kept("tab")) ? kept("tab") : "context"));
  const [been, setBeen] = useState({ [tab]: true });
  const [wanted, want] = useState(null); // an archive that another tab points at
  const buttons = useRef({});
  const agent = agentOf(session);
  const go = (name, focus) => {
    setTab(name);
    keep("tab", name);
    setBeen((b) => ({ ...b, [name]: true }));
    if (focus) buttons.current[name]?.focus();
  };
  const onKey = (e) => {
    const at = tabs.findIndex(([name]) => name === tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    go(tabs[(to + tabs.length) % tabs.length][0], true);
  };
  const openArchive = (key) => {
    want({ key });
    go("archives", true);
  };
  useEffect(() => want(null), [agent]);
  useEffect(() => {
    if (!asked) return;
    openArchive(asked.key);
    onWanted();
  }, [asked]);
  const opener = useRef(null); // has the focus back when the panel is closed
  useEffect(() => {
    opener.current = document.activeElement;
    if (over()) buttons.current[tab]?.focus();
  }, []);
  const close = () => {
    if (opener.current?.isConnected) opener.current.focus();
    onClose();
  };
  const onEscape = (e) => {
    if (e.key !== "Escape" || !over()) return;
    e.stopPropagation();
    close();
  };
  const bodies = {
    context: () => <Context api={api} session={session} exists={exists} live={live} openArchive={openArchive} openSession={openSession} shown={tab === "context"} />,
    snapshots: () => <Snapshots api={api} session={session} exists={exists} live={live} openSession={openSession} sessions={sessions} shown={tab === "snapshots"} />,
    memory: () => <Memory key={agent} api={api} agent={agent} session={session} mainSession={mainSession} openSession={openSession} live={live} shown={tab === "memory"} />,
    archives: () => <Archives key={agent} api={api} agent={agent} session={exists ? session : ""} live={live} wanted={wanted} sessions={sessions} openSession={openSession} shown={tab === "archives"} />,
  };
  return (
    <aside class="panels" aria-label="Context, memory and archives" onKeyDown={onEscape}>
      <div class="p-head">
        <div role="tablist" aria-label="Panels" onKeyDown={onKey}>
          {tabs.map(([name, title]) => (
            <button key={name} type="button" role="tab" id={`${id}-${name}`} aria-controls={`${id}-${name}-body`} aria-selected={tab === name}
              tabIndex={tab === name ? 0 : -1} ref={(el) => { buttons.current[name] = el; }} onClick={() => go(name)}>{title}</button>
          ))}
        </div>
        <button type="button" class="p-close" aria-label="Close the panel" title="Close the panel" onClick={close}>
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M3 3l10 10M13 3L3 13" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" /></svg>
        </button>
      </div>
      {tabs.map(([name]) => (
        <div key={name} class="p-body" role="tabpanel" id={`${id}-${name}-body`} aria-labelledby={`${id}-${name}`} hidden={tab !== name}>
          {been[name] && bodies[name]()}
        </div>
      ))}
    </aside>
  );
}

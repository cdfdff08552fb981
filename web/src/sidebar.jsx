// The list of conversations.

import { useState } from "preact/hooks";
import { busy, current, dialog, drawer, forgetToken, listed, mainKey, more, newChat, refresh, refusal, sessions, show, theme, token } from "./app.js";
import { clock } from "./clock.js";
import { branchOf, families } from "./family.js";
import { Icon } from "./icons.jsx";
import { ago, channelOf, count, nameOf } from "./words.js";

const next = { system: "light", light: "dark", dark: "system" };

export function Sidebar() {
  const [words, setWords] = useState("");
  const { state, error, next: rest } = sessions.value;
  const looked = words.trim().toLowerCase();
  const all = listed.value, pinned = all.find((s) => s.key === mainKey.value);
  const fits = (s) => !looked || `${s.title ?? ""} ${s.key}`.toLowerCase().includes(looked);
  const list = families(all.filter((s) => s !== pinned && !ofMain(s) && fits(s)));
  const branches = all.filter((s) => ofMain(s) && fits(s));
  return (
    <nav class={`sidebar ${drawer.value ? "open" : ""}`} aria-label="Conversations">
      <header>
        <h1>Tidemark</h1>
        <button type="button" class="primary" onClick={newChat}>New</button>
        <button type="button" class="icon onlyphone" aria-label="Close the list" onClick={() => { drawer.value = false; }}><Icon name="close" /></button>
      </header>
      <input type="search" placeholder="Find a conversation" aria-label="Find a conversation" value={words} onInput={(e) => setWords(e.target.value)} />
      {error && !refusal.value && <p class="note" role="alert">{error} <button type="button" onClick={refresh}>Try again</button></p>}
      {state === "loading" && <p class="aside">Reading…</p>}
      {state === "ready" && !list.length && !branches.length && <p class="aside">{looked ? "None of that name." : "No conversations yet."}</p>}
      <ul class="sessions">
        <Item session={pinned ?? { key: mainKey.value }} pinned missing={!pinned} />
        {branches.map((s) => <Item key={s.key} session={s} under />)}
        {list.map(({ session: s, under }) => <Item key={s.key} session={s} under={under} />)}
      </ul>
      {rest && <button type="button" class="wide" onClick={more}>More conversations</button>}
      <footer>
        <button type="button" onClick={() => { theme.value = next[theme.value] ?? "system"; }} aria-label={`Theme: ${theme.value}. Change it`}><Icon name={theme.value} small /> {{ light: "Light", dark: "Dark" }[theme.value] ?? "System"}</button>
        <button type="button" onClick={() => { dialog.value = { kind: "help" }; }} aria-label="Commands and keys">? Help</button>
        {token.value && <button type="button" onClick={forgetToken}>Forget token</button>}
      </footer>
    </nav>
  );
}

// ofMain says that a session is a branch of the main one, which stands first and is no part of the list.
const ofMain = (s) => s.key.startsWith(`${mainKey.value}#`);

// Item is a conversation in the list. The main one stands first, also before anything was said in it; a branch stands
// under the one that it is of.
function Item({ session: s, pinned = false, missing = false, under = false }) {
  const shown = s.key === current.value?.key;
  const channel = s.title ? channelOf(s.key) : ""; // else the name has it
  return (
    <li class={`${shown ? "current" : ""} ${pinned ? "pinned" : ""} ${under ? "under" : ""}`}>
      <button type="button" class="session" aria-current={shown ? "page" : undefined} onClick={() => show(s.key)} title={s.key}>
        <span class="name">{pinned && <Icon name="main" small />}{under && <><Icon name="branch" small /><span class="unseen">Branch </span></>}{under ? s.title || branchOf(s.key) : nameOf(s)}</span>
        <small>{busy.value.has(s.key) ? <span class="busy">answering</span> : missing ? "knows MEMORY.md and the persona" : [channel, ago(s.updatedAt, clock.value), count(s.messages, "message")].filter(Boolean).join(" · ")}</small>
      </button>
      {!missing && <button type="button" class="icon" aria-label={`Acts on ${nameOf(s)}`} aria-haspopup="dialog" onClick={() => { dialog.value = { kind: "session", session: s }; }}><Icon name="more" /></button>}
    </li>
  );
}

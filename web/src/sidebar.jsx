// The list of conversations.

import { useState } from "preact/hooks";
import { busy, current, dialog, drawer, forgetToken, listed, more, newChat, refresh, refusal, sessions, show, theme, token } from "./app.js";
import { clock } from "./clock.js";
import { Icon } from "./icons.jsx";
import { ago, nameOf } from "./words.js";

const next = { system: "light", light: "dark", dark: "system" };

export function Sidebar() {
  const [words, setWords] = useState("");
  const { state, error, next: rest } = sessions.value;
  const looked = words.trim().toLowerCase();
  const list = listed.value.filter((s) => !looked || `${s.title ?? ""} ${s.key}`.toLowerCase().includes(looked));
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
      {state === "ready" && !list.length && <p class="aside">{looked ? "None of that name." : "No conversations yet."}</p>}
      <ul class="sessions">
        {list.map((s) => (
          <li key={s.key} class={s.key === current.value?.key ? "current" : ""}>
            <button type="button" class="session" aria-current={s.key === current.value?.key ? "page" : undefined} onClick={() => show(s.key)} title={s.key}>
              <span class="name">{nameOf(s)}</span>
              <small>{busy.value.has(s.key) ? <span class="busy">answering</span> : ago(s.updatedAt, clock.value)} · {s.messages} messages</small>
            </button>
            <button type="button" class="icon" aria-label={`Acts on ${nameOf(s)}`} aria-haspopup="dialog" onClick={() => { dialog.value = { kind: "session", session: s }; }}><Icon name="more" /></button>
          </li>
        ))}
      </ul>
      {rest && <button type="button" class="wide" onClick={more}>More conversations</button>}
      <footer>
        <button type="button" onClick={() => { theme.value = next[theme.value] ?? "system"; }} aria-label={`Theme: ${theme.value}. Change it`}>{{ light: "☀ Light", dark: "☾ Dark" }[theme.value] ?? "◐ System"}</button>
        <button type="button" onClick={() => { dialog.value = { kind: "help" }; }} aria-label="Commands and keys">? Help</button>
        {token.value && <button type="button" onClick={forgetToken}>Forget token</button>}
      </footer>
    </nav>
  );
}

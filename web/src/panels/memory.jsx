// The memory files of an agent: list, search, and one opened.

import { useEffect, useRef, useState } from "preact/hooks";
import { agentPath } from "../api.js";
import { byFolder, promptOf } from "./content.js";
import { bytes, when } from "./format.js";
import { useLoad, useNotices, usePages } from "./load.js";
import { File } from "./file.jsx";
import { More, Searching, Status } from "./parts.jsx";

// main is there to be written even before it exists.
const main = "MEMORY.md";

export function Memory({ api, agent, session, mainSession, openSession, live, shown }) {
  const base = agentPath(agent);
  const [open, setOpen] = useState(null); // {path, line?}
  const [words, search] = useState("");
  const files = usePages(async (cursor, signal) => {
    const page = await api.get(`${base}/memory`, { query: { cursor, limit: 200 }, signal });
    return { items: page.files, next: page.next };
  }, [api, agent], (f) => f.path);
  const stale = useRef(false);
  useNotices(live, () => {
    stale.current = !shown;
    if (shown) files.refresh();
  }, [agent]);
  useEffect(() => {
    if (shown && stale.current) files.refresh();
    stale.current = false;
  }, [shown]);
  if (open) {
    return <File key={open.path} api={api} agent={agent} path={open.path} line={open.line} onBack={() => { setOpen(null); files.refresh(); }} />;
  }
  const all = files.items.some((f) => f.path === main) ? files.items : [{ path: main, missing: true }, ...files.items];
  return (
    <>
      <InPrompt session={session} mainSession={mainSession} openSession={openSession} />
      <Searching label="Search memory" onSearch={search} />
      {words ? <Found api={api} base={base} words={words} onOpen={setOpen} /> : (
        <>
          <Status busy={files.busy && !files.begun} error={files.error} again={files.refresh} what="The memory files" />
          {files.begun && byFolder(all).map((g) => (
            <section key={g.name} class="p-section">
              <h2>{g.name}</h2>
              <ul class="p-list">{g.files.map((f) => <li key={f.path}><FileRow file={f} onOpen={() => setOpen({ path: f.path })} /></li>)}</ul>
            </section>
          ))}
          <More pages={files}>Show more files</More>
          {files.begun && <Other onOpen={(path) => setOpen({ path })} />}
        </>
      )}
    </>
  );
}

// InPrompt says which files the prompt of this conversation has: the rule of the server, in words.
function InPrompt({ session, mainSession, openSession }) {
  if (promptOf(session) === "main") return <p class="p-note">The prompt of this conversation has MEMORY.md, the persona (SOUL, IDENTITY, USER, AGENTS, TOOLS) and the notes of today and yesterday.</p>;
  if (promptOf(session) === "client") return <p class="p-note">The prompt of this conversation is its client's; nothing is remembered of it, and none of this is shown to it.</p>;
  return (
    <p class="p-note">
      The prompt of this conversation has {promptOf(session) === "owner" ? "the notes of today and yesterday" : "those notes of today and yesterday that its people may see"}. MEMORY.md and the persona are only in that of the{" "}
      <button type="button" class="inline" onClick={() => openSession(mainSession)}>main conversation</button>.
    </p>
  );
}

function FileRow({ file: f, onOpen }) {
  return (
    <button type="button" class="p-row" onClick={onOpen}>
      <span class="p-what"><b>{f.path.replace(/^memory\/(peers\/)?/, "")}</b> {f.missing && <span class="p-words">not written yet</span>}</span>
      {!f.missing && <span class="p-num">{bytes(f.size)}{f.modified && `, ${when(f.modified)}`}</span>}
    </button>
  );
}

function Found({ api, base, words, onOpen }) {
  const got = useLoad((signal) => api.get(`${base}/memory-search`, { query: { q: words, limit: 50 }, signal }), [words]);
  const found = got.data?.found ?? [];
  return (
    <section class="p-section" aria-label="Found in memory">
      <Status busy={got.busy && !got.data} error={got.error} again={got.reload} what="The search" empty={got.data && found.length === 0}>Nothing in memory has these words.</Status>
      <ul class="p-list">
        {found.map((f, i) => (
          <li key={i}>
            <button type="button" class="p-row p-row-tall" onClick={() => onOpen({ path: f.path, line: f.line })}>
              <span class="p-wrap">{f.text}</span>
              <span class="p-faint">{f.path}{f.line > 0 && `, line ${f.line}`}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

// Other opens a file by its path; which there may be, the server says.
function Other({ onOpen }) {
  const [path, set] = useState("");
  return (
    <form class="p-search" onSubmit={(e) => { e.preventDefault(); onOpen(path.trim()); }}>
      <input value={path} aria-label="Path of a memory file" placeholder="Another file, such as SOUL.md" onInput={(e) => set(e.currentTarget.value)} />
      <button type="submit" disabled={path.trim() === ""}>Open</button>
    </form>
  );
}

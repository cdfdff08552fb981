// The archives of an agent: list, search, and one opened.

import { useEffect, useRef, useState } from "preact/hooks";
import { agentPath, sessionPath } from "../api.js";
import { Archive } from "./archive.jsx";
import { bytes, count, fileName, nameOf, when } from "./format.js";
import { useLoad, useNotices, usePages } from "./load.js";
import { More, Searching, Status } from "./parts.jsx";

export function Archives({ api, agent, session, live, wanted, sessions, openSession, shown }) {
  const base = agentPath(agent);
  // an archive tells the key of its conversation; its title is in the directory, as far as that was read
  const name = (key) => nameOf(sessions.find((s) => s.key === key) ?? { key });
  const [open, setOpen] = useState(null); // {key, line?}
  const [words, search] = useState("");
  const [own, setOwn] = useState(false);
  useEffect(() => {
    if (wanted) setOpen(wanted);
  }, [wanted]);
  // archives are filtered by the id of a conversation, which is another one after each reset
  const log = useLoad((signal) => (own && session ? api.get(sessionPath(session), { signal }).then((s) => s.id) : Promise.resolve(own ? "none" : "")), [own, session]);
  const ready = !own || Boolean(log.data);
  const pages = usePages(async (cursor, signal) => {
    if (!ready || log.data === "none") return { items: [] };
    const page = await api.get(`${base}/archives`, { query: { session: log.data, cursor, limit: 50 }, signal });
    return { items: page.archives, next: page.next, stray: page.stray, added: page.added, partial: page.partial };
  }, [api, agent, own, log.data], (a) => a.key);
  const stale = useRef(false);
  useNotices(live, () => {
    stale.current = !shown;
    if (shown) pages.refresh();
  }, [agent]);
  useEffect(() => {
    if (shown && stale.current) pages.refresh();
    stale.current = false;
  }, [shown]);
  if (open) return <Archive key={`${open.key} ${open.line ?? ""}`} api={api} agent={agent} name={open.key} line={open.line} info={pages.items.find((a) => a.key === open.key)} nameOf={name} openSession={openSession} onBack={() => setOpen(null)} />;
  return (
    <>
      <Searching label="Search archives" onSearch={search} />
      <p class="p-actions"><label class="p-check"><input type="checkbox" checked={own} onChange={(e) => setOwn(e.currentTarget.checked)} /> Only of this session since its last reset</label></p>
      {own && log.error ? <Status error={log.error} again={log.reload} what="The session" /> : words ? <Hits known={pages.items} nameOf={name} api={api} base={base} words={words} session={log.data} ready={ready} onOpen={setOpen} /> : <List pages={pages} nameOf={name} ready={ready} own={own} onOpen={setOpen} />}
    </>
  );
}

function List({ pages, nameOf: name, ready, own, onOpen }) {
  const none = pages.begun && ready && pages.items.length === 0;
  return (
    <section class="p-section" aria-label="Archives">
      <Status busy={!ready || (pages.busy && !pages.begun)} error={pages.error} again={pages.refresh} what="The archives" empty={none}>
        {own ? "Nothing of this session is archived yet." : "Nothing is archived yet. What a compaction or a reset takes out of sight is stored here first."}
      </Status>
      {pages.stray?.length > 0 && <p class="p-note">{count(pages.stray.length, "file")} in the archive folder {pages.stray.length === 1 ? "is no archive" : "are no archives"}: {pages.stray.map(fileName).join(", ")}</p>}
      {pages.partial && <p class="p-note">There are more archives than could be compared with the index at once; ask again to see what is missing.</p>}
      <ul class="p-list">{pages.items.map((a) => <li key={a.key}><ArchiveRow archive={a} name={a.sessionKey ? name(a.sessionKey) : fileName(a.key)} onOpen={() => onOpen({ key: a.key })} /></li>)}</ul>
      <More pages={pages}>Show older archives</More>
    </section>
  );
}

function ArchiveRow({ archive: a, name, onOpen }) {
  return (
    <button type="button" class="p-row p-row-tall" onClick={onOpen}>
      <span class="p-split"><b class="p-words">{name}</b><span class="p-num">{when(a.archivedAt)}</span></span>
      <span class="p-faint">{a.partNumber ? `part ${a.partNumber}` : "whole session"}, {count(a.messageCount, "message")}, {bytes(a.bytes)}</span>
    </button>
  );
}

// placeOf names an archive for people where the list has it.
function placeOf(key, known, name) {
  const a = known.find((k) => k.key === key);
  return a ? `${name(a.sessionKey)}${a.partNumber ? `, part ${a.partNumber}` : ""}` : fileName(key);
}

function Hits({ known, nameOf: name, api, base, words, session, ready, onOpen }) {
  const got = useLoad((signal) => (ready ? api.get(`${base}/archives-search`, { query: { q: words, session, limit: 100 }, signal }) : Promise.resolve(null)), [words, session, ready]);
  const hits = got.data?.hits ?? [];
  return (
    <section class="p-section" aria-label="Found in archives">
      <Status busy={got.busy && !got.data} error={got.error} again={got.reload} what="The search" empty={got.data && hits.length === 0}>No archived message has these words.</Status>
      {got.data && <p class="p-faint" role="status">{count(hits.length, "message")} in {count(got.data.searched, "archive")}{got.data.skipped > 0 && `; ${got.data.skipped} were left out, narrow the search to a session`}</p>}
      {got.data?.damaged?.length > 0 && <p class="p-note">Damaged, and searched as far as they can be read: {got.data.damaged.map(fileName).join(", ")}</p>}
      <ul class="p-list">
        {hits.map((h, i) => (
          <li key={i}>
            <button type="button" class="p-row p-row-tall" onClick={() => onOpen({ key: h.key, line: h.line })}>
              <span class="p-wrap">{h.snippet}</span>
              <span class="p-faint">{h.role === "assistant" ? "Model" : "User"}{h.at && `, ${when(h.at)}`}; line {h.line} of {placeOf(h.key, known, name)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

// One archive: its messages, download, restore.

import { useEffect, useRef, useState } from "preact/hooks";
import { agentPath, sessionPath } from "../api.js";
import { readLines } from "./content.js";
import { bytes, count, fileName, fitTitle, keyFrom, when } from "./format.js";
import { useAct, useLoad } from "./load.js";
import { Original } from "./originals.jsx";
import { Status, Trouble } from "./parts.jsx";

const page = 50;

export function Archive({ api, agent, name, line, info, nameOf, openSession, onBack }) {
  const file = fileName(name), url = `${agentPath(agent)}/archives/${encodeURIComponent(file)}`;
  const got = useLoad(async (signal) => readLines(await api.get(url, { query: { format: "jsonl" }, as: "text", signal })), [url]);
  const back = useRef(null);
  useEffect(() => back.current?.focus(), []);
  const download = useAct();
  return (
    <section class="p-section" aria-label="An archive">
      <p class="p-actions"><button type="button" ref={back} onClick={onBack}>‹ All archives</button></p>
      <h2 class="p-path">{info ? nameOf(info.sessionKey) : file}</h2>
      <p class="p-lead">
        {info ? `${info.partNumber ? `Part ${info.partNumber}` : "Whole session"}, ${count(info.messageCount, "message")}, ${bytes(info.bytes)}, archived ${when(info.archivedAt)}` : got.data && count(got.data.length, "message")}
      </p>
      <p class="p-actions"><button type="button" disabled={download.busy} onClick={() => download.run(() => save(api, url, file))}>Download</button></p>
      <Trouble error={download.error} what="Not downloaded" />
      <Restore api={api} agent={agent} archive={name} of={info ? nameOf(info.sessionKey) : ""} openSession={openSession} />
      <Status busy={got.busy && !got.data} error={got.error} again={got.reload} what="Not readable" empty={got.data?.length === 0}>No message in it.</Status>
      {got.data?.length > 0 && <Messages all={got.data} line={line} />}
    </section>
  );
}

async function save(api, url, file) {
  const href = URL.createObjectURL(await api.get(url, { as: "blob" }));
  const a = document.createElement("a");
  a.href = href;
  a.download = file;
  a.click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser reads it after the click
}

function Messages({ all, line }) {
  const hit = line > 0 ? all.findIndex((m) => m.line === line) : -1;
  const [from, setFrom] = useState(hit > page ? hit - 5 : 0);
  const [to, setTo] = useState(Math.min(all.length, Math.max(page, hit + page)));
  const at = useRef(null);
  useEffect(() => at.current?.scrollIntoView({ block: "center" }), []);
  return (
    <>
      {from > 0 && <button type="button" class="p-more" onClick={() => setFrom(Math.max(0, from - page))}>Show earlier messages</button>}
      <ul class="p-list">
        {all.slice(from, to).map((m) => (
          <li key={m.line} ref={m.line === line ? at : undefined}><Original message={m} from={m.from} at={m.at} mark={m.line === line} open={m.line === line} /></li>
        ))}
      </ul>
      {to < all.length && <button type="button" class="p-more" onClick={() => setTo(to + page)}>Show more of {count(all.length, "message")}</button>}
    </>
  );
}

// How many of the same title are tried before the server's refusal is shown.
const tries = 9;

// restoreAs reads the archive into a session of the title, whose key is made of it; where another
// conversation has that key, of the next number.
async function restoreAs(api, agent, archive, title) {
  for (let n = 1; ; n++) {
    const key = keyFrom(title, agent, n);
    try {
      await api.post(`${sessionPath(key)}/restore`, { archive });
    } catch (e) {
      if (e.status === 409 && n < tries) continue;
      throw e;
    }
    // the messages are there; without the title the list shows the key's words
    await api.patch(sessionPath(key), { title: fitTitle(title) }).catch(() => {});
    return key;
  }
}

// Restore reads the archive into a session that does not exist yet, or is empty.
function Restore({ api, agent, archive, of, openSession }) {
  const [typed, set] = useState(null);
  const title = typed ?? `${of || "Archive"}, restored`;
  const act = useAct();
  const restore = (e) => {
    e.preventDefault();
    act.run(async () => openSession(await restoreAs(api, agent, archive, title.trim())));
  };
  return (
    <>
      <form class="p-search" onSubmit={restore}>
        <input value={title} required maxLength={200} aria-label="Title of the restored conversation" onInput={(e) => set(e.currentTarget.value)} />
        <button type="submit" disabled={act.busy || title.trim() === ""}>{act.busy ? "Restoring…" : "Restore"}</button>
      </form>
      <Trouble error={act.error} what="Not restored" />
    </>
  );
}

// One memory file: read, edit, history, undo.

import { useEffect, useRef, useState } from "preact/hooks";
import { agentPath } from "../api.js";
import { Markdown } from "../markdown.jsx";
import { keep, keptJSON } from "../store.js";
import { readable } from "./content.js";
import { Difference } from "./difference.jsx";
import { Editor } from "./editor.jsx";
import { bytes, when } from "./format.js";
import { useAct, useLoad } from "./load.js";
import { Fold, Status, Sure, Trouble } from "./parts.jsx";

const pathOf = (path) => path.split("/").map(encodeURIComponent).join("/");

// readFile gives {text, etag}; a file that is not there is empty, with no etag.
async function readFile(api, url, signal) {
  try {
    const answer = await api.get(url, { as: "response", signal });
    return { text: await answer.text(), etag: answer.headers.get("etag") ?? "" };
  } catch (e) {
    if (e.status === 404) return { text: "", etag: "", missing: true };
    throw e;
  }
}

// draft gives what was written and neither saved nor thrown away, {text, etag} with the version that it was
// written over: no closed panel and no reload may lose it.
function draft(name) {
  const d = keptJSON(name, null);
  return typeof d?.text === "string" ? { text: d.text, etag: String(d.etag ?? "") } : null;
}

export function File({ api, agent, path, line, onBack }) {
  const base = agentPath(agent), url = `${base}/memory/${pathOf(path)}`;
  const got = useLoad((signal) => readFile(api, url, signal), [url]);
  const name = `memory.${agent}/${path}`, left = draft(name);
  const [mode, setMode] = useState(left ? "edit" : "read");
  const undo = useAct();
  const back = useRef(null);
  useEffect(() => back.current?.focus(), []);
  const f = got.data;
  const undoLast = () => undo.run(async () => {
    await api.post(`${base}/memory-undo`, { path });
    await got.reload();
    return true;
  });
  return (
    <section class="p-section" aria-label={path}>
      <p class="p-actions"><button type="button" ref={back} onClick={onBack}>‹ All files</button></p>
      <h2 class="p-path">{path}</h2>
      <Status busy={got.busy && !f} error={got.error} again={got.reload} what={path} />
      {f && (
        <>
          <p class="p-lead">{f.missing ? "Not written yet." : bytes(new Blob([f.text]).size)}</p>
          {mode !== "edit" && (
            <p class="p-actions">
              <button type="button" onClick={() => setMode("edit")}>{f.missing ? "Write" : "Edit"}</button>
              <button type="button" aria-pressed={mode === "history"} onClick={() => setMode(mode === "history" ? "read" : "history")}>History</button>
              {!f.missing && <Sure question="Bring back what the last edit replaced?" yes="Undo" disabled={undo.busy} onYes={undoLast}>Undo last edit</Sure>}
            </p>
          )}
          <Trouble error={undo.error} what="Not undone" />
          {undo.done && <p class="p-note" role="status">The last edit is undone; the history has it.</p>}
          {mode === "read" && (line > 0 ? <Lines text={f.text} line={line} /> : f.text && <Markdown text={readable(f.text)} />)}
          {mode === "history" && <History api={api} url={url} now={f.text} />}
          {mode === "edit" && (
            <Editor api={api} url={url} file={f} read={(signal) => readFile(api, url, signal)} left={left} keep={(d) => keep(name, JSON.stringify(d))}
              onEnd={() => { keep(name, null); setMode("read"); got.reload(); }} />
          )}
        </>
      )}
    </section>
  );
}

// Lines shows the text as it is written, with the line that a search found in sight.
function Lines({ text, line }) {
  const at = useRef(null);
  useEffect(() => at.current?.scrollIntoView({ block: "center" }), [line]);
  return (
    <div class="p-text p-lines">
      {text.split("\n").map((l, i) => (i + 1 === line ? <mark key={i} ref={at}>{l || " "}</mark> : <span key={i}>{l || " "}</span>))}
    </div>
  );
}

const by = { edit: "Edited", tool: "Edited by the model", undo: "Undone" };

function History({ api, url, now }) {
  const got = useLoad((signal) => api.get(url, { query: { versions: 1 }, signal }), [url, now]);
  const all = [...(got.data?.versions ?? [])].sort((a, b) => b.id - a.id);
  return (
    <>
      <Status busy={got.busy && !got.data} error={got.error} again={got.reload} what="The history" empty={got.data && all.length === 0}>No earlier version: nothing was replaced yet. What is remembered of itself is appended and replaces nothing.</Status>
      <ul class="p-list">
        {all.map((v, i) => (
          <li key={v.id}>
            <Fold summary={<><span class="p-what"><b>{by[v.by] ?? v.by}</b>{v.undone && <span class="p-words"> and undone since</span>}</span><time class="p-num" dateTime={v.at}>{when(v.at)}</time></>}>
              <Version api={api} url={url} id={v.id} newer={i === 0 ? null : all[i - 1].id} now={now} />
            </Fold>
          </li>
        ))}
      </ul>
    </>
  );
}

// Version shows what replaced a version, and the version itself. newer is the next version, null: the file.
function Version({ api, url, id, newer, now }) {
  const read = (v, signal) => api.get(url, { query: { version: v }, as: "text", signal });
  const got = useLoad(async (signal) => Promise.all([read(id, signal), newer === null ? now : read(newer, signal)]), [url, id, newer, now]);
  if (!got.data) return <Status busy={got.busy} error={got.error} again={got.reload} what="The version" />;
  const [before, after] = got.data;
  return (
    <>
      <Difference before={before} after={after} same="The text did not change." />
      <Fold summary="This version whole">{before ? <pre class="p-text" tabIndex={0}>{before}</pre> : <p class="p-faint">Empty.</p>}</Fold>
    </>
  );
}

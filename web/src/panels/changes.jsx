// What was done to the conversation, and why.

import { changes } from "./changes.js";
import { parts } from "./content.js";
import { count, fileName, tokens, when } from "./format.js";
import { useAct } from "./load.js";
import { Originals } from "./originals.jsx";
import { Fold, More, Parts, Status, Sure, Trouble } from "./parts.jsx";

const states = { on: "in effect", undone: "undone", covered: "covered by a later one" };

// client: of a client that keeps the history, what left comes back when the model asks; nobody else undoes it.
export function Changes({ api, path, view, acts, openArchive, onUndone, client }) {
  const rows = changes(acts.items, view.overlays);
  const undo = useAct();
  const lift = (overlay) => undo.run(async () => {
    const { size } = await api.post(`${path}/undo`, { overlay });
    onUndone();
    return size;
  });
  return (
    <section class="p-section" aria-labelledby="p-done">
      <h2 id="p-done">What was done to it, and why</h2>
      <Status busy={acts.busy && !acts.begun} error={acts.error} again={acts.refresh} what="The changes" empty={acts.begun && rows.length === 0}>Nothing yet: the model sees every message as it was said.</Status>
      <Trouble error={undo.error} what="Not undone" />
      {undo.done !== undefined && <p class="p-note" role="status">Undone. The context is {tokens(undo.done)} tokens now{undo.done > view.limit && "; over the limit, so the next call compacts again"}.</p>}
      <ul class="p-list">
        {rows.map((r) => <li key={r.id}><Change row={r} api={api} path={path} openArchive={openArchive} onUndo={client ? null : () => lift(r.overlay)} busy={undo.busy} /></li>)}
      </ul>
      <More pages={acts}>Show earlier changes</More>
    </section>
  );
}

function Change({ row: r, api, path, openArchive, onUndo, busy }) {
  const moved = r.before !== undefined && r.after !== undefined;
  return (
    <Fold class={`p-change p-change-${r.state || "event"}`} summary={(
      <>
        <span class={`p-badge p-badge-${r.kind}`}>{r.title}</span>
        <span class="p-what"><span class="p-words">{moved ? `${tokens(r.before)} → ${tokens(r.after)} tokens` : r.text}</span></span>
        <time class="p-num" dateTime={r.at}>{when(r.at)}</time>
      </>
    )}>
      <p>{r.text}</p>
      <dl class="p-facts">
        {r.why && <div><dt>Why</dt><dd>{r.why}</dd></div>}
        {moved && r.before > r.after && <div><dt>Freed</dt><dd>{tokens(r.before - r.after)} tokens</dd></div>}
        {r.by.length > 0 && <div><dt>By</dt><dd>{r.by.join(", ")}</dd></div>}
        {r.tier && r.tier !== "full" && <div><dt>Summary</dt><dd>{r.tier}</dd></div>}
        {r.memories > 0 && <div><dt>Remembered</dt><dd>{count(r.memories, "memory", "memories")}</dd></div>}
        {r.instructions && <div><dt>Asked for</dt><dd>{r.instructions}</dd></div>}
        {r.state && <div><dt>State</dt><dd>{states[r.state]}</dd></div>}
      </dl>
      <p class="p-actions">
        {r.archive && <button type="button" onClick={() => openArchive(r.archive)}>Open {fileName(r.archive).includes("-part") ? "the archived part" : "the archive"}</button>}
        {onUndo && r.overlay && r.state === "on" && (
          <Sure question={r.kind === "undo" ? "Put the change in effect again?" : "Show the model the originals again?"} yes={r.kind === "undo" ? "Redo" : "Undo"} disabled={busy} onYes={onUndo}>{r.kind === "undo" ? "Redo" : "Undo"}</Sure>
        )}
      </p>
      {r.edits.map((e, i) => <Edit key={i} edit={e} api={api} path={path} many={r.edits.length > 1} />)}
    </Fold>
  );
}

function Edit({ edit: e, api, path, many }) {
  const now = e.block ? parts(e.blocks ?? []) : (e.messages ?? []).flatMap((m) => parts(m.content));
  const what = e.block ? `Block ${e.block} of a message` : e.to && e.to !== e.from ? "A span of messages" : "A message";
  return (
    <>
      {many && <p class="p-part-title">{what}</p>}
      <Fold summary={e.block ? "What stands in its place" : "What the model reads instead"}>{now.length > 0 ? <Parts parts={now} /> : <p class="p-faint">Nothing: it left the view.</p>}</Fold>
      <Fold summary="The originals, word for word"><Originals api={api} path={path} from={e.from} to={e.to || e.from} /></Fold>
    </>
  );
}

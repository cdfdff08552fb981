// Snapshots and branches: their tree, and what is done with them.

import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { sessionPath } from "../api.js";
import { proxied } from "../words.js";
import { Compare } from "./compare.jsx";
import { agentOf, count, nameOf, when } from "./format.js";
import { useAct, useLoad, useNotices } from "./load.js";
import { Status, Trouble } from "./parts.jsx";
import { snapshotID } from "./snapshotfile.js";
import { grow, homeKey, lines, moved, shortKey, told } from "./tree.js";

const PAGE = 1000, MOST = 2000; // nodes that are read at a time, and before somebody asks for more
const FIRST = 150; // rows that are drawn until more are asked for

export function Snapshots({ api, session, exists, live, openSession, sessions, shown }) {
  const [all, setAll] = useState(false);
  const [at, choose] = useState("");
  const [picked, pick] = useState(null); // {id, name}, the first of two
  const [pair, compare] = useState(null); // [a, b], each {id, name}
  const most = useRef(MOST);
  const list = useLoad((signal) => read(api, session, exists, all, most.current, signal), [api, session, exists, all]);
  const older = () => {
    most.current = nodes.length + MOST;
    list.reload();
  };
  const stale = useRef(false);
  useNotices(live, () => {
    stale.current = !shown;
    if (shown) list.reload();
  }, [session]);
  useEffect(() => {
    if (shown && stale.current) list.reload();
    stale.current = false;
  }, [shown]);
  useEffect(() => {
    choose("");
    pick(null);
    compare(null);
  }, [session]);
  if (pair) return <Compare api={api} session={session} pair={pair} onBack={() => compare(null)} />;
  const nodes = list.data?.nodes ?? [];
  const done = (id) => {
    list.reload();
    if (id) choose(id);
  };
  const onCompare = (side) => {
    if (!picked || picked.id === side.id) return pick(picked ? null : side);
    pick(null);
    return compare([picked, side]);
  };
  return (
    <>
      {proxied(session) ? <p class="p-empty">The client of this conversation keeps its history, so it has no snapshots here.</p> : <Take api={api} session={session} exists={exists} onDone={done} openSession={openSession} />}
      {picked && <p class="p-note" role="status">Comparing “{picked.name}”: choose the other one in the tree, or <button type="button" class="inline" disabled={picked.id === session} onClick={() => onCompare({ id: session, name: "this conversation" })}>this conversation as it is</button>. <button type="button" class="inline" onClick={() => pick(null)}>Leave it</button></p>}
      <section class="p-section" aria-labelledby="p-tree">
        <h2 id="p-tree">Tree</h2>
        <p class="p-actions"><label class="p-check"><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> Of all conversations</label></p>
        {list.data ? <Trouble error={list.error} again={list.reload} what="Not up to date" /> : <Status busy={list.busy} error={list.error} again={list.reload} what="The snapshots" />}
        {list.data && nodes.length === 0 && <p class="p-empty">None yet. A snapshot names a place in this conversation; a branch goes on from there, and neither sees what the other says.</p>}
        {list.data?.more && <p class="p-note">These are the {nodes.length.toLocaleString("en")} newest. <button type="button" class="inline" disabled={list.busy} onClick={older}>{list.busy ? "Reading…" : "Read older ones"}</button></p>}
        <Tree key={`${session} ${all}`} nodes={nodes} more={list.data?.more} session={session} all={all} sessions={sessions} at={at} choose={choose} open={(n) => n.kind === "branch" && openSession(n.session)}>
          {(n) => <Node key={n.id} api={api} node={n} nodes={nodes} session={session} picked={picked} onCompare={onCompare} onDone={done} openSession={openSession} />}
        </Tree>
      </section>
      <Bring api={api} openSession={openSession} />
    </>
  );
}

// read gives {nodes, more}: the newest, and whether there are older ones.
async function read(api, session, exists, all, most, signal) {
  if (!all && !exists) return { nodes: [] };
  const path = all ? "/v1/tree" : `${sessionPath(session)}/snapshots`;
  const nodes = [];
  let next;
  do {
    try {
      const page = await api.get(path, { query: { agent: all ? agentOf(session) : undefined, order: "newest", cursor: next, limit: PAGE }, signal });
      nodes.push(...page.nodes);
      next = page.next;
    } catch (e) {
      if (!all && e.status === 404) return { nodes: [] };
      throw e;
    }
  } while (next && nodes.length < most);
  return { nodes, more: Boolean(next) };
}

// Take takes a snapshot of the session that is shown.
function Take({ api, session, exists, onDone, openSession }) {
  const [name, set] = useState("");
  const [branching, branch] = useState(false);
  const act = useAct();
  const path = sessionPath(session);
  const go = (e) => {
    e.preventDefault();
    act.run(async () => {
      const node = await api.post(`${path}/snapshots`, name.trim() ? { name: name.trim() } : {});
      set("");
      onDone(node.id);
      return node;
    });
  };
  if (branching) return <Branch api={api} path={path} from="this conversation as it is" onCancel={() => branch(false)} openSession={openSession} onDone={onDone} />;
  return (
    <section class="p-section" aria-labelledby="p-take">
      <h2 id="p-take">This conversation</h2>
      <form class="p-search" onSubmit={go} aria-label="Take a snapshot">
        <input value={name} maxLength={100} aria-label="Name of the snapshot" placeholder="Name of the snapshot" onInput={(e) => set(e.currentTarget.value)} />
        <button type="submit" disabled={!exists || act.busy}>Snapshot</button>
        <button type="button" disabled={!exists} onClick={() => branch(true)}>Branch…</button>
      </form>
      {!exists && <p class="p-faint">Nothing was said here yet.</p>}
      {act.done && <p class="p-faint" role="status">“{act.done.name}” is taken, with {count(act.done.message_count, "message")}.</p>}
      <Trouble error={act.error} what="No snapshot was taken" />
    </section>
  );
}

// Branch asks how a branch begins, and makes it.
function Branch({ api, path, snapshot, from, onCancel, openSession, onDone }) {
  const id = useId();
  const [name, setName] = useState(""), [orientation, setOrientation] = useState(""), [trim, setTrim] = useState(true);
  const act = useAct();
  const first = useRef(null);
  useEffect(() => first.current?.focus(), []);
  const go = (e) => {
    e.preventDefault();
    const body = { trim, snapshot, name: name.trim() || undefined, orientation: orientation.trim() || undefined };
    act.run(async () => {
      const made = await api.post(`${path}/branch`, body);
      onDone(made.key);
      openSession(made.key);
    });
  };
  return (
    <form class="p-section p-form" aria-label={`Branch from ${from}`} onSubmit={go} onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); onCancel(); } }}>
      <h2 class="p-words">Branch from {from}</h2>
      <label for={`${id}-name`}>Name, or one is made <input id={`${id}-name`} ref={first} value={name} maxLength={100} onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label for={`${id}-say`}>What it is told first <textarea id={`${id}-say`} rows={3} maxLength={8000} value={orientation} placeholder="You explore the other way: …" onInput={(e) => setOrientation(e.currentTarget.value)} /></label>
      <label class="p-check"><input type="checkbox" checked={trim} onChange={(e) => setTrim(e.currentTarget.checked)} /> Trimmed: long results of tools stay behind, and can be recalled</label>
      <p class="p-actions"><button type="submit" class="p-primary" disabled={act.busy}>{act.busy ? "Branching…" : "Branch"}</button><button type="button" onClick={onCancel}>Cancel</button></p>
      <Trouble error={act.error} what="No branch was made" />
    </form>
  );
}

// Tree is the rows with their lines. One is chosen, and beneath it stands what can be done with it.
function Tree({ nodes, more, session, all, sessions, at, choose, open, children }) {
  const { rows, circles } = useMemo(() => grow(nodes, true), [nodes]);
  const [most, setMost] = useState(FIRST);
  const box = useRef(null);
  const here = rows.findIndex((r) => r.node.id === at);
  const drawn = rows.slice(0, Math.max(most, here + 1));
  const stop = Math.max(0, drawn.findIndex((r) => r.node.id === at));
  const onKey = (e) => {
    if (e.target.getAttribute("role") !== "treeitem") return;
    const i = Number(e.target.dataset.at), to = moved(e.key, i, drawn);
    if (to !== null) box.current.querySelector(`[data-at="${to}"]`)?.focus();
    else if (e.key === "Enter" && e.ctrlKey) open(drawn[i].node);
    else if (e.key === "Enter" || e.key === " ") choose(at === drawn[i].node.id ? "" : drawn[i].node.id);
    else return;
    e.preventDefault();
  };
  if (rows.length === 0) return null;
  const left = rows.length - drawn.length;
  return (
    <>
      {circles > 0 && <p class="p-note">{count(circles, "node")} led back to {circles === 1 ? "itself" : "themselves"}; the circle is cut.</p>}
      <div class="p-tree" role="tree" aria-label="Snapshots and branches" ref={box} onKeyDown={onKey}>
        {drawn.map((r, i) => (
          <div key={r.node.id} role="presentation">
            <Row row={r} i={i} chosen={r.node.id === at} stop={i === stop} here={r.node.kind === "branch" && r.node.session === session} more={more} all={all} sessions={sessions} choose={choose} />
            {r.node.id === at && children(r.node)}
          </div>
        ))}
      </div>
      {left > 0 && <button type="button" class="p-more" onClick={() => setMost(drawn.length + 500)}>Show {Math.min(500, left).toLocaleString("en")} more of {rows.length.toLocaleString("en")}</button>}
    </>
  );
}

function Row({ row, i, chosen, stop, here, more, all, sessions, choose }) {
  const { node: n, depth } = row, branch = n.kind === "branch";
  const of = all && !branch && nameOf(sessions.find((s) => s.key === n.session) ?? { key: n.session });
  const title = branch ? n.name || shortKey(n.session) : n.name;
  return (
    <div class={`p-node ${chosen ? "p-chosen" : ""}`} role="treeitem" aria-level={depth + 1} aria-selected={chosen} tabIndex={stop ? 0 : -1} data-at={i} aria-current={here ? "true" : undefined}
      aria-label={`${title}, ${told(n)}${here ? ", shown now" : ""}`} onClick={() => choose(chosen ? "" : n.id)}>
      <Lines row={row} />
      <span class="p-nodetext" title={n.id}>
        <span class="p-what"><Kind branch={branch} /> <b>{title}</b>{here && <span class="p-badge">here</span>}</span>
        <span class="p-faint">{told(n)}{of && `; of ${of}`}{!branch && n.session.includes("#") && `; in #${n.session.split("#")[1]}`}{row.lost && (more ? "; its parent is an older one" : "; its parent is not here")}</span>
      </span>
    </div>
  );
}

// Lines are the branches of the drawn tree before a row.
function Lines({ row }) {
  const { marks, more } = lines(row), w = 16;
  if (marks.length === 0) return null;
  return (
    <svg class="p-rail" width={marks.length * w + (more ? w : 0)} viewBox={`0 0 ${marks.length * w + (more ? w : 0)} 100`} preserveAspectRatio="none" aria-hidden="true">
      {more && <path d="M2 50h10" stroke-dasharray="2 3" />}
      {marks.map((m, i) => {
        const x = (more ? w : 0) + i * w + 6;
        return m !== " " && <path key={i} d={`M${x} 0V${m === "└" ? 50 : 100}${m === "│" ? "" : `M${x} 50H${x + 10}`}`} />;
      })}
    </svg>
  );
}

const Kind = ({ branch }) => (
  <svg class="p-mark p-kind" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
    {branch ? <path d="M3 1.5v9M3 7c0-3 6-1 6-4.5M9 1v2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" /> : <path d="M6 .8L11.2 6 6 11.2.8 6z" />}
  </svg>
);

// Node is what is told of a node, and done with it.
function Node({ api, node: n, nodes, session, picked, onCompare, onDone, openSession }) {
  const [doing, act] = useState("");
  const saving = useAct();
  const branch = n.kind === "branch", name = n.name || shortKey(n.session);
  const path = sessionPath(n.session), side = { id: n.id, name };
  const save = () => saving.run(async () => {
    const file = await api.get(`${path}/snapshots/${encodeURIComponent(n.id)}/archive`, { as: "blob" });
    const url = URL.createObjectURL(file);
    Object.assign(document.createElement("a"), { href: url, download: `${n.id}.tar.gz` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  });
  const end = () => act("");
  return (
    <div class="p-folded p-nodebox">
      {n.description && <p class="p-wrap">{n.description}</p>}
      {n.tags?.length > 0 && <p>{n.tags.map((t) => <span key={t} class="p-badge">{t}</span>)}</p>}
      <p class="p-faint">{when(n.created_at)}, {n.id}</p>
      {doing === "" && (
        <p class="p-actions">
          {branch && n.session !== session && <button type="button" class="p-primary" onClick={() => openSession(n.session)}>Open</button>}
          <button type="button" onClick={() => act("branch")}>Branch…</button>
          {branch && <button type="button" onClick={() => act("merge")}>Merge back…</button>}
          <button type="button" aria-pressed={picked?.id === n.id} onClick={() => onCompare(side)}>{picked && picked.id !== n.id ? `Compare with “${picked.name}”` : "Compare"}</button>
          {!branch && <button type="button" disabled={saving.busy} onClick={save}>{saving.busy ? "Exporting…" : "Export"}</button>}
          {!branch && !nodes.some((o) => o.parent === n.id) && <button type="button" onClick={() => act("remove")}>Remove…</button>}
        </p>
      )}
      <Trouble error={saving.error} what="Not exported" />
      {doing === "branch" && <Branch api={api} path={path} snapshot={branch ? undefined : n.id} from={`“${name}”`} onCancel={end} openSession={openSession} onDone={onDone} />}
      {doing === "remove" && <Remove api={api} path={`${path}/snapshots/${encodeURIComponent(n.id)}`} name={name} onCancel={end} onDone={onDone} />}
      {doing === "merge" && <Merge api={api} from={n.session} to={homeKey(n, nodes)} name={name} onCancel={end} openSession={openSession} />}
    </div>
  );
}

// Remove takes a snapshot out of the tree.
function Remove({ api, path, name, onCancel, onDone }) {
  const act = useAct();
  const first = useRef(null);
  useEffect(() => first.current?.focus(), []);
  const go = (e) => {
    e.preventDefault();
    act.run(async () => {
      await api.delete(path);
      onDone();
    });
  };
  return (
    <form class="p-form" aria-label={`Remove “${name}”`} onSubmit={go} onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); onCancel(); } }}>
      <p>“{name}” leaves the tree for good. No message goes with it.</p>
      <p class="p-actions"><button type="submit" disabled={act.busy}>{act.busy ? "Removing…" : "Remove"}</button><button type="button" ref={first} onClick={onCancel}>Keep it</button></p>
      <Trouble error={act.error} what="Not removed" />
    </form>
  );
}

// Merge brings the outcome of a branch back as a note.
function Merge({ api, from, to, name, onCancel, openSession }) {
  const id = useId();
  const [note, set] = useState("");
  const act = useAct();
  const field = useRef(null);
  useEffect(() => field.current?.focus(), []);
  const go = (e) => {
    e.preventDefault();
    act.run(() => api.post(`${sessionPath(to)}/merge`, { from, note: note.trim() || undefined }));
  };
  return (
    <form class="p-form" aria-label={`Merge “${name}” back`} onSubmit={go} onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); onCancel(); } }}>
      <label for={id}>What came of it, for {shortKey(to)} <textarea id={id} ref={field} rows={3} maxLength={8000} value={note} placeholder="Empty: what was said there last" onInput={(e) => set(e.currentTarget.value)} /></label>
      <p class="p-actions"><button type="submit" class="p-primary" disabled={act.busy}>{act.busy ? "Merging…" : "Merge back"}</button><button type="button" onClick={onCancel}>{act.done ? "Close" : "Cancel"}</button></p>
      {act.done && <p class="p-note" role="status">{act.done.again ? "It is there already: nothing was said in the branch since." : "It stands as a note at the end, and is read with the next message."} <button type="button" class="inline" onClick={() => openSession(to)}>Open {shortKey(to)}</button></p>}
      <Trouble error={act.error} what="Not merged" />
    </form>
  );
}

// Bring reads the file of a snapshot into a conversation of its own.
function Bring({ api, openSession }) {
  const act = useAct();
  const field = useRef(null);
  const go = (e) => {
    const file = e.currentTarget.files[0];
    e.currentTarget.value = "";
    if (!file) return;
    act.run(async () => {
      const made = await api.put(`/v1/snapshots/${encodeURIComponent(await snapshotID(file))}/archive`, file);
      openSession(made.key);
    });
  };
  return (
    <section class="p-section">
      <p class="p-actions">
        <input ref={field} type="file" accept=".gz,.tgz,application/gzip" class="p-hide" tabIndex={-1} aria-label="File of a snapshot" onChange={go} />
        <button type="button" disabled={act.busy} onClick={() => field.current.click()}>{act.busy ? "Importing…" : "Import a snapshot…"}</button>
      </p>
      <Trouble error={act.error} what="Not imported" />
    </section>
  );
}

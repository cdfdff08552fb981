// What the model sees now, what was done to it, and how it came to that.

import { useEffect, useRef } from "preact/hooks";
import { sessionPath } from "../api.js";
import { proxied } from "../words.js";
import { Blocks } from "./blocks.jsx";
import { Changes } from "./changes.jsx";
import { Client } from "./client.jsx";
import { Cost } from "./cost.jsx";
import { marked } from "./episodes.js";
import { Episodes } from "./episodes.jsx";
import { fillOf, kindName, kindOf, kindOrder, tokens } from "./format.js";
import { useLoad, useNotices, usePages } from "./load.js";
import { Paging } from "./paging.jsx";
import { Gauge, Mark, Status, Trouble } from "./parts.jsx";
import { Timeline } from "./timeline.jsx";

const none = { view: null, calls: [], acts: [] };

// missing turns the 404 of a session that nobody has written to yet into what an empty one would give.
const missing = (empty) => (e) => {
  if (e.status === 404) return empty;
  throw e;
};

export function Context({ api, session, exists, live, openArchive, openSession, shown }) {
  const path = sessionPath(session);
  const view = useLoad(async (signal) => exists ? api.get(`${path}/view`, { query: { messages: 0 }, signal }).catch(missing(none.view)) : none.view, [api, session, exists]);
  const calls = usePages(async (before, signal) => {
    if (!exists) return { items: none.calls };
    const page = await api.get(`${path}/anatomy`, { query: { before, limit: 100 }, signal }).catch(missing(none));
    return { items: page.calls, next: page.next };
  }, [api, session, exists], (c) => c.n);
  const acts = usePages(async (before, signal) => {
    if (!exists) return { items: none.acts };
    const page = await api.get(`${path}/log`, { query: { messages: 0, before, limit: 100 }, signal }).catch(missing({ entries: none.acts }));
    return { items: page.entries, next: page.next };
  }, [api, session, exists], (e) => e.id);
  const info = useLoad(async (signal) => exists && proxied(session) ? api.get(path, { signal }).catch(missing(null)) : null, [api, session, exists]);
  const client = proxied(session) && { call: calls.items.reduce((a, b) => (a && a.n > b.n ? a : b), null) };
  const marks = marked(view.data, client?.call);
  const told = useLoad(async (signal) => marks ? api.get(`${path}/episodes`, { query: { limit: 100 }, signal }).catch(missing(null)) : null, [api, session, marks]);
  const reload = () => {
    view.reload();
    if (marks) told.reload();
    if (proxied(session)) info.reload();
    calls.refresh();
    acts.refresh();
  };
  const stale = useRef(false);
  useNotices(live, () => {
    stale.current = !shown;
    if (shown) reload();
  }, [session]);
  useEffect(() => {
    if (shown && stale.current) reload();
    stale.current = false;
  }, [shown]);

  if (view.data === undefined) return <Status busy={view.busy} error={view.error} again={reload} what="The view" />;
  if (view.data === null) return <div class="p-empty"><p>Nothing was said here yet. With the first message this shows what the model sees, and what becomes of it.</p></div>;
  return (
    <>
      <Trouble error={view.error} again={reload} what="Not up to date" />
      <Fill view={client ? sent(view.data, client.call) : view.data} client={client} />
      <Cost api={api} path={path} session={session} view={view.data} openSession={openSession} client={Boolean(client)} />
      <Timeline calls={calls} acts={acts} view={view.data} />
      {client && <Client calls={calls} info={info.data} />}
      {marks && <Episodes told={told} again={reload} />}
      <Paging calls={calls} />
      <Blocks api={api} path={path} view={view.data} acts={acts} client={client} />
      <Changes api={api} path={path} view={view.data} acts={acts} openArchive={openArchive} onUndone={reload} client={client} />
    </>
  );
}

// sent is the view of a conversation whose client keeps the history, as far as its newest call tells: system text and tools are
// the client's, and nothing is compacted, so the window is the limit.
function sent(view, call) {
  const window = call?.window || view.window;
  return { ...view, system: { tokens: 0 }, tools: [], size: call?.context || view.size, window, limit: window, model: call?.model || call?.requested };
}

// portions are what the view is made of. What they leave of its size are the frames of messages and what
// a provider counts otherwise than our estimate.
function portions(view) {
  const sum = new Map([["system", view.system.tokens], ["tools", view.tools.reduce((n, t) => n + t.tokens, 0)]]);
  for (const it of view.items) sum.set(kindOf(it), (sum.get(kindOf(it)) ?? 0) + it.tokens);
  return kindOrder.filter((k) => sum.get(k) > 0).map((kind) => ({ kind, tokens: sum.get(kind) }));
}

function Fill({ view, client }) {
  const { share, level } = fillOf(view.size, view.limit), over = level === "over";
  const all = portions(view);
  return (
    <section class="p-section" aria-labelledby="p-fill">
      <h2 id="p-fill" class="p-fill">
        <span class={level ? `p-big p-${level}` : "p-big"}>{share}</span> of the {client ? "window" : "limit"}{level === "near" && !client && ", compacted soon"}
      </h2>
      {client ? <p class="p-lead">{tokens(view.size)} of {tokens(view.limit)} tokens with the newest answer, what the client says beside the messages included.</p> : <p class="p-lead">{tokens(view.size)} of {tokens(view.limit)} tokens; {over ? "over the limit, so it is compacted before the next call" : `${tokens(view.limit - view.size)} left until it is compacted`}</p>}
      <Gauge label="Context" size={view.size} limit={view.limit} whole={view.window} kinds={all} />
      <ul class="p-legend" aria-label="What it is made of">
        {all.map((p) => <li key={p.kind}><Mark kind={p.kind} /> {kindName(p.kind)} <b>{tokens(p.tokens)}</b></li>)}
      </ul>
      <dl class="p-facts">
        <div><dt>Model</dt><dd>{view.model || "none"}</dd></div>
        <div><dt>Window</dt><dd>{tokens(view.window)}{view.windowFrom && `: ${view.windowFrom}`}</dd></div>
        {!client && <div><dt>Kept free for the answer</dt><dd>{tokens(view.reserve)}</dd></div>}
        {!client && <div><dt>Kept word for word</dt><dd>the newest {tokens(view.keep)}</dd></div>}
        {client && <div><dt>Messages that the client sent</dt><dd>{tokens(client.call?.historyEventCount)}</dd></div>}
        {!client && <div><dt>Counted by</dt><dd>{view.anchored ? "the provider, and an estimate of what came since" : "an estimate"}</dd></div>}
        <div><dt>Changes in effect</dt><dd>{view.overlays.length}</dd></div>
      </dl>
    </section>
  );
}

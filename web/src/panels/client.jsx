// What became of the requests of a client that keeps its history itself.

import { served, tracksOf, treatmentName } from "./client.js";
import { bytes, count, tokens, when } from "./format.js";
import { Fold } from "./parts.jsx";

export function Client({ calls, info }) {
  const got = served(calls.items);
  if (!got) return null;
  return (
    <section class="p-section" aria-labelledby="p-client">
      <h2 id="p-client">The client's requests</h2>
      <p class="p-lead">{treatmentName(got.treatment)}.</p>
      <dl class="p-facts">
        <div><dt>Requests{calls.next && ", of those that are loaded"}</dt><dd>{tokens(got.calls)}{got.legs > got.calls && `, in ${count(got.legs, "call")} of the API`}</dd></div>
        {got.phantom > 0 && <div><dt>Asked of Tidemark by the model</dt><dd>{count(got.phantom, "time")}</dd></div>}
        {got.trimmed > 0 && <div><dt>Trimmed</dt><dd>{bytes(got.trimmed)}</dd></div>}
        <div><dt>Sent on untouched</dt><dd>{got.untouchedCount > 0 ? `${count(got.untouchedCount, "request")} of ${got.calls}` : "none"}</dd></div>
      </dl>
      {got.untouchedCount > 0 && <p role="status">The newest was sent on as it came, with nothing saved: {got.untouched[0].why}.</p>}
      <Reasons rows={got.untouched} title="Why they were sent on untouched" />
      <Reasons rows={got.failed} title="What failed" />
      <Tracks of={tracksOf(info)} />
    </section>
  );
}

// Tracks are the other histories of the client: each can be opened.
const Tracks = ({ of }) => of && (
  <>
    <p>This is track {of.here}{of.main && ", the longest"}. Other histories of this client:</p>
    <ul class="p-list" aria-label="Other tracks">
      {of.others.map((t) => (
        <li key={t.key} class="p-split">
          <a class="p-wrap" href={`#/s/${encodeURIComponent(t.key)}`}>{t.n}: {t.title || "without a title"}{t.main && " (the longest)"}</a>
          <span class="p-num">{count(t.messages, "message")}, {when(t.updatedAt)}</span>
        </li>
      ))}
    </ul>
    {of.more > 0 && <p>and {of.more} older</p>}
  </>
);

const Reasons = ({ rows, title }) => rows.length > 0 && (
  <Fold summary={title}>
    <ul class="p-list">{rows.map((r) => <li key={r.n} class="p-split"><span class="p-wrap">{r.why}</span><span class="p-num">{when(r.at)}</span></li>)}</ul>
  </Fold>
);

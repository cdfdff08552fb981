// Two branches or snapshots of a conversation, side by side.

import { few, count, tokens, when } from "./format.js";
import { useLoad } from "./load.js";
import { Status } from "./parts.jsx";
import { shortKey, speaker } from "./tree.js";

export function Compare({ api, session, pair: [a, b], onBack }) {
  const got = useLoad((signal) => api.get("/v1/compare", { query: { a: a.id, b: b.id, session }, signal }), [a.id, b.id]);
  const v = got.data;
  return (
    <>
      <p class="p-actions"><button type="button" onClick={onBack}>Back to the tree</button></p>
      <section class="p-section" aria-labelledby="p-compare">
        <h2 id="p-compare">Side by side</h2>
        {!v && <Status busy={got.busy} error={got.error} again={got.reload} what="The comparison" />}
        {v && (
          <>
            <p class="p-lead">{v.common.messages > 0 ? `They share ${count(v.common.messages, "message")}${v.common.at ? `, up to ${when(v.common.at)}` : ""}.` : "They have no message in common."}</p>
            <div class="p-pair">{[[a, v.a], [b, v.b]].map(([asked, side]) => <Side key={asked.id} name={asked.name} side={side} />)}</div>
          </>
        )}
      </section>
    </>
  );
}

const used = (u) => (u?.input_tokens ?? 0) + (u?.cache_read_input_tokens ?? 0) + (u?.cache_creation_input_tokens ?? 0);

function Side({ name, side: s }) {
  const tools = s.tools ?? [], files = s.files ?? [], models = s.models ?? [], said = s.previews ?? [];
  return (
    <article class="p-side" aria-label={name}>
      <h3 title={s.id}>{name}</h3>
      <p class="p-faint">{shortKey(s.key)}</p>
      <dl class="p-facts">
        <div><dt>Messages since</dt><dd>{tokens(s.messagesSince)}</dd></div>
        <div><dt>Context</dt><dd>{few(s.contextTokens)} tokens</dd></div>
        <div><dt>Read, written since</dt><dd>{few(used(s.usage))}, {few(s.usage?.output_tokens ?? 0)}</dd></div>
        {models.length > 0 && <div><dt>Models</dt><dd>{models.join(", ")}</dd></div>}
      </dl>
      {tools.length > 0 && <><h4>Tools</h4><ul class="p-tools">{tools.slice(0, MOST).map((t) => <li key={t.name}><span class="p-what">{t.name}</span><span class="p-num">{t.calls}</span></li>)}</ul><Left n={tools.length - MOST} /></>}
      {files.length > 0 && <><h4>Files</h4><ul class="p-tools">{files.slice(0, MOST).map((f) => <li key={f} class="p-wrap">{f}</li>)}</ul><Left n={files.length - MOST} /></>}
      {s.clipped && <p class="p-faint">Tools and files are of its first messages.</p>}
      <h4>Outcome</h4>
      {s.outcome ? <p class="p-outcome" tabIndex={0}>{s.outcome}</p> : <p class="p-faint">Nothing was answered since.</p>}
      {said.length > 0 && <><h4>Said since</h4><ol class="p-said">{said.map((m) => <li key={m.id} class={speaker(m) === "You" ? "p-said-user" : ""}><b>{speaker(m)}</b> {m.text}</li>)}</ol></>}
      {s.more && <p class="p-faint">There is more.</p>}
    </article>
  );
}

const MOST = 12;
const Left = ({ n }) => n > 0 && <p class="p-faint">and {n} more</p>;

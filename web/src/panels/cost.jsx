// What the context costs with the next turn, and what a trimmed branch would.

import { useEffect, useId, useState } from "preact/hooks";
import { keep, kept } from "../store.js";
import { barsOf, paysOf } from "./cost.js";
import { money, tokens } from "./format.js";
import { useAct, useLoad } from "./load.js";
import { Fold, Trouble } from "./parts.jsx";

export function Cost({ api, path, session, view, client, openSession }) {
  const [model, setModel] = useState(kept("cost") ?? "");
  const got = useLoad((signal) => api.get(`${path}/cost`, { query: { model }, signal }), [api, path, model]);
  useEffect(() => { got.reload(); }, [view]);
  const act = useAct();
  const v = got.data;
  if (!v) return got.error ? <Trouble error={got.error} again={got.reload} what="The cost" /> : null;
  const choose = (e) => {
    keep("cost", e.currentTarget.value || null);
    setModel(e.currentTarget.value);
  };
  const trim = () => act.run(async () => openSession((await api.post(`${path}/trim`, {})).key));
  const gain = v.trim.before - v.trim.after;
  return (
    <section class="p-section" aria-labelledby="p-cost">
      <h2 id="p-cost" class="p-fill">{v.next ? <><span class="p-big">{money(v.next.likely)}</span> to read with the next turn</> : "Cost"}</h2>
      {v.next ? <p class="p-lead">{money(v.next.cached)} when all of it is in the cache, {money(v.next.uncached)} when nothing is.</p> : <p class="p-lead">{v.why ? "The prices of this model are not known; choose one whose are." : ""}</p>}
      {gain > 0 && <Bars trim={v.trim} />}
      <p>{gain > 0 ? <>A trimmed branch would have {tokens(gain)} tokens less ({Math.round(v.trim.reduction)} %).{v.next && ` ${paysOf(v.trim)}`}</> : "There is nothing to trim."}</p>
      <p class="p-actions">
        <label class="p-check">Prices of <Models all={v.models} is={model} now={v.model} onChange={choose} /></label>
        {gain > 0 && !client && <button type="button" disabled={act.busy} onClick={trim}>{act.busy ? "Trimming…" : "Make a trimmed branch"}</button>}
      </p>
      <Trouble error={act.error} what="No branch was made" />
      {v.price && (
        <Fold summary="How this is reckoned">
          <dl class="p-facts">
            <div><dt>Model</dt><dd>{v.price.name}</dd></div>
            <div><dt>A million tokens read, from the cache</dt><dd>{money(v.price.cache_read)}</dd></div>
            <div><dt>Written to the cache</dt><dd>{money(v.price.cache_write)}</dd></div>
            <div><dt>Answered</dt><dd>{money(v.price.output)}</dd></div>
            <div><dt>Share that comes from the cache</dt><dd>{Math.round(100 * v.hitRate)} %, {v.measured ? "measured here" : "assumed"}</dd></div>
            {v.spent.dollars > 0 && <div><dt>All calls of this session, at these prices</dt><dd>{money(v.spent.dollars)}</dd></div>}
            {v.trim.branch && <div><dt>To begin with the trimmed context</dt><dd>{money(v.trim.branch.first)}, then {money(v.trim.branch.later)} a turn</dd></div>}
            {v.trim.penalty > 0 && <div><dt>A trim costs once, and saves a turn</dt><dd>{money(v.trim.penalty)}, {money(v.trim.savings)}</dd></div>}
            {v.trim.live && <div><dt>The same, with what stays in the cache</dt><dd>{v.trim.live.cold ? "nothing: the cache is cold anyway" : `${money(v.trim.live.penalty)}, ${money(v.trim.live.savings)}`}</dd></div>}
          </dl>
          <p class="p-faint">Prices of {v.price.date}, {v.price.source}</p>
        </Fold>
      )}
    </section>
  );
}

function Models({ all, is, now, onChange }) {
  return (
    <select value={is} onChange={onChange} aria-label="Prices of which model">
      <option value="">{now ? `this one (${now})` : "this one"}</option>
      {all.map((m) => <option key={m} value={m}>{m}</option>)}
    </select>
  );
}

// Bars are the context as it is, and trimmed.
function Bars({ trim }) {
  const id = useId();
  const [now, after, same] = barsOf(trim, 640);
  return (
    <svg class="p-costbars" viewBox="0 0 640 62" role="img" aria-labelledby={id}>
      <title id={id}>{`Now ${tokens(trim.before)} tokens, trimmed ${tokens(trim.after)}`}</title>
      <rect class="p-free" x="0" y="4" width="640" height="24" rx="4" /><rect class="p-costnow" x="0" y="4" width={now} height="24" rx="4" />
      <rect class="p-free" x="0" y="34" width="640" height="24" rx="4" /><rect class="p-costcut" x="0" y="34" width={after} height="24" rx="4" /><rect class="p-costsame" x="0" y="34" width={same} height="24" rx="4" />
      <text x="8" y="22">now {tokens(trim.before)}</text><text x="8" y="52">trimmed {tokens(trim.after)}</text>
    </svg>
  );
}

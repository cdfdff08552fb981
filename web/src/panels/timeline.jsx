// How the context came to its size: a chart of the calls, what they used and what that cost.

import { useId, useState } from "preact/hooks";
import { keep, keptJSON } from "../store.js";
import { count, few, money, tokens, when } from "./format.js";
import { Fold, More, Status } from "./parts.jsx";
import { usePick } from "./pick.js";
import { Prices } from "./prices.jsx";
import { limits, linear, stairs, ticks } from "./scale.js";
import { since, steps, totals } from "./series.js";
import { cost, fields, pricesOf, total } from "./usage.js";

const box = { width: 640, top: 12, left: 66, right: 4, chart: 170, gap: 30, bars: 54 };
const bottom = box.top + box.chart;

export function Timeline({ calls, acts, view }) {
  const [prices, setPrices] = useState(() => pricesOf(keptJSON("prices", {})));
  const all = since(steps(calls.items, acts.items), Boolean(calls.next));
  const models = [...new Set([...all.map((s) => s.model).filter(Boolean), ...(view.model ? [view.model] : [])])];
  const change = (next) => {
    setPrices(next);
    keep("prices", JSON.stringify(next));
  };
  return (
    <section class="p-section" aria-labelledby="p-course">
      <h2 id="p-course">How it came to this</h2>
      <Status busy={calls.busy && !calls.begun} error={calls.error ?? acts.error} again={() => { calls.refresh(); acts.refresh(); }} what="The course" empty={calls.begun && all.length === 0}>No call of a model yet.</Status>
      {all.length > 0 && <Chart all={all} prices={prices} />}
      {all.length > 0 && <Sums sums={totals(all, prices)} more={Boolean(calls.next)} />}
      <More pages={calls}>Load earlier calls</More>
      {all.length > 0 && <Fold summary="As a table"><Table all={all} prices={prices} /></Fold>}
      <Fold summary="Prices of your own, for the calls above"><Prices models={models} prices={prices} onChange={change} /></Fold>
    </section>
  );
}

function Sums({ sums, more }) {
  const inner = total(sums.inner);
  return (
    <dl class="p-facts">
      <div><dt>Calls</dt><dd>{tokens(sums.calls)}{more && ", more are not loaded"}</dd></div>
      {fields.map(([name, title]) => sums.usage[name] > 0 && <div key={name}><dt>{title}</dt><dd>{few(sums.usage[name])} tokens</dd></div>)}
      {inner > 0 && <div><dt>Used by compactions</dt><dd>{few(inner)} tokens</dd></div>}
      <div><dt>Cost, at prices of your own</dt><dd>{sums.cost === null ? "enter prices below" : money(sums.cost)}</dd></div>
    </dl>
  );
}

const title = (s) => ({ call: "Call", compaction: "Compacted", reset: "Reset" })[s.kind];

function say(s, prices) {
  const head = `${title(s)}, ${when(s.at)}: ${tokens(s.before)} → ${tokens(s.after)} tokens`;
  if (s.kind !== "call") return head;
  const c = cost(s.usage, prices[s.model]);
  const cached = s.usage?.cache_read_input_tokens > 0 ? `, ${tokens(s.usage.cache_read_input_tokens)} of the input from cache` : "";
  return `${head}; ${tokens(s.usage?.output_tokens)} written${cached}${c ? `; ${money(c)}` : ""}`;
}

function Chart({ all, prices }) {
  const id = useId(), { now, on } = usePick(all.length, box);
  const most = Math.max(...all.map((s) => Math.max(s.before, s.after, s.limit ?? 0)));
  const scale = ticks(most), y = linear(scale.at(-1), bottom, box.top);
  const inside = box.width - box.left - box.right, x = (i) => box.left + (inside * i) / all.length;
  const costs = all.map((s) => (s.kind === "call" ? cost(s.usage, prices[s.model]) : null));
  const priced = all.every((s, i) => s.kind !== "call" || costs[i] !== null);
  const bar = (i) => (all[i].kind !== "call" ? 0 : priced ? costs[i] : total(all[i].usage));
  const tallest = Math.max(...all.map((_, i) => bar(i)));
  const floor = tallest > 0 ? bottom + box.gap + box.bars : bottom;
  const wide = Math.min(20, (0.8 * inside) / all.length);
  const z = linear(tallest, floor, floor - box.bars);
  const n = (kind) => all.filter((s) => s.kind === kind).length;
  return (
    <figure class="p-chart">
      <svg viewBox={`0 0 ${box.width} ${floor + 4}`} role="img" tabindex={0} aria-labelledby={`${id}-name`} aria-describedby={`${id}-now`} {...on}>
        <title id={`${id}-name`}>{`Tokens of the context over ${count(n("call"), "call")}, ${count(n("compaction"), "compaction")} and ${count(n("reset"), "reset")}. Arrow keys go through them.`}</title>
        {scale.map((v) => <g key={v}><line class="p-grid" x1={box.left} x2={box.width - box.right} y1={y(v)} y2={y(v)} /><text class="p-axis" x={box.left - 6} y={y(v) + 6} text-anchor="end">{few(v)}</text></g>)}
        <path class="p-area" d={stairs(all, x, y, bottom)} />
        <path class="p-line" d={stairs(all, x, y)} />
        <path class="p-limit-line" d={limits(all, x, y)} />
        {all.map((s, i) => s.kind === "compaction" && <path key={i} class="p-drop" d={`M${x(i + 0.5) - 5} ${y(s.after) + 3}h10l-5 7z`} />)}
        {all.map((s, i) => s.kind === "reset" && <line key={i} class="p-cut" x1={x(i + 0.5)} x2={x(i + 0.5)} y1={box.top} y2={floor} />)}
        {tallest > 0 && <text class="p-axis" x={box.left} y={bottom + box.gap - 8}>{priced ? `cost of each call, up to ${money(tallest)}` : `tokens used by each call, up to ${few(tallest)}`}</text>}
        {all.map((s, i) => bar(i) > 0 && <rect key={i} class="p-bar" x={x(i + 0.5) - wide / 2} width={wide} y={z(bar(i))} height={floor - z(bar(i))} />)}
        {now !== null && <rect class="p-now" x={x(now)} width={inside / all.length} y={box.top} height={floor - box.top} />}
      </svg>
      <figcaption id={`${id}-now`} aria-live="polite">{now === null ? <Key resets={n("reset") > 0} /> : say(all[now], prices)}</figcaption>
    </figure>
  );
}

function Key({ resets }) {
  return (
    <span class="p-key">
      <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><path class="p-line" d="M0 5h14" /></svg> context</span>
      <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><path class="p-limit-line" d="M0 5h14" /></svg> limit</span>
      <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><path class="p-drop" d="M2 2h10l-5 7z" /></svg> compaction</span>
      {resets && <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><path class="p-cut" d="M7 0v10" /></svg> reset</span>}
    </span>
  );
}

const rows = 100;

function Table({ all, prices }) {
  const [most, set] = useState(rows);
  const shown = [...all].reverse().slice(0, most);
  return (
    <>
      <div class="p-scroll" tabIndex={0} role="region" aria-label="The course as a table">
        <table>
          <thead><tr>{["When", "What", "Before", "After", "Limit", "Used", "Cost"].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
          <tbody>
            {shown.map((s, i) => {
              const c = s.model ? cost(s.usage, prices[s.model]) : null;
              return <tr key={i}><td>{when(s.at)}</td><td>{title(s)}</td><td>{tokens(s.before)}</td><td>{tokens(s.after)}</td><td>{s.limit ? tokens(s.limit) : ""}</td><td>{total(s.usage) ? tokens(total(s.usage)) : ""}</td><td>{c === null ? "" : money(c)}</td></tr>;
            })}
          </tbody>
        </table>
      </div>
      {all.length > most && <button type="button" class="p-more" onClick={() => set(most * 5)}>Show more rows</button>}
    </>
  );
}

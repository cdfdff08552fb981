// What the agent marked of its work, and how far each piece left the context.

import { useId } from "preact/hooks";
import { bars, cameOf, nameOf, stands, states, stateName } from "./episodes.js";
import { count, few, fillOf, tokens } from "./format.js";
import { Fold, Gauge, Trouble } from "./parts.jsx";
import { usePick } from "./pick.js";

const box = { width: 640, height: 92, top: 14, bottom: 88, left: 4, right: 4 };

export function Episodes({ told, again }) {
  const v = told.data;
  if (told.error && !v) return <Trouble error={told.error} again={again} what="The episodes" />;
  if (!v?.total) return null;
  const open = v.episodes.findLast((e) => e.state === "open" && e.name);
  return (
    <section class="p-section" aria-labelledby="p-episodes">
      <h2 id="p-episodes">Episodes</h2>
      <p class="p-lead">{open ? <>Open: {nameOf(open)}.</> : "None is open."}</p>
      {v.active && <Budget told={v} />}
      {v.short > 0 && <p class="p-over">The context is {tokens(v.short)} tokens over that budget. {v.held ? `Nothing may leave: ${v.held}.` : "What may leave does so before the next call."}</p>}
      <Strip list={v.episodes} />
      <ul class="p-legend" aria-label="What became of them">
        {states.map(([s, words]) => v.counts[s] > 0 && <li key={s}><State of={s} /> {words} <b>{tokens(v.counts[s])}</b></li>)}
      </ul>
      <Fold summary={v.next ? `The newest ${v.episodes.length}, one by one` : "One by one"}>
        <ul class="p-list">{[...v.episodes].reverse().map((e) => <Row key={e.n} e={e} />)}</ul>
      </Fold>
    </section>
  );
}

// Budget is how full the budget is, over which what is done leaves.
function Budget({ told: { size, budget, lowWater } }) {
  const { share, level } = fillOf(size, budget);
  return (
    <>
      <p class="p-lead"><b class={level === "over" && "p-over"}>{share}</b> of the budget, {tokens(size)} of {tokens(budget)} tokens; over it finished ones leave, down to {tokens(lowWater)}.</p>
      <Gauge label="Budget of the episodes" size={size} limit={budget} low={lowWater} whole={budget} kinds={[{ kind: "all", tokens: size }]} />
    </>
  );
}

function Row({ e }) {
  const came = cameOf(e);
  return (
    <li>
      <div class="p-split"><span class="p-what"><State of={e.state} /> <b>{e.name ?? "Unmarked work"}</b></span><span class="p-num">{few(stands(e))} of {few(e.tokens)}</span></div>
      <p class="p-faint p-wrap">{[e.type === "act" && e.dependencies?.length > 0 && `on ${e.dependencies.join(", ")}`, came].filter(Boolean).join("; ") || stateName(e.state)}</p>
    </li>
  );
}

// State is a shape for each state, so that it needs no colour.
function State({ of }) {
  return (
    <svg class={`p-mark p-state p-state-${of}`} viewBox="0 0 12 12" width="12" height="12" role="img" aria-label={stateName(of)}>
      {of === "open" && <path d="M2 0l10 6-10 6z" />}
      {(of === "whole" || of === "gone" || of === "partial") && <circle cx="6" cy="6" r="4.8" />}
      {of === "partial" && <path d="M6 1.2a4.8 4.8 0 0 0 0 9.6z" />}
      {of === "prologue" && <rect x="1" y="1" width="10" height="10" />}
    </svg>
  );
}

// Strip has a column for each episode: what it brought, and filled what of that stands.
function Strip({ list }) {
  const id = useId();
  const { now, on } = usePick(list.length, box);
  const inside = box.width - box.left - box.right, tall = box.bottom - box.top, x = (i) => box.left + (inside * i) / list.length;
  const wide = Math.min(28, 0.8 * (inside / list.length));
  return (
    <figure class="p-chart">
      <svg viewBox={`0 0 ${box.width} ${box.height}`} role="img" tabindex={0} aria-labelledby={`${id}-name`} aria-describedby={`${id}-now`} {...on}>
        <title id={`${id}-name`}>{`Tokens of ${count(list.length, "episode")}, brought and still in the context. Arrow keys go through them.`}</title>
        {bars(list).map(({ e, had, has }, i) => (
          <g key={e.n} class={`p-state-${e.state}`}>
            <rect class="p-had" x={x(i + 0.5) - wide / 2} width={wide} y={box.bottom - Math.max(2, had * tall)} height={Math.max(2, had * tall)} />
            <rect class="p-has" x={x(i + 0.5) - wide / 2} width={wide} y={box.bottom - has * tall} height={has * tall} />
            {e.state === "open" && <path class="p-has" d={`M${x(i + 0.5) - 7} ${box.bottom - Math.max(2, had * tall) - 12}h14l-7 9z`} />}
          </g>
        ))}
        {now !== null && <rect class="p-now" x={x(now)} width={inside / list.length} y={box.top} height={tall} />}
      </svg>
      <figcaption id={`${id}-now`} aria-live="polite">{now === null ? "The height is what each brought; filled is what of it stands." : say(list[now])}</figcaption>
    </figure>
  );
}

function say(e) {
  const came = cameOf(e);
  return `${e.n}, ${nameOf(e)}, ${stateName(e.state)}: ${tokens(stands(e))} of ${tokens(e.tokens)} tokens, ${count(e.calls, "call")}${came ? `; ${came.length > 140 ? `${came.slice(0, 140)}…` : came}` : ""}`;
}

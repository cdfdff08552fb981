// What left the context by demand paging, and what had to come back.

import { useId } from "preact/hooks";
import { bytes, count, tokens, when } from "./format.js";
import { paged, share, zoneName } from "./paging.js";
import { Fold } from "./parts.jsx";
import { usePick } from "./pick.js";
import { linear, ticks } from "./scale.js";

const box = { width: 640, height: 190, top: 12, bottom: 170, left: 84, right: 4 };

export function Paging({ calls }) {
  const got = paged(calls.items);
  if (!got) return null;
  const { now, totals: t } = got;
  const left = [[t.evicted, "read"], [t.collected, "other result"], [t.inputs, "input"], [t.images, "image"]].filter(([n]) => n > 0);
  return (
    <section class="p-section" aria-labelledby="p-paging">
      <h2 id="p-paging">{got.pages ? "Paging" : "What was sent"}</h2>
      <p class="p-lead">{got.pages && `${zoneName(now.zone)}. `}{tokens(now.size)} tokens, {now.fill} % of the window.</p>
      {got.steps.length > 1 && <Chart steps={got.steps} />}
      <dl class="p-facts">
        <div><dt>Out of the context now</dt><dd>{now.stubs > 0 ? `${count(now.stubs, "block")}, ${bytes(now.outBytes)}` : "nothing"}</dd></div>
        <div><dt>Left {got.loaded && calls.next ? "with the calls that are loaded" : "so far"}</dt><dd>{left.length > 0 ? left.map(([n, what]) => count(n, what)).join(", ") : "nothing"}</dd></div>
        <div><dt>Faults</dt><dd>{tokens(t.faults)}{t.evicted > 0 && `, ${share(t.faults, t.evicted)} of the reads that left`}</dd></div>
        <div><dt>Pinned by a fault</dt><dd>{tokens(t.pins)}</dd></div>
        <div><dt>Sent</dt><dd>{t.bytesIn > 0 ? `${bytes(t.bytesSent)} of ${bytes(t.bytesIn)}, ${share(t.bytesSent, t.bytesIn)}` : "everything"}</dd></div>
        {now.tau > 0 && <div><dt>Age from which a result may leave</dt><dd>{count(now.tau, "round")}</dd></div>}
      </dl>
      {got.faults.length > 0 && (
        <Fold summary="What was read again">
          <ul class="p-list">{got.faults.map((f, i) => <li key={i} class="p-split"><span class="p-wrap">{f.path || f.call}</span><span class="p-num">{when(f.at)}</span></li>)}</ul>
        </Fold>
      )}
    </section>
  );
}

// Chart shows the bytes of each call as they are and as they were sent.
function Chart({ steps }) {
  const id = useId();
  const { now, on } = usePick(steps.length, box);
  const scale = ticks(Math.max(...steps.map((s) => s.whole)));
  const y = linear(scale.at(-1), box.bottom, box.top), inside = box.width - box.left - box.right;
  const x = (i) => box.left + (inside * i) / steps.length;
  const line = (of) => steps.map((s, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(of(s)).toFixed(1)}L${x(i + 1).toFixed(1)} ${y(of(s)).toFixed(1)}`).join("");
  const sent = line((s) => s.sent);
  return (
    <figure class="p-chart">
      <svg viewBox={`0 0 ${box.width} ${box.height}`} role="img" tabindex={0} aria-labelledby={`${id}-name`} aria-describedby={`${id}-now`} {...on}>
        <title id={`${id}-name`}>{`Bytes of the messages over ${count(steps.length, "call")}, whole and as sent. Arrow keys go through them.`}</title>
        {scale.map((v) => <g key={v}><line class="p-grid" x1={box.left} x2={box.width - box.right} y1={y(v)} y2={y(v)} /><text class="p-axis" x={box.left - 6} y={y(v) + 6} text-anchor="end">{bytes(v)}</text></g>)}
        <path class="p-area" d={`${sent}L${x(steps.length)} ${box.bottom}L${box.left} ${box.bottom}Z`} />
        <path class="p-line" d={sent} />
        <path class="p-whole-line" d={line((s) => s.whole)} />
        {steps.map((s, i) => s.faults > 0 && <circle key={i} class="p-fault" cx={x(i + 0.5)} cy={y(s.sent)} r="5" />)}
        {now !== null && <rect class="p-now" x={x(now)} width={inside / steps.length} y={box.top} height={box.bottom - box.top} />}
      </svg>
      <figcaption id={`${id}-now`} aria-live="polite">{now === null ? <Key faults={steps.some((s) => s.faults > 0)} /> : say(steps[now])}</figcaption>
    </figure>
  );
}

const say = (s) => `Call of ${when(s.at)}, ${s.zone}: ${bytes(s.sent)} sent of ${bytes(s.whole)}${s.left > 0 ? `; ${count(s.left, "block")} left` : ""}${s.faults > 0 ? `; ${count(s.faults, "fault")}` : ""}`;

function Key({ faults }) {
  return (
    <span class="p-key">
      <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><path class="p-line" d="M0 5h14" /></svg> sent</span>
      <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><path class="p-whole-line" d="M0 5h14" /></svg> with nothing paged out</span>
      {faults && <span><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true"><circle class="p-fault" cx="7" cy="5" r="4" /></svg> fault</span>}
    </span>
  );
}

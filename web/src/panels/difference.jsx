// Two texts, line by line.

import { diff, hunks, tally } from "./diff.js";
import { count } from "./format.js";

const signs = { "+": "added", "-": "removed" };

export function Difference({ before, after, same, labels = ["removed", "added"] }) {
  const all = diff(before, after), { added, removed } = tally(all);
  if (added + removed === 0) return <p class="p-faint">{same}</p>;
  return (
    <>
      <p class="p-faint">{count(removed, "line")} {labels[0]}, {count(added, "line")} {labels[1]}</p>
      <div class="p-text p-diff" tabIndex={0} role="region" aria-label="Differences">
        {hunks(all).map((l, i) => (l.op === "…" ? <span key={i} class="p-skip">{count(l.count, "unchanged line")}</span>
          : l.op === "+" ? <ins key={i}><span class="p-hide">{signs[l.op]}: </span>{l.text || " "}</ins>
          : l.op === "-" ? <del key={i}><span class="p-hide">{signs[l.op]}: </span>{l.text || " "}</del>
          : <span key={i}>{l.text || " "}</span>))}
      </div>
    </>
  );
}

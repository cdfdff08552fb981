// The arithmetic of the charts.

// ticks gives round values from 0 to at least max: about `most` steps of 1, 2 or 5 times a power of ten.
export function ticks(max, most = 4) {
  if (!(max > 0)) return [0, 1];
  const rough = max / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * (1 - 1e-9));
  const out = [];
  for (let i = 0; ; i++) {
    out.push(Number((i * step).toPrecision(12)));
    if (i * step >= max * (1 - 1e-9)) return out;
  }
}

// linear maps 0…max to from…to.
export const linear = (max, from, to) => (v) => from + ((to - from) * v) / (max || 1);

// columnAt is the column of a chart at a share of its width, null beside them.
export function columnAt(share, columns, box) {
  const i = Math.floor((share * box.width - box.left) / ((box.width - box.left - box.right) / columns));
  return i >= 0 && i < columns ? i : null;
}

// columnBy is the column that a key leads to from the one that is chosen, null for other keys. From none the
// arrows begin at the end that they come from.
export function columnBy(key, now, columns) {
  const to = { ArrowLeft: (now ?? columns) - 1, ArrowRight: (now ?? -1) + 1, Home: 0, End: columns - 1 }[key];
  return to === undefined ? null : Math.max(0, Math.min(columns - 1, to));
}

const round = (n) => Math.round(n * 100) / 100;

// stairs is the line of the context through the steps: it rises within a call, falls with a compaction.
// Step i covers the width from x(i) to x(i+1). close is the bottom of the area, without it a line.
export function stairs(steps, x, y, close) {
  if (steps.length === 0) return "";
  const points = [];
  steps.forEach((s, i) => {
    points.push([x(i), y(s.before)], [x(i + (s.kind === "call" ? 0.85 : 0.5)), y(s.after)]);
    if (i === steps.length - 1) points.push([x(i + 1), y(s.after)]);
  });
  const line = points.map(([a, b], i) => `${i ? "L" : "M"}${round(a)} ${round(b)}`).join("");
  return close === undefined ? line : `${line}L${round(points.at(-1)[0])} ${round(close)}L${round(points[0][0])} ${round(close)}Z`;
}

// limits is the line of the limit, which moves when somebody sets another window.
export function limits(steps, x, y) {
  let line = "", last;
  steps.forEach((s, i) => {
    const at = s.limit ?? last;
    if (at === undefined) return;
    if (at !== last) line += `${last === undefined ? "M" : "L"}${round(x(i))} ${round(y(at))}`;
    line += `L${round(x(i + 1))} ${round(y(at))}`;
    last = at;
  });
  return line;
}

// stack lays portions side by side over a width that stands for `all`; each is at least `least` wide
// where it is anything at all, which the others give up in proportion.
export function stack(portions, all, width, least = 0) {
  const shown = portions.filter((p) => p.tokens > 0);
  const room = Math.max(all, shown.reduce((n, p) => n + p.tokens, 0), 1);
  const wide = shown.map((p) => Math.max((p.tokens / room) * width, Math.min(least, width / shown.length)));
  const sum = wide.reduce((a, b) => a + b, 0);
  const shrink = sum > width ? width / sum : 1;
  let x = 0;
  return shown.map((p, i) => {
    const w = wide[i] * shrink;
    const out = { ...p, x: round(x), width: round(w) };
    x += w;
    return out;
  });
}

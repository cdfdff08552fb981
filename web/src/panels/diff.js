// Differences of texts, line by line, after Myers (An O(ND) Difference Algorithm, 1986).

// maxEdits bounds the work: it grows with the square of what differs. Texts beyond it are shown as
// replaced whole, which is then about true.
const maxEdits = 800;

export const lines = (text) => {
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop(); // the last line's end begins no line
  return all;
};

// diff gives the lines of both texts in order: {op: " " | "-" | "+", text, a?, b?} with their numbers,
// from 1.
export function diff(before, after) {
  const a = lines(before), b = lines(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const out = [];
  const same = (i, j) => out.push({ op: " ", text: a[i], a: i + 1, b: j + 1 });
  for (let i = 0; i < head; i++) same(i, i);
  for (const [op, i, j] of middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) {
    if (op === " ") same(head + i, head + j);
    else if (op === "-") out.push({ op, text: a[head + i], a: head + i + 1 });
    else out.push({ op, text: b[head + j], b: head + j + 1 });
  }
  for (let i = tail; i > 0; i--) same(a.length - i, b.length - i);
  return out;
}

function middle(a, b) {
  const steps = a.length && b.length ? path(a, b) : null;
  if (steps) return steps;
  return [...a.map((_, i) => ["-", i]), ...b.map((_, j) => ["+", 0, j])];
}

// path walks the edit graph forward by number of edits, keeps what each round reached, and reads the
// way back from there. null: over maxEdits.
function path(a, b) {
  const far = new Map([[1, 0]]); // furthest x by diagonal
  const rounds = [];
  for (let d = 0; d <= Math.min(a.length + b.length, maxEdits); d++) {
    const reached = new Map();
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && far.get(k - 1) < far.get(k + 1)) ? far.get(k + 1) : far.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reached.set(k, x);
      far.set(k, x);
      if (x >= a.length && x - k >= b.length) {
        rounds.push(reached);
        return back(rounds, a.length, b.length);
      }
    }
    rounds.push(reached);
  }
  return null;
}

function back(rounds, x, y) {
  const out = [];
  for (let d = rounds.length - 1; d > 0; d--) {
    const before = rounds[d - 1], k = x - y;
    const down = k === -d || (k !== d && before.get(k - 1) < before.get(k + 1));
    const px = before.get(down ? k + 1 : k - 1), py = px - (down ? k + 1 : k - 1);
    for (const start = down ? px : px + 1; x > start; ) out.push([" ", --x, --y]);
    out.push(down ? ["+", 0, py] : ["-", px, 0]);
    [x, y] = [px, py];
  }
  while (x > 0 && y > 0) out.push([" ", --x, --y]);
  return out.reverse();
}

// hunks leaves out the stretches of unchanged lines but `context` around each change: a skipped one is
// {op: "…", count}.
export function hunks(all, context = 3) {
  const near = new Uint8Array(all.length);
  all.forEach((l, i) => {
    if (l.op !== " ") near.fill(1, Math.max(0, i - context), i + context + 1);
  });
  const out = [];
  for (let i = 0; i < all.length; ) {
    if (near[i]) {
      out.push(all[i++]);
      continue;
    }
    let end = i;
    while (end < all.length && !near[end]) end++;
    if (end - i <= 1) out.push(all[i]);
    else out.push({ op: "…", count: end - i });
    i = end;
  }
  return out;
}

export const tally = (all) => ({ added: all.filter((l) => l.op === "+").length, removed: all.filter((l) => l.op === "-").length });

// Where a markdown text that still grows may be cut: what stands before a cut will not change its look
// by what follows (but for link definitions, which hold within a piece).

const WIDE = 16_000; // from here on a list is cut between its items: two lists look like one

// cutter returns a function that takes the whole text so far and returns the position of the last cut. It looks
// no further than the line with the character far; at() says how far it came. Each character is looked at once,
// however often it is asked. start is a cut to begin from.
export function cutter(start = 0) {
  let at = start, cut = start, fence = "", blank = false;
  const next = (text, far = Infinity) => {
    while (at < far) {
      const end = text.indexOf("\n", at);
      if (end < 0) return cut;
      const line = text.slice(at, end);
      const mark = line.match(/^ {0,3}(`{3,}|~{3,})/)?.[1];
      if (fence) {
        if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = "";
      } else {
        // A line behind an empty one begins a new block unless it goes on with a list or a quote.
        const item = /^([-*+]|\d+[.)])(\s|$)/.test(line);
        if (item ? at - cut > WIDE : blank && /^[^\s>]/.test(line)) cut = at;
        if (mark) fence = mark;
      }
      blank = !fence && line.trim() === "";
      at = end + 1;
    }
    return cut;
  };
  return Object.assign(next, { at: () => at });
}

// shares hands out a text that may still grow in pieces, each a share of the work: {from, to, raw}. raw says that it
// is to be shown as it stands, for there is no cut in sight.
//
//   next(text, last)   the next piece, null when there is none yet; last: no more will come
//   split(piece)       hands the piece out again, block by block; false when it is one block already
//   skip(text)         counts what is there as handed out, as a part of a block that is shown as it stands
export function shares(size, longest) {
  let cut = cutter(), done = 0, raw = false, singly = 0;
  const give = (to, as) => {
    const piece = { from: done, to, raw: as };
    done = to;
    return piece;
  };
  return {
    get done() { return done; },
    next(text, last) {
      // One block at a time is found line by line.
      const further = (far) => (done < singly ? cut.at() + 1 : Math.max(cut.at(), far + size));
      for (let far = further(done); ; far = further(far)) {
        const end = cut(text, far);
        if (end > done) {
          const as = raw;
          raw = false;
          return give(end, as);
        }
        if (Math.min(text.length, Math.max(far, cut.at())) - done > longest) {
          raw = true;
          return give(done + longest, true);
        }
        if (text.indexOf("\n", cut.at()) < 0) break;
      }
      if (text.length - done > longest) {
        raw = true;
        return give(done + longest, true);
      }
      return last && done < text.length ? give(text.length, raw) : null;
    },
    split({ from, to }) {
      if (singly >= to) return false;
      done = from;
      singly = to;
      cut = cutter(from);
      return true;
    },
    skip(text) {
      raw = true;
      return give(text.length, true);
    },
  };
}

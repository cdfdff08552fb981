// Where a markdown text that still grows may be cut: what stands before a cut will not change its look
// by what follows (but for link definitions, which the end of the answer sets right).

// cutter returns a function that takes the whole text so far and returns the position of the last cut.
// Each character is looked at once, however often it is asked.
export function cutter() {
  let at = 0, cut = 0, fence = "", blank = false;
  return (text) => {
    for (;;) {
      const end = text.indexOf("\n", at);
      if (end < 0) return cut;
      const line = text.slice(at, end);
      const mark = line.match(/^ {0,3}(`{3,}|~{3,})/)?.[1];
      if (fence) {
        if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = "";
      } else {
        // A line behind an empty one begins a new block unless it goes on with a list or a quote.
        if (blank && /^[^\s>]/.test(line) && !/^([-*+]|\d+[.)])(\s|$)/.test(line)) cut = at;
        if (mark) fence = mark;
      }
      blank = !fence && line.trim() === "";
      at = end + 1;
    }
  };
}

// Which column of a chart somebody points at, by mouse, finger or keys.

import { useState } from "preact/hooks";
import { columnAt, columnBy } from "./scale.js";

// usePick gives {now, on} for a chart of so many columns: now is the column that is pointed at or null, on
// are the handlers of its svg. box is what the chart is drawn in: its width and what is left free at the sides.
export function usePick(columns, box) {
  const [chosen, choose] = useState(null);
  const now = chosen === null ? null : Math.min(chosen, columns - 1);
  const point = (e) => {
    const r = e.currentTarget.getBoundingClientRect();
    choose(columnAt((e.clientX - r.left) / r.width, columns, box));
  };
  const onKeyDown = (e) => {
    const to = columnBy(e.key, now, columns);
    if (e.key === "Escape" && now !== null) {
      e.stopPropagation(); // the panel would close
      choose(null);
    } else if (to !== null) {
      e.preventDefault();
      choose(to);
    }
  };
  return { now, on: { onPointerMove: point, onPointerDown: point, onPointerLeave: () => choose(null), onKeyDown } };
}

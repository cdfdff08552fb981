// What a million tokens cost, as the reader enters it.

import { useId, useState } from "preact/hooks";
import { fields, parsePrice } from "./usage.js";

export function Prices({ models, prices, onChange }) {
  return (
    <>
      <p class="p-faint">For a million tokens, in dollars or what you pay in. Kept in this browser only; none comes with the page. Compactions count at the prices of the model that was used before them.</p>
      {models.map((m) => <Model key={m} model={m} prices={prices[m] ?? {}} onChange={(p) => onChange({ ...prices, [m]: p })} />)}
      {models.length === 0 && <p class="p-empty">No model was called yet.</p>}
    </>
  );
}

function Model({ model, prices, onChange }) {
  return (
    <fieldset class="p-prices">
      <legend>{model}</legend>
      {fields.map(([, title, name]) => <Price key={name} title={title} value={prices[name]} onChange={(v) => onChange({ ...prices, [name]: v })} />)}
    </fieldset>
  );
}

function Price({ title, value, onChange }) {
  const [text, set] = useState(value === undefined ? "" : String(value));
  const id = useId();
  const bad = Number.isNaN(parsePrice(text));
  return (
    <div>
      <label for={id}>{title}</label>
      <input id={id} inputMode="decimal" value={text} aria-invalid={bad} aria-describedby={bad ? `${id}-bad` : undefined} onInput={(e) => {
        const s = e.currentTarget.value, v = parsePrice(s);
        set(s);
        if (!Number.isNaN(v)) onChange(v);
      }} />
      {bad && <span id={`${id}-bad`} class="p-over">a number, such as 3 or 0.25</span>}
    </div>
  );
}

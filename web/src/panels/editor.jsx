// Editing a memory file. The save holds only while the file is what was read; if it is not, both texts
// are shown and the reader chooses.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Difference } from "./difference.jsx";
import { useAct } from "./load.js";
import { Sure, Trouble } from "./parts.jsx";

// Editor edits file {text, etag}. left is a draft of earlier, keep(draft) keeps one, read(signal) reads the
// file anew, onEnd is called when it was saved or thrown away.
export function Editor({ api, url, file, read, left, keep, onEnd }) {
  const id = useId();
  const [text, setText] = useState(left?.text ?? file.text);
  const [over, setOver] = useState(left ? left.etag : file.etag); // the version that text was written over
  const [theirs, setTheirs] = useState(left && left.etag !== file.etag ? file : null);
  const save = useAct();
  const field = useRef(null);
  useEffect(() => field.current?.focus(), []);
  const changed = text !== file.text || theirs !== null;
  const type = (value) => {
    setText(value);
    keep({ text: value, etag: over });
  };
  const put = (etag) => save.run(async () => {
    const headers = { "Content-Type": "text/markdown; charset=utf-8", ...(etag ? { "If-Match": etag } : { "If-None-Match": "*" }) };
    try {
      await api.put(url, text, { headers });
    } catch (e) {
      if (e.status !== 412) throw e;
      const now = await read();
      setTheirs(now);
      return false;
    }
    onEnd();
    return true;
  });
  const takeTheirs = () => {
    setText(theirs.text);
    setOver(theirs.etag);
    keep({ text: theirs.text, etag: theirs.etag });
    setTheirs(null);
  };
  const goOn = () => {
    setOver(theirs.etag);
    keep({ text, etag: theirs.etag });
    setTheirs(null);
    field.current?.focus();
  };
  const onKey = (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "s") {
      e.preventDefault();
      if (changed && !theirs) put(over);
    }
    if (e.key === "Escape") e.stopPropagation(); // it must not stop an answer or close the panel under the writer
  };
  return (
    <div class="p-editor" onKeyDown={onKey}>
      {left && !theirs && <p class="p-note" role="status">This is what you were writing when you left; it is not saved yet.</p>}
      <label class="p-hide" for={id}>Text of the file</label>
      <textarea id={id} ref={field} value={text} rows={16} spellcheck onInput={(e) => type(e.currentTarget.value)} />
      <Trouble error={save.error} what="Not saved" />
      {theirs ? (
        <div class="p-conflict" role="alertdialog" aria-label="The file changed meanwhile">
          <p><b>The file changed while you were writing.</b> Yours is kept above. {theirs.missing ? "On the server it is gone now." : "This is how yours differs from what the server has now:"}</p>
          <Difference before={theirs.text} after={text} same="Both are the same." labels={["only on the server", "only in yours"]} />
          <p class="p-actions">
            <button type="button" class="p-primary" disabled={save.busy} onClick={() => put(theirs.etag)}>Save mine over it</button>
            <button type="button" onClick={goOn}>Edit mine further</button>
            <Sure question="Drop what you wrote?" yes="Take the server's" onYes={takeTheirs}>Take the server's</Sure>
          </p>
          <p class="p-faint">The history keeps whatever is replaced.</p>
        </div>
      ) : (
        <p class="p-actions">
          <button type="button" class="p-primary" disabled={!changed || save.busy} onClick={() => put(over)}>{save.busy ? "Saving…" : "Save"}</button>
          {changed ? <Sure question="Throw away what you wrote?" yes="Throw away" onYes={onEnd}>Cancel</Sure> : <button type="button" onClick={onEnd}>Cancel</button>}
        </p>
      )}
    </div>
  );
}

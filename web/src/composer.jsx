// Where one writes: text, files, commands. What was not sent is kept, for each session its own.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { attach, content } from "./attach.js";
import { current, dialog, newChat, rename, say, tell } from "./app.js";
import { Icon } from "./icons.jsx";
import { keep, kept } from "./store.js";
import { bytes, COMMANDS, readInput } from "./words.js";

const PASTE = 20_000; // characters of pasted text beyond which it becomes a file

// Files are too large to be kept over a reload; they stay with their session while the page does.
const filesOf = new Map();

export function Composer({ conversation: c, edit }) {
  const [text, setText] = useState(""), [files, setFiles] = useState([]), [note, setNote] = useState(""), [over, setOver] = useState(false);
  const area = useRef(null), picker = useRef(null), key = c.key;
  const put = (value) => {
    setText(value);
    keep(`draft.${key}`, value || null);
  };
  const have = (list) => {
    setFiles(list);
    filesOf.set(key, list);
  };
  useLayoutEffect(() => {
    setText(kept(`draft.${key}`) ?? "");
    setFiles(filesOf.get(key) ?? []);
    setNote("");
    if (!matchMedia("(pointer: coarse)").matches) area.current.focus();
  }, [c]);
  useEffect(() => {
    if (!edit) return;
    const blocks = typeof edit.content === "string" ? [{ type: "text", text: edit.content }] : edit.content;
    put([blocks.filter((b) => b.type === "text").map((b) => b.text).join("\n"), text].filter(Boolean).join("\n"));
    area.current.focus();
  }, [edit]);
  // A note is about the last act, so the next one clears it, wherever on the page.
  useEffect(() => {
    if (!note) return;
    const clear = (e) => {
      if (!e.target.closest?.(".note") && !/^(Tab|Shift|Control|Alt|Meta)$/.test(e.key)) setNote("");
    };
    for (const kind of ["click", "keydown"]) document.addEventListener(kind, clear, true);
    return () => { for (const kind of ["click", "keydown"]) document.removeEventListener(kind, clear, true); };
  }, [note]);
  useLayoutEffect(() => {
    const a = area.current;
    a.rows = Math.min(12, Math.max(1, text.split("\n").length + Math.floor(text.length / 90)));
  }, [text]);

  const add = async (list) => {
    let now = filesOf.get(key) ?? [];
    for (const file of list) {
      try {
        now = [...now, await attach(file)];
        content("", now);
        have(now);
        setNote("");
      } catch (e) {
        now = filesOf.get(key) ?? [];
        setNote(e.message);
      }
    }
  };

  const send = async () => {
    const input = readInput(text);
    if (input.unknown) return setNote(`${input.unknown} is no command; /help lists them. To say it as it stands, write /${input.unknown}.`);
    if (input.wrong) return setNote(`${input.wrong}. To say it as it stands, write /${text.trim()}.`);
    if (input.command) {
      put("");
      setNote("");
      return act(c, input, setNote);
    }
    if (!input.say && !files.length) return;
    let what;
    try {
      what = content(input.say, files);
    } catch (e) {
      return setNote(e.message);
    }
    const words = input.say || files.map((f) => f.name).join(", ");
    for (const f of files) if (f.url) URL.revokeObjectURL(f.url);
    put("");
    have([]);
    setNote("");
    await say(c, what, words);
  };

  const onKeyDown = (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing && e.keyCode !== 229) {
      e.preventDefault();
      send();
    }
  };
  const onPaste = (e) => {
    const list = [...(e.clipboardData?.files ?? [])];
    const pasted = e.clipboardData?.getData("text/plain") ?? "";
    if (list.length) {
      e.preventDefault();
      add(list);
    } else if (pasted.length > PASTE) {
      e.preventDefault();
      add([new File([pasted], "pasted.txt", { type: "text/plain" })]);
    }
  };
  const onDrop = (e) => {
    e.preventDefault();
    setOver(false);
    add([...(e.dataTransfer?.files ?? [])]);
  };
  const typed = text.match(/^\/([a-z]*)$/i);
  const hints = typed ? COMMANDS.filter((k) => k.name.startsWith(typed[1].toLowerCase())) : [];
  const working = c.answer.value;
  return (
    <div class={`composer ${over ? "over" : ""}`} onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={onDrop}>
      {hints.length > 0 && <ul class="hints">{hints.map((k) => <li key={k.name}><button type="button" onClick={() => { put(`/${k.name}${k.takes ? " " : ""}`); area.current.focus(); }}><b>/{k.name}</b> {k.takes && <i>{k.takes}</i>} {k.says}</button></li>)}</ul>}
      {note && <p class="note" role="alert">{note} <button type="button" class="plainbutton" aria-label="Close this note" onClick={() => setNote("")}>×</button></p>}
      {files.length > 0 && (
        <ul class="files" aria-label="Attached">
          {files.map((f, i) => (
            <li key={i}>{f.url ? <img src={f.url} alt="" /> : <Icon name="file" small />} <span>{f.name}</span> <small>{bytes(f.size)}</small>
              <button type="button" aria-label={`Take ${f.name} away`} onClick={() => have(files.filter((_, n) => n !== i))}>×</button></li>
          ))}
        </ul>
      )}
      <div class="line">
        <button type="button" class="icon" aria-label="Attach pictures or text files" title="Attach pictures or text files" onClick={() => picker.current.click()}><Icon name="attach" /></button>
        <input type="file" multiple hidden ref={picker} data-test="files" onChange={(e) => { add([...e.target.files]); e.target.value = ""; }} />
        <textarea ref={area} rows={1} value={text} aria-label="Message" placeholder={working ? "Say more; it waits for its turn" : "Message"} onInput={(e) => put(e.target.value)} onKeyDown={onKeyDown} onPaste={onPaste} enterkeyhint="send" />
        {working && <button type="button" class="stop" onClick={() => stop(c)} aria-label="Stop the answer" title="Stop (Esc)">■ Stop</button>}
        <button type="button" class="send" onClick={send} disabled={!text.trim() && !files.length} aria-label="Send">Send</button>
      </div>
    </div>
  );
}

// stop ends the turn in work; what waits behind it then begins.
export async function stop(c) {
  try {
    const { aborted } = await c.stop();
    if (!aborted) tell("Nothing is in work.");
  } catch (e) {
    tell(e.message);
  }
}

function act(c, { command, rest }, setNote) {
  switch (command) {
    case "open":
      newChat();
      if (rest) named(rest);
      return;
    case "new":
    case "reset":
      if (c.missing.peek()) return setNote("There is nothing to reset yet.");
      dialog.value = { kind: "reset", session: c.info.peek() ?? { key: c.key }, line: `/${command}` };
      return;
    case "compact":
      if (c.missing.peek()) return setNote("There is nothing to compact yet.");
      return c.command("compact", rest ? { instructions: rest } : {}, `/compact ${rest}`.trim());
    case "stop":
      return stop(c);
    case "status":
    case "model":
    case "memory":
    case "snapshot":
    case "branch": {
      if (c.missing.peek()) return setNote("There is nothing to ask about yet: say something first.");
      const line = `/${command} ${rest}`.trim();
      return c.command("commands", { line }, line); // its answer is an event of the log
    }
    case "help":
      dialog.value = { kind: "help" };
  }
}

// named gives the new chat its title, which makes it.
async function named(title) {
  const c = current.peek();
  try {
    await rename(c.key, title);
    c.again();
  } catch (e) {
    tell(e.message);
  }
}

// One row of the history: a message, a call of a tool, an event.

import { useComputed } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { openArchive } from "./app.js";
import { clock } from "./clock.js";
import { afterReset, noteOf, textOf, readFile } from "./entries.js";
import { Icon } from "./icons.jsx";
import { Growing, Markdown } from "./markdown.jsx";
import { ago, bytes, proxied } from "./words.js";

export function Row({ row, conversation }) {
  if (row.event) return <Event row={row} />;
  return <Message row={row} conversation={conversation} />;
}

function Event({ row: { event, key, at } }) {
  return (
    <div class={`event ${/^(compaction|reset|error|notice|answer)$/.test(event.type) ? event.type : ""}`} id={`e-${key}`}>
      <span>{event.type === "reset" ? <Reset event={event} /> : event.text || event.type}</span> <Time at={at} />
    </div>
  );
}

function Reset({ event }) {
  const { before, archived, archive, after } = afterReset(event);
  return <>{before}{archive ? <button type="button" class="inline" title="Open the archive" onClick={() => openArchive(archive)}>{archived}</button> : archived}{after}</>;
}

const Time = ({ at }) => <time dateTime={at} title={new Date(at).toLocaleString()}>{ago(at, clock.value)}</time>;

function Message({ row, conversation }) {
  const [whole, setWhole] = useState(null);
  const client = proxied(conversation.key);
  if (!client && row.role === "user" && row.origin.from === "system") return <Note row={row} />;
  const tool = !client && ["tool", "recall"].includes(row.origin.from); // its call is on an earlier page
  const mine = row.role === "user" && !tool;
  const who = client ? (mine ? "Client" : "Model") : tool ? "Tool" : mine ? (row.origin.peer ? `${row.origin.peer}` : "You") : "Tidemark";
  const channel = mine && !client && !["web", "api", "import", undefined, ""].includes(row.origin.channel) ? ` · ${row.origin.channel}` : "";
  return (
    <article class={`message ${mine ? "mine" : "theirs"}`} id={`e-${row.key}`} aria-label={`${who} said`}>
      <header><span class="who">{who}{channel}</span> <Time at={row.at} /></header>
      <div class="body">
        {(whole ?? row.blocks).map((b, i) => <Block key={i} block={b} mine={mine} />)}
        {row.large && !whole && <More load={async () => setWhole(await wholeOf(conversation, row))} />}
      </div>
    </article>
  );
}

// Note is what nobody said: the outcome of a branch.
function Note({ row }) {
  const text = textOf(row.blocks), { head, note } = noteOf(text) ?? { head: "Note", note: text };
  return (
    <article class="message outcome" id={`e-${row.key}`} aria-label={head}>
      <header><span class="who">{head}</span> <Time at={row.at} /></header>
      <div class="body"><Markdown text={note} /></div>
    </article>
  );
}

// wholeOf reads the large blocks of a message, which the log only names.
async function wholeOf(conversation, row) {
  const { message } = await conversation.api.get(`${conversation.path}/entries/${encodeURIComponent(row.key)}`);
  const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const known = new Map(row.blocks.filter((b) => b.type === "call").map((b) => [b.call.id, b.result]));
  return blocks.filter((b) => b.type !== "tool_result" || row.blocks.some((o) => o.tool_use_id === b.tool_use_id))
    .map((b) => (b.type === "tool_use" ? { type: "call", call: b, result: known.get(b.id) } : b));
}

function More({ load }) {
  const [state, set] = useState("");
  const go = async () => {
    set("Reading…");
    try {
      await load();
    } catch (e) {
      set(e.message);
    }
  };
  return <p class="more"><button type="button" onClick={go}>Show the large parts</button> <span role="status">{state}</span></p>;
}

function Block({ block, mine }) {
  if (block.tidemark_blob && block.type !== "tool_use") return <p class="aside">{block.type === "image" ? "Picture" : "Large text"}, {bytes(block.tidemark_blob.bytes ?? block.tidemark_blob.size ?? 0)}</p>;
  switch (block.type) {
    case "text": {
      const file = mine && readFile(block.text ?? "");
      if (file) return <details class="fold file"><summary><Icon name="file" small />{file.name} <small>{bytes(file.text.length)}</small></summary><pre tabIndex={0}>{file.text}</pre></details>;
      return mine ? <p class="plain">{block.text}</p> : <Markdown text={block.text} />;
    }
    case "thinking":
      return <details class="fold thinking"><summary>Thinking</summary><p class="plain">{block.thinking ?? block.text}</p></details>;
    case "redacted_thinking":
      return <p class="aside">Thinking that the provider keeps to itself</p>;
    case "call":
      return <Call {...block} />;
    case "tool_result":
      return <Call call={{ name: "result", input: {} }} result={block} />;
    case "image":
      return <Picture source={block.source} />;
    default:
      return <details class="fold"><summary>{block.type}</summary><pre tabIndex={0}>{JSON.stringify(block, null, 1).slice(0, 20_000)}</pre></details>;
  }
}

const SHOWN = /^image\/(png|jpeg|gif|webp)$/;

function Picture({ source = {} }) {
  const [url, setURL] = useState("");
  useEffect(() => {
    if (source.type !== "base64" || !SHOWN.test(source.media_type) || !source.data) return;
    let made = "";
    try {
      made = URL.createObjectURL(new Blob([Uint8Array.from(atob(source.data), (c) => c.charCodeAt(0))], { type: source.media_type }));
      setURL(made);
    } catch {
      // no base64: it stays a word
    }
    return () => URL.revokeObjectURL(made);
  }, [source.data]);
  if (url) return <img class="picture" src={url} alt="Attached picture" />;
  return <p class="aside">Picture {source.type === "url" ? `at ${source.url}` : source.media_type ?? ""}</p>;
}

function Call({ call, result }) {
  const state = !result ? "running" : result.is_error ? "failed" : "done";
  const input = typeof call.input === "string" ? call.input : JSON.stringify(call.input ?? {});
  return (
    <details class={`fold call ${state}`}>
      <summary>
        <span class="mark" aria-hidden="true">{{ running: "…", failed: "✕", done: "✓" }[state]}</span>
        <b>{call.name}</b> <code>{input === "{}" ? "" : input.slice(0, 160)}</code> <small>{state === "done" ? "" : state}</small>
      </summary>
      <h4>Call</h4>
      <pre tabIndex={0}>{JSON.stringify(call.input ?? {}, null, 2)}</pre>
      {result && <h4>{result.is_error ? "Error" : "Result"}</h4>}
      {result && <pre tabIndex={0}>{textOf(result.content).slice(0, 200_000) || "(empty)"}</pre>}
    </details>
  );
}

// Answer is what the run in work has said so far.
export function Answer({ answer, doing, onGrown }) {
  const { text, thinking, tools } = answer;
  // Whether there is any, so that a piece more draws nothing of this again.
  const said = useComputed(() => text.value !== "").value, thought = useComputed(() => thinking.value !== "").value;
  const names = tools.value;
  return (
    <article class="message theirs working" aria-label="Tidemark is answering" aria-busy="true">
      <header><span class="who">Tidemark</span></header>
      <div class="body">
        {thought && <Thinking text={thinking} />}
        <Growing key={answer.run} text={text} onGrown={onGrown} />
        {names.map((name, i) => <p class="aside call running" key={i}><span class="mark" aria-hidden="true">…</span> <b>{name}</b></p>)}
        {(!said || doing) && <p class="dots"><span class="pulse" aria-hidden="true" /> {doing || (names.length ? "Calling tools" : thought ? "Thinking" : "Working")}…</p>}
      </div>
    </article>
  );
}

function Thinking({ text }) {
  return <details class="fold thinking"><summary>Thinking</summary><p class="plain">{text.value}</p></details>;
}

// Sent is something said that the log does not have yet.
export function Sent({ item, onRetry, onDrop, onEdit }) {
  const blocks = typeof item.content === "string" ? [{ type: "text", text: item.content }] : item.content ?? [];
  const words = { sending: "Sending…", queued: "Waiting for its turn", sent: "Waiting for its turn", trying: `Not there yet, trying again. ${item.error ?? ""}`, failed: item.error };
  return (
    <article class={`message mine sent ${item.state}`} aria-label="You, not in the history yet">
      <div class="body">{blocks.map((b, i) => <Block key={i} block={b} mine />)}</div>
      <footer role={item.state === "failed" ? "alert" : undefined}>
        <span>{words[item.state] ?? words.queued}</span>
        {item.state === "failed" && <button type="button" onClick={onRetry}>Try again</button>}
        {item.state === "failed" && <button type="button" onClick={onEdit}>Edit</button>}
        {(item.state === "failed" || item.state === "trying") && <button type="button" onClick={onDrop}>Discard</button>}
      </footer>
    </article>
  );
}

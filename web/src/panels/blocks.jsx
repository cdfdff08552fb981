// What the model sees, message by message.

import { useState } from "preact/hooks";
import { stubsOf } from "./changes.js";
import { firstWords, parts } from "./content.js";
import { count, kindName, kindOf, tokens } from "./format.js";
import { useLoad } from "./load.js";
import { Originals } from "./originals.jsx";
import { Fold, Long, Mark, Parts, Status } from "./parts.jsx";

const page = 60;

// client: the conversation of a client, whose system text and tools are not kept here.
export function Blocks({ api, path, view, acts, client }) {
  const [most, set] = useState(page);
  const items = [...view.items].reverse();
  return (
    <section class="p-section" aria-labelledby="p-sees">
      <h2 id="p-sees">What the model sees</h2>
      <p class="p-lead">{count(view.items.length, "message")} {client ? "that the client sent" : "after the system prompt"}{!client && view.tools.length > 0 && ` and ${count(view.tools.length, "tool")}`}, the newest first.</p>
      <ul class="p-list">
        {view.note && <Row kind="other" name="Note at the end" text={view.note} open={() => <Long text={view.note} />} />}
        {items.slice(0, most).map((it) => <Item key={`${it.id} ${it.from}`} it={it} api={api} path={path} view={view} acts={acts} />)}
        {items.length <= most && !client && (
          <>
            <Row kind="tools" tokens={view.tools.reduce((n, t) => n + t.tokens, 0)} text={view.tools.map((t) => t.name).join(", ") || "none"}
              open={() => <ul class="p-tools">{view.tools.map((t) => <li key={t.name}><code>{t.name}</code> <span class="p-num">{tokens(t.tokens)}</span></li>)}</ul>} />
            <Row kind="system" tokens={view.system.tokens} text={view.system.text || "empty"} open={() => <Long text={view.system.text} />} />
          </>
        )}
      </ul>
      {items.length > most && <button type="button" class="p-more" onClick={() => set(most + 5 * page)}>Show {count(items.length - most, "earlier message")}</button>}
    </section>
  );
}

function Row({ kind, name = kindName(kind), text, tokens: n, open }) {
  return (
    <li>
      <Fold summary={<><Mark kind={kind} /><span class="p-what"><b>{name}</b> <span class="p-words">{firstWords(text)}</span></span>{n !== undefined && <span class="p-num">{tokens(n)}<span class="p-hide"> tokens</span></span>}</>}>
        {/* a function, so that nothing is read before it is opened */}
        <Made by={open} />
      </Fold>
    </li>
  );
}

const Made = ({ by }) => by();

function Item({ it, api, path, view, acts }) {
  const kind = kindOf(it);
  const words = it.blocks.map((b) => (b.type === "tool_use" ? `${b.name} ${b.text ?? ""}` : b.text ?? (b.type === "tool_result" ? "(empty)" : `[${b.type}]`))).join(" · ");
  const replaced = it.overlay && it.id === it.overlay;
  const name = kind === "stub" ? `Shortened ${it.source === "tool" ? "tool result" : "message"}` : kind === "model" && it.blocks.some((b) => b.type === "tool_use") ? "Model, tool call" : kindName(kind);
  return (
    <Row kind={kind} name={name} text={words} tokens={it.tokens}
      open={() => (replaced ? <Replacement it={it} api={api} path={path} /> : <Message it={it} api={api} path={path} stubs={it.stubs > 0 ? stubsOf(acts.items, it.id, view.overlays) : null} />)} />
  );
}

// Replacement is what an overlay put at the place of a span, and the span itself when it is asked for.
function Replacement({ it, api, path }) {
  const got = useLoad((signal) => api.get(`${path}/entries/${it.overlay}`, { signal }), [it.overlay]);
  if (!got.data) return <Status busy={got.busy} error={got.error} again={got.reload} what="The change" />;
  const edit = got.data.overlay?.edits?.find((e) => !e.block && e.from === it.from && (e.to ?? "") === (it.to ?? e.to ?? ""));
  return (
    <>
      {(edit?.messages ?? []).map((m, i) => <Parts key={i} parts={parts(m.content)} />)}
      {!edit && it.blocks.map((b, i) => <Long key={i} text={b.text ?? ""} />)}
      <Fold summary="The originals, word for word"><Originals api={api} path={path} from={it.from} to={it.to ?? it.from} /></Fold>
    </>
  );
}

// Message is an entry whole. Where blocks of it are shortened for the model, first what the model sees.
function Message({ it, api, path, stubs }) {
  const got = useLoad((signal) => api.get(`${path}/entries/${it.id}`, { signal }), [it.id]);
  if (!got.data) return <Status busy={got.busy} error={got.error} again={got.reload} what="The message" />;
  const content = got.data.message?.content;
  if (!stubs) return <Parts parts={parts(content)} />;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const seen = Array.isArray(blocks) && stubs.size > 0 ? blocks.flatMap((b, i) => stubs.get(i + 1) ?? [b]) : null;
  return (
    <>
      <p class="p-part-title">As the model sees it</p>
      {seen ? <Parts parts={parts(seen)} /> : it.blocks.map((b, i) => <Long key={i} text={b.text ?? `[${b.type}]`} />)}
      <Fold summary="As it was, whole"><Parts parts={parts(content)} /></Fold>
    </>
  );
}

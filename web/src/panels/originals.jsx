// The messages of a span of the log, as they were.

import { firstWords, parts } from "./content.js";
import { kindName, when } from "./format.js";
import { usePages } from "./load.js";
import { Fold, More, Parts, Status } from "./parts.jsx";

const limit = 50;

// Originals reads from the span's last entry back to its first, oldest shown first.
export function Originals({ api, path, from, to }) {
  const pages = usePages(async (before, signal) => {
    before ??= (await api.get(`${path}/entries/${to}`, { signal })).seq + 1;
    const page = await api.get(`${path}/log`, { query: { before, limit }, signal });
    const first = page.entries.findIndex((e) => e.id === from);
    return { items: (first >= 0 ? page.entries.slice(0, first + 1) : page.entries).filter((e) => e.message), next: first >= 0 ? undefined : page.next };
  }, [path, from, to], (e) => e.id);
  const all = [...pages.items].reverse();
  return (
    <>
      <Status busy={pages.busy && all.length === 0} error={pages.error} again={pages.items.length ? pages.more : pages.refresh} what="The originals" empty={all.length === 0}>Nothing in it.</Status>
      <More pages={pages}>Show earlier ones</More>
      <ul class="p-list">{all.map((e) => <li key={e.id}><Original message={e.message} from={e.origin?.from} at={e.at} /></li>)}</ul>
    </>
  );
}

// Original is one message in a list, folded: one of the log, or a line of an archive with its parts.
export function Original({ message, from, at, mark, open }) {
  const all = message.parts ?? parts(message.content);
  const text = all.map((p) => [p.title, p.text].filter(Boolean).join(" ")).join(" · ");
  return (
    <Fold class={mark ? "p-hit" : ""} open={open} summary={<><span class="p-what"><b>{from ? kindName(from) : message.role}</b> <span class="p-words">{firstWords(text)}</span></span>{when(at) && <time class="p-num" dateTime={new Date(at).toISOString()}>{when(at)}</time>}</>}>
      <Parts parts={all} />
    </Fold>
  );
}

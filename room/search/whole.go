package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// A short talk is searched whole: what a sitting is about, and what was said in other words than the query has, is seen
// only there. What was read of it is kept from one recall to the next, since a log only grows; nothing that was kept is
// found unless the database names it again. In a log of an agent, where tools answer, words and names lead better than
// what stands around them.
const (
	wholeMost   = 1000   // messages
	wholeTokens = 48_000 // of all that are short
	shortTokens = maxRead / 4
	talkShare   = 10 // one message in so many may be a result of a tool
)

// lately is what the last search of a short conversation read. Its index grows with the next, so one search has it: who
// asks at the same time reads anew.
type lately struct {
	known map[int64]read
	index *recall.Index
}

// whole adds the short messages of a short conversation to the places of candidates and their neighbours.
func (f *finding) whole(ctx context.Context, places []placed) ([]placed, error) {
	if f.size.docs > wholeMost {
		return places, nil
	}
	since, until := f.w.span()
	in, args := within(f.line, "e")
	rows, err := f.s.DB.Query(ctx, `SELECT log, group_concat(seq), group_concat(tokens), sum(skel LIKE '%"r":%') FROM (SELECT log, seq, tokens, skel FROM entries e
		WHERE `+in+` AND kind = 'message' AND at BETWEEN ? AND ? ORDER BY log, seq LIMIT ?) GROUP BY log LIMIT ?`,
		append(args, since, until, wholeMost+1, wholeMost)...)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	found := map[int64]bool{} // false for one that is there and no candidate
	for _, p := range places {
		found[p.seq] = p.found
	}
	var all []placed
	short := map[int64]bool{}
	size, pos, results, count := int64(0), int64(0), int64(0), 0
	for _, r := range rows {
		results += r.Int(3)
		tokens := list(r.Text(2))
		count += len(tokens)
		pos++ // what was said before a reset is no neighbour
		for i, seq := range list(r.Text(1)) {
			pos++
			is, there := found[seq]
			delete(found, seq)
			if tokens[i] <= shortTokens {
				short[seq], size = true, size+tokens[i]
			} else if !there {
				continue
			}
			all = append(all, placed{seq: seq, pos: pos, found: is})
		}
	}
	if count > wholeMost || size > wholeTokens || results*talkShare > int64(count) || len(found) > 0 || len(all) == 0 {
		return places, nil
	}
	f.short = short
	if f.w.All {
		return all, nil
	}
	first, final := all[0].seq, all[0].seq
	for _, p := range all {
		first, final = min(first, p.seq), max(final, p.seq)
	}
	skipped, err := f.s.skips.Skipped(ctx, first, final)
	return slices.DeleteFunc(all, func(p placed) bool { return skipped[p.seq] }), err
}

// begin takes up what the last search read.
func (f *finding) begin() {
	f.known = map[int64]read{}
	if l := f.s.lately.Swap(nil); l != nil {
		f.known, f.index = l.known, l.index
	}
}

// end keeps what was read of a short conversation for the next search: short texts, which are ranked as they are. A search
// that failed keeps nothing.
func (f *finding) end() {
	if f.short == nil {
		return
	}
	for seq, r := range f.known {
		if !f.short[seq] || r.lost || len(r.text) > maxRead {
			delete(f.known, seq)
		}
	}
	f.s.lately.Store(&lately{f.known, f.index})
}

// sittingGap is how long nobody says anything between two sittings.
const sittingGap = 30 * time.Minute

// speaker returns who said a message among several people, and how many bytes of it say so: in a group the name stands
// before it in brackets, with the peer's behind. It is ranked without, and shown as it is stored.
func speaker(e tidemark.Entry, text string) (name string, label int) {
	before, said, ok := strings.Cut(text, "] ")
	if e.Origin.Peer == "" || !ok || !strings.HasPrefix(before, "[") || !strings.HasSuffix(before, e.Origin.Peer) {
		return "", 0
	}
	return cmp.Or(strings.TrimSpace(before[1:len(before)-len(e.Origin.Peer)]), e.Origin.Peer), len(text) - len(said)
}

// label is the name that a line of a transcript begins with, "Ann: we moved"; empty when it begins with none.
func label(text string) string {
	const most = 40
	name, _, ok := strings.Cut(text[:min(len(text), most)], ": ")
	first, _ := utf8.DecodeRuneInString(name)
	if !ok || !unicode.IsUpper(first) || strings.ContainsAny(name, "\n,;!?`/\"(") || strings.Count(name, " ") > 2 {
		return ""
	}
	return name
}

// label gives messages the speakers that stand before them, where nearly all that people say begins with one of a few
// names: a talk that was written into the conversation.
func (f *finding) label(docs []recall.Doc) {
	const nearly, few = 10, 4 // one of so many has none, and each name stands before so many
	said, with, names := 0, 0, map[string]bool{}
	for _, d := range docs {
		if f.known[f.docs[d.ID]].role != tidemark.User || d.Speaker != "" {
			continue
		}
		said++
		if name := label(d.Text); name != "" {
			with++
			names[name] = true
		}
	}
	if with < few*len(names) || nearly*(said-with) > said || with == 0 {
		return
	}
	for i, d := range docs {
		if name := label(d.Text); name != "" && d.Speaker == "" {
			docs[i].Speaker, docs[i].Text = name, d.Text[len(name)+2:]
		}
	}
}

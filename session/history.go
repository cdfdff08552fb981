package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// messages yields the message entries of a range, oldest first, with their large blocks, in
// bounded pages, and lets others have a turn now and then.
func (s *Session) messages(ctx context.Context, log string, r host.Range) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		var pace room.Pace
		skeletons, err := s.log.Skeletons(ctx, log, r)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		for at := 0; at < len(skeletons); {
			seqs := room.PageOf(skeletons[at:])
			at += len(seqs)
			entries, err := s.log.Payloads(ctx, seqs)
			if err != nil {
				yield(tidemark.Entry{}, err)
				return
			}
			for _, e := range entries {
				e, err := s.whole(ctx, e)
				if !yield(e, err) || err != nil {
					return
				}
				if err := pace.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
					yield(tidemark.Entry{}, err)
					return
				}
			}
		}
	}
}

// whole brings an entry's large blocks back: of one entry at a time, since a page of them may be larger
// than the memory.
func (s *Session) whole(ctx context.Context, e tidemark.Entry) (tidemark.Entry, error) {
	if !bytes.Contains(e.Payload, []byte(blobField)) {
		return e, nil
	}
	m, err := s.message(ctx, e)
	if err != nil {
		return tidemark.Entry{}, err
	}
	e.Payload = m.AppendJSON(nil)
	return e, nil
}

// History yields every message of the current session in order, or, with all, of the sessions
// before it under the same key too, oldest first.
func (s *Session) History(ctx context.Context, all bool) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		logs, err := s.Logs(ctx)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		if !all {
			logs = logs[:1]
		}
		for i := len(logs) - 1; i >= 0; i-- {
			for e, err := range s.messages(ctx, logs[i], host.Range{From: 1, To: 1 << 53}) {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// Logs returns the session ids of the conversation, newest first.
func (s *Session) Logs(ctx context.Context) ([]string, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for id := h.Log; id != "" && len(out) < 10_000; {
		out = append(out, id)
		i, err := s.log.Info(ctx, id)
		if err != nil {
			return nil, err
		}
		id = i.Previous
	}
	return out, nil
}

// Entries returns entries of every kind of the current session, newest first, before a position
// (0: the newest).
func (s *Session) Entries(ctx context.Context, before int64, limit int) ([]tidemark.Entry, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	var out []tidemark.Entry
	for e, err := range s.log.Walk(ctx, h.Log, max(before-1, 0)) {
		if err != nil {
			return nil, err
		}
		if out = append(out, e); len(out) >= limit {
			break
		}
	}
	return out, nil
}

// Acts returns what [Session.Entries] does, without the messages: overlays and events, newest first.
func (s *Session) Acts(ctx context.Context, before int64, limit int) ([]tidemark.Entry, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	if before <= 0 {
		before = 1 << 53
	}
	seqs, err := s.log.Acts(ctx, h.Log, before, limit)
	if err != nil {
		return nil, err
	}
	bases, err := s.bases(ctx, h.Log)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		if len(seqs) >= limit {
			break
		}
		more, err := s.log.Acts(ctx, b.Log, min(before, b.To+1), limit-len(seqs))
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, more...)
	}
	slices.Reverse(seqs)
	out, err := s.log.Payloads(ctx, seqs)
	slices.Reverse(out)
	return out, err
}

// Found is a message that a search found.
type Found struct {
	Entry   tidemark.EntryID `json:"id"`
	Session string           `json:"sessionId"`
	At      time.Time        `json:"at"`
	Role    tidemark.Role    `json:"role"`
	From    string           `json:"from"`
	Text    string           `json:"text"` // around the words that were found
}

// Search finds messages of the conversation by words, sessions before a reset included, best
// first.
func (s *Session) Search(ctx context.Context, query string, limit int) ([]Found, error) {
	terms := s.Stemmer.Terms(query)
	if len(terms) == 0 {
		return nil, fmt.Errorf("search: the query has no words: %w", tidemark.ErrInvalid)
	}
	if err := s.allReady(ctx); err != nil {
		return nil, err
	}
	const maxTerms = 32
	terms = terms[:min(len(terms), maxTerms)]
	limit = min(max(limit, 1), 100)
	l, err := s.reach(ctx)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	homes, _ := l.homes(s)
	match := matchHomes(homes, terms...)
	within, args := s.within(l, "e")
	rows, err := s.DB.Query(ctx, `SELECT e.seq FROM words JOIN entries e ON e.seq = words.rowid
		WHERE words MATCH ? AND `+within+` ORDER BY bm25(words, 0.0, 1.0) LIMIT ?`, append(append([]any{match}, args...), limit)...)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	deep, err := s.piecesWith(ctx, l, match, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	seqs := slices.Sorted(maps.Keys(deep)) // what only a long text has stands behind the others
	for i := len(rows) - 1; i >= 0; i-- {
		seqs = slices.Insert(slices.DeleteFunc(seqs, func(seq int64) bool { return seq == rows[i].Int(0) }), 0, rows[i].Int(0))
	}
	var out []Found
	for _, seq := range seqs[:min(len(seqs), limit)] {
		entries, err := s.log.Payloads(ctx, []int64{seq})
		if err != nil {
			return nil, err
		}
		err = s.texts(ctx, entries, deep, func(e tidemark.Entry, role tidemark.Role, p piece) {
			out = append(out, Found{Entry: e.ID, Session: e.Log, At: e.At, Role: role, From: e.Origin.From, Text: snippet(p.text, terms, 300)})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// snippet returns the part of a text where most of the terms stand together, the longest counting most: a
// name whole is worth more than its parts elsewhere.
func snippet(text string, terms []string, around int) string {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // places in one are not places in the other
		lower = text
	}
	return snippetAt(text, max(0, densest(lower, terms, around)), around)
}

// snippetAt is the text around a place.
func snippetAt(text string, at, around int) string {
	from, to := max(0, at-around), min(len(text), at+around)
	out := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// densest returns where a term stands about which most of them do, or -1. A long term counts more, and one
// that stands everywhere less.
func densest(lower string, terms []string, around int) int {
	const mostTerms, mostPlaces = 12, 16 // that are looked at
	type term struct {
		text  string
		worth float64
	}
	var list []term
	for _, t := range terms {
		if n := strings.Count(lower, t); n > 0 && t != "" {
			list = append(list, term{t, float64(len(t)) / float64(n)})
		}
	}
	slices.SortStableFunc(list, func(a, b term) int { return cmp.Compare(b.worth, a.worth) })
	list = list[:min(len(list), mostTerms)]
	best, most := -1, 0.0
	for _, t := range list {
		for from, n := 0, 0; n < mostPlaces; n++ {
			i := strings.Index(lower[from:], t.text)
			if i < 0 {
				break
			}
			i += from
			part, sum := lower[max(0, i-around):min(len(lower), i+around)], 0.0
			for _, o := range list {
				if strings.Contains(part, o.text) {
					sum += o.worth
				}
			}
			if sum > most {
				best, most = i, sum
			}
			from = i + len(t.text)
		}
	}
	return best
}

// ReadEntry returns a page of the text of a message of this conversation, from an offset in bytes on, and says where
// the next begins.
func (s *Session) ReadEntry(ctx context.Context, id tidemark.EntryID, offset int) (string, error) {
	m, err := s.entry(ctx, id)
	if err != nil {
		return "", err
	}
	text, size := textAt(m, max(offset, 0), toolPage)
	if offset < 0 || offset > size {
		return "", fmt.Errorf("offset %d: the entry has %d bytes: %w", offset, size, tidemark.ErrInvalid)
	}
	if offset+len(text) < size {
		text = wholeRunes(text)
	}
	end := offset + len(text)
	out := strings.ToValidUTF8(text, "")
	if end < size {
		out += fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", len(text), size, end)
	}
	return out, nil
}

// wholeRunes leaves out the beginning of a character that a text was cut through: it is whole on the next page.
func wholeRunes(text string) string { return clip.Runes(text) }

// Undo lifts an overlay: what it replaced is visible again. Only between turns. changed is false for one that is
// lifted already: nothing is logged then.
func (s *Session) Undo(ctx context.Context, overlay tidemark.EntryID) (changed bool, err error) {
	h, err := s.head(ctx)
	if err != nil {
		return false, err
	}
	e, err := s.log.Entry(ctx, overlay)
	if err != nil {
		return false, err
	}
	ours, err := s.ofHistory(ctx, h.Log, e)
	if err != nil {
		return false, err
	}
	if !ours || e.Kind != tidemark.KindOverlay {
		return false, fmt.Errorf("overlay %s of this session: %w", overlay, tidemark.ErrNotFound)
	}
	marks, err := s.overlays(ctx, h.Log, e.Seq-1)
	if err != nil {
		return false, err
	}
	rows := make([]compaction.Row, len(marks))
	for i, m := range marks {
		rows[i] = compaction.Row{ID: m.ID, Seq: m.Seq, Overlay: m.Overlay}
	}
	if compaction.Lifted(rows)[overlay] {
		return false, nil
	}
	o := tidemark.Overlay{By: []string{"person"}, Lifts: []tidemark.EntryID{overlay}, Reason: "undo"}
	_, stmts, err := s.overlayStmts(h.Log, tidemark.FromPerson, o)
	if err != nil {
		return false, err
	}
	idle := tidemark.Stmt{SQL: `UPDATE heads SET prompt = '' WHERE key = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
		Args: []any{string(s.Key), string(s.Key)}, Want: 1}
	stmts = append(stmts, idle, tidemark.Stmt{SQL: `UPDATE plans SET state = 'dropped' WHERE key = ? AND state = 'open'`, Args: []any{string(s.Key)}})
	if len(rows[0].Overlay.Lifts) > 0 { // it was a lift itself
		again, err := s.rereadStmts(ctx, h.Log)
		if err != nil {
			return false, err
		}
		stmts = append(stmts, again...)
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return false, fmt.Errorf("undo overlay %s: %w", overlay, err)
	}
	s.setAlarm(ctx)
	return true, nil
}

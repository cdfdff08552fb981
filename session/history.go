package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// messages yields the message entries of a range, oldest first, with their large blocks, in
// bounded pages, and lets others have a turn now and then.
func (s *Session) messages(ctx context.Context, log string, r host.Range) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		var pace pace
		skeletons, err := s.log.Skeletons(ctx, log, r)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		for at := 0; at < len(skeletons); {
			seqs := pageOf(skeletons[at:])
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
				if err := pace.did(ctx, s.Runtime, len(e.Payload)); err != nil {
					yield(tidemark.Entry{}, err)
					return
				}
			}
		}
	}
}

// pageOf returns the first entries of a history that may stand in memory together.
func pageOf(skeletons []tidemark.Skeleton) []int64 {
	const most, mostTokens = 64, 250_000
	var seqs []int64
	var tokens tidemark.Tokens
	for _, k := range skeletons {
		if tokens += k.Tokens; len(seqs) == most || len(seqs) > 0 && tokens > mostTokens {
			break
		}
		seqs = append(seqs, k.Seq)
	}
	return seqs
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
	terms := memory.Terms(query)
	if len(terms) == 0 {
		return nil, fmt.Errorf("search: the query has no words: %w", tidemark.ErrInvalid)
	}
	const maxTerms = 32
	quoted := make([]string, 0, maxTerms)
	for _, t := range terms[:min(len(terms), maxTerms)] {
		quoted = append(quoted, `"`+strings.ReplaceAll(t, `"`, ``)+`"`)
	}
	rows, err := s.DB.Query(ctx, `SELECT e.seq FROM words JOIN entries e ON e.seq = words.rowid JOIN logs l ON l.id = e.log
		WHERE words MATCH ? AND l.key = ? ORDER BY bm25(words) LIMIT ?`, strings.Join(quoted, " OR "), string(s.Key), min(max(limit, 1), 100))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var out []Found
	for _, r := range rows {
		entries, err := s.log.Payloads(ctx, []int64{r.Int(0)})
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			m, err := s.message(ctx, e)
			if err != nil {
				return nil, err
			}
			out = append(out, Found{Entry: e.ID, Session: e.Log, At: e.At, Role: m.Role, From: e.Origin.From, Text: snippet(searchable(m), terms)})
		}
	}
	return out, nil
}

// snippet returns the part of a text around the first of the terms.
func snippet(text string, terms []string) string {
	const around = 300
	lower, at := strings.ToLower(text), -1
	for _, t := range terms {
		if i := strings.Index(lower, t); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if len(lower) != len(text) || at < 0 {
		at = 0
	}
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

// historySearch is the session's own tool.
var historySearch = tidemark.Tool{
	Name: "history_search",
	Description: "Find messages of this conversation word for word, also those that were summarised away or archived by a reset. " +
		"Give query, or entry to read one message whole.",
	InputSchema: []byte(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"entry":{"type":"string"},"offset":{"type":"integer","description":"bytes to skip of a long entry"}}}`),
	Idempotent:  true,
}

// callHistory answers a call of history_search.
func (s *Session) callHistory(ctx context.Context, call tidemark.Block) tidemark.Block {
	var in struct {
		Query  string `json:"query"`
		Limit  int    `json:"limit"`
		Entry  string `json:"entry"`
		Offset int    `json:"offset"`
	}
	fail := func(err error) tidemark.Block { return tidemark.ToolResult(call.ID, err.Error(), true) }
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return fail(fmt.Errorf("input: %w", err))
	}
	if in.Entry != "" {
		text, err := s.readEntry(ctx, tidemark.EntryID(in.Entry), in.Offset)
		if err != nil {
			return fail(err)
		}
		return tidemark.ToolResult(call.ID, text, false)
	}
	if in.Limit <= 0 {
		in.Limit = 8
	}
	found, err := s.Search(ctx, in.Query, min(in.Limit, 20))
	if err != nil {
		return fail(err)
	}
	if len(found) == 0 {
		return tidemark.ToolResult(call.ID, "Nothing found.", false)
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "[%s] %s, entry %s:\n%s\n\n", f.At.In(s.settings().Zone).Format("2006-01-02 15:04"), f.Role, f.Entry, f.Text)
	}
	return tidemark.ToolResult(call.ID, strings.TrimSpace(b.String()), false)
}

// readEntry returns the text of one message of this conversation, from an offset.
func (s *Session) readEntry(ctx context.Context, id tidemark.EntryID, offset int) (string, error) {
	const page = 20_000
	e, err := s.log.Entry(ctx, id)
	if err != nil {
		return "", err
	}
	i, err := s.log.Info(ctx, e.Log)
	if err != nil || i.Key.Root() != s.Key.Root() || e.Kind != tidemark.KindMessage {
		return "", errors.Join(err, fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound)) // of another conversation
	}
	m, err := s.message(ctx, e)
	if err != nil {
		return "", err
	}
	text := searchable(m)
	if offset < 0 || offset > len(text) {
		return "", fmt.Errorf("offset %d: the entry has %d bytes: %w", offset, len(text), tidemark.ErrInvalid)
	}
	end := min(offset+page, len(text))
	out := strings.ToValidUTF8(text[offset:end], "")
	if end < len(text) {
		out += fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", end-offset, len(text), end)
	}
	return out, nil
}

// Reply returns the last message of the run that took an input: what a client that sends the
// same input again is given. ok is false while it is in work.
func (s *Session) Reply(ctx context.Context, input string) (e tidemark.Entry, failure string, ok bool, err error) {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(r.state, i.state), coalesce(r.reply, ''), coalesce(r.error, '') FROM inputs i LEFT JOIN runs r ON r.id = i.run WHERE i.key = ? AND i.id = ? LIMIT 1`, string(s.Key), input)
	if err != nil || len(rows) == 0 {
		return e, "", false, err
	}
	r := rows[0]
	switch r.Text(0) {
	case stateFailed:
		return e, r.Text(2), true, nil
	case stateDone:
		if r.Text(1) == "" {
			return e, "", true, nil // a command
		}
		e, err = s.log.Entry(ctx, tidemark.EntryID(r.Text(1)))
		return e, "", err == nil, err
	}
	return e, "", false, nil
}

// Undo lifts an overlay: what it replaced is visible again. Only between turns.
func (s *Session) Undo(ctx context.Context, overlay tidemark.EntryID) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	e, err := s.log.Entry(ctx, overlay)
	if err != nil {
		return err
	}
	if e.Log != h.Log || e.Kind != tidemark.KindOverlay {
		return fmt.Errorf("overlay %s of this session: %w", overlay, tidemark.ErrNotFound)
	}
	now := s.Runtime.Now()
	o := tidemark.Overlay{By: []string{"person"}, Lifts: []tidemark.EntryID{overlay}, Reason: "undo"}
	stmts, err := s.log.AppendStmts(h.Log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindOverlay, At: now,
		Payload: []byte(mustJSON(o)), Origin: tidemark.Origin{From: tidemark.FromPerson}})
	if err != nil {
		return err
	}
	idle := tidemark.Stmt{SQL: `UPDATE heads SET prompt = '' WHERE key = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
		Args: []any{string(s.Key), string(s.Key)}, Want: 1}
	stmts = append(stmts, idle, tidemark.Stmt{SQL: `UPDATE plans SET state = 'dropped' WHERE key = ? AND state = 'open'`, Args: []any{string(s.Key)}})
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("undo overlay %s: %w", overlay, err)
	}
	return nil
}

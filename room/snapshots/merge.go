package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// merges are made with the first merge.
var merges = room.Tables{Space: "session_merges", Steps: []string{
	// Which outcome of a branch, up to its last message, stands as a note in which log.
	`CREATE TABLE merges(log TEXT NOT NULL, seq INTEGER NOT NULL, target TEXT NOT NULL, hash TEXT NOT NULL, entry TEXT NOT NULL,
		PRIMARY KEY(log, seq, target, hash)) WITHOUT ROWID`,
}}

// Merges compares and merges branches of one conversation: Compare says where two part and what each has for itself, and
// Merge brings the outcome of one back as a note.
type Merges struct {
	room.Self
	room.History
	snaps *Room
}

// MakeMerges makes the room.
func MakeMerges(p room.Ports) any { return &Merges{p.Self, p.History, newRoom(p)} }

var _ room.Tabler = (*Merges)(nil)

// Tables implements room.Tabler.
func (s *Merges) Tables() room.Tables { return merges }

// MergeOptions say what of a branch comes back.
type MergeOptions struct {
	From tidemark.Key `json:"from"`           // a branch of this conversation
	Note string       `json:"note,omitempty"` // "" is what the branch said last
}

// Merged is a note of a branch's outcome.
type Merged struct {
	Entry tidemark.EntryID `json:"id"`
	Key   tidemark.Key     `json:"key"`  // session that it stands in
	From  tidemark.Key     `json:"from"` // branch that it is of
	Text  string           `json:"text"`
	Again bool             `json:"again,omitempty"` // it was there already: nothing was said in the branch since
}

// MaxNote bounds the text of an outcome.
const MaxNote = 8_000 // characters

// mergeChannel is the channel of a note of a branch: nobody wrote it here.
const mergeChannel = "branch"

// Merge puts the outcome of a branch as a note at the end of this session: nobody's words, no input and no turn, read
// with the next one. What a branch said last is merged once, and so is the same note until the branch says more.
//
// # Errors
//
// tidemark.ErrBusy while a turn is in work here, or, without a note, in the branch; tidemark.ErrInvalid for a branch of another conversation or one that said
// nothing, tidemark.ErrNotFound for one that is not there.
func (s *Merges) Merge(ctx context.Context, o MergeOptions) (Merged, error) {
	m, err := s.merge(ctx, o)
	if err != nil {
		return Merged{}, fmt.Errorf("merge %.80q into %s: %w", string(o.From), s.Key, err)
	}
	return m, nil
}

func (s *Merges) merge(ctx context.Context, o MergeOptions) (Merged, error) {
	switch {
	case s.snaps.may() != nil:
		return Merged{}, s.snaps.may()
	case o.From == "":
		return Merged{}, fmt.Errorf("from: want the key of a branch: %w", tidemark.ErrInvalid)
	case o.From.Root() != s.Key.Root():
		return Merged{}, fmt.Errorf("from: it is no branch of this conversation, %s: %w", s.Key.Root(), tidemark.ErrInvalid)
	case o.From == s.Key:
		return Merged{}, fmt.Errorf("from: a session cannot be merged into itself: %w", tidemark.ErrInvalid)
	case !utf8.ValidString(o.Note):
		return Merged{}, fmt.Errorf("note: is no UTF-8: %w", tidemark.ErrInvalid)
	case utf8.RuneCountInString(o.Note) > MaxNote:
		return Merged{}, fmt.Errorf("note: over %d characters: %w", MaxNote, tidemark.ErrTooLarge)
	}
	if err := s.Made.Open(ctx, merges); err != nil {
		return Merged{}, err
	}
	out, err := s.outcomeOf(ctx, o.From)
	if err != nil {
		return Merged{}, err
	}
	note := strings.TrimSpace(o.Note)
	if note == "" {
		if out.busy { // what it says now is not yet what it came to
			return Merged{}, fmt.Errorf("from: a turn is in work in the branch; give a note, or try again when it has ended: %w", tidemark.ErrBusy)
		}
		if note, out.last, err = s.lastWords(ctx, out); err != nil {
			return Merged{}, err
		}
	}
	if note == "" {
		return Merged{}, fmt.Errorf("from: the branch has said nothing since it began; give a note, or go on in it first: %w", tidemark.ErrInvalid)
	}
	return s.putNote(ctx, o.From, out, clipRunes(note, MaxNote))
}

// outcome is how far a branch has come.
type outcome struct {
	log      string
	last     int64 // position of its last message, or of the words that come back
	messages int   // since it began
	busy     bool  // a turn was in work there
	name     string
	from     string // name of its snapshot
}

func (s *Merges) outcomeOf(ctx context.Context, key tidemark.Key) (outcome, error) {
	// In one statement: a branch may go on while it is read.
	rows, err := s.DB.Query(ctx, `SELECT h.log, h.title, coalesce((SELECT max(seq) FROM entries e WHERE e.log = h.log AND e.kind = 'message'), 0),
			(SELECT count(*) FROM entries e WHERE e.log = h.log AND e.kind = 'message'),
			EXISTS(SELECT 1 FROM runs WHERE key = h.key AND state IN ('calling', 'tools'))
		FROM heads h WHERE h.key = ? LIMIT 1`, string(key))
	if err != nil {
		return outcome{}, fmt.Errorf("read branch: %w", err)
	}
	if len(rows) == 0 {
		return outcome{}, fmt.Errorf("from: there is no such session: %w", tidemark.ErrNotFound)
	}
	r := rows[0]
	_, branch, _ := strings.Cut(string(key), "#")
	out := outcome{log: r.Text(0), last: r.Int(2), messages: int(r.Int(3)), busy: r.Int(4) != 0, name: cmp.Or(branch, r.Text(1), string(key))}
	if n, err := s.snaps.branch(ctx, out.log); err == nil {
		out.name = n.Name
		if parent, err := s.snaps.find(ctx, n.Parent); err == nil {
			out.from = parent.Name
		}
	}
	return out, nil
}

// lastWords is the newest reply of a branch's own that is whole, and where it stands; "" for none. What the model said
// before a call is not what it came to.
func (s *Merges) lastWords(ctx context.Context, out outcome) (string, int64, error) {
	const back = 200 // messages that are looked through
	rows, err := s.DB.Query(ctx, `SELECT seq FROM entries WHERE log = ? AND kind = 'message' AND role = 'assistant' AND seq <= ? ORDER BY seq DESC LIMIT ?`, out.log, out.last, back)
	if err != nil {
		return "", 0, fmt.Errorf("read outcome: %w", err)
	}
	for _, r := range rows {
		entries, err := s.Log.Payloads(ctx, []int64{r.Int(0)})
		if err != nil {
			return "", 0, err
		}
		if len(entries) == 0 {
			continue
		}
		m, done, err := s.Words(ctx, entries[0])
		if err != nil {
			return "", 0, err
		}
		text := strings.TrimSpace(m.PlainText())
		done()
		if text != "" && len(m.Calls()) == 0 {
			return text, r.Int(0), nil
		}
	}
	return "", 0, nil
}

// putNote appends the note, once, unless a turn is in work.
func (s *Merges) putNote(ctx context.Context, from tidemark.Key, out outcome, note string) (Merged, error) {
	log, err := s.Current(ctx)
	if err != nil {
		return Merged{}, err
	}
	sum := string(tidemark.HashOf([]byte(note)))
	if m, ok, err := s.mergedAs(ctx, out, log, sum, from); ok || err != nil {
		return m, err
	}
	where := ""
	if out.from != "" {
		where = fmt.Sprintf("from snapshot %q, ", out.from)
	}
	text := fmt.Sprintf("[Outcome of branch %q (%s%d messages): %s]", out.name, where, out.messages, note)
	now := s.Runtime.Now()
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindMessage, At: now, Origin: tidemark.Origin{From: tidemark.FromSystem, Channel: mergeChannel}}
	event := tidemark.Event{Type: "merge", Text: fmt.Sprintf("The outcome of branch %q stands here as a note.", out.name),
		Data: []byte(room.JSON(Merged{Entry: e.ID, Key: s.Key, From: from, Text: text}))}
	once := tidemark.Stmt{SQL: `INSERT INTO merges(log, seq, target, hash, entry) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		Args: []any{out.log, out.last, log, sum, string(e.ID)}, Want: 1}
	if err := s.Note(ctx, log, e, tidemark.NewText(tidemark.User, text), event, once); err != nil {
		if !errors.Is(err, tidemark.ErrConflict) {
			return Merged{}, err
		}
		if m, ok, e := s.mergedAs(ctx, out, log, sum, from); ok || e != nil { // somebody else did
			return m, e
		}
		return Merged{}, fmt.Errorf("a turn is in work there; try again when it has ended: %w", tidemark.ErrBusy)
	}
	return Merged{Entry: e.ID, Key: s.Key, From: from, Text: text}, nil
}

// mergedAs returns the note that stands there already.
func (s *Merges) mergedAs(ctx context.Context, out outcome, log, sum string, from tidemark.Key) (Merged, bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT entry FROM merges WHERE log = ? AND seq = ? AND target = ? AND hash = ? LIMIT 1`, out.log, out.last, log, sum)
	if err != nil || len(rows) == 0 {
		return Merged{}, false, err
	}
	e, err := s.Log.Entry(ctx, tidemark.EntryID(rows[0].Text(0)))
	if err != nil {
		return Merged{}, false, err
	}
	m, err := e.Message()
	return Merged{Entry: e.ID, Key: s.Key, From: from, Text: m.PlainText(), Again: true}, true, err
}

// clipRunes cuts a text to so many characters, and says so.
func clipRunes(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}

package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

const (
	maxExtractionID = 256
	maxKnown        = 5000 // facts of two days that a new one is compared with
)

// Remember stores an extraction; the same id twice is one. When it returns nil the facts are
// durable; the file gets them at once or within seconds. Facts that today's or yesterday's file has
// already are dropped. What a peer gave goes into the peer's file, and one line into the owner's
// that says where.
func (led *ledger) Remember(ctx context.Context, x tidemark.Extraction) error {
	if _, err := led.remember(ctx, x, false); err != nil {
		return fmt.Errorf("remember %.80s: %w", x.ID, err)
	}
	return nil
}

// remember returns how many facts were new.
func (led *ledger) remember(ctx context.Context, x tidemark.Extraction, noted bool) (int, error) {
	if x.ID == "" || len(x.ID) > maxExtractionID {
		return 0, fmt.Errorf("extraction id of %d bytes, want 1 to %d: %w", len(x.ID), maxExtractionID, tidemark.ErrInvalid)
	}
	if err := led.own(x.Scope); err != nil {
		return 0, err
	}
	day := memory.Day(x.At, led.cfg.Zone)
	path := led.cfg.Sharing.Today(x.Scope, day)
	var facts []tidemark.Fact
	if path == "" {
		led.cfg.Logger.Warn("facts of a nameless peer are not kept", "agent", led.cfg.Name, "session", x.Session)
	} else {
		known, err := led.known(ctx, x, path, led.cfg.Sharing.Today(x.Scope, memory.DayBefore(x.At, led.cfg.Zone)))
		if err != nil {
			return 0, err
		}
		facts = memory.Normalise(x.Facts, known)
	}
	sections := led.sections(x, path, day, facts, noted)
	stmts, err := led.rememberStmts(x, path, facts, sections)
	if err != nil {
		return 0, err
	}
	decided, err := led.decidedStmts(ctx, x, facts)
	if err != nil {
		return 0, err
	}
	stmts = append(stmts, decided...)
	if err := led.cfg.DB.Tx(ctx, stmts); err != nil {
		if errors.Is(err, tidemark.ErrConflict) && led.remembered(ctx, x.ID) {
			return len(facts), nil
		}
		return 0, err
	}
	for p := range sections {
		led.files.flushSoon(ctx, p)
	}
	return len(facts), nil
}

// known returns what the files of two days say already, as far as we wrote it.
func (led *ledger) known(ctx context.Context, x tidemark.Extraction, today, yesterday string) (map[string]bool, error) {
	from, args := `agent_facts f WHERE f.agent = ? AND f.path IN (?, ?)`, []any{led.cfg.Name, today, yesterday}
	if led.reconciles() { // who repeats what another said has said it: each has a last word of their own
		from = `agent_facts f JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction WHERE f.agent = ? AND f.path IN (?, ?) AND x.peer = ?`
		args = append(args, peerOf(x.Scope))
	}
	folds, err := host.Read(ctx, led.cfg.DB, "read facts", host.Text, `SELECT f.fold FROM `+from+standing+` ORDER BY f.seq DESC LIMIT ?`, append(args, maxKnown)...)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(folds))
	for _, f := range folds {
		known[f] = true
	}
	for _, f := range x.Facts {
		if fold := memory.Fold(f.Text); led.reconciles() && known[fold] && overtaken(fold, folds) {
			delete(known, fold)
		}
	}
	return known, nil
}

// overtaken reports that a newer fact may have replaced one, of facts as they are folded, newest first. To say it again
// is the last word, and must stand behind the other.
func overtaken(fold string, newest []string) bool {
	for _, newer := range newest {
		switch {
		case newer == fold:
			return false
		case memory.Near(newer, fold):
			return true
		}
	}
	return false
}

func (led *ledger) remembered(ctx context.Context, id string) bool {
	n, err := host.Number(ctx, led.cfg.DB, "find extraction", `SELECT 1 FROM agent_extractions WHERE agent = ? AND id = ? LIMIT 1`, led.cfg.Name, id)
	return err == nil && n == 1
}

// sections returns what an extraction adds, by file.
func (led *ledger) sections(x tidemark.Extraction, path, day string, facts []tidemark.Fact, noted bool) map[string]memory.Section {
	if len(facts) == 0 {
		return nil
	}
	s := map[string]memory.Section{path: {ID: x.ID, Session: x.Session, At: x.At, Noted: noted, Facts: facts}}
	if daily := memory.Daily(day); path != daily {
		s[daily] = memory.Section{ID: x.ID, Session: x.Session, At: x.At, From: x.Scope.Peer, File: path, Count: len(facts)}
	}
	return s
}

// rememberStmts is the one transaction of an extraction; its first row is the guard.
func (led *ledger) rememberStmts(x tidemark.Extraction, path string, facts []tidemark.Fact, sections map[string]memory.Section) ([]tidemark.Stmt, error) {
	at := x.At.UnixMilli()
	stmts := []tidemark.Stmt{{
		SQL:  `INSERT INTO agent_extractions(agent, id, session, session_key, peer, at, path) VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(agent, id) DO NOTHING`,
		Args: []any{led.cfg.Name, x.ID, x.Session, string(x.Scope.Key), peerOf(x.Scope), at, path}, Want: 1,
	}}
	for i, f := range facts {
		sources, err := json.Marshal(f.Sources)
		if err != nil {
			return nil, err
		}
		stmts = append(stmts,
			tidemark.Stmt{
				SQL:  `INSERT INTO agent_facts(agent, extraction, n, text, fold, sources, path, decided) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
				Args: []any{led.cfg.Name, x.ID, i, f.Text, memory.Fold(f.Text), string(sources), path, f.Action != ""}, Want: 1,
			},
			tidemark.Stmt{
				SQL:  `INSERT INTO agent_words(rowid, terms) SELECT seq, ? FROM agent_facts WHERE agent = ? AND extraction = ? AND n = ?`,
				Args: []any{led.stem.Row(f.Text), led.cfg.Name, x.ID, i},
			})
	}
	for p, s := range sections {
		body, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL:  `INSERT INTO agent_sections(agent, path, id, at, body) VALUES(?, ?, ?, ?, ?)`,
			Args: []any{led.cfg.Name, p, s.ID, at, string(body)}, Want: 1,
		})
	}
	return stmts, nil
}

// peerOf is whose facts these are; empty for the owner's.
func peerOf(s tidemark.Scope) string {
	if s.Owner {
		return ""
	}
	return s.Peer
}

// Fact is a row of the ledger: a fact with where it came from.
type Fact struct {
	Text       string             `json:"text"`
	Sources    []tidemark.EntryID `json:"sources,omitempty"`
	Extraction string             `json:"extraction"`
	Session    string             `json:"session,omitempty"`
	SessionKey tidemark.Key       `json:"sessionKey"`
	Peer       string             `json:"peer,omitempty"` // who gave it, empty for the owner
	At         int64              `json:"at"`             // milliseconds
	Path       string             `json:"path"`           // the file that has it

	seq     int64
	decided bool // when it was drawn
}

const factColumns = `f.seq, f.text, f.sources, f.extraction, x.session, x.session_key, x.peer, x.at, f.path, f.decided`

func scanFact(r tidemark.Row) (Fact, error) {
	f := Fact{seq: r.Int(0), Text: r.Text(1), Extraction: r.Text(3), Session: r.Text(4), SessionKey: tidemark.Key(r.Text(5)), Peer: r.Text(6), At: r.Int(7), Path: r.Text(8), decided: r.Int(9) != 0}
	return f, json.Unmarshal(r.Bytes(2), &f.Sources)
}

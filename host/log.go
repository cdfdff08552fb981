package host

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Log is the SQL log, the same statements on every host. Besides the contract of tidemark.Log it
// gives its writes as statements, so that a session can commit entries together with its own rows.
type Log struct {
	DB tidemark.DB
}

var _ tidemark.Log = (*Log)(nil)

// Tables of the log. An entry's seq orders all logs of a database, so a branch and its base sort
// together; AUTOINCREMENT never gives a number twice.
var logTables = []string{
	`CREATE TABLE logs(
		id TEXT PRIMARY KEY, key TEXT NOT NULL, base_log TEXT NOT NULL DEFAULT '', base_seq INTEGER NOT NULL DEFAULT 0,
		previous TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE refs(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE entries(
		seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, log TEXT NOT NULL, kind TEXT NOT NULL,
		role TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL, tokens INTEGER NOT NULL DEFAULT 0, skel TEXT NOT NULL DEFAULT '',
		origin TEXT NOT NULL DEFAULT '', call TEXT NOT NULL DEFAULT '', hash TEXT NOT NULL, chain TEXT NOT NULL DEFAULT '',
		payload TEXT NOT NULL)`,
	`CREATE INDEX entries_log ON entries(log, seq)`,
	`CREATE INDEX entries_kind ON entries(log, kind, seq)`,
}

// OpenLog returns the log of a database and brings its tables up to date.
func OpenLog(ctx context.Context, db tidemark.DB) (*Log, error) {
	if err := Migrate(ctx, db, "log", logTables); err != nil {
		return nil, err
	}
	return &Log{DB: db}, nil
}

// Info is what is known of a log.
type Info struct {
	ID       string
	Key      tidemark.Key
	BaseLog  string // the log that a branch continues, empty for none
	BaseSeq  int64  // up to and including this entry
	Previous string // the session id before the reset that began this log
	Created  time.Time
}

// CreateStmt makes a log.
func (l *Log) CreateStmt(i Info) tidemark.Stmt {
	return tidemark.Stmt{
		SQL:  `INSERT INTO logs(id, key, base_log, base_seq, previous, created) VALUES(?, ?, ?, ?, ?, ?)`,
		Args: []any{i.ID, string(i.Key), i.BaseLog, i.BaseSeq, i.Previous, i.Created.UnixMilli()}, Want: 1,
	}
}

// Info returns what is known of a log; an unknown one is ErrNotFound.
func (l *Log) Info(ctx context.Context, id string) (Info, error) {
	return One(ctx, l.DB, "read log "+id, "log "+id, func(r tidemark.Row) (Info, error) {
		return Info{ID: id, Key: tidemark.Key(r.Text(0)), BaseLog: r.Text(1), BaseSeq: r.Int(2), Previous: r.Text(3), Created: time.UnixMilli(r.Int(4))}, nil
	}, `SELECT key, base_log, base_seq, previous, created FROM logs WHERE id = ? LIMIT 1`, id)
}

// AppendStmts returns the statements that add entries at the end of a log. Seq is the database's
// to give; Hash is filled here.
func (l *Log) AppendStmts(log string, entries ...tidemark.Entry) ([]tidemark.Stmt, error) {
	stmts := make([]tidemark.Stmt, 0, len(entries))
	for _, e := range entries {
		role, skel, err := skeleton(e)
		if err != nil {
			return nil, fmt.Errorf("append entry %s: %w", e.ID, err)
		}
		origin, err := json.Marshal(e.Origin)
		if err != nil {
			return nil, fmt.Errorf("append entry %s: %w", e.ID, err)
		}
		var call []byte
		if e.Call != nil {
			if call, err = json.Marshal(e.Call); err != nil {
				return nil, fmt.Errorf("append entry %s: %w", e.ID, err)
			}
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL: `INSERT INTO entries(id, log, kind, role, at, tokens, skel, origin, call, hash, chain, payload)
				VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING`,
			Args: []any{string(e.ID), log, string(e.Kind), role, e.At.UnixMilli(), int64(e.Tokens), skel, string(origin), string(call),
				string(tidemark.HashOf(e.Payload)), string(e.Chain), string(e.Payload)},
			Want: 1,
		})
	}
	return stmts, nil
}

// skel is the part of a payload that planning needs.
type skel struct {
	Blocks  int      `json:"n"`
	Calls   []string `json:"c,omitempty"`
	Results []string `json:"r,omitempty"`
}

// skeleton returns the role and the skeleton column of an entry.
func skeleton(e tidemark.Entry) (role, out string, err error) {
	var v any
	switch e.Kind {
	case tidemark.KindMessage:
		m, err := e.Message()
		if err != nil {
			return "", "", err
		}
		role, v = string(m.Role), skel{len(m.Content), m.Calls(), m.Results()}
	case tidemark.KindOverlay:
		var o tidemark.Overlay
		if err := json.Unmarshal(e.Payload, &o); err != nil {
			return "", "", err
		}
		for i := range o.Edits {
			o.Edits[i].Messages, o.Edits[i].Blocks, o.Edits[i].Data = nil, nil, nil
		}
		v = o
	default:
		return "", "", nil
	}
	raw, err := json.Marshal(v)
	return role, string(raw), err
}

// Append adds entries at the end of a log and fills their Seq and Hash.
func (l *Log) Append(ctx context.Context, log string, entries ...tidemark.Entry) error {
	stmts, err := l.AppendStmts(log, entries...)
	if err != nil {
		return err
	}
	if err := l.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("append to %s: %w", log, err)
	}
	ids := make([]tidemark.EntryID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	seqs, err := l.Seqs(ctx, ids)
	for i := range entries {
		entries[i].Log, entries[i].Seq, entries[i].Hash = log, seqs[entries[i].ID], tidemark.HashOf(entries[i].Payload)
	}
	return err
}

// Ref returns the value of a ref; a missing one is ErrNotFound.
func (l *Log) Ref(ctx context.Context, name string) (string, error) {
	return One(ctx, l.DB, "read ref "+name, "ref "+name, Text, `SELECT value FROM refs WHERE name = ? LIMIT 1`, name)
}

// MoveRef sets a ref if it still has the old value, else ErrConflict.
func (l *Log) MoveRef(ctx context.Context, name, old, value string) error {
	if err := l.DB.Tx(ctx, []tidemark.Stmt{l.RefStmt(name, old, value)}); err != nil {
		return fmt.Errorf("move ref %s: %w", name, err)
	}
	return nil
}

// RefStmt is the compare-and-swap of a ref; an empty old value demands that it does not exist.
func (l *Log) RefStmt(name, old, value string) tidemark.Stmt {
	if old == "" {
		return tidemark.Stmt{SQL: `INSERT INTO refs(name, value) VALUES(?, ?) ON CONFLICT(name) DO NOTHING`, Args: []any{name, value}, Want: 1}
	}
	return tidemark.Stmt{SQL: `UPDATE refs SET value = ? WHERE name = ? AND value = ?`, Args: []any{value, name, old}, Want: 1}
}

// entryColumns are read by scanEntry, in this order.
const entryColumns = `seq, id, log, kind, at, tokens, origin, call, hash, chain, payload`

func scanEntry(r tidemark.Row) (tidemark.Entry, error) {
	e := tidemark.Entry{
		Seq: r.Int(0), ID: tidemark.EntryID(r.Text(1)), Log: r.Text(2), Kind: tidemark.Kind(r.Text(3)), At: time.UnixMilli(r.Int(4)),
		Tokens: tidemark.Tokens(r.Int(5)), Hash: tidemark.Hash(r.Text(8)), Chain: tidemark.Hash(r.Text(9)), Payload: r.Bytes(10),
	}
	if err := json.Unmarshal(r.Bytes(6), &e.Origin); err != nil {
		return e, fmt.Errorf("read entry %s: origin: %w", e.ID, err)
	}
	if s := r.Text(7); s != "" {
		e.Call = new(tidemark.Call)
		if err := json.Unmarshal([]byte(s), e.Call); err != nil {
			return e, fmt.Errorf("read entry %s: call: %w", e.ID, err)
		}
	}
	return e, nil
}

// Walk yields the entries of a log, of every kind, from the newest at or before seq (0: the
// newest) to the oldest, through its bases. It reads page by page, so breaking early is cheap.
func (l *Log) Walk(ctx context.Context, log string, seq int64) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		segments, err := l.Segments(ctx, log, seq)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		for _, s := range segments {
			top := s.To
			for r, err := range Pages(ctx, l.DB, "walk log "+log, payloadPage, func() []any { return []any{s.Log, top} },
				`SELECT `+entryColumns+` FROM entries WHERE log = ? AND seq <= ? ORDER BY seq DESC LIMIT ?`) {
				var e tidemark.Entry
				if err == nil {
					e, err = scanEntry(r)
				}
				if !yield(e, err) || err != nil {
					return
				}
				top = e.Seq - 1
			}
		}
	}
}

// Segment is the part of a history that one log holds: its entries up to To.
type Segment struct {
	Log string
	To  int64
}

// maxBases bounds the chain of branches of branches.
const maxBases = 1000

// Segments returns the logs that make up a history up to a position (0: its end), newest first. A branch reads what it
// continues up to where it began, whatever came there since.
func (l *Log) Segments(ctx context.Context, log string, seq int64) ([]Segment, error) {
	if seq <= 0 {
		seq = 1 << 53
	}
	rows, err := l.DB.Query(ctx, `WITH RECURSIVE chain(n, id, upto, base, base_seq) AS (
			SELECT 0, id, ?, base_log, base_seq FROM logs WHERE id = ?
			UNION ALL SELECT c.n + 1, l.id, min(c.upto, c.base_seq), l.base_log, l.base_seq FROM chain c JOIN logs l ON l.id = c.base WHERE c.base <> '' AND c.n < ?)
		SELECT id, upto, base FROM chain ORDER BY n LIMIT ?`, seq, log, maxBases, maxBases+1)
	if err != nil {
		return nil, fmt.Errorf("read bases of %s: %w", log, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("log %s: %w", log, tidemark.ErrNotFound)
	}
	if last := rows[len(rows)-1]; len(rows) > maxBases {
		return nil, fmt.Errorf("log %s has over %d bases: %w", log, maxBases, tidemark.ErrTooLarge)
	} else if last.Text(2) != "" {
		return nil, fmt.Errorf("base %s of log %s: %w", last.Text(2), log, tidemark.ErrNotFound)
	}
	out := make([]Segment, len(rows))
	for i, r := range rows {
		out[i] = Segment{r.Text(0), r.Int(1)}
	}
	return out, nil
}

// Seqs returns the positions of entries by id; unknown ids are absent.
func (l *Log) Seqs(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]int64, error) {
	out := make(map[tidemark.EntryID]int64, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), tidemark.MaxParams)
		args := make([]any, n)
		for i, id := range ids[:n] {
			args[i] = string(id)
		}
		rows, err := l.DB.Query(ctx, `SELECT id, seq FROM entries WHERE id IN (`+Marks(n)+`) LIMIT 100`, args...)
		if err != nil {
			return nil, fmt.Errorf("find entries: %w", err)
		}
		for _, r := range rows {
			out[tidemark.EntryID(r.Text(0))] = r.Int(1)
		}
		ids = ids[n:]
	}
	return out, nil
}

// Entry returns one entry by id; an unknown one is ErrNotFound.
func (l *Log) Entry(ctx context.Context, id tidemark.EntryID) (tidemark.Entry, error) {
	return One(ctx, l.DB, "read entry "+string(id), "entry "+string(id), scanEntry, `SELECT `+entryColumns+` FROM entries WHERE id = ? LIMIT 1`, string(id))
}

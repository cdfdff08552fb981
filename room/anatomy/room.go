// Package anatomy is the room that keeps a record of each call of the model: what its context was made of, what it cost, and
// what it takes to build the same request again. What a proxied client's calls were is recorded in the same form. Begin with
// [Record].
package anatomy

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// tables hold one record a call.
var tables = room.Tables{Space: "anatomy", Steps: []string{
	`CREATE TABLE anatomy(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, log TEXT NOT NULL, record TEXT NOT NULL)`,
	`CREATE INDEX anatomy_key ON anatomy(key, n)`,
}}

// Room keeps the records of one conversation.
type Room struct {
	room.Self
	room.Records
	view room.View
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{p.Self, p.Records, p.View} }

var (
	_ room.Tabler   = (*Room)(nil)
	_ room.Recorder = (*Room)(nil)
)

// Tables implements room.Tabler.
func (*Room) Tables() room.Tables { return tables }

// Open makes the table, for whoever writes with [Stmt].
func (s *Room) Open(ctx context.Context) error { return s.Made.Open(ctx, tables) }

// Stmt stores a record. It goes with [Room.Open] before.
func Stmt(key tidemark.Key, log string, a Record) tidemark.Stmt {
	return tidemark.Stmt{SQL: `INSERT INTO anatomy(key, log, record) VALUES(?, ?, ?)`, Args: []any{string(key), log, room.JSON(a)}, Want: 1}
}

const (
	maxFailure = 200  // bytes of why a call failed
	maxPage    = 1000 // records that are read at once
)

// Record implements room.Recorder.
func (s *Room) Record(ctx context.Context, c room.Sent) error {
	if err := s.Made.Open(ctx, tables); err != nil {
		return err
	}
	last, err := s.newest(ctx)
	if err != nil {
		return err
	}
	b := s.view.Budget()
	a := dissect(c, b.Window, b.Limit(), s.Base())
	a.Turn, a.Run, a.Attempt, a.Cycle = c.Run, c.Run, c.Attempt, c.Compactions
	a.At, a.Model, a.Stop, a.Usage, a.Context = s.Runtime.Now().UnixMilli(), c.Call.Model, c.Call.Stop, c.Call.Usage, c.Call.Usage.Context()
	if c.Failed != "" {
		a.Model, a.Stop, a.Error = c.Request.Model, "error", clip.Line(c.Failed, maxFailure)
	}
	a.topic(c.Seen, last)
	since := last.Until
	if last.Session != c.Seen.Log {
		since = 0
	}
	a.Paging = s.Paged(c.Seen.View, last.Run == a.Run && last.Last == a.Last, since, last.Paging)
	a.Episodes = s.Divided(ctx, c.Seen)
	if a.SHA256, err = s.hash(ctx, c.Request); err != nil {
		return err
	}
	return s.DB.Tx(ctx, append(a.keep(c.Request, c.Prompt, last, s.Keep), Stmt(s.Key, c.Seen.Log, a)))
}

// newest is the newest record, the zero value where there is none.
func (s *Room) newest(ctx context.Context) (a Record, err error) {
	page, err := s.All(ctx, 0, 1)
	if len(page) > 0 {
		a = page[0]
	}
	return a, err
}

// All returns the records, newest first, before record n (0: the newest), at most 1,000.
func (s *Room) All(ctx context.Context, before int64, limit int) ([]Record, error) {
	if before <= 0 {
		before = 1 << 53
	}
	rows, err := s.Made.Query(ctx, tables, `SELECT n, record FROM anatomy WHERE key = ? AND n < ? ORDER BY n DESC LIMIT ?`, string(s.Key), before, min(limit, maxPage))
	if err != nil {
		return nil, fmt.Errorf("read anatomy: %w", err)
	}
	out := make([]Record, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Bytes(1), &out[i]); err != nil {
			return nil, fmt.Errorf("read anatomy: %w", err)
		}
		out[i].N = r.Int(0)
	}
	return out, nil
}

// Pushed implements room.Recorder.
func (s *Room) Pushed(ctx context.Context, log string) (tidemark.Tokens, error) {
	last, err := s.newest(ctx)
	if err != nil || last.Session != log || last.Error != "" {
		return 0, err
	}
	return last.Parts["note"].Tokens, nil
}

// Usage implements room.Recorder.
func (s *Room) Usage(ctx context.Context, run string) (sum tidemark.Usage, err error) {
	rows, err := s.Made.Query(ctx, tables, `SELECT json_extract(record, '$.usage') FROM (SELECT record FROM anatomy WHERE key = ? ORDER BY n DESC LIMIT ?)
		WHERE json_extract(record, '$.run') = ? LIMIT ?`, string(s.Key), maxPage, run, maxPage)
	if err != nil {
		return sum, err
	}
	for _, row := range rows {
		var u tidemark.Usage
		if err := json.Unmarshal(row.Bytes(0), &u); err != nil {
			return tidemark.Usage{}, err
		}
		sum = sum.Add(u)
	}
	return sum, nil
}

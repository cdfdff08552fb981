// Package vectors is the room of vectors of messages, so that recall finds what was said in other words: one for each
// message, made behind the turn by an endpoint. It ranks nothing: recall does. Begin with Room and Near.
package vectors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Embedder makes vectors of texts, all of one length. provider.Embeddings is one.
type Embedder interface {
	// Name is the model; vectors of two do not compare.
	Name() string
	// Embed returns a vector for each of at most 64 texts, in their order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Bounds of vectors. A message has one of a byte a dimension, so that 20,000 of 1,024 dimensions are 20 MB
// read for a query.
const (
	embedBatch   = 32
	embedBytes   = 4 << 10         // of a message; models read a few hundred words
	embedRounds  = 16              // batches of one wake
	embedTime    = 2 * time.Second // of one wake, about
	embedAfter   = time.Second
	embedTimeout = 20 * time.Second
	askTimeout   = 2 * time.Second // for the vector of a query: recall is not to wait for it
	maxVectors   = 20_000          // newest ones that a query is held against
	vectorPage   = 500
)

// tables exist where there is an endpoint for vectors.
var tables = room.Tables{Space: "session_vectors", Steps: []string{
	`CREATE TABLE vectors(key TEXT NOT NULL, seq INTEGER NOT NULL, vector BLOB NOT NULL, PRIMARY KEY(key, seq)) WITHOUT ROWID`,
	// How far each log has vectors, and of which model.
	`CREATE TABLE embedded(key TEXT NOT NULL, log TEXT NOT NULL, model TEXT NOT NULL, seq INTEGER NOT NULL, failures INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(key, log)) WITHOUT ROWID`,
}}

// Room is the vectors of one conversation.
type Room struct {
	room.Self
	room.History
	room.Work
	by   Embedder
	rest atomic.Int64 // until when an endpoint that failed is not asked for the vector of a query, in milliseconds
}

// Make returns what makes the room.
func Make(by Embedder) room.Maker {
	return func(p room.Ports) any { return &Room{Self: p.Self, History: p.History, Work: p.Work, by: by} }
}

var (
	_ room.Tabler = (*Room)(nil)
	_ room.Opener = (*Room)(nil)
	_ room.Ender  = (*Room)(nil)
	_ room.Waker  = (*Room)(nil)
	_ room.Finder = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// Open makes the tables and drops vectors of another model.
func (s *Room) Open(ctx context.Context) error {
	if err := s.Made.Open(ctx, tables); err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM embedded WHERE key = ? AND model <> ? LIMIT 1`, string(s.Key), s.by.Name())
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.forgetVectors(ctx)
}

// EndStmts makes the messages of a turn due for vectors.
func (s *Room) EndStmts() []tidemark.Stmt {
	return []tidemark.Stmt{{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '') ON CONFLICT(key, kind) DO NOTHING`,
		Args: []any{string(s.Key), room.DueVectors, s.Runtime.Now().Add(embedAfter).UnixMilli()}}}
}

// Wakes implements room.Waker.
func (s *Room) Wakes() string { return room.DueVectors }

// Wake gives vectors to messages that have none, some batches at a time. An endpoint that fails is asked
// again later, less and less often; nothing waits for it.
func (s *Room) Wake(ctx context.Context) error {
	logs, err := s.Logs(ctx)
	if err != nil {
		return err
	}
	left, begun := embedRounds, s.Runtime.Now()
	for _, log := range logs { // the newest first
		for {
			done, err := s.embedSome(ctx, log, embedBatch)
			if errors.Is(err, errAnew) {
				s.Logger.Warn("vectors have another length now; all are made anew", "session", s.Key)
				return nil
			}
			if err != nil {
				s.Warn("vectors put off", err)
				return s.embedLater(ctx, log)
			}
			if done {
				break
			}
			if left--; left == 0 || s.Runtime.Now().Sub(begun) > embedTime { // others are due, too
				return s.DB.Tx(ctx, []tidemark.Stmt{s.Due(room.DueVectors, s.Runtime.Now(), "")})
			}
		}
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.Undue(room.DueVectors)})
}

// embedLater plans the next try after a failure.
func (s *Room) embedLater(ctx context.Context, log string) error {
	_, failures, err := s.embeddedTo(ctx, log)
	if err != nil {
		return err
	}
	pause := room.Cooldowns[min(failures, len(room.Cooldowns)-1)]
	return s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `INSERT INTO embedded(key, log, model, seq, failures) VALUES(?, ?, ?, 0, 1) ON CONFLICT(key, log) DO UPDATE SET failures = failures + 1`,
			Args: []any{string(s.Key), log, s.by.Name()}},
		s.Due(room.DueVectors, s.Runtime.Now().Add(pause), ""),
	})
}

func (s *Room) embeddedTo(ctx context.Context, log string) (seq int64, failures int, err error) {
	rows, err := s.DB.Query(ctx, `SELECT seq, failures FROM embedded WHERE key = ? AND log = ? LIMIT 1`, string(s.Key), log)
	if err != nil {
		return 0, 0, fmt.Errorf("read progress of vectors: %w", err)
	}
	if len(rows) == 0 {
		return 0, 0, nil
	}
	return rows[0].Int(0), int(rows[0].Int(1)), nil
}

// embedSome gives vectors to the next batch of a log; done when there is none.
func (s *Room) embedSome(ctx context.Context, log string, most int) (done bool, err error) {
	from, _, err := s.embeddedTo(ctx, log)
	if err != nil {
		return false, err
	}
	until, err := s.Settled(ctx) // the turn in work may yet be skipped; its end makes this due again
	if err != nil {
		return false, err
	}
	rows, err := s.DB.Query(ctx, `SELECT seq FROM entries WHERE log = ? AND kind = 'message' AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`, log, from, until, most)
	if err != nil {
		return false, fmt.Errorf("read messages without a vector: %w", err)
	}
	if len(rows) == 0 {
		return true, nil
	}
	seqs := make([]int64, len(rows))
	for i, r := range rows {
		seqs[i] = r.Int(0)
	}
	var texts []string
	var of []int64
	var ids []tidemark.EntryID
	err = s.Texts(ctx, seqs, func(e tidemark.Entry, text string) {
		if text := clip.Bytes(text, embedBytes); text != "" {
			texts, of, ids = append(texts, text), append(of, e.Seq), append(ids, e.ID)
		}
	})
	if err != nil {
		return false, err
	}
	limited, stop := s.Runtime.WithTimeout(ctx, embedTimeout)
	defer stop()
	vectors, err := s.embed(limited, texts)
	if refusesText(err) && len(rows) > 1 { // one of them, perhaps
		return s.embedSome(ctx, log, len(rows)/2)
	}
	if refusesText(err) {
		if _, other := s.embed(limited, []string{"ok"}); other == nil { // this one alone
			s.Logger.Warn("a message without a vector", "session", s.Key, "entry", ids[0], "err", err)
			vectors, err = nil, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("embed %d messages: %w", len(texts), err)
	}
	if len(vectors) > 0 {
		if other, err := s.otherSize(ctx, len(vectors[0])); other || err != nil {
			return false, errors.Join(err, s.forgetVectors(ctx), errAnew)
		}
	}
	var stmts []tidemark.Stmt
	for i, v := range vectors {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO vectors(key, seq, vector) VALUES(?, ?, ?) ON CONFLICT(key, seq) DO UPDATE SET vector = excluded.vector`,
			Args: []any{string(s.Key), of[i], quantize(v)}})
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO embedded(key, log, model, seq) VALUES(?, ?, ?, ?) ON CONFLICT(key, log) DO UPDATE SET seq = excluded.seq, failures = 0`,
		Args: []any{string(s.Key), log, s.by.Name(), seqs[len(seqs)-1]}})
	return false, s.DB.Tx(ctx, stmts)
}

// embed asks the endpoint, and holds that it gave what was asked for: as many vectors, of numbers.
func (s *Room) embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out, err := s.by.Embed(ctx, texts)
	if err == nil && len(out) != len(texts) {
		err = fmt.Errorf("%d vectors for %d texts: %w", len(out), len(texts), tidemark.ErrUnavailable)
	}
	for _, v := range out {
		sum := 0.0
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		if err == nil && !(sum > 0 && sum < math.MaxFloat32) {
			err = errNoVector
		}
	}
	how := "made"
	if err != nil {
		how = "failed"
	}
	s.Observe(room.NoticeVectors, how, len(texts))
	return out, err
}

// errAnew is vectors that do not compare with those that are there.
var errAnew = errors.New("vectors of another length")

// errNoVector is numbers that have no direction.
var errNoVector = fmt.Errorf("a vector of zeros, or of no numbers: %w", tidemark.ErrUnavailable)

// refusesText reports an endpoint that will not take a text, or makes nothing of it: the same again would go the
// same way.
func refusesText(err error) bool {
	var api *tidemark.APIError
	return errors.Is(err, errNoVector) || errors.As(err, &api) && (api.Class == tidemark.ClassBadRequest || api.Class == tidemark.ClassOverflow)
}

// forgetVectors drops all vectors of the conversation, so that they are made anew, not at once: an endpoint may
// answer differently each time.
func (s *Room) forgetVectors(ctx context.Context) error {
	return s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `DELETE FROM vectors WHERE key = ?`, Args: []any{string(s.Key)}},
		{SQL: `DELETE FROM embedded WHERE key = ?`, Args: []any{string(s.Key)}},
		s.Due(room.DueVectors, s.Runtime.Now().Add(room.Cooldowns[0]), ""),
	})
}

// otherSize reports vectors of another length than those that are there: the endpoint has another model behind
// the same name.
func (s *Room) otherSize(ctx context.Context, size int) (bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT length(vector) FROM vectors WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return false, fmt.Errorf("read the length of vectors: %w", err)
	}
	return len(rows) > 0 && rows[0].Int(0) != int64(size), nil
}

// State tells of a database how many messages have vectors, and of how many logs the endpoint failed last.
func State(ctx context.Context, db tidemark.DB) (made, failing int, err error) {
	rows, err := db.Query(ctx, `SELECT count(*) FROM sqlite_master WHERE name IN ('vectors', 'embedded') LIMIT 1`)
	if err != nil || rows[0].Int(0) < 2 {
		return 0, 0, err
	}
	rows, err = db.Query(ctx, `SELECT (SELECT count(*) FROM vectors), (SELECT count(*) FROM embedded WHERE failures > 0) LIMIT 1`)
	if err != nil {
		return 0, 0, fmt.Errorf("read vectors: %w", err)
	}
	return int(rows[0].Int(0)), int(rows[0].Int(1)), nil
}

// quantize makes a vector of length one, a byte a number.
func quantize(v []float32) []byte {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	scale := 127 / max(math.Sqrt(sum), 1e-12)
	out := make([]byte, len(v))
	for i, f := range v {
		out[i] = byte(int8(math.Round(min(127, max(-127, float64(f)*scale)))))
	}
	return out
}

// dot is the likeness of two vectors of quantize.
func dot(a, b []byte) float64 {
	sum := int32(0)
	for i := range a {
		sum += int32(int8(a[i])) * int32(int8(b[i]))
	}
	return float64(sum)
}

// Near returns the messages whose vectors stand out for a query, by position; none when the endpoint fails. told says
// in which state the vectors are.
func (s *Room) Near(ctx context.Context, query string, in *host.Lineage) (near map[int64]recall.Stand, told string) {
	now := s.Runtime.Now()
	if left := s.rest.Load() - now.UnixMilli(); left > 0 && left <= room.Cooldowns[0].Milliseconds() { // more: the clock was ahead
		return nil, "unreachable"
	}
	limited, stop := s.Runtime.WithTimeout(ctx, askTimeout)
	defer stop()
	v, err := s.embed(limited, []string{clip.Bytes(query, embedBytes)})
	if err != nil && ctx.Err() == nil { // no other recall waits for it soon
		s.rest.Store(now.Add(room.Cooldowns[0]).UnixMilli())
	}
	if err == nil {
		near, err = s.likest(ctx, in, quantize(v[0]))
	}
	if err != nil {
		s.Warn("recall without vectors", err)
		return nil, "unreachable"
	}
	return near, "used"
}

// likest holds a vector against those of the newest messages.
func (s *Room) likest(ctx context.Context, in *host.Lineage, q []byte) (map[int64]recall.Stand, error) {
	var seqs []int64
	var likeness []float64
	for before := int64(1 << 53); len(seqs) < maxVectors; {
		sql, args := `SELECT seq, vector FROM vectors v WHERE key = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, []any{string(s.Key), before, vectorPage}
		if !in.Single {
			sql = `SELECT v.seq, v.vector FROM vectors v JOIN entries e ON e.seq = v.seq WHERE v.key IN (SELECT value FROM json_each(?)) AND e.seq <= coalesce(json_extract(?, '$."' || e.log || '"'), 0) AND v.seq < ? ORDER BY v.seq DESC LIMIT ?`
			args = []any{room.JSON(in.Keys), in.Logs, before, vectorPage}
		}
		rows, err := s.DB.Query(ctx, sql, args...)
		if err != nil {
			return nil, fmt.Errorf("read vectors: %w", err)
		}
		for _, r := range rows {
			if v := r.Bytes(1); len(v) == len(q) {
				seqs, likeness = append(seqs, r.Int(0)), append(likeness, dot(q, v))
			}
			before = r.Int(0)
		}
		if len(rows) < vectorPage {
			break
		}
	}
	out := map[int64]recall.Stand{}
	for i, st := range recall.Standing(likeness, room.MaxNear) {
		out[seqs[i]] = st
	}
	return out, nil
}

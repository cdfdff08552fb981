package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
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
	maxStanding  = 16 // messages that vectors add to those that words found
)

// vectorTables exist where there is an endpoint for vectors.
var vectorTables = [][]string{{
	`CREATE TABLE vectors(key TEXT NOT NULL, seq INTEGER NOT NULL, vector BLOB NOT NULL, PRIMARY KEY(key, seq)) WITHOUT ROWID`,
	// How far each log has vectors, and of which model.
	`CREATE TABLE embedded(key TEXT NOT NULL, log TEXT NOT NULL, model TEXT NOT NULL, seq INTEGER NOT NULL, failures INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(key, log)) WITHOUT ROWID`,
}}

// findVectors makes the tables of vectors, where they are asked for, and drops those of another model.
func (s *Session) findVectors(ctx context.Context) error {
	if s.Embedder == nil {
		return nil
	}
	if err := host.Migrate(ctx, s.DB, "session_vectors", vectorTables); err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM embedded WHERE key = ? AND model <> ? LIMIT 1`, string(s.Key), s.Embedder.Name())
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.forgetVectors(ctx)
}

// embedStmts makes new messages due for vectors, behind what logs them.
func (s *Session) embedStmts() []tidemark.Stmt {
	if s.Embedder == nil {
		return nil
	}
	return []tidemark.Stmt{{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '') ON CONFLICT(key, kind) DO NOTHING`,
		Args: []any{string(s.Key), dueEmbed, s.Runtime.Now().Add(embedAfter).UnixMilli()}}}
}

// embedDue gives vectors to messages that have none, some batches at a time. An endpoint that fails is asked
// again later, less and less often; nothing waits for it.
func (s *Session) embedDue(ctx context.Context) error {
	if s.Embedder == nil {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(dueEmbed)})
	}
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
				s.warn("vectors put off", err)
				return s.embedLater(ctx, log)
			}
			if done {
				break
			}
			if left--; left == 0 || s.Runtime.Now().Sub(begun) > embedTime { // others are due, too
				return s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueEmbed, s.Runtime.Now(), "")})
			}
		}
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(dueEmbed)})
}

// embedLater plans the next try after a failure.
func (s *Session) embedLater(ctx context.Context, log string) error {
	_, failures, err := s.embeddedTo(ctx, log)
	if err != nil {
		return err
	}
	pause := cooldowns[min(failures, len(cooldowns)-1)]
	return s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `INSERT INTO embedded(key, log, model, seq, failures) VALUES(?, ?, ?, 0, 1) ON CONFLICT(key, log) DO UPDATE SET failures = failures + 1`,
			Args: []any{string(s.Key), log, s.Embedder.Name()}},
		s.dueStmt(dueEmbed, s.Runtime.Now().Add(pause), ""),
	})
}

func (s *Session) embeddedTo(ctx context.Context, log string) (seq int64, failures int, err error) {
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
func (s *Session) embedSome(ctx context.Context, log string, most int) (done bool, err error) {
	from, _, err := s.embeddedTo(ctx, log)
	if err != nil {
		return false, err
	}
	until, err := s.decided(ctx) // the turn in work may yet be skipped; its end makes this due again
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
	skipped, err := s.skippedIn(ctx, seqs[0], seqs[len(seqs)-1])
	if err != nil {
		return false, err
	}
	entries, err := s.log.Payloads(ctx, seqs)
	if err != nil {
		return false, err
	}
	var texts []string
	var of []int64
	err = s.texts(ctx, entries, nil, func(e tidemark.Entry, _ tidemark.Role, p piece) {
		if text := clip(p.text, embedBytes); text != "" && e.Origin.Findable() && !skipped[e.Seq] {
			texts, of = append(texts, text), append(of, e.Seq)
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
			s.Logger.Warn("a message without a vector", "session", s.Key, "entry", entries[0].ID, "err", err)
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
	stmts := make([]tidemark.Stmt, 0, len(of)+1)
	for i, v := range vectors {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO vectors(key, seq, vector) VALUES(?, ?, ?) ON CONFLICT(key, seq) DO UPDATE SET vector = excluded.vector`,
			Args: []any{string(s.Key), of[i], quantize(v)}})
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO embedded(key, log, model, seq) VALUES(?, ?, ?, ?) ON CONFLICT(key, log) DO UPDATE SET seq = excluded.seq, failures = 0`,
		Args: []any{string(s.Key), log, s.Embedder.Name(), seqs[len(seqs)-1]}})
	return false, s.DB.Tx(ctx, stmts)
}

// clip cuts a text to so many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// embed asks the endpoint, and holds that it gave what was asked for: as many vectors, of numbers.
func (s *Session) embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out, err := s.Embedder.Embed(ctx, texts)
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
	if s.Observe != nil {
		how := "made"
		if err != nil {
			how = "failed"
		}
		s.Observe(Notice{Type: NoticeVectors, Text: how, Count: len(texts)})
	}
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
func (s *Session) forgetVectors(ctx context.Context) error {
	return s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `DELETE FROM vectors WHERE key = ?`, Args: []any{string(s.Key)}},
		{SQL: `DELETE FROM embedded WHERE key = ?`, Args: []any{string(s.Key)}},
		s.dueStmt(dueEmbed, s.Runtime.Now().Add(cooldowns[0]), ""),
	})
}

// otherSize reports vectors of another length than those that are there: the endpoint has another model behind
// the same name.
func (s *Session) otherSize(ctx context.Context, size int) (bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT length(vector) FROM vectors WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return false, fmt.Errorf("read the length of vectors: %w", err)
	}
	return len(rows) > 0 && rows[0].Int(0) != int64(size), nil
}

// VectorState tells of a database how many messages have vectors, and of how many logs the endpoint failed last.
func VectorState(ctx context.Context, db tidemark.DB) (made, failing int, err error) {
	rows, err := db.Query(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('vectors', 'embedded') LIMIT 1`)
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

// standing returns the messages whose vectors stand out for a query, by position; none when there is no
// endpoint, or it fails: the words find what they find. told says in which state the vectors are.
func (s *Session) standing(ctx context.Context, l *lineage, w Wanted) (near map[int64]recall.Stand, told string) {
	if s.Embedder == nil {
		return nil, ""
	}
	now := s.Runtime.Now()
	if left := s.vectorsRest.Load() - now.UnixMilli(); left > 0 && left <= cooldowns[0].Milliseconds() { // more: the clock was ahead
		return nil, "unreachable"
	}
	limited, stop := s.Runtime.WithTimeout(ctx, askTimeout)
	defer stop()
	v, err := s.embed(limited, []string{clip(w.Query, embedBytes)})
	if err != nil && ctx.Err() == nil { // no other recall waits for it soon
		s.vectorsRest.Store(now.Add(cooldowns[0]).UnixMilli())
	}
	if err == nil {
		if near, err = s.likest(ctx, l, quantize(v[0])); err == nil {
			near, err = s.wanted(ctx, l, near, w)
		}
	}
	if err != nil {
		s.warn("recall without vectors", err)
		return nil, "unreachable"
	}
	return near, "used"
}

// wanted keeps of what stands out what was said in time, and leaves out skipped turns unless all is wanted.
func (s *Session) wanted(ctx context.Context, l *lineage, near map[int64]recall.Stand, w Wanted) (map[int64]recall.Stand, error) {
	if len(near) == 0 {
		return nil, nil
	}
	since, until := w.span()
	_, skipped := l.homes(s)
	if w.All {
		skipped = []string{"none"}
	}
	rows, err := s.DB.Query(ctx, `SELECT e.seq FROM json_each(?) j CROSS JOIN entries e ON e.seq = j.value
		WHERE e.at BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND rowid = e.seq) LIMIT ?`,
		mustJSON(standingSeqs(near)), since, until, anyHome(skipped), maxStanding)
	if err != nil {
		return nil, fmt.Errorf("read what stands out: %w", err)
	}
	out := map[int64]recall.Stand{}
	for _, r := range rows {
		out[r.Int(0)] = near[r.Int(0)]
	}
	return out, nil
}

// lookNear ranks again, with what stands out by its vector among the candidates.
func (f *finding) lookNear(ctx context.Context, q recall.Query) error {
	for _, seq := range standingSeqs(f.near) {
		if !slices.Contains(f.seqs, seq) {
			f.seqs = append(f.seqs, seq)
		}
	}
	if err := f.load(ctx, f.seqs, f.seqs[:min(len(f.seqs), besideOf)]); err != nil {
		return err
	}
	f.hits = f.fused(f.index.Search(q, f.stats))
	return nil
}

// fused puts what stands out by its vector among the hits of words.
func (f *finding) fused(hits []recall.Hit) []recall.Hit {
	if len(f.near) == 0 {
		return hits
	}
	near := map[string]recall.Stand{}
	for id, seq := range f.docs {
		if st, ok := f.near[seq]; ok {
			near[id] = st
		}
	}
	return f.index.Fuse(hits, near)
}

// likely reports whether a vector stands out so far that it is worth a look, though no word says so.
func (f *finding) likely() bool {
	for _, st := range f.near {
		if st.Weight() >= 0.5 {
			return true
		}
	}
	return false
}

// likest holds a vector against those of the newest messages.
func (s *Session) likest(ctx context.Context, l *lineage, q []byte) (map[int64]recall.Stand, error) {
	var seqs []int64
	var likeness []float64
	for before := int64(1 << 53); len(seqs) < maxVectors; {
		sql, args := `SELECT seq, vector FROM vectors v WHERE key = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, []any{string(s.Key), before, vectorPage}
		if !l.single {
			sql = `SELECT v.seq, v.vector FROM vectors v JOIN entries e ON e.seq = v.seq WHERE v.key IN (SELECT value FROM json_each(?)) AND ` + l.before("e") + ` AND v.seq < ? ORDER BY v.seq DESC LIMIT ?`
			args = []any{mustJSON(l.keys), l.logs, before, vectorPage}
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
	for i, st := range recall.Standing(likeness, maxStanding) {
		out[seqs[i]] = st
	}
	return out, nil
}

// standingSeqs are the positions of those that stand out, in order.
func standingSeqs(near map[int64]recall.Stand) []int64 {
	out := make([]int64, 0, len(near))
	for seq := range near {
		out = append(out, seq)
	}
	slices.Sort(out)
	return out
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/session"
)

// Scale measures recall over a long log: one conversation of so many messages as agents write them, and as
// many beside it in the same database that belong to others.
type Scale struct {
	Events int
	Beside int // messages of another conversation in the same database
	Asks   int // queries of each kind
	Told   Told
}

// Scaled is what a run of Scale measured, in milliseconds.
type Scaled struct {
	Events  int              `json:"events"`
	Beside  int              `json:"beside"`
	Write   float64          `json:"write_ms"` // of all messages
	Index   float64          `json:"index_ms"` // of all messages
	Queries map[string]Speed `json:"queries"`  // by kind: exact, words, question, common, absent
	All     Speed            `json:"all"`
	Exact   float64          `json:"exact_found"` // share of exact queries whose message came first
}

// Speed is how long queries took.
type Speed struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func (c Scale) check() error {
	for _, row := range []struct {
		flag      string
		v, lo, hi int
	}{{"--events", c.Events, 100, 10_000_000}, {"--beside", c.Beside, 0, 10_000_000}, {"--asks", c.Asks, 1, 10_000}} {
		if row.v < row.lo || row.v > row.hi {
			return fmt.Errorf("%s %d: want %d to %d: %w", row.flag, row.v, row.lo, row.hi, tidemark.ErrInvalid)
		}
	}
	return nil
}

// Run makes the database in a folder and asks.
func (c Scale) Run(ctx context.Context, folder string) (out Scaled, err error) {
	if err := c.check(); err != nil {
		return out, err
	}
	db, err := native.OpenDB(filepath.Join(folder, "scale.db"))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out.Events, out.Beside = c.Events, c.Beside
	if c.Beside > 0 {
		if _, err := c.fill(ctx, db, "agent:main:beside", c.Beside, &Scaled{}); err != nil {
			return out, err
		}
	}
	s, err := c.fill(ctx, db, "agent:main:scale", c.Events, &out)
	if err != nil {
		return out, err
	}
	return out, c.measure(ctx, s, &out)
}

// fill opens a session and writes its log straight into the database: what is measured is how it is found.
func (c Scale) fill(ctx context.Context, db *native.DB, key tidemark.Key, events int, out *Scaled) (*session.Session, error) {
	s, err := session.Open(ctx, session.Config{Key: key, DB: db, Provider: offline.Model{}, Agent: nobody{},
		Runtime: native.NewRuntime(nil), Settings: session.Settings{NoMemories: true}})
	if err != nil {
		return nil, err
	}
	log, err := session.Migrate(ctx, db)
	if err != nil {
		return nil, err
	}
	logs, err := s.Logs(ctx)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	const each = 2000
	entries := make([]tidemark.Entry, 0, each)
	w := newWriter(string(key))
	for i := range events {
		entries = append(entries, w.entry(i))
		if len(entries) < each && i < events-1 {
			continue
		}
		stmts, err := log.AppendStmts(logs[0], entries...)
		if err != nil {
			return nil, err
		}
		if err := db.Tx(ctx, stmts); err != nil {
			return nil, err
		}
		entries = entries[:0]
		c.Told.tell("messages written", i+1, events)
	}
	out.Write = milliseconds(time.Since(begun))
	begun = time.Now()
	for { // each question makes a part of the index, and says what is missing
		r, err := s.Recall(ctx, session.Wanted{Query: "the first questions make the index"})
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(r.Filtered, func(f session.Filtered) bool { return f.Reason == session.NotIndexed })
		if i < 0 {
			out.Index = milliseconds(time.Since(begun))
			return s, nil
		}
		c.Told.tell("messages indexed", events-r.Filtered[i].Count, events)
	}
}

// writer makes messages as an agent's log has them: a person asks, the model calls, a tool answers with some
// lines of code or output, the model says what it found. Words follow Zipf, as those of people do; each result
// has identifiers of its own.
type writer struct {
	rng  *rand.Rand
	zipf *rand.Zipf
	at   time.Time
	call string
}

// scaleWords is how many words a log of Scale has, beside identifiers.
const scaleWords = 20_000

func newWriter(seed string) *writer {
	rng := rand.New(rand.NewPCG(uint64(len(seed)), 7))
	return &writer{rng: rng, zipf: rand.NewZipf(rng, 1.1, 8, scaleWords-1), at: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// scaleWord is a word that can be spoken, one for each number.
func scaleWord(n uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n += 50; n > 0; n /= uint64(len(consonants) * len(vowels)) {
		r := n % uint64(len(consonants)*len(vowels))
		b.WriteByte(consonants[r/uint64(len(vowels))])
		b.WriteByte(vowels[r%uint64(len(vowels))])
	}
	return b.String()
}

func (w *writer) words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = scaleWord(w.zipf.Uint64())
	}
	return strings.Join(out, " ")
}

// scaleName is the identifier of the message with that number.
func scaleName(i int) string { return fmt.Sprintf("build_%06d_%05x", i, i*7919%0xfffff) }

func (w *writer) entry(i int) tidemark.Entry {
	w.at = w.at.Add(7 * time.Second)
	var m tidemark.Message
	from := tidemark.FromModel
	switch i % 4 {
	case 0:
		m, from = tidemark.NewText(tidemark.User, w.words(10+w.rng.IntN(30))+" "+scaleName(i)), tidemark.FromPerson
	case 1:
		w.call = fmt.Sprintf("toolu_%08d", i)
		m = tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(w.call, "read",
			fmt.Appendf(nil, `{"file_path":"/srv/%s/%s.go","limit":%d,"tag":%q}`, w.words(1), w.words(1), w.rng.IntN(500), scaleName(i)))}}
	case 2:
		var b strings.Builder
		b.WriteString(scaleName(i) + "\n")
		for n := range 3 + w.rng.IntN(8) {
			fmt.Fprintf(&b, "%6d\tfunc %s%x(ctx context.Context) error { return %q }\n", n, w.words(1), w.rng.Uint32()%4096, w.words(3))
		}
		m, from = tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(w.call, b.String(), false)}}, tidemark.FromTool
	default:
		m = tidemark.NewText(tidemark.Assistant, w.words(8+w.rng.IntN(20))+" "+scaleName(i))
	}
	return tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(w.at)), Kind: tidemark.KindMessage, At: w.at,
		Origin: tidemark.Origin{From: from}, Payload: m.AppendJSON(nil)}
}

// measure asks queries of each kind.
func (c Scale) measure(ctx context.Context, s *session.Session, out *Scaled) error {
	rng := rand.New(rand.NewPCG(11, 13))
	word := func(from, to int) string { return scaleWord(uint64(from + rng.IntN(to-from))) }
	kinds := []struct {
		name string
		ask  func(i int) string
	}{
		{"exact", func(i int) string { return scaleName(i) }},
		{"words", func(int) string { return word(20, 2000) + " " + word(20, 2000) + " " + word(100, 5000) }},
		{"question", func(int) string {
			return "where did we read about the " + word(0, 300) + " and the " + word(5, 3000) + " of the " + word(0, 5000) + ", and what did " +
				word(50, 3000) + " say of " + word(0, 200) + " " + word(500, 8000) + " before the " + word(0, 1000) + "?"
		}},
		{"common", func(int) string { return word(0, 10) + " " + word(0, 10) + " context error" }},
		{"absent", func(i int) string { return fmt.Sprintf("quux_%d_zzz never xylophoned", i) }},
	}
	out.Queries = map[string]Speed{}
	var all []time.Duration
	exact := 0
	for _, k := range kinds {
		var took []time.Duration
		for range c.Asks {
			c.Told.tell("questions", len(all)+len(took), len(kinds)*c.Asks)
			i := rng.IntN(c.Events)
			q := k.ask(i)
			begun := time.Now()
			r, err := s.Recall(ctx, session.Wanted{Query: q})
			if err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
			took = append(took, time.Since(begun))
			if k.name == "exact" && len(r.Results) > 0 && strings.Contains(r.Results[0].Text, scaleName(i)) {
				exact++
			}
		}
		out.Queries[k.name] = speed(took)
		all = append(all, took...)
	}
	out.All, out.Exact = speed(all), float64(exact)/float64(c.Asks)
	return nil
}

func speed(took []time.Duration) Speed {
	slices.Sort(took)
	at := func(share float64) float64 {
		return milliseconds(took[min(len(took)-1, int(share*float64(len(took))))])
	}
	return Speed{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

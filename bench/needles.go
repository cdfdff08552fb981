package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/pack"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// Needles is the set-up of the paper's Table 2 (papers/total-recall §10.4), with cycles that really happen:
// after its events come needles that are harder to find, and what nobody asks for. The log is compacted
// so many times, each time after an equal share of it; where a share does not fill the context, it goes on.
type Needles struct {
	Needles  int             // hidden evenly among the events, and as many of each harder kind
	Events   int             // odd ones are text of a person, even ones results of a tool
	Cycles   int             // compactions before the questions
	Budget   tidemark.Tokens // of the context
	Headroom tidemark.Tokens
	Tail     int  // turns that stay
	Plain    bool // the paper's needles alone
	Told     Told
}

// Told hears how far a run is; of is 0 where nobody knows. It may be nil.
type Told func(what string, done, of int)

func (t Told) tell(what string, done, of int) {
	if t != nil {
		t(what, done, of)
	}
}

// asking tells of each question.
func (t Told) asking(ask asker, of int) asker {
	done := 0
	return func(ctx context.Context, q string) (search.Recalled, error) {
		done++
		t.tell("questions", done, of)
		return ask(ctx, q)
	}
}

// Found is what a run of Needles measured. A share of 1 is all of them; what could not be measured is nil.
type Found struct {
	Recall     float64            `json:"recall_at_10"` // of the paper's needles, by their exact words
	Loss       float64            `json:"needle_loss"`  // share that no search among 10 results gives
	Cycles     int                `json:"cycles"`
	Markers    *int               `json:"markers,omitempty"`
	Most       *int               `json:"markers_most,omitempty"`        // log2(cycles)+1
	Compaction *float64           `json:"compaction_ms,omitempty"`       // of planning one over what is in the context, the median
	Whole      *float64           `json:"compaction_whole_ms,omitempty"` // of one with its archive and the database, the mean
	ByKind     map[string]float64 `json:"by_kind"`                       // of absent ones, the share judged weak or nothing
	First      map[string]float64 `json:"first_by_kind"`                 // share that came first
	Sure       map[string]float64 `json:"sure_by_kind"`                  // share that came first and was told as sure
	False      float64            `json:"false_recall"`                  // share of all questions to which something else came first, told as sure
	Absent     float64            `json:"absent_judged"`
	InContext  int                `json:"messages_in_context"`
	Needles    *int               `json:"needles_in_context,omitempty"` // of any kind
	Query      float64            `json:"query_ms"`
	Slow       float64            `json:"query_p99_ms"`
	Messages   int                `json:"messages"`
}

// bounds of a run.
const (
	maxEvents = 1_000_000
	recallAt  = 10
)

// check refuses a set-up that cannot be run, and names the flag.
func (n Needles) check() error {
	for _, row := range []struct {
		flag      string
		v, lo, hi int
	}{
		{"--needles", n.Needles, 1, 100_000}, {"--events", n.Events, n.Needles + 1, maxEvents}, {"--cycles", n.Cycles, 1, 100_000},
		{"--budget", int(n.Budget), 1000, 10_000_000}, {"--headroom", int(n.Headroom), 1, int(n.Budget) / 2}, {"--tail", n.Tail, 1, 1000},
	} {
		if row.v < row.lo || row.v > row.hi {
			return fmt.Errorf("%s %d: want %d to %d: %w", row.flag, row.v, row.lo, row.hi, tidemark.ErrInvalid)
		}
	}
	return nil
}

// Run plays a log with needles through a session in a folder, which is made, and asks for each of them.
func (n Needles) Run(ctx context.Context, folder string) (out Found, err error) {
	if err := n.check(); err != nil {
		return out, err
	}
	watch := &stopwatch{Pointer: compaction.Pointer{Tail: n.Tail, Headroom: n.Headroom}}
	s, end, err := open(ctx, folder, offline.Model{}, []compaction.Strategy{watch},
		session.Settings{Window: n.Budget, Reserve: 1, Keep: n.Budget / 2, NoMemories: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, end()) }()
	sc := n.script()
	played := func(done int) { n.Told.tell("messages played", done, 0) }
	if err := sayLog(ctx, s, sc.until(ctx, s, n.Cycles), played); err != nil {
		return out, fmt.Errorf("play the log: %w", err)
	}
	if err := gate(ctx, s, true); err != nil {
		return out, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return out, err
	}
	if out.Cycles, out.Messages = info.Compactions, info.Messages; out.Cycles < n.Cycles {
		return out, fmt.Errorf("%d messages made %d compactions of %d: raise --events, or lower --budget or --headroom: %w", info.Messages, out.Cycles, n.Cycles, tidemark.ErrInvalid)
	}
	questions, err := n.context(ctx, s, sc, &out)
	if err != nil {
		return out, err
	}
	whole, err := carriedOut(ctx, s)
	if err != nil {
		return out, err
	}
	planned, mean := milliseconds(watch.median()), milliseconds(meanOf(watch.took)+whole)
	a, err := put(ctx, n.Told.asking(func(ctx context.Context, q string) (search.Recalled, error) {
		return find(s).Recall(ctx, search.Wanted{Query: q, K: recallAt})
	}, len(questions)), questions)
	bound := most(out.Cycles)
	out.Compaction, out.Whole, out.Most = &planned, &mean, &bound
	out.take(a)
	return out, err
}

// take puts figures together.
func (f *Found) take(a answers) {
	f.ByKind, f.First, f.Sure = a.shares(a.found), a.shares(a.first), a.shares(a.sure)
	f.Recall, f.Loss = f.ByKind[kindExact], digits(1-f.ByKind[kindExact])
	absent, all := 0, 0
	for _, kind := range []string{kindAbsent, kindAbsentNear, kindAsked} {
		absent, all = absent+a.found[kind], all+a.count[kind]
		delete(f.First, kind)
		delete(f.Sure, kind)
	}
	f.False = digits(float64(a.wrong) / float64(max(1, len(a.took))))
	f.Absent = digits(float64(absent) / float64(max(1, all)))
	f.Query, f.Slow = a.mean(), a.p99()
}

// stopwatch is pointer compaction that notes how long its plans took.
type stopwatch struct {
	compaction.Pointer
	took []time.Duration // of those that freed something
}

// Plan plans as Pointer does.
func (w *stopwatch) Plan(v compaction.View, b compaction.Budget) []tidemark.Edit {
	begun := time.Now()
	edits := w.Pointer.Plan(v, b)
	if len(edits) > 0 {
		w.took = append(w.took, time.Since(begun))
	}
	return edits
}

func (w *stopwatch) median() time.Duration {
	if len(w.took) == 0 {
		return 0
	}
	took := slices.Sorted(slices.Values(w.took))
	return took[len(took)/2]
}

// most is how many markers may stand after so many cycles.
func most(cycles int) int { return bits.Len(uint(max(1, cycles))) } //nolint:gosec // above 0

// open makes a session in a folder.
func open(ctx context.Context, folder string, model tidemark.Provider, strategies []compaction.Strategy, settings session.Settings) (*session.Session, func() error, error) {
	db, err := native.OpenDB(filepath.Join(folder, "needles.db"))
	if err != nil {
		return nil, nil, err
	}
	blobs, err := native.NewDir(filepath.Join(folder, "bucket"))
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	s, err := session.Open(ctx, session.Config{Key: "agent:main:needles", DB: db, Blobs: blobs, Provider: model, Agent: nobody{},
		Runtime: native.NewRuntime(nil), Strategies: strategies, Settings: settings, Rooms: []room.Maker{search.Make, task.Make(task.Auto), pack.Make, replay.Make}})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, db.Close, nil
}

// sayLog has the messages of a log said in a session that open opened.
func sayLog(ctx context.Context, s *session.Session, log iter.Seq2[replay.Message, error], told func(done int)) error {
	r, ok := session.Room[*replay.Room](s)
	if !ok {
		return fmt.Errorf("the session has no room for a log: %w", tidemark.ErrUnavailable)
	}
	_, err := r.Import(ctx, log, told)
	return err
}

// script is a log that goes on for ever: the paper's events, harder needles, and then nothing of interest.
type script struct {
	n      Needles
	harder []planted
}

func (n Needles) script() *script {
	sc := &script{n: n}
	if !n.Plain {
		sc.harder = harder(n.Needles)
	}
	return sc
}

// needle returns which of the paper's needles an event hides, -1 for none.
func (sc *script) needle(i int) int {
	step := max(1, sc.n.Events/(sc.n.Needles+1))
	if k := i/step - 1; i%step == 0 && k < sc.n.Needles && i <= sc.n.Events {
		return k
	}
	return -1
}

// event is a turn of the log, from 1 on.
func (sc *script) event(i int) []tidemark.Message {
	if k := i - sc.n.Events - 1; k >= 0 && k < len(sc.harder) {
		return sc.harder[k].turn
	}
	text, result := strings.Repeat("x", 320), strings.Repeat("data ", 80)
	if k := sc.needle(i); k >= 0 {
		text, result = name(k)+" "+text, name(k)+" "+result
	}
	return event(i, text, result)
}

// behind is how many events follow the last needle at least, so that it leaves the context.
func (sc *script) behind() int {
	const tokensOfEvent = 80
	return 2 * int(sc.n.Budget) / tokensOfEvent
}

// least is how many events the log has at least.
func (sc *script) least() int { return sc.n.Events + len(sc.harder) + sc.behind() }

// at is when an event was.
func at(i int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
}

// gate lets a session compact, or puts its window out of reach.
func gate(ctx context.Context, s *session.Session, open bool) error {
	var o session.Override
	if !open {
		o.Window = session.MaxWindow
	}
	return s.Configure(ctx, o)
}

// until yields the log until there were as many compactions, and none more: each when its share of the log was played
// and the context is full.
func (sc *script) until(ctx context.Context, s *session.Session, cycles int) iter.Seq2[replay.Message, error] {
	const maxFlood = 2000 // events for one compaction
	return func(yield func(replay.Message, error) bool) {
		made, open := 0, true
		for i := 1; made < cycles && i <= sc.least()+maxFlood*cycles; i++ {
			if due := i >= sc.least()*(made+1)/cycles; due != open {
				if err := gate(ctx, s, due); err != nil {
					yield(replay.Message{}, err)
					return
				}
				open = due
			}
			for _, m := range sc.event(i) {
				if !yield(replay.Message{Message: m, At: at(i)}, nil) {
					return
				}
				if !open || m.Role != tidemark.Assistant { // an import compacts before what the model says
					continue
				}
				info, err := s.Info(ctx)
				if err == nil && info.Compactions > made {
					made, open = info.Compactions, false
					err = gate(ctx, s, false)
				}
				if err != nil {
					yield(replay.Message{}, err)
					return
				}
			}
		}
	}
}

// questions asks for each needle, and for as many that are not there. merged reports that a needle of the
// paper, by its event, stands under a marker of several compactions.
func (sc *script) questions(merged func(event int) bool) []asked {
	var out []asked
	for i := 1; i <= sc.n.Events; i++ {
		k := sc.needle(i)
		if k < 0 {
			continue
		}
		want := name(k) + " "
		out = append(out, asked{kindExact, name(k), want}, asked{kindPrefix, fmt.Sprintf("NEEDLE_FACT_%d", k), want},
			asked{kindAbsent, name(sc.n.Needles + 1 + k), ""})
		if merged(i) {
			out = append(out, asked{kindMerged, name(k), want})
		}
	}
	for _, p := range sc.harder {
		out = append(out, p.questions...)
	}
	return out
}

// event is a turn: what a person says and the answer, or a call and its result.
func event(i int, text, result string) []tidemark.Message {
	if i%2 == 1 {
		return []tidemark.Message{tidemark.NewText(tidemark.User, text), tidemark.NewText(tidemark.Assistant, "Noted.")}
	}
	id := fmt.Sprintf("call_%d", i)
	return []tidemark.Message{
		tidemark.NewText(tidemark.User, "Read the next page."),
		{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "read", fmt.Appendf(nil, `{"page":%d}`, i))}},
		{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, result, false)}},
		tidemark.NewText(tidemark.Assistant, "Read."),
	}
}

// context counts what stands in the view, and returns the questions that it leads to.
func (n Needles) context(ctx context.Context, s *session.Session, sc *script, out *Found) ([]asked, error) {
	v, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	markers, needles := 0, 0
	out.Markers, out.Needles = &markers, &needles
	var text strings.Builder
	var several []compaction.Marker
	for _, it := range v.Items {
		if !compaction.IsMarker(it) {
			out.InContext++
			text.WriteString(plain(it.Message))
			continue
		}
		markers++
		if m, ok := compaction.MarkerOf(tidemark.Edit{Data: it.Data}); ok && m.Cycles > 1 {
			several = append(several, m)
		}
	}
	questions := sc.questions(func(event int) bool {
		return slices.ContainsFunc(several, func(m compaction.Marker) bool { return !at(event).Before(m.From) && !at(event).After(m.To) }) &&
			!strings.Contains(text.String(), name(sc.needle(event))+" ")
	})
	for _, q := range questions {
		if q.want != "" && q.kind != kindPrefix && strings.Contains(text.String(), q.want) {
			needles++
		}
	}
	return questions, nil
}

// plain is all text of a message, results of tools included.
func plain(m tidemark.Message) string {
	var b strings.Builder
	for _, blk := range m.Content {
		b.WriteString(blk.Text + string(blk.Input))
		for _, c := range blk.Content {
			b.WriteString(c.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// carriedOut is how long a compaction took from its plan on, the mean of what their events say.
func carriedOut(ctx context.Context, s *session.Session) (time.Duration, error) {
	var sum time.Duration
	count := 0
	for before := int64(0); ; {
		acts, err := s.Reader.Acts(ctx, before, 500)
		if err != nil {
			return 0, err
		}
		for _, e := range acts {
			var ev tidemark.Event
			var c session.Compacted
			if e.Kind == tidemark.KindEvent && json.Unmarshal(e.Payload, &ev) == nil && ev.Type == "compaction" && json.Unmarshal(ev.Data, &c) == nil {
				sum, count = sum+time.Duration(c.Millis)*time.Millisecond, count+1
			}
			before = e.Seq
		}
		if len(acts) == 0 {
			return sum / time.Duration(max(1, count)), nil
		}
	}
}

// nobody is an agent that remembers nothing.
type nobody struct{}

func (nobody) Prompt(context.Context, tidemark.Scope, time.Time) (string, error) { return "", nil }
func (nobody) Remember(context.Context, tidemark.Extraction) error               { return nil }
func (nobody) Report(context.Context, tidemark.SessionInfo, []archive.Info) error {
	return nil
}
func (nobody) Tools(tidemark.Scope) []tidemark.Tool { return nil }
func (nobody) Call(_ context.Context, _ tidemark.Scope, call tidemark.Block) tidemark.Block {
	return tidemark.ToolResult(call.ID, "there is no such tool", true)
}

// Folder makes a folder for a run; remove takes it away.
func Folder() (path string, remove func() error, err error) {
	path, err = os.MkdirTemp("", "tidemark-bench-")
	return path, func() error { return os.RemoveAll(path) }, err
}

// find is what finds in a session that open made.
func find(s *session.Session) *search.Room {
	r, _ := session.Room[*search.Room](s)
	return r
}

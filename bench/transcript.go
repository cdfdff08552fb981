package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/transcript"
)

// Agents measures recall on logs of Claude Code: needles are planted among their messages, and what
// really stands there and is rare is asked for, so that rules made for talk are seen to do no harm there.
type Agents struct {
	Needles int             // planted in each log, and asked of each kind of identifier
	Window  tidemark.Tokens // small, so that compactions happen
	Told    Told
}

// AgentLog is what one log gave.
type AgentLog struct {
	File     string             `json:"file"`
	Messages int                `json:"messages"`
	Cycles   int                `json:"cycles"`
	Markers  int                `json:"markers"`
	Asked    map[string]int     `json:"asked"`
	ByKind   map[string]float64 `json:"by_kind"` // recall at 10 through the session; of absent ones, the share judged weak or nothing
	First    map[string]float64 `json:"first_by_kind"`
	Ranked   map[string]float64 `json:"ranked_by_kind"`      // recall at 10 of the rules over all messages
	Without  map[string]float64 `json:"ranked_without_talk"` // the same without the rules of talk
	FirstR   map[string]float64 `json:"first_ranked"`        // share that came first
	FirstW   map[string]float64 `json:"first_without_talk"`  //
	Query    float64            `json:"query_ms"`            // through the session
	Slow     float64            `json:"query_p99_ms"`        //
}

// What is asked of a log of an agent.
const (
	kindPlanted = "planted"
	kindPath    = "path"
	kindHash    = "hash"
	kindError   = "error"
)

// Run plays a log with planted needles into a session in a folder, and asks.
func (a Agents) Run(ctx context.Context, file string, raw []byte, folder string) (out AgentLog, err error) {
	if a.Needles < 1 || a.Window < session.MinWindow {
		return out, fmt.Errorf("--needles %d --window %d: want 1 and %d at least: %w", a.Needles, a.Window, session.MinWindow, tidemark.ErrInvalid)
	}
	log, err := readAgentLog(file, raw)
	if err != nil {
		return out, err
	}
	out.File = filepath.Base(file)
	questions := named(log, a.Needles)
	log, more := a.plant(log)
	questions = append(questions, more...)
	s, end, err := open(ctx, folder, offline.Model{}, []compaction.Strategy{compaction.Pointer{}}, session.Settings{Window: a.Window,
		Reserve: a.Window / 8, Keep: a.Window / 4, NoMemories: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, end()) }()
	played := func(done int) { a.Told.tell("messages played of "+out.File, done, len(log)) }
	if _, err := s.Import(ctx, all(log), played); err != nil {
		return out, fmt.Errorf("%s: %w", file, err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		return out, err
	}
	v, err := s.View(ctx)
	if err != nil {
		return out, err
	}
	for _, it := range v.Items {
		if compaction.IsMarker(it) {
			out.Markers++
		}
	}
	out.Messages, out.Cycles = info.Messages, info.Compactions
	got, err := put(ctx, a.Told.asking(func(ctx context.Context, q string) (session.Recalled, error) {
		return s.Recall(ctx, session.Wanted{Query: q, K: recallAt})
	}, len(questions)), questions)
	if err != nil {
		return out, err
	}
	out.Asked, out.ByKind, out.First, out.Query, out.Slow = got.count, got.shares(got.found), got.shares(got.first), got.mean(), got.p99()
	delete(out.First, kindAbsent)
	return out, out.rank(ctx, log, questions)
}

// rank asks the rules themselves, over all messages at once, with those of talk and without.
func (l *AgentLog) rank(ctx context.Context, log []session.Imported, questions []asked) error {
	docs := make([]recall.Doc, len(log))
	for i, m := range log {
		docs[i] = recall.Doc{ID: strconv.Itoa(i), Pos: int64(i), Group: m.At.Unix() / (24 * 60 * 60), At: m.At, Text: plain(m.Message)}
	}
	stem := &recall.Stemmer{}
	x := recall.New(docs, stem)
	questions = slices.DeleteFunc(slices.Clone(questions), func(q asked) bool { return q.want == "" })
	by := func(search func(recall.Query, recall.Stats) []recall.Hit) (answers, error) {
		return put(ctx, func(_ context.Context, query string) (r session.Recalled, _ error) {
			hits := search(recall.Parse(query, stem), recall.Stats{})
			for _, h := range hits[:min(len(hits), recallAt)] {
				r.Results = append(r.Results, session.Recollection{Text: x.Docs()[h.Doc].Text})
			}
			return r, nil
		}, questions)
	}
	with, err := by(x.Search)
	if err != nil {
		return err
	}
	without, err := by(x.SearchPlain)
	l.Ranked, l.FirstR = with.shares(with.found), with.shares(with.first)
	l.Without, l.FirstW = without.shares(without.found), without.shares(without.first)
	return err
}

// readAgentLog reads the messages of a log of Claude Code; lines that are none are passed over.
func readAgentLog(file string, raw []byte) (out []session.Imported, err error) {
	for it, err := range transcript.Messages(bytes.NewReader(raw), transcript.Options{}) {
		var bad *transcript.LineError
		if errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, session.Imported{Message: it.Message, At: it.At})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no message in it, want a log of Claude Code: %w", file, tidemark.ErrInvalid)
	}
	return out, nil
}

func all(log []session.Imported) iter.Seq2[session.Imported, error] {
	return func(yield func(session.Imported, error) bool) {
		for _, m := range log {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// plant puts needles evenly before what people say, which parts no call from its result.
func (a Agents) plant(log []session.Imported) (out []session.Imported, questions []asked) {
	var places []int
	for i, m := range log {
		if m.Message.Role == tidemark.User && len(m.Message.Results()) == 0 && (i == 0 || log[i-1].Message.Role == tidemark.Assistant && len(log[i-1].Message.Calls()) == 0) {
			places = append(places, i)
		}
	}
	for i, m := range log {
		for k := range a.Needles {
			if len(places) > 0 && places[k*len(places)/a.Needles] == i {
				want := name(k)
				for _, x := range said("Remember " + want + " for later.").turn {
					out = append(out, session.Imported{Message: x, At: m.At})
				}
				questions = append(questions, asked{kindPlanted, want, want}, asked{kindAbsent, name(a.Needles + 1 + k), ""})
			}
		}
		out = append(out, m)
	}
	return out, questions
}

// identifiers are what agents' logs name things by.
var identifiers = []struct {
	kind string
	re   *regexp.Regexp
}{
	{kindPath, regexp.MustCompile(`[A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_.-]+)+\.[a-z]{1,5}\b`)},
	{kindHash, regexp.MustCompile(`\b(?:[0-9a-f]{7,12}|[0-9a-f]{40})\b`)},
	{kindError, regexp.MustCompile(`(?:[Ee]rror|ERROR|FAIL|panic|fatal)[:=] [^\n"\\]{15,80}`)},
}

// named returns what really stands in a log and in one or two of its messages only, evenly over the log, up
// to count of each kind.
func named(log []session.Imported, count int) []asked {
	texts := make([]string, len(log))
	for i, m := range log {
		texts[i] = plain(m.Message)
	}
	var out []asked
	for _, id := range identifiers {
		in := map[string]int{} // messages
		var order []string
		for _, text := range texts {
			seen := map[string]bool{}
			for _, w := range id.re.FindAllString(text, -1) {
				if seen[w] || id.kind == kindHash && !mixed(w) {
					continue
				}
				if seen[w] = true; in[w] == 0 {
					order = append(order, w)
				}
				in[w]++
			}
		}
		const few = 2
		order = slices.DeleteFunc(order, func(w string) bool {
			return in[w] > few || slices.ContainsFunc(order, func(o string) bool { return o != w && strings.Contains(o, w) })
		})
		for i := range min(count, len(order)) {
			w := order[i*len(order)/min(count, len(order))]
			out = append(out, asked{id.kind, w, w})
		}
	}
	return out
}

// mixed reports a hash: letters and digits, no number and no word.
func mixed(w string) bool {
	return strings.ContainsAny(w, "0123456789") && strings.ContainsAny(w, "abcdef")
}

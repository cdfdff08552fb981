package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// Table is the set-up of the paper's Table 1 (papers/total-recall §10.2): facts early in a log, a flood that
// forces compactions, and questions after some of them to what each method still has.
type Table struct {
	Methods []string // of Methods
	Hops    []int    // calls of recall that a question may take, 1 or 2; pointer alone
	Traces  int
	Needles int             // a trace
	Flood   tidemark.Tokens // a trace, over all cycles
	Window  tidemark.Tokens
	Seed    uint64
	Model   tidemark.Provider // writes summaries and paraphrases; nil: none, all is by rules
	ModelID string
	Told    func(trace int) // called before each trace, from 1 on; nil: nobody is told
}

// Methods of a Table. pointer and summary are sessions with that strategy. truncate keeps the newest
// messages. selfpaging keeps the newest, too, and what it drops is paged by a rule that stands in for the
// model's own judgement: it notes the first words of each message that leaves, the newest in a note of 512
// tokens, and to answer what it does not see it looks up the longest word of the question in all that left
// and reads the five newest messages that have it, as MemGPT's conversation_search does with a page.
var Methods = []string{"pointer", "summary", "truncate", "selfpaging"}

// Row is what a method had after so many compactions, over all traces. An answer is the text that a method gives for a
// question, the best of its context or of what it pulled; it is sure when its verdict is, and a false recall when it is
// sure and not the fact: of all questions, those for what was never said included.
type Row struct {
	Method  string  `json:"method"`
	Hops    int     `json:"hops"` // 0 for a method that does not recall
	Cycles  int     `json:"cycles"`
	Query   string  `json:"query"` // exact, partial, paraphrased, or all
	Mean    float64 `json:"mean"`  // share of facts whose exact text was at hand
	SD      float64 `json:"sd"`    // of the traces
	Sure    float64 `json:"sure"`  // share of facts that were the answer, told as sure
	False   float64 `json:"false_recall"`
	FalseSD float64 `json:"false_recall_sd"`
	Open    float64 `json:"open"` // share of facts beside which the words of the question fit another as well
	Pulls   float64 `json:"pulls_per_turn"`
	Context float64 `json:"context_tokens"`
	Reread  float64 `json:"reread_tokens"` // a turn: what stands for what has left, and what is pulled
}

// Tabled is what a run of a Table measured.
type Tabled struct {
	Rows    []Row           `json:"rows"`
	Traces  int             `json:"traces"`
	Needles int             `json:"needles"`
	Flood   tidemark.Tokens `json:"flood_tokens"` // that were played until the last question, the mean of pointer's traces, or of the first method
	Window  tidemark.Tokens `json:"window"`
	Seed    uint64          `json:"seed"`
	Model   string          `json:"model"`
}

// askedAfter are the cycles after which the paper asks.
var askedAfter = []int{1, 3, 5}

func (t Table) check() error {
	for _, row := range []struct {
		flag      string
		v, lo, hi int
	}{
		{"--traces", t.Traces, 1, 1000}, {"--needles", t.Needles, 1, 1000}, {"--window", int(t.Window), 8000, 1_000_000},
		{"--flood", int(t.Flood), 5 * int(t.Window) / 2, 10_000_000},
	} {
		if row.v < row.lo || row.v > row.hi {
			return fmt.Errorf("%s %d: want %d to %d: %w", row.flag, row.v, row.lo, row.hi, tidemark.ErrInvalid)
		}
	}
	for i, m := range t.Methods {
		if !slices.Contains(Methods, m) || slices.Contains(t.Methods[:i], m) {
			return fmt.Errorf("--methods %s: want some of %s, each once: %w", m, strings.Join(Methods, ","), tidemark.ErrInvalid)
		}
	}
	for i, h := range t.Hops {
		if h < 1 || h > 2 || slices.Contains(t.Hops[:i], h) {
			return fmt.Errorf("--hops %d: want 1 or 2, each once: %w", h, tidemark.ErrInvalid)
		}
	}
	if len(t.Methods) == 0 || len(t.Hops) == 0 {
		return fmt.Errorf("--methods and --hops: want one at least: %w", tidemark.ErrInvalid)
	}
	return nil
}

// Run plays all traces with each method.
func (t Table) Run(ctx context.Context, folder string) (Tabled, error) {
	out := Tabled{Traces: t.Traces, Needles: t.Needles, Window: t.Window, Seed: t.Seed, Model: cmp.Or(t.ModelID, offline.Name)}
	if err := t.check(); err != nil {
		return out, err
	}
	all := map[Row][]measured{} // by the fields that name a row
	var played tidemark.Tokens
	for n := range t.Traces {
		if t.Told != nil {
			t.Told(n + 1)
		}
		tr := newTrace(t, n)
		if t.Model != nil {
			if err := tr.rephrase(ctx, t.Model); err != nil {
				return out, fmt.Errorf("have %s write the questions of trace %d: %w", t.ModelID, n+1, err)
			}
		}
		tr.mark()
		for i, method := range t.Methods {
			if err := ctx.Err(); err != nil { // not all of them look
				return out, fmt.Errorf("trace %d, %s: %w", n+1, method, err)
			}
			got, tokens, err := t.play(ctx, filepath.Join(folder, fmt.Sprintf("%d-%s", n, method)), method, tr)
			if err != nil {
				return out, fmt.Errorf("trace %d, %s: %w", n+1, method, err)
			}
			if i == 0 {
				played += tokens
			}
			for k, v := range got {
				all[k] = append(all[k], v)
			}
		}
	}
	out.Flood = played / tidemark.Tokens(t.Traces)
	for k, list := range all {
		out.Rows = append(out.Rows, row(k, list))
	}
	slices.SortFunc(out.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(Methods, a.Method), slices.Index(Methods, b.Method)), cmp.Compare(a.Hops, b.Hops),
			cmp.Compare(a.Cycles, b.Cycles), cmp.Compare(slices.Index(forms, a.Query), slices.Index(forms, b.Query)))
	})
	return out, nil
}

// measured is what one trace gave for a row.
type measured struct {
	questions, found, sure, wrong, open, absent, pulls int
	context, recap, pulled                             tidemark.Tokens
}

// row puts the traces together.
func row(r Row, list []measured) Row {
	n := float64(len(list))
	var square, squareFalse float64
	for _, m := range list {
		facts, turns := float64(max(1, m.questions)), float64(max(1, m.questions+m.absent))
		share, wrong := float64(m.found)/facts, float64(m.wrong)/turns
		r.Mean, square = r.Mean+share/n, square+share*share/n
		r.False, squareFalse = r.False+wrong/n, squareFalse+wrong*wrong/n
		r.Sure += float64(m.sure) / facts / n
		r.Open += float64(m.open) / facts / n
		r.Pulls += float64(m.pulls) / turns / n
		r.Context += float64(m.context) / n
		r.Reread += (float64(m.recap) + float64(m.pulled)/turns) / n
	}
	r.SD, r.FalseSD = deviation(square, r.Mean), deviation(squareFalse, r.False)
	for _, f := range []*float64{&r.Mean, &r.Sure, &r.False, &r.Open, &r.Pulls} {
		*f = digits(*f)
	}
	r.Context, r.Reread = math.Round(r.Context), math.Round(r.Reread)
	return r
}

// deviation is the standard deviation of what has a mean, and a mean of its squares.
func deviation(square, mean float64) float64 { return digits(math.Sqrt(max(0, square-mean*mean))) }

// kept is what a method has at hand when a question comes.
type kept struct {
	texts []string        // of the context, oldest first
	size  tidemark.Tokens // of the context
	recap tidemark.Tokens // of it, what stands for what has left
	pull  func(ctx context.Context, query string) (pulled, error)
}

// pulled is what a method brings back for a query.
type pulled struct {
	texts  []string
	answer string // the best of them
	sure   bool   // and the method says so
}

// play plays a trace with a method, and asks when it is time.
func (t Table) play(ctx context.Context, folder, method string, tr *trace) (map[Row]measured, tidemark.Tokens, error) {
	out := map[Row]measured{}
	ask := func(cycles int, k kept) error {
		hops := []int{0}
		if method == "pointer" {
			hops = t.Hops
		}
		for _, h := range hops {
			if err := tr.ask(ctx, k, Row{Method: method, Hops: h, Cycles: cycles}, out); err != nil {
				return err
			}
		}
		return nil
	}
	switch method {
	case "pointer", "summary":
		tokens, err := t.session(ctx, folder, method, tr, ask)
		return out, tokens, err
	}
	tokens, err := t.simulate(method, tr, ask)
	return out, tokens, err
}

// limit is the size at which a context is made smaller, keep what it is made to.
func (t Table) limit() tidemark.Tokens { return t.Window - t.reserve() }

func (t Table) reserve() tidemark.Tokens { return t.Window / 10 }

func (t Table) keep() tidemark.Tokens { return t.Window / 8 }

// session plays a trace through a session of a strategy.
func (t Table) session(ctx context.Context, folder, method string, tr *trace, ask func(int, kept) error) (played tidemark.Tokens, err error) {
	var strategy compaction.Strategy = compaction.Summary{}
	if method == "pointer" {
		strategy = compaction.Pointer{Headroom: t.limit() - t.keep()}
	}
	var model tidemark.Provider = offline.Model{}
	if t.Model != nil {
		model = t.Model
	}
	s, end, err := open(ctx, folder, model, []compaction.Strategy{strategy},
		session.Settings{Model: t.ModelID, Window: t.Window, Reserve: t.reserve(), Keep: t.keep(), NoMemories: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end()) }()
	next := 0
	log := tr.log(t, &played, func() (bool, error) {
		info, err := s.Info(ctx)
		for err == nil && next < len(askedAfter) && info.Compactions >= askedAfter[next] {
			var k kept
			if k, err = keptBy(ctx, s, method == "pointer"); err == nil {
				err = ask(askedAfter[next], k)
			}
			next++
		}
		return next == len(askedAfter), err
	})
	if err := sayLog(ctx, s, log, nil); err != nil {
		return played, err
	}
	if next < len(askedAfter) {
		return played, fmt.Errorf("%d tokens did not make %d compactions: raise --flood or lower --window: %w", played, askedAfter[len(askedAfter)-1], tidemark.ErrInvalid)
	}
	return played, nil
}

// keptBy reads the context of a session.
func keptBy(ctx context.Context, s *session.Session, recalls bool) (k kept, err error) {
	v, err := s.View(ctx)
	if err != nil {
		return k, err
	}
	k.size = v.Size
	for _, it := range v.Items {
		if it.Span() {
			k.recap += it.Tokens
		}
		if !compaction.IsMarker(it) { // which tells where to look, and answers nothing
			k.texts = append(k.texts, plain(it.Message))
		}
	}
	if recalls {
		k.pull = func(ctx context.Context, q string) (pulled, error) {
			r, err := find(s).Recall(ctx, search.Wanted{Query: q})
			p := pulled{sure: r.Verdict == recall.Confident}
			for _, x := range r.Results {
				p.texts = append(p.texts, x.Text)
			}
			if len(p.texts) > 0 {
				p.answer = p.texts[0]
			}
			return p, err
		}
	}
	return k, nil
}

// log yields a trace with its flood; before each reply, when a session compacts, it lets a look be taken.
func (tr *trace) log(t Table, played *tidemark.Tokens, look func() (end bool, err error)) iter.Seq2[replay.Message, error] {
	return func(yield func(replay.Message, error) bool) {
		for i := 0; *played < t.Flood*3/2; i++ {
			for _, m := range tr.turn(i) {
				if !yield(replay.Message{Message: m, At: at(i)}, nil) {
					return
				}
				*played += tidemark.Estimate(m)
			}
			if end, err := look(); end || err != nil {
				if err != nil {
					yield(replay.Message{}, err)
				}
				return
			}
		}
	}
}

// simulate plays a trace with a method that is no strategy of ours.
func (t Table) simulate(method string, tr *trace, ask func(int, kept) error) (played tidemark.Tokens, err error) {
	const noteTokens, page = 512, 5
	var window []tidemark.Message
	var size tidemark.Tokens
	var left, note []string
	next, cycles := 0, 0
	for i := 0; next < len(askedAfter) && played < t.Flood*3/2; i++ {
		for _, m := range tr.turn(i) {
			window = append(window, m)
			size += tidemark.Estimate(m)
			played += tidemark.Estimate(m)
		}
		if size <= t.limit() {
			continue
		}
		for cycles++; size > t.keep() && len(window) > 1; window = window[1:] {
			size -= tidemark.Estimate(window[0])
			left = append(left, plain(window[0]))
			note = append(note, firstWords(left[len(left)-1]))
		}
		if cycles < askedAfter[next] {
			continue
		}
		k := kept{size: size}
		for _, m := range window {
			k.texts = append(k.texts, plain(m))
		}
		if method == "selfpaging" {
			for tidemark.EstimateText(strings.Join(note, "\n")) > noteTokens {
				note = note[max(1, len(note)/8):]
			}
			k.texts = append(note[:len(note):len(note)], k.texts...)
			k.recap = tidemark.EstimateText(strings.Join(note, "\n"))
			k.size += k.recap
			k.pull = func(_ context.Context, q string) (p pulled, err error) {
				p.texts = paged(left, q, page)
				p.answer, p.sure = newReader(p.texts).read(q) // paging has no verdict
				return p, nil
			}
		}
		if err := ask(cycles, k); err != nil {
			return played, err
		}
		next++
	}
	return played, nil
}

// firstWords is what selfpaging notes of a message.
func firstWords(text string) string {
	const words = 6
	f := strings.Fields(text)
	return strings.Join(f[:min(len(f), words)], " ")
}

// paged looks up the longest word of a question, the newest first.
func paged(left []string, query string, page int) []string {
	longest := ""
	for _, w := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return strings.ContainsRune(" ?,.;", r) }) {
		if len(w) > len(longest) {
			longest = w
		}
	}
	var out []string
	for i := len(left) - 1; i >= 0 && len(out) < page; i-- {
		if strings.Contains(strings.ToLower(left[i]), longest) {
			out = append(out, left[i])
		}
	}
	return out
}

// ask asks a trace's questions of what a method has, and adds what came of it to the rows. A reader of ours looks at
// the context first and is sure by the rules of recall; who can pull does so for what it is not sure of, and answers
// with the first result and as sure as the verdict that came with it.
func (tr *trace) ask(ctx context.Context, k kept, r Row, out map[Row]measured) error {
	at := newReader(k.texts)
	for _, q := range tr.questions {
		m := measured{context: k.size, recap: k.recap}
		answer, sure := at.read(q.text)
		texts := k.texts
		if !sure && k.pull != nil {
			p, n, err := pullBy(ctx, k, q.text, max(1, r.Hops))
			if err != nil {
				return err
			}
			m.pulls, m.pulled = n, tidemark.EstimateText(strings.Join(p.texts, "\n"))
			texts = append(texts[:len(texts):len(texts)], p.texts...)
			answer, sure = p.answer, p.sure
		}
		right := q.want != "" && strings.Contains(answer, q.want)
		m.questions, m.absent, m.open = count(q.want != ""), count(q.want == ""), count(q.open)
		m.found = count(q.want != "" && slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, q.want) }))
		m.sure, m.wrong = count(sure && right), count(sure && !right)
		for _, form := range []string{q.form, "all"} {
			r.Query = form
			out[r] = out[r].plus(m)
		}
	}
	return nil
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (m measured) plus(o measured) measured {
	m.questions, m.found, m.absent, m.open, m.pulls = m.questions+o.questions, m.found+o.found, m.absent+o.absent, m.open+o.open, m.pulls+o.pulls
	m.sure, m.wrong = m.sure+o.sure, m.wrong+o.wrong
	m.context, m.recap, m.pulled = o.context, o.recap, m.pulled+o.pulled
	return m
}

// pullBy recalls, and with two hops a second time when what came is not sure to answer: with what stands in
// the best result beside the words of the question. That may find more, and makes the answer no surer.
func pullBy(ctx context.Context, k kept, query string, hops int) (p pulled, pulls int, err error) {
	if p, err = k.pull(ctx, query); err != nil || hops < 2 || p.sure || len(p.texts) == 0 {
		return p, 1, err
	}
	stem := &recall.Stemmer{}
	known := recall.Parse(query, stem).Terms
	var more []string
	for _, w := range strings.Fields(p.texts[0]) {
		w = strings.Trim(w, ".,:;?!\"'()[]…")
		terms := stem.Terms(w)
		if len(terms) > 0 && !slices.Contains(known, terms[0]) && strings.ContainsAny(w, "0123456789_-/") && len(more) < 4 {
			more = append(more, w)
		}
	}
	if len(more) == 0 {
		return p, 1, nil
	}
	second, err := k.pull(ctx, strings.Join(more, " "))
	p.texts = append(p.texts, second.texts...)
	return p, 2, err
}

// reader is somebody who reads some texts and answers by them.
type reader struct {
	index *recall.Index
	stem  *recall.Stemmer
}

func newReader(texts []string) reader {
	stem := &recall.Stemmer{}
	docs := make([]recall.Doc, len(texts))
	for i, s := range texts {
		docs[i] = recall.Doc{ID: strconv.Itoa(i), Pos: int64(2 * i), Text: s} // nothing stands beside another
	}
	return reader{recall.New(docs, stem), stem}
}

// read returns the text that answers best, and whether it does.
func (r reader) read(query string) (answer string, sure bool) {
	q := recall.Parse(query, r.stem)
	hits := r.index.Search(q, recall.Stats{})
	if len(hits) == 0 {
		return "", false
	}
	return r.index.Docs()[hits[0].Doc].Text, r.index.Judge(q, hits) == recall.Confident
}

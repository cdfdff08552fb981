package summary

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// rig is a writer before a model that is played, on a clock that stands still.
type rig struct {
	*Writer
	set      Settings
	failures int
	near     []memory.Known
	learned  map[string]tidemark.Window

	play  func(req tidemark.Request) (tidemark.Message, error)
	usage tidemark.Usage
	calls []tidemark.Request
	slept []time.Duration
}

type clock struct {
	tidemark.Runtime
	r *rig
}

var noon = time.UnixMilli(1_700_000_000_000).UTC()

func (c clock) Now() time.Time { return noon }

func (c clock) Sleep(_ context.Context, d time.Duration) error {
	c.r.slept = append(c.r.slept, d)
	return nil
}

func (r *rig) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		r.calls = append(r.calls, req)
		m, err := r.play(req)
		if err != nil {
			yield(tidemark.Delta{}, err)
			return
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: req.Model, Stop: "end_turn", Usage: r.usage}}}, nil)
	}
}

// newRig has a model with a window, which is the conversation's own and writes summaries.
func newRig(t *testing.T, window tidemark.Tokens) *rig {
	r := &rig{set: Settings{Model: "m", Own: true, Window: window}, play: summarizes, learned: map[string]tidemark.Window{}}
	r.Writer = &Writer{Ports{Scope: tidemark.Key("agent:main:main").Scope(), Provider: r, Runtime: clock{hosttest.Runtime(t), r}, Settings: func() Settings { return r.set },
		Near:     func(context.Context, []compaction.Item) []memory.Known { return r.near },
		Findable: func(_ context.Context, items []compaction.Item) []compaction.Item { return items },
		Failures: func(context.Context) (int, error) { return r.failures, nil },
		Learn: func(_ context.Context, model string, tokens tidemark.Tokens, from tidemark.WindowFrom) error {
			r.learned[model] = tidemark.Window{Tokens: tokens, From: from}
			return nil
		}}}
	return r
}

// summarizes answers as a model of summaries does.
func summarizes(req tidemark.Request) (tidemark.Message, error) {
	return tidemark.NewText(tidemark.Assistant, "<summary>\n## Decisions\n"+tidemarktest.Gist(req.Messages[0].PlainText())+"</summary>\n<memories>\n- the planks are planed\n</memories>"), nil
}

var woods, fates = strings.Fields("walnut maple cedar birch ash elm oak pine"), strings.Fields("planed warped stained split sanded glued sold burnt")

// talk is so many messages, each with words of its own.
func talk(n int) []compaction.Item {
	var out []compaction.Item
	for i := range n {
		id, seq := tidemark.EntryID(fmt.Sprint("i", i)), int64(i+1)
		out = append(out, compaction.Item{ID: id, From: id, To: id, Seq: seq, Last: seq, Tokens: 100, Source: []string{tidemark.FromPerson, tidemark.FromModel}[i%2],
			Message: tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], fmt.Sprintf("message %d: %s planks of room %d are %s", i, woods[i%8], i, fates[i%8]))})
	}
	return out
}

var errKnown = errors.New("known")

// TestSummaryIsAskedFor: how often a summary is asked for, with which pauses, and what the answers cost.
func TestSummaryIsAskedFor(t *testing.T) {
	network := &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "cut"}
	bad := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Param: "temperature", Message: "odd"}
	const nonsense, good = "...", ""
	for _, c := range []struct {
		name    string
		answers []any // an error, or a text; "" is a summary
		window  tidemark.Tokens
		calls   int
		slept   []time.Duration
		fails   error
	}{
		{"at once", []any{good}, 100_000, 1, nil, nil},
		{"at the third try", []any{network, network, good}, 100_000, 3, []time.Duration{time.Second, 2 * time.Second}, nil},
		{"never", []any{network, network, network, good}, 100_000, 3, []time.Duration{time.Second, 2 * time.Second}, network},
		{"at the second answer", []any{nonsense, good}, 100_000, 2, nil, nil},
		{"two answers are none", []any{nonsense, nonsense, good}, 100_000, 2, nil, tidemark.ErrInvalid},
		{"one is none, behind two that were cut off", []any{network, network, nonsense, good}, 100_000, 3, []time.Duration{time.Second, 2 * time.Second}, tidemark.ErrInvalid},
		{"refused", []any{bad, good}, 100_000, 1, nil, bad},
	} {
		r := newRig(t, c.window)
		r.usage = tidemark.Usage{Input: 10}
		r.play = func(req tidemark.Request) (tidemark.Message, error) {
			switch a := c.answers[len(r.calls)-1].(type) {
			case error:
				return tidemark.Message{}, a
			case string:
				if a != "" {
					return tidemark.NewText(tidemark.Assistant, a), nil
				}
			}
			return summarizes(req)
		}
		d := &Draft{ID: "p", Log: "log"}
		w, err := r.ask(t.Context(), d, talk(6), "")
		answered := 0
		for _, a := range c.answers[:c.calls] {
			if _, text := a.(string); text {
				answered++
			}
		}
		if len(r.calls) != c.calls || !slices.Equal(r.slept, c.slept) || (err == nil) != (c.fails == nil) || err != nil && !errors.Is(err, c.fails) || (w.Summary != "") != (err == nil) || d.Usage.Input != tidemark.Tokens(10*answered) {
			t.Errorf("%s: %d calls, slept %v, %+v, %v, cost %d", c.name, len(r.calls), r.slept, w, err, d.Usage.Input)
		}
		if again := r.calls[len(r.calls)-1].Messages[0].PlainText(); strings.Contains(again, "could not be used") != (c.answers[0] == nonsense) {
			t.Errorf("%s: asked %q", c.name, again)
		}
	}
}

// TestSummaryRequest: the model of summaries is asked for as much as an eighth of its window holds, within bounds, and not for
// what fills more than half of it.
func TestSummaryRequest(t *testing.T) {
	for _, c := range []struct {
		window, most tidemark.Tokens
	}{{100_000, 4_096}, {16_000, 2_000}, {3_200, 400}} {
		r := newRig(t, c.window)
		r.set.Model = "small"
		if _, err := r.ask(t.Context(), &Draft{}, talk(2), ""); err != nil || len(r.calls) != 1 || r.calls[0].MaxTokens != c.most || r.calls[0].Model != "small" {
			t.Errorf("a window of %d: %v, %d calls, %d tokens at most of %q", c.window, err, len(r.calls), r.calls[0].MaxTokens, r.calls[0].Model)
		}
	}
	r := newRig(t, 0)
	size := tidemark.Estimate(compaction.Prompt(compaction.Ask{Items: talk(6)}).Messages[0])
	for window, want := range map[tidemark.Tokens]int{2 * size: 1, 2*size - 1: 0} {
		r.calls = nil
		r.set.Window = window
		_, err := r.ask(t.Context(), &Draft{}, talk(6), "")
		if len(r.calls) != want || (want == 0) != TooLarge(err) {
			t.Errorf("%d tokens within %d: %d calls, %v", size, window, len(r.calls), err)
		}
	}
}

// TestSummaryRefused: what a refusal says of the window of the model of summaries: its limit where it names one, half of what
// was sent where it is not the conversation's own model; nothing where it is for bytes, or for something else.
func TestSummaryRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		model string
		api   error
		want  tidemark.Window
	}{
		{"a limit", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 9_000}, tidemark.Window{Tokens: 9_000, From: tidemark.WindowRefused}},
		{"a limit, with too many bytes", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413, Limit: 9_000}, tidemark.Window{Tokens: 9_000, From: tidemark.WindowRefused}},
		{"a limit of the conversation's own", "", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 9_000}, tidemark.Window{Tokens: 9_000, From: tidemark.WindowRefused}},
		{"too long", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400}, tidemark.Window{Tokens: 5_000, From: tidemark.WindowHalved}},
		{"too long for the conversation's own", "", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400}, tidemark.Window{}},
		{"too many bytes", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413}, tidemark.Window{}},
		{"another failure", "small", &tidemark.APIError{Class: tidemark.ClassAuth, Limit: 9_000}, tidemark.Window{}},
		{"of no API", "small", errKnown, tidemark.Window{}},
	} {
		r := newRig(t, 100_000)
		if c.model != "" {
			r.set.Model, r.set.Own = c.model, false
		}
		if err := r.learn(t.Context(), 5_000, c.api); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got := r.learned[r.set.Model]
		if got.Tokens != c.want.Tokens || got.From != c.want.From {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestCondenseHalves: a chunk that is too large for the model of summaries is asked for in halves, down to what it takes. Where
// one of them fails for something else the chunk is as it was, but for what it cost; memories of a part are kept.
func TestCondenseHalves(t *testing.T) {
	odd := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Param: "temperature", Message: "odd"}
	for _, c := range []struct {
		name     string
		memories bool
		halvings int
		bad      string // what fails for something else
		calls    int    // that are answered
		facts    int
		rolling  bool
		fails    bool
	}{
		{"whole", false, 8, "", 2, 2, true, false},
		{"no halvings are left", false, 0, "", 0, 0, false, true},
		{"one half is odd", false, 8, "room 3", 1, 0, false, true},
		{"memories, and one half is odd", true, 8, "room 3", 1, 1, false, true},
	} {
		answered := 0
		r := newRig(t, 100_000)
		r.usage = tidemark.Usage{Input: 3}
		r.play = func(req tidemark.Request) (tidemark.Message, error) {
			prompt := req.Messages[0].PlainText()
			_, prompt, _ = strings.Cut(prompt, "<conversation>")
			switch {
			case strings.Count(prompt, "planks of room") > 2:
				return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413}
			case c.bad != "" && strings.Contains(prompt, c.bad):
				return tidemark.Message{}, odd
			}
			answered++
			return summarizes(req)
		}
		d := &Draft{ID: "p", Log: "log", OnlyMemories: c.memories}
		err := r.condense(t.Context(), d, talk(4), c.halvings)
		if (err != nil) != c.fails || answered != c.calls || len(d.Facts) != c.facts || (d.Rolling != "") != c.rolling || d.Usage.Input != tidemark.Tokens(3*answered) {
			t.Errorf("%s: %v, %d answered, facts %+v, %q, cost %d", c.name, err, answered, d.Facts, d.Rolling, d.Usage.Input)
		}
	}
}

// TestChunkIsHalvedForADoubt: words that nobody knows may be for the size of a chunk, or for a message of it: it is asked for in
// halves, at once, or for an outage only where it is large and was put off before.
func TestChunkIsHalvedForADoubt(t *testing.T) {
	bad := tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "no"}
	down := tidemark.APIError{Class: tidemark.ClassOverloaded, Status: 500, Message: "oops"}
	for _, c := range []struct {
		name     string
		api      tidemark.APIError
		words    int // of each of two messages
		failures int
		again    bool // it was made without a model in an outage before
		halved   bool
	}{
		{"large", bad, 800, 0, false, true},
		{"small", bad, 400, 0, false, true},
		{"an outage", down, 800, 0, false, false},
		{"an outage that lasts", down, 800, 1, false, true},
		{"an outage that is over", down, 800, 1, true, false},
		{"a small one in an outage that lasts", down, 400, 1, false, false},
	} {
		most := 0
		r := newRig(t, 100_000)
		r.play = func(req tidemark.Request) (tidemark.Message, error) {
			n := strings.Count(req.Messages[0].PlainText(), "walnut")
			if most = max(most, n); n == most {
				return tidemark.Message{}, &c.api
			}
			return summarizes(req)
		}
		r.failures = c.failures
		items := talk(2)
		for i := range items {
			items[i].Message = tidemark.NewText(items[i].Message.Role, fmt.Sprintf("of room %d: ", i)+strings.Repeat("walnut ", c.words))
		}
		size := tidemark.EstimateText(compaction.Transcribe(items))
		if (size > leastHalved) != (c.words == 800) {
			t.Fatalf("%s: it has %d tokens", c.name, size)
		}
		_ = r.Condense(t.Context(), &Draft{ID: "p", Log: "log", OnlyMemories: true, Again: c.again}, items)
		asked := map[int]bool{}
		for _, req := range r.calls {
			asked[strings.Count(req.Messages[0].PlainText(), "walnut")] = true
		}
		if (len(asked) > 1) != c.halved {
			t.Errorf("%s: asked for pieces of %v words", c.name, asked)
		}
	}
}

// TestRefusedMessage: a message that the model of summaries refuses is left out, with a note, and the rest of the chunk has its
// summary; where the summary so far is refused it stays as it is, and what is new is added. Where all is refused, or too much, the
// draft is as it was.
func TestRefusedMessage(t *testing.T) {
	bad := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "no"}
	for _, c := range []struct {
		name     string
		refuses  []string // what is in a prompt
		rolling  string
		memories bool
		refused  int
		fails    bool
		asks     int // at most
		holds    []string
	}{
		{"one of eight", []string{"room 3 "}, "so far", false, 1, false, 8, []string{"Message i3 is not all in this summary", `{"entry": "i3"}`}},
		{"the first and the last", []string{"room 0 ", "room 7 "}, "", false, 2, false, 14, []string{"Message i0 ", "Message i7 "}},
		{"for memories alone", []string{"room 3 "}, "", true, 1, false, 8, nil},
		{"the summary so far", []string{"dizzying"}, "so far, a dizzying summary", false, 0, false, 2, []string{"a dizzying summary\n\n", "room 7 "}},
		{"that, and one of eight", []string{"dizzying", "room 3 "}, "so far, a dizzying summary", false, 1, false, 30, []string{"a dizzying summary\n\n", "Message i3 "}},
		{"all", []string{""}, "so far", false, 0, true, 16, []string{"so far"}},
		{"all, and nothing was before", []string{""}, "", false, 0, true, 9, nil},
	} {
		r := newRig(t, 100_000)
		r.usage = tidemark.Usage{Input: 3}
		answered, read := 0, ""
		r.play = func(req tidemark.Request) (tidemark.Message, error) {
			for _, no := range c.refuses {
				if strings.Contains(req.Messages[0].PlainText(), no) {
					return tidemark.Message{}, bad
				}
			}
			answered++
			read += req.Messages[0].PlainText()
			return summarizes(req)
		}
		d := &Draft{ID: "p", Log: "log", Rolling: c.rolling, OnlyMemories: c.memories}
		err := r.Condense(t.Context(), d, talk(8))
		if (err != nil) != c.fails || len(d.Refused) != c.refused || len(r.calls) > c.asks || d.Usage.Input != tidemark.Tokens(3*answered) || (len(d.Facts) > 0) == c.fails {
			t.Errorf("%s: %v, %d refused after %d asks, cost %d, facts %+v", c.name, err, len(d.Refused), len(r.calls), d.Usage.Input, d.Facts)
		}
		for _, text := range c.holds {
			if !strings.Contains(d.Rolling, text) {
				t.Errorf("%s: no %q in %q", c.name, text, d.Rolling)
			}
		}
		for i := range 8 {
			room := fmt.Sprint("room ", i, " ")
			if was := strings.Contains(read, room); was == (c.fails || slices.Contains(c.refuses, room)) {
				t.Errorf("%s: %sis summarised: %v", c.name, room, was)
			}
		}
		if (c.memories || c.fails && c.rolling == "") != (d.Rolling == "") || c.fails && d.Rolling != c.rolling {
			t.Errorf("%s: the summary is %q", c.name, d.Rolling)
		}
	}
}

// TestRefusedResults: a message that cannot be parted, such as one of results, is asked for once by itself; a large one of which a
// part is refused is named once, and its notes stand in what a later chunk goes on with.
func TestRefusedResults(t *testing.T) {
	bad := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "no"}
	items := talk(10)
	var results tidemark.Message
	for i := range 4 {
		results.Content = append(results.Content, tidemark.ToolResult(fmt.Sprint("c", i), strings.Repeat("dizzying ", 500), false))
	}
	results.Role = tidemark.User
	items[4].Message = results
	items[7].Message = tidemark.NewText(tidemark.User, "dizzying"+strings.Repeat(" plain words", 2000))
	r := newRig(t, 100_000)
	r.play = func(req tidemark.Request) (tidemark.Message, error) {
		if strings.Contains(req.Messages[0].PlainText(), "dizzying") {
			return tidemark.Message{}, bad
		}
		return summarizes(req)
	}
	d := &Draft{ID: "p", Log: "log"}
	if err := r.Condense(t.Context(), d, items); err != nil || !slices.Equal(d.Refused, []tidemark.EntryID{"i4", "i7"}) || len(r.calls) > 30 {
		t.Fatalf("%v, refused %v after %d asks", err, d.Refused, len(r.calls))
	}
	if err := r.Condense(t.Context(), d, talk(4)); err != nil || strings.Count(d.Rolling, "is not all in this summary") != 2 {
		t.Errorf("%v, %q", err, d.Rolling)
	}
	missing := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 404, Message: "no such model"}
	r.calls, r.play = nil, func(tidemark.Request) (tidemark.Message, error) { return tidemark.Message{}, missing }
	if err := r.Condense(t.Context(), &Draft{}, talk(8)); !errors.Is(err, missing) || len(r.calls) != 1 {
		t.Errorf("%v after %d asks", err, len(r.calls))
	}
}

// TestAddFacts: what a chunk gave to remember is named by its plan and chunk, of another half of it by how many came before,
// and says of which messages it is.
func TestAddFacts(t *testing.T) {
	r := newRig(t, 100_000)
	items := talk(3)
	p := &Draft{ID: "p", Log: "log"}
	near := []memory.Known{{ID: 7, Text: "the planks are rough"}}
	r.addFacts(p, items, nil, nil)
	r.addFacts(p, nil, []string{"a"}, nil)
	if len(p.Facts) > 0 {
		t.Errorf("of nothing there are %+v", p.Facts)
	}
	r.addFacts(p, items, []string{"a", "b"}, nil)
	r.addFacts(p, items[1:2], []string{"c"}, nil)
	p.Chunk = 1
	r.addFacts(p, items[2:], []string{"d"}, nil)
	p.Chunk = 10
	r.addFacts(p, items, []string{"e"}, nil)
	var got []string
	for _, x := range p.Facts {
		for _, f := range x.Facts {
			got = append(got, fmt.Sprintf("%s:%s of %v", x.ID, f.Text, f.Sources))
		}
		if x.Session != "log" || x.Scope != r.Scope || !x.At.Equal(noon) {
			t.Errorf("%+v", x)
		}
	}
	if want := []string{"log/p/0:a of [i0 i2]", "log/p/0:b of [i0 i2]", "log/p/0.1:c of [i1 i1]", "log/p/1:d of [i2 i2]", "log/p/10:e of [i0 i2]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	n := len(p.Facts)
	if r.addFacts(p, items, []string{"the saw is blunt"}, near); len(p.Facts) != n+1 || p.Facts[n].Facts[0].Text != "the saw is blunt" || p.Facts[n].Facts[0].Sources[1] != "i2" {
		t.Errorf("beside known ones: %+v", p.Facts[n:])
	}
	n = len(p.Facts)
	if r.addFacts(p, items, []string{"NONE 7: the planks are rough"}, near); len(p.Facts) != n {
		t.Errorf("what is known is remembered again: %+v", p.Facts[n:])
	}
	r.set.NoMemories = true
	n = len(p.Facts)
	if r.addFacts(p, items, []string{"z"}, nil); len(p.Facts) != n {
		t.Error("it remembers though it may not")
	}
}

// TestKnownFacts: what a summariser is told to be known: what memory has, then the facts of earlier chunks, the newest as far as
// there is room; memory is asked once a plan.
func TestKnownFacts(t *testing.T) {
	r := newRig(t, 100_000)
	p := &Draft{Facts: []tidemark.Extraction{{Facts: []tidemark.Fact{{Text: "a"}, {Text: "b"}}}, {Facts: []tidemark.Fact{{Text: "c"}}}}}
	if got := r.known(t.Context(), p); got != "- a\n- b\n- c" || p.known == nil {
		t.Errorf("without memory: %q", got)
	}
	asked := 0
	p.known, p.Known = nil, func(context.Context) []string {
		asked++
		return []string{"- old"}
	}
	r.known(t.Context(), p)
	if got := r.known(t.Context(), p); got != "- old\n- a\n- b\n- c" || len(p.known) != 1 || asked != 1 {
		t.Errorf("with memory: %q", got)
	}
	for room, want := range map[int]string{16: "- old\n- a\n- b\n- c", 15: "- a\n- b\n- c", 12: "- a\n- b\n- c", 11: "- b\n- c", 4: "- c", 3: ""} { // bytes, each line with its end
		r.set.Window = tidemark.Tokens(5*room + 2)
		p.known = []string{"- o"}
		if got := r.known(t.Context(), p); got != strings.Replace(want, "- old", "- o", 1) {
			t.Errorf("in %d bytes: %q", room, got)
		}
	}
	r.set.Window = 10_000_000
	p.known = []string{strings.Repeat("x", 11_987)}
	if got := r.known(t.Context(), p); len(got) != 11_999 {
		t.Errorf("%d bytes of at most 12,000", len(got))
	}
	p.known = []string{strings.Repeat("x", 11_988)}
	if got := r.known(t.Context(), p); got != "- a\n- b\n- c" {
		t.Errorf("%d bytes of at most 12,000", len(got))
	}
	r.set.NoMemories = true
	if got := r.known(t.Context(), p); got != "" {
		t.Errorf("without memories %q is known", got)
	}
}

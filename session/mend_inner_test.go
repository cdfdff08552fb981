package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mend"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// judging is a model API that answers what a function has no error for, and keeps what it was asked.
type judging struct {
	judge func(tidemark.Request) error
	asked []tidemark.Request
}

func (p *judging) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		p.asked = append(p.asked, req)
		if err := p.judge(req); err != nil {
			yield(tidemark.Delta{}, err)
			return
		}
		if yield(tidemark.Delta{Text: "so"}, nil) {
			panic("it is not listened to any more")
		}
	}
}

// having is a judge that refuses a request with a word in it.
func having(word string, with error) func(tidemark.Request) error {
	return func(req tidemark.Request) error {
		raw, err := json.Marshal(req)
		if err != nil || strings.Contains(string(raw), word) {
			return with
		}
		return nil
	}
}

// answered is a view of two turns, the first of which was answered, and the second is in work.
func answered(t *testing.T, log string) View {
	t.Helper()
	var v View
	put := func(id string, role tidemark.Role, raw ...string) {
		seq := int64(10 * (len(v.Items) + 1))
		v.Items = append(v.Items, compaction.Item{ID: tidemark.EntryID(id), From: tidemark.EntryID(id), To: tidemark.EntryID(id), Seq: seq, Last: seq,
			Message: tidemark.Message{Role: role, Content: tidemarktest.Blocks(t, raw...)}, Tokens: 100})
	}
	long := strings.Repeat("Now the tide turns. ", 80)
	put("q1", tidemark.User, `{"type":"text","text":"old words `+long+`"}`, `{"type":"text","text":"more words `+long+`"}`)
	put("a1", tidemark.Assistant, `{"type":"text","text":"an answer"}`)
	put("q2", tidemark.User, `{"type":"text","text":"new words"}`)
	v.Log, v.Size, v.Fixed = log, 400, 100
	v.Tools = []tidemark.Tool{{Name: "a", Description: "first", Mark: "m"}, {Name: "b", Description: "second"}}
	return v
}

var odd = tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "odd"}

// TestMendAsks: what is refused is looked for by asking, counted as what it costs, and taken out; other conversations keep what
// they have. What is not answered teaches nothing.
func TestMendAsks(t *testing.T) {
	for _, c := range []struct {
		name         string
		judge        func(tidemark.Request) error
		refused      tidemark.APIError
		again, large bool
		told         string
		spent        bool
		tools        string
	}{
		{"old words", having("old words", &odd), odd, true, false, "The model's API refused a part of entry q1 (odd). The model reads a note in its place from now on; the log keeps it.", true, "a b"},
		{"a tool", having("second", &odd), odd, true, false, "The model's API refused the tool b (odd). It is left out until its definition is another one.", true, "a"},
		{"both", func(req tidemark.Request) error {
			if e := having("old words", &odd)(req); e != nil {
				return e
			}
			return having("second", &odd)(req)
		}, odd, true, false, "The model's API refused a part of entry q1 (odd). The model reads a note in its place from now on; the log keeps it.\nThe model's API refused the tool b (odd). It is left out until its definition is another one.", true, "a"},
		{"what was pushed", having("some news", &odd), odd, true, false, "The model's API refused what was found for this turn, or is new in memory (odd). It goes without.", true, "a b"},
		{"memory", having("a fact", &odd), odd, true, false, "The model's API refused what the system prompt says from memory (odd). It goes without until it is made anew, with the next day, compaction or reset.", true, "a b"},
		{"what was just said", having("new words", &odd), odd, false, false, "", true, "a b"},
		{"whatever it is", func(tidemark.Request) error { return &odd }, odd, false, false, "", false, "a b"},
		{"nothing any more", func(tidemark.Request) error { return nil }, odd, true, false, "", true, "a b"},
		{"too much for a reply", func(req tidemark.Request) error { return map[bool]error{true: &odd}[req.MaxTokens > 1000] }, odd, true, false, "", true, "a b"},
		{"too large", func(req tidemark.Request) error {
			raw, err := json.Marshal(req)
			if err != nil || len(raw) > 2500 {
				return &odd
			}
			return nil
		}, odd, false, true, "", true, "a b"},
		{"bytes, it says, of few", having("old words", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413}), tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413}, true, false, "The model's API refused a part of entry q1 (). The model reads a note in its place from now on; the log keeps it.", true, "a b"},
		{"of no network", func(tidemark.Request) error { return &tidemark.APIError{Class: tidemark.ClassNetwork} }, odd, false, false, "", false, "a b"},
		{"of too many requests", func(tidemark.Request) error { return &tidemark.APIError{Class: tidemark.ClassRate, Status: 429} }, odd, false, false, "", false, "a b"},
	} {
		p, pack := &judging{judge: c.judge}, &packing{}
		s, _ := plain(t, Config{Provider: p, Settings: Settings{MaxTokens: 4000, System: "Be kind."}, Rooms: []room.Maker{func(room.Ports) any { return pack }}})
		r := s.begun(t, "r", stateCalling)
		s.puts(t, s.Key, "in", InputMessage, "taken", "r")
		s.does(t, `INSERT INTO entries(seq, id, log, kind, at, hash, origin, payload) VALUES(30, 'q2', ?, 'message', 1, '', '{"input":"in"}', '{}')`, r.Log)
		r.Attempt = 2
		v := answered(t, r.Log)
		v.Pack, v.System = "some news", "Be kind."+beforeMemory+"a fact"
		s.does(t, `UPDATE heads SET prompt = 'frozen', prompt_day = ? WHERE key = ?`, s.Runtime.Now().Format(time.DateOnly), string(s.Key))
		again, large, err := s.mend(t.Context(), r, v, c.refused)
		if again != c.again || (large != nil) != c.large || err != nil || r.mends != 1 || s.notices(t) != c.told {
			t.Errorf("%s: again %v, large %v, %v, told %q after %d requests", c.name, again, large, err, s.notices(t), len(p.asked))
		}
		h, err := s.head(t.Context())
		if got := s.reads(t, `SELECT spent FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); err != nil || (got != "0") != c.spent || got != fmt.Sprint(h.Usage.Context()) {
			t.Errorf("%s: it has spent %s, the conversation used %+v, %v", c.name, got, h.Usage, err)
		}
		if got := s.request(v).MaxTokens; (got == 2000) != (c.name == "too much for a reply") {
			t.Errorf("%s: a reply may have %d tokens", c.name, got)
		}
		if got := strings.Join(toolNames(unrefused(v.Tools, *s.refusedTools.Load(), s.windows.Name(s.settings().Model), s.Runtime.Now())), " "); got != c.tools {
			t.Errorf("%s: %q are offered", c.name, got)
		}
		if strings.Join(pack.told, "|") != map[bool]string{true: "some news"}[c.name == "what was pushed"] || s.reads(t, `SELECT count(*) FROM entries WHERE log <> ? AND kind IN ('event', 'overlay') LIMIT 1`, r.Log) != "0" {
			t.Errorf("%s: of what was pushed %q is refused, and others have events or overlays", c.name, pack.told)
		}
		if text, _, err := s.system(t.Context()); c.name == "memory" && (text != "Be kind." || err != nil) {
			t.Errorf("the prompt is %q, %v", text, err)
		}
		r.mends = maxMends
		if again, large, err := s.mend(t.Context(), r, v, c.refused); again || large != nil || err != nil {
			t.Errorf("%s, too often: again %v, large %v, %v", c.name, again, large, err)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	p := &judging{judge: func(tidemark.Request) error { stop(errKnown); return errKnown }}
	s, _ := plain(t, Config{Provider: p})
	r := s.begun(t, "r", stateCalling)
	if again, _, err := s.mend(ctx, r, answered(t, r.Log), odd); again || !errors.Is(err, errKnown) {
		t.Errorf("stopped: %v, %v", again, err)
	}
}

// TestTakeOutTells: people are told of what was taken out, of many parts some by name.
func TestTakeOutTells(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	v := answered(t, r.Log)
	v.Tools = nil
	for i := range maxLeftOut + 2 {
		v.Tools = append(v.Tools, tidemark.Tool{Name: fmt.Sprint("t", i)})
	}
	parts := mend.Request{View: v.View, Tools: v.Tools}.Parts(30)
	if overlay, err := s.takeOut(t.Context(), r, v, odd, parts); err != nil || overlay == "" {
		t.Fatalf("%q, %v", overlay, err)
	}
	told := s.notices(t)
	for _, want := range []string{"refused 4 parts of what is said, the first of entry a1 (odd)", "refused 12 tools (odd)", ": t11, t10, ", "t2, …."} {
		if !strings.Contains(told, want) {
			t.Errorf("no %q in %q", want, told)
		}
	}
	if strings.Contains(told, "t1,") || len(*s.refusedTools.Load()) != maxLeftOut+2 {
		t.Errorf("told %q, %d are left out", told, len(*s.refusedTools.Load()))
	}
}

// TestDeclinedTwice: a reply that declined as one before it did is asked for again without what was left; where it declines
// all the same, what was taken out is back, and what the first cost is counted.
func TestDeclinedTwice(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	s.puts(t, s.Key, "in", InputMessage, "taken", "r")
	v := answered(t, r.Log)
	if again, err := s.reconsider(t.Context(), r, v, tidemark.Call{}); again || err != nil || r.mends != 0 {
		t.Errorf("nothing is left of before: %v, %v", again, err)
	}
	s.does(t, `INSERT INTO entries(seq, id, log, kind, at, hash, origin, payload) VALUES(900, 'q', ?, 'message', 1, '', '{"input":"in"}', '{}')`, r.Log)
	r.mends = maxMends
	if again, err := s.reconsider(t.Context(), r, v, tidemark.Call{}); again || err != nil {
		t.Errorf("too often: %v, %v", again, err)
	}
	r.mends = maxMends - 1
	usage := tidemark.Usage{Input: 30, Output: 4}
	if again, err := s.reconsider(t.Context(), r, v, tidemark.Call{Usage: usage}); !again || err != nil || r.mends != maxMends || r.declined == "" {
		t.Fatalf("asked again: %v, %v, %q", again, err, r.declined)
	}
	if got := s.reads(t, `SELECT spent FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); got != "34" {
		t.Errorf("the run has spent %s", got)
	}
	if h, err := s.head(t.Context()); err != nil || h.Usage != usage {
		t.Errorf("the conversation has used %+v, %v", h.Usage, err)
	}
	id := r.declined
	if again, err := s.reconsider(t.Context(), r, v, tidemark.Call{}); again || err != nil || r.declined != "" {
		t.Errorf("declined all the same: %v, %v, %q", again, err, r.declined)
	}
	if got := s.reads(t, `SELECT payload FROM entries WHERE log = ? AND kind = 'overlay' ORDER BY seq DESC LIMIT 1`, r.Log); got != fmt.Sprintf(`{"by":["session"],"lifts":["%s"],"reason":"refused all the same"}`, id) {
		t.Errorf("the overlay is %s", got)
	}
	if !strings.HasSuffix(s.notices(t), "What was taken out was not why. It is in view as before.") {
		t.Errorf("told %q", s.notices(t))
	}
}

// TestAnswerRefusal: which refusals a turn answers by a smaller request, which by looking for what is refused, and which end it.
func TestAnswerRefusal(t *testing.T) {
	auth := tidemark.APIError{Class: tidemark.ClassAuth, Status: 401}
	reply := tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 100_000, Asked: 20_000}
	other := odd
	other.Message = "another"
	always := func(tidemark.Request) error { return &odd }
	for _, c := range []struct {
		name    string
		err     error
		judge   func(tidemark.Request) error
		refits  int
		sized   bool
		again   bool
		smaller bool
		asked   bool // it is looked for
	}{
		{"of no API", errKnown, always, 0, false, false, false, false},
		{"of the key", &auth, always, 0, false, false, false, false},
		{"for nothing known", &odd, always, 0, false, false, false, true},
		{"for something in it", &odd, having("old words", &odd), 0, false, true, false, true},
		{"for the room of a reply", &reply, always, 7, false, true, true, false},
		{"for the same, too often", &reply, always, 8, false, false, false, false},
		{"for its size, which is known by now", &odd, always, 0, true, true, true, false},
		{"for something else, while its size is tried", &other, having("old words", &odd), 0, true, true, false, true},
	} {
		p := &judging{judge: c.judge}
		s, _ := plain(t, Config{Provider: p, Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		r.refits, r.Attempt = c.refits, 2
		if c.sized {
			r.trial.sized = &odd
		}
		v := answered(t, r.Log)
		v.Size = 10_000
		again, err := s.answerRefusal(t.Context(), r, v, v, tidemark.Call{}, c.err)
		attempt := 2
		if c.again || c.asked {
			attempt = 0
		}
		if again != c.again || (err == nil) != c.again || err != nil && !errors.Is(err, c.err) || r.Attempt != attempt || (len(p.asked) > 0) != c.asked || (r.refits > c.refits) != c.smaller {
			t.Errorf("%s: %v, %v, attempt %d, %d requests, refitted %d times", c.name, again, err, r.Attempt, len(p.asked), r.refits)
		}
	}
}

// TestNoGainInOwnWords: where a request was found too large by what the API takes, and cannot be made smaller, people read the API's
// words: that it was for its size was found, and not said.
func TestNoGainInOwnWords(t *testing.T) {
	for _, sized := range []*tidemark.APIError{nil, &odd} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		r.trial = trial{from: 150_000, least: true, sized: sized}
		refused := tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long"}
		if sized != nil {
			refused = odd
		}
		r.refits = 1
		v := weighing(r.Log, 40_000, 1_000, 30_000)
		_, err := s.answerRefusal(t.Context(), r, v, v, tidemark.Call{}, &refused)
		if errors.Is(err, tidemark.ErrOverflow) != (sized == nil) || errors.Is(err, &refused) != (sized != nil) {
			t.Errorf("sized %v: %v", sized != nil, err)
		}
	}
}

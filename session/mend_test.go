package session_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// refuser is a model that refuses what has a sign in it, and names the place as a provider gives it: the first that it
// finds. vague names the message only.
type refuser struct {
	sign  string
	vague bool
	tool  string // a tool that it refuses
}

func (p refuser) play(_ int, req tidemark.Request) (tidemark.Message, error) {
	refused := func(p tidemark.Place) error {
		return &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "this is odd", Place: &p}
	}
	for _, t := range req.Tools {
		if t.Name == p.tool && strings.Contains(string(t.InputSchema), p.sign) {
			return tidemark.Message{}, refused(tidemark.Place{Message: -1, Block: -1, Inner: -1, Tool: t.Name})
		}
	}
	for i, m := range req.Messages {
		for k, b := range m.Content {
			raw := string(b.AppendJSON(nil))
			if p.tool != "" || !strings.Contains(raw, p.sign) {
				continue
			}
			at := tidemark.Place{Message: i, Block: k, Inner: -1}
			for n, c := range b.Content {
				if strings.Contains(string(c.AppendJSON(nil)), p.sign) {
					at.Inner = n
				}
			}
			if p.vague {
				at.Block, at.Inner = -1, -1
			}
			return tidemark.Message{}, refused(at)
		}
	}
	return tidemark.Message{}, nil
}

func block(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMend: what the model API names when it refuses a request is taken out once, and the turn goes on. It stays out in
// later turns and lives, the rest of its message stays in, and so does the neighbour's, who has the same block under the
// same names and a model that takes it.
func TestMend(t *testing.T) {
	for _, row := range []struct {
		name   string
		blocks []string // of what a person sends
		result []string // of what a tool gives; nil: it is not called
		vague  bool
		lines  int      // that people are told
		out    []string // words that are sent afterwards, in order
	}{
		{"a block of another type", []string{`{"type":"text","text":"before"}`, `{"type":"odd","a":"§"}`, `{"type":"text","text":"behind"}`}, nil, false, 1, []string{"before", "of the type odd", "behind"}},
		{"a text", []string{`{"type":"text","text":"before"}`, `{"type":"text","text":"§"}`}, nil, false, 1, []string{"before", "of the type text"}},
		{"a message of words", []string{`{"type":"text","text":"before §"}`, `{"type":"text","text":"behind"}`}, nil, true, 1, []string{"of the type text", "behind"}},
		{"a message, twice", []string{`{"type":"text","text":"before §"}`, `{"type":"odd","a":"§"}`}, nil, true, 1, []string{"of the type text", "of the type odd"}},
		{"a result of words beside a person's", []string{`{"type":"text","text":"look"}`}, []string{`{"type":"text","text":"seen §"}`}, true, 1, []string{"look", "of the type tool_result"}},
		{"a block that only its message is named of", []string{`{"type":"text","text":"before"}`, `{"type":"odd","a":"§"}`}, nil, true, 1, []string{"before", "of the type odd"}},
		{"one block of a result", []string{`{"type":"text","text":"look"}`}, []string{`{"type":"text","text":"seen"}`, `{"type":"odd","a":"§"}`, `{"type":"text","text":"heard"}`}, false, 1, []string{"look", "seen", "of the type odd", "heard"}},
		{"a result of which the message is named", []string{`{"type":"text","text":"look"}`}, []string{`{"type":"text","text":"seen"}`, `{"type":"odd","a":"§"}`}, true, 1, []string{"look", "seen", "of the type odd"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{})
			n := h.other("agent:main:other")
			for _, x := range []*harness{h, n} {
				x.agent.call = func(c tidemark.Block) tidemark.Block {
					return block(t, `{"type":"tool_result","tool_use_id":"`+c.ID+`","content":[`+strings.Join(row.result, ",")+`]}`)
				}
			}
			h.model.set(lookingFirst(row.result != nil, refuser{sign: "§", vague: row.vague}.play))
			n.model.set(lookingFirst(row.result != nil, func(int, tidemark.Request) (tidemark.Message, error) { return tidemark.Message{}, nil }))
			in := session.Input{ID: "in1", Message: tidemark.Message{Role: tidemark.User}}
			for _, raw := range row.blocks {
				in.Message.Content = append(in.Message.Content, block(t, raw))
			}
			n.post(in)
			got := h.post(in)
			if events := h.events("notice"); !strings.HasPrefix(got, "ok ") || len(events) != row.lines || !strings.Contains(events[0], "this is odd") {
				t.Fatalf("answered %q, told %q", got, events)
			}
			calls := h.model.count()
			h.stop()
			h.open()
			if got := h.say("and now?"); !strings.HasPrefix(got, "ok ") || h.model.count() != calls+1 {
				t.Errorf("the next turn: %q after %d calls", got, h.model.count()-calls)
			}
			h.sentInOrder(row.out)
			if log := h.logged(); !strings.Contains(log, "§") {
				t.Errorf("the log does not have it any more: %s", log)
			}
			n.say("and now?")
			n.sentInOrder([]string{"§", "and now?"})
			if told := n.events("notice"); len(told) > 0 {
				t.Errorf("the neighbour is told %q", told)
			}
		})
	}
}

// other is another conversation on the same database, with a model and an agent of its own.
func (h *harness) other(key tidemark.Key) *harness {
	h.t.Helper()
	n := newHarness(h.t, h.set)
	n.stop()
	n.db, n.key = h.db, key
	n.open()
	return n
}

// lookingFirst has a model call a tool before it first answers.
func lookingFirst(looks bool, play func(int, tidemark.Request) (tidemark.Message, error)) func(int, tidemark.Request) (tidemark.Message, error) {
	return func(n int, req tidemark.Request) (tidemark.Message, error) {
		if m, err := play(n, req); err != nil || !looks || len(req.Messages) > 1 {
			return m, err
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", nil)}}, nil
	}
}

// sentInOrder holds that words were sent last, one behind the other.
func (h *harness) sentInOrder(words []string) {
	h.t.Helper()
	raw, err := json.Marshal(h.model.last().Messages)
	if err != nil {
		h.t.Fatal(err)
	}
	rest := string(raw)
	for _, w := range words {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			h.t.Fatalf("no %q in %s", w, raw)
		}
		rest = after
	}
}

// logged is what the log has, as it came.
func (h *harness) logged() string {
	h.t.Helper()
	var out strings.Builder
	for e, err := range h.Reader.All(h.t.Context(), true) {
		if err != nil {
			h.t.Fatal(err)
		}
		out.Write(e.Payload)
	}
	return out.String()
}

// TestMendMedia: an API that refuses a picture mostly does not say which. It is asked, and just that is taken out, whether it is
// new, or was taken before.
func TestMendMedia(t *testing.T) {
	t.Parallel()
	picture := func(data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}`
	}
	const there = `{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}`
	for _, row := range []struct {
		name   string
		sign   string   // of what is refused, in the second turn
		first  []string // blocks of the first turn, which is answered; nil: the second is the first
		second []string
		result []string // of the tool that the second turn calls; nil: none
		in     []string // what is sent afterwards
	}{
		{"in a result", "QkFE", []string{picture("T0xE")}, []string{`{"type":"text","text":"look"}`},
			[]string{`{"type":"text","text":"seen"}`, picture("QkFE"), picture("TkVX")}, []string{"T0xE", "look", "seen", "of the type", "TkVX"}},
		{"of a person", "QkFE", []string{picture("T0xE")},
			[]string{`{"type":"text","text":"this"}`, picture("QkFE"), picture("TkVX"), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Clause 1."}}`}, nil,
			[]string{"T0xE", "this", "of the type", "TkVX", "Clause 1."}},
		{"of what was said first", "QkFE", nil, []string{there, picture("QkFE"), `{"type":"text","text":"this"}`}, nil, []string{"x.test", "of the type", "this"}},
		{"an address that is gone", "x.test", []string{picture("T0xE"), there}, []string{`{"type":"text","text":"and now?"}`}, nil, []string{"T0xE", "of the type", "and now?"}},
		{"one that was taken before", "T0xE", []string{picture("T0xE"), there}, []string{`{"type":"text","text":"this"}`, picture("TkVX")}, nil, []string{"of the type", "x.test", "this", "TkVX"}},
		{"words that were taken before", "hello", []string{`{"type":"text","text":"hello"}`, picture("T0xE")}, []string{`{"type":"text","text":"this"}`}, nil, []string{"of the type", "T0xE", "this"}},
	} {
		for _, refusal := range []tidemark.APIError{
			{Class: tidemark.ClassBadRequest, Status: 400, Message: "it is odd"},
			{Class: tidemark.ClassBadRequest, Status: 404, Message: "it is odd", Param: "model"},
			{Class: tidemark.ClassRefusal, Status: 403, Message: "it is odd"},
			{Class: tidemark.ClassOverloaded, Status: 500, Message: "it is odd"},
		} {
			t.Run(fmt.Sprint(row.name, refusal.Status), func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, session.Settings{})
				h.agent.call = func(c tidemark.Block) tidemark.Block {
					return block(t, `{"type":"tool_result","tool_use_id":"`+c.ID+`","content":[`+strings.Join(row.result, ",")+`]}`)
				}
				say := func(blocks []string) string {
					in := session.Input{Message: tidemark.Message{Role: tidemark.User}}
					for _, raw := range blocks {
						in.Message.Content = append(in.Message.Content, block(t, raw))
					}
					return h.post(in)
				}
				if row.first != nil {
					say(row.first)
				}
				called := row.result == nil
				h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
					raw, err := json.Marshal(req.Messages)
					if err != nil {
						t.Error(err)
					}
					switch {
					case strings.Contains(string(raw), row.sign):
						return tidemark.Message{}, &refusal
					case !called:
						called = true
						return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", nil)}}, nil
					}
					return tidemark.Message{}, nil
				})
				if got := say(row.second); !strings.HasPrefix(got, "ok ") || len(h.events("notice")) != 1 {
					t.Fatalf("answered %q, told %q", got, h.events("notice"))
				}
				h.sentInOrder(row.in)
				calls := h.model.count()
				if got := h.say("go on"); !strings.HasPrefix(got, "ok ") || h.model.count() != calls+1 {
					t.Errorf("the next turn: %q after %d calls", got, h.model.count()-calls)
				}
				if raw, err := json.Marshal(h.model.last().Messages); err != nil || strings.Contains(string(raw), row.sign) || strings.Count(string(raw), "Refused by") != 1 || !strings.Contains(h.logged(), row.sign) {
					t.Errorf("%v: sent %s", err, raw)
				}
			})
		}
	}
}

// TestMendNothing: a refusal that is for nothing which could be left out takes nothing out, in whatever words; nor does one that
// passes, however often it was made.
func TestMendNothing(t *testing.T) {
	t.Parallel()
	paste := strings.Repeat("clause 700 is of doors, ", 2000)
	for _, status := range []int{400, 413, 422, 500} {
		for _, times := range []int{1, 3, 1000} { // where it is refused at 500 three times, it is asked no more
			t.Run(fmt.Sprint(status, " ", times), func(t *testing.T) {
				t.Parallel()
				class := map[int]tidemark.Class{400: tidemark.ClassBadRequest, 413: tidemark.ClassOverflow, 422: tidemark.ClassBadRequest, 500: tidemark.ClassOverloaded}[status]
				h := newHarness(t, session.Settings{Window: 200_000})
				in := session.Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{block(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"T0xE"}}`)}}}
				if got := h.post(in); !strings.HasPrefix(got, "ok ") {
					t.Fatal(got)
				}
				refused := 0
				h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
					if refused++; refused <= times {
						return tidemark.Message{}, &tidemark.APIError{Class: class, Status: status}
					}
					return tidemark.Message{}, nil
				})
				before := h.model.count()
				got := h.say(paste)
				passes := times == 1 || times == 3 && status == 500
				if strings.HasPrefix(got, "ok ") != passes || h.model.count() > before+6 {
					t.Errorf("%.99q after %d calls", got, h.model.count()-before)
				}
				h.model.set(nil)
				h.say("again")
				h.sentInOrder([]string{"T0xE", paste, "again"})
				if told := h.events("notice"); len(told) > 0 {
					t.Errorf("told %q", told)
				}
			})
		}
	}
}

// TestMendedIsEvicted: a note may be longer than what it stands for. What is evicted with it leaves all the same: no check
// takes the compaction back.
func TestMendedIsEvicted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, small)
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{Tail: 2}}
	h.open()
	h.model.set(refuser{sign: "§"}.play)
	for range 3 {
		if got := h.post(session.Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{block(t, `{"type":"odd","a":"§"}`), tidemark.Text("so?")}}}); !strings.HasPrefix(got, "ok ") {
			t.Fatal(got)
		}
	}
	for i := range 12 {
		if got := h.say(filler(i)); !strings.HasPrefix(got, "ok ") {
			t.Fatal(got)
		}
	}
	if taken := h.events("selfcheck"); len(taken) > 0 || len(h.events("compaction")) == 0 {
		t.Errorf("%d compactions, taken back: %q", len(h.events("compaction")), taken)
	}
}

// TestMendSummary: a summary that the API refuses costs just that; what it stood for is found and recalled as before.
func TestMendSummary(t *testing.T) {
	t.Parallel()
	h := newHarness(t, small)
	for i := range 12 {
		h.say(filler(i))
	}
	h.post(session.Input{Kind: session.InputCompact})
	if len(h.events("compaction")) == 0 {
		t.Fatal("nothing was compacted")
	}
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if raw, err := json.Marshal(req.Messages); err != nil || strings.Contains(string(raw), compaction.SummaryMarker) && !asksSummary(req) {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassRefusal, Status: 400, Message: "flagged"}
		}
		return tidemark.Message{}, nil
	})
	for i := range 3 {
		if got := h.say(fmt.Sprint("and now ", i)); !strings.HasPrefix(got, "ok ") {
			t.Fatalf("answered %q", got)
		}
	}
	h.sentInOrder([]string{"Refused by the model's API: what stood here stood for", "and now 0", "and now 2"})
	if !strings.Contains(h.logged(), filler(0)) {
		t.Error("something is lost")
	}
	h.model.set(nil)
	compactions := len(h.events("compaction"))
	for i := range 12 {
		if got := h.say(filler(20 + i)); !strings.HasPrefix(got, "ok ") {
			t.Fatalf("answered %q", got)
		}
	}
	if h.post(session.Input{Kind: session.InputCompact}); len(h.events("compaction")) == compactions {
		t.Error("it is not compacted any more")
	}
}

// TestMendOnce: where what was named is refused without it as well, nothing is taken out, and the turn ends.
func TestMendOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "odd", Place: &tidemark.Place{Message: 0, Block: 0, Inner: -1}}
	})
	if got := h.say("hello"); !strings.HasPrefix(got, "error: ") || h.model.count() != 4 { // twice as it is, without it, without all
		t.Errorf("%q after %d calls", got, h.model.count())
	}
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "odd", Place: &tidemark.Place{Message: 99, Block: 0, Inner: -1}}
	})
	before := h.model.count()
	if got := h.say("hello"); !strings.HasPrefix(got, "error: ") || h.model.count() != before+3 {
		t.Errorf("a place that is none: %q after %d calls", got, h.model.count()-before)
	}
}

// TestMendSeveral: pictures that are refused one after the other are all taken out in the same turn.
func TestMendSeveral(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	h.model.set(refuser{sign: "§"}.play)
	m := tidemark.NewText(tidemark.User, "look")
	const refused = 6
	for i := range refused {
		m.Content = append(m.Content, block(t, fmt.Sprintf(`{"type":"sketch","data":"§%d"}`, i)))
	}
	if got := h.post(session.Input{ID: "six", Message: m}); !strings.HasPrefix(got, "ok ") || h.model.count() > 2*refused+4 {
		t.Errorf("%q after %d calls", got, h.model.count())
	}
}

// TestMendThinking: thinking whose signature is refused is not sent again, and what was said behind it is.
func TestMendThinking(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	thought := block(t, `{"type":"thinking","thinking":"hm §","signature":"of another"}`)
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{thought, tidemark.Text("Well.")}}, nil
	})
	h.say("hello")
	h.model.set(refuser{sign: "§"}.play)
	if got := h.say("again"); !strings.HasPrefix(got, "ok ") {
		t.Fatal(got)
	}
	if sent := fmt.Sprint(texts(h.model.last().Messages)); !strings.Contains(sent, "Well.") || strings.Contains(sent, "hm") || h.model.count() != 6 {
		t.Errorf("sent %s in %d calls", sent, h.model.count())
	}
}

// refusingBox is a toolbox that is told of what is refused.
type refusingBox struct {
	*box
	told []string
}

func (b *refusingBox) Refused(name, mark, why string) { b.told = append(b.told, name+" "+mark+" "+why) }

// TestMendTool: a tool whose definition is refused is left out, and its neighbours stay; whoever keeps the list is told.
func TestMendTool(t *testing.T) {
	h, _, b := newAsking(t, "agent:main:main", nil)
	odd := tool("files__odd", false)
	odd.InputSchema, odd.Mark = []byte(`{"type":"object","x":"§"}`), "m1"
	b.tools = append(b.tools, odd)
	r := &refusingBox{box: b}
	h.stop()
	h.tools = r
	h.open()
	h.model.set(refuser{sign: "§", tool: "files__odd"}.play)
	names := func() string {
		var out []string
		for _, t := range h.model.last().Tools {
			if strings.HasPrefix(t.Name, "files__") {
				out = append(out, strings.TrimPrefix(t.Name, "files__"))
			}
		}
		return strings.Join(out, " ")
	}
	if got := h.post(byOwner("go")); !strings.HasPrefix(got, "ok ") || names() != "read write rm" || h.model.count() != 5 {
		t.Fatalf("%q, offered %q, %d calls", got, names(), h.model.count())
	}
	if len(r.told) != 1 || r.told[0] != "files__odd m1 this is odd" || len(h.events("notice")) != 1 {
		t.Errorf("told %q, %q", r.told, h.events("notice"))
	}
	if h.post(byOwner("again")); names() != "read write rm" || h.model.count() != 6 {
		t.Errorf("the next turn is offered %q after %d calls", names(), h.model.count())
	}
	h.stop()
	r.told = nil
	h.open()
	if h.post(byOwner("in another life")); names() != "read write rm" || h.model.count() != 7 || len(r.told) != 1 {
		t.Errorf("another life is offered %q after %d calls, the toolbox was told %q", names(), h.model.count(), r.told)
	}
	var gone []string
	for i := range 128 {
		gone = append(gone, fmt.Sprintf(`"gone%d":{"model":"m","hash":"%064d","why":"odd"}`, i, i))
	}
	h.stop()
	h.exec(`UPDATE heads SET refused = ? WHERE key = ?`, "{"+strings.Join(gone, ",")+"}", string(h.key))
	h.open()
	if h.post(byOwner("beside many that are gone")); names() != "read write rm" || h.model.count() != 12 {
		t.Errorf("beside many that are gone, %q is offered after %d calls", names(), h.model.count())
	}
	if err := h.Configure(t.Context(), session.Override{Model: "another"}); err != nil {
		t.Fatal(err)
	}
	if h.post(byOwner("to another model")); names() != "read write rm" || h.model.count() != 17 {
		t.Errorf("another model is offered %q after %d calls", names(), h.model.count())
	}
	b.tools[len(b.tools)-1].InputSchema, b.mark = []byte(`{"type":"object"}`), "other"
	if h.post(byOwner("once more")); names() != "read write rm odd" {
		t.Errorf("another definition is not offered: %q", names())
	}
}

// TestWordlessAnswer: an answer that only thought is told as one without text, and the conversation goes on.
func TestWordlessAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{block(t, `{"type":"thinking","thinking":"hm","signature":"s"}`)}}, nil
	})
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	h.say("hello")
	said := ""
	for n, ok := sub.Next(); ok; n, ok = sub.Next() {
		if n.Type == session.NoticeText {
			said += n.Text
		}
	}
	if said != "(The answer has no text.)" {
		t.Errorf("people read %q", said)
	}
	h.model.set(nil)
	if got := h.say("and now?"); !strings.HasPrefix(got, "ok ") {
		t.Errorf("the next turn: %q", got)
	}
	if strings.Contains(fmt.Sprint(h.originals()), "no text") {
		t.Errorf("the log has it: %q", h.originals())
	}
}

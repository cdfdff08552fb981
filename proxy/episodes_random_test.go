package proxy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestRandomMarks: whatever an agent marks, in legs of its own and among the client's calls, rightly and wrongly, and whatever
// the client does (drops thinking, adds reminders, rewinds, asks again, is refused), each request keeps the API's rules and
// has all that people said; between two acts what was sent is sent again; and a restart changes nothing.
func TestRandomMarks(t *testing.T) {
	whole, part, refused, short := 0, 0, 0, 0
	for seed := range uint64(tidemarktest.Rounds(8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			one, two := playMarks(t, seed, 70, false), playMarks(t, seed, 70, true)
			compareSent(t, one, two)
			for _, r := range one.r.records {
				whole, part = whole+r.Episodes.Whole, part+r.Episodes.Part
				if r.Episodes.Short > 0 {
					short++
				}
			}
			refused += one.refused
		})
	}
	if rounds := tidemarktest.Rounds(8); rounds >= 8 && (whole == 0 || part == 0 || refused == 0 || short == 0) {
		t.Errorf("%d episodes left whole, %d in part, %d calls were refused, %d requests too large: the agents did too little", whole, part, refused, short)
	}
}

// FuzzMarks plays further ones.
func FuzzMarks(f *testing.F) {
	f.Add(uint64(100))
	f.Fuzz(func(t *testing.T, seed uint64) {
		one, two := playMarks(t, seed, 60, false), playMarks(t, seed, 60, true)
		compareSent(t, one, two)
	})
}

// compareSent holds that two lives of a conversation were sent the same.
func compareSent(t *testing.T, one, two *marker) {
	t.Helper()
	for i := range min(len(one.sent), len(two.sent)) {
		if !bytes.Equal(one.sent[i], two.sent[i]) {
			at := 0
			for at < min(len(one.sent[i]), len(two.sent[i])) && one.sent[i][at] == two.sent[i][at] {
				at++
			}
			from := max(at-200, 0)
			t.Fatalf("call %d after restarts is\n%.600s\nwithout\n%.600s", i, two.sent[i][from:], one.sent[i][from:])
		}
	}
	if len(one.sent) != len(two.sent) {
		t.Fatalf("%d calls after restarts, %d without", len(two.sent), len(one.sent))
	}
}

func playMarks(t *testing.T, seed uint64, acts int, restarts bool) *marker {
	m := &marker{t: t, rand: rand.New(rand.NewPCG(seed, 11)), restarts: restarts, others: seed%2 == 1, shapes: map[string]string{},
		r: newRig(t, proxy.Settings{Window: 60_000, Treatment: proxy.Episodes, Episodes: proxy.EpisodeSettings{Budget: episodes.Budget{Tokens: 6_000}}})}
	m.turn("begin")
	for range acts {
		m.act()
	}
	m.r.restart()
	v, err := m.r.s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tidemark.Check(v.Messages()); err != nil && len(v.Messages()) > 0 { // the first request may have had no answer
		t.Fatalf("what the log shows: %v", err)
	}
	return m
}

// marker is an agent that marks what it does, and its client.
type marker struct {
	t        *testing.T
	r        *rig
	rand     *rand.Rand
	restarts bool
	history  []string
	threads  [][]string
	others   bool     // others speak between the messages, and
	rules    []string // what they say is to be heard
	n        int
	open     string // the episode that it believes to be open
	closed   []string
	shapes   map[string]string // of replies, by their first call

	sent    [][]byte
	refused int
	last    []tidemark.Message // of the newest request, without what comes and goes
}

func (m *marker) turn(s string) {
	m.history = append(m.history, text("user", fmt.Sprintf("%s %d", s, m.n)))
}

func (m *marker) act() {
	if m.restarts && m.n%3 == 0 {
		m.r.restart()
	}
	switch m.rand.IntN(16) {
	case 0: // rewind to any message of a person
		var at []int
		for i, raw := range m.history {
			if strings.HasPrefix(raw, `{"role":"user","content":"`) {
				at = append(at, i)
			}
		}
		m.threads = append(m.threads, m.history)
		m.history = append([]string(nil), m.history[:at[m.rand.IntN(len(at))]]...)
		m.n++
		m.turn("instead")
		m.last = nil
	case 1:
		if len(m.threads) > 0 {
			i := m.rand.IntN(len(m.threads))
			m.history, m.threads[i] = m.threads[i], m.history
			m.last = nil
		}
	case 2: // the answer was lost
		m.send(m.answers(true), false)
	case 3: // it is refused
		x, err := m.r.c.Begin(m.t.Context(), proxy.Ask{Body: m.body()})
		if err != nil || x.Answer(m.t.Context(), 429, false) {
			m.t.Fatal("taken", err)
		}
		x.Broken(m.t.Context(), nil)
		m.last = nil
	default:
		m.send(m.answers(m.rand.IntN(7) == 0), true)
	}
}

// answers are what the model says.
func (m *marker) answers(end bool) (out [][]byte) {
	for m.rand.IntN(3) == 0 && len(out) < 3 {
		blocks := m.thinks()
		if m.rand.IntN(2) == 0 {
			blocks = append(blocks, textBlock(fmt.Sprint("aloud ", m.n)))
		}
		blocks = append(blocks, m.ours())
		if m.rand.IntN(3) == 0 {
			blocks = append(blocks, m.ours())
		}
		out = append(out, m.shape(reply("tool_use", blocks...), blocks))
	}
	m.n++
	blocks := m.thinks()
	if quiet := len(out) > 0 && m.rand.IntN(4) == 0; end && !quiet || !end && m.rand.IntN(2) == 0 {
		blocks = append(blocks, textBlock(fmt.Sprint("so ", m.n, strings.Repeat(" much", m.rand.IntN(60)))))
	}
	stop := "end_turn"
	if !end {
		stop = "tool_use"
		for range 1 + m.rand.IntN(3) {
			m.n++
			if m.rand.IntN(3) == 0 {
				blocks = append(blocks, m.ours())
			}
			blocks = append(blocks, call(fmt.Sprint("c", m.n), []string{"Read", "Grep", "Edit"}[m.rand.IntN(3)], fmt.Sprintf(`{"file_path":"f%d.go","pattern":"x"}`, m.rand.IntN(12))))
		}
	}
	return append(out, m.shape(reply(stop, blocks...), blocks))
}

func (m *marker) thinks() []string {
	if m.rand.IntN(2) == 0 {
		return nil
	}
	m.n++
	return []string{fmt.Sprintf(`{"type":"thinking","thinking":"hm %d","signature":"c2ln"}`, m.n)}
}

// shape notes the thinking and the calls of a reply.
func (m *marker) shape(raw []byte, blocks []string) []byte {
	var list []tidemark.Block
	for _, s := range blocks {
		var b tidemark.Block
		if err := json.Unmarshal([]byte(s), &b); err != nil {
			m.t.Fatal(err)
		}
		list = append(list, b)
	}
	if id, s := shapeOf(list); id != "" {
		m.shapes[id] = s
	}
	return raw
}

// shapeOf is what an API compares of a message in an open tool loop: its thinking and its calls. first is the first call.
func shapeOf(blocks []tidemark.Block) (first, shape string) {
	thinks := false
	for _, b := range blocks {
		switch b.Type {
		case tidemark.TypeToolUse:
			if first == "" {
				first = b.ID
			}
			shape += " " + b.ID
		case tidemark.TypeThinking:
			shape, thinks = shape+" ("+b.Text+")", true
		}
	}
	if !thinks {
		return first, ""
	}
	return first, shape
}

// ours is a call of a tool of ours: mostly what the protocol wants.
func (m *marker) ours() string {
	m.n++
	id := fmt.Sprint("p", m.n)
	name := fmt.Sprint("work ", m.n)
	switch k := m.rand.IntN(12); {
	case k == 0 && len(m.closed) > 0:
		return call(id, "memory_fault", fmt.Sprintf(`{"paths":["episode:%s"]}`, m.closed[m.rand.IntN(len(m.closed))]))
	case k == 1:
		return call(id, "delimiter", []string{`{}`, `{"action":"start","name":"x","type":"act"}`, `{"action":"end","name":"no"}`}[m.rand.IntN(3)])
	case m.open != "" && strings.HasPrefix(m.open, "expl"):
		m.closed = append(m.closed, m.open[4:])
		m.open = ""
		return call(id, "delimiter", `{"action":"end","description":"what was learned, in a sentence"}`)
	case m.open != "":
		m.open = ""
		return call(id, "delimiter", `{"action":"end"}`)
	case k%2 == 0 && len(m.closed) > 0:
		m.open = "act " + name
		return call(id, "delimiter", fmt.Sprintf(`{"action":"start","name":%q,"type":"act","dependencies":[%q]}`, name, m.closed[len(m.closed)-1]))
	}
	m.open = "expl" + name
	return call(id, "delimiter", fmt.Sprintf(`{"action":"start","name":%q,"type":"expl"}`, name))
}

// body is the history in one of its forms: without thinking of turns that are over, with reminders, with markers.
func (m *marker) body() []byte {
	out := slices.Clone(m.history)
	asked := 0
	for i, raw := range out {
		if strings.HasPrefix(raw, `{"role":"user","content":"`) {
			asked = i
		}
	}
	for i, raw := range out {
		switch {
		case i < asked && strings.HasPrefix(raw, `{"role":"assistant"`) && m.rand.IntN(3) == 0:
			out[i] = m.thoughtless(raw)
		case strings.HasPrefix(raw, `{"role":"user","content":[`) && m.rand.IntN(4) == 0:
			out[i] = raw[:len(raw)-2] + "," + textBlock("<system-reminder>it is now</system-reminder>") + "]}"
		case strings.HasPrefix(raw, `{"role":"user","content":[`) && i > len(out)-4:
			out[i] = raw[:len(raw)-3] + `,"cache_control":{"type":"ephemeral"}}]}`
		}
	}
	if m.others {
		out = among(out)
	}
	m.rules = rules(out)
	return request(out...)
}

func (m *marker) thoughtless(raw string) string {
	var a tidemark.Message
	if err := json.Unmarshal([]byte(raw), &a); err != nil {
		m.t.Fatal(err)
	}
	kept := slices.DeleteFunc(slices.Clone(a.Content), func(b tidemark.Block) bool { return b.Type == tidemark.TypeThinking })
	if len(kept) == 0 || len(kept) == len(a.Content) {
		return raw
	}
	return string(tidemark.Message{Role: tidemark.Assistant, Content: kept}.AppendJSON(nil))
}

func (m *marker) send(answers [][]byte, got bool) {
	e := m.r.exchange("", m.body(), answers...)
	for leg := range e.sent {
		m.check(e, leg)
	}
	m.sent = append(m.sent, e.sent...)
	m.stable(e)
	m.refused += bytes.Count(e.sent[len(e.sent)-1], []byte(`"is_error":true`))
	if bytes.Contains(e.got, []byte("memory_fault")) || bytes.Contains(e.got, []byte("delimiter")) {
		m.t.Fatalf("the client got %s", e.got)
	}
	if !got {
		m.open = "" // it may be, or not
		return
	}
	var a struct {
		Content []tidemark.Block `json:"content"`
	}
	if err := json.Unmarshal(e.got, &a); err != nil {
		m.t.Fatal(err)
	}
	if len(a.Content) == 0 || a.Content[len(a.Content)-1].Type == tidemark.TypeThinking {
		m.t.Fatalf("the client cannot send back %s", e.got)
	}
	reply := tidemark.Message{Role: tidemark.Assistant, Content: a.Content}
	m.history = append(m.history, string(reply.AppendJSON(nil)))
	var results []string
	for _, id := range reply.Calls() {
		results = append(results, string(json.AppendString(fmt.Appendf(nil, `{"type":"tool_result","tool_use_id":%q,"content":`, id), strings.Repeat("line of "+id+"\n", 20+m.rand.IntN(200))))+"}")
	}
	if len(results) > 0 {
		m.history = append(m.history, `{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
		return
	}
	m.turn("go on")
}

// check holds a call to the rules of the API.
func (m *marker) check(e exchanged, leg int) {
	list := e.messages(m.t, leg)
	if err := tidemark.Check(list); err != nil {
		m.t.Fatalf("call %d: %v\n%s", leg, err, e.sent[leg])
	}
	for _, raw := range m.history {
		if strings.HasPrefix(raw, `{"role":"user","content":"`) && !bytes.Contains(e.sent[leg], []byte(raw[len(`{"role":"user","content":`):len(raw)-1])) {
			m.t.Fatalf("what was said is not sent: %s\n%s", raw, e.sent[leg])
		}
	}
	for _, rule := range m.rules {
		if !bytes.Contains(e.sent[leg], []byte(rule)) {
			m.t.Fatalf("%s: it is not sent: %s", rule, e.sent[leg])
		}
	}
	noteIsLast(m.t, e, "nothing more may leave")
	var merged []tidemark.Message
	said := 0
	for _, one := range list {
		if len(one.Content) == 0 {
			m.t.Fatalf("a message is empty: %s", e.sent[leg])
		}
		if n := len(merged); n > 0 && merged[n-1].Role == one.Role {
			merged[n-1].Content = append(slices.Clone(merged[n-1].Content), one.Content...)
		} else {
			merged = append(merged, one)
		}
		if one.Role == tidemark.User && len(one.Results()) == 0 {
			said = len(merged)
		}
	}
	if merged[len(merged)-1].Role == tidemark.Assistant {
		m.t.Fatalf("the model spoke last: %s", e.sent[leg])
	}
	for _, one := range merged[said:] {
		if first, shape := shapeOf(one.Content); one.Role == tidemark.Assistant && m.shapes[first] != "" && shape != m.shapes[first] {
			m.t.Fatalf("the reply with %s is sent as%s, was%s\n%s", first, shape, m.shapes[first], e.sent[leg])
		}
	}
}

// stable holds that what was sent before is sent again, but where something left, and that the budget is met or told of.
func (m *marker) stable(e exchanged) {
	rec := m.r.records[len(m.r.records)-1]
	if rec.Episodes == nil || rec.Untouched != "" {
		m.t.Fatalf("recorded %+v", rec)
	}
	if r := rec.Episodes; r.Size > r.Budget != (r.Short > 0) || (r.Short > 0) != bytes.Contains(e.sent[0], []byte("nothing more may leave")) {
		m.t.Fatalf("recorded %+v of %s", *r, e.sent[0])
	}
	var now []tidemark.Message
	for _, one := range e.messages(m.t, 0) {
		one.Content = slices.DeleteFunc(slices.Clone(one.Content), func(b tidemark.Block) bool {
			return b.Type == tidemark.TypeThinking || strings.Contains(b.Text, "system-reminder") || strings.Contains(b.Text, "nothing more may leave")
		})
		if len(one.Content) > 0 {
			now = append(now, one)
		}
	}
	if rec.Episodes.Freed == 0 && m.last != nil {
		for i := range m.last {
			a, b := stripped(m.last[i]), stripped(now[i])
			if a != b {
				m.t.Fatalf("message %d was %s, now %s", i, a, b)
			}
		}
	}
	m.last = now
}

func stripped(m tidemark.Message) string {
	out := string(m.Role)
	for _, b := range m.Content {
		out += "\n" + string(b.AppendJSON(nil))
	}
	return strings.ReplaceAll(out, `,"cache_control":{"type":"ephemeral"}`, "")
}

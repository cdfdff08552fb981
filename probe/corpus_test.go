package probe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// parts of a log, each a turn with one call and 1,050 bytes.
func turns(l *log, ids ...string) *log {
	for _, id := range ids {
		l.user(text(1000)).model(id, 1000, 10, text(50))
	}
	return l
}

func TestOneOfEach(t *testing.T) {
	short := turns(&log{name: "a"}, "m0", "m1")
	for _, c := range []struct {
		name                   string
		logs                   []*log
		sessions, calls, held  int
		content                int64
		copies, small, damaged int
	}{
		{name: "one", logs: []*log{short}, sessions: 1, calls: 2, content: 2100},
		{name: "the same file", logs: []*log{short, {name: "b", lines: short.lines}}, sessions: 1, calls: 2, content: 2100, copies: 1},
		{name: "resumed into another file", logs: []*log{short, turns(&log{name: "b"}, "m0", "m1", "m2")}, sessions: 1, calls: 3, content: 3150, held: 1},
		// Of a branch only what is its own counts.
		{name: "a branch", logs: []*log{turns(&log{name: "a"}, "m0", "m1", "m2", "m3"), turns(&log{name: "b"}, "m0", "m1", "n2")}, sessions: 2, calls: 5, content: 5250},
		// What was said before a compaction is the log's own, though another has what follows.
		{name: "compacted into another", logs: []*log{turns(&log{name: "a"}, "m0", "m1", "m2"),
			turns(turns(&log{name: "b"}, "n0").add(`{"type":"system","subtype":"compact_boundary"}`), "m0")}, sessions: 2, calls: 4, content: 4200},
		{name: "two that are alike", logs: []*log{short, turns(&log{name: "b"}, "n0", "n1")}, sessions: 2, calls: 4, content: 4200},
		{name: "damaged lines", logs: []*log{turns((&log{name: "a"}).add(`{"type":`), "m0").add("x")}, sessions: 1, calls: 1, content: 1050, damaged: 2},
		{name: "no message", logs: []*log{(&log{name: "a"}).add(`{"type":"summary","summary":"x"}`)}, sessions: 1},
		{name: "nobody answered", logs: []*log{(&log{name: "a"}).user(text(70))}, sessions: 1, content: 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := report(t, Options{}, c.logs...)
			if r.Sessions != c.sessions || r.Calls != c.calls || r.Held != c.held || r.Content != c.content || r.Files.Copies != c.copies || r.Files.Damaged != c.damaged {
				t.Errorf("%d sessions, %d calls, %d held, %d bytes, %+v; want %+v", r.Sessions, r.Calls, r.Held, r.Content, r.Files, c)
			}
			// Everything once more changes nothing but the files.
			again := report(t, Options{}, append(slices.Clone(c.logs), renamed(c.logs)...)...)
			r.Files, again.Files, r.Held, again.Held = Files{}, Files{}, 0, 0
			if a, b := encoded(t, r), encoded(t, again); !bytes.Equal(a, b) {
				t.Errorf("twice the logs give another report:\n%s\n%s", a, b)
			}
		})
	}
}

// renamed are the same logs with a blank line behind, so that they are no copies byte for byte.
func renamed(logs []*log) (out []*log) {
	for _, l := range logs {
		if len(l.lines) > 0 && !strings.Contains(l.text(), `"summary"`) {
			out = append(out, &log{name: "copy-" + l.name, lines: append(slices.Clone(l.lines), "")})
		}
	}
	return out
}

func encoded(t testing.TB, r Report) []byte {
	t.Helper()
	raw, err := json.MarshalIndent(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMinSize(t *testing.T) {
	small, large := turns(&log{name: "a"}, "m0"), turns(&log{name: "b"}, "n0", "n1")
	r := report(t, Options{MinSize: int64(len(large.text()))}, small, large)
	if r.Files.Small != 1 || r.Sessions != 1 || r.Calls != 2 || r.Protocol.MinSize != int64(len(large.text())) {
		t.Errorf("%+v, %d sessions", r.Files, r.Sessions)
	}
	c := New(Options{})
	if err := addLog(c, "a", small.text()); err != nil || c.Report().Files.Small != 1 {
		t.Error("a log below the paper's 10,000 bytes counts")
	}
}

func TestClasses(t *testing.T) {
	side := func(fields string, l *log, ids ...string) *log {
		for _, id := range ids {
			l.line(`,"isSidechain":true`+fields, "user", "", "", []string{text(100)})
			l.line(`,"isSidechain":true`+fields, "assistant", id, "", []string{text(50)})
		}
		return l
	}
	summed := (&log{name: "s"}).line(`,"isCompactSummary":true`, "user", "", "", []string{text(100)}).model("m0", 0, 0, text(50))
	for _, c := range []struct {
		name string
		log  *log
		want map[Class]int // calls
	}{
		{"main", turns(&log{name: "s"}, "m0"), map[Class]int{Main: 1}},
		{"a side chain", side("", &log{name: "s"}, "m0"), map[Class]int{Subagent: 1}},
		{"side chains within", side(`,"agentId":"a2"`, side(`,"agentId":"a1"`, turns(&log{name: "s"}, "m0"), "m1"), "m2", "m3"), map[Class]int{Main: 1, Subagent: 3}},
		{"one that compacts", side(`,"agentId":"acompact-1"`, &log{name: "s"}, "m0"), map[Class]int{Compact: 1}},
		{"by its file", side("", &log{name: "agent-acompact-9f"}, "m0"), map[Class]int{Compact: 1}},
		{"begins with a summary", summed, map[Class]int{Compact: 1}},
		{"one that suggests", side(`,"agentId":"aprompt_suggestion-1"`, &log{name: "s"}, "m0"), map[Class]int{Suggestion: 1}},
		{"asked for a suggestion", (&log{name: "s"}).user(`{"type":"text","text":"[SUGGESTION MODE: what next?]"}`).model("m0", 0, 0, text(50)), map[Class]int{Suggestion: 1}},
		{"an agent's file", turns(&log{name: "agent-12ab"}, "m0"), map[Class]int{Subagent: 1}},
		{"nobody answered", (&log{name: "s"}).user(text(70)), map[Class]int{Other: 0}},
		{"only the tool spoke", (&log{name: "s"}).user(text(70)).add(`{"type":"assistant","message":{"role":"assistant","model":"<synthetic>","content":[` + text(60) + `]}}`), map[Class]int{Other: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := report(t, Options{}, c.log)
			got := map[Class]int{}
			for _, k := range r.Classes {
				got[k.Class] = k.Calls
			}
			if len(got) != len(c.want) {
				t.Fatalf("classes %v, want %v", got, c.want)
			}
			for k, n := range c.want {
				if calls, ok := got[k]; !ok || calls != n {
					t.Errorf("classes %v, want %v", got, c.want)
				}
			}
		})
	}
}

// TestSides: side chains without an id of their agent are told apart by what they answer.
func TestSides(t *testing.T) {
	line := func(role, uuid, parent, id string) string {
		return `{"type":"` + role + `","isSidechain":true,"uuid":"` + uuid + `","parentUuid":` + parent + `,"message":{"role":"` + role + `","id":"` + id + `","content":[` + text(60) + `]}}`
	}
	l := (&log{name: "s"}).add(line("user", "u1", "null", "")).add(line("user", "u2", "null", "")).
		add(line("assistant", "a1", `"u1"`, "m1")).add(line("assistant", "a2", `"u2"`, "m2")).
		add(line("user", "u3", `"a1"`, "")).add(line("assistant", "a3", `"u3"`, "m3"))
	r := report(t, Options{}, l)
	if r.Sessions != 2 || r.Calls != 3 || r.List[0].Calls != 2 || r.Sent.Bytes != 60+60+180 {
		t.Errorf("%d sessions of %d calls, %d bytes sent: %+v", r.Sessions, r.Calls, r.Sent.Bytes, r.List)
	}
}

// TestOrder: a report depends neither on the order nor on the names of the files.
func TestOrder(t *testing.T) {
	logs := []*log{steady("x"), turns(&log{name: "a"}, "m0", "m1"), turns(&log{name: "b"}, "m0", "m1", "m2"), turns(&log{name: "c"}, "m0", "n1"), turns(&log{name: "d"}, "p0")}
	want := encoded(t, report(t, Options{}, logs...))
	for range 3 {
		if got := encoded(t, report(t, Options{}, logs...)); !bytes.Equal(got, want) {
			t.Fatalf("the same logs give another report:\n%s\n%s", got, want)
		}
		slices.Reverse(logs)
		logs = append(logs[2:], logs[:2]...)
		logs[0].name += "z"
	}
}

func TestCompare(t *testing.T) {
	a, b := encoded(t, report(t, Options{}, steady("x"))), encoded(t, report(t, Options{}, turns(&log{name: "x"}, "m0")))
	if d, err := Compare(a, a); err != nil || len(d) != 0 {
		t.Errorf("differences %v, %v of equal ones", d, err)
	}
	d, err := Compare(a, b)
	if err != nil || !slices.Contains(d, Difference{"calls", "6", "1"}) || !slices.Contains(d, Difference{"tools.list.Bash.calls", "4", ""}) {
		t.Errorf("differences %v, %v", d, err)
	}
	for _, bad := range []string{"", "[]", "{}", "x"} {
		if _, err := Compare([]byte(bad), a); err == nil {
			t.Errorf("%q is taken for a report", bad)
		}
	}
}

// laws holds for every report.
func laws(t *testing.T, r Report) {
	t.Helper()
	for _, of := range [][]Share{r.Kinds, r.Sent.Parts} {
		sum, bytes := 0.0, int64(0)
		for _, s := range of {
			if s.Bytes < 0 || s.Share < 0 || s.Share > 1 {
				t.Errorf("%+v", s)
			}
			sum, bytes = sum+s.Share, bytes+s.Bytes
		}
		const rounding = 1e-5
		if bytes > 0 && (sum < 1-rounding || sum > 1+rounding) {
			t.Errorf("shares add up to %v: %+v", sum, of)
		}
	}
	for _, k := range r.Classes {
		a := k.Amplification
		if a.Median < 0 || a.P75 < a.Median || a.P90 < a.P75 || k.Calls < 0 {
			t.Errorf("%+v", k)
		}
	}
	for _, s := range r.List {
		if s.Amplification < 0 || s.Amplification > float64(max(1, len(r.List))*1<<30) || s.Waste < 0 || s.Waste > 1 {
			t.Errorf("%+v", s)
		}
	}
	for _, tool := range r.Tools.List {
		if tool.Adoption < 0 || tool.Adoption > 1 || tool.Share < 0 || tool.Share > 1 {
			t.Errorf("%+v", tool)
		}
	}
}

// played makes a log of bytes: each is a line, or says something of the next.
func played(name string, ops []byte) *log {
	l, asked, side := &log{name: name}, "", ""
	l.user(text(50)) // a log without any message is told by its bytes alone
	for i, op := range ops[:min(len(ops), 200)] {
		id, arg, n := string(rune('a'+op%13)), string(rune('a'+op/16%4)), 160+13*int(op)
		usage := fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":3}`, op, 50*i)
		switch op % 11 {
		case 0:
			l.line(side, "user", "", "", []string{text(n)})
		case 1, 2:
			l.line(side, "user", "", "", []string{result(asked, n)})
		case 3:
			l.line(side, "user", "", "", []string{failed(asked, n), result(id, n)})
		case 4:
			l.line(side, "assistant", id+name[:int(op)%2], usage, []string{text(n)})
		case 5, 6:
			l.line(side, "assistant", fmt.Sprint(id, i%50), usage, []string{ask(id, "Read", "file_path", arg)})
			asked = id
		case 7:
			l.line(side, "assistant", "", "", []string{ask(id, "Edit", "file_path", arg), ask(arg, "Bash", "command", id)})
			asked = arg
		case 8:
			l.add(`{"type":"system","subtype":"compact_boundary"}`)
		case 9:
			side = []string{"", `,"isSidechain":true`, `,"isSidechain":true,"agentId":"x"`, `,"isCompactSummary":true`}[op/16%4]
		case 10:
			l.add(append(l.lines, `{"type":`)[int(op)%(len(l.lines)+1)])
		}
	}
	return l
}

func FuzzCorpus(f *testing.F) {
	f.Add([]byte{0, 5, 1, 6, 1, 4, 0, 4, 8, 5, 1, 4}, []byte{0, 5, 1, 6, 1}, `{"type":"user","message":{"content":"x"}}`, true)
	f.Add([]byte{0, 7, 1, 9, 25, 0, 5, 2, 41, 4, 10, 7, 3, 4}, []byte{0, 7, 1, 4}, `{"type":"system","subtype":"compact_boundary"}`, false)
	f.Fuzz(func(t *testing.T, a, b []byte, tail string, given bool) {
		o := Options{MinSize: -1}
		if given {
			o.Definitions = []Definition{{"Read", 3000}, {"", 0}}
		}
		c := New(o)
		texts := []string{played("s", a).text() + tail, played("s", b).text() + "\n", played("t", b).text()}
		for _, text := range texts {
			if err := addLog(c, "s", text); err != nil {
				t.Skip() // too large
			}
		}
		once := c.Report()
		laws(t, once)
		slices.Reverse(texts)
		for _, text := range texts {
			if err := addLog(c, "s", text+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		twice := c.Report()
		once.Files, twice.Files, once.Held, twice.Held = Files{}, Files{}, 0, 0
		if x, y := encoded(t, once), encoded(t, twice); !bytes.Equal(x, y) {
			t.Errorf("twice the logs give another report:\n%s\n%s", x, y)
		}
	})
}

func BenchmarkCorpus(b *testing.B) {
	var logs []string
	names, _ := filepath.Glob(filepath.Join(os.Getenv("TIDEMARK_TRANSCRIPTS"), "*.jsonl")) // real ones, where there are some
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		logs = append(logs, string(raw))
	}
	if len(logs) == 0 {
		l := &log{name: "s"}
		for i := range 1000 {
			id := fmt.Sprint("i", i)
			l.user(result(id, 4000)).model(id, 1000*i, 10, ask(id, "Read", "file_path", fmt.Sprint("/f", i%100)))
		}
		logs = []string{l.text()}
	}
	n := 0
	for _, l := range logs {
		n += len(l)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		c := New(Options{})
		for _, l := range logs {
			if err := addLog(c, "s", l); err != nil {
				b.Fatal(err)
			}
		}
		if c.Report().Calls == 0 {
			b.Fatal("no calls")
		}
	}
}

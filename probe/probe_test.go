package probe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// steady is a session of six calls. What a call sends is half as many tokens, behind 5,000 that stand before the messages.
func steady(name string) *log {
	l := &log{name: name}
	return l.user(text(100)).
		model(name+"-m0", 5050, 10, ask("a", "Read", "file_path", "/f")). // sends 100
		user(result("a", 1000)).
		model(name+"-m1", 5625, 10, ask("b", "Bash", "command", "ls")). // 1250
		user(result("b", 600)).
		model(name+"-m2", 6000, 10, ask("c", "Bash", "command", "x")). // 2000
		user(failed("c", 600)).
		model(name+"-m3", 6375, 10, ask("d", "Bash", "command", "y")). // 2750
		user(result("d", 500)).
		model(name+"-m4", 6700, 10, ask("e", "Bash", "command", "z")). // 3400
		user(result("e", 400)).
		model(name+"-m5", 6975, 10, text(100)) // 3950
}

func TestByHand(t *testing.T) {
	r := report(t, Options{Definitions: []Definition{{"Read", 2080}, {"Bash", 1080}, {"Glob", 3080}}}, steady("s"))
	// 1000 x 5 + 600 x 4 + 600 x 3 + 500 x 2 + 400 x 1, of 3100
	if a := r.Classes[0].Amplification; a.Median != ratio(10600, 3100) || a.Sessions != 1 {
		t.Errorf("amplification %+v, want %v", a, ratio(10600, 3100))
	}
	wantBytes(t, r.Kinds, map[string]int64{"tool results": 3100, "tool inputs": 750, "model text": 100, "person text": 100})
	if r.Tokens.BytesPerToken != 2 || r.Tokens.Basis != "usage" || r.Tokens.Pairs != 5 || r.Tokens.Explained != 1 || r.Sent.Prefix != 5000 {
		t.Errorf("tokens %+v, prefix %v", r.Tokens, r.Sent.Prefix)
	}
	wantBytes(t, r.Sent.Parts, map[string]int64{
		"unused definitions": 6000 + 4000 + 4*3000,
		"static re-sent":     5*10000 - 4000 - 4*3000, // what else stands before the messages, but for the first call
		"dead results":       1000,                    // the read, in the last call: four turns after it
		"in use":             13450 + 6*10000 - 22000 - 34000 - 1000,
	})
	u := r.Usage
	if u.Calls != 6 || u.Effective != 36725 || u.Read != 36725 || u.CacheRead != 1 || u.Output != 60 || u.InOut != ratio(36725, 60) {
		t.Errorf("usage %+v", u)
	}
	if u.InOutBytes != ratio(36725, 850.0/2) {
		t.Errorf("input per output by bytes %v", u.InOutBytes)
	}
	p := r.Projection
	if p.Input != 36725 || p.Rows[0].Tokens != 11000 || p.Rows[2].Tokens != 17000 || p.Rows[4].Tokens != 500 || p.Table6.Tokens != 28000 || p.All.Tokens != 28500 {
		t.Errorf("projection %+v", p)
	}
	if p.Rows[0].Share != ratio(11000, 36725) || p.Rows[0].PerCall != ratio(11000, 6) {
		t.Errorf("row %+v", p.Rows[0])
	}
	tools := r.Tools
	if tools.Known != 3 || tools.Active != 1 || tools.Median != 2 || len(tools.List) != 3 {
		t.Fatalf("tools %+v", tools)
	}
	if b := tools.List[0]; b.Name != "Bash" || b.Calls != 4 || b.Bytes != 2100 || b.Mean != 525 || b.Adoption != 1 || b.Share != ratio(2100, 3100) {
		t.Errorf("bash %+v", b)
	}
	if g := tools.List[2]; g.Name != "Glob" || g.Calls != 0 || g.Adoption != 0 {
		t.Errorf("glob %+v", g)
	}
	if r.Date != "2026-03-07T00:00:00Z" || r.Calls != 6 || r.Sessions != 1 {
		t.Errorf("date %s, %d calls, %d sessions", r.Date, r.Calls, r.Sessions)
	}
}

// TestPaperConstants: without definitions 18 of 3,505 bytes are taken, and never more than stands before the messages.
func TestPaperConstants(t *testing.T) {
	r := report(t, Options{}, steady("s"))
	wantBytes(t, r.Sent.Parts, map[string]int64{"unused definitions": 6 * 10000, "dead results": 1000, "in use": 13450 - 1000})
	if r.Protocol.Definitions != "paper" {
		t.Error(r.Protocol)
	}
}

// quiet adds calls of the model that ask for nothing, each with a turn of a person before it.
func (l *log) quiet(id string, n int) *log {
	for i := range n {
		l.user(text(50)).model(fmt.Sprint(id, i), 0, 0, text(50))
	}
	return l
}

func TestIdle(t *testing.T) {
	read := func(id, path string) string { return ask(id, "Read", "file_path", path) }
	begin := func(name string) *log { l := &log{name: name}; return l.user(text(50)) }
	for _, c := range []struct {
		name           string
		log            *log
		repeated, dead int64
	}{
		// The result comes with call 1, in turn 2; calls 2 to 7 send it again, of those 5 to 7 are four turns behind it.
		{"old", begin("a").model("m", 0, 0, read("1", "/f")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 6), 0, 3000},
		{"small", begin("b").model("m", 0, 0, read("1", "/f")).user(result("1", 499)).model("n", 0, 0, text(50)).quiet("q", 6), 0, 0},
		{"an error", begin("c").model("m", 0, 0, read("1", "/f")).user(failed("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 6), 0, 0},
		// Call 3 reads it again; the newer copy comes with call 4. Calls 4 and 5 send both, both young.
		{"read again", begin("d").model("m", 0, 0, read("1", "/f")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 1).
			user(text(50)).model("o", 0, 0, read("2", "/f")).user(result("2", 700)).model("p", 0, 0, text(50)).quiet("r", 1), 2000, 0},
		// As old, but call 6 changes the file: only call 7 sends what is dead.
		{"changed", begin("e").model("m", 0, 0, read("1", "/f")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 4).
			user(text(50)).model("o", 0, 0, ask("2", "Edit", "file_path", "/f")).user(result("2", 100)).model("p", 0, 0, text(50)), 0, 1000},
		// Another file is none of it: calls 5 to 7.
		{"another changed", begin("f").model("m", 0, 0, read("1", "/f")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 4).
			user(text(50)).model("o", 0, 0, ask("2", "Edit", "file_path", "/g")).user(result("2", 100)).model("p", 0, 0, text(50)), 0, 3000},
		// The same command in call 6 makes the older outcome one that was of use until then; it is no copy.
		{"run again", begin("g").model("m", 0, 0, ask("1", "Bash", "command", "ls")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 4).
			user(text(50)).model("o", 0, 0, ask("2", "Bash", "command", "ls")).user(result("2", 100)).model("p", 0, 0, text(50)), 0, 1000},
		// After a compaction nothing of before is there: calls 2 to 4 sent it again, all within four turns.
		{"compacted", begin("h").model("m", 0, 0, read("1", "/f")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 3).
			add(`{"type":"system","subtype":"compact_boundary"}`).quiet("r", 6), 0, 0},
		// Both come with call 1, which has use of them; calls 2 and 3 send the older one beside the newer.
		{"read twice at once", begin("i").model("m", 0, 0, read("1", "/f"), read("2", "/f")).user(result("1", 1000), result("2", 1000)).
			model("n", 0, 0, text(50)).quiet("q", 2), 2000, 0},
		// What failed is no copy; the call that asked for it had use of the older one.
		{"read again in vain", begin("j").model("m", 0, 0, read("1", "/f")).user(result("1", 1000)).model("n", 0, 0, text(50)).quiet("q", 1).
			user(text(50)).model("o", 0, 0, read("2", "/f")).user(failed("2", 700)).model("p", 0, 0, text(50)).quiet("r", 1), 0, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := report(t, Options{}, c.log)
			if got := bytesOf(r.Sent.Parts, "repeated reads"); got != c.repeated {
				t.Errorf("repeated %d, want %d", got, c.repeated)
			}
			if got := bytesOf(r.Sent.Parts, "dead results"); got != c.dead {
				t.Errorf("dead %d, want %d", got, c.dead)
			}
		})
	}
}

// TestCompaction: what was said stays in the context to the next compaction and no longer.
func TestCompaction(t *testing.T) {
	l := (&log{name: "s"}).user(text(100)).model("m0", 0, 0, ask("a", "Read", "file_path", "/f")).
		user(result("a", 1000)).model("m1", 0, 0, text(100)).user(text(50)).model("m2", 0, 0, text(50)). // twice
		add(`{"type":"system","subtype":"compact_boundary"}`)
	l.line(`,"isCompactSummary":true`, "user", "", "", []string{text(200)}).model("m3", 0, 0, ask("b", "Read", "file_path", "/f")).
		user(result("b", 500)).model("m4", 0, 0, text(100)) // once
	r := report(t, Options{}, l)
	if a := r.Classes[0].Amplification.Median; a != ratio(2500, 1500) || r.Classes[0].Class != Main {
		t.Errorf("amplification %v of %v, want %v", a, r.Classes[0].Class, ratio(2500, 1500))
	}
	if got := bytesOf(r.Kinds, "system"); got != 200 {
		t.Errorf("system %d, want the summary's 200", got)
	}
	if got := bytesOf(r.Sent.Parts, "repeated reads"); got != 0 {
		t.Errorf("repeated %d, want none across a compaction", got)
	}
}

// TestCompactionAside: a compaction is one of the main chain, though a subagent speaks first behind it.
func TestCompactionAside(t *testing.T) {
	l := (&log{name: "s"}).user(text(100)).model("m0", 0, 0, ask("a", "Bash", "command", "x")).user(result("a", 1000)).model("m1", 0, 0, text(50)).
		add(`{"type":"system","subtype":"compact_boundary"}`)
	l.line(`,"isSidechain":true,"agentId":"x"`, "user", "", "", []string{text(60)})
	l.quiet("q", 3)
	if a := report(t, Options{}, l).Classes[0]; a.Class != Main || a.Amplification.Median != 1 {
		t.Errorf("%+v, want an amplification of 1", a)
	}
}

// TestMeasure: images tell nothing of the bytes of a token, and what stands before the messages is the least that a
// stretch tells.
func TestMeasure(t *testing.T) {
	picture := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	l := (&log{name: "s"}).user(text(100)).model("m0", 5050, 1, text(100)).user(text(100)).model("m1", 5150, 1, text(100)).
		user(text(100), picture).model("m2", 9000, 1, text(100)).
		add(`{"type":"system","subtype":"compact_boundary"}`).
		user(text(200)).model("m3", 4100, 1, text(100)).user(text(100)).model("m4", 4200, 1, text(100)).
		add(`{"type":"system","subtype":"compact_boundary"}`).
		user(text(200)).model("m5", 7100, 1, text(100))
	r := report(t, Options{}, l)
	if r.Tokens.BytesPerToken != 2 || r.Tokens.Pairs != 2 || r.Sent.Prefix != 4000 {
		t.Errorf("%+v, prefix %v", r.Tokens, r.Sent.Prefix)
	}
}

// TestLines: a message of several lines is one call, with the figures of its last line, and a line that is there twice
// counts once.
func TestLines(t *testing.T) {
	l := (&log{name: "s"}).user(text(100)).model("m0", 100, 1, text(60)).model("m0", 100, 1, ask("a", "Bash", "command", "x")).
		model("m0", 100, 1, ask("a", "Bash", "command", "x")).user(result("a", 300)).model("m0", 100, 40, ask("b", "Bash", "command", "y")).
		user(result("b", 300)).model("m1", 300, 9, text(80))
	l.add(l.lines[6])
	r := report(t, Options{}, l)
	if r.Calls != 2 || r.Usage.Effective != 400 || r.Usage.Output != 49 {
		t.Errorf("%d calls, usage %+v", r.Calls, r.Usage)
	}
	wantBytes(t, r.Kinds, map[string]int64{"tool results": 600, "tool inputs": 300, "model text": 140, "person text": 100})
}

func TestReminders(t *testing.T) {
	remind := func(s string) string { return `{"type":"text","text":"<system-reminder>` + s + `</system-reminder>"}` }
	skills := remind(`the skills:\n- pdf: reads\n- plugin:pdf: reads\n- doc: writes\n`)
	l := (&log{name: "s"}).user(text(100), skills, remind("be brief")).model("m0", 0, 0, text(50)).
		user(text(50), remind("be brief")).model("m1", 0, 0, text(50))
	r := report(t, Options{}, l)
	line, again := int64(len("- plugin:pdf: reads\n")), int64(len("<system-reminder>be brief</system-reminder>"))
	if got := bytesOf(r.Sent.Parts, "doubled reminders"); got != 2*line+again {
		t.Errorf("doubled %d, want %d", got, 2*line+again)
	}
	if got, want := bytesOf(r.Kinds, "system"), int64(len(skills)+2*len(remind("be brief"))); got != want {
		t.Errorf("system %d, want %d", got, want)
	}
	if got := bytesOf(r.Kinds, "person text"); got != 150 {
		t.Errorf("person %d", got)
	}
}

// TestReminderInResult: what a result doubles counts as that, and not again when the result is dead.
func TestReminderInResult(t *testing.T) {
	with := func(id string, n int) string {
		return fill(n, `{"type":"tool_result","tool_use_id":"`+id+`","content":"<system-reminder>be brief</system-reminder>`, `"}`)
	}
	l := (&log{name: "s"}).user(text(100)).model("m0", 0, 0, ask("a", "Bash", "command", "x"), ask("b", "Bash", "command", "y")).
		user(with("a", 400), with("b", 1000)).model("m1", 0, 0, text(50)).quiet("q", 5)
	again := int64(len("<system-reminder>be brief</system-reminder>"))
	r := report(t, Options{}, l)
	if got := bytesOf(r.Sent.Parts, "doubled reminders"); got != 6*again {
		t.Errorf("doubled %d, want %d", got, 6*again)
	}
	if got := bytesOf(r.Sent.Parts, "dead results"); got != 2*(1000-again) {
		t.Errorf("dead %d, want %d", got, 2*(1000-again))
	}
}

func TestImages(t *testing.T) {
	picture := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", 1000) + `"}}`
	l := (&log{name: "s"}).user(text(100), picture).model("m0", 0, 0, ask("a", "Read", "file_path", "/p.png")).
		user(`{"type":"tool_result","tool_use_id":"a","content":[`+picture+`]}`).model("m1", 0, 0, text(50))
	r := report(t, Options{}, l)
	if got, want := bytesOf(r.Kinds, "images"), int64(len(picture)+1000); got != want {
		t.Errorf("images %d, want %d", got, want)
	}
	if want := int64(100 + 250 + len(picture) - 1000 + len(`{"type":"tool_result","tool_use_id":"a","content":[]}`)); r.Sent.Bytes != want {
		t.Errorf("sent %d, want %d", r.Sent.Bytes, want)
	}
}

// TestNoUsage: the estimator takes the place of usage, and the report says so.
func TestNoUsage(t *testing.T) {
	l := &log{name: "s"}
	l.user(text(100)).line("", "assistant", "m0", "", []string{text(50)})
	l.user(text(100)).line("", "assistant", "m1", "", []string{text(50)})
	r := report(t, Options{}, l)
	if r.Tokens.Basis != "estimator" || r.Projection.Basis != "estimated" || r.Usage.Calls != 0 || r.Sent.Bytes != 350 {
		t.Fatalf("%+v %+v", r.Tokens, r.Projection)
	}
	if want := 2*tidemark.EstimateChars(100) + tidemark.EstimateChars(50) + tidemark.EstimateChars(100); r.Projection.Input != int64(want) {
		t.Errorf("input %d, want %d", r.Projection.Input, want)
	}
	if !strings.Contains(r.Projection.Rows[0].Basis, "not known") || r.Projection.Rows[0].Tokens != 0 {
		t.Errorf("row %+v", r.Projection.Rows[0])
	}
}

// TestAbsurd: figures that no call has are none.
func TestAbsurd(t *testing.T) {
	l := (&log{name: "s"}).user(text(100)).model("m0", 1<<62, 1, text(50)).user(text(100)).model("m1", 1<<62, 1<<62, text(50))
	r := report(t, Options{}, l)
	if r.Usage.Calls != 0 || r.Tokens.Basis != "estimator" {
		t.Errorf("usage %+v, %+v", r.Usage, r.Tokens)
	}
	laws(t, r)
	r = report(t, Options{}, (&log{name: "s"}).user(text(100)).model("m0", 1, 1, text(50)).user(text(100)).model("m1", 2, 1, text(50)))
	if r.Tokens.Basis != "estimator" || r.Usage.Calls != 2 {
		t.Errorf("150 bytes for a token are taken for a measure: %+v", r.Tokens)
	}
}

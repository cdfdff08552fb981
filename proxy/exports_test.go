package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// exports are what a conversation tells of its requests and of what was decided with each.
func (r *rig) exports() string {
	r.t.Helper()
	var b bytes.Buffer
	for _, export := range []func(context.Context, io.Writer) error{r.c.Steps, r.c.Decisions} {
		if err := export(r.t.Context(), &b); err != nil {
			r.t.Fatal(err)
		}
	}
	return b.String()
}

// TestExportFormat: an export has each request of each thread with what it added, the names of that, and what was reported; one that
// began in the middle of another has the requests of that, and what it kept of them. It is the same after a restart.
func TestExportFormat(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	q, a, b, other := text("user", "q"), spoke("a"), text("user", "b"), text("user", "instead")
	r.exchange("", request(q), priced(3000, 7, "end_turn", textBlock("a")))
	r.exchange("", request(q, a, b), priced(2000, 8, "end_turn", textBlock("c")))
	r.exchange("", request(q, other), priced(1500, 9, "end_turn", textBlock("so")))
	r.exchange("", request(text("user", "another")), reply("end_turn", textBlock("well")))
	var steps bytes.Buffer
	if err := r.c.Steps(t.Context(), &steps); err != nil {
		t.Fatal(err)
	}
	id := func(history ...string) string { return strings.TrimSuffix(handle(t, 0, history...), "#0") }
	one := fmt.Sprintf(`{"append":[%s],"ids":["%s"],"usage":{"input_tokens":3000,"output_tokens":7}},`, q, id(q)) +
		fmt.Sprintf(`{"append":[%s,%s],"ids":["%s","%s"],"usage":{"input_tokens":2000,"output_tokens":8}}`, a, b, id(q, a), id(q, a, b))
	lines := strings.SplitAfter(steps.String(), "\n")
	for i, want := range []string{one, one + fmt.Sprintf(`,{"keep":1,"stay":true,"append":[%s],"ids":["%s"],"usage":{"input_tokens":1500,"output_tokens":9}}`, other, id(q, other))} {
		head := `{"session":"` + string(key) + []string{"", "#t2"}[i] + `","model":"m","fixed":`
		if line := lines[i]; !strings.HasPrefix(line, head) || !strings.HasSuffix(line, `"steps":[`+want+"]}\n") {
			t.Errorf("line %d is\n%swant\n%s … %s", i, line, head, want)
		}
	}
	before := r.exports()
	r.restart()
	if after := r.exports(); after != before || len(lines) != 4 || strings.Count(before, "\n") != 6 || strings.Contains(before, "[null") {
		t.Errorf("after a restart it is\n%sbefore\n%s", after, before)
	}
}

// TestExportAfterRestart: what is told of a long conversation with threads, tags and calls of ours is the same after a restart.
func TestExportAfterRestart(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000, Treatment: proxy.PageTrim})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	r.exchange(proxy.PageTrim, request(a.history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["main/f1.go"]}`)),
		reply("end_turn", tagged("so", "release: main/f2.go", "anchor: block:"+handle(t, 0, a.history...))))
	a.history = append(a.history, spoke("so\n"), text("user", "on"))
	r.exchange("", request(a.history...), reply("end_turn", textBlock("well")))
	b := &agentRun{r: r, name: "other", history: append(a.history[:9:9], text("user", "instead"))}
	for n := range 6 {
		b.read(n, 3000)
	}
	before := r.exports()
	r.restart()
	if after := r.exports(); after != before || !strings.Contains(before, `"anchor":["`) || !strings.Contains(before, `"release":["main/f2.go"`) || !strings.Contains(before, "main/f1.go holds") {
		t.Errorf("after a restart it is\n%sbefore\n%s", after, before)
	}
	same(t, r)
}

// TestExportFails: an export that cannot be written ends with that, wherever that is.
func TestExportFails(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange("", request(text("user", "q")), reply("end_turn", textBlock("a")))
	r.exchange("", request(text("user", "q"), spoke("a"), text("user", "b")), reply("end_turn", textBlock("c")))
	r.exchange("", request(text("user", "another")), reply("end_turn", textBlock("so")))
	full := errors.New("no space")
	for name, export := range map[string]struct {
		to     func(context.Context, io.Writer) error
		writes int
	}{"steps": {r.c.Steps, 5}, "decisions": {r.c.Decisions, 2}} {
		for fails := range 7 {
			n := 0
			err := export.to(t.Context(), writer(func(p []byte) (int, error) {
				if n++; n > fails {
					return 0, full
				}
				return len(p), nil
			}))
			if (err == nil) != (fails >= export.writes) || err != nil && (!errors.Is(err, full) || n != fails+1) {
				t.Errorf("%s: write %d fails: %v after %d writes", name, fails+1, err, n)
			}
		}
	}
}

// deaf is a database that does not answer some queries.
type deaf struct {
	tidemark.DB
	to string
}

func (d *deaf) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if d.to != "" && strings.Contains(sql, d.to) {
		return nil, errors.New("no answer")
	}
	return d.DB.Query(ctx, sql, args...)
}

// TestStoreSilent: while the store does not answer requests go out as they came, and say why; what is told of the conversation is an
// error. Then it goes on with all that it had.
func TestStoreSilent(t *testing.T) {
	for _, query := range []string{"FROM proxy_tracks", "FROM proxy_explored", "FROM proxy_steps", "FROM proxy_puts", "FROM proxy_edits", "kind = 'overlay'", "kind = 'message'", "FROM json_each"} {
		r := newRig(t, proxy.Settings{})
		db := &deaf{DB: r.db}
		r.db, r.rt = db, atOnce{r.rt}
		r.restart()
		history := []string{text("user", "q")}
		r.exchange("", request(history...), reply("end_turn", textBlock("a")))
		history = append(history, spoke("a"), text("user", "b"))
		r.restart()
		db.to = query
		raw := request(history...)
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: raw})
		if err != nil {
			t.Fatal(err)
		}
		if kind, why := x.Untouched(); kind != proxy.Stored || !strings.HasSuffix(why, "no answer") || !bytes.Equal(x.Body(), raw) || x.Answer(t.Context(), 200, false) {
			t.Errorf("%s: %s, %s, sent %s", query, kind, why, x.Body())
		}
		if _, err := x.Finish(t.Context()); err != nil || !r.c.Idle() {
			t.Errorf("%s: an exchange is in work, or %v", query, err)
		}
		if last := r.records[len(r.records)-1]; last.Untouched == "" || last.Legs != 1 {
			t.Errorf("%s: recorded %+v", query, last)
		}
		_, episodes := r.c.Episodes(t.Context(), "")
		if steps := r.c.Steps(t.Context(), io.Discard); episodes == nil || steps == nil {
			t.Errorf("%s: episodes are told with %v, requests with %v", query, episodes, steps)
		}
		if err := r.c.Decisions(t.Context(), io.Discard); (err == nil) != (query == "FROM json_each") {
			t.Errorf("%s: decisions are told with %v", query, err)
		}
		db.to = ""
		r.exchange("", raw, reply("end_turn", textBlock("c")))
		if got, told := logOf(r), r.told(""); got != "q|a|b|c" || told != "q|a,b" {
			t.Errorf("%s: the log has %q, the requests %q", query, got, told)
		}
	}
}

// TestDamagedTrack: of a thread whose requests cannot be read the messages hold; what left of them is decided again, and that is stored.
func TestDamagedTrack(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	history := []string{text("user", "q")}
	add := func(answer, question string) {
		r.exchange("", request(history...), reply("end_turn", textBlock(answer)))
		history = append(history, spoke(answer), text("user", question))
	}
	add("a", "b")
	add("c", "d")
	if err := r.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE proxy_steps SET record = '{"ids":["none"]}' WHERE key = ? AND n = 1`, Args: []any{string(key)}, Want: 1}}); err != nil {
		t.Fatal(err)
	}
	r.damaged = true
	r.restart()
	add("e", "f")
	add("g", "h")
	r.damaged = false
	r.restart()
	if got, told := logOf(r), r.told(""); got != "q|a|b|c|d|e|f|g" || told != "q,a,b,c,d|e,f" {
		t.Errorf("the log has %q, the requests %q", got, told)
	}
	same(t, r)
}

// TestUndecided: where nothing can be decided, requests go out as they came, and are kept all the same.
func TestUndecided(t *testing.T) {
	r := newRig(t, proxy.Settings{Paging: paging.Options{Policy: "none such"}})
	raw := request(text("user", "q"))
	x := r.begin(text("user", "q"))
	if kind, why := x.Untouched(); kind != proxy.Other || !strings.Contains(why, "none such") || !bytes.Equal(x.Body(), raw) {
		t.Errorf("%s, %s: sent %s", kind, why, x.Body())
	}
	r.answer(x, reply("end_turn", textBlock("a")))
	if got := logOf(r); got != "q|a" || len(r.records) != 1 || r.records[0].Untouched == "" || !r.c.Idle() {
		t.Errorf("the log has %q, recorded %+v", got, r.records)
	}
	var b bytes.Buffer
	if err := r.c.Decisions(t.Context(), &b); err != nil || b.String() != `{"session":"`+string(key)+`","requests":[null]}`+"\n" {
		t.Errorf("decided %s, %v", b.String(), err)
	}
}

// TestCallWithoutArguments: a message of chat completions with a call that cannot be read goes out as it came, whatever would leave
// of the call beside it, and the log is told of no stub.
func TestCallWithoutArguments(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 3_000})
	history, left := []string{text("user", "q")}, 0
	for i := range 24 {
		args := strings.ReplaceAll(fmt.Sprintf(`{"file_path":"f%d.go","content":"%s"}`, i, strings.Repeat("a line ", 200)), `"`, `\"`)
		odd := fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"w%d","type":"function","function":{"name":"Write","arguments":"%s"}},{"id":"g%d","type":"function","function":{"name":"Look"}}]}`, i, args, i)
		history = append(history, odd, fmt.Sprintf(`{"role":"tool","tool_call_id":"w%d","content":"ok"}`, i), fmt.Sprintf(`{"role":"tool","tool_call_id":"g%d","content":"ok"}`, i))
		raw := []byte(`{"model":"m","user":"u","tools":[{"type":"function","function":{"name":"Write","parameters":{"type":"object"}}}],"messages":[` + strings.Join(history, ",") + `]}`)
		x, err := r.c.Begin(t.Context(), proxy.Ask{Dialect: body.Chat, Body: raw})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(x.Body(), []byte(odd)) || !x.Answer(t.Context(), 200, false) {
			t.Fatalf("sent %s", x.Body())
		}
		if _, err := x.Feed([]byte(`{"id":"m","choices":[{"index":0,"message":{"role":"assistant","content":"so"},"finish_reason":"stop"}]}`)); err != nil || x.Next(t.Context()) {
			t.Fatal("another call", err)
		}
		if _, err := x.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := r.records[len(r.records)-1]
		if left += last.Inputs; last.Stubs != 0 || last.Out != 0 {
			t.Fatalf("request %d: recorded %+v", i, last.Account)
		}
	}
	if left == 0 || len(r.edits("paging")) > 0 {
		t.Errorf("%d calls would have left, the log knows %d stubs", left, len(r.edits("paging")))
	}
}

package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// tagged is a text block that ends in operations.
func tagged(s string, ops ...string) string {
	return textBlock(s + "\n<memory_cleanup>\n" + strings.Join(ops, "\n") + "\n</memory_cleanup>")
}

// handle names a block of the last of these messages, which are a history from its beginning.
func handle(t testing.TB, block int, history ...string) string {
	t.Helper()
	var chain tidemark.Hash
	for _, raw := range history {
		var m tidemark.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		chain = tidemark.Chain(chain, m)
	}
	sum := sha256.Sum256([]byte(string(key) + "\x00" + string(chain)))
	return fmt.Sprintf("%s#%d", base32.StdEncoding.EncodeToString(sum[:10]), block)
}

// steps are the requests of a branch as they are exported; "" is the first.
func (r *rig) steps(branch string) (out []exported) {
	r.t.Helper()
	var b bytes.Buffer
	if err := r.c.Steps(r.t.Context(), &b); err != nil {
		r.t.Fatal(err)
	}
	for line := range bytes.Lines(b.Bytes()) {
		var one struct {
			Session string     `json:"session"`
			Steps   []exported `json:"steps"`
		}
		if err := json.Unmarshal(line, &one); err != nil {
			r.t.Fatal(err)
		}
		if one.Session == string(key)+branch {
			out = one.Steps
		}
	}
	return out
}

// exported is a request as it is exported.
type exported struct {
	Release []string           `json:"release"`
	Anchor  []string           `json:"anchor"`
	Append  []tidemark.Message `json:"append"`
	Usage   *tidemark.Usage    `json:"usage"`
}

// begin takes a request up and no more.
func (r *rig) begin(history ...string) *proxy.Exchange {
	r.t.Helper()
	x, err := r.c.Begin(r.t.Context(), proxy.Ask{Body: request(history...)})
	if err != nil {
		r.t.Fatal(err)
	}
	return x
}

// refuse ends an exchange as the API's status says.
func (r *rig) refuse(x *proxy.Exchange, status int) {
	r.t.Helper()
	if x.Answer(r.t.Context(), status, false) {
		r.t.Fatalf("%d is taken", status)
	}
	if _, err := x.Finish(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// answer ends an exchange with one answer.
func (r *rig) answer(x *proxy.Exchange, a []byte) []byte {
	r.t.Helper()
	if !x.Answer(r.t.Context(), 200, false) {
		r.t.Fatal("the answer is not taken")
	}
	if _, err := x.Feed(a); err != nil {
		r.t.Fatal(err)
	}
	if x.Next(r.t.Context()) {
		r.t.Fatal("another call")
	}
	out, err := x.Finish(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// TestWaiting: what a reply lets go and keeps by tags is said with the next request, whatever happens in between.
func TestWaiting(t *testing.T) {
	refused := func(r *rig, history []string) {
		r.refuse(r.begin(append(history[:len(history):len(history)], text("user", "bad"))...), 400)
	}
	rows := map[string][]func(r *rig, history []string){
		"nothing":                     nil,
		"a restart":                   {func(r *rig, _ []string) { r.restart() }},
		"a request that was refused":  {refused},
		"one refused after a restart": {func(r *rig, _ []string) { r.restart() }, refused},
		"one refused, and a restart":  {refused, func(r *rig, _ []string) { r.restart() }},
		"two that were refused":       {refused, refused},
	}
	for name, between := range rows {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Settings{})
			read := call("c1", "Read", `{"file_path":"a.go"}`)
			history := []string{text("user", "q")}
			r.exchange(proxy.Page, request(history...), reply("tool_use", read))
			history = append(history, said(read), result("c1", strings.Repeat("a line\n", 300)))
			kept := handle(t, 0, history...)
			r.exchange(proxy.Page, request(history...), reply("end_turn", tagged("done", "release: a.go", "anchor: block:"+kept)))
			history = append(history, said(textBlock("done\n")))
			for _, f := range between {
				f(r, history)
			}
			r.exchange(proxy.Page, request(append(history, text("user", "more"))...), reply("end_turn", textBlock("ok")))
			list := r.steps("")
			last := list[len(list)-1]
			if fmt.Sprint(last.Release) != "[a.go]" || fmt.Sprint(last.Anchor) != "["+kept+"]" {
				t.Errorf("the last of %d requests lets go %q and keeps %q", len(list), last.Release, last.Anchor)
			}
			same(t, r)
		})
	}
}

// TestEditsOfFork: what a model summed up holds in a thread that begins behind it, also after a restart, and in its log.
func TestEditsOfFork(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	long := strings.Repeat("many words of the first turn ", 40)
	history := []string{text("user", long), said(textBlock("one")), text("user", "second"), said(textBlock("two")), text("user", "third")}
	r.exchange(proxy.Page, request(history[:1]...), reply("end_turn", textBlock("one")))
	r.exchange(proxy.Page, request(history[:3]...), reply("end_turn", textBlock("two")))
	r.exchange(proxy.Page, request(history...), reply("end_turn", tagged("three", `collapse: turns 1-1 "they greeted"`)))
	other := append(history[:4:4], text("user", "instead"))
	for i := range 3 {
		e := r.exchange(proxy.Page, request(other...), reply("end_turn", textBlock(fmt.Sprint("so ", i))))
		if m := e.messages(t, 0); !strings.Contains(m[0].PlainText(), "they greeted") || bytes.Contains(e.sent[0], []byte("many words")) {
			t.Fatalf("request %d is sent as %s", i, e.sent[0])
		}
		other = append(other, said(textBlock(fmt.Sprint("so ", i))), text("user", "on"))
		r.restart()
	}
}

// TestTotals: what is counted of a track goes on after a restart.
func TestTotals(t *testing.T) {
	var got []paging.Sum
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 16 {
		a.read(n, 3000)
		r.restart()
		got = append(got, r.totals())
	}
	for i := range got {
		if got[i].Calls != i+1 || i > 0 && (got[i].Evicted < got[i-1].Evicted || got[i].In <= got[i-1].In || got[i].Sent <= got[i-1].Sent) {
			t.Errorf("after %d calls: %+v", i+1, got[i])
		}
	}
	if got[15].Evicted == 0 {
		t.Error("nothing left")
	}
}

// totals are those that the newest request stored.
func (r *rig) totals() paging.Sum {
	r.t.Helper()
	rows, err := r.db.Query(r.t.Context(), `SELECT record FROM proxy_steps WHERE key = ? ORDER BY track DESC, n DESC LIMIT 1`, string(key))
	if err != nil || len(rows) != 1 {
		r.t.Fatal(len(rows), err)
	}
	var row struct {
		Sum paging.Sum `json:"sum"`
	}
	if err := json.Unmarshal(rows[0].Bytes(0), &row); err != nil {
		r.t.Fatal(err)
	}
	return row.Sum
}

// TestShownOnce: the log is told once of each block that left, however often the conversation is opened.
func TestShownOnce(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, proxy.Settings{Window: 20_000})
		a := &agentRun{r: r, name: "main"}
		a.ask("look around")
		for n := range 18 {
			a.read(n, 3000)
			if restart {
				r.restart()
			}
		}
		told := map[string]int{}
		for _, e := range r.edits("paging") {
			told[fmt.Sprintf("%s#%d", e.From, e.Block-1)]++
		}
		if a.stubs == 0 || len(told) < a.stubs {
			t.Errorf("%d stubs were sent, the log knows %d", a.stubs, len(told))
		}
		for h, n := range told {
			if n != 1 {
				t.Errorf("restart %t: %s is told %d times", restart, h, n)
			}
		}
	}
}

// log is that of the first track.
func (r *rig) log() string {
	r.t.Helper()
	rows, err := r.db.Query(r.t.Context(), `SELECT log FROM proxy_tracks WHERE key = ? AND n = 0 LIMIT 1`, string(key))
	if err != nil || len(rows) != 1 {
		r.t.Fatal(len(rows), err)
	}
	return rows[0].Text(0)
}

// edits are what the log of the first track knows of what reads otherwise, by a strategy.
func (r *rig) edits(by string) (out []tidemark.Edit) {
	r.t.Helper()
	marks, err := r.c.Home.Log().Marks(r.t.Context(), r.log())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range marks {
		if len(m.Overlay.By) == 1 && m.Overlay.By[0] == by {
			out = append(out, m.Overlay.Edits...)
		}
	}
	return out
}

// measured is a database that knows its largest transaction.
type measured struct {
	tidemark.DB
	stmts int
}

func (m *measured) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	m.stmts = max(m.stmts, len(stmts))
	return m.DB.Tx(ctx, stmts)
}

// TestBigFirst: a long history that comes at once is stored in several transactions, and all of it.
func TestBigFirst(t *testing.T) {
	for name, row := range map[string]struct{ messages, size, stmts int }{
		"many messages":  {161, 100, 120},
		"large messages": {15, 400_000, 50},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Settings{})
			m := &measured{DB: r.db}
			r.db = m
			r.restart()
			m.stmts = 0
			var history []string
			for i := range row.messages {
				history = append(history, text([]string{"user", "assistant"}[i%2], fmt.Sprint(i, strings.Repeat(" word", row.size/5))))
			}
			r.exchange(proxy.Observe, request(history...), reply("end_turn", textBlock("ok")))
			if got := strings.Count(logOf(r), "|"); got != row.messages {
				t.Errorf("%d messages are stored", got)
			}
			if m.stmts > row.stmts {
				t.Errorf("a transaction had %d statements", m.stmts)
			}
			r.restart()
			history = append(history, spoke("ok"), text("user", "on"))
			r.exchange(proxy.Observe, request(history...), reply("end_turn", textBlock("end")))
			if list := r.steps(""); len(list) != 2 || len(list[0].Append) != row.messages {
				t.Errorf("%d requests, the first with %d messages", len(list), len(list[0].Append))
			}
		})
	}
}

// TestPutOnce: two equal answers with other calls of ours in them are one reply: the first.
func TestPutOnce(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	x, y := r.begin(text("user", "q")), r.begin(text("user", "q"))
	read := call("c1", "Read", `{"file_path":"b.go"}`)
	r.answer(x, reply("tool_use", textBlock("I look."), call("p1", paging.FaultTool, `{"paths":["a.go"]}`), read))
	r.answer(y, reply("tool_use", textBlock("I look."), call("p2", paging.FaultTool, `{"paths":["a.go"]}`), read))
	history := []string{text("user", "q"), said(textBlock("I look."), read), result("c1", "package b")}
	for range 2 {
		e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("done")))
		if m := e.messages(t, 0); fmt.Sprint(m[1].Calls()) != "[p1 c1]" || fmt.Sprint(m[2].Results()) != "[p1 c1]" {
			t.Errorf("sent %s", e.sent[0])
		}
		r.restart()
	}
	if got, want := logOf(r), "q|I look.||done"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// parted is a database that notes how many messages each transaction stores.
type parted struct {
	tidemark.DB
	stored []int
}

func (p *parted) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	n := 0
	for _, s := range stmts {
		if strings.Contains(s.SQL, "INSERT INTO entries(") {
			n++
		}
	}
	if n > 0 {
		p.stored = append(p.stored, n)
	}
	return p.DB.Tx(ctx, stmts)
}

// TestPartsOfBigFirst: a transaction stores so many messages, or so many bytes of them, and no more; the reply comes behind.
func TestPartsOfBigFirst(t *testing.T) {
	for _, row := range []struct {
		messages, size int
		want           []int
	}{{49, 10, []int{49, 1}}, {50, 10, []int{50, 1}}, {51, 10, []int{50, 1, 1}}, {120, 10, []int{50, 50, 20, 1}}, {12, 1 << 20, []int{4, 4, 4, 1}}, {5, 1<<20 - 40, []int{5, 1}}} {
		r := newRig(t, proxy.Settings{})
		p := &parted{DB: r.db}
		r.db, r.rt = p, atOnce{r.rt}
		r.restart()
		history := make([]string, row.messages)
		for i := range history { // of that size each, as JSON
			history[i] = text("user", fmt.Sprintf("%09d", i))
			history[i] = text("user", fmt.Sprintf("%09d", i)+strings.Repeat("x", max(row.size-len(history[i]), 0)))
		}
		r.exchange(proxy.Observe, request(history...), reply("end_turn", textBlock("ok")))
		if fmt.Sprint(p.stored) != fmt.Sprint(row.want) {
			t.Errorf("%d messages of %d bytes are stored as %v, want %v", row.messages, row.size, p.stored, row.want)
		}
	}
}

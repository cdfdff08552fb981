package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// failing is a database that can be switched off for writing.
type failing struct {
	tidemark.DB
	off bool
}

func (f *failing) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if f.off {
		return errors.New("disk full")
	}
	return f.DB.Tx(ctx, stmts)
}

// newFailing is a rig whose database can be switched off.
func newFailing(t *testing.T) (*rig, *failing) {
	r := newRig(t, proxy.Settings{})
	f := &failing{DB: r.db}
	r.db = f
	r.restart()
	return r, f
}

// TestStoredLater: what could not be stored is stored with the next answer: what was said, what the client never saw of it
// and what was done by tags, all of it once.
func TestStoredLater(t *testing.T) {
	r, db := newFailing(t)
	history := turns(3)
	r.exchange(proxy.Page, request(history[:1]...), reply("end_turn", textBlock("answer 1")))
	r.exchange(proxy.Page, request(history[:3]...), reply("end_turn", textBlock("answer 2")))
	db.off = true
	read := call("c1", "Read", `{"file_path":"b.go"}`)
	e := r.exchange(proxy.Page, request(history...), reply("tool_use", tagged("I look.", `collapse: turns 1-1 "short"`, "release: x.go", "anchor: block:"+handle(t, 0, history[:3]...)),
		call("p1", paging.FaultTool, `{"paths":["no.go"]}`), read))
	if !bytes.Contains(e.got, []byte("I look.")) {
		t.Errorf("the client got %s", e.got)
	}
	history = append(history, said(textBlock("I look.\n"), read), result("c1", "package b"))
	r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("read")))
	db.off = false
	history = append(history, spoke("read"), text("user", "more"))
	for i := range 3 {
		e = r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock(fmt.Sprint("ok ", i))))
		m := e.messages(t, 0)
		if len(m) != 8+2*i || !strings.Contains(m[0].PlainText(), "short") || fmt.Sprint(m[4].Calls()) != "[p1 c1]" || fmt.Sprint(m[5].Results()) != "[p1 c1]" {
			t.Errorf("request %d is sent as %s", i, e.sent[0])
		}
		history = append(history, spoke(fmt.Sprint("ok ", i)), text("user", fmt.Sprint("more ", i)))
		if i == 1 {
			r.restart()
		}
	}
	if got := logOf(r); strings.Count(got, "I look.") != 1 || strings.Count(got, "package b") > 1 || !strings.Contains(got, "|read|more|ok 0") {
		t.Errorf("the log has %q", got)
	}
	released, anchored := "", ""
	for _, s := range r.steps("") {
		released, anchored = released+strings.Join(s.Release, ","), anchored+strings.Join(s.Anchor, ",")
	}
	if strings.Count(released, "x.go") != 1 || anchored != handle(t, 0, history[:3]...) {
		t.Errorf("let go %q, keeps %q", released, anchored)
	}
	if n := len(r.edits("cooperation")); n != 1 {
		t.Errorf("the log knows %d edits", n)
	}
	same(t, r)
}

// TestSour: where the API took a request only without our edits, those that follow go as they come, in threads that part
// from it too; others are not concerned.
func TestSour(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	q, a := text("user", "q"), spoke("a")
	x := r.begin(q)
	if !x.Refused(400) {
		t.Fatal("not sent again")
	}
	r.answer(x, reply("end_turn", textBlock("a")))
	for name, row := range map[string]struct {
		history []string
		as      bool
	}{
		"the same":          {[]string{q, a, text("user", "b")}, true},
		"one that parts":    {[]string{q, a, text("user", "c")}, true},
		"another":           {[]string{text("user", "other")}, false},
		"as it was refused": {[]string{q}, true},
	} {
		body := request(row.history...)
		x := r.begin(row.history...)
		if _, why := x.Untouched(); bytes.Equal(x.Body(), body) != row.as || (why != "") != row.as {
			t.Errorf("%s: %q, sent %s", name, why, x.Body())
		}
		r.answer(x, reply("end_turn", textBlock("ok")))
	}
}

// TestRefusedLeavesNothing: requests that the API refuses make no threads.
func TestRefusedLeavesNothing(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	for i := range 1100 {
		x := r.begin(text("user", fmt.Sprint("bad ", i)))
		if _, why := x.Untouched(); why != "" {
			t.Fatalf("request %d: %s", i, why)
		}
		r.refuse(x, 400)
	}
	rows, err := r.db.Query(t.Context(), `SELECT (SELECT count(*) FROM proxy_steps WHERE key = ?1), (SELECT count(*) FROM proxy_tracks WHERE key = ?1) LIMIT 1`, string(key))
	if err != nil || rows[0].Int(0) != 0 || rows[0].Int(1) != 0 {
		t.Errorf("%v steps and tracks of what was refused, %v", rows, err)
	}
	r.exchange("", request(text("user", "good")), reply("end_turn", textBlock("Well.")))
	if list := r.steps(""); len(list) != 1 {
		t.Errorf("%d requests are told of, want the one that was answered", len(list))
	}
}

// TestUsageOfOthers: what the provider reports of a request that was not sent as the pager has it is not what it reckons by.
func TestUsageOfOthers(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	if a.stubs == 0 {
		t.Fatal("nothing left")
	}
	for _, row := range []struct {
		treatment string
		reckoned  bool
	}{{proxy.Observe, false}, {proxy.Page, true}, {proxy.Trim, false}, {proxy.PageTrim, true}} {
		e := r.exchange(row.treatment, request(a.history...), reply("end_turn", textBlock(row.treatment)))
		if (e.stubs(t) > 0) != row.reckoned {
			t.Errorf("%s: %d stubs", row.treatment, e.stubs(t))
		}
		list := r.steps("")
		if u := list[len(list)-1].Usage; (u != nil) != row.reckoned {
			t.Errorf("%s: usage %+v", row.treatment, u)
		}
		a.history = append(a.history, spoke(row.treatment), text("user", "on"))
	}
	same(t, r)
}

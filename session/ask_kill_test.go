package session_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark/session"
)

// TestKillAsked kills the process before and after each write of /snapshot and /branch: the next life carries them out, and
// there is one of each, which the answer names.
func TestKillAsked(t *testing.T) {
	for _, tc := range []struct{ line, rows string }{
		{"/snapshot spot", `SELECT count(*) FROM snapshots LIMIT 1`},
		{"/branch off", `SELECT (SELECT count(*) FROM branches) * 10 + (SELECT count(*) FROM snapshots) LIMIT 1`},
		{"/branch", `SELECT (SELECT count(*) FROM branches) * 10 + (SELECT count(*) FROM snapshots) LIMIT 1`},
	} {
		in, err := session.Command(tc.line)
		if err != nil {
			t.Fatal(err)
		}
		in.ID = "asked"
		want := map[string]int64{"/snapshot spot": 1}[tc.line]
		if want == 0 {
			want = 11
		}
		base := newAlone(t, session.Settings{})
		base.say("a question")
		base.stop()
		total := base.wrote(func(o *harness) error { o.post(in); return nil })
		for k := 1; k <= total; k++ {
			for _, after := range []bool{false, true} {
				h := newAlone(t, session.Settings{})
				h.say("a question")
				h.stop()
				h.askUntilDeath(k, after, in)
				h.open()
				if got := h.finish(in); got != "" {
					t.Errorf("%s, write %d after=%v: %s", tc.line, k, after, got)
				}
				answers := h.events("answer")
				if n := h.count(tc.rows); n != want || len(answers) != 1 {
					t.Errorf("%s, write %d after=%v: %d, want %d; answers %q", tc.line, k, after, n, want, answers)
				}
				h.whole(fmt.Sprint(tc.line, " ", k, after))
				h.stop()
			}
		}
	}
}

// askUntilDeath posts an input to a session that dies at its k-th write, or ends the turn before it.
func (h *harness) askUntilDeath(k int, after bool, in session.Input) {
	h.t.Helper()
	o := h.doomed(k, after)
	defer o.stop()
	sub, err := o.Subscribe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer sub.Close()
	if _, err := o.Post(h.t.Context(), in); err != nil {
		return
	}
	for {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				if n.Type == session.NoticeDone || n.Type == session.NoticeError {
					return
				}
			}
		case <-o.db.(*mortal).dead:
			return
		}
	}
}

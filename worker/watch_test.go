package worker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

func TestWatch(t *testing.T) {
	said := func(run, text string, out tidemark.Tokens) session.Notice {
		m := tidemark.NewText(tidemark.Assistant, text)
		return session.Notice{Type: session.NoticeReply, Run: run, Entry: tidemark.EntryID("e-" + text), Message: &m,
			Call: &tidemark.Call{Stop: "end_turn", Usage: tidemark.Usage{Output: out}}}
	}
	event := func(run, kind string) session.Notice {
		return session.Notice{Type: session.NoticeEvent, Run: run, Event: &tidemark.Event{Type: kind, Text: kind + " text"}}
	}
	n := func(kind, run string, inputs ...string) session.Notice {
		return session.Notice{Type: kind, Run: run, Inputs: inputs}
	}
	for _, tc := range []struct {
		name    string
		notices []session.Notice
		passed  string // types, in order
		ended   bool
		text    string
		tokens  tidemark.Tokens
		events  string
	}{
		{"own turn", []session.Notice{n("start", "r"), n("taken", "r", "me"), n("text", "r"), said("r", "hi", 2), n("done", "r", "me")},
			"start taken text reply", true, "hi", 2, ""},
		{"turn of another before it", []session.Notice{n("start", "a"), n("taken", "a", "you"), n("text", "a"), said("a", "no", 1), n("done", "a", "you"),
			n("start", "r"), n("taken", "r", "me"), said("r", "hi", 2), n("done", "r", "me")}, "start taken reply", true, "hi", 2, ""},
		{"taken up in the middle", []session.Notice{n("start", "r"), n("taken", "r", "you"), said("r", "wait", 1), n("taken", "r", "you", "me"), said("r", "hi", 2), n("done", "r", "you", "me")},
			"start taken reply", true, "hi", 2, ""},
		{"several calls", []session.Notice{n("taken", "r", "me"), said("r", "let me see", 1), n("result", "r"), said("r", "found", 2), n("done", "r", "me")},
			"taken reply result reply", true, "found", 3, ""},
		{"reset before it is taken", []session.Notice{n("start", "r"), event("r", "reset"), n("taken", "r", "me"), said("r", "hi", 1), n("done", "r", "me")},
			"event start taken reply", true, "hi", 1, "reset"},
		{"compaction of another turn", []session.Notice{n("start", "a"), n("taken", "a", "you"), event("a", "compaction"), n("done", "a", "you"), n("start", "r"), n("taken", "r", "me"), said("r", "hi", 1), n("done", "r", "me")},
			"event start taken reply", true, "hi", 1, ""},
		{"others wait behind it", []session.Notice{n("start", "r"), n("queued", "", "you"), event("r", "reset"), n("queued", "", "they"), n("taken", "r", "me"), n("queued", "", "you"), said("r", "hi", 1), n("done", "r", "me")},
			"event start taken reply", true, "hi", 1, "reset"},
		{"the disk was full meanwhile", []session.Notice{n("start", "r"), event("r", "reset"), n("taken", "r", "me"), n("stalled", ""), said("r", "hi", 1), n("done", "r", "me")},
			"event start taken stalled reply", true, "hi", 1, "reset"},
		{"command", []session.Notice{n("start", "r"), n("compacting", "r"), event("r", "compaction"), n("done", "r", "me")},
			"compacting event start", true, "compaction text", 0, "compaction"},
		{"failed", []session.Notice{n("start", "r"), n("taken", "r", "me"), n("error", "r", "me")}, "start taken", true, "", 0, ""},
		{"failure of another", []session.Notice{n("start", "a"), n("taken", "a", "you"), n("error", "a", "you")}, "", false, "", 0, ""},
		{"end of another", []session.Notice{n("done", "a", "you")}, "", false, "", 0, ""},
		{"not yet", []session.Notice{n("start", "r"), n("taken", "r", "me"), n("text", "r")}, "start taken text", false, "", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch("me")
			var passed []string
			for _, n := range tc.notices {
				for _, p := range w.see(n) {
					passed = append(passed, p.Type)
				}
			}
			if got := strings.Join(passed, " "); got != tc.passed {
				t.Errorf("passed %q, want %q", got, tc.passed)
			}
			out := w.outcome(tidemark.SessionInfo{ID: "s"})
			var events []string
			for _, e := range out.Events {
				events = append(events, e.Type)
			}
			if got := strings.Join(events, " "); w.ended != tc.ended || got != tc.events {
				t.Errorf("ended %v, events %q", w.ended, got)
			}
			if tc.ended && (out.Text != tc.text || out.Usage.Output != tc.tokens || out.Session != "s") {
				t.Errorf("outcome %+v", out)
			}
			if failed := slices.ContainsFunc(tc.notices, func(n session.Notice) bool { return n.Type == "error" && tc.ended }); failed != (w.err != nil) {
				t.Errorf("err %v", w.err)
			}
		})
	}
}

func TestWatchStored(t *testing.T) {
	w := newWatch("me")
	var own *refused
	if w.stored("it broke"); !w.ended || !errors.As(w.err, &own) || own.status != 502 || own.text != "it broke" {
		t.Errorf("failure: %v", w.err)
	}
	w = newWatch("me")
	if w.stored(""); !w.ended || w.err != nil {
		t.Errorf("an end: %v", w.err)
	}
}

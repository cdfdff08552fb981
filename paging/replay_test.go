package paging

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestHand replays a session made by hand: a call decided before the eviction is no fault, and the
// first copy goes at its age.
func TestHand(t *testing.T) {
	line, err := os.ReadFile("testdata/hand.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := Scanner{Tools: DefaultTools()}
	session, err := s.Session(line)
	if err != nil {
		t.Fatal(err)
	}
	r := Replay{Options: Options{Policy: "fifo", Tau: 2, MinBytes: 50}, Keep: true}
	if err := r.Run(session); err != nil {
		t.Fatal(err)
	}
	const want = `{"session":"hand","requests":[` +
		`{"n":0,"evict":[],"gc":[],"stub":[],"fault":[],"pin":[],"unpin":[],"bytes":[36,36]},` +
		`{"n":1,"evict":[],"gc":[],"stub":[],"fault":[],"pin":[],"unpin":[],"bytes":[321,321]},` +
		`{"n":2,"evict":[],"gc":[],"stub":[],"fault":[],"pin":[],"unpin":[],"bytes":[389,389]},` +
		`{"n":3,"evict":["t1"],"gc":[],"stub":["t1"],"fault":[],"pin":[],"unpin":[],"bytes":[674,636]}]}`
	if got := string(r.Line); got != want {
		t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(got, `{"n"`, "\n"+`{"n"`), strings.ReplaceAll(want, `{"n"`, "\n"+`{"n"`))
	}
}

// TestReplayCheck: a replay ends before the step where it is told to.
func TestReplayCheck(t *testing.T) {
	stop, asked, steps := errors.New("stop"), 0, 0
	r := Replay{Each: func(*Decision) { steps++ }, Check: func() error {
		if asked++; asked > 3 {
			return stop
		}
		return nil
	}}
	if err := r.Run(ranges(t, 20)); !errors.Is(err, stop) || steps != 3 {
		t.Errorf("%d steps, %v: want 3 and %v", steps, err, stop)
	}
}

// TestAppendDecision: a live request is told as a replay tells it, also behind cuts and with a window.
func TestAppendDecision(t *testing.T) {
	for seed := range uint64(20) {
		for _, window := range []tidemark.Tokens{0, 6000} {
			o := Options{Policy: Policies()[seed%4], Tau: 2, MinBytes: 300, Window: window}
			s := reported(helped(random(t, seed, 25), seed), seed)
			r := Replay{Options: o, Keep: true}
			if err := r.Run(s); err != nil {
				t.Fatal(err)
			}
			p, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			line := []byte(`{"session":"s","requests":[`)
			for n, st := range s.Steps {
				d, err := p.Step(st)
				if err != nil {
					t.Fatal(err)
				}
				p.Reported(st.Usage)
				if n > 0 {
					line = append(line, ',')
				}
				line = p.AppendDecision(line, n, &d)
			}
			if got := string(append(line, "]}"...)); got != string(r.Line) {
				t.Fatalf("seed %d: live\n%s\nreplay\n%s", seed, got, r.Line)
			}
		}
	}
}

package occasion

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// listens is an agent that has schedules.
type listens struct{ ran []tidemark.Ran }

func (l *listens) Ran(_ context.Context, ran tidemark.Ran) error {
	l.ran = append(l.ran, ran)
	return nil
}

// TestOutcome: each schedule of a run is told of once, with what of its answer is delivered, and cut where it is long.
func TestOutcome(t *testing.T) {
	agent, kept := &listens{}, map[string]any{}
	asked := 0
	newRoom := func(delivers bool) *Room {
		p := room.Ports{Self: room.Self{Key: "agent:main:main", Runtime: hosttest.Runtime(t)}, Mail: room.Mail{Agent: agent,
			Outbox: func(id, _ string, payload any, _ time.Duration) []tidemark.Stmt {
				kept[id] = payload
				return []tidemark.Stmt{{SQL: id}}
			}}}
		p.Usage = func(_ context.Context, run string) tidemark.Usage {
			asked++
			return tidemark.Usage{Input: tidemark.Tokens(len(run))}
		}
		return Make(delivers)(p).(*Room)
	}
	to := &tidemark.Address{Platform: "fake", Peer: "ann"}
	turn := room.Turn{Run: "r1", Origins: []tidemark.Origin{{To: to}, {To: to, Occasion: &tidemark.Occasion{Schedule: "a", Due: 1}},
		{Occasion: &tidemark.Occasion{Schedule: "b", Due: 2}}, {To: to, Occasion: &tidemark.Occasion{Schedule: "c", Due: 3, Quiet: "OK"}}}}
	long := strings.Repeat("é", tidemark.MaxRanText)
	for _, tc := range []struct {
		delivers bool
		out      tidemark.Outcome
		want     string
	}{
		{true, tidemark.Outcome{Text: "Done."}, "a1 true,b2 false,c3 true"},
		{true, tidemark.Outcome{Text: "OK!"}, "a1 true,b2 false,c3 false"},
		{true, tidemark.Outcome{Text: long}, "a1 true,b2 false,c3 true"},
		{true, tidemark.Outcome{Text: strings.Repeat("x", tidemark.MaxRanText)}, "a1 true,b2 false,c3 true"},
		{false, tidemark.Outcome{Text: "Done."}, "a1 false,b2 false,c3 false"},
		{true, tidemark.Outcome{Error: "no key"}, "a1 false,b2 false,c3 false"},
	} {
		r := newRoom(tc.delivers)
		agent.ran, asked = nil, 0
		for _, s := range r.OutcomeStmts(t.Context(), turn, tc.out) {
			if err := r.Report(t.Context(), []byte(room.JSON(kept[s.SQL]))); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, ran := range agent.ran {
			got = append(got, fmt.Sprintf("%s%d %t", ran.Schedule, ran.Due, ran.Delivered))
			if whole := ran.Outcome.Text == tc.out.Text; whole != (len(tc.out.Text) <= tidemark.MaxRanText) {
				t.Errorf("of %d bytes it tells %d", len(tc.out.Text), len(ran.Outcome.Text))
			}
			if ran.Outcome.Usage.Input != 2 || ran.Session != r.Key || tc.out.Text != "" && ran.Said != tidemark.SaidHash(tc.out.Text) || len(ran.Outcome.Text) > tidemark.MaxRanText+len("…") {
				t.Errorf("told of %+v", ran)
			}
		}
		if s := strings.Join(got, ","); s != tc.want || asked != 1 {
			t.Errorf("%.20q: told of %s, want %s; usage was read %d times", tc.out.Text, s, tc.want, asked)
		}
	}
	r := newRoom(true)
	if stmts := r.OutcomeStmts(t.Context(), room.Turn{Run: "r1", Origins: turn.Origins[:1]}, tidemark.Outcome{}); len(stmts) > 0 {
		t.Errorf("of a person's turn it writes %v", stmts)
	}
	if err := r.Report(t.Context(), []byte(`{`)); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("what cannot be read: %v", err)
	}
}

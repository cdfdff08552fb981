package errand

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestOutcomeOf: what came of an errand is its reply in words, what it cost, and why there is none; what cannot be told is a failure.
func TestOutcomeOf(t *testing.T) {
	log, err := host.OpenLog(t.Context(), hosttest.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), "log", tidemark.Entry{ID: "reply", Kind: tidemark.KindMessage, At: time.Unix(1, 0), Payload: tidemark.NewText(tidemark.Assistant, "done").AppendJSON(nil)}); err != nil {
		t.Fatal(err)
	}
	away := errors.New("away")
	usage := tidemark.Usage{Input: 7}
	over := func(reply tidemark.EntryID, failure string) room.Posted {
		return room.Posted{There: true, Over: true, Reply: reply, Failure: failure, Spent: 3}
	}
	for _, tc := range []struct {
		name              string
		p                 room.Posted
		find, info, words error
		want              tidemark.Outcome
		ok                bool
		says              string
	}{
		{"a reply", over("reply", ""), nil, nil, nil, tidemark.Outcome{Text: "done", Entry: "reply", Usage: usage, Spent: 3}, true, ""},
		{"a reply that was cut off", over("reply", "Cut off."), nil, nil, nil, tidemark.Outcome{Text: "done", Entry: "reply", Error: "Cut off.", Usage: usage, Spent: 3}, true, ""},
		{"none", over("", "No key."), nil, nil, nil, tidemark.Outcome{Error: "No key.", Usage: usage, Spent: 3}, true, ""}, {"none, and nobody says why", over("", ""), nil, nil, nil, tidemark.Outcome{Error: "Stopped before it began.", Usage: usage, Spent: 3}, true, ""},
		{"in work", room.Posted{There: true}, nil, nil, nil, tidemark.Outcome{}, false, ""},
		{"nobody can tell", over("reply", ""), away, nil, nil, tidemark.Outcome{}, false, "away"}, {"nobody can tell the cost", over("reply", ""), nil, away, nil, tidemark.Outcome{}, false, "away"},
		{"it is gone", over("gone", ""), nil, nil, nil, tidemark.Outcome{}, false, "read answer of errand e: "}, {"it cannot be read", over("reply", ""), nil, nil, away, tidemark.Outcome{}, false, "read answer of errand e: away"},
	} {
		done := 0
		r := Make(room.Ports{Self: room.Self{Life: t.Context()},
			History: room.History{Log: log, Info: func(context.Context) (tidemark.SessionInfo, error) {
				return tidemark.SessionInfo{Usage: usage}, tc.info
			},
				Words: func(_ context.Context, e tidemark.Entry) (tidemark.Message, func(), error) {
					m, _ := e.Message()
					return m, func() { done++ }, tc.words
				}},
			Queue: room.Queue{Find: func(context.Context, string) (room.Posted, error) { return tc.p, tc.find }},
		}).(*Room)
		got, ok, err := r.outcome(t.Context(), "e")
		if ok != tc.ok || ok && got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.HasPrefix(err.Error(), tc.says) || tc.want.Text != "" && done != 1 {
			t.Errorf("%s: %+v, %v, %v, given back %d times", tc.name, got, ok, err, done)
		}
		if tc.find == nil {
			continue
		}
		if err := r.Drop(t.Context(), "e"); !errors.Is(err, away) || !strings.HasPrefix(err.Error(), "drop errand e: ") {
			t.Errorf("%s: dropped, %v", tc.name, err)
		}
	}
}

// TestWorkFails: who cannot listen, post or stop is told why, and where this life is over, that.
func TestWorkFails(t *testing.T) {
	away := errors.New("away")
	for _, dead := range []bool{false, true} {
		life, end := context.WithCancel(t.Context())
		q := &queue{steps: []room.Posted{{There: true}}}
		r := of(t, q)
		r.Life = life
		if dead {
			end()
		}
		r.Post = func(context.Context, tidemark.Errand) error { return away }
		if _, err := r.Work(t.Context(), tidemark.Errand{ID: "e"}); !errors.Is(err, away) || errors.Is(err, tidemark.ErrDead) != dead {
			t.Errorf("post, dead %v: %v", dead, err)
		}
		r.Post = func(context.Context, tidemark.Errand) error { return nil }
		r.Find = func(context.Context, string) (room.Posted, error) { return room.Posted{Over: true}, away }
		if _, err := r.Work(t.Context(), tidemark.Errand{ID: "e"}); !errors.Is(err, away) || errors.Is(err, tidemark.ErrDead) != dead {
			t.Errorf("find, dead %v: %v", dead, err)
		}
		end()
	}
	q := &queue{steps: []room.Posted{{There: true}}, refuse: tidemark.ErrConflict}
	r := of(t, q)
	r.Stop = func(context.Context, string) error { return away }
	if err := r.Drop(t.Context(), "e"); !errors.Is(err, away) || !strings.HasPrefix(err.Error(), "drop errand e: ") {
		t.Errorf("stop: %v", err)
	}
	r.Follow = func() (room.Ends, error) { return nil, away }
	if _, err := r.Work(t.Context(), tidemark.Errand{ID: "e"}); !errors.Is(err, away) {
		t.Errorf("follow: %v", err)
	}
}

package errand

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// queue is one in which an input goes on a step whenever somebody looks for it, and which notes what it is asked.
type queue struct {
	steps  []room.Posted
	asked  []string
	refuse error // of a withdrawal
	end    error // that Next returns
}

func (q *queue) note(what, id string) { q.asked = append(q.asked, what+" "+id) }

// Next implements room.Ends.
func (q *queue) Next(context.Context) error { q.note("next", ""); return q.end }

// Close implements room.Ends.
func (q *queue) Close() { q.note("close", "") }

// of makes the room of a queue.
func of(t *testing.T, q *queue) *Room {
	t.Helper()
	r, ok := Make(room.Ports{Self: room.Self{Life: t.Context()},
		History: room.History{Info: func(context.Context) (tidemark.SessionInfo, error) {
			return tidemark.SessionInfo{Usage: tidemark.Usage{Input: 7}}, nil
		}},
		Queue: room.Queue{
			Post: func(_ context.Context, e tidemark.Errand) error { q.note("post", e.ID); return nil },
			Stop: func(_ context.Context, id string) error { q.note("stop", id); return nil },
			Find: func(context.Context, string) (p room.Posted, err error) {
				p = q.steps[0]
				q.steps = q.steps[min(1, len(q.steps)-1):]
				return p, nil
			},
			Withdraw: func(_ context.Context, id string) error { q.note("withdraw", id); return q.refuse },
			Follow:   func() (room.Ends, error) { q.note("follow", ""); return q, nil },
		}}).(*Room)
	if !ok {
		t.Fatal("Make makes no Room")
	}
	return r
}

// TestWorkListensFirst: who waits listens before it posts, looks before it waits, and looks again behind each end.
func TestWorkListensFirst(t *testing.T) {
	q := &queue{steps: []room.Posted{{There: true}, {There: true}, {There: true, Over: true, Failure: "No key.", Spent: 3}}}
	out, err := of(t, q).Work(t.Context(), tidemark.Errand{ID: "e"})
	if err != nil || out.Error != "No key." || out.Spent != 3 || out.Usage.Input != 7 || fmt.Sprint(q.asked) != "[follow  post e next  next  close ]" {
		t.Errorf("%+v, %v: %q", out, err, q.asked)
	}
	q = &queue{steps: []room.Posted{{There: true, Over: true}}}
	if out, err := of(t, q).Work(t.Context(), tidemark.Errand{ID: "e"}); err != nil || out.Error != "Stopped before it began." {
		t.Errorf("%+v, %v", out, err)
	}
	q = &queue{steps: []room.Posted{{There: true}}, end: tidemark.ErrDead}
	if _, err := of(t, q).Work(t.Context(), tidemark.Errand{ID: "e"}); !errors.Is(err, tidemark.ErrDead) {
		t.Errorf("behind the end of a life: %v", err)
	}
	q = &queue{}
	if _, err := of(t, q).Work(t.Context(), tidemark.Errand{}); !errors.Is(err, tidemark.ErrInvalid) || fmt.Sprint(q.asked) != "[follow  close ]" {
		t.Errorf("without an id: %v: %q", err, q.asked)
	}
}

// TestDrop: what waits is withdrawn, what works is stopped, and the rest is left.
func TestDrop(t *testing.T) {
	for name, row := range map[string]struct {
		p      room.Posted
		refuse error
		want   string
	}{
		"not there": {room.Posted{}, nil, "[]"},
		"over":      {room.Posted{There: true, Over: true}, nil, "[]"},
		"it waits":  {room.Posted{There: true}, nil, "[withdraw e]"},
		"it works":  {room.Posted{There: true}, tidemark.ErrConflict, "[withdraw e stop drop:e]"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queue{steps: []room.Posted{row.p}, refuse: row.refuse}
			if err := of(t, q).Drop(t.Context(), "e"); err != nil || fmt.Sprint(q.asked) != row.want {
				t.Errorf("%v: %q", err, q.asked)
			}
		})
	}
}

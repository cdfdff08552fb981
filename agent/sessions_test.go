package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/schedule"
)

// heard are sessions that note what they are asked, and say it back.
type heard struct {
	last string
	err  error
}

func (h *heard) hear(format string, args ...any) error {
	h.last = fmt.Sprintf(format, args...)
	return h.err
}

func (h *heard) Recall(context.Context, tidemark.Key, recall.Ask) (recall.Answer, error) {
	return recall.Answer{}, nil
}

func (h *heard) Start(_ context.Context, key tidemark.Key, e tidemark.Errand) error {
	return h.hear("start %s %s", key, e.ID)
}

func (h *heard) Work(_ context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	return tidemark.Outcome{Text: "worked"}, h.hear("work %s %s", key, e.ID)
}

func (h *heard) Decide(_ context.Context, key tidemark.Key, d tidemark.Decision) error {
	return h.hear("decide %s %s", key, d.Code)
}

func (h *heard) Relay(_ context.Context, key tidemark.Key, q tidemark.Question) error {
	return h.hear("relay %s %s", key, q.Code)
}

func (h *heard) Drop(_ context.Context, key tidemark.Key, id string) error {
	return h.hear("drop %s %s", key, id)
}

func (h *heard) Read(_ context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error) {
	return "read", h.hear("read %s %s %d", key, entry, offset)
}

func (h *heard) Occupied(_ context.Context, key tidemark.Key) (bool, error) {
	return true, h.hear("occupied %s", key)
}

func (h *heard) Correspondent(_ context.Context, key tidemark.Key) (tidemark.Origin, error) {
	return tidemark.Origin{Owner: true}, h.hear("where %s", key)
}

func (h *heard) Say(_ context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	return h.hear("say %s %s %s %s", key, id, to.Peer, text)
}

// TestErrandsFromAfar: what one object asks the sessions of another comes there as it was said, and what they answer back.
func TestErrandsFromAfar(t *testing.T) {
	const key tidemark.Key = "agent:main:main"
	h := &heard{}
	far := &agent.FarSessions{Transport: func(tidemark.Key) http.RoundTripper {
		return handler(func(w http.ResponseWriter, r *http.Request) { agent.AnswerSession(w, r, h) })
	}}
	ctx := t.Context()
	for _, c := range []struct {
		want string // is heard
		back string // is answered
		ask  func() (string, error)
	}{
		{"start agent:main:main e1", "", func() (string, error) { return "", far.Start(ctx, key, tidemark.Errand{ID: "e1"}) }},
		{"work agent:main:main e1", "worked", func() (string, error) { o, err := far.Work(ctx, key, tidemark.Errand{ID: "e1"}); return o.Text, err }},
		{"decide agent:main:main ABCD", "", func() (string, error) { return "", far.Decide(ctx, key, tidemark.Decision{Code: "ABCD"}) }},
		{"relay agent:main:main ABCD", "", func() (string, error) { return "", far.Relay(ctx, key, tidemark.Question{Code: "ABCD"}) }},
		{"drop agent:main:main e1", "", func() (string, error) { return "", far.Drop(ctx, key, "e1") }},
		{"read agent:main:main 01A 7", "read", func() (string, error) { return far.Read(ctx, key, "01A", 7) }},
		{"occupied agent:main:main", "true", func() (string, error) { is, err := far.Occupied(ctx, key); return fmt.Sprint(is), err }},
		{"where agent:main:main", "true", func() (string, error) { o, err := far.Correspondent(ctx, key); return fmt.Sprint(o.Owner), err }},
		{"say agent:main:main i1 +491 hello", "", func() (string, error) {
			return "", far.Say(ctx, key, "i1", tidemark.Address{Platform: "whatsapp", Peer: "+491"}, "hello")
		}},
	} {
		h.last, h.err = "", nil
		if back, err := c.ask(); err != nil || h.last != c.want || back != c.back {
			t.Errorf("%s: heard %q, answered %q, %v", c.want, h.last, back, err)
		}
		h.err = tidemark.ErrConflict
		if _, err := c.ask(); !errors.Is(err, tidemark.ErrConflict) {
			t.Errorf("%s: refused by %v", c.want, err)
		}
	}
}

// TestRanFromAfar: the end of a run comes from another object, too.
func TestRanFromAfar(t *testing.T) {
	p := newPlanner(t)
	p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	p.at(21, 15, 0)
	e := p.homes.given[0]
	if err := remoteOf(p.world, p.Peer).Ran(t.Context(), tidemark.Ran{Schedule: "s1", Due: e.Origin.Occasion.Due, Session: p.homes.keys[0], At: p.clock.Now(), Outcome: tidemark.Outcome{Text: "Fine."}}); err != nil {
		t.Fatal(err)
	}
	if p.runs("s1") != "ok" {
		t.Error(p.runs("s1"))
	}
}

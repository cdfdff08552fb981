package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
)

// deciders are homes that take decisions.
type deciders struct {
	*homes
	err error
	got []string
}

func (d *deciders) Decide(_ context.Context, key tidemark.Key, x tidemark.Decision) error {
	d.got = append(d.got, fmt.Sprintf("%s %s", key, x.Code))
	return d.err
}

// asking is an agent by what conversations ask the owner.
type asking interface {
	Question(ctx context.Context, q tidemark.Question) error
	Asked(ctx context.Context, code string) (bool, error)
	Answer(ctx context.Context, d tidemark.Decision) (tidemark.Question, error)
}

// TestQuestions: what waits for the owner, by its code and the conversation that asks, here and from afar.
func TestQuestions(t *testing.T) {
	t.Run("here", func(t *testing.T) { testQuestions(t, func(p *planner) asking { return p.Agent }) })
	t.Run("from afar", func(t *testing.T) {
		testQuestions(t, func(p *planner) asking { return remoteOf(p.world, p.Peer) })
	})
}

func testQuestions(t *testing.T, of func(*planner) asking) {
	p := newPlanner(t)
	d := &deciders{homes: p.homes}
	p.configure(func(c *agent.Config) { c.Sessions = d })
	ctx, a := t.Context(), of(p)
	const one, two tidemark.Key = "agent:main:local:dm:one", "agent:main:local:dm:two"
	question := func(key tidemark.Key, code string, more func(*tidemark.Question)) {
		t.Helper()
		q := tidemark.Question{Code: code, Session: key, Tool: "bash", Input: "{}", Asked: p.clock.Now(), Expires: p.clock.Now().Add(time.Hour)}
		if more != nil {
			more(&q)
		}
		if err := a.Question(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	open := func() string {
		t.Helper()
		list, err := p.Questions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, q := range list {
			out = append(out, q.Session.Peer()+" "+q.Code)
		}
		return strings.Join(out, ", ")
	}
	elsewhere := func(q *tidemark.Question) { q.Elsewhere = true }
	closed := func(q *tidemark.Question) { q.Closed, q.Elsewhere = true, true }
	if asked, err := a.Asked(ctx, "ABCD"); err != nil || asked || open() != "" {
		t.Errorf("what another agent asked: %v, %v, %s", asked, err, open())
	}
	question(one, "ABCD", nil)
	p.clock.move(time.Second)
	question(two, "ABCD", elsewhere)
	question(two, "ABCD", elsewhere)
	p.clock.move(time.Second)
	question(two, "EFGH", closed)
	question(two, "IJKL", elsewhere)
	if got, said := open(), fmt.Sprint(p.homes.said); got != "one ABCD, two ABCD, two IJKL" || said != "[asked ABCD asked ABCD asked IJKL]" {
		t.Fatalf("%s wait; %s", got, said)
	}
	question(one, "ABCD", closed)
	question(one, "ABCD", elsewhere)                         // heard late
	question("agent:main:local:dm:three", "ABCD", elsewhere) // that one was closed is of another conversation
	question("agent:main:local:dm:three", "ABCD", closed)
	question(two, "MNOP", func(q *tidemark.Question) { q.Elsewhere, q.Expires = true, p.clock.Now() })
	if got := open(); got != "two ABCD, two IJKL" || len(p.homes.said) != 4 {
		t.Errorf("%s wait; %v", got, p.homes.said)
	}
	owner, guest := tidemark.Origin{Owner: true}, tidemark.Origin{}
	for _, c := range []struct {
		name, code string
		by         tidemark.Origin
		err, want  error
		left, got  string // what waits then, and who was told
	}{
		{"a guest", "abcd", guest, nil, tidemark.ErrForbidden, "two ABCD, two IJKL", ""},
		{"a code of nobody", "zzzz", owner, nil, tidemark.ErrNotFound, "two ABCD, two IJKL", ""},
		{"one that is closed", "efgh", owner, nil, tidemark.ErrConflict, "two ABCD, two IJKL", ""},
		{"one whose time is over", "mnop", owner, nil, tidemark.ErrConflict, "two ABCD, two IJKL", ""},
		{"a conversation that cannot be reached", "abcd", owner, tidemark.ErrUnavailable, tidemark.ErrUnavailable, "two ABCD, two IJKL", "agent:main:local:dm:two ABCD"},
		{"one that waits", "abcd", owner, nil, nil, "two IJKL", "agent:main:local:dm:two ABCD"},
		{"the same again", "abcd", owner, nil, tidemark.ErrConflict, "two IJKL", ""},
		{"one that was decided there", "ijkl", owner, tidemark.ErrConflict, tidemark.ErrConflict, "", "agent:main:local:dm:two IJKL"},
	} {
		d.err, d.got = c.err, nil
		_, err := a.Answer(ctx, tidemark.Decision{Code: c.code, By: c.by})
		if !errors.Is(err, c.want) || open() != c.left || strings.Join(d.got, ", ") != c.got {
			t.Errorf("%s: %v; %q wait, told %q", c.name, err, open(), d.got)
		}
	}
}

// TestQuestionsForgotten: a month behind its end nobody knows of a question, and of a newer one they do.
func TestQuestionsForgotten(t *testing.T) {
	p := newPlanner(t)
	for _, c := range []struct {
		code string
		wait time.Duration
	}{{"ABCD", 20 * 24 * time.Hour}, {"QRST", 11 * 24 * time.Hour}, {"UVWX", 0}} {
		if err := p.Question(t.Context(), tidemark.Question{Code: c.code, Session: owners, Asked: p.clock.Now(), Expires: p.clock.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		p.clock.move(c.wait)
	}
	p.restart()
	for code, want := range map[string]bool{"abcd": false, "qrst": true, "uvwx": true} {
		if asked, err := p.Asked(t.Context(), code); err != nil || asked != want {
			t.Errorf("%s a month later: %v, %v", code, asked, err)
		}
	}
}

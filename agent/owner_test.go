package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/schedule"
)

// relays are conversations that note in which of them the owner is asked, and over which channel.
type relays struct {
	*homes
	asked []string
}

func (r *relays) Relay(_ context.Context, key tidemark.Key, q tidemark.Question) error {
	to := "nowhere"
	if q.To != nil {
		to = q.To.Peer
	}
	r.asked = append(r.asked, string(key)+" "+to)
	return nil
}

// TestWhereAsked: the owner is asked in the conversation of theirs that is named, if anybody reads there, else in the main one; and over the
// channel from which they wrote last.
func TestWhereAsked(t *testing.T) {
	p := newPlanner(t)
	r := &relays{homes: p.homes}
	p.configure(func(c *agent.Config) { c.Sessions = r })
	for i, row := range []struct {
		where tidemark.Key
		peer  string
		want  string
	}{
		{"agent:main:local:dm:garden", "", "agent:main:local:dm:garden nowhere"},
		{"agent:main:web:dm:x", "49151", "agent:main:web:dm:x 49151"},
		{"", "49151", "agent:main:main 49151"},
		{"agent:other:local:dm:garden", "49151", "agent:main:main 49151"},
		{"agent:main:delegate:dm:x", "49151", "agent:main:main 49151"},
		{"agent:main:whatsapp:dm:+491", "49151", "agent:main:main 49151"},
	} {
		if p.homes.person = (tidemark.Origin{}); row.peer != "" {
			p.homes.person.To = &tidemark.Address{Platform: "whatsapp", Peer: row.peer}
		}
		q := tidemark.Question{Code: fmt.Sprint("C", i), Session: "agent:main:delegate:dm:y", Where: row.where, Elsewhere: true, Asked: noon, Expires: noon.Add(time.Hour)}
		if r.asked = nil; p.Question(t.Context(), q) != nil || !slices.Equal(r.asked, []string{row.want}) {
			t.Errorf("where %q: asked in %q, want %q", row.where, r.asked, row.want)
		}
	}
}

// TestHandedOverAgain: a run that no session takes is given again after one, two and four minutes, and has failed then.
func TestHandedOverAgain(t *testing.T) {
	p := newPlanner(t)
	p.homes.fail = fmt.Errorf("no room: %w", tidemark.ErrUnavailable)
	p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	next := p.at(21, 15, 0)
	for _, minute := range []int{1, 3, 7} {
		if want := time.Date(2026, 11, 21, 15, minute, 0, 0, time.UTC); !next.Equal(want) || p.runs("s1") != "begun" {
			t.Fatalf("%s, and woken at %v, want %v", p.runs("s1"), next, want)
		}
		p.clock.move(next.Sub(p.clock.Now()) - time.Millisecond)
		if again := p.wake(); !again.Equal(next) {
			t.Errorf("a moment before it wakes at %v", again)
		}
		p.clock.move(time.Millisecond)
		next = p.wake()
	}
	list, err := p.ScheduleRuns(t.Context(), "s1", 9)
	if err != nil || len(list) != 1 || list[0].State != agent.RunFailed || !strings.HasPrefix(list[0].Reason, "it could not be begun: no room: ") || p.state("s1").Fails != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestResumed: a schedule that is on again begins without failures, and with the next time from now; a new name changes nothing of that.
func TestResumed(t *testing.T) {
	p := newPlanner(t)
	s := p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 * * * *", Zone: "UTC"}})
	for s.State == agent.ScheduleOn {
		p.clock.move(s.Next.Sub(p.clock.Now()))
		p.wake()
		p.end(tidemark.Outcome{Error: "red"})
		s = p.state("s1")
	}
	change := func(f func(*agent.Schedule)) agent.Schedule {
		t.Helper()
		got, err := p.ChangeSchedule(t.Context(), "s1", func(s *agent.Schedule) error { f(s); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := change(func(s *agent.Schedule) { s.Name = "build" }); got.State != agent.SchedulePaused || got.Fails != 10 || !strings.HasPrefix(got.Reason, "10 failures in a row") || !got.Next.IsZero() {
		t.Errorf("with a name %+v", got)
	}
	p.clock.move(90 * time.Minute)
	got := change(func(s *agent.Schedule) { s.State = agent.ScheduleOn })
	if wait := got.Next.Sub(p.clock.Now()); got.Fails != 0 || got.Reason != "" || got.Name != "build" || wait <= 0 || wait > time.Hour || len(got.Coming) != 3 {
		t.Errorf("on again %+v", got)
	}
	due := got.Next
	p.clock.move(due.Sub(p.clock.Now()) + time.Minute) // it is due, and was not woken
	if got := change(func(s *agent.Schedule) { s.Name = "nightly" }); !got.Next.Equal(due) {
		t.Errorf("what is due is put off to %v", got.Next)
	}
	if got := change(func(s *agent.Schedule) { s.Spec = schedule.Spec{Every: "2h"} }); got.Next.Sub(p.clock.Now()) != 2*time.Hour || got.State != agent.ScheduleOn {
		t.Errorf("with another time %+v", got)
	}
}

// TestAnswersToOne: the answers of a schedule go to whom it names, as the channel knows them; one who may not hear is refused when it is
// made.
func TestAnswersToOne(t *testing.T) {
	p := newPlanner(t)
	if _, err := p.AddSchedule(t.Context(), agent.Schedule{Prompt: "x", To: "whatsapp:ann", Spec: schedule.Spec{Every: "24h"}}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "no channel is set up here") {
		t.Errorf("without a channel: %v", err)
	}
	p.configure(func(c *agent.Config) {
		c.Address = func(_ context.Context, to string) (tidemark.Origin, error) {
			if to != "whatsapp:ann" {
				return tidemark.Origin{}, tidemark.ErrForbidden
			}
			return tidemark.Origin{Peer: "ann", To: &tidemark.Address{Platform: "whatsapp", Peer: "49160"}}, nil
		}
	})
	if _, err := p.AddSchedule(t.Context(), agent.Schedule{Prompt: "x", To: "whatsapp:bob", Spec: schedule.Spec{Every: "24h"}}); !errors.Is(err, tidemark.ErrForbidden) {
		t.Errorf("to a stranger: %v", err)
	}
	p.add(agent.Schedule{To: "whatsapp:ann", Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	p.at(21, 15, 0)
	if len(p.homes.given) != 2 {
		t.Fatalf("%+v", p.homes.given)
	}
	if one, two := p.homes.given[0].Origin, p.homes.given[1].Origin; one.To == nil || one.To.Peer != "49160" || one.Peer != "ann" || two.To != nil || two.Peer != "" {
		t.Errorf("%+v and %+v", one, two)
	}
}

// TestFullFile: a memory file may have so many bytes: what would be more waits, and loses nothing; one that is larger cannot be read.
func TestFullFile(t *testing.T) {
	w := newWorld(t)
	for path, more := range map[string]int{memory.Soul: 0, memory.Human: 1} {
		write(t, w.blobs, path, strings.Repeat("x", memory.MaxFile+more))
		if f, err := w.File(t.Context(), path); (err == nil) != (more == 0) || err == nil && f.Size != memory.MaxFile || err != nil && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%d bytes more: %d, %v", more, f.Size, err)
		}
	}
	write(t, w.blobs, day, "x\n")
	w.remember(scope(t, owners), "x1", "The owner keeps a boat")
	added := len(w.stored(day)) - len("x\n")
	for _, more := range []int{0, 1} {
		w := newWorld(t)
		full := strings.Repeat("x", memory.MaxFile-added-1+more) + "\n"
		write(t, w.blobs, day, full)
		w.remember(scope(t, owners), "x1", "The owner keeps a boat")
		if got := len(w.stored(day)); got != map[int]int{0: memory.MaxFile, 1: len(full)}[more] {
			t.Errorf("with %d bytes more it has %d", more, got)
		}
		if found := w.search(owners, "boat"); found != "The owner keeps a boat" {
			t.Errorf("with %d bytes more is found %q", more, found)
		}
	}
}

// TestPromptSaysWhere: a prompt says where the model is, and no time.
func TestPromptSaysWhere(t *testing.T) {
	w := newWorld(t)
	for key, kind := range map[string]string{"main": "main", "garden": "non-main", "agent:main:whatsapp:dm:+491": "non-main"} {
		s := scope(t, key)
		if got, want := w.prompt(s), fmt.Sprintf("Agent: main\nSession: %s (%s)\nTimezone: Europe/Berlin", s.Key, kind); !strings.Contains(got, want) {
			t.Errorf("%s: %s", key, got)
		}
	}
	if text, mark, err := w.PromptWithin(t.Context(), scope(t, owners), noon, 0); text != "" || err != nil || fmt.Sprint(mark) != fmt.Sprint(memory.Mark{}) {
		t.Errorf("of no room %q, %v", text, err)
	}
}

package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// packing is a room that packs, and another one that has something for it.
type packing struct {
	turns []room.PackTurn
	seen  []room.Seen
	told  []string // of what was refused
}

func (p *packing) Turn(t room.PackTurn) func(context.Context, room.Seen) (string, tidemark.Tokens) {
	p.turns = append(p.turns, t)
	return func(_ context.Context, v room.Seen) (string, tidemark.Tokens) {
		p.seen = append(p.seen, v)
		return "a pack", v.Size + 5
	}
}

func (p *packing) Refused(pack string) { p.told = append(p.told, pack) }

func (p *packing) Push(context.Context, tidemark.Tokens, tidemark.Tokens) (string, error) {
	return "a card", nil
}

// TestPacking: a room that packs is told what a turn is and which rooms have something for it, once, and has its pack and its size
// put into each view. Without one nothing is pushed.
func TestPacking(t *testing.T) {
	p := &packing{}
	s, rt := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return p }}})
	s.puts(t, s.Key, "in", InputMessage, "taken", "r")
	r := &run{ID: "r", Log: s.current(t), Started: rt.now}
	from := s.says(t, r.Log, "q", tidemark.NewText(tidemark.User, "x"), tidemark.Origin{Input: "in"}, 1)
	pack := s.packing(r)
	for range 2 {
		v := weighing("log", 10, 0, 0)
		v.System, v.Mark, v.Anchor = "Be kind.", "mark", true
		if got := pack(t.Context(), v); got.Pack != "a pack" || got.Size != 15 || got.System != "Be kind." {
			t.Errorf("%+v", got)
		}
	}
	if len(p.turns) != 1 || p.turns[0].Task != room.Pusher(p) || p.turns[0].Find != nil || p.turns[0].Records != nil || !p.turns[0].Started.Equal(rt.now) || len(p.seen) != 2 || p.seen[1].Mark != "mark" || !p.seen[1].Anchor {
		t.Errorf("of turns %+v it saw %+v", p.turns, p.seen)
	}
	if got, err := p.turns[0].Begun(t.Context()); got != from || err != nil {
		t.Errorf("the turn began at %d, want %d, %v", got, from, err)
	}
	s.rooms = nil
	if got := s.packing(r)(t.Context(), weighing("log", 10, 0, 0)); got.Pack != "" || got.Size != 10 {
		t.Errorf("without a room: %+v", got)
	}
}

// TestPackBudget: what is pushed has a budget where what leaves the view leaves pointers, and the card one anyway.
func TestPackBudget(t *testing.T) {
	for _, c := range []struct {
		pack    tidemark.Tokens
		points  bool
		pushed  tidemark.Tokens
		cardAll tidemark.Tokens
	}{{0, true, 4096, 2048}, {1000, true, 1000, 500}, {-1, true, 0, 2048}, {1000, false, 0, 500}} {
		conf := Config{Settings: Settings{PackTokens: c.pack}}
		if c.points {
			conf.Strategies = []compaction.Strategy{compaction.Pointer{}}
		}
		s, _ := plain(t, conf)
		p := s.ports()
		if _, all := p.NoteRoom(); p.PackTokens() != c.pushed || all != c.cardAll {
			t.Errorf("a budget of %d, pointing %v: %d are pushed, the card has %d", c.pack, c.points, p.PackTokens(), all)
		}
	}
}

// recorder is a room that keeps records of calls.
type recorder struct {
	sent  []string
	usage tidemark.Usage
	fails error
}

func (r *recorder) Record(_ context.Context, c room.Sent) error {
	r.sent = append(r.sent, strings.TrimRight(fmt.Sprint(c.Run, " ", c.Seen.Size, " ", c.Call.Model), "\n"))
	return r.fails
}

func (r *recorder) Usage(context.Context, string) (tidemark.Usage, error) { return r.usage, r.fails }

func (r *recorder) Pushed(context.Context, string) (tidemark.Tokens, error) { return 0, r.fails }

// TestRecordThatFails: a record that cannot be written, or what a turn cost that cannot be read, is warned of and fails nothing,
// and is nothing to warn of when the life is over.
func TestRecordThatFails(t *testing.T) {
	r, records := newRig(t, Settings{}), &recorder{fails: errFaulty, usage: tidemark.Usage{Input: 5}}
	r.Session.rooms = append(r.Session.rooms, records)
	r.recordCall(r.working(stateCalling), View{}, tidemark.Request{}, tidemark.Call{}, nil)
	if got := r.warned.taken(); !strings.Contains(got, `msg="record anatomy" session=agent:main:main err="the disk is gone"`) {
		t.Errorf("logged %q", got)
	}
	if r.usageOf(t.Context(), "r"); !strings.Contains(r.warned.taken(), `msg="read what a turn has spent"`) {
		t.Error("what a turn has spent cannot be read, and nothing is logged")
	}
	records.fails = nil
	if got := r.usageOf(t.Context(), "r"); got != records.usage {
		t.Errorf("%+v", got)
	}
	records.fails = errFaulty
	life, end := context.WithCancel(t.Context())
	end()
	r.life = life
	r.recordCall(&run{ID: "r"}, View{}, tidemark.Request{}, tidemark.Call{}, nil)
	if got := r.warned.taken(); got != "" {
		t.Errorf("logged at the end of the life: %q", got)
	}
}

// TestJSONText: a command is a string.
func TestJSONText(t *testing.T) {
	var text string
	if err := jsonText([]byte(`"x"`), &text); err != nil || text != "x" {
		t.Errorf("a command reads %q, %v", text, err)
	}
	if err := jsonText([]byte(`{`), &text); err == nil || !strings.Contains(err.Error(), "read command") {
		t.Errorf("a command that cannot be read: %v", err)
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/tidemarktest"
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

// TestWordyMessages: words of an entry come with its large blocks but for images, while there is room for them, which is given
// back; without large blocks nothing is asked for.
func TestWordyMessages(t *testing.T) {
	asked, held := []int64{}, int64(0)
	s, _ := plain(t, Config{Admit: func(n int64) (func(), bool) {
		asked, held = append(asked, n), held+n
		return func() { held -= n }, true
	}})
	long, image := strings.Repeat("boathouse ", 50_000), `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUFB", 100_000)+`"}}`
	m := tidemark.Message{Role: tidemark.User, Content: append([]tidemark.Block{tidemark.Text("small"), tidemark.Text(long)}, tidemarktest.Blocks(t, image)...)}
	seq := s.says(t, s.current(t), "e", m, tidemark.Origin{}, 1)
	small := s.says(t, s.current(t), "s", tidemark.NewText(tidemark.User, "small"), tidemark.Origin{}, 1)
	entries, err := s.log.Payloads(t.Context(), []int64{seq, small})
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	got, done, err := s.wordy(t.Context(), entries[0])
	if err != nil || len(got.Content) != 3 || got.Content[1].Text != long {
		t.Fatalf("%d blocks, %v", len(got.Content), err)
	}
	stored, _ := entries[0].Message()
	ref, _ := blocks.Reference(stored.Content[1])
	if _, ok := blocks.Reference(got.Content[2]); !ok || len(asked) != 1 || asked[0] != int64(len(entries[0].Payload))+decodedCopies*int64(ref.Bytes) || held != asked[0] {
		t.Errorf("the image is read, or asked for are %d", asked)
	}
	if done(); held != 0 {
		t.Errorf("%d are held at the end", held)
	}
	if got, done, err := s.wordy(t.Context(), entries[1]); err != nil || got.PlainText() != "small" || len(asked) != 1 {
		t.Errorf("a small one: %q, asked for %d, %v", got.PlainText(), asked, err)
	} else {
		done()
	}
	s.settings().ViewBytes = 1_200_000
	if _, done, err := s.wordy(t.Context(), entries[0]); err != nil || asked[1] != 1_200_000 {
		t.Errorf("more than a view may have: asked for %d, %v", asked, err)
	} else {
		done()
	}
	s.Blobs = failingGet{s.Blobs}
	s.blocks.Blobs = s.Blobs
	if _, done, err := s.wordy(t.Context(), entries[0]); !errors.Is(err, errKnown) || held != 0 {
		t.Errorf("the bucket fails: %v, %d are held", err, held)
	} else {
		done()
	}
	if _, _, err := s.wordy(t.Context(), tidemark.Entry{ID: "e", Payload: []byte(`{`)}); err == nil || !strings.Contains(err.Error(), "read entry e") {
		t.Errorf("an entry that cannot be read: %v", err)
	}
	var text string
	if err := jsonText([]byte(`"x"`), &text); err != nil || text != "x" {
		t.Errorf("a command reads %q, %v", text, err)
	}
	if err := jsonText([]byte(`{`), &text); err == nil || !strings.Contains(err.Error(), "read command") {
		t.Errorf("a command that cannot be read: %v", err)
	}
}

// failingGet is a bucket that gives nothing.
type failingGet struct{ tidemark.Blobs }

func (failingGet) Get(context.Context, string) (tidemark.Object, io.ReadCloser, error) {
	return tidemark.Object{}, nil, errKnown
}

// TestAmendedFiles: files beside which words stand that came later are brought back, as far as there is room for them; in the
// place of the others stands how they can be had. What is no file stays.
func TestAmendedFiles(t *testing.T) {
	s, _ := plain(t, Config{})
	long := func(letter string) tidemark.Block { return tidemark.Text(strings.Repeat(letter, 300<<10)) }
	stored, err := s.blocks.Spill(t.Context(), tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{long("a"), long("b"), long("c")}})
	if err != nil {
		t.Fatal(err)
	}
	ref, ok := blocks.Reference(stored.Content[0])
	if !ok {
		t.Fatal("nothing is stored apart")
	}
	for _, c := range []struct {
		left int
		want string // first letters; - for what has no room
		rest int
	}{{3 * ref.Bytes, "xa b c", 0}, {3*ref.Bytes - 1, "xa b -", ref.Bytes - 1}, {2 * ref.Bytes, "xa b -", 0}, {2*ref.Bytes - 1, "xa - -", ref.Bytes - 1}, {0, "x- - -", 0}} {
		left := c.left
		edits := []tidemark.Edit{{From: "e1", Block: 3, Blocks: []tidemark.Block{tidemark.Text("x"), stored.Content[0]}}, {From: "e2", Block: 1}, {From: "e3", Block: 1, Blocks: []tidemark.Block{stored.Content[1]}}, {From: "e4", Block: 1, Blocks: []tidemark.Block{stored.Content[2]}}}
		if err := s.amendedWith(t.Context(), edits, &left); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range edits {
			letters := ""
			for _, b := range e.Blocks {
				letter := b.Text[:1]
				if strings.HasPrefix(b.Text, "[") {
					letter = "-"
					if b.Text != fmt.Sprintf("[text: %d bytes, too many beside the others; recall with {\"entry\": \"%s#%d\"} shows it]", ref.Bytes, e.From, e.Block-1) {
						t.Errorf("it says %q", b.Text)
					}
				}
				letters += letter
			}
			if letters != "" {
				got = append(got, letters)
			}
		}
		if strings.Join(got, " ") != c.want || left != c.rest {
			t.Errorf("with room for %d bytes: %q, %d are left", c.left, got, left)
		}
	}
	gone := []tidemark.Edit{{From: "e1", Block: 1, Blocks: []tidemark.Block{stored.Content[0]}}}
	s.blocks.Blobs = failingGet{s.Blobs}
	left := 1 << 30
	if err := s.amendedWith(t.Context(), gone, &left); !errors.Is(err, errKnown) {
		t.Errorf("the bucket fails: %v", err)
	}
}

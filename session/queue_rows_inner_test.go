package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/room"
)

// TestQueueIsOfPeople: people see what waits of theirs, in order, and not what an alarm has queued, whatever waits elsewhere.
func TestQueueIsOfPeople(t *testing.T) {
	s, _ := plain(t, Config{})
	if run, list, err := s.Queue(t.Context()); run != "" || len(list) != 0 || err != nil {
		t.Errorf("nothing waits: %q, %+v, %v", run, list, err)
	}
	s.runs(t, "r", s.current(t), stateTools, 1)
	for id, c := range map[string][2]string{"a": {inputAgain, `"o"`}, "b": {InputMessage, `{"role":"user","content":"hello"}`}, "c": {InputCompact, `"names"`}} {
		s.puts(t, s.Key, id, c[0], "new", "")
		s.does(t, `UPDATE inputs SET payload = ? WHERE key = ? AND id = ?`, c[1], string(s.Key), id)
	}
	run, list, err := s.Queue(t.Context())
	got := map[string]string{}
	for _, w := range list {
		got[w.ID] = w.Kind + " " + w.Text
		if w.At.UnixMilli() != 4000 || w.At.Location().String() != "UTC" {
			t.Errorf("it came %s", w.At)
		}
	}
	if run != "r" || err != nil || fmt.Sprint(got) != "map[b:message hello c:compact names]" {
		t.Errorf("behind %s wait %v, %v", run, got, err)
	}
	s.does(t, `UPDATE inputs SET payload = '{' WHERE key = ? AND id = 'b'`, string(s.Key))
	if _, _, err := s.Queue(t.Context()); err == nil || !strings.Contains(err.Error(), "read input b") {
		t.Errorf("an input that cannot be read: %v", err)
	}
	s.does(t, `UPDATE inputs SET origin = '{' WHERE key = ? AND id = 'c'`, string(s.Key))
	if _, err := s.waiting(t.Context()); err == nil || !strings.Contains(err.Error(), "read input c") {
		t.Errorf("an origin that cannot be read: %v", err)
	}
}

// TestExtractIsDue: what a reset has for its agent is due even if this life ends at once, and its rooms let go of what is old with it.
func TestExtractIsDue(t *testing.T) {
	d := diary{new([]string)}
	s, rt := plain(t, Config{Provider: &played{play: summarizes}, Settings: Settings{Window: 100_000}, Rooms: []room.Maker{func(room.Ports) any { return d }}})
	r, old := s.begun(t, "r", stateCalling), s.current(t)
	s.spoken(t, 4)
	x := &resetting{Old: old, New: "next", Step: stepExtract, Reason: "idle", At: rt.now}
	s.does(t, `INSERT INTO resets(old, key, new, step, reason, at) VALUES(?, ?, 'next', 'extract', 'idle', 1)`, old, string(s.Key))
	if err := s.extract(t.Context(), r, x); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); got != "outbox 1700000060000" {
		t.Errorf("due is %q", got)
	}
	if got := s.reads(t, `SELECT id, kind FROM outbox WHERE key = ? LIMIT 9`, string(s.Key)); got != "facts:"+old+"/reset/0 facts" {
		t.Errorf("the agent is to be told %q", got)
	}
	if got := s.reads(t, resetRow, string(s.Key)); got != "move idle  0" || x.Step != stepMove || len(x.facts) != 1 {
		t.Errorf("it stands at %q", got)
	}
	s.does(t, `DELETE FROM outbox WHERE key = ?`, string(s.Key)) // nobody here remembers
	s.settings().NoMemories = true
	*d.lines = nil
	if err := s.move(t.Context(), r, x); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "pt" || len(*d.lines) == 0 || (*d.lines)[0] != "closed" {
		t.Errorf("its rooms write %q, and note %q", got, *d.lines)
	}
}

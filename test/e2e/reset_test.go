//go:build !js

package e2e

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // changes what lies on the disk of a stopped target

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/reset"
)

// wasReset holds what must be true after a reset that nobody asked for by hand.
func (k *talk) wasReset(old, history, reason string) {
	k.t.Helper()
	if i := k.info(); i.ID == old || i.Busy != "" {
		k.t.Errorf("%+v", i)
	}
	var log struct {
		Entries []struct {
			Kind  string
			Event struct {
				Type, Text string
				Data       struct{ OldSessionID, ArchivedTo, Reason string }
			}
		}
	}
	if err := json.Unmarshal([]byte(k.text(k.path("/log"))), &log); err != nil {
		k.t.Fatal(err)
	}
	told := ""
	for _, e := range log.Entries {
		if d := e.Event.Data; e.Event.Type == "reset" && d.OldSessionID == old {
			told = d.ArchivedTo
			if !strings.Contains(d.Reason, reason) {
				k.t.Errorf("reset because of %q, want %q", d.Reason, reason)
			}
		}
	}
	if told == "" {
		k.t.Fatalf("no reset of %s in the log: %+v", old, log)
	}
	raw, _, err := k.s.bucket().get(told)
	if err != nil {
		k.t.Fatal(err)
	}
	if got := same(gunzipLines(k.t, raw)); got != history {
		k.t.Errorf("archived\n%s\nwant\n%s", got, history)
	}
}

// TestResetByHand: archived, begun anew, and the conversation goes on.
func TestResetByHand(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.say("Last season we painted the boat.")
		old, history := k.info().ID, same(k.messages())
		got := ask[turn](k, 200, "POST", k.path("/reset"), map[string]string{"reason": "new season", "id": "r1"})
		again := ask[turn](k, 200, "POST", k.path("/reset"), map[string]string{"reason": "new season", "id": "r1"})
		if len(got.Events) == 0 || !again.Duplicate {
			t.Errorf("%+v\n%+v", got, again)
		}
		k.wasReset(old, history, "new season")
		if n := len(k.messages()); n != 0 {
			t.Errorf("%d messages after the reset", n)
		}
		k.say("A new season begins.")
		if n, all := len(k.messages()), k.text(k.path("/log?format=jsonl&all=1")); n != 2 || !strings.HasPrefix(same(decodeLines(t, all)), history) {
			t.Errorf("%d messages, all of them:\n%s", n, all)
		}
	})
}

// punctual names a session whose alarm has no jitter.
func punctual(channel, word string) string {
	for i := 0; ; i++ {
		key := fmt.Sprintf("agent:main:%s:dm:%s%d", channel, word, i)
		if reset.Jitter(key) == 0 {
			return key
		}
	}
}

// TestIdleReset: after a minute without a word the alarm resets the session, with nobody there. A
// minute is the smallest pause there is; other tests run meanwhile.
func TestIdleReset(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := at(t, s, punctual("idle", "quiet"))
		k.set(8000)
		live := k.listen("GET", k.path("/events"), nil)
		live.until("hello")
		k.say("I will be quiet now.")
		old, history := k.info().ID, same(k.messages())
		for {
			ev, _ := live.until("event") // nobody asks the session for anything until its alarm rings
			if strings.Contains(ev.data, `"type":"reset"`) {
				break
			}
		}
		k.wasReset(old, history, "idle for more than 1 minutes")
		k.say("I am back.")
		if n := len(k.messages()); n != 2 {
			t.Errorf("%d messages", n)
		}
	})
}

// TestDailyReset: a night passes while the target is stopped (its disk is made a day older), and the
// daily reset is made at the next input of one session and by the alarm of the other.
func TestDailyReset(t *testing.T) {
	eachOwn(t, nil, func(t *testing.T, s *site) {
		talks := [2]*talk{begin(t, s, "daily", "input"), at(t, s, punctual("daily", "alarm"))}
		talks[1].set(8000)
		var old, history [2]string
		for i, k := range talks {
			k.say("Good night.")
			old[i], history[i] = k.info().ID, same(k.messages())
		}
		if err := s.halt(gracefully); err != nil {
			t.Fatal(err)
		}
		if n := s.age(t, 24*time.Hour, talks[1].key); n != len(talks) {
			t.Fatalf("%d sessions were made older, want %d", n, len(talks))
		}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if got := talks[0].say("Good morning."); !strings.Contains(same2(got), "daily reset at 04:00 UTC") {
			t.Errorf("%+v", got)
		}
		if n := len(talks[0].messages()); n != 2 {
			t.Errorf("%d messages: the input belongs to the new day", n)
		}
		eventually(t, s, func() string {
			if i := talks[1].info(); i.ID == old[1] || i.Busy != "" { // who looks in wakes the object, and asks for no reset
				return "the alarm has reset nothing"
			}
			return ""
		})
		for i, k := range talks {
			k.wasReset(old[i], history[i], "daily reset at 04:00 UTC")
		}
	})
}

// age makes the sessions on the disk of a stopped target older, and counts them. One of them has an
// alarm that is as old.
func (s *site) age(t *testing.T, by time.Duration, alarm string) int {
	t.Helper()
	paths, err := s.databases()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		var there int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_master WHERE name = 'heads'`).Scan(&there); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if there > 0 {
			res, err := db.ExecContext(t.Context(), `UPDATE heads SET active = active - ?1, people = people - ?1 WHERE messages > 0`, by.Milliseconds())
			if err == nil {
				_, err = db.ExecContext(t.Context(), `UPDATE due SET at = at - ? WHERE kind = 'reset' AND key = ?`, by.Milliseconds(), alarm)
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			changed, err := res.RowsAffected()
			if err != nil {
				t.Fatal(err)
			}
			n += int(changed)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

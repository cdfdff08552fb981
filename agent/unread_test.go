package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// good is an answer in the form that was asked for, but for the numbers.
const good = "<decisions>\n- UPDATE $old: $new\n</decisions>"

// globex puts the numbers of two facts in an answer, as the question gives them.
func globex(answer, question string) string {
	old, fresh, _ := strings.Cut(strings.Trim(about(question, "User works at Acme", "User now works at Globex"), "$\n"), ": ")
	return strings.NewReplacer("$old", old, "$new", fresh).Replace(answer)
}

// TestUnreadAnswer: what cannot be read is no answer. The next night asks again, the digest is written, and the night
// does not say that it compared; after three nights the window is passed over. What it says of another person's
// facts stays as it is, each once.
func TestUnreadAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string // of each night
		rows    int      // at the end
		calls   int      // at the end
	}{
		{"nonsense, then an answer", []string{"Ann moved.", good, good}, 2, 2},
		{"cut off, then an answer", []string{"<decisions>UPDA", good}, 2, 2},
		{"never an answer", []string{"hm", "hm", "hm", "hm", "hm"}, 1, 3},
		{"nothing, then an answer", []string{"", good}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			night := 0
			asked := 0
			j := &judge{say: func(text string) (string, error) {
				if !strings.Contains(text, ": User now works at Globex") {
					return values(text), nil
				}
				if asked++; c.answers[night] == "" {
					return "", &tidemark.APIError{Class: tidemark.ClassNetwork, Type: tidemark.EmptyReply}
				}
				return globex(c.answers[night], text), nil
			}}
			w.configure(func(cfg *agent.Config) {
				cfg.Reconcile, cfg.Model, cfg.Digest = true, j, true
			})
			w.remember(scope(t, stanger), "p1", "Ann's server port is 5", "Ann's server port is 6")
			w.remember(scope(t, owners), "x1", "User works at Acme", "User now works at Globex")
			for night = range c.answers {
				w.clock.move(24 * time.Hour)
				done := w.consolidate()
				read := c.answers[night] == good || night > 2 // passed over, and there is nothing else
				if done.Reconciled != read || (done.Waiting == "") != read || !strings.Contains(w.stored(memory.DigestFile), "Globex") {
					t.Errorf("night %d: %+v", night, done)
				}
			}
			neighbours := 0
			for _, r := range w.ledger() {
				if r.Fact == "Ann's server port is 5" {
					neighbours++
				}
			}
			if asked != c.calls || len(w.ledger()) != c.rows || neighbours != 1 {
				t.Errorf("asked %d times, ledger %+v", asked, w.ledger())
			}
		})
	}
}

// TestAskedAgainTheSameNight: whoever asks for a night to be made again does not use up another one.
func TestAskedAgainTheSameNight(t *testing.T) {
	w := newWorld(t)
	j := &judge{say: func(string) (string, error) { return "hm", nil }}
	w.configure(func(cfg *agent.Config) { cfg.Reconcile, cfg.Model, cfg.Digest = true, j, true })
	w.remember(scope(t, owners), "x1", "User works at Acme", "User now works at Globex")
	for range 4 {
		if done := w.consolidate(); done.Reconciled || done.Unread != 1 {
			t.Errorf("%+v", done)
		}
	}
}

// TestPassedOverThenSilent: a window is passed over, and the model cannot be asked about the next: the night says both, and
// the next window has its own three nights.
func TestPassedOverThenSilent(t *testing.T) {
	w := newWorld(t)
	night := 0
	j := &judge{say: func(text string) (string, error) {
		if night == 2 && strings.Contains(text, ": User now drives a Volvo") {
			return "", &tidemark.APIError{Class: tidemark.ClassAuth, Message: "wrong key"}
		}
		return "hm", nil
	}}
	w.configure(func(cfg *agent.Config) { cfg.Reconcile, cfg.Model = true, j })
	facts := []string{"User works at Acme", "User now works at Globex"}
	for i := range 38 {
		facts = append(facts, fmt.Sprintf("Shelf%d holds jar%d", i, i))
	}
	w.remember(scope(t, owners), "x1", append(facts, "User drives a Saab", "User now drives a Volvo")...)
	for night = range 4 {
		w.clock.move(24 * time.Hour)
		done, err := w.Consolidate(w.t.Context())
		unread := []int{1, 2, 0, 1}[night]
		if done.Reconciled || done.Unread != unread || (err == nil) != (night != 2) {
			t.Errorf("night %d: %+v, %v", night, done, err)
		}
		if night == 2 && (!strings.Contains(done.Waiting, "wrong key") || !strings.Contains(done.Waiting, "for so many nights")) {
			t.Errorf("it waits, since %q", done.Waiting)
		}
		if (done.Passed > 0) != (night >= 2) || done.Passed > len(facts) {
			t.Errorf("night %d: %d facts were passed over", night, done.Passed)
		}
	}
}

// TestMoreThanANight: what comes behind the facts of one night is compared the next, and the night says that there is more.
func TestMoreThanANight(t *testing.T) {
	if testing.Short() {
		t.Skip("make soak: some 16 seconds of a processor")
	}
	w := newWorld(t)
	w.configure(func(cfg *agent.Config) { cfg.Reconcile, cfg.Model = true, lastWord() })
	for i := range 41 {
		var facts []string
		for j := range 50 {
			facts = append(facts, fmt.Sprintf("Shelf%d holds jar%d", 50*i+j, 50*i+j))
		}
		w.remember(scope(t, owners), fmt.Sprint("x", i), facts...)
	}
	if done := w.consolidate(); done.Reconciled || !strings.Contains(done.Note, "2000 facts") {
		t.Errorf("%+v", done)
	}
	if done := w.consolidate(); !done.Reconciled || done.Note != "" {
		t.Errorf("%+v", done)
	}
}

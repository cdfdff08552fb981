package odd

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

var (
	turns = flag.Int("turns", 150, "turns in all")
	seed  = flag.Uint64("seed", 1, "of the first world")
	each  = flag.Int("each", 4000, "turns of one world, at most")
)

const (
	crowd   = 40 // conversations of one world, at most
	longest = 10 // odd turns in a row
)

// TestOdd plays worlds, each with the next seed.
func TestOdd(t *testing.T) {
	began := time.Now()
	var all tally
	t.Run("worlds", func(t *testing.T) {
		for left, s := *turns, *seed; left > 0; left, s = left-*each, s+1 {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { all.add(play(t, s, min(left, *each))) })
			})
		}
	})
	t.Logf("%d turns of %d conversations, %d calls of models, %d of them refused or broken off, seed %d, %.0f seconds",
		all.turns, all.talks, all.calls, all.refused, *seed, time.Since(began).Seconds())
}

// tally counts what was played.
type tally struct {
	mu                           sync.Mutex // guards the following
	turns, talks, calls, refused int
}

func (y *tally) add(w *world, turns int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.turns, y.talks, y.calls, y.refused = y.turns+turns, y.talks+len(w.talks), y.calls+w.net.n, y.refused+w.net.refused
}

// play plays one world: its turns, then a last one of each conversation.
func play(t *testing.T, seed uint64, turns int) (*world, int) {
	r := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, min(crowd, 1+turns/10), r)
	defer w.report(t)
	check := func(x *talk, turn int, err error) {
		if err != nil {
			t.Fatalf("conversation %s (%s, %v), turn %d, window %+v: %v\n%s\nagain, but for ids: go test ./test/odd -seed %d -turns %d",
				x.name, x.config.Model.ID, x.config.Compaction.Strategies, turn, x.s.Window(), err, strings.Join(w.net.trace, "\n"), seed, turns)
		}
	}
	for turn := range turns {
		x := w.talks[r.IntN(len(w.talks))]
		check(x, turn, x.turn(rand.New(rand.NewPCG(seed, uint64(turn)))))
		if turn%25 == 0 {
			check(x, turn, w.wake())
		}
	}
	for i, x := range w.talks {
		check(x, turns+i, x.last(rand.New(rand.NewPCG(seed, uint64(turns+i)))))
		check(x, turns+i, w.learned(x.s.Window()))
		x.end()
	}
	return w, turns + len(w.talks)
}

// learned holds what was learned of windows, by a conversation and by all, against what the models take. What is tried is
// half of a request that was refused, in our estimate, and the rest of it was the room for its reply: a quarter at least.
func (w *world) learned(by tidemark.Window) error {
	all, err := w.agent.Windows(w.t.Context(), nil)
	for _, l := range append(all, by) {
		m := modelNamed(l.Model[strings.LastIndex(l.Model, " ")+1:])
		if m != nil && l.From != tidemark.WindowSet && l.Tokens > 0 && 4*int(l.Tokens) < m.window {
			err = errors.Join(err, fmt.Errorf("%s takes %d tokens, learned is %d (%s)", m.name, m.window, l.Tokens, l.From))
		}
	}
	return err
}

// report says what was answered, and fails for each rule that a request broke.
func (w *world) report(t *testing.T) {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(w.net.done)) {
		fmt.Fprintf(&b, "%s %d, ", k, w.net.done[k])
	}
	t.Logf("%d calls: %s", w.net.n, b.String())
	for _, k := range slices.Sorted(maps.Keys(w.net.broken)) {
		t.Errorf("refused by rule: %s, %d times: %s", k, w.net.broken[k], w.net.sample[k])
	}
}

// turn is a turn of a storm, or one between two.
func (x *talk) turn(r *rand.Rand) error {
	if x.storm == 0 && x.still == 0 {
		x.storm, x.still = 1+x.r.IntN(longest), 1+x.r.IntN(3)
	}
	calm := x.storm == 0
	if calm {
		x.still--
	} else {
		x.storm--
	}
	x.pause()
	x.w.net.turn(x.name, r, calm)
	if err := x.wakes(); err != nil {
		return err
	}
	if x.r.IntN(60) == 0 {
		if err := x.restart(); err != nil {
			return err
		}
	}
	if line := x.command(); line != "" {
		in, err := session.Command(line)
		if err != nil {
			return err
		}
		done, err := x.sends([]*act{{in: in}})
		if err == nil {
			_, _, err = x.reply(done[0])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return x.talks(r, calm)
}

// talks sends messages. What the model said must be read; when all is calm, it must have answered each of them.
func (x *talk) talks(r *rand.Rand, calm bool) error {
	acts := x.acts()
	before := x.amends()
	since, err := x.standing()
	if err != nil {
		return err
	}
	x.w.net.turn(x.name, r, calm)
	acts, err = x.sends(acts)
	if err != nil {
		return err
	}
	if err := x.answered(acts, calm); err != nil {
		return err
	}
	for _, c := range acts {
		if err := x.amended(c); err != nil {
			return err
		}
	}
	if leaked := x.w.net.leaks(); leaked != "" {
		return errors.New(leaked)
	}
	if calm {
		return x.corrected(before)
	}
	return x.unharmed(since)
}

// ending is how the turn of a message ended.
type ending struct {
	reply   tidemark.Entry // its ID is empty for one that failed
	failure string
}

// answered holds what became of the messages of a turn against what the model was asked and said. A message that came
// while another one was in work may be answered with that.
func (x *talk) answered(acts []*act, calm bool) error {
	spoken, unread := x.w.net.told()
	amended := map[*utterance]bool{} // they may never have come with the words that they had at first, or at all
	for _, c := range acts {
		amended[c.about] = true
	}
	delete(amended, nil)
	if calm && unread != "" && len(amended) == 0 {
		return errors.New(unread)
	}
	acts = slices.DeleteFunc(slices.Clone(acts), func(c *act) bool { return c.about != nil })
	ends := make([]ending, len(acts)+1)
	for i, c := range acts {
		var err error
		if ends[i].reply, ends[i].failure, err = x.reply(c); err != nil {
			return err
		}
	}
	for i, c := range acts {
		x.says(c.in.Message, true)
		if !amended[c.wrote] && !x.w.net.reached(c.tag) {
			return fmt.Errorf("%s never reached the model whole", c.tag)
		}
		e, newest := ends[i], i == len(acts)-1 && spoken != ""
		if e.failure != "" && (calm || newest) {
			return fmt.Errorf("dead: the model said %.100q, and the turn of %s failed: %s", spoken, c.tag, e.failure)
		}
		if e.reply.ID == "" || e.reply.ID == ends[i+1].reply.ID {
			continue
		}
		m, err := e.reply.Message()
		if err != nil {
			return err
		}
		if text := m.PlainText(); newest && !strings.Contains(text, strings.TrimSpace(spoken)) || calm && !amended[c.wrote] && !strings.Contains(text, c.tag) {
			return fmt.Errorf("%s: the model said %q, and what people read is %q", c.tag, spoken, text)
		}
		x.says(m, false)
	}
	return nil
}

// told is what the model said last in a turn.
func (a *api) told() (spoken, unread string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spoken, a.unread
}

// line is something that was said.
type line struct {
	hash   tidemark.Hash
	what   string
	person bool
}

// says takes down what was said.
func (x *talk) says(m tidemark.Message, person bool) {
	x.said = append(x.said, line{hashOf(m), fmt.Sprintf("%.60s", m.PlainText()), person})
}

func hashOf(m tidemark.Message) tidemark.Hash { return tidemark.HashOf(m.AppendJSON(nil)) }

// last asks a last time, and holds the log against what was said.
func (x *talk) last(r *rand.Rand) error {
	if err := x.talks(r, true); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	at, times := 0, map[tidemark.Hash]int{}
	for e, err := range x.s.Reader.All(x.w.t.Context(), true) {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		m, err := e.Message()
		if err != nil {
			return err
		}
		h := hashOf(m)
		if times[h]++; at < len(x.said) && h == x.said[at].hash {
			at++
		}
	}
	if at < len(x.said) {
		return fmt.Errorf("the log lacks message %d of %d in its place: %s", at, len(x.said), x.said[at].what)
	}
	for _, l := range x.said {
		if l.person && times[l.hash] != 1 {
			return fmt.Errorf("the log has a message %d times: %s", times[l.hash], l.what)
		}
	}
	return x.keptBoth()
}

//go:build !js

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// crowd is some talkers on one server.
type crowd struct {
	t       *testing.T
	at      address
	talkers []*talker
	ended   atomic.Bool
	wg      sync.WaitGroup
}

// talk says one thing after the other until the crowd is told to end: mostly messages, some of which
// make the model use tools, now and then a command.
func (c *crowd) talk(k *talker, name string, rng *rand.Rand) {
	defer c.wg.Done()
	for n := 0; !c.ended.Load(); n++ {
		id := fmt.Sprintf("%s-%05d", name, n)
		in := input{id: id, kind: "messages", text: long(id), how: []string{wait, leave, leave, stream}[rng.IntN(4)]}
		switch p := rng.IntN(100); {
		case p < 6:
			in.kind, in.text = "reset", "asked by "+name
		case p < 12:
			in.kind, in.text = "compact", "keep what "+name+" said"
		case p < 25:
			in.text = wantLook + in.text
		case p < 33:
			in.text = wantEdit + in.text
		}
		k.deliver(in)
	}
}

// start lets two talkers speak in each session.
func (c *crowd) start(seed uint64, sessions ...string) {
	const perSession = 2
	for i := range perSession * len(sessions) {
		k := newTalker(c.t, &c.at, sessions[i/perSession])
		c.talkers = append(c.talkers, k)
		c.wg.Add(1)
		go c.talk(k, fmt.Sprintf("t%d", i), rand.New(rand.NewPCG(seed, uint64(i))))
	}
}

// end lets everyone finish what they are saying, and then each session what it was told.
func (c *crowd) end(sessions ...string) {
	c.ended.Store(true)
	c.wg.Wait()
	for i, key := range sessions {
		k := newTalker(c.t, &c.at, key)
		c.talkers = append(c.talkers, k)
		k.deliver(input{id: fmt.Sprintf("last-%d", i), kind: "messages", text: "the last message", how: wait})
	}
}

// TestKillRandom kills the server at random moments of turns, compactions, resets and starts, while
// clients go on, and counts what they were promised against what is there.
func TestKillRandom(t *testing.T) {
	n := kills(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	sessions := []string{"main", "garden", "agent:main:api:dm:peer", "agent:work:main"}
	var ids atomic.Int64
	m := newModel(t, &ids, 3*time.Millisecond)
	f := newFixture(t, m.URL, nil)
	c := &crowd{t: t}
	c.start(seed, sessions...)
	for i := range n {
		const perModel = 20 // it keeps what it was asked
		if i > 0 && i%perModel == 0 {
			m.Close()
			m = newModel(t, &ids, 3*time.Millisecond)
			f.configure(m.URL, nil)
		}
		f.killSoon(c, rng)
		if t.Failed() {
			break
		}
	}
	s := f.serve()
	c.at.set(s.url)
	c.end(sessions...)
	f.settled(s, sessions...)
	s.stop()
	e := inspect(t, f)
	e.account(c.talkers, n)
	if e.compactions+e.resets == 0 || n >= 100 && (e.compactions == 0 || e.resets == 0) { // of few kills on a busy machine one is enough
		t.Errorf("the run proves little: %s", e)
	}
}

// killSoon starts a server and kills it at a random moment: one in six while it starts.
func (f *fixture) killSoon(c *crowd, rng *rand.Rand) {
	f.t.Helper()
	s := f.launch()
	if rng.IntN(6) == 0 {
		time.Sleep(time.Duration(rng.IntN(80)) * time.Millisecond)
	} else {
		if !s.ready() {
			f.t.Fatalf("the server did not start:\n%s", s.log)
		}
		c.at.set(s.url)
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
	}
	c.at.set("")
	s.kill()
}

// settled holds what the API must say of sessions whose work is done.
func (f *fixture) settled(s *server, sessions ...string) {
	t := f.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, key := range sessions {
		path := "/v1/sessions/" + url.PathEscape(key)
		var info struct {
			Busy string `json:"busy"`
		}
		for {
			if err := get(ctx, s.url, path, &info); err != nil {
				t.Fatalf("session %s: %v\n%s", key, err, s.log)
			}
			if info.Busy == "" {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		var view []tidemark.Message
		if err := get(ctx, s.url, path+"/view?messages=1", &view); err != nil {
			t.Errorf("view of %s: %v", key, err)
		} else if err := tidemark.Check(view); err != nil {
			t.Errorf("view of %s: %v", key, err)
		}
	}
	var verdict struct {
		OK, Bad int
	}
	if err := call(ctx, "POST", s.url, "/v1/agents/main/archives-verify", "{}", &verdict); err != nil || verdict.Bad > 0 {
		t.Errorf("verify archives: %d good, %d bad, %v", verdict.OK, verdict.Bad, err)
	}
}

// account counts what talkers were promised against what is in the logs, and reports it on one line.
func (e *estate) account(talkers []*talker, kills int) {
	e.t.Helper()
	var acknowledged, lost, duplicated, foreign int
	by := map[tidemark.Key][]*talker{}
	for _, k := range talkers {
		key, err := tidemark.ParseKey(k.key)
		if err != nil {
			e.t.Fatal(err)
		}
		by[key] = append(by[key], k)
	}
	for key, ks := range by {
		there := count(e.inputs[key])
		sent := map[string]bool{}
		for _, k := range ks {
			acknowledged += len(k.acknowledged)
			for _, id := range k.acknowledged {
				if there[id] == 0 {
					lost++
					e.t.Errorf("session %s: input %s was acknowledged and is lost", key, id)
				}
			}
			for _, id := range k.sent {
				sent[id] = true
			}
			e.ordered(key, k)
		}
		for id, n := range there {
			if n > 1 {
				duplicated += n - 1
				e.t.Errorf("session %s: input %s is there %d times", key, id, n)
			}
			if !sent[id] {
				foreign++
				e.t.Errorf("session %s: input %s is not one of its own", key, id)
			}
		}
	}
	for _, s := range e.stuck {
		e.t.Errorf("stuck: %s", s)
	}
	for _, text := range e.failures {
		if !strings.Contains(text, "begun 3 times and cut off") {
			e.t.Errorf("a run ended with %q, which no kill explains", text)
		}
	}
	n := e.count
	n.kills.Add(int64(kills))
	n.acknowledged.Add(int64(acknowledged))
	n.lost.Add(int64(lost))
	n.duplicated.Add(int64(duplicated))
	n.stuck.Add(int64(len(e.stuck)))
	e.t.Logf("kills=%d acknowledged=%d lost=%d duplicated=%d stuck=%d %s", kills, acknowledged, lost, duplicated, len(e.stuck), e)
}

// tally is what all tests of a kind of server came to.
type tally struct{ kills, acknowledged, lost, duplicated, stuck atomic.Int64 }

var binaryTally, workerTally tally

func (n *tally) String() string {
	return fmt.Sprintf("kills=%d acknowledged=%d lost=%d duplicated=%d stuck=%d", n.kills.Load(), n.acknowledged.Load(), n.lost.Load(), n.duplicated.Load(), n.stuck.Load())
}

// ordered holds that what one talker said stands in the log in the order in which it was said.
func (e *estate) ordered(key tidemark.Key, k *talker) {
	var got []string
	for _, id := range e.inputs[key] {
		if slices.Contains(k.sent, id) {
			got = append(got, id)
		}
	}
	if want := slices.DeleteFunc(slices.Clone(k.sent), func(id string) bool { return !slices.Contains(got, id) }); !slices.Equal(got, want) {
		e.t.Errorf("session %s: inputs stand in the order %q", key, got)
	}
}

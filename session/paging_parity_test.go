package session_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// recorded is what a request told of paging.
type recorded struct {
	stubs, faults []string // by the id of the call; images by their message and block
	zone          string
}

// export writes the conversation as a line for a replay: request k is all before the reply to it. names are the entries
// of its messages.
func (d *desk) export() (line []byte, names []string) {
	d.t.Helper()
	type step struct {
		Append []json.RawMessage `json:"append"`
		Usage  *tidemark.Usage   `json:"usage,omitempty"`
	}
	var steps []step
	now := step{Append: []json.RawMessage{}}
	for e, err := range d.Reader.All(d.t.Context(), true) {
		if err != nil {
			d.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			d.t.Fatal(err)
		}
		if m.Role == tidemark.Assistant {
			if e.Call != nil && e.Call.Reported {
				now.Usage = &e.Call.Usage
			}
			steps, now = append(steps, now), step{Append: []json.RawMessage{}}
		}
		now.Append, names = append(now.Append, m.AppendJSON(nil)), append(names, string(e.ID))
	}
	line, err := json.Marshal(map[string]any{"session": "live", "steps": steps})
	if err != nil {
		d.t.Fatal(err)
	}
	return line, names
}

// live is what the requests of the session told.
func (d *desk) live() []recorded {
	d.t.Helper()
	var out []recorded
	records := d.anatomies()
	for n, req := range d.model.calls {
		r := recorded{zone: records[n].Paging.Zone, faults: []string{}}
		for id := range stubs(req) {
			r.stubs = append(r.stubs, id)
		}
		for _, m := range req.Messages {
			for _, b := range m.Content {
				if b.Type == tidemark.TypeToolUse && bytes.Contains(b.Input, []byte(`"paged_out":`)) {
					r.stubs = append(r.stubs, "input "+b.ID)
				}
			}
		}
		for _, f := range records[n].Paging.Faults {
			r.faults = append(r.faults, f.Call+" of "+f.Of)
		}
		slices.Sort(r.stubs)
		out = append(out, r)
	}
	return out
}

// replayed is what a replay of the line tells. A line has no names that recall would know, so they are given to it.
func replayed(t *testing.T, line []byte, names []string, o paging.Options) []recorded {
	t.Helper()
	s, err := (&paging.Scanner{Tools: paging.DefaultTools()}).Session(line)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Steps {
		for n := range s.Steps[i].Append {
			s.Steps[i].Append[n].Handle, names = names[0], names[1:]
		}
	}
	var zones []string
	r := paging.Replay{Options: o, Keep: true, Each: func(d *paging.Decision) { zones = append(zones, d.Zone.String()) }}
	if err := r.Run(s); err != nil {
		t.Fatal(err)
	}
	var told struct {
		Requests []struct {
			Stub  []string `json:"stub"`
			Input []string `json:"stub_input"`
			Fault []struct {
				ID string `json:"id"`
				Of string `json:"of"`
			} `json:"fault"`
		} `json:"requests"`
	}
	if err := json.Unmarshal(r.Line, &told); err != nil {
		t.Fatal(err)
	}
	var out []recorded
	for n, q := range told.Requests {
		rec := recorded{stubs: slices.Clone(q.Stub), zone: zones[n], faults: []string{}}
		for _, id := range q.Input {
			rec.stubs = append(rec.stubs, "input "+id)
		}
		for _, f := range q.Fault {
			rec.faults = append(rec.faults, f.ID+" of "+f.Of)
		}
		slices.Sort(rec.stubs)
		out = append(out, rec)
	}
	return out
}

// TestLiveEqualsReplay: a session decides as a replay of the same session does, request by request: what is out, what
// is a fault, and the zone; with and without usage that the provider reports, and when a life of the session ends in
// the middle and the next one has kept nothing.
func TestLiveEqualsReplay(t *testing.T) {
	for n, policy := range paging.Policies() {
		for _, reported := range []bool{false, true} {
			if n > 0 && (reported == (n%2 == 0) || testing.Short()) { // the default both ways, each other one way
				continue
			}
			t.Run(fmt.Sprintf("%s reported=%v", policy, reported), func(t *testing.T) {
				t.Parallel()
				liveEqualsReplay(t, policy, reported)
			})
		}
	}
}

func liveEqualsReplay(t *testing.T, policy string, reported bool) {
	p := func() *compaction.Paging { return &compaction.Paging{Policy: policy} }
	d := newDesk(t, paged, p())
	rng := rand.New(rand.NewPCG(11, 4))
	for i := range 8 {
		d.file(fmt.Sprintf("f%d.go", i), 20+20*(i%4))
	}
	var fixed tidemark.Tokens
	d.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		if v, err := d.View(t.Context()); err == nil && fixed == 0 {
			fixed = v.Fixed
		}
		m, err := d.play(n, req)
		d.model.usage = tidemark.Usage{}
		if sent := tidemark.Tokens(len(canonical(t, req))); reported {
			d.model.usage = tidemark.Usage{Input: sent / 10, CacheRead: sent / 5, Output: 40}
		}
		return m, err
	})
	for turn := range 36 {
		line := fmt.Sprintf("read f%d.go", rng.IntN(8))
		switch rng.IntN(8) {
		case 0:
			line = fmt.Sprintf("write f%d.go", rng.IntN(8))
		case 1:
			line = "what does f" + fmt.Sprint(rng.IntN(8)) + ".go say?"
		case 2:
			line = fmt.Sprintf("read f%d.go,f%d.go,none.go", rng.IntN(8), rng.IntN(8))
		case 3:
			if len(d.model.calls) > 0 {
				for _, stub := range stubs(d.request(-1)) {
					line = "recall " + handleIn(t, stub)
				}
			}
		}
		if got := d.say(line); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		if turn%15 == 7 {
			d.again(p())
		}
	}
	got := d.live()
	line, names := d.export()
	want := replayed(t, line, names, paging.Options{Policy: policy, Window: d.Budget().Window, Fixed: fixed})
	if len(got) != len(want) {
		t.Fatalf("%d requests, replayed %d", len(got), len(want))
	}
	out, faults, zones := 0, 0, map[string]int{}
	for n := range got {
		if !slices.Equal(got[n].stubs, want[n].stubs) || !slices.Equal(got[n].faults, want[n].faults) || got[n].zone != want[n].zone {
			t.Fatalf("request %d of %d:\n live   %+v\n replay %+v", n, len(got), got[n], want[n])
		}
		out, faults = max(out, len(got[n].stubs)), faults+len(got[n].faults)
		zones[got[n].zone]++
	}
	if out < 5 || len(zones) < 2 {
		t.Errorf("at most %d out, %d faults, zones %v: the session shows nothing", out, faults, zones)
	}
	t.Logf("%d requests, at most %d out, %d faults, zones %v", len(got), out, faults, zones)
}

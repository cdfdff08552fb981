package paging

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// rawStep is a step of a session with its messages as they came.
type rawStep struct {
	Keep   *int
	Append []json.RawMessage
}

// sent is a request as it goes out: the messages with the stubs in their places, as a compact list.
func sent(t *testing.T, history []json.RawMessage, stubs []*Page) []byte {
	t.Helper()
	all := append([]json.RawMessage(nil), history...)
	for _, g := range stubs {
		var m struct{ Content []json.RawMessage }
		if err := json.Unmarshal(history[g.Message], &m); err != nil {
			t.Fatal(err)
		}
		block := m.Content[g.Block]
		var b struct{ Content, Input json.RawMessage }
		if err := json.Unmarshal(block, &b); err != nil {
			t.Fatal(err)
		}
		var with []byte
		switch g.Part {
		case Result:
			stub, _ := json.Marshal(g.Stub(""))
			with = bytes.Replace(block, append([]byte(`"content":`), b.Content...), append([]byte(`"content":`), stub...), 1)
		case Input:
			stub := DefaultTools().StubInput(g.Call.Tool, "", b.Input)
			with = bytes.Replace(block, append([]byte(`"input":`), b.Input...), append([]byte(`"input":`), stub...), 1)
		case Image:
			text, _ := json.Marshal(g.Stub(""))
			with = append(append([]byte(`{"type":"text","text":`), text...), '}')
		}
		if bytes.Equal(with, block) {
			t.Fatalf("nothing is replaced for %s %s in %s", g.Part, g.ID, block)
		}
		all[g.Message] = bytes.Replace(all[g.Message], block, with, 1)
	}
	list := []byte("[")
	for i, m := range all {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, m...)
	}
	return append(list, ']')
}

// TestNaive: the sizes of requests, and how much of one is as the request before, are those of the requests written
// out in full.
func TestNaive(t *testing.T) {
	parts := [3]int{}
	for seed := range uint64(tidemarktest.Rounds(40)) {
		line := randomLine(seed, 25)
		var raw struct{ Steps []rawStep }
		if err := json.Unmarshal(line, &raw); err != nil {
			t.Fatal(err)
		}
		for _, name := range some(t, Policies()) {
			sc := Scanner{Tools: DefaultTools()}
			s, err := sc.Session(line)
			if err != nil {
				t.Fatal(err)
			}
			if seed%2 == 1 { // the model takes part, and what is out stays out behind most cuts
				s = helped(s, seed)
			}
			p, _ := New(Options{Policy: name, Tau: 1 + int(seed%3), MinBytes: 300})
			var history []json.RawMessage
			var before, whole []byte
			for n, st := range s.Steps {
				if k := raw.Steps[n].Keep; k != nil {
					history = history[:*k:*k]
				}
				history = append(history, raw.Steps[n].Append...)
				d, err := p.Step(st)
				if err != nil {
					t.Fatal(err)
				}
				for _, g := range p.Stubs() {
					parts[g.Part]++
				}
				out, in := sent(t, history, p.Stubs()), sent(t, history, nil)
				if d.Out != len(out) || d.In != len(in) {
					t.Fatalf("seed %d %s request %d: %d of %d bytes, want %d of %d", seed, name, n, d.Out, d.In, len(out), len(in))
				}
				same, sameIn := sameBegin(out, before), sameBegin(in, whole)
				cut := st.Cut && d.Same <= same && d.SameIn <= sameIn // of messages that came again only the first is looked at
				if n > 0 && !cut && (d.Same != same || d.SameIn != sameIn) {
					t.Fatalf("seed %d %s request %d: %d and %d bytes as before, want %d and %d", seed, name, n, d.Same, d.SameIn, same, sameIn)
				}
				before, whole = out, in
			}
		}
	}
	if min(parts[Result], parts[Input], parts[Image]) < 10 {
		t.Errorf("results, inputs and images were out %v times: too seldom to show anything", parts)
	}
}

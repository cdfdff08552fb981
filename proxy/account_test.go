package proxy

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// pages are so many.
func pages(n int) []*paging.Page { return make([]*paging.Page, n) }

// TestRecordOf: all that is told of an exchange, each figure another one.
func TestRecordOf(t *testing.T) {
	first, last := tidemark.Usage{Input: 100, CacheRead: 20, Output: 3}, tidemark.Usage{Input: 400, Output: 5}
	turn := stream.Turn{Stop: "end_turn", Usage: first.Add(last), Legs: []stream.Leg{{Usage: first, ID: "m1", Model: "a"}, {Usage: last, ID: "m2", Model: "b"}}}
	made := func(treatment string) *Exchange {
		return &Exchange{c: &Conversation{Config: Config{Runtime: still{}, Settings: Settings{Window: 4_000}}}, ask: Ask{Body: make([]byte, 70)}, treatment: treatment, why: "since",
			req: &body.Request{Model: "asked"}, path: make([]*node, 5), legs: 2, phantom: 3, sent: 60, zone: paging.Involuntary, size: 900, tau: 6,
			track: &track{sum: paging.Sum{Calls: 1000, Evicted: 1100, Collected: 1200, Inputs: 1300, Images: 1400, Faults: 1500, Pins: 1600, In: 1700, Sent: 1800}},
			plan: plan{trimmed: 11, stubs: []stubbed{{page: &paging.Page{Size: 200}}, {page: &paging.Page{Size: 33}}}, episodes: episodes.Account{Budget: 50, Size: 49, Whole: 2},
				decision: paging.Decision{Evict: pages(7), GC: pages(8), Input: pages(9), Image: pages(10), Pin: pages(12), Unpin: pages(13),
					Fault: []paging.Fault{{ID: "f1", Of: &paging.Page{ID: "o1", Call: paging.Call{Path: "a.go"}}}, {ID: "f2", Of: &paging.Page{ID: "o2"}}}}}}
	}
	sum := paging.Sum{Calls: 1001, Evicted: 1107, Collected: 1208, Inputs: 1309, Images: 1410, Faults: 1502, Pins: 1612, In: 1770, Sent: 1860}
	want := Record{At: still{}.Now(), Treatment: Page, Untouched: "since", Requested: "asked", Legs: 2, Messages: 5, Window: 4_000, Phantom: 3, Trimmed: 11, First: first, Newest: last,
		Call: tidemark.Call{Model: "b", Requested: "asked", Stop: "end_turn", RequestID: "m2", Usage: tidemark.Usage{Input: 500, CacheRead: 20, Output: 8}, Reported: true},
		Account: paging.Account{Zone: "involuntary", Size: 900, Tau: 6, Stubs: 2, Out: 233, Evicted: 7, Collected: 8, Inputs: 9, Images: 10, Pins: 12, In: 70, Sent: 60,
			Faults: []paging.Faulted{{Call: "f1", Of: "o1", Path: "a.go"}, {Call: "f2", Of: "o2"}}, Totals: sum}}
	x := made(Page)
	if got := x.recordOf(turn); !reflect.DeepEqual(got, want) || x.track.sum != sum {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	want.Treatment, want.Size, want.Episodes = EpisodesTrim, 49, &episodes.Account{Budget: 50, Size: 49, Whole: 2}
	if got := made(EpisodesTrim).recordOf(turn); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	want.First, want.Newest, want.Call = tidemark.Usage{}, tidemark.Usage{}, tidemark.Call{Requested: "asked"}
	if got := made(EpisodesTrim).recordOf(stream.Turn{}); !reflect.DeepEqual(got, want) {
		t.Errorf("of no answer %+v\nwant\n%+v", got, want)
	}
}

// TestStepUsage: a request has what was reported of its own call, and what all calls said; where its own was not reported, all that
// was.
func TestStepUsage(t *testing.T) {
	leg := func(in tidemark.Tokens, reported bool) stream.Leg {
		return stream.Leg{Usage: tidemark.Usage{Input: in, Output: 1}, Reported: reported}
	}
	all := tidemark.Usage{Input: 900, CacheRead: 7, Output: 12}
	for _, row := range []struct {
		legs []stream.Leg
		want tidemark.Usage
	}{
		{nil, all},
		{[]stream.Leg{leg(100, true)}, tidemark.Usage{Input: 100, Output: 12}},
		{[]stream.Leg{leg(100, true), leg(200, true)}, tidemark.Usage{Input: 100, Output: 12}},
		{[]stream.Leg{leg(0, false), leg(200, true)}, all},
	} {
		if got := stepUsage(stream.Turn{Usage: all, Legs: row.legs}); *got != row.want {
			t.Errorf("%+v: %+v, want %+v", row.legs, *got, row.want)
		}
	}
}

// TestAnswered: a track tells of the requests up to its newest that is stored, if that is one of its own.
func TestAnswered(t *testing.T) {
	steps := func(s string) (out []*step) {
		for i := range s {
			out = append(out, &step{n: i, stored: s[i] == 's'})
		}
		return out
	}
	for _, row := range []struct {
		base  string
		after int
		own   string
		want  int
	}{{"", 0, "", 0}, {"", 0, ".", 0}, {"", 0, "s", 1}, {"", 0, "s.s.", 3}, {"ss", 2, "", 0}, {"ss", 2, "..", 0}, {"ss", 2, ".s.", 4}, {"s..", 1, "s", 2}, {"sss", 9, "s", 4}} {
		tr := &track{steps: steps(row.own)}
		if row.base != "" {
			tr.base, tr.after = &track{steps: steps(row.base)}, row.after
		}
		if got := tr.answered(); len(got) != row.want || row.want > 0 && !got[len(got)-1].stored {
			t.Errorf("%+v: %d requests", row, len(got))
		}
	}
}

// scanned is a request with these tools.
func scanned(t *testing.T, more string, tools ...string) *body.Request {
	t.Helper()
	for i, name := range tools {
		tools[i] = `{"name":"` + name + `","description":"Does it. ` + strings.Repeat("And more of that. ", 40) + `","input_schema":{"type":"object","properties":{"file_path":{"type":"string","description":"` +
			strings.Repeat("which ", 40) + `"}},"required":["file_path"]}}`
	}
	r, err := body.Scan(body.Messages, []byte(`{"model":"m","tools":[`+strings.Join(tools, ",")+`],"messages":[{"role":"user","content":"q"}]`+more+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWhatBreaks: the definition of a tool that was called is whole again with a request whose prefix is another one anyway: the first
// of a track, one with which something leaves, of whatever kind; and of those that are whole nothing is noted twice.
func TestWhatBreaks(t *testing.T) {
	for _, row := range []struct {
		name      string
		treatment string
		requests  int
		left      paging.Decision
		act       *act
		want      bool
	}{
		{"the first request", Trim, 1, paging.Decision{}, nil, true},
		{"nothing left", Trim, 2, paging.Decision{}, nil, false},
		{"a result left", Trim, 2, paging.Decision{Evict: pages(1)}, nil, true},
		{"garbage left", Trim, 2, paging.Decision{GC: pages(1)}, nil, true},
		{"an input left", Trim, 2, paging.Decision{Input: pages(1)}, nil, true},
		{"an image left", Trim, 2, paging.Decision{Image: pages(1)}, nil, true},
		{"something was pinned", Trim, 2, paging.Decision{Pin: pages(1), Unpin: pages(1)}, nil, false},
		{"episodes left", Trim, 2, paging.Decision{}, &act{}, true},
		{"pages are not what leaves", EpisodesTrim, 2, paging.Decision{Evict: pages(1)}, nil, false},
		{"the first request of episodes", EpisodesTrim, 1, paging.Decision{}, nil, true},
		{"episodes left, and nothing else may", EpisodesTrim, 2, paging.Decision{}, &act{}, true},
	} {
		config := Config{Key: "k", Runtime: still{}, Settings: Settings{Window: 100_000}}
		x := &Exchange{c: &Conversation{Config: config, tree: newTree(config)}, treatment: row.treatment, req: scanned(t, "", "Read", "Grep", "Write"), step: &step{}, act: row.act}
		one, it := &node{parent: x.c.tree.root, depth: 1, role: tidemark.User, asks: true, form: shape("c"), work: &work{}}, x.req.Items[0]
		x.path, x.sums = []*node{one}, append(x.sums, one.sum)
		one.msg, one.form = paging.Message{Blocks: []paging.Block{{Call: paging.Call{Tool: "Grep"}}, {}}}, formOf(it)
		track := newTrack(0)
		track.steps, track.tools, track.whole, x.of = make([]*step, row.requests), map[string]bool{"Read": true, "Bash": true}, map[string]bool{"Bash": true}, track
		x.change(track, row.left)
		want, noted := []string{"Bash"}, []string(nil)
		if row.want {
			want, noted = []string{"Bash", "Grep", "Read"}, []string{"Grep", "Read"}
		}
		if got := slices.Sorted(maps.Keys(track.whole)); !slices.Equal(got, want) || !slices.Equal(x.step.whole, noted) || x.filter == nil {
			t.Errorf("%s: whole are %v, of which new %v", row.name, got, x.step.whole)
		}
		if size := len(x.req.Tools[2].Raw); x.plan.trimmed < size/2 || (x.plan.trimmed > 3*size/2) == row.want {
			t.Errorf("%s: %d bytes less, a definition has %d", row.name, x.plan.trimmed, size)
		}
	}
}

// TestOffer: what of our tools goes with a request: none where the model may not call any or takes no part, and none that the client
// has by that name; of some all or none go.
func TestOffer(t *testing.T) {
	for _, row := range []struct {
		name  string
		req   *body.Request
		alone bool
		all   bool
		want  string
	}{
		{"none of the name", scanned(t, "", "look"), false, true, "[memory_fault delimiter]"},
		{"no tools", scanned(t, ""), false, false, "[]"},
		{"none is to be called", scanned(t, `,"tool_choice":{"type":"none"}`, "look"), false, false, "[]"},
		{"the model takes no part", scanned(t, "", "look"), true, false, "[]"},
		{"one of the name, all or none", scanned(t, "", "look", "delimiter"), false, true, "[]"},
		{"one of the name", scanned(t, "", "memory_fault"), false, false, "[delimiter]"},
		{"both of the name", scanned(t, "", "delimiter", "memory_fault"), false, false, "[]"},
	} {
		x := &Exchange{c: &Conversation{Config: Config{Settings: Settings{Alone: row.alone}}}, treatment: Episodes, req: row.req}
		x.offer(row.all, paging.FaultTool, episodes.ToolName)
		if got := fmt.Sprint(x.plan.tools); got != row.want || len(x.plan.tools) != len(x.plan.change.Tools) {
			t.Errorf("%s: %s, %d definitions", row.name, got, len(x.plan.change.Tools))
		}
		size := 0
		for i, name := range x.plan.tools {
			size += len(x.plan.change.Tools[i])
			if !x.plan.offered(name) || !bytes.Contains(x.plan.change.Tools[i], []byte(`"name":"`+name+`"`)) {
				t.Errorf("%s: %s is defined as %s", row.name, name, x.plan.change.Tools[i])
			}
		}
		if x.plan.ours() != size || x.plan.offered("look") {
			t.Errorf("%s: ours are %d bytes, want %d", row.name, x.plan.ours(), size)
		}
	}
}

// TestDefinitions: each of our tools is defined as the API wants it, and says what left by its own words.
func TestDefinitions(t *testing.T) {
	for _, row := range []struct {
		name  string
		marks bool
		says  []string
		names string // what a path may be
	}{
		{paging.ReleaseTool, false, []string{"done with", "memory_fault"}, "Paths of files, or handles"},
		{paging.FaultTool, false, []string{"[Paged out: …]"}, "Paths of files, or handles"},
		{paging.FaultTool, true, []string{"[Evicted …]"}, "Evicted episodes such as episode:NAME, paths of files, or handles"},
		{episodes.ToolName, true, []string{episodes.Description}, ""},
	} {
		var d struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Schema      struct {
				Type       string   `json:"type"`
				Required   []string `json:"required"`
				Properties map[string]struct {
					Type        string `json:"type"`
					Description string `json:"description"`
				} `json:"properties"`
			} `json:"input_schema"`
		}
		if err := json.Unmarshal(phantom(row.name, row.marks), &d); err != nil {
			t.Fatalf("%s: %v: %s", row.name, err, phantom(row.name, row.marks))
		}
		if d.Name != row.name || d.Schema.Type != "object" || row.names != "" && (!slices.Equal(d.Schema.Required, []string{"paths"}) || d.Schema.Properties["paths"].Type != "array" ||
			!strings.HasPrefix(d.Schema.Properties["paths"].Description, row.names)) {
			t.Errorf("%s: %+v", row.name, d)
		}
		for _, s := range row.says {
			if !strings.Contains(d.Description, s) {
				t.Errorf("%s does not say %q: %s", row.name, s, d.Description)
			}
		}
	}
}

package proxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// TestOpenFills: what the settings leave open is filled in, and what they say stays.
func TestOpenFills(t *testing.T) {
	for window, want := range map[tidemark.Tokens]tidemark.Tokens{-1: 200_000, 0: 200_000, 1: 1, 20_000: 20_000} {
		c, err := Open(t.Context(), Config{Key: "k", DB: hosttest.DB(t), Runtime: still{}, Settings: Settings{Window: window}})
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Settings; s.Window != want || s.Treatment != Page || s.Tools == nil || !s.Episodes.Tools.Known() || c.Logger == nil || !c.Idle() {
			t.Errorf("a window of %d: %+v", window, s)
		}
	}
	tools := paging.Tools{"peek": {Kind: paging.Reads}}
	levels := episodes.DefaultTools(nil).With(map[string]episodes.Level{"peek": episodes.Bulk})
	c, err := Open(t.Context(), Config{Key: "k", DB: hosttest.DB(t), Settings: Settings{Treatment: Trim, Tools: tools, Episodes: EpisodeSettings{Tools: levels}}})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Settings; s.Treatment != Trim || len(s.Tools) != 1 || s.Episodes.Tools.Level("peek", nil) != episodes.Bulk {
		t.Errorf("what was said is %+v", s)
	}
}

// TestTakeStep: a request adds to its track what that has not; one that adds nothing to the last, which has no answer, is that one
// again; one that leaves the track in its middle says how much of it stays.
func TestTakeStep(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(t *track, path []*node)
		known  int  // messages of the request
		same   bool // it is the last step again
		cut    bool
		keep   int
		adds   string // entries
	}{
		{"it goes on", func(*track, []*node) {}, 4, false, false, 0, "[e2 e3]"},
		{"the same again", func(*track, []*node) {}, 2, true, false, 0, ""},
		{"the same, that was answered", func(t *track, _ []*node) { t.steps[0].answered = true }, 2, false, false, 0, "[]"},
		{"the same, and something is let go", func(t *track, _ []*node) { t.release = []string{"r"} }, 2, false, false, 0, "[]"},
		{"the same, and something is kept", func(t *track, _ []*node) { t.anchor = []string{"a"} }, 2, false, false, 0, "[]"},
		{"the first", func(t *track, _ []*node) { t.steps = nil }, 2, false, false, 0, "[e0 e1]"},
		{"one behind a cut", func(t *track, p []*node) {
			t.steps = append(t.steps, &step{cut: true, keep: 1, nodes: p[1:3]})
		}, 4, false, false, 0, "[e3]"},
		{"the first of a track in the middle of another", func(t *track, p []*node) {
			t.base, t.after, t.from, t.steps = &track{steps: []*step{{nodes: p[:3]}}}, 1, p[0], nil
		}, 4, false, true, 1, "[e1 e2 e3]"},
		{"the first of a track at the end of another", func(t *track, p []*node) {
			t.base, t.after, t.from, t.steps = &track{steps: []*step{{nodes: p[:3]}}}, 1, p[2], nil
		}, 4, false, false, 0, "[e3]"},
		{"the first of a track that has less", func(t *track, p []*node) {
			t.base, t.after, t.from, t.steps = &track{steps: []*step{{nodes: p[:1]}}}, 1, p[2], nil
		}, 4, false, false, 0, "[e1 e2 e3]"},
		{"one whose track has more", func(t *track, p []*node) { t.steps[0].nodes, t.steps[0].answered = p[:3], true }, 2, false, false, 0, "[]"},
	} {
		x, tr := exchangeOf(t, nil, mixed[:4]...), newTrack(0)
		x.c.Settings.Tools, x.req.Model, x.req.Fixed = paging.DefaultTools(), "m", 9
		tr.steps = []*step{{nodes: x.path[:2]}}
		row.change(tr, x.path)
		x.path = x.path[:row.known]
		before, release, anchor := len(tr.all()), fmt.Sprint(tr.release), fmt.Sprint(tr.anchor)
		s := x.takeStep(tr)
		if row.same {
			if s != tr.steps[len(tr.steps)-1] || len(tr.all()) != before {
				t.Errorf("%s: it is another", row.name)
			}
			continue
		}
		var ids []tidemark.EntryID
		for _, n := range s.nodes {
			if ids = append(ids, n.id); !n.fed {
				t.Errorf("%s: %s is not there for the pager", row.name, n.id)
			}
		}
		if s.cut != row.cut || s.keep != row.keep || fmt.Sprint(ids) != row.adds || s.n != before || s.model != "m" || s.fixed != 9 || tr.steps[len(tr.steps)-1] != s {
			t.Errorf("%s: %+v adds %v, want %s", row.name, s, ids, row.adds)
		}
		if fmt.Sprint(s.release) != release || fmt.Sprint(s.anchor) != anchor || len(tr.release)+len(tr.anchor) > 0 {
			t.Errorf("%s: lets go %v, keeps %v", row.name, s.release, s.anchor)
		}
		st := s.step()
		if st.Cut != s.cut || st.Stay != s.cut || st.Keep != s.keep || len(st.Append) != len(s.nodes) || !slices.Equal(st.Release, s.release) || !slices.Equal(st.Anchor, s.anchor) {
			t.Errorf("%s: the pager takes %+v", row.name, st)
		}
	}
}

// TestFeedUnreadable: what a pager cannot read is a message of its size with nothing that may leave; bytes that are no UTF-8 are
// taken as the log has them.
func TestFeedUnreadable(t *testing.T) {
	scan := paging.Scanner{Tools: paging.DefaultTools()}
	for raw, want := range map[string]struct{ bytes, blocks int }{
		`{"role":"user","parts":[1]}`:               {len(`{"role":"user","parts":[1]}`), 0},
		"{\"role\":\"user\",\"content\":\"a\xff\"}": {len("{\"role\":\"user\",\"content\":\"a\uFFFD\"}"), 0},
	} {
		it, err := body.NewItem([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		n := &node{id: "E", role: it.Role, parent: &node{}}
		if n.feed(&scan, it); n.msg.Bytes != want.bytes || len(n.msg.Blocks) != want.blocks || n.msg.Handle != "E" || n.msg.Role != tidemark.User || !n.fed || string(n.raw) != raw {
			t.Errorf("%q: %d bytes, %d blocks, %+v", raw, n.msg.Bytes, len(n.msg.Blocks), n.msg)
		}
		kept := &node{seq: 7, parent: &node{}, role: it.Role}
		if kept.feed(&scan, it); kept.raw != nil {
			t.Errorf("%q: it is kept though the log has it", raw)
		}
	}
}

// TestVain: a plan that freed nothing is made again when an episode ended, a person asked, or a twentieth of the budget was added;
// what is as large as the budget needs none.
func TestVain(t *testing.T) {
	for _, row := range []struct {
		budget     tidemark.Tokens
		was, after vain
		short      tidemark.Tokens
	}{
		{40, vain{}, vain{size: 100}, 60},
		{40, vain{size: 100}, vain{size: 100}, 60},
		{40, vain{size: 98}, vain{size: 98}, 60},
		{40, vain{size: 97}, vain{size: 100}, 60},
		{40, vain{closed: 1, size: 98}, vain{size: 100}, 60},
		{40, vain{asked: 1, size: 98}, vain{size: 100}, 60},
		{99, vain{}, vain{size: 100}, 1},
		{100, vain{}, vain{}, 0},
	} {
		x, tr := exchangeOf(t, nil, mixed[0]), newTrack(0)
		config := Config{Key: "k", Runtime: still{}, Settings: Settings{Window: 1_000, Episodes: EpisodeSettings{Budget: episodes.Budget{Tokens: row.budget}}}}
		x.c = &Conversation{Config: config, tree: newTree(config)}
		x.path[0].parent, tr.vain = x.c.tree.root, row.was
		x.evict(tr)
		if e := x.plan.episodes; tr.vain != row.after || e != (episodes.Account{Budget: row.budget, Size: 100, Short: row.short}) || x.act != nil {
			t.Errorf("%+v: %+v, %+v", row, tr.vain, e)
		}
	}
}

// TestExploredOnce: explorations that ended are noted for the tracks that come, each once, in the order in which they ended; those that
// are stored are not stored again.
func TestExploredOnce(t *testing.T) {
	g := graphed{graph: episodes.Load(episodes.Tools{}, []episodes.Episode{{Name: "a", Type: episodes.Exploration}, {Name: "b", Type: episodes.Action}, {Type: episodes.Unmarked},
		{Name: "c", Type: episodes.Exploration}, {Name: "d", Type: episodes.Exploration, Open: true}}, 9)}
	var e explored
	e.add("c")
	e.kept = 1
	for range 2 {
		if e.take(&g); fmt.Sprint(e.names) != "[c a]" || g.noted != 4 {
			t.Errorf("%v, %d are noted", e.names, g.noted)
		}
	}
	stmts := e.stmts("k")
	if len(stmts) != 1 || fmt.Sprint(stmts[0].Args) != "[k 1 a]" {
		t.Errorf("stored %+v", stmts)
	}
	e.names, g.noted = make([]string, episodes.MaxEpisodes-1), 0
	delete(e.known, "a")
	delete(e.known, "c")
	if e.take(&g); len(e.names) != episodes.MaxEpisodes || e.names[len(e.names)-1] != "a" {
		t.Errorf("%d are noted, the last %q", len(e.names), e.names[len(e.names)-1])
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/room"
)

// branched is what a session that continues another one stands in: log "own", which continues "base" of another key up to
// its third message; both were reset once before. Messages are named by their log and number.
func branched(t *testing.T, c Config) (s *Session, at map[string]int64) {
	t.Helper()
	s, _ = plain(t, c)
	made := func(i host.Info) {
		i.Created = s.Runtime.Now()
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{s.log.CreateStmt(i)}); err != nil {
			t.Fatal(err)
		}
	}
	at = map[string]int64{}
	said := func(log string, n int) {
		for i := range n {
			name := fmt.Sprint(log, i)
			at[name] = s.says(t, log, name, tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], "of "+name), tidemark.Origin{}, 100)
		}
	}
	made(host.Info{ID: "older", Key: "agent:main:root"})
	said("older", 2)
	made(host.Info{ID: "base", Key: "agent:main:root", Previous: "older"})
	said("base", 3)
	made(host.Info{ID: "own", Key: s.Key, BaseLog: "base", BaseSeq: at["base2"]})
	at["base3"] = s.says(t, "base", "base3", tidemark.NewText(tidemark.Assistant, "since"), tidemark.Origin{}, 100)
	said("own", 2)
	made(host.Info{ID: "newer", Key: "agent:main:root", Previous: "base"})
	said("newer", 1)
	made(host.Info{ID: "leaf", Key: "agent:main:leaf", BaseLog: "own", BaseSeq: at["own1"]})
	said("leaf", 1)
	made(host.Info{ID: "astray", Key: "agent:main:stray", BaseLog: "gone", BaseSeq: 1})
	return s, at
}

// TestLineageOfABranch: a branch looks into its own logs, and what they continue as far as it went when they began; into
// nothing that was said there since, after a reset, or by others.
func TestLineageOfABranch(t *testing.T) {
	s, at := branched(t, Config{})
	ctx, first := t.Context(), s.current(t)
	l, err := s.lineage.Reach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{first: host.LogEnd, "own": host.LogEnd, "base": at["base2"], "older": at["base2"]}
	if !maps.Equal(l.UpTo, want) || !maps.Equal(l.Own, map[string]bool{first: true, "own": true}) || !slices.Equal(l.Keys, []string{"agent:main:main", "agent:main:root"}) || l.Single || l.Key != s.Key || l.Logs != mustJSON(want) || len(l.Ends) != 2 {
		t.Errorf("it reaches %+v", l)
	}
	for name, may := range map[string]bool{"own0": true, "own1": true, "base0": true, "base2": true, "base3": false, "older1": true, "newer0": false, "leaf0": false} {
		log := strings.TrimRight(name, "0123456789")
		if got, err := s.lineage.Reaches(ctx, tidemark.Entry{Log: log, Seq: at[name]}); got != may || err != nil {
			t.Errorf("it reaches %s: %v, %v", name, got, err)
		}
		history := map[string]bool{"own0": true, "own1": true, "base0": true, "base2": true}[name]
		if got, err := s.lineage.OfHistory(ctx, "own", tidemark.Entry{Log: log, Seq: at[name]}); got != history || err != nil {
			t.Errorf("%s is of its history: %v, %v", name, got, err)
		}
	}
	if got, err := s.lineage.Reach(ctx); got != l || err != nil {
		t.Errorf("it is read again, %v", err)
	}
	s.lineage.Forget()
	if got, err := s.lineage.Reach(ctx); got == l || err != nil {
		t.Errorf("it is not read anew behind a reset, %v", err)
	}
	if got, err := s.lineage.For(ctx, true); err != nil || !got.Single || !slices.Equal(got.Keys, []string{"agent:main:main"}) {
		t.Errorf("its own is %+v, %v", got, err)
	}
	if got, err := s.lineage.For(ctx, false); err != nil || got.Single {
		t.Errorf("all of it is %+v, %v", got, err)
	}
	for log, want := range map[string][]string{"own": {"base", "own"}, "leaf": {"base", "leaf", "own"}, "base": {"base"}, "astray": {"astray", "gone"}, "": nil} {
		got, err := s.lineage.Segments(ctx, log)
		if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, want) {
			t.Errorf("%s and what it continues: %q, %v", log, names, err)
		}
	}
	for log, want := range map[string]string{"own": "base", "leaf": "own base", "base": ""} {
		list, err := s.lineage.Bases(ctx, log)
		var names []string
		for _, b := range list {
			names = append(names, b.Log)
		}
		if strings.Join(names, " ") != want || err != nil {
			t.Errorf("%s continues %q, %v", log, names, err)
		}
	}
}

// TestLineageAlone: a conversation that continues none looks into its own logs, and a client's into all of its tracks.
func TestLineageAlone(t *testing.T) {
	s, _ := plain(t, Config{})
	l, err := s.lineage.Reach(t.Context())
	if err != nil || !l.Single || len(l.UpTo) > 0 {
		t.Errorf("it reaches %+v, %v", l, err)
	}
	for log, want := range map[string]bool{s.current(t): true, "aunt-log": false} {
		if got, err := s.lineage.Reaches(t.Context(), tidemark.Entry{Log: log, Seq: 1}); got != want || err != nil {
			t.Errorf("it reaches %s: %v, %v", log, got, err)
		}
	}
	if _, err := s.lineage.Reaches(t.Context(), tidemark.Entry{Log: "gone"}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a log that is gone: %v", err)
	}
	const root = "agent:main:proxy:dm:0123456789abcdef0123456789abcdef"
	for key, want := range map[tidemark.Key]string{root: root + " " + root + "#~", root + "#t2": root + "#t2 " + root + "#t2", "agent:main:main": "agent:main:main agent:main:main"} {
		if got := fmt.Sprintf("%s %s", lineage.Ends(key)...); got != want {
			t.Errorf("the ends of %s are %s", key, got)
		}
	}
	c, _ := plain(t, Config{Key: root})
	for id, key := range map[string]tidemark.Key{"track": root + "#t2", "other": "agent:main:proxy:dm:f"} {
		c.does(t, `INSERT INTO logs(id, key, base_log, base_seq, created) VALUES(?, ?, 'x', 1, 1)`, id, string(key))
	}
	if l, err := c.lineage.Reach(t.Context()); err != nil || !l.Single {
		t.Errorf("a client's reaches %+v, %v", l, err)
	}
	for log, want := range map[string]bool{c.current(t): true, "track": true, "other": false} {
		if got, err := c.lineage.Reaches(t.Context(), tidemark.Entry{Log: log}); got != want || err != nil {
			t.Errorf("a client's reaches %s: %v, %v", log, got, err)
		}
	}
	if list, err := c.lineage.Bases(t.Context(), "track"); list != nil || err != nil {
		t.Errorf("a track continues %+v, %v", list, err)
	}
}

// archivedUpTo is a room that knows how far the archives of a branch's base held its history.
type archivedUpTo int64

func (a archivedUpTo) BaseArchived(_ context.Context, log string) (int64, error) {
	return map[string]int64{"own": int64(a)}[log], nil
}

// TestPartsOfABranch: a branch has the parts of what it continues that were written when it began, and its own; what was only
// begun is none.
func TestPartsOfABranch(t *testing.T) {
	for _, c := range []struct {
		upTo  int64
		rooms bool
		parts string
	}{{3, true, "3 6 9"}, {5, true, "3 5 6 9"}, {4, true, "3 6 9"}, {2, true, "6 9"}, {0, false, "6 9"}} {
		conf := Config{}
		if c.rooms {
			conf.Rooms = []room.Maker{func(room.Ports) any { return archivedUpTo(c.upTo) }}
		}
		s, _ := branched(t, conf)
		s.does(t, `INSERT INTO parts(log, first, last, key, info) VALUES('own', 6, 6, 'c', '{"messageCount":1}'), ('own', 7, 9, 'd', '{"messageCount":2}'), ('own', 10, 20, 'e', ''), ('base', 1, 3, 'a', '{"messageCount":3}'), ('base', 4, 5, 'b', '{"messageCount":4}')`)
		list, err := s.parts.List(t.Context(), "own")
		var lasts []string
		messages := 0
		for _, p := range list {
			lasts, messages = append(lasts, fmt.Sprint(p.Last)), messages+p.Info.Messages
		}
		if got := strings.Join(lasts, " "); got != c.parts || err != nil || messages < 3 {
			t.Errorf("archived up to %d: %s with %d messages, %v; want %s", c.upTo, got, messages, err, c.parts)
		}
		if list, err := s.parts.List(t.Context(), "base"); len(list) != 2 || err != nil {
			t.Errorf("the base has %d parts, %v", len(list), err)
		}
		for upTo, want := range map[int64]int64{5: 0, 6: 6, 8: 6, 9: 9, 100: 9} {
			if c.upTo != 2 {
				break
			}
			if got, err := s.parts.UpTo(t.Context(), "own", upTo); got != want || err != nil {
				t.Errorf("up to %d its archives reach to %d, %v; want %d", upTo, got, err, want)
			}
		}
	}
	s, _ := branched(t, Config{})
	s.does(t, `INSERT INTO parts(log, first, last, key, info) VALUES('own', 6, 6, 'c', '{')`)
	if _, err := s.parts.List(t.Context(), "own"); err == nil || !strings.Contains(err.Error(), "read parts of own") {
		t.Errorf("a part that cannot be read: %v", err)
	}
}

// TestOverlaysOfABranch: a history has the overlays of what it continues, up to where it began, and those of its own.
func TestOverlaysOfABranch(t *testing.T) {
	s, _ := branched(t, Config{})
	put := func(log, reason string) int64 {
		t.Helper()
		id, stmts, err := s.overlayStmts(log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Reason: reason, Edits: []tidemark.Edit{{From: "own0", To: "own1"}}})
		if err == nil {
			err = s.DB.Tx(t.Context(), stmts)
		}
		seqs, bad := s.log.Seqs(t.Context(), []tidemark.EntryID{id})
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		return seqs[id]
	}
	since := put("base", "since")
	one := put("own", "one")
	two := put("own", "two")
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{s.log.CreateStmt(host.Info{ID: "again", Key: s.Key, BaseLog: "base", BaseSeq: since, Created: s.Runtime.Now()})}); err != nil {
		t.Fatal(err)
	}
	put("again", "three")
	put("base", "later")
	for _, c := range []struct {
		log   string
		after int64
		want  string
	}{{"own", 0, "one two"}, {"own", one, "two"}, {"own", two, ""}, {"base", 0, "since later"}, {"leaf", 0, ""}, {"again", 0, "since three"}, {"again", since, "three"}} {
		marks, err := s.lineage.Overlays(t.Context(), c.log, c.after)
		var got []string
		for _, m := range marks {
			got = append(got, m.Overlay.Reason)
		}
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s behind %d: %q, %v", c.log, c.after, got, err)
		}
	}
}

// TestWeighAt: a place weighs what a model would read there: what was said up to it, with what overlays of that time hide; what
// no model takes, or no memory holds, is taken by its estimates.
func TestWeighAt(t *testing.T) {
	s, _ := plain(t, Config{})
	at := s.spoken(t, 6)
	log, ctx := s.current(t), t.Context()
	v, err := s.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	weigh := func(name string, upTo int64, want tidemark.Tokens) {
		t.Helper()
		for _, check := range []bool{false, true} {
			if got, err := s.weighAt(ctx, log, upTo, check); got != want || err != nil {
				t.Errorf("%s: %d, %v; want %d", name, got, err, want)
			}
		}
	}
	weigh("before the first", at[0]-1, v.Fixed)
	weigh("the first", at[0], v.Fixed+100)
	weigh("the fourth", at[3], v.Fixed+400)
	weigh("the last", at[5], v.Fixed+600)
	_, stmts, err := s.overlayStmts(log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Edits: []tidemark.Edit{{From: "i0", To: "i1"}}})
	if err == nil {
		err = s.DB.Tx(ctx, stmts)
	}
	if err != nil {
		t.Fatal(err)
	}
	weigh("before two were hidden", at[5], v.Fixed+600)
	weigh("behind it", at[5]+1, v.Fixed+400)
	s.does(t, `UPDATE entries SET tokens = ? WHERE log = ? AND id = 'i5'`, int64(lookMost)-300, log)
	weigh("as large as is looked at", at[5]+1, v.Fixed+lookMost)
	s.does(t, `UPDATE entries SET tokens = ? WHERE log = ? AND id = 'i5'`, int64(lookMost)-299, log)
	weigh("larger", at[5]+1, lookMost+1)
	s.does(t, `UPDATE entries SET tokens = 100 WHERE log = ? AND id = 'i5'`, log)
	s.settings().ViewBytes = 10
	weigh("more than fits into memory", at[5]+1, 400)
}

// TestViewAtGivesBack: what a view of the past was let in with is given back when it was used.
func TestViewAtGivesBack(t *testing.T) {
	held := int64(0)
	s, _ := plain(t, Config{Admit: func(n int64) (func(), bool) { held += n; return func() { held -= n }, true }})
	seq := s.says(t, s.current(t), "e", tidemark.NewText(tidemark.User, strings.Repeat("boathouse ", 150_000)), tidemark.Origin{}, 100)
	during := int64(0)
	err := s.viewAt(t.Context(), s.current(t), seq, func(v View) error {
		during = held
		if len(v.Items) != 1 || len(v.Items[0].Message.PlainText()) != 1_500_000 {
			t.Errorf("%d items", len(v.Items))
		}
		return errKnown
	})
	if !errors.Is(err, errKnown) || during < 1_500_000 || held != 0 {
		t.Errorf("%v, held %d and %d at the end", err, during, held)
	}
}

// TestSizeOfAView: the size is what the model last reported and what came since, or an estimate: an overlay, another model, or a
// reply without a report make no difference to what was reported before them.
func TestSizeOfAView(t *testing.T) {
	s, _ := plain(t, Config{Settings: Settings{Model: "m"}})
	reply := func(model string, reported bool) *tidemark.Call {
		return &tidemark.Call{Requested: model, Reported: reported, Usage: tidemark.Usage{Input: 1000, CacheRead: 200, CacheCreation: 30, Output: 4}}
	}
	entries := func(call *tidemark.Call) (out []compaction.Visible) {
		for i := range 4 {
			out = append(out, compaction.Visible{Skeleton: tidemark.Skeleton{Seq: int64(10 * (i + 1)), Tokens: tidemark.Tokens(100 << i)}})
		}
		out[1].Call = call
		return out
	}
	v := weighing("", 0, 50, 450)
	for _, c := range []struct {
		name     string
		entries  []compaction.Visible
		now      history.Edits
		want     tidemark.Tokens
		anchored bool
	}{
		{"reported", entries(reply("m", true)), history.Edits{}, 2434, true},
		{"by the first message", append([]compaction.Visible{{Skeleton: tidemark.Skeleton{Seq: 1, Tokens: 7}, Call: reply("m", true)}}, entries(nil)...), history.Edits{}, 2734, true},
		{"an overlay before it", entries(reply("m", true)), history.Edits{Newest: 19}, 2434, true},
		{"an overlay at it", entries(reply("m", true)), history.Edits{Newest: 20}, 500, false},
		{"of another model", entries(reply("n", true)), history.Edits{}, 500, false},
		{"not reported", entries(reply("m", false)), history.Edits{}, 500, false},
		{"no reply", entries(nil), history.Edits{}, 500, false},
		{"in the measure of the last compaction", entries(nil), history.Edits{Counted: 300, Estimated: 200, Model: "m"}, 750, false},
		{"in that of another model", entries(nil), history.Edits{Counted: 300, Estimated: 200, Model: "n"}, 500, false},
		{"nothing", nil, history.Edits{}, 500, false},
	} {
		if got, anchored := s.size(v, c.entries, c.now); got != c.want || anchored != c.anchored {
			t.Errorf("%s: %d, anchored %v", c.name, got, anchored)
		}
	}
	if n := estimateTools(nil); n != 0 {
		t.Errorf("no tools take %d", n)
	}
	tools := []tidemark.Tool{{Name: "a", InputSchema: []byte(`{}`)}}
	if n := estimateTools(tools); n != tidemark.EstimateText(mustJSON(tools)) || n == 0 {
		t.Errorf("a tool takes %d", n)
	}
}

// TestUntil: a view knows the log up to the last thing that it read: a message, an overlay, or what one stands for.
func TestUntil(t *testing.T) {
	for _, row := range []struct{ last, newest, from, to, want int64 }{{5, 4, 3, 2, 5}, {4, 5, 3, 2, 5}, {4, 3, 5, 2, 5}, {4, 3, 2, 5, 5}, {0, 0, 0, 0, 0}} {
		var v View
		v.Last = row.last
		v.Shown = []compaction.Replacement{{Placed: compaction.Placed{From: row.from, To: row.to}}, {}}
		if got := until(v, row.newest); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

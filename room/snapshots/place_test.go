package snapshots

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestCuts: a history ends nowhere between a call and its result. A call that nothing answered holds nobody up once its
// turn is over.
func TestCuts(t *testing.T) {
	said := tidemark.Skeleton{}
	calls := func(ids ...string) tidemark.Skeleton { return tidemark.Skeleton{Calls: ids} }
	results := func(ids ...string) tidemark.Skeleton { return tidemark.Skeleton{Results: ids} }
	for _, tc := range []struct {
		name string
		list []tidemark.Skeleton
		open bool
		want []bool // behind so many messages
	}{
		{"nothing", nil, false, []bool{false}},
		{"talk", []tidemark.Skeleton{said, said}, true, []bool{false, true, true}},
		{"a call and its result", []tidemark.Skeleton{said, calls("a"), results("a"), said}, true, []bool{false, true, false, true, true}},
		{"two calls, answered one by one", []tidemark.Skeleton{calls("a", "b"), results("a"), results("b")}, true, []bool{false, false, false, true}},
		{"a call in work", []tidemark.Skeleton{said, calls("a")}, true, []bool{false, true, false}},
		{"a call that never was answered", []tidemark.Skeleton{said, calls("a"), said}, false, []bool{false, true, true, true}},
		{"one of two was", []tidemark.Skeleton{calls("a", "b"), results("b"), said}, false, []bool{false, false, true, true}},
		{"a result of an earlier call", []tidemark.Skeleton{results("z"), said}, true, []bool{false, true, true}},
	} {
		if got := cuts(tc.list, tc.open); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestPlaces: where a snapshot ends, by what was said, what works and what was done since.
func TestPlaces(t *testing.T) {
	call := func(id string) tidemark.Message {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "look", nil)}}
	}
	result := func(id string) tidemark.Message {
		return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, "seen", false)}}
	}
	said := tidemark.NewText(tidemark.User, "word")
	for _, tc := range []struct {
		name  string
		list  []tidemark.Message
		event bool   // behind them
		state string // of a run here
		want  int    // messages before the end; 0: busy
		whole bool   // nothing was said behind it
	}{
		{"talk", []tidemark.Message{said, said}, false, "", 2, true},
		{"talk, and something was done since", []tidemark.Message{said, said}, true, "done", 2, true},
		{"a call in work", []tidemark.Message{said, call("a")}, false, "calling", 1, false},
		{"a call whose tool works", []tidemark.Message{said, call("a")}, true, "tools", 1, false},
		{"a call that nothing will answer", []tidemark.Message{said, call("a")}, false, "failed", 2, true},
		{"answered calls", []tidemark.Message{said, call("a"), result("a")}, true, "calling", 3, true},
		{"nothing but a call in work", []tidemark.Message{call("a")}, false, "tools", 0, false},
	} {
		r := newRig(t)
		aunt := r.on("agent:main:aunt")
		r.exec(`INSERT INTO runs(id, key, state) VALUES('a', 'agent:main:aunt', 'calling'), ('z', 'agent:main:zoe', 'tools')`)
		if tc.state != "" {
			r.exec(`INSERT INTO runs(id, key, state) VALUES('r', ?, ?)`, string(mine), tc.state)
		}
		ends := []int64{0} // positions behind so many messages
		for _, m := range tc.list {
			aunt.talks("of another")
			ends = append(ends, r.seq(r.says(m, "", nil)))
		}
		want := spot{newest: tc.whole}
		switch {
		case tc.event:
			end := r.seq(r.event())
			if want.seq = end; !tc.whole {
				want.seq = ends[tc.want+1] - 1
			}
		case tc.whole:
			want.seq = ends[tc.want]
		case tc.want > 0:
			want.seq = ends[tc.want+1] - 1
		}
		aunt.talks("and on")
		aunt.event()
		got, err := r.room.placeOf(t.Context(), r.current(), "")
		if tc.want == 0 {
			if !errors.Is(err, tidemark.ErrBusy) {
				t.Errorf("%s: %+v, %v", tc.name, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got, err, want)
		}
	}
}

// TestEndBehind: how far a log goes behind a message, before the next one, whatever others write between.
func TestEndBehind(t *testing.T) {
	r := newRig(t)
	aunt := r.on("agent:main:aunt")
	first := r.talks("one")[0]
	aunt.talks("between")
	done := r.event()
	aunt.event()
	second := r.talks("two")[0]
	for _, tc := range []struct {
		at, end tidemark.EntryID
		more    bool
	}{{first, done, true}, {second, second, false}} {
		if end, more, err := r.room.endBehind(t.Context(), r.current(), r.seq(tc.at)); err != nil || end != r.seq(tc.end) || more != tc.more {
			t.Errorf("behind %d: %d, %v, %v, want %d, %v", r.seq(tc.at), end, more, err, r.seq(tc.end), tc.more)
		}
	}
	aunt.talks("a last word")
	last := r.event()
	if end, more, err := r.room.endBehind(t.Context(), r.current(), r.seq(second)); err != nil || end != r.seq(last) || more {
		t.Errorf("behind the last: %d, %v, %v, want %d", end, more, err, r.seq(last))
	}
}

// TestPlaceAt: a place that is asked for is one of this history where a conversation can go on, and else the nearest is named.
func TestPlaceAt(t *testing.T) {
	r := newRig(t)
	call := r.says(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("a", "look", nil)}}, tidemark.FromModel, nil)
	result := r.says(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("a", "seen", false)}}, tidemark.FromTool, nil)
	later := r.says(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("b", "look", nil)}}, tidemark.FromModel, nil)
	r.says(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("b", "seen", false)}}, tidemark.FromTool, nil)
	last := r.talks("done")[0]
	event := r.event()
	other := r.on("agent:main:aunt").talks("of another")[0]
	b, _ := r.branch(BranchOptions{Name: "b"})
	since := r.talks("since")[0]
	b.talks("in the branch")
	for _, tc := range []struct {
		name string
		of   *rig
		at   tidemark.EntryID
		want spot
		err  error
		says string
	}{
		{"between a call and its result", r, call, spot{}, tidemark.ErrInvalid, "there is none before it"},
		{"behind a result", r, result, spot{seq: r.seq(result), past: true}, nil, ""},
		{"between others", r, later, spot{}, tidemark.ErrInvalid, "the nearest before it is " + string(result)},
		{"the last but one", r, last, spot{seq: r.seq(last), past: true}, nil, ""},
		{"the newest", r, since, spot{seq: r.seq(since), newest: true}, nil, ""},
		{"no message", r, event, spot{}, tidemark.ErrNotFound, "no message of this session"},
		{"another's", r, other, spot{}, tidemark.ErrNotFound, "no message of this session"},
		{"nobody's", r, "01ARZ3NDEKTSV4RRFFQ69G5FAV", spot{}, tidemark.ErrNotFound, "no message of this session"},
		{"of the base, before", b, result, spot{seq: r.seq(result), past: true}, nil, ""},
		{"of the base, where the branch began", b, last, spot{seq: r.seq(last), past: true}, nil, ""},
		{"of the base, since", b, since, spot{}, tidemark.ErrNotFound, "no message of this session"},
	} {
		got, err := tc.of.room.placeOf(t.Context(), tc.of.current(), tc.at)
		if got != tc.want || !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
	}
	at, _ := r.branch(BranchOptions{Name: "at", Of: Options{At: result}})
	if got, err := at.room.placeOf(t.Context(), at.current(), result); err != nil || got.seq != r.seq(result) {
		t.Errorf("of the base, where a branch has nothing of its own: %+v, %v", got, err)
	}
	second := r.on("agent:main:local:dm:other")
	word := second.talks("word")[0]
	asks := second.says(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("a", "look", nil)}}, tidemark.FromModel, nil)
	second.says(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("a", "seen", false)}}, tidemark.FromTool, nil)
	if _, err := second.room.placeOf(t.Context(), second.current(), asks); err == nil || !strings.Contains(err.Error(), "the nearest before it is "+string(word)) {
		t.Errorf("behind the first: %v", err)
	}
	if untold := r.failsAtEach("a place of the past", func(int) error { _, err := r.room.placeOf(t.Context(), r.current(), result); return err }); untold > 0 {
		t.Errorf("%d failures are not told", untold)
	}
}

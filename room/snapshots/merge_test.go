package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestMergeNote: what stands in a session of the outcome of a branch, and what is known of it.
func TestMergeNote(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	n := r.take(Options{Name: "plan"})
	b, made := r.branch(BranchOptions{Snapshot: n.ID, Name: "redis way"})
	aunt := r.on("agent:main:aunt")
	b.talks("try it", " so be it ")
	last := r.lines(`SELECT max(seq) FROM entries WHERE log = ? LIMIT 1`, b.current())
	b.event()
	aunt.talks("of another", "conversation")
	m, err := r.merges.Merge(t.Context(), MergeOptions{From: made.Key})
	if err != nil {
		t.Fatal(err)
	}
	const text = `[Outcome of branch "redis way" (from snapshot "plan", 2 messages): so be it]`
	if m.Text != text || m.Again || m.Key != mine || m.From != made.Key {
		t.Errorf("note %+v", m)
	}
	e, err := r.log.Entry(t.Context(), m.Entry)
	if err != nil || e.Log != r.current() || e.Kind != tidemark.KindMessage || e.Origin.From != tidemark.FromSystem || e.Origin.Channel != "branch" || !e.At.Equal(r.clock.now) {
		t.Errorf("entry %+v, %v", e, err)
	}
	if got := r.lines(`SELECT (log = ?) || ' ' || seq || ' ' || (target = ?) || ' ' || hash || ' ' || entry FROM merges LIMIT 9`, b.current(), r.current()); got != fmt.Sprintf("1 %s 1 %s %s", last, tidemark.HashOf([]byte("so be it")), m.Entry) {
		t.Errorf("row %s", got)
	}
	if want := []string{"done", `{"type":"merge","text":"The outcome of branch \"redis way\" stands here as a note.","data":{"id":"` + string(m.Entry) + `","key":"agent:main:main","from":"agent:main:main#redis-way","text":"[Outcome of branch \"redis way\" (from snapshot \"plan\", 2 messages): so be it]"}}`}; !slices.Equal(r.noted, want) {
		t.Errorf("noted %q, want %q", r.noted, want)
	}
	if again, err := r.merges.Merge(t.Context(), MergeOptions{From: made.Key}); err != nil || !again.Again || again.Entry != m.Entry || again.Text != text || again.Key != mine || again.From != made.Key {
		t.Errorf("again %+v, %v", again, err)
	}
	// Neither the note of another branch, of another place, of another log or of other words is this one.
	c, other := r.branch(BranchOptions{Snapshot: n.ID, Name: "other"})
	c.talks("try that", "so be it")
	if m, err := r.merges.Merge(t.Context(), MergeOptions{From: other.Key}); err != nil || m.Again {
		t.Errorf("of another branch: %+v, %v", m, err)
	}
	if m, err := c.merges.Merge(t.Context(), MergeOptions{From: made.Key}); err != nil || m.Again {
		t.Errorf("into another: %+v, %v", m, err)
	}
	if m, err := r.merges.Merge(t.Context(), MergeOptions{From: made.Key, Note: " own words "}); err != nil || m.Again || !strings.HasSuffix(m.Text, "2 messages): own words]") {
		t.Errorf("other words: %+v, %v", m, err)
	}
	if got := r.lines(`SELECT seq FROM merges WHERE target = ? AND hash = ? LIMIT 9`, r.current(), string(tidemark.HashOf([]byte("own words")))); got != last {
		t.Errorf("a note is of place %s, want that of its last message, %s", got, last)
	}
	b.talks("and again", "so be it")
	if m, err := r.merges.Merge(t.Context(), MergeOptions{From: made.Key}); err != nil || m.Again {
		t.Errorf("of a later place: %+v, %v", m, err)
	}
	for _, name := range []string{"fresh", "fresher"} { // nothing was said in either
		_, b := r.branch(BranchOptions{Snapshot: n.ID, Name: name})
		if m, err := r.merges.Merge(t.Context(), MergeOptions{From: b.Key, Note: "the same"}); err != nil || m.Again || !strings.Contains(m.Text, ", 0 messages): the same") {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// TestMergeNames: a branch is called by its node, by what is behind # in its key, by its title or by its key.
func TestMergeNames(t *testing.T) {
	r := newRig(t)
	r.talks("one")
	for i, tc := range []struct {
		key         tidemark.Key
		title, want string
	}{{mine + "#way", "Titled", `branch "way" (2`}, {mine + "#root", "", `branch "root" (2`}} {
		b := r.on(tc.key)
		b.exec(`UPDATE heads SET title = ? WHERE key = ?`, tc.title, string(tc.key))
		b.talks("try it", fmt.Sprint("so be it ", i))
		if m, err := r.merges.Merge(t.Context(), MergeOptions{From: tc.key}); err != nil || !strings.Contains(m.Text, tc.want) {
			t.Errorf("%s: %+v, %v", tc.key, m, err)
		}
	}
	r.talks("two", "the root's")
	r.exec(`UPDATE heads SET title = 'Harbour' WHERE key = ?`, string(mine))
	b := r.on(mine + "#way")
	if m, err := b.merges.Merge(t.Context(), MergeOptions{From: mine}); err != nil || !strings.Contains(m.Text, `branch "Harbour" (`) {
		t.Errorf("of the root: %+v, %v", m, err)
	}
	r.exec(`UPDATE heads SET title = '' WHERE key = ?`, string(mine))
	if m, err := b.merges.Merge(t.Context(), MergeOptions{From: mine, Note: "x"}); err != nil || !strings.Contains(m.Text, `branch "agent:main:main" (`) {
		t.Errorf("of the root without a title: %+v, %v", m, err)
	}
}

// TestMergeWords: the words are the newest of the model's that are whole; while it works none are.
func TestMergeWords(t *testing.T) {
	call := func(text string) tidemark.Message {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(text), tidemark.ToolUse("a", "look", nil)}}
	}
	plain := func(text string) tidemark.Message { return tidemark.NewText(tidemark.Assistant, text) }
	for _, tc := range []struct {
		name string
		list []tidemark.Message
		run  string // a state of one there
		want string // "": refused
		err  error
	}{
		{"the last", []tidemark.Message{plain("first"), plain("last")}, "done", "last", nil},
		{"before a call", []tidemark.Message{plain("first"), call("let me see")}, "failed", "first", nil},
		{"before one without words", []tidemark.Message{plain("first"), plain(" ")}, "", "first", nil},
		{"before a person's", []tidemark.Message{plain("first"), tidemark.NewText(tidemark.User, "and?")}, "", "first", nil},
		{"a call alone", []tidemark.Message{call("let me see")}, "", "", tidemark.ErrInvalid},
		{"while it is asked", []tidemark.Message{plain("first")}, "calling", "", tidemark.ErrBusy},
		{"while its tools work", []tidemark.Message{plain("first")}, "tools", "", tidemark.ErrBusy},
	} {
		r := newRig(t)
		r.talks("one", "of the base")
		b, _ := r.branch(BranchOptions{Name: "way"})
		aunt := r.on("agent:main:aunt")
		r.exec(`INSERT INTO runs(id, key, state) VALUES('a', 'agent:main:aunt', 'calling'), ('m', ?, 'tools')`, string(mine))
		if tc.run != "" {
			r.exec(`INSERT INTO runs(id, key, state) VALUES('b', ?, ?)`, string(b.key), tc.run)
		}
		for _, m := range tc.list {
			b.says(m, "", nil)
			b.event()
			aunt.talks("x", "of another")
		}
		m, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key})
		if !errors.Is(err, tc.err) || tc.want != "" && !strings.HasSuffix(m.Text, fmt.Sprintf(", %d messages): %s]", len(tc.list), tc.want)) {
			t.Errorf("%s: %+v, %v", tc.name, m, err)
		}
		if m, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key, Note: "own"}); err != nil || !strings.HasSuffix(m.Text, " messages): own]") {
			t.Errorf("%s, a note: %+v, %v", tc.name, m, err)
		}
	}
}

// TestMergeRefuses: what cannot be merged is refused, and long words are cut.
func TestMergeRefuses(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	b, _ := r.branch(BranchOptions{Name: "way"})
	r.on("agent:main:aunt#b").talks("x", "y")
	for _, tc := range []struct {
		name string
		o    MergeOptions
		err  error
		says string
	}{
		{"nothing", MergeOptions{}, tidemark.ErrInvalid, "want the key of a branch"},
		{"another's", MergeOptions{From: "agent:main:aunt#b"}, tidemark.ErrInvalid, "it is no branch of this conversation"},
		{"itself", MergeOptions{From: mine}, tidemark.ErrInvalid, "cannot be merged into itself"},
		{"not there", MergeOptions{From: mine + "#none"}, tidemark.ErrNotFound, "there is no such session"},
		{"no text", MergeOptions{From: b.key, Note: "a\xff"}, tidemark.ErrInvalid, "note: is no UTF-8"},
		{"a long note", MergeOptions{From: b.key, Note: strings.Repeat("ö", MaxNote+1)}, tidemark.ErrTooLarge, "note: over 8000 characters"},
		{"nothing said", MergeOptions{From: b.key, Note: " "}, tidemark.ErrInvalid, "has said nothing since it began"},
	} {
		if _, err := r.merges.Merge(t.Context(), tc.o); !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := r.on("agent:main:proxy:dm:x").merges.Merge(t.Context(), MergeOptions{From: "agent:main:proxy:dm:x#b"}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "its client keeps the history itself") {
		t.Errorf("of a client: %v", err)
	}
	whole := strings.Repeat("ö", MaxNote)
	if m, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key, Note: whole}); err != nil || !strings.HasSuffix(m.Text, "): "+whole+"]") {
		t.Errorf("a note as long as may be: %d bytes, %v", len(m.Text), err)
	}
	b.talks("x", whole+"ö")
	if m, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key}); err != nil || !strings.HasSuffix(m.Text, "): "+whole+"…]") {
		t.Errorf("long words: %d bytes, %v", len(m.Text), err)
	}
	b.talks("x", "short")
	r.note = errDown
	if _, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key}); !errors.Is(err, errDown) {
		t.Errorf("a note that fails: %v", err)
	}
	r.note = tidemark.ErrConflict
	if _, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key}); !errors.Is(err, tidemark.ErrBusy) || !strings.Contains(err.Error(), "a turn is in work there") {
		t.Errorf("a turn in work: %v", err)
	}
	r.note = nil
	if untold := r.failsAtEach("merge", func(int) error {
		_, err := r.merges.Merge(t.Context(), MergeOptions{From: b.key})
		return err
	}); untold != 2 {
		t.Errorf("%d failures are not told, want two, of how the branch is called", untold)
	}
}

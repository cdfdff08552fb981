package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func (h *harness) export(id string) []byte {
	h.t.Helper()
	var b bytes.Buffer
	if err := h.ExportSnapshot(h.t.Context(), id, &b); err != nil {
		h.t.Fatal(err)
	}
	return b.Bytes()
}

// travelled is a conversation with what an archive has to carry: results in the table, large blocks in the bucket, a
// compaction, a branch with an orientation, trimmed, and a snapshot of that.
func travelled(t *testing.T) (*harness, snapshot.Node) {
	t.Helper()
	set := small
	set.Window = 40_000
	h := newHarness(t, set)
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if !asksSummary(req) && len(last.Results()) == 0 && strings.Contains(last.PlainText(), "look") {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", n), "look", nil)}}, nil
		}
		return tidemark.Message{}, nil
	})
	h.agent.call = func(b tidemark.Block) tidemark.Block {
		return tidemark.ToolResult(b.ID, strings.Repeat("a line of the result\n", 300), false)
	}
	h.say("please look here")
	for i := range 8 {
		h.say(filler(i))
	}
	h.post(session.Input{Message: tidemark.NewText(tidemark.User, "big "+strings.Repeat("0123456789abcdef", 20_000))})
	h.post(session.Input{ID: "compact", Kind: session.InputCompact})
	h.say("look again, at the heron")
	n := h.snap(snapshots.Options{Name: "ground", Tags: []string{"x"}})
	b, _ := h.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "upper", Orientation: "This is the upper floor.", Trim: true})
	b.say("the pelican is here")
	h.say("the sparrow is not for the branch")
	return b, b.snap(snapshots.Options{Name: "roof", Description: "of the house"})
}

// TestCarry: an archive gives another store the same view and the same chain, two exports are the same bytes, and the
// same one twice is one.
func TestCarry(t *testing.T) {
	h, n := travelled(t)
	raw := h.export(n.ID)
	if !bytes.Equal(raw, h.export(n.ID)) {
		t.Error("two exports differ")
	}
	want := h.shows()
	o := newHarness(t, h.set)
	o = o.on("agent:main:local:dm:elsewhere")
	got, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got.Node.ID != n.ID || got.Node.Hash != n.Hash || got.Messages != n.Messages || got.Again || got.Node.Session != string(o.key) {
		t.Errorf("carried %+v, want %+v", got, n)
	}
	if shown := o.shows(); shown != want {
		t.Errorf("it shows\n%.2000s\nwant\n%.2000s", shown, want)
	}
	again, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw))
	if err != nil || !again.Again || again.Node.ID != n.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw[:len(raw)-30])); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("again, cut off: %v", err)
	}
	nodes, err := o.nodes()
	if err != nil || len(nodes) != 2 || nodes[0].Name != "ground" || nodes[1].Parent != nodes[0].ID {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
	if again := o.export(n.ID); !bytes.Equal(contentOf(t, again), contentOf(t, raw)) {
		t.Error("what was imported is exported as something else")
	}
	for _, node := range nodes { // both can be gone on from
		b, _ := o.branch(snapshots.BranchOptions{Snapshot: node.ID})
		if !strings.Contains(strings.Join(b.originals(), "\n"), "heron") || strings.Contains(b.shows(), "pelican") != (node.ID == n.ID) {
			t.Errorf("a branch of %s shows\n%.1000s", node.Name, b.shows())
		}
		b.say("and on")
		b.sent()
	}
	for _, word := range []string{"heron", "pelican"} {
		found, err := o.Recall(t.Context(), search.Wanted{Query: word})
		if err != nil || !slices.ContainsFunc(found.Results, func(r search.Recollection) bool { return strings.Contains(r.Text, word) }) {
			t.Errorf("recall of %s: %+v, %v", word, found, err)
		}
	}
	o.say("the import goes on")
	o.sent()
	if _, err := o.on("agent:main:local:dm:used").ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil {
		t.Errorf("into a second session of one store: %v", err)
	}
	for _, key := range []tidemark.Key{"agent:main:local:dm:elsewhere#branch", "agent:main:local:dm:new#branch"} {
		if _, err := o.on(key).ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("into %s: %v", key, err)
		}
	}
	used := o.on("agent:main:local:dm:full")
	used.say("hello")
	if _, err := used.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("into a session that is in use: %v", err)
	}
}

// contentOf is the entries and blobs of an archive, without who has it.
func contentOf(t *testing.T, raw []byte) []byte {
	t.Helper()
	in, err := snapshot.NewReader(bytes.NewReader(raw), snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for {
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(m.Name + "\n")
		if _, err := io.Copy(&out, in); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCarryHome: an archive that comes back to the store where it was made stores no message twice.
func TestCarryHome(t *testing.T) {
	h, n := travelled(t)
	raw, want := h.export(n.ID), h.shows()
	rows := h.count(`SELECT count(*) FROM entries LIMIT 1`)
	o := h.on("agent:main:local:dm:copy")
	if _, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if got := h.count(`SELECT count(*) FROM entries LIMIT 1`); got != rows {
		t.Errorf("%d entries more", got-rows)
	}
	if got := o.shows(); got != want {
		t.Errorf("it shows\n%.2000s\nwant\n%.2000s", got, want)
	}
	o.say("in the copy lives a cormorant")
	found, err := o.Recall(t.Context(), search.Wanted{Query: "pelican"})
	if err != nil || len(found.Results) == 0 {
		t.Errorf("recall: %+v, %v", found, err)
	}
	if strings.Contains(h.shows(), "cormorant") || strings.Contains(o.shows(), "sparrow") {
		t.Error("one sees the other")
	}
	for _, x := range []*harness{h, o} { // the snapshot is in both, and each goes on from its own
		own, err := x.SnapshotNode(t.Context(), n.ID)
		if err != nil || own.Session != string(x.key) {
			t.Errorf("%s has %+v, %v", x.key, own, err)
		}
		all, err := x.nodes()
		if err != nil || !slices.ContainsFunc(all, func(s snapshot.Node) bool { return s.ID == n.ID }) {
			t.Errorf("%s lists %+v, %v", x.key, all, err)
		}
		b, made := x.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "again"})
		if made.Key.Root() != x.key.Root() || b.shows() != want {
			t.Errorf("%s of %s shows\n%.1000s", made.Key, x.key, b.shows())
		}
		if !bytes.Equal(contentOf(t, x.export(n.ID)), contentOf(t, raw)) {
			t.Errorf("%s exports something else", x.key)
		}
	}
	if _, err := h.on("agent:main:local:dm:other").SnapshotNode(t.Context(), n.ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a conversation that did not read it in: %v", err)
	}
}

// rewritten changes the lines and blobs of an archive.
func rewritten(t *testing.T, raw []byte, manifest func(*snapshot.Manifest), line func(n int, line []byte) []byte) []byte {
	t.Helper()
	in, err := snapshot.NewReader(bytes.NewReader(raw), snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := in.Manifest()
	if manifest != nil {
		manifest(&m)
	}
	var out bytes.Buffer
	w, err := snapshot.NewWriter(&out, m)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == snapshot.MemberBlob {
			err = w.Blob(m.Hash, m.Size, in)
		} else {
			for l, e := range in.Lines(1 << 24) {
				if e != nil {
					t.Fatal(e)
				}
				if l = line(n, bytes.Clone(l)); l != nil {
					err = errors.Join(err, w.Line(m.Stream, l))
				}
				n++
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCarryTampered: an archive that was changed is refused, leaves nothing to see, and the right one can be imported
// behind it.
func TestCarryTampered(t *testing.T) {
	h, n := travelled(t)
	raw := h.export(n.ID)
	same := func(_ int, l []byte) []byte { return l }
	cut := raw[:len(raw)*2/3]
	flipped := bytes.Clone(raw)
	flipped[len(flipped)/2] ^= 1
	for name, bad := range map[string][]byte{
		"cut off":       cut,
		"a bit flipped": flipped,
		"no archive":    []byte("hello"),
		"a word changed": rewritten(t, raw, nil, func(_ int, l []byte) []byte {
			return bytes.Replace(l, []byte("heron"), []byte("stork"), 1)
		}),
		"a message left out": rewritten(t, raw, nil, func(n int, l []byte) []byte {
			if n == 4 {
				return nil
			}
			return l
		}),
		"another hash":  rewritten(t, raw, func(m *snapshot.Manifest) { m.Node.Hash = tidemark.HashOf([]byte("x")) }, same),
		"another count": rewritten(t, raw, func(m *snapshot.Manifest) { m.Node.Messages++ }, same),
		"a line that is none": rewritten(t, raw, nil, func(n int, l []byte) []byte {
			if n == 2 {
				return []byte(`{"id":5}`)
			}
			return l
		}),
		"an overlay of nothing": rewritten(t, raw, nil, func(_ int, l []byte) []byte {
			return bytes.Replace(l, []byte(`"from":"01`), []byte(`"from":"00`), 1)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			o := newHarness(t, h.set)
			if _, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(bad)); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%v", err)
			}
			if nodes, err := o.nodes(); err != nil || len(nodes) != 0 || len(o.originals()) != 0 {
				t.Errorf("something is left: %v, %v", nodes, err)
			}
			if _, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil {
				t.Errorf("the right one behind it: %v", err)
			} else if o.shows() != h.shows() {
				t.Error("it shows something else")
			}
		})
	}
}

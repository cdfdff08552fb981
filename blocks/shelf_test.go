package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/gz"
)

// counted is a database that notes how many artifacts are asked for at a time.
type counted struct {
	tidemark.DB
	asked []int
	fail  error
}

func (c *counted) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if strings.Contains(sql, "FROM artifacts") {
		c.asked = append(c.asked, len(args)-2)
		if c.fail != nil {
			return nil, c.fail
		}
	}
	return c.DB.Query(ctx, sql, args...)
}

// refsOf are references of some sizes, to what is not there.
func refsOf(sizes ...int) (refs []Ref) {
	for i, size := range sizes {
		refs = append(refs, Ref{SHA256: string(tidemark.HashOf([]byte(fmt.Sprint(i)))), Bytes: size, In: inRow})
	}
	return refs
}

// TestArtifactPages: artifacts are asked for 64 at a time, and of large ones as many as make 1 MiB, but one at least.
func TestArtifactPages(t *testing.T) {
	s, _, _ := stores(t)
	db := &counted{DB: s.DB}
	s.DB = db
	if _, err := host.OpenLog(t.Context(), db); err != nil { // another table is there
		t.Fatal(err)
	}
	if got, err := s.artifactsOf(t.Context(), refsOf(1)); got != nil || err != nil || db.asked != nil {
		t.Errorf("without the table: %v, %v", got, err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		sizes []int
		want  []int
	}{
		{"none", nil, nil},
		{"one", []int{10}, []int{1}},
		{"a page", slices.Repeat([]int{1}, 64), []int{64}},
		{"one more", slices.Repeat([]int{1}, 65), []int{64, 1}},
		{"as large as a page", []int{512 << 10, 512 << 10, 1}, []int{2, 1}},
		{"a byte larger", []int{512 << 10, 512<<10 + 1, 1}, []int{1, 2}},
		{"each larger than a page", []int{2 << 20, 2 << 20}, []int{1, 1}},
	} {
		db.asked = nil
		if _, err := s.artifactsOf(t.Context(), refsOf(c.sizes...)); err != nil || !slices.Equal(db.asked, c.want) {
			t.Errorf("%s: asked for %d, %v; want %d", c.name, db.asked, err, c.want)
		}
	}
	db.fail = io.ErrUnexpectedEOF
	if _, err := s.artifactsOf(t.Context(), refsOf(1)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	db.fail = nil
	s.There = func(context.Context) (bool, error) { return false, io.ErrNoProgress }
	if _, err := s.artifactsOf(t.Context(), refsOf(1)); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

// TestFetchAhead: with the artifacts of a message come those of the next ones that one page holds; what is held is not asked
// for again.
func TestFetchAhead(t *testing.T) {
	s, _, _ := stores(t)
	db := &counted{DB: s.DB}
	s.DB = db
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		first, next []int
		want        []int
	}{
		{"nothing", nil, []int{1}, nil},
		{"alone", []int{1, 1}, nil, []int{2}},
		{"with the next", []int{1}, []int{1, 1}, []int{3}},
		{"until the page is full", []int{512 << 10}, []int{512 << 10, 1}, []int{2}},
		{"until one is too large for it", []int{512 << 10}, []int{512<<10 + 1, 1}, []int{1}},
		{"as many as a page has", []int{1}, slices.Repeat([]int{1}, 70), []int{64}},
		{"more than a page by itself", slices.Repeat([]int{1}, 64), []int{1}, []int{64}},
	} {
		db.asked = nil
		all := refsOf(append(slices.Clone(c.first), c.next...)...)
		var next func(func(Ref) bool)
		if c.next != nil {
			next = func(yield func(Ref) bool) {
				for _, r := range all[len(c.first):] {
					if !yield(r) {
						return
					}
				}
			}
		}
		if err := s.Shelf().Fetch(t.Context(), all[:len(c.first)], next); err != nil || !slices.Equal(db.asked, c.want) {
			t.Errorf("%s: asked for %d, %v; want %d", c.name, db.asked, err, c.want)
		}
	}
	h, refs := s.Shelf(), refsOf(1, 2)
	h.held = map[string]artifact{refs[0].SHA256: {}, refs[1].SHA256: {}}
	db.asked = nil
	if err := h.Fetch(t.Context(), refs, nil); err != nil || db.asked != nil || len(h.held) != 2 {
		t.Errorf("what is held is asked for: %d, %v", db.asked, err)
	}
	delete(h.held, refs[1].SHA256)
	if err := h.Fetch(t.Context(), refs, nil); err != nil || !slices.Equal(db.asked, []int{2}) {
		t.Errorf("what is not held: asked for %d, %v", db.asked, err)
	}
}

// TestArtifactsOfOneConversation: an artifact of the same hash that another conversation has is not read.
func TestArtifactsOfOneConversation(t *testing.T) {
	s, other, _ := stores(t)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, text := range map[tidemark.Key]string{other.Key: "theirs", s.Key: "ours"} {
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO artifacts(n, key, sha, size, bytes) VALUES(?, ?, ?, ?, ?)`, Args: []any{len(text), string(key), sum64, len(text), []byte(text)}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		s    *Store
		want string
	}{{s, "ours"}, {other, "theirs"}} {
		got, err := x.s.artifactsOf(t.Context(), []Ref{{SHA256: sum64, In: inRow}})
		if a := got[sum64]; err != nil || len(got) != 1 || string(a.gzip) != x.want || a.size != len(x.want) {
			t.Errorf("%s reads %s of %d bytes, %v", x.s.Key, a.gzip, a.size, err)
		}
	}
}

// TestShelfBlock: an artifact is the block that it was, or it says what it is not.
func TestShelfBlock(t *testing.T) {
	s, _, _ := stores(t)
	pack := func(text string) artifact {
		packed, err := gz.Zip([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return artifact{len(text), packed}
	}
	const kept = `{"type":"tool_result","tool_use_id":,"content":"tide"}`
	at := strings.Index(kept, ",\"content")
	h := s.Shelf()
	h.held = map[string]artifact{"sound": pack(kept), "damaged": {size: 5, gzip: []byte("no gzip")}, "text": pack("tide"), "two": pack(`{"type":"text","text":"a"},{"type":"text","text":"b"}`)}
	for _, c := range []struct {
		name string
		ref  Ref
		is   []error
		want string
	}{
		{"sound", Ref{SHA256: "sound", Bytes: len(kept) + 4, Call: at, id: "c1"}, nil, `{"type":"tool_result","tool_use_id":"c1","content":"tide"}`},
		{"of another size", Ref{SHA256: "sound", Bytes: len(kept) + 5, Call: at, id: "c1"}, []error{tidemark.ErrNotFound}, ""},
		{"of another call", Ref{SHA256: "sound", Bytes: len(kept) + 4, Call: at, id: "c12"}, []error{tidemark.ErrNotFound}, ""},
		{"gone", Ref{SHA256: "gone", Bytes: 5}, []error{tidemark.ErrNotFound}, ""},
		{"damaged", Ref{SHA256: "damaged", Bytes: 5}, []error{ErrDamaged, tidemark.ErrUnavailable}, ""},
		{"no block", Ref{SHA256: "text", Bytes: 4}, []error{ErrDamaged, tidemark.ErrUnavailable}, ""},
		{"two blocks", Ref{SHA256: "two", Bytes: 53}, []error{ErrDamaged, tidemark.ErrUnavailable}, ""},
	} {
		b, err := h.block(t.Context(), c.ref)
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v is not %v", c.name, err, is)
			}
		}
		if c.want != "" && (err != nil || string(b.AppendJSON(nil)) != c.want) {
			t.Errorf("%s: %s, %v", c.name, b.AppendJSON(nil), err)
		}
	}
}

// broken is a bucket that gives other bodies than it has.
type broken struct {
	tidemark.Blobs
	body func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error)
}

func (b broken) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	o, body, err := b.Blobs.Get(ctx, key)
	if err != nil {
		return o, nil, err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return o, nil, err
	}
	o, r, err := b.body(o, content)
	return o, io.NopCloser(r), err
}

// TestReadFromABucket: a connection that breaks is told as that, and what is not what was stored stays a reference; other
// blocks of the message are read.
func TestReadFromABucket(t *testing.T) {
	s, _, blobs := stores(t)
	m := user(textOf(SpillBytes+10), tidemark.Text("and this"), textOf(SpillBytes+20))
	stored := kept(t, s, m, 100)
	cut := func(n int) func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error) {
		return func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error) {
			return o, bytes.NewReader(content[:n]), nil
		}
	}
	for _, c := range []struct {
		name string
		body func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error)
		is   error
		refs int
	}{
		{"sound", func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error) {
			return o, bytes.NewReader(content), nil
		}, nil, 0},
		{"cut off", cut(1000), tidemark.ErrUnavailable, 2},
		{"cut off at once", cut(0), tidemark.ErrUnavailable, 2},
		{"shorter", func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error) {
			o.Size = 1000
			return o, bytes.NewReader(content[:1000]), nil
		}, nil, 2},
		{"empty", func(o tidemark.Object, _ []byte) (tidemark.Object, io.Reader, error) {
			o.Size = 0
			return o, bytes.NewReader(nil), nil
		}, nil, 2},
		{"of other bytes", func(o tidemark.Object, content []byte) (tidemark.Object, io.Reader, error) {
			return o, bytes.NewReader(bytes.ToUpper(content)), nil
		}, nil, 2},
		{"gone", func(o tidemark.Object, _ []byte) (tidemark.Object, io.Reader, error) {
			return o, bytes.NewReader(nil), tidemark.ErrNotFound
		}, nil, 2},
		{"down", func(o tidemark.Object, _ []byte) (tidemark.Object, io.Reader, error) {
			return o, bytes.NewReader(nil), io.ErrClosedPipe
		}, io.ErrClosedPipe, 2},
		{"a reader that fails", func(o tidemark.Object, _ []byte) (tidemark.Object, io.Reader, error) {
			o.Size = 1000
			return o, io.MultiReader(strings.NewReader("x"), failing{}), nil
		}, io.ErrClosedPipe, 2},
	} {
		s.Blobs = broken{blobs, c.body}
		got, err := s.Read(t.Context(), stored)
		refs, _ := Large(got)
		if !errors.Is(err, c.is) || (err != nil) != (c.is != nil) || len(refs) != c.refs || got.Content[1].Text != "and this" {
			t.Errorf("%s: %d are references, %v", c.name, len(refs), err)
		}
	}
	s.Blobs = blobs
	some, err := s.ReadSome(t.Context(), stored, []int{2, 1})
	if refs, _ := Large(some); err != nil || !slices.Equal(refs, []int{0}) {
		t.Errorf("of some: %d are references, %v", refs, err)
	}
	if refs, _ := Large(stored); len(refs) != 2 {
		t.Error("the message that was given is changed")
	}
	// A block that was the whole content, as a string, and now is one of two.
	one := kept(t, s, tidemark.NewText(tidemark.User, strings.Repeat("y", SpillBytes)), 100)
	if got, err := s.Read(t.Context(), one); err != nil || !got.Bare() {
		t.Errorf("bare %v, %v", got.Bare(), err)
	}
	one.Content = append(one.Content, tidemark.Text("more"))
	if got, err := s.Read(t.Context(), one); err != nil || got.Bare() || len(got.Content) != 2 || len(got.Content[0].Text) != SpillBytes {
		t.Errorf("with another: %d blocks, %v", len(got.Content), err)
	}
	if n := blobs.Open(); n != 0 {
		t.Errorf("%d bodies are open", n)
	}
}

// failing is a reader that breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestNotedBlocks: a note says which block of what is not there and where it belongs; a call stays a call, and its result the
// result. What is read is left alone.
func TestNotedBlocks(t *testing.T) {
	s, _, _ := stores(t)
	ref := func(more string) tidemark.Block {
		return parsed(t, `{`+more+`,"tidemark_blob":{"sha256":"`+sum64+`","bytes":7}}`)
	}
	stored := user(tidemark.Text("a"), ref(`"type":"image"`), ref(`"type":"tool_use","id":"c1","name":"look","input":{}`), ref(`"type":"tool_result","tool_use_id":"c2","is_error":true`), ref(`"type":"text"`))
	full := user(slices.Clone(stored.Content)...)
	full.Content[4] = tidemark.Text("it is read")
	got, err := s.Noted(stored, full, "entry e1")
	note := func(n int, kind string) string {
		return fmt.Sprintf("block %d (%s) of entry e1 is not what was stored; put agents/main/artifacts/%s back into the bucket from a backup, or send it again", n, kind, sum64)
	}
	want := user(tidemark.Text("a"), tidemark.Text("["+note(2, "image")+"]"), tidemark.ToolUse("c1", "look", nil), tidemark.ToolResult("c2", "["+note(4, "tool_result")+"]", true), tidemark.Text("it is read"))
	if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) || !errors.Is(err, ErrDamaged) || err.Error() != note(4, "tool_result") {
		t.Errorf("%s, %v\nwant %s", got.AppendJSON(nil), err, want.AppendJSON(nil))
	}
	if _, ok := Reference(full.Content[1]); !ok {
		t.Error("the message that was given is changed")
	}
	full.Content = full.Content[:1]
	if got, err := s.Noted(stored, full, "entry e1"); err != nil || len(got.Content) != 1 {
		t.Errorf("of fewer blocks: %s, %v", got.AppendJSON(nil), err)
	}
}

// entryOf is a message as the log has it.
func entryOf(m tidemark.Message) tidemark.Entry {
	return tidemark.Entry{ID: "e1", Kind: tidemark.KindMessage, Payload: m.AppendJSON(nil)}
}

// longLog is a result that saves much when it is compressed.
var longLog = strings.Repeat("a line of a log, and the next.\n", 400)

// TestEntries: entries are read whole and exported as their kind and what they refer to have it.
func TestEntries(t *testing.T) {
	s, other, blobs := stores(t)
	large := user(textOf(SpillBytes + 10))
	none := func(tidemark.Hash, int64, io.Reader) error { return errors.New("a block is given") }
	result := user(tidemark.ToolResult("c1", longLog, false))
	plain, far, beside := entryOf(user(tidemark.Text("plain"))), entryOf(kept(t, s, large, 100)), entryOf(kept(t, s, result, 100))
	for name, c := range map[string]struct {
		e    tidemark.Entry
		want tidemark.Message
	}{"plain": {plain, user(tidemark.Text("plain"))}, "in the bucket": {far, large}, "in the database": {beside, result}} {
		if got, err := s.Message(t.Context(), c.e); err != nil || string(got.AppendJSON(nil)) != string(c.want.AppendJSON(nil)) {
			t.Errorf("%s: %.200s, %v", name, got.AppendJSON(nil), err)
		}
	}
	bad := tidemark.Entry{ID: "e9", Kind: tidemark.KindMessage, Payload: []byte(`{"role":1,"tidemark_blob":2}`)}
	if _, err := s.Message(t.Context(), bad); err == nil || !strings.HasPrefix(err.Error(), "read entry e9: ") {
		t.Errorf("of no message: %v", err)
	}
	if _, err := s.Export(t.Context(), bad, none); err == nil {
		t.Error("what is no message is exported")
	}
	if _, err := s.Stored([]tidemark.Entry{plain, bad}); err == nil || !strings.HasPrefix(err.Error(), "entry e9: ") {
		t.Errorf("of no message: %v", err)
	}

	event := tidemark.Entry{Kind: tidemark.KindEvent, Payload: []byte(`{"type":"x","text":"tidemark_blob"}`)}
	for _, e := range []tidemark.Entry{plain, event} {
		if got, err := s.Export(t.Context(), e, none); err != nil || string(got) != string(e.Payload) {
			t.Errorf("exported %s, %v", got, err)
		}
	}
	if got, err := s.Export(t.Context(), beside, none); err != nil || string(got) != string(result.AppendJSON(nil)) {
		t.Errorf("exported %.200s, %v", got, err)
	}
	if got, err := other.Export(t.Context(), beside, none); !errors.Is(err, tidemark.ErrUnavailable) || got != nil {
		t.Errorf("what is gone: %.200s, %v", got, err)
	}
	if _, err := s.Export(t.Context(), far, func(tidemark.Hash, int64, io.Reader) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("to a file that is full: %v", err)
	}
	given := 0
	if _, err := s.Export(t.Context(), far, func(sum tidemark.Hash, size int64, body io.Reader) error {
		content, err := io.ReadAll(body)
		if given++; size != SpillBytes+10 || int64(len(content)) != size || tidemark.HashOf(content) != sum {
			t.Errorf("given %d bytes of %d", len(content), size)
		}
		return err
	}); err != nil || given != 1 {
		t.Errorf("%d blocks are given, %v", given, err)
	}
	if n := blobs.Open(); n != 0 {
		t.Errorf("%d bodies are open", n)
	}
}

// TestStored: a search has messages as they are stored, and whole where blocks stand beside their entries: those of the next
// ones are read with them.
func TestStored(t *testing.T) {
	s, _, blobs := stores(t)
	result := user(tidemark.ToolResult("c1", longLog, false))
	plain, far, beside := entryOf(user(tidemark.Text("plain"))), entryOf(kept(t, s, user(textOf(SpillBytes+10)), 100)), entryOf(kept(t, s, result, 100))
	both := entryOf(kept(t, s, user(tidemark.ToolResult("c1", longLog, false), textOf(SpillBytes+10)), 100))
	db := &counted{DB: s.DB}
	s.DB = db
	odd := entryOf(user(parsed(t, `{"type":"image","source":{"type":"url","url":"x"}}`))) // of no form that is skimmed
	list, err := s.Stored([]tidemark.Entry{plain, beside, far, both, beside, odd})
	if err != nil || len(list) != 6 || list[5].Message.Content[0].Type != tidemark.TypeImage {
		t.Fatal(list, err)
	}
	for i, want := range []struct{ far, whole bool }{{}, {whole: true}, {far: true}, {whole: true}, {whole: true}, {}} {
		if list[i].Far != want.far || (list[i].Whole != nil) != want.whole || len(list[i].Message.Content) == 0 {
			t.Errorf("entry %d: %+v", i, list[i])
		}
	}
	whole, err := list[1].Whole(t.Context())
	if err != nil || string(whole.AppendJSON(nil)) != string(result.AppendJSON(nil)) || !slices.Equal(db.asked, []int{3}) { // with those of the next ones
		t.Errorf("%.200s, asked for %d, %v", whole.AppendJSON(nil), db.asked, err)
	}
	whole, err = list[3].Whole(t.Context())
	if refs, _ := Large(whole); err != nil || !slices.Equal(refs, []int{1}) || whole.Content[0].Content[0].Text != longLog || len(db.asked) != 1 {
		t.Errorf("%d are references, asked for %d, %v", refs, db.asked, err)
	}
	db.fail = io.ErrNoProgress
	list, err = s.Stored([]tidemark.Entry{beside})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list[0].Whole(t.Context()); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	if n := blobs.Open(); n != 0 {
		t.Errorf("%d bodies are open", n)
	}
}

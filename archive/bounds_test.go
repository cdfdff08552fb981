package archive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/gz"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// raw puts bytes, whatever they are.
func raw(t *testing.T, b tidemark.Blobs, key, text string, meta map[string]string) {
	t.Helper()
	if _, err := b.Put(t.Context(), key, strings.NewReader(text), int64(len(text)), tidemark.PutOptions{Metadata: meta}); err != nil {
		t.Fatal(err)
	}
}

// TestPartTimes: the time of a part is the number at the end of its name, when there is one and a session before it.
func TestPartTimes(t *testing.T) {
	at := time.UnixMilli(1795262460129).UTC()
	for name, want := range map[string]string{
		"01S-part1795262460129": "01S " + at.String(), "a-part7-part1795262460129": "a-part7 " + at.String(), "-part1795262460129": "-part1795262460129 " + time.Time{}.String(),
		"01S-partx": "01S-partx " + time.Time{}.String(), "01S-part": "01S-part " + time.Time{}.String(), "a-part7": "a " + time.UnixMilli(7).UTC().String(),
	} {
		agent, session, at, ok := archive.ParseKey(archive.WholeKey("main", name))
		if got := session + " " + at.String(); got != want || agent != "main" || !ok {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestBareLine: a line has of an entry what the entry has, and no more.
func TestBareLine(t *testing.T) {
	said := json.RawMessage(`{"role":"assistant","content":"x"}`)
	for _, c := range []struct {
		e    tidemark.Entry
		want string
	}{
		{tidemark.Entry{}, `}`}, {tidemark.Entry{ID: "e"}, `,"id":"e"}`}, {tidemark.Entry{At: time.UnixMilli(5)}, `,"timestamp":5}`}, {tidemark.Entry{Origin: tidemark.Origin{Channel: "c"}}, `,"origin":{"channel":"c"}}`},
		{tidemark.Entry{Call: &tidemark.Call{}}, `,"estimated":true,"usage":{"input_tokens":0,"output_tokens":0}}`}, {tidemark.Entry{Call: &tidemark.Call{Reported: true}}, `,"usage":{"input_tokens":0,"output_tokens":0}}`}, {tidemark.Entry{Call: &tidemark.Call{Stop: "s", Reported: true}}, `,"stopReason":"s","usage":{"input_tokens":0,"output_tokens":0}}`},
	} {
		c.e.Payload = said
		line, err := archive.AppendLine(nil, c.e)
		if want := `{"role":"assistant","content":"x"` + c.want + "\n"; err != nil || string(line) != want {
			t.Errorf("%s, want %s, %v", line, c.want, err)
		}
	}
}

// TestEncoderToTheByte: an archive of the bytes that are allowed is made, and one byte less refuses it.
func TestEncoderToTheByte(t *testing.T) {
	size := int64(len(pack(t, talk(0, 4)...).Data))
	for less, fits := range map[int64]bool{0: true, 1: false} {
		e := archive.Encoder{MaxBytes: size - less}
		for _, x := range talk(0, 4) {
			if err := e.Add(x); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := e.Close(); (err == nil) != fits || fits && int64(len(p.Data)) != size || !fits && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%d bytes less: %d, %v", less, len(p.Data), err)
		}
	}
}

// TestPutOnOthers: a key that is taken is ours when it holds the same lines, and then its own time counts; what cannot be read
// stays what it is. Parts without a hash or a size of their lines are those of the reference.
func TestPutOnOthers(t *testing.T) {
	b := tidemarktest.NewBlobs()
	i := part(1)
	first := put(t, b, i, pack(t, talk(0, 8)...))
	later := i
	later.At = noon.AddDate(0, 0, 5)
	if again := put(t, b, later, pack(t, talk(0, 8)...)); again != first {
		t.Errorf("%+v, first %+v", again, first)
	}
	raw(t, b, part(2).Key, "\x1f\x8b no gzip", nil)
	if _, err := archive.Put(t.Context(), b, part(2), pack(t, talk(0, 8)...)); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "cannot be read, move it away") {
		t.Errorf("what cannot be read: %v", err)
	}
	old := first
	old.SHA256, old.RawBytes = "", 0
	for _, name := range []string{"one", "again"} {
		whole, err := archive.PutWhole(t.Context(), b, archive.Info{Key: archive.WholeKey("main", "w"), At: noon}, []archive.Info{old}, archive.Pack{})
		if err != nil || whole.Messages != 8 || whole.SHA256 != first.SHA256 || whole.Bytes != first.Bytes || whole.First != first.First || whole.Last != first.Last {
			t.Fatalf("%s: %+v, %v", name, whole, err)
		}
	}
	o, body, err := b.Get(t.Context(), archive.WholeKey("main", "w"))
	if err != nil || o.Metadata["rawBytes"] != "" || o.Metadata["messageCount"] != "8" {
		t.Errorf("%v, %v", o.Metadata, err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.PutWhole(t.Context(), b, archive.Info{Key: archive.WholeKey("main", "w"), At: noon}, nil, pack(t, talk(1, 4)...)); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "other content") {
		t.Errorf("other lines: %v", err)
	}
}

// TestIndexWrites: an index is written when it changes, tried again when others changed it meanwhile, and not for ever.
func TestIndexWrites(t *testing.T) {
	for conflicts, want := range map[int]struct {
		puts int
		err  error
	}{0: {1, nil}, 1: {2, nil}, 7: {8, nil}, 8: {8, tidemark.ErrConflict}} {
		b := tidemarktest.NewBlobs()
		puts := 0
		b.Fail = func(op, _ string) error {
			if op != "put" {
				return nil
			}
			if puts++; puts <= conflicts {
				return tidemark.ErrConflict
			}
			return nil
		}
		i := archive.Info{Key: archive.WholeKey("main", "s"), At: noon}
		if err := archive.Index(t.Context(), b, "main", i); !errors.Is(err, want.err) || (err == nil) != (want.err == nil) || puts != want.puts {
			t.Errorf("%d conflicts: %d writes, %v", conflicts, puts, err)
		}
		if want.err != nil {
			continue
		}
		if o, body, err := b.Get(t.Context(), archive.IndexKey("main", noon)); err != nil || body.Close() != nil || o.ContentType != "application/jsonl" {
			t.Errorf("%+v, %v", o, err)
		}
		if puts = conflicts; archive.Index(t.Context(), b, "main", i) != nil || puts != conflicts {
			t.Errorf("what is there already was written")
		}
	}
}

// TestIndexOfOthers: what is no line of an index names no archive, and an index has an end.
func TestIndexOfOthers(t *testing.T) {
	b := tidemarktest.NewBlobs()
	line := `{"key":"agents/main/sessions/a.jsonl.gz","archivedAt":"2026-11-21T12:00:00Z"}`
	raw(t, b, archive.IndexKey("main", noon), "{}\nnull\n7\n"+`{"key":"b","messageCount":"many"}`+"\n{torn\n\n"+line, nil)
	raw(t, b, archive.Folder("main")+"index/2026-11.txt", strings.Replace(line, "/a.", "/c.", 1), nil)
	if got := keys(listAll(t, b, archive.ListOptions{})); got != archive.WholeKey("main", "a") {
		t.Errorf("listed %s", got)
	}
	for _, cursor := range []string{"5", ":", "x:y", "5x:y", "99999999999999999999:y"} {
		if _, _, err := archive.List(t.Context(), b, "main", archive.ListOptions{Cursor: cursor}); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v", cursor, err)
		}
	}
	const most = 32 << 20
	for size, fits := range map[int]bool{most: true, most + 1: false} {
		b := tidemarktest.NewBlobs()
		raw(t, b, archive.IndexKey("main", noon), line+"\n"+strings.Repeat(" ", size-len(line)-1), nil)
		if page, _, err := archive.List(t.Context(), b, "main", archive.ListOptions{}); (err == nil) != fits || fits && len(page) != 1 || !fits && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%d bytes: %d, %v", size, len(page), err)
		}
	}
}

// TestMendTrusts: what an object says of itself is not counted again, and a time is any number of milliseconds.
func TestMendTrusts(t *testing.T) {
	b := tidemarktest.NewBlobs()
	raw(t, b, archive.WholeKey("main", "s"), string(pack(t, talk(0, 4)...).Data), map[string]string{"messageCount": "1", "sha256": "ab", "firstId": "x", "archivedAt": "1"})
	if _, err := archive.Mend(t.Context(), b, "main", archive.Bounds{}); err != nil {
		t.Fatal(err)
	}
	if got := listAll(t, b, archive.ListOptions{}); len(got) != 1 || got[0].Messages != 1 || got[0].SHA256 != "ab" || !got[0].At.Equal(time.UnixMilli(1)) {
		t.Errorf("%+v", got)
	}
	raw(t, b, archive.WholeKey("main", "bad"), "{oops\n", nil)
	for _, err := range archive.Read(t.Context(), b, archive.WholeKey("main", "bad")) {
		if !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), "read archive "+archive.WholeKey("main", "bad")+": line 1: ") {
			t.Errorf("%v", err)
		}
	}
}

// hiding is a store that says of a body that cannot be read only that it could not be stored.
type hiding struct{ *tidemarktest.Blobs }

func (h hiding) Put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	o, err := h.Blobs.Put(ctx, key, r, size, opt)
	if err != nil {
		err = errors.New("upload failed")
	}
	return o, err
}

// TestEncoderMembers: an archive that was packed to its last line when it is closed has no empty member at its end.
func TestEncoderMembers(t *testing.T) {
	long := entry(1, `{"role":"user","content":"`+strings.Repeat("long ", 1<<18)+`"}`)
	line, err := archive.AppendLine(nil, long)
	if err != nil {
		t.Fatal(err)
	}
	want, err := gz.Zip(line)
	if got := pack(t, long); err != nil || string(got.Data) != string(want) || got.RawBytes != int64(len(line)) {
		t.Errorf("%d bytes, want %d, %v", len(got.Data), len(want), err)
	}
}

// TestMendOfMuch: of very many strays so many are named, and an archive that is damaged is named without what it holds.
func TestMendOfMuch(t *testing.T) {
	b := tidemarktest.NewBlobs()
	for _, name := range []string{"index/readme.txt", "notes.jsonl"} {
		raw(t, b, archive.Folder("main")+name, "x", nil)
	}
	if s, err := archive.Mend(t.Context(), b, "main", archive.Bounds{Objects: 2}); err != nil || len(s.Stray) != 2 || s.Partial {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := archive.Mend(t.Context(), b, "main", archive.Bounds{Objects: 1}); err != nil || s.Stray != nil || !s.Partial {
		t.Errorf("%+v, %v", s, err)
	}
	for n, want := range map[int]int{99: 99, 100: 100, 101: 100} {
		b := tidemarktest.NewBlobs()
		for i := range n {
			raw(t, b, fmt.Sprint(archive.Folder("main"), "stray", i), "x", nil)
		}
		raw(t, b, archive.WholeKey("main", "bad"), "{oops\n", map[string]string{"messageCount": "5", "firstId": "f"})
		s, err := archive.Mend(t.Context(), b, "main", archive.Bounds{})
		if err != nil || len(s.Stray) != want || !slices.Equal(s.Added, []string{archive.WholeKey("main", "bad")}) {
			t.Errorf("%d: %d strays, %v, %v", n, len(s.Stray), s.Added, err)
		}
		if got := listAll(t, b, archive.ListOptions{}); len(got) != 1 || got[0].Messages != 5 || got[0].First != "f" || got[0].SHA256 != "" {
			t.Errorf("%+v", got)
		}
	}
}

// TestSearchBounds: how many hits and words a search has, and how much of a message it looks through.
func TestSearchBounds(t *testing.T) {
	b := tidemarktest.NewBlobs()
	var said []tidemark.Entry
	for i := range 250 {
		said = append(said, entry(i, `{"role":"user","content":"kiln"}`))
	}
	words := "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17"
	said = append(said, entry(300, `{"role":"user","content":"`+words+` `+words+`"}`), entry(301, `{"role":"user","content":"İstanbul has many a grate, and this one is the largest of all"}`))
	far := "hearth " + strings.Repeat("é", 100) + " slag"
	said = append(said, entry(310, `{"role":"user","content":"`+far+`"}`), entry(311, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"basalt"}]}]}`))
	for i, n := range []int{1<<20 - 1, 1 << 20} { // with a line break behind it
		said = append(said, entry(400+i, `{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("x", n)+`"},{"type":"text","text":"flue"}]}`))
	}
	info := put(t, b, part(1), pack(t, said...))
	if err := archive.Index(t.Context(), b, "main", info); err != nil {
		t.Fatal(err)
	}
	find := func(query string, limit int) []archive.Hit {
		t.Helper()
		found, err := archive.Search(t.Context(), b, "main", query, archive.SearchOptions{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		return found.Hits
	}
	for limit, want := range map[int]int{-1: 20, 0: 20, 1: 1, 199: 199, 200: 200, 201: 200, 1000: 200} {
		if got := find("kiln", limit); len(got) != want || got[0].ID != "01E0249" {
			t.Errorf("limit %d: %d hits, the first %s", limit, len(got), got[0].ID)
		}
	}
	if got := find(words+" "+words, 5); len(got) != 1 || got[0].Matched != 16 {
		t.Errorf("of 17 words: %+v", got)
	}
	if got := find("grate", 5); len(got) != 1 || got[0].Snippet != "İstanbul has many a grate, and this one is the largest of all" {
		t.Errorf("%+v", got)
	}
	if got := find("hearth slag", 5); len(got) != 1 || got[0].Snippet != far {
		t.Errorf("%+v", got)
	}
	if got := find("basalt", 5); len(got) != 1 || got[0].ID != "01E0311" || got[0].Snippet != "basalt" {
		t.Errorf("%+v", got)
	}
	if got := find("flue", 5); len(got) != 1 || got[0].ID != "01E0400" {
		t.Errorf("behind a large text: %d hits", len(got))
	}
	if _, err := archive.Search(t.Context(), b, "main", " … ", archive.SearchOptions{}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("no words: %v", err)
	}
}

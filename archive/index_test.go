package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// listAll pages through the index.
func listAll(t testing.TB, b tidemark.Blobs, opt archive.ListOptions) []archive.Info {
	t.Helper()
	var out []archive.Info
	for {
		page, next, err := archive.List(context.Background(), b, "main", opt)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page...)
		if opt.Cursor = next; next == "" {
			return out
		}
	}
}

// fill puts n archives a week apart, and their index.
func fill(t testing.TB, b tidemark.Blobs, n int) []archive.Info {
	t.Helper()
	var infos []archive.Info
	for k := range n {
		at := noon.AddDate(0, 0, -7*k)
		i := archive.Info{Key: archive.PartKey("main", fmt.Sprintf("01S%d", k%3), at), SessionKey: "agent:main:main", Part: 1, At: at}
		infos = append(infos, put(t, b, i, pack(t, talk(k, 4)...)))
	}
	if err := archive.Index(context.Background(), b, "main", infos...); err != nil {
		t.Fatal(err)
	}
	return infos
}

func keys(infos []archive.Info) string {
	var out []string
	for _, i := range infos {
		out = append(out, i.Key)
	}
	return strings.Join(out, "\n")
}

func TestIndex(t *testing.T) {
	b := tidemarktest.NewBlobs()
	infos := fill(t, b, 20)
	got := listAll(t, b, archive.ListOptions{Limit: 3})
	if keys(got) != keys(infos) {
		t.Fatalf("listed\n%s\nwant\n%s", keys(got), keys(infos))
	}
	if got[0] != infos[0] {
		t.Errorf("%+v, want %+v", got[0], infos[0])
	}
	for _, i := range listAll(t, b, archive.ListOptions{Session: "01S1", Limit: 2}) {
		if i.Session != "01S1" {
			t.Errorf("%s is not of the session", i.Key)
		}
	}
	before := len(b.Keys())
	if err := archive.Index(t.Context(), b, "main", infos[3], infos[3]); err != nil {
		t.Fatal(err)
	}
	if again := listAll(t, b, archive.ListOptions{}); keys(again) != keys(infos) || len(b.Keys()) != before {
		t.Errorf("twice is not once:\n%s", keys(again))
	}
	if _, _, err := archive.List(t.Context(), b, "main", archive.ListOptions{Cursor: "x"}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("bad cursor: %v", err)
	}
	if other, _, err := archive.List(t.Context(), b, "other", archive.ListOptions{}); err != nil || len(other) != 0 {
		t.Errorf("another agent has %v, %v", other, err)
	}
}

func TestIndexRace(t *testing.T) {
	b := tidemarktest.NewBlobs()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := archive.Index(context.Background(), b, "main", archive.Info{Key: archive.WholeKey("main", fmt.Sprint("s", i)), At: noon}); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if got := listAll(t, b, archive.ListOptions{}); len(got) != 4 {
		t.Errorf("%d archives, want 4", len(got))
	}
}

func TestVerify(t *testing.T) {
	b := tidemarktest.NewBlobs()
	info := put(t, b, part(1), pack(t, talk(0, 8)...))
	rows := []struct {
		name   string
		change func(*archive.Info)
		want   string
	}{
		{"sound", func(*archive.Info) {}, ""},
		{"by its metadata only", func(i *archive.Info) { *i = archive.Info{Key: i.Key} }, ""},
		{"missing", func(i *archive.Info) { i.Key = part(5).Key }, "missing"},
		{"hash", func(i *archive.Info) { i.SHA256 = tidemark.HashOf(nil) }, "hash is"},
		{"size", func(i *archive.Info) { i.Bytes++ }, "bytes"},
		{"of no size", func(i *archive.Info) { i.Bytes = 0 }, ""},
		{"of no count", func(i *archive.Info) { i.Messages = 0 }, ""},
		{"count", func(i *archive.Info) { i.Messages++ }, "8 messages, 9 were written"},
		{"hash, of no count", func(i *archive.Info) { i.Messages, i.SHA256 = 0, tidemark.HashOf(nil) }, "hash is"},
		{"count, of no hash", func(i *archive.Info) { i.Messages, i.SHA256 = 9, "" }, "8 messages, 9 were written"},
		{"a count of one", func(i *archive.Info) { i.Messages = 1 }, "8 messages, 1 were written"},
		{"first", func(i *archive.Info) { i.First = "x" }, "begins with"},
		{"last", func(i *archive.Info) { i.Last = "x" }, "ends with"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			i := info
			r.change(&i)
			v, err := archive.Verify(t.Context(), b, i)
			if err != nil || v.OK != (r.want == "") || !strings.Contains(strings.Join(v.Problems, "; "), r.want) {
				t.Errorf("%+v, %v, want %q", v, err, r.want)
			}
		})
	}
	o, body, err := b.Get(t.Context(), info.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	other := pack(t, talk(1, 8)...).Data
	if _, err := b.Put(t.Context(), info.Key, bytes.NewReader(other), int64(len(other)), tidemark.PutOptions{Metadata: o.Metadata}); err != nil {
		t.Fatal(err)
	}
	if v, err := archive.Verify(t.Context(), b, archive.Info{Key: info.Key}); err != nil || v.OK || v.Messages != 8 || !strings.Contains(v.Problems[0], "hash is") {
		t.Errorf("another archive, by its metadata only: %+v, %v", v, err)
	}
	data := pack(t, talk(0, 8)...).Data
	for at := range data { // any flipped bit is found
		bad := append([]byte(nil), data...)
		bad[at] ^= 0x10
		if _, err := b.Put(t.Context(), info.Key, strings.NewReader(string(bad)), int64(len(bad)), tidemark.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if v, err := archive.Verify(t.Context(), b, info); err != nil || v.OK {
			t.Fatalf("byte %d flipped: %+v, %v", at, v, err)
		}
	}
}

func TestSearch(t *testing.T) {
	b := tidemarktest.NewBlobs()
	say := func(n int, at time.Time, text string) tidemark.Entry {
		e := entry(n, string(tidemark.NewText(tidemark.User, text).AppendJSON(nil)))
		e.At = at
		return e
	}
	long := strings.Repeat("filler words ", 60) + "the needle is max_key_part " + strings.Repeat("and more ", 60)
	one := put(t, b, archive.Info{Key: archive.PartKey("main", "01S", noon), At: noon}, pack(t,
		say(1, noon, "deploy on Fridays"), say(2, noon.Add(time.Hour), "deploy with pnpm on Fridays"), say(3, noon, long), say(4, noon, "東京タワー"),
		entry(5, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"rm build\/zebra.txt"}}]}`),
		entry(6, `{"role":"user","content":"caf\u00e9 noir"}`), say(9, noon, "Zu\u0308rich")))
	whole, err := archive.PutWhole(t.Context(), b, archive.Info{Key: archive.WholeKey("main", "01S"), At: noon.Add(time.Hour)}, []archive.Info{one}, pack(t, say(7, noon, "tail of pnpm")))
	if err != nil {
		t.Fatal(err)
	}
	two := put(t, b, archive.Info{Key: archive.PartKey("main", "01T", noon.AddDate(0, -2, 0)), At: noon.AddDate(0, -2, 0)}, pack(t, say(8, noon, "older deploy")))
	if err := archive.Index(t.Context(), b, "main", one, whole, two); err != nil {
		t.Fatal(err)
	}
	rows := []struct{ name, query, ids string }{
		{"one word", "pnpm", "01E0002 01E0007"},
		{"more terms first, then the newest", "deploy Fridays", "01E0002 01E0001 01E0008"},
		{"identifier", "max_key_part", "01E0003"},
		{"part of it", "key part", "01E0003"},
		{"no spaces", "タワー", "01E0004"},
		{"one character of them", "京", "01E0004"},
		{"arguments of a call, escaped slash", "build/zebra.txt", "01E0005"},
		{"escaped letters", "café", "01E0006"},
		{"a letter and its mark apart", "zürich", "01E0009"},
		{"one of three terms", "pnpm xylophone glockenspiel", ""},
		{"one of three terms, and one within a word", "pnpm ridays glockenspiel", ""},
		{"two of four terms", "pnpm Fridays xylophone glockenspiel", "01E0002"},
		{"nothing", "xylophone", ""},
		{"a word within a word", "ridays", ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			found, err := archive.Search(t.Context(), b, "main", r.query, archive.SearchOptions{})
			var ids []string
			for _, h := range found.Hits {
				ids = append(ids, string(h.ID))
			}
			if err != nil || strings.Join(ids, " ") != r.ids || found.Searched != 2 {
				t.Errorf("%v, %d searched, %v, want %s", ids, found.Searched, err, r.ids)
			}
		})
	}
	found, err := archive.Search(t.Context(), b, "main", "needle", archive.SearchOptions{})
	if err != nil || len(found.Hits) != 1 || !strings.Contains(found.Hits[0].Snippet, "…") || !strings.Contains(found.Hits[0].Snippet, "the needle is") || len(found.Hits[0].Snippet) > 400 || found.Hits[0].Line != 3 || found.Hits[0].Key != whole.Key {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := archive.Search(t.Context(), b, "main", "…", archive.SearchOptions{}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("no words: %v", err)
	}
	found, err = archive.Search(t.Context(), b, "main", "deploy", archive.SearchOptions{MaxBytes: 1, Limit: 1})
	if err != nil || found.Searched != 1 || found.Skipped != 1 || len(found.Hits) != 1 {
		t.Errorf("bounded: %+v, %v", found, err)
	}
	if err := b.Delete(t.Context(), whole.Key); err != nil {
		t.Fatal(err)
	}
	if found, err = archive.Search(t.Context(), b, "main", "older", archive.SearchOptions{}); err != nil || len(found.Hits) != 1 || len(found.Damaged) != 1 {
		t.Errorf("with one missing: %+v, %v", found, err)
	}
}

func TestMarkdown(t *testing.T) {
	b := tidemarktest.NewBlobs()
	info := put(t, b, part(1), pack(t, append(talk(0, 3), entry(9, "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"x\",\"is_error\":true,\"content\":\"```\\nfence\"}]}"))...))
	var out []byte
	for _, l := range read(t, b, info.Key) {
		out = archive.AppendMarkdown(out, l)
	}
	out = archive.AppendMarkdown(out, archive.Line{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{
		{Type: tidemark.TypeToolResult, Content: []tidemark.Block{tidemark.Text("one\n\n"), {Type: tidemark.TypeImage}, tidemark.Text("two")}}}}})
	want := "## user (2026-11-21 12:00:00 UTC)\n\nquestion 0 about <b> & 東京 🗼 \\ \n\n" +
		"## assistant (2026-11-21 12:00:01 UTC)\n\n*[thinking]*\n\nCalls `Bash`:\n\n```json\n{\"b\":1.0,\"a\":1e3,\"command\":\"ls -la src/main.go\"}\n```\n\n" +
		"## user (2026-11-21 12:00:02 UTC)\n\nResult:\n\n```\nmain.go\n```\n\n" +
		"## user (2026-11-21 12:00:09 UTC)\n\nResult (error):\n\n````\n```\nfence\n````\n\n" +
		"## user\n\nResult:\n\n```\none\n```\n\n*[image]*\n\n```\ntwo\n```\n\n"
	if string(out) != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
}

// hits are the ids of what a search finds, in its order.
func hits(t *testing.T, b tidemark.Blobs, query string) string {
	t.Helper()
	found, err := archive.Search(t.Context(), b, "main", query, archive.SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range found.Hits {
		ids = append(ids, string(h.ID))
	}
	return strings.Join(ids, " ")
}

// TestSearchEcho: what a person said comes before what the assistant repeats of it later, and what it says of its own is
// no echo. Another session's archive that has the words, too, keeps its place.
func TestSearchEcho(t *testing.T) {
	b := tidemarktest.NewBlobs()
	at := func(n int, role tidemark.Role, text string) tidemark.Entry {
		return entry(n, string(tidemark.NewText(role, text).AppendJSON(nil)))
	}
	whole := put(t, b, archive.Info{Key: archive.WholeKey("main", "01S"), At: noon.Add(time.Hour)}, pack(t,
		at(2, tidemark.User, "The oven comes from Lahti and costs 4,200 euros.\nIt rains all day today here."),
		at(3, tidemark.Assistant, "You said: “The oven comes from Lahti and costs 4,200 euros.”"),
		at(4, tidemark.Assistant, "It goes with this: “the oven comes from Lahti and costs 4,200 euros”."),
		at(5, tidemark.Assistant, "An oven of Lahti needs a permit.\nIt rains all day today here.")))
	other := put(t, b, archive.Info{Key: archive.WholeKey("main", "01T"), At: noon.Add(-time.Hour)}, pack(t, at(1, tidemark.User, "An oven, from Lahti perhaps.")))
	if err := archive.Index(t.Context(), b, "main", whole, other); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"oven Lahti", "oven"} {
		if got := hits(t, b, query); got != "01E0005 01E0002 01E0001 01E0004 01E0003" {
			t.Errorf("%s: %s", query, got)
		}
	}
	// Of a person who says very much, so many sentences are known again.
	var much strings.Builder
	for i := range 201 {
		fmt.Fprintf(&much, "A kiln holds %d bricks. ", i)
	}
	chatty := put(t, b, archive.Info{Key: archive.WholeKey("main", "01U"), At: noon}, pack(t, at(11, tidemark.User, much.String()), at(12, tidemark.Assistant, "A kiln holds 200 bricks."), at(13, tidemark.Assistant, "A kiln holds 199 bricks.")))
	if err := archive.Index(t.Context(), b, "main", chatty); err != nil {
		t.Fatal(err)
	}
	if got := hits(t, b, "kiln"); got != "01E0012 01E0011 01E0013" {
		t.Errorf("of very much: %s", got)
	}
}

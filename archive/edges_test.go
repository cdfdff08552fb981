package archive_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// acts are all that asks a bucket, each as its error.
var acts = map[string]func(context.Context, tidemark.Blobs, []archive.Info) error{
	"list": func(ctx context.Context, b tidemark.Blobs, _ []archive.Info) error {
		_, _, err := archive.List(ctx, b, "main", archive.ListOptions{})
		return err
	},
	"search": func(ctx context.Context, b tidemark.Blobs, _ []archive.Info) error {
		_, err := archive.Search(ctx, b, "main", "question", archive.SearchOptions{})
		return err
	},
	"verify": func(ctx context.Context, b tidemark.Blobs, infos []archive.Info) error {
		_, err := archive.Verify(ctx, b, infos[0])
		return err
	},
	"mend": func(ctx context.Context, b tidemark.Blobs, _ []archive.Info) error {
		_, err := archive.Mend(ctx, b, "main", archive.Bounds{})
		return err
	},
	"index": func(ctx context.Context, b tidemark.Blobs, infos []archive.Info) error {
		return archive.Index(ctx, b, "main", infos...)
	},
	"read": func(ctx context.Context, b tidemark.Blobs, infos []archive.Info) error {
		for _, err := range archive.Read(ctx, b, infos[0].Key) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"put": func(ctx context.Context, b tidemark.Blobs, infos []archive.Info) error {
		_, err := archive.PutWhole(ctx, b, archive.Info{Key: archive.WholeKey("main", "w"), At: noon}, infos[:3], archive.Pack{})
		return err
	},
}

// TestEachFault fails each call of the bucket in turn: whoever asked hears of it, no body stays open, and the next try
// does what there was to do.
func TestEachFault(t *testing.T) {
	down := errors.New("bucket is down")
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			for k, calls := 1, 1; k <= calls; k++ {
				b := tidemarktest.NewBlobs()
				infos := fill(t, b, 6)
				if err := b.Delete(t.Context(), archive.IndexKey("main", noon)); err != nil {
					t.Fatal(err)
				}
				if err := b.Delete(t.Context(), infos[4].Key); err != nil {
					t.Fatal(err)
				}
				calls = 0
				b.Fail = func(string, string) error {
					if calls++; calls == k {
						return down
					}
					return nil
				}
				if err := act(t.Context(), b, infos); !errors.Is(err, down) {
					t.Errorf("call %d failed, and it says %v", k, err)
				}
				if err := act(t.Context(), b, infos); err != nil {
					t.Errorf("call %d failed before: %v", k, err)
				}
				if b.Open() != 0 {
					t.Errorf("call %d failed, and %d bodies are open", k, b.Open())
				}
				// What was counted is the first try up to its failure and the second one; only the latter has to be gone through.
				calls -= k
			}
		})
	}
}

// TestStopped: what reads lines ends with the context that was cancelled meanwhile.
func TestStopped(t *testing.T) {
	for _, name := range []string{"search", "verify", "read"} {
		b := tidemarktest.NewBlobs()
		infos := fill(t, b, 1)
		ctx, stop := context.WithCancel(t.Context())
		b.Fail = func(op, key string) error {
			if op == "get" && key == infos[0].Key {
				stop()
			}
			return nil
		}
		if err := acts[name](ctx, b, infos); !errors.Is(err, context.Canceled) || b.Open() != 0 {
			t.Errorf("%s: %v, %d bodies open", name, err, b.Open())
		}
		stop()
	}
}

// slow gives the bytes of its objects one at a time.
type slow struct{ *tidemarktest.Blobs }

func (s slow) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	o, body, err := s.Blobs.Get(ctx, key)
	if err != nil {
		return o, nil, err
	}
	return o, struct {
		io.Reader
		io.Closer
	}{iotest.OneByteReader(body), body}, nil
}

func TestPutWholeSlowly(t *testing.T) {
	b := slow{tidemarktest.NewBlobs()}
	parts := []archive.Info{put(t, b, part(1), pack(t, talk(0, 8)...)), put(t, b, part(2), pack(t, talk(8, 8)...))}
	info, err := archive.PutWhole(t.Context(), b, archive.Info{Key: archive.WholeKey("main", "w"), At: noon}, parts, pack(t, talk(16, 4)...))
	if err != nil || b.Open() != 0 {
		t.Fatalf("%v, %d bodies open", err, b.Open())
	}
	same(t, talk(0, 20), read(t, b, info.Key))
}

// TestProgress: long work tells of each archive once, and of the whole at its end.
func TestProgress(t *testing.T) {
	b := tidemarktest.NewBlobs()
	infos := fill(t, b, 3)
	one := put(t, b, archive.Info{Key: archive.WholeKey("main", "one"), At: noon.AddDate(-1, 0, 0)}, pack(t, talk(0, 1)...))
	if err := archive.Index(t.Context(), b, "main", one); err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(infos), one)
	var told []string
	tell := func(p archive.Progress) { told = append(told, fmt.Sprintln(p.Key, p.Done, p.Total, p.Bytes)) }
	expect := func(name string, total int) {
		t.Helper()
		var want []string
		bytes := int64(0)
		for n, i := range all {
			want = append(want, fmt.Sprintln(i.Key, n, total, bytes))
			bytes += i.Bytes
		}
		if want = append(want, fmt.Sprintln(one.Key, 4, total, bytes)); !slices.Equal(told, want) {
			t.Errorf("%s told\n%s\nwant\n%s", name, told, want)
		}
		told = nil
	}
	if _, err := archive.Search(t.Context(), b, "main", "question", archive.SearchOptions{Progress: tell}); err != nil {
		t.Fatal(err)
	}
	expect("search", 4)
}

// TestPages: pages of any size give each archive once, in order, whatever part of a millisecond or zone its time has.
func TestPages(t *testing.T) {
	b := tidemarktest.NewBlobs()
	var infos []archive.Info
	for n := range 1001 {
		at := noon.Add(time.Duration(n/5)*time.Millisecond + time.Duration(n%3)*time.Microsecond).In(time.FixedZone("x", 3600))
		infos = append(infos, archive.Info{Key: archive.WholeKey("main", fmt.Sprint("s", n)), Session: fmt.Sprint("s", n), At: at})
	}
	if err := archive.Index(t.Context(), b, "main", infos...); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(infos, func(a, b archive.Info) int {
		return cmp.Or(b.At.Truncate(time.Millisecond).Compare(a.At.Truncate(time.Millisecond)), strings.Compare(a.Key, b.Key))
	})
	for _, limit := range []int{7, 999, 1000, 1001} {
		got := listAll(t, b, archive.ListOptions{Limit: limit})
		if keys(got) != keys(infos) {
			t.Errorf("pages of %d: %d archives, in another order", limit, len(got))
		}
		if i := got[0]; i.At != noon.Add(200*time.Millisecond) {
			t.Errorf("%+v", i)
		}
	}
	for limit, want := range map[int]int{0: 100, 1: 1, 1000: 1000, 1001: 100} {
		if page, next, err := archive.List(t.Context(), b, "main", archive.ListOptions{Limit: limit}); len(page) != want || next == "" || err != nil {
			t.Errorf("limit %d: %d, %q, %v", limit, len(page), next, err)
		}
	}
}

// TestSearchOrder: the most words first, then the newest, over several archives, within what may be read of them; and
// what is damaged is named.
func TestSearchOrder(t *testing.T) {
	b := tidemarktest.NewBlobs()
	type want struct {
		matched int
		at      time.Time
		id      tidemark.EntryID
	}
	var wants []want
	var infos []archive.Info
	for n := range 3 {
		var said []tidemark.Entry
		for k := range 40 {
			words := []string{"kiln", "kiln lime", "kiln lime marl", "nothing"}[(k*7+n)%4]
			e := entry(n*100+k, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%s"},{"type":"text","text":"s%d"}]}`, words, k))
			e.At = noon.AddDate(0, 0, -n).Add(time.Duration(k*13%40) * time.Second)
			if m := len(strings.Fields(words)); words != "nothing" && m > 1 {
				wants = append(wants, want{m, e.At, e.ID})
			}
			said = append(said, e)
		}
		infos = append(infos, put(t, b, archive.Info{Key: archive.WholeKey("main", fmt.Sprint("s", n)), At: noon.AddDate(0, 0, -n)}, pack(t, said...)))
	}
	if err := archive.Index(t.Context(), b, "main", infos...); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(wants, func(a, b want) int { return cmp.Or(b.matched-a.matched, b.at.Compare(a.at)) })
	for _, limit := range []int{1, 5, 60} {
		found, err := archive.Search(t.Context(), b, "main", "kiln lime marl", archive.SearchOptions{Limit: limit})
		if err != nil || len(found.Hits) != min(limit, len(wants)) {
			t.Fatalf("%d hits, %v", len(found.Hits), err)
		}
		for n, h := range found.Hits {
			if w := wants[n]; h.Matched != w.matched || h.ID != w.id || !h.At.Equal(w.at) {
				t.Fatalf("hit %d of %d is %+v, want %+v", n, limit, h, w)
			}
		}
	}
	two := infos[0].Bytes + infos[1].Bytes
	for most, searched := range map[int64]int{infos[0].Bytes: 1, two: 2, two + infos[2].Bytes: 3} {
		if found, err := archive.Search(t.Context(), b, "main", "kiln", archive.SearchOptions{MaxBytes: most}); err != nil || found.Searched != searched || found.Skipped != 3-searched {
			t.Errorf("of %d bytes %d are searched, %d left out, %v", most, found.Searched, found.Skipped, err)
		}
	}
	bad := archive.Info{Key: archive.WholeKey("main", "bad"), At: noon.AddDate(1, 0, 0)}
	text := `{"role":"user","content":"a flue"}` + "\n{\"flue\n" + `{"role":"user","content":"the flue"}` + "\n\x1f"
	if _, err := b.Put(t.Context(), bad.Key, strings.NewReader(text), int64(len(text)), tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := archive.Index(t.Context(), b, "main", bad); err != nil {
		t.Fatal(err)
	}
	if v, err := archive.Verify(t.Context(), b, bad); err != nil || v.OK || v.Messages != 2 || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "line 2") {
		t.Errorf("%+v, %v", v, err)
	}
	if found, err := archive.Search(t.Context(), b, "main", "flue", archive.SearchOptions{}); err != nil || len(found.Hits) != 2 || !slices.Equal(found.Damaged, []string{bad.Key}) || found.Searched != 4 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestSnippet: what is shown is at most 240 runes from the first word on and 60 before it, and says where it is cut. Words
// of two blocks do not run together, a word that begins within another stays part of it, and the name of a tool is found.
func TestSnippet(t *testing.T) {
	for _, r := range []struct{ before, after int }{{0, 0}, {59, 234}, {60, 235}, {61, 236}, {300, 900}} {
		b := tidemarktest.NewBlobs()
		before, after := strings.Repeat("é", max(0, r.before)), strings.Repeat("x", r.after)
		text := strings.TrimSpace(before + " kiln " + after)
		info := put(t, b, part(1), pack(t, entry(1, string(tidemark.NewText(tidemark.User, text).AppendJSON(nil)))))
		if err := archive.Index(t.Context(), b, "main", info); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(before + " kiln " + after)
		if r.before > 60 {
			want = "…" + strings.Repeat("é", 60) + " kiln " + after
		}
		if r.after > 235 {
			want = strings.TrimSuffix(want, after) + after[:235] + "…"
		}
		found, err := archive.Search(t.Context(), b, "main", "kiln", archive.SearchOptions{})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].Snippet != want {
			t.Errorf("%v: %+v, want %s", r, found.Hits, want)
		}
	}
	b := tidemarktest.NewBlobs()
	info := put(t, b, part(1), pack(t, entry(1, `{"role":"assistant","content":[{"type":"text","text":"the flue"},{"type":"text","text":"marl"},{"type":"tool_use","id":"t","name":"Grate","input":{"a":"ash"}}]}`)))
	if err := archive.Index(t.Context(), b, "main", info); err != nil {
		t.Fatal(err)
	}
	whole := `the flue marl Grate {"a":"ash"}`
	for _, word := range []string{"flue", "marl", "grate", "ash"} {
		if found, err := archive.Search(t.Context(), b, "main", word, archive.SearchOptions{}); err != nil || len(found.Hits) != 1 || found.Hits[0].Snippet != whole {
			t.Errorf("%s: %+v, %v", word, found, err)
		}
	}
}

// TestTimes: a time is a number of milliseconds that can be one, or RFC 3339.
func TestTimes(t *testing.T) {
	for raw, want := range map[string]time.Time{
		"1": time.UnixMilli(1), "1e12": time.UnixMilli(1e12), "9007199254740991": time.UnixMilli(1<<53 - 1), "9007199254740992": {}, "1e300": {}, "0": {}, "-5": {}, "null": {},
		`"2026-11-21T13:00:00.123+01:00"`: noon, `"noon"`: {},
	} {
		for l, err := range archive.Decode(strings.NewReader(`{"role":"user","content":"x","timestamp":`+raw+`}`), archive.Limits{}) {
			if err != nil || !l.At.Equal(want) {
				t.Errorf("%s is %v, %v", raw, l.At, err)
			}
		}
	}
}

// TestCalls: what a reply cost is read from any of its fields, and of nobody else.
func TestCalls(t *testing.T) {
	for line, want := range map[string]tidemark.Call{
		`{"role":"assistant","content":"x"}`:                                       {},
		`{"role":"assistant","content":"x","model":"m"}`:                           {Model: "m"},
		`{"role":"assistant","content":"x","stopReason":"s"}`:                      {Stop: "s"},
		`{"role":"assistant","content":"x","usage":{"input":1}}`:                   {Reported: true, Usage: tidemark.Usage{Input: 1}},
		`{"role":"assistant","content":"x","usage":{"output":1},"estimated":true}`: {Usage: tidemark.Usage{Output: 1}},
		`{"role":"user","content":"x","usage":{"input":1},"model":"m"}`:            {},
	} {
		for l, err := range archive.Decode(strings.NewReader(line), archive.Limits{}) {
			got := tidemark.Call{}
			if l.Call != nil {
				got = *l.Call
			}
			if err != nil || got != want || (l.Call == nil) != (want == tidemark.Call{}) {
				t.Errorf("%s: %+v, %v", line, l.Call, err)
			}
		}
	}
}

// TestIndexedAnew: of an archive that is indexed again what was said last counts, also of its time; the file of a month is in
// the order of time, and archives of several months are indexed in one.
func TestIndexedAnew(t *testing.T) {
	b := tidemarktest.NewBlobs()
	var infos []archive.Info
	for _, hour := range []int{3, 1, 2, -24 * 40, 4} {
		infos = append(infos, archive.Info{Key: archive.WholeKey("main", fmt.Sprint("s", hour)), Session: fmt.Sprint("s", hour), At: noon.Add(time.Duration(hour) * time.Hour)})
	}
	if err := archive.Index(t.Context(), b, "main", infos...); err != nil {
		t.Fatal(err)
	}
	for _, hour := range []int{9, -9} {
		infos[1].At = noon.Add(time.Duration(hour) * time.Hour)
		if err := archive.Index(t.Context(), b, "main", infos[1]); err != nil {
			t.Fatal(err)
		}
		var hours []string
		for _, i := range listAll(t, b, archive.ListOptions{}) {
			hours = append(hours, fmt.Sprint(i.Session, " ", i.At.Sub(noon).Hours()))
		}
		want := []string{"s4 4", "s3 3", "s2 2", fmt.Sprint("s1 ", hour), "s-960 -960"}
		if hour > 0 {
			want = []string{"s1 9", "s4 4", "s3 3", "s2 2", "s-960 -960"}
		}
		if !slices.Equal(hours, want) {
			t.Errorf("%v, want %v", hours, want)
		}
		_, body, err := b.Get(t.Context(), archive.IndexKey("main", noon))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for line := range strings.Lines(string(text)) {
			_, at, _ := strings.Cut(line, `"archivedAt":"`)
			if at < last {
				t.Errorf("%s", text)
			}
			last = at
		}
	}
}

// TestParseKey: each part that a key has, and has to have.
func TestParseKey(t *testing.T) {
	for key, want := range map[string]string{
		archive.WholeKey("main", "01S"):                                        "main 01S true",
		archive.PartKey("main", "01S", noon):                                   "main 01S false",
		strings.TrimPrefix(archive.WholeKey("main", "01S"), "agents/"):         "", // of nobody's folder
		"x" + archive.WholeKey("main", "01S"):                                  "",
		archive.WholeKey("main", "01S") + "x":                                  "",
		archive.WholeKey("main", ""):                                           "",
		archive.WholeKey("a/b", "01S"):                                         "",
		archive.WholeKey("main", "a/b"):                                        "",
		archive.Folder("main"):                                                 "",
		strings.Replace(archive.WholeKey("main", "01S"), "/sessions/", "/", 1): "",
	} {
		agent, session, at, ok := archive.ParseKey(key)
		got := ""
		if ok {
			got = fmt.Sprint(agent, " ", session, " ", at.IsZero())
		}
		if got != want || !ok && (agent != "" || session != "" || !at.IsZero()) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// TestOneLine: an entry is one line, whatever breaks stand between the tokens of its message.
func TestOneLine(t *testing.T) {
	for _, gap := range []string{"", "\n", "\r", "\r\n"} {
		for _, said := range []string{`{"role":"user","content":[{"type":"future_block",GAP"x":1}]}`, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{GAP"x":1}}]}`, `{"role":"user",GAP"content":"x"}`} {
			line, err := archive.AppendLine(nil, entry(1, strings.ReplaceAll(said, "GAP", gap)))
			plain, failed := archive.AppendLine(nil, entry(1, strings.ReplaceAll(said, "GAP", "")))
			if text := string(line); err != nil || failed != nil || strings.IndexAny(text, "\r\n") != len(text)-1 || text != string(plain) {
				t.Errorf("%q: %q, want %q, %v", gap, text, plain, err)
			}
		}
	}
}

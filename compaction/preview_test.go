package compaction_test

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

func TestPreviewText(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for range 20_000 {
		rows.WriteString("7,anna,3.5\n")
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"blank lines", "\n \n\t\n", ""},
		{"short text", "one\ntwo", "one\ntwo"},
		{"text shows its end", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n\n10\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10"},
		{"log", "2026-05-31T10:00:00Z start\n2026-05-31T10:00:01Z ERROR no disk\n", "2026-05-31T10:00:00Z start\n2026-05-31T10:00:01Z ERROR no disk"},
		{"log with brackets", "[INFO] a\n[INFO] b\n", "[INFO] a\n[INFO] b"},
		{"numbers in brackets are no JSON", "[1] building\n[2] testing\n", "[1] building\n[2] testing"},
		{"times of a log with a comma are no CSV", "2026-05-31 10:00:00,101 a\n2026-05-31 10:00:00,102 b\n2026-05-31 10:00:00,103 c", "2026-05-31 10:00:00,101 a\n2026-05-31 10:00:00,102 b\n2026-05-31 10:00:00,103 c"},
		{"progress draws over itself", "10 %\r50 %\r100 %\r\ndone\r\n", "100 %\ndone"},
		{"colours of a terminal", "\x1b[31mred\x1b[0m\x00", "[31mred[0m"},
		{"JSON on one line", `{"a":1,"b":[true,null],"c":{},"d":"x\"y"}`, "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    null\n  ],\n  \"c\": {"},
		{"JSON as it stands", "{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3,\n \"d\": 4,\n \"e\": 5,\n \"f\": 6,\n \"g\": 7\n}", "{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3,\n \"d\": 4,\n \"e\": 5,\n \"f\": 6,"},
		{"lines of JSON", "{\"a\":1}\n{\"a\":2}\n", "{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}"},
		{"JSON with a tail is text", "{\"a\":1}\nexit status 1\n", "{\"a\":1}\nexit status 1"},
		{"Go source is text", "{\n\tfor i := range x {\n", "{\n for i := range x {"},
		{"CSV", "id,name,score\n1,anna,2\n2,\"bo, b\",3\n3,cy,4\n", "id,name,score\n1,anna,2\n2,\"bo, b\",3"},
		{"CSV by semicolons", "id;name\n1;a\n2;b\n", "id;name\n1;a\n2;b"},
		{"large CSV", "id,name,score\n" + rows.String(), "id,name,score\n7,anna,3.5\n7,anna,3.5"},
		{"prose with commas is text", "Well, it is so.\nNo, it is not.\nYes, it is.\n", "Well, it is so.\nNo, it is not.\nYes, it is."},
		{"long line", strings.Repeat("a", 30_000), strings.Repeat("a", 198) + "…"},
		{"one long line of many", strings.Repeat("a", 3_000) + "\nb", strings.Repeat("a", 65) + "…\nb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := compaction.PreviewOf(tt.text, compaction.PreviewTokens)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPreviewIsCheap: a preview reads the ends of a text only, so it takes no memory for the rest of it. Not parallel,
// since what others allocate meanwhile would count.
func TestPreviewIsCheap(t *testing.T) {
	for name, text := range map[string]string{"json": `{"a":"` + strings.Repeat("x", 20<<20), "brackets": strings.Repeat("[", 20<<20), "quotes": strings.Repeat(`"`, 20<<20),
		"lines": strings.Repeat("\n", 20<<20), "text": strings.Repeat("a,", 10<<20)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		compaction.PreviewOf(text, compaction.PreviewTokens)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
			t.Errorf("%s: a preview of 20 MB allocates %d bytes", name, n)
		}
	}
}

func FuzzPreviewText(f *testing.F) {
	for _, s := range []string{"", "a\nb", `{"a":[1,{"b":null}],"c":"\u00e9"}`, "a,b\n1,2\n3,4", "[INFO] x\r\ny", "\xff\xfe\n", `{"a":`, "[-1e-5,", "{}{}", "]", `{"a"}`, "日本語、テキスト\n"} {
		f.Add(s, 60)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(0, min(most, 400))
		got := compaction.PreviewOf(s, tidemark.Tokens(most))
		if !utf8.ValidString(got) && utf8.ValidString(s) {
			t.Errorf("preview of %q is not UTF-8: %q", s, got)
		}
		if n := tidemark.EstimateText(got); n > tidemark.Tokens(most) {
			t.Errorf("preview of %q has %d tokens, at most %d", s, n, most)
		}
		if strings.Count(got, "\n") >= 10 {
			t.Errorf("preview of %q has more than 10 lines", s)
		}
	})
}

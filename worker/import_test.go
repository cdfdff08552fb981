//go:build !js

package worker_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/worker"
)

// TestImportOfNothing: a file that is no log is refused in a few words, and makes no session.
func TestImportOfNothing(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.MaxSpool = 1 << 20 })
	prose := strings.Repeat("# A heading and some words\n", 10_000)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, prose); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	late := strings.Repeat("no line of a log\n", 20_000) + `{"role":"user","content":"at last"}` + "\n"
	for _, tc := range []struct{ name, query, body string }{
		{"prose", "", prose},
		{"prose as lines", "?format=jsonl", prose},
		{"prose, packed", "", packed.String()},
		{"prose as a stream", "?stream=1", prose},
		{"nothing", "", ""},
		{"JSON of another kind", "", strings.Repeat(`{"type":"summary","summary":"x"}`+"\n", 500)},
		{"one binary line", "?format=claude", strings.Repeat("\x00\x01\x02", 50_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := "/v1/sessions/none-" + strings.ReplaceAll(tc.name, " ", "-")
			key = strings.ReplaceAll(key, ",", "")
			f := get[fault](s, 400, "POST", key+"/import"+tc.query, tc.body)
			if !strings.Contains(f.Error.Message, "no message in this file; is it a log of Claude Code") || len(f.Error.Message) > 500 {
				t.Errorf("%+v", f)
			}
			s.text(404, "GET", key, "")
		})
	}
	got := get[importing](s, 200, "POST", "/v1/sessions/late/import?format=jsonl", late)
	if got.Messages != 1 || got.BadLines != 20_000 || len(got.Warnings) != 10 {
		t.Errorf("%d messages, %d bad lines, %d warnings", got.Messages, got.BadLines, len(got.Warnings))
	}
	// Behind what is looked at, the end of the log tells.
	f := get[fault](s, 400, "POST", "/v1/sessions/far/import?format=jsonl", strings.Repeat("no line of a log\n", 80_000))
	if !strings.Contains(f.Error.Message, "no message in this file") {
		t.Errorf("%+v", f)
	}
}

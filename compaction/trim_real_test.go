package compaction_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/transcript"
)

// TestTrimOfRealLogs holds the laws of trimming on logs of Claude Code.
func TestTrimOfRealLogs(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("TIDEMARK_TRANSCRIPTS"), "*.jsonl"))
	if os.Getenv("TIDEMARK_TRANSCRIPTS") == "" || len(paths) == 0 {
		t.Skip("set TIDEMARK_TRANSCRIPTS to a folder of Claude Code logs (*.jsonl) to trim them")
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		w := &world{}
		for it, err := range transcript.Messages(f, transcript.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			w.add(it.Message)
		}
		v, _ := w.view(t)
		n := w.trims(t, 0, 0, nil, sendable)
		after, _ := w.view(t)
		if n == 0 || after.Tokens() >= v.Tokens() {
			t.Errorf("%s: %d edits, %d of %d tokens", path, n, after.Tokens(), v.Tokens())
		}
		_, g := compaction.Trim{}.Plan(v)
		t.Logf("%s: %d messages, %d edits, %+v", filepath.Base(path), len(v.Items), n, g)
	}
}

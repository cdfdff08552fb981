package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// agentLog is a log of Claude Code of so many turns.
func agentLog(turns int) string {
	var b strings.Builder
	for i := range turns {
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","timestamp":"2026-11-01T10:%02d:00Z","message":{"role":"user","content":"Look at module %d, please."}}`+"\n", i, i%60, i)
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"a%d","message":{"id":"m%d","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/srv/app/%s/main_%d.go"}}]}}`+"\n", i, i, i, word(i), i)
		fmt.Fprintf(&b, `{"type":"user","uuid":"r%d","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"commit %07xa1\n%s"}]}}`+"\n", i, i, i*7919+1<<20, strings.Repeat(word(i%7)+" does what it did. ", 40))
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"b%d","message":{"id":"n%d","role":"assistant","model":"claude","content":[{"type":"text","text":"It does what it should."}]}}`+"\n", i, i)
	}
	return b.String()
}

// TestAgents: identifiers of an agent's log and needles planted among its turns are found after real
// compactions, and the rules of talk do them no harm.
func TestAgents(t *testing.T) {
	a := Agents{Needles: 10, Window: 8000}
	got, err := a.Run(t.Context(), "x.jsonl", []byte(agentLog(60)), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
	if got.Cycles < 2 || got.Asked[kindPlanted] != 10 || got.Asked[kindPath] != 10 || got.Asked[kindHash] == 0 {
		t.Errorf("%+v", got)
	}
	for kind := range got.Asked {
		if got.ByKind[kind] < 0.98 {
			t.Errorf("%s: %.2f", kind, got.ByKind[kind])
		}
		if kind != kindAbsent && got.Ranked[kind] < got.Without[kind] {
			t.Errorf("%s: %.2f with the rules of talk, %.2f without", kind, got.Ranked[kind], got.Without[kind])
		}
	}
	if _, err := a.Run(t.Context(), "empty.jsonl", []byte("{}\n"), t.TempDir()); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "empty.jsonl") {
		t.Errorf("of a log without messages: %v", err)
	}
}

// TestRealLogs runs on the logs of a folder, as the import does: TIDEMARK_TRANSCRIPTS=folder.
func TestRealLogs(t *testing.T) {
	folder := os.Getenv("TIDEMARK_TRANSCRIPTS")
	if folder == "" {
		t.Skip("TIDEMARK_TRANSCRIPTS names no folder")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Agents{Needles: 50, Window: 32_000}.Run(t.Context(), file, raw, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", got)
		if got.ByKind[kindPlanted] < 1 || got.ByKind[kindAbsent] < 0.98 {
			t.Errorf("%s: %v", got.File, got.ByKind)
		}
	}
}

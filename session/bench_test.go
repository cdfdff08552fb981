//go:build !js

package session_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// The benchmarks of this folder run on what a server runs on: a database in a file, a bucket in a
// folder, the machine's clock. docs/benchmarks.md has the figures and what limits them.

// fileDB opens a database in a file of its own.
func fileDB(tb testing.TB) tidemark.DB {
	tb.Helper()
	db, err := native.OpenDB(filepath.Join(tb.TempDir(), "agent.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// dirBlobs opens a bucket in a folder of its own.
func dirBlobs(tb testing.TB) tidemark.Blobs {
	tb.Helper()
	d, err := native.NewDir(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// life bounds the sessions of a benchmark and waits for what they started.
func life(tb testing.TB) (context.Context, *native.Runtime) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	rt := native.NewRuntime(nil)
	tb.Cleanup(func() {
		stop()
		const ending = 20 * time.Second
		limited, cancel := context.WithTimeout(context.Background(), ending)
		defer cancel()
		if err := rt.Wait(limited); err != nil {
			tb.Errorf("%d goroutines outlive the benchmark", rt.Running())
		}
	})
	return ctx, rt
}

// openSession opens a session or ends the benchmark.
func openSession(tb testing.TB, ctx context.Context, c session.Config) *session.Session {
	tb.Helper()
	if c.Agent == nil {
		c.Agent = &fakeAgent{}
	}
	if c.Settings.Model == "" {
		c.Settings.Model = "test"
	}
	if c.Rooms == nil {
		c.Rooms = finding
	}
	s, err := session.Open(ctx, c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// one is a model in the process that answers at once with one piece.
type one struct{}

func (one) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		const text = "The tide is low at six and high at noon."
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(text)}}
		if yield(tidemark.Delta{Text: text}, nil) {
			yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: req.Model, Stop: "end_turn"}}}, nil)
		}
	}
}

// transcripts gives a log to import: the real ones of the folder that TIDEMARK_TRANSCRIPTS names,
// else a made one of 3 MB with the shape of an agent's work.
func transcripts(tb testing.TB) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	dir := os.Getenv("TIDEMARK_TRANSCRIPTS")
	if dir == "" {
		out["made"] = madeLog(3 << 20)
		return out
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("TIDEMARK_TRANSCRIPTS is %s, which holds no *.jsonl file (%v)", dir, err)
	}
	for _, p := range paths {
		raw, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(p), ".jsonl")[:8]] = raw
	}
	return out
}

// madeLog writes a log of Claude Code: a person asks now and then, the model thinks, calls a tool
// and reads its result.
func madeLog(size int) []byte {
	rng := rand.New(rand.NewPCG(7, 7))
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	line := func(n int, typ string, message map[string]any) {
		at = at.Add(7 * time.Second)
		raw, err := json.Marshal(map[string]any{"type": typ, "uuid": fmt.Sprintf("u%06d", n), "sessionId": "made", "cwd": "/home/me/tide",
			"version": "2.0.0", "timestamp": at.Format(time.RFC3339Nano), "message": message})
		if err != nil {
			panic(err)
		}
		out.Write(append(raw, '\n'))
	}
	for n := 0; out.Len() < size; n += 4 {
		id, call := fmt.Sprintf("msg_%06d", n), fmt.Sprintf("toolu_%06d", n)
		if n%40 == 0 {
			line(n, "user", map[string]any{"role": "user", "content": words(rng, 60)})
		}
		said := func(block map[string]any) {
			line(n+1, "assistant", map[string]any{"id": id, "type": "message", "role": "assistant", "model": "claude-test",
				"content": []any{block}, "usage": map[string]any{"input_tokens": 10 + n, "output_tokens": 90}})
		}
		said(map[string]any{"type": "thinking", "thinking": words(rng, 80), "signature": strings.Repeat("c2ln", 90)})
		said(map[string]any{"type": "text", "text": words(rng, 25)})
		said(map[string]any{"type": "tool_use", "id": call, "name": "Read", "input": map[string]any{"file_path": "/home/me/tide/" + words(rng, 1) + ".go", "limit": 200}})
		line(n+3, "user", map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": call, "content": code(rng, 30+rng.IntN(60))}}})
	}
	return out.Bytes()
}

// resident is the memory of the process that is in RAM, in bytes, 0 where the system does not say.
func resident() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}

// returned is what is resident after the heap gave back all that it could.
func returned() int64 {
	debug.FreeOSMemory()
	return resident()
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

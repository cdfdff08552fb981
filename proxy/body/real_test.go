package body

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// realMessages are the messages of the logs of Claude Code in the folder that TIDEMARK_TRANSCRIPTS names, by log.
func realMessages(tb testing.TB) map[string][][]byte {
	tb.Helper()
	dir := os.Getenv("TIDEMARK_TRANSCRIPTS")
	if dir == "" {
		tb.Skip("set TIDEMARK_TRANSCRIPTS to a folder of Claude Code logs (*.jsonl) to read them")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("TIDEMARK_TRANSCRIPTS is %s, which holds no *.jsonl file (%v)", dir, err)
	}
	logs := map[string][][]byte{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		for line := range bytes.Lines(raw) {
			var l struct {
				Type    string          `json:"type"`
				Side    bool            `json:"isSidechain"`
				Message json.RawMessage `json:"message"`
			}
			if json.Unmarshal(line, &l) != nil || l.Side || l.Type != "user" && l.Type != "assistant" {
				continue
			}
			logs[filepath.Base(name)] = append(logs[filepath.Base(name)], l.Message)
		}
	}
	return logs
}

func realBody(messages [][]byte) []byte {
	out := []byte(`{"model":"m","messages":[`)
	out = append(out, bytes.Join(messages, []byte(", "))...)
	return append(out, `],"stream":true}`...)
}

// TestRealLogs makes requests of real logs: their items decode, the laws of a change hold, and what a trim sent is
// sent again.
func TestRealLogs(t *testing.T) {
	for name, messages := range realMessages(t) {
		m := maker{rng: rand.New(rand.NewPCG(8, 9))}
		var sent []byte
		var last *Trim
		for n := 50; ; n = min(n+50, len(messages)) {
			r := scanned(t, Messages, string(realBody(messages[:n])))
			if len(r.Items) != n {
				t.Fatalf("%s: %d items of %d", name, len(r.Items), n)
			}
			for range 10 {
				c, touched := m.change(r)
				law(t, r, c, touched)
			}
			last = Trimmed(r, Change{}, nil)
			got, err := r.Apply(Change{Trim: last})
			if err != nil || !bytes.HasPrefix(got, bytes.TrimSuffix(sent, []byte(`],"stream":true}`))) {
				t.Fatalf("%s, %d messages: what was sent is not sent again (%v)", name, n, err)
			}
			if len(got) != len(r.raw)-last.Bytes {
				t.Fatalf("%s: %d bytes of %d are left, which is not %+v", name, len(got), len(r.raw), last)
			}
			sent = got
			if n == len(messages) {
				blocksDecode(t, r)
				break
			}
		}
		t.Logf("%s: %d messages, %d bytes; %d bytes less", name, len(messages), len(sent), last.Bytes)
	}
}

// blocksDecode holds blocks against those that the root package reads.
func blocksDecode(t *testing.T, r *Request) {
	t.Helper()
	for i, it := range r.Items {
		var m tidemark.Message
		if err := json.Unmarshal(it.Raw, &m); err != nil || m.Role != it.Role || len(m.Content) != it.Blocks() {
			t.Fatalf("item %d has %d blocks, want %d (%v)", i, it.Blocks(), len(m.Content), err)
		}
		for n, want := range m.Content {
			var b tidemark.Block
			if err := json.Unmarshal(it.Block(n), &b); err != nil || b.Type != want.Type || b.Text != want.Text || b.ID != want.ID {
				t.Fatalf("block %d of item %d is %s (%v)", n, i, it.Block(n), err)
			}
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

// TestOneSize: a context is as large in the tree of snapshots as in the command cost, before a trim and behind it,
// whether the log reports what was sent or not.
func TestOneSize(t *testing.T) {
	const fixed = 18_000
	for _, reported := range []bool{true, false} {
		t.Run(fmt.Sprint("reported=", reported), func(t *testing.T) {
			dir := t.TempDir()
			store := &claude.Store{Home: filepath.Join(dir, "home"), Dir: filepath.Join(dir, "claude")}
			const id = "11111111-aaaa-4bbb-8ccc-000000000001"
			path := filepath.Join(store.Dir, "projects", claude.Encode(dir), id+".jsonl")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			log := sizedLog(dir, id, fixed, reported)
			if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
				t.Fatal(err)
			}
			prices := cost.DefaultPrices()
			price, err := prices.Find("opus")
			if err != nil {
				t.Fatal(err)
			}
			want, err := costlogs.Measure(t.Context(), strings.NewReader(log), int64(len(log)), costlogs.Options{Prices: prices, Model: cost.Model{Price: price, HitRate: 0.9}})
			if err != nil {
				t.Fatal(err)
			}
			of, err := store.Finder().Pick(t.Context(), id, "")
			if err != nil {
				t.Fatal(err)
			}
			node, made, err := store.Trim(t.Context(), of, claude.SnapshotOptions{Name: "a"}, claude.BranchOptions{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			branch, err := store.Finder().Pick(t.Context(), made.Node.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			again, err := store.Snapshot(t.Context(), branch, claude.SnapshotOptions{Name: "of the branch"})
			if err != nil {
				t.Fatal(err)
			}
			known, ok := store.Made(branch)
			raw, err := os.ReadFile(branch.Path)
			if err != nil {
				t.Fatal(err)
			}
			told, err := costlogs.Measure(t.Context(), bytes.NewReader(raw), int64(len(raw)), costlogs.Options{Prices: prices, Model: cost.Model{Price: price, HitRate: 0.9}, Context: known})
			if err != nil || !ok || again.Tokens != made.Node.Tokens || told.Live.Pre != made.Node.Tokens || !told.Live.Lineage {
				t.Errorf("the branch has %d tokens, its snapshot %d, the command cost says %d; %v", made.Node.Tokens, again.Tokens, told.Live.Pre, err)
			}
			for what, pair := range map[string][2]tidemark.Tokens{
				"snapshot":  {node.Tokens, want.Live.Pre},
				"untrimmed": {made.Untrimmed, want.Live.Pre},
				"branch":    {made.Node.Tokens, want.Live.Post},
			} {
				const percent, off = 100, 5 // what estimates of single lines are rounded up, and the forms of blocks
				if d := pair[0] - pair[1]; max(d, -d)*percent > pair[1]*off {
					t.Errorf("%s: %d tokens, the command cost says %d", what, pair[0], pair[1])
				}
			}
			if made.Node.Tokens < fixed {
				t.Errorf("the branch has %d tokens, and system prompt and tools alone %d", made.Node.Tokens, fixed)
			}
		})
	}
}

// sizedLog is a log whose calls sent half as much again as is estimated of the messages, and a fixed size before them.
func sizedLog(dir, id string, fixed tidemark.Tokens, reported bool) string {
	var b strings.Builder
	parent, n, sent := "null", 0, fixed
	line := func(typ, message string, read int) {
		n++
		uuid := fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"cwd":%q,"sessionId":%q,"type":%q,"message":%s,"uuid":%q,"timestamp":%q}`+"\n", parent, dir, id, typ, message, uuid,
			time.Date(2026, 2, 1, 10, 0, n, 0, time.UTC).Format(time.RFC3339))
		parent = `"` + uuid + `"`
		sent += tidemark.EstimateChars(read) * 3 / 2
	}
	for i := range 40 {
		ask, out, say := strings.Repeat("look again ", 20), strings.Repeat(fmt.Sprintf("line %d of a file. ", i), 60), strings.Repeat("it is so ", 30)
		line("user", fmt.Sprintf(`{"role":"user","content":%q}`, ask), len(ask))
		usage := func() string {
			if !reported {
				return ""
			}
			return fmt.Sprintf(`,"usage":{"input_tokens":3,"cache_read_input_tokens":%d,"cache_creation_input_tokens":1,"output_tokens":1}`, sent)
		}
		call := fmt.Sprintf(`[{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/x/%d"}}]`, i, i)
		line("assistant", fmt.Sprintf(`{"id":"m%d","role":"assistant","model":"claude-opus-4-6","content":%s%s}`, i, call, usage()), len(call))
		line("user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, out), len(out))
		line("assistant", fmt.Sprintf(`{"id":"n%d","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":%q}]%s}`, i, say, usage()), len(say))
	}
	return b.String()
}

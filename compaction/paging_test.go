package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

var wide = compaction.Budget{Window: 8000, Reserve: 500, Keep: 500}

// TestPagingForgetsNothing: with what it kept of the plans before, and with nothing kept, paging plans the same.
func TestPagingForgetsNothing(t *testing.T) {
	planned := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 21))
		w, kept := &world{}, eager()
		for range 30 {
			w.grow(r)
			v, shown := w.view(t)
			got, want := kept.Plan(v, wide), eager().Plan(v, wide)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: kept %v, anew %v", seed, got, want)
			}
			if again := kept.Plan(v, wide); !reflect.DeepEqual(got, again) {
				t.Fatalf("seed %d: a second plan of the same view differs", seed)
			}
			planned += len(got)
			if len(got) > 0 && r.IntN(4) > 0 { // else it was not carried out
				if err := w.act(t, shown, got); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if planned < 200 {
		t.Errorf("only %d edits were planned", planned)
	}
}

// TestPagingStubs: the texts are fixed, and all of a block but what leaves stays.
func TestPagingStubs(t *testing.T) {
	w := &world{}
	long := strings.Repeat("one line of it\n", 100)
	w.add(tidemark.NewText(tidemark.User, "go"))
	for i, c := range []tidemark.Block{
		tidemark.ToolUse("c0", "Read", []byte(`{"file_path":"/a/b.go","offset":10,"limit":5}`)),
		tidemark.ToolUse("c1", "Bash", []byte(`{"command":"make"}`)),
		tidemark.ToolUse("c2", "Write", []byte(`{"file_path":"/a/c.go","content":"`+strings.Repeat("x", 3000)+`"}`)),
	} {
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("now"), c}})
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(fmt.Sprint("c", i), long, false)}})
	}
	for range 6 {
		w.add(tidemark.NewText(tidemark.Assistant, "yes"))
		w.add(tidemark.NewText(tidemark.User, "and on"))
	}
	v, _ := w.view(t)
	got := map[string]string{}
	for _, e := range (&compaction.Paging{Zones: eager().Zones}).Plan(v, wide) {
		got[fmt.Sprint(e.From, " ", e.Block)] = string(e.Blocks[0].AppendJSON(nil))
	}
	want := map[string]string{
		"e0003 1": `{"type":"tool_result","tool_use_id":"c0","content":"[Paged out: Read /a/b.go lines 10-14 (1500 bytes, 100 lines). Re-read if needed. recall with {\"entry\": \"e0003#0\"} reads it.]"}`,
		"e0005 1": `{"type":"tool_result","tool_use_id":"c1","content":"[Cleared: Bash (1500 bytes, 100 lines). recall with {\"entry\": \"e0005#0\"} reads it.]"}`,
		"e0006 2": `{"type":"tool_use","id":"c2","name":"Write","input":{"file_path":"/a/c.go","paged_out":"content: 3000 bytes, 1 lines. Re-read the file if needed. recall with {\"entry\": \"e0006#1\"} reads it."}}`,
		"e0007 1": `{"type":"tool_result","tool_use_id":"c2","content":"[Cleared: Write (1500 bytes, 100 lines). recall with {\"entry\": \"e0007#0\"} reads it.]"}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("stubs:\n%s\nwant:\n%s", strings.Join(lines(got), "\n"), strings.Join(lines(want), "\n"))
	}
}

func lines(m map[string]string) (out []string) {
	for k, v := range m {
		out = append(out, k+" "+v)
	}
	return out
}

// TestPagingActsEarly: below the common limit it alone is asked, and its act says so; above, or when it is forced,
// the others go on from what it left.
func TestPagingActsEarly(t *testing.T) {
	w := &world{}
	r := rand.New(rand.NewPCG(4, 4))
	for range 12 {
		w.grow(r)
	}
	v, _ := w.view(t)
	list := []compaction.Strategy{eager(), compaction.Summary{}}
	roomy := compaction.Budget{Window: 4 * v.Size, Reserve: 1000, Keep: 500}
	if !compaction.Due(list, v, roomy) || compaction.Due(list[1:], v, roomy) {
		t.Fatal("paging alone is due")
	}
	act, err := compaction.Plan(list, v, roomy, false)
	if err != nil || !act.Early || act.Summarize >= 0 || len(act.By) != 1 || act.By[0] != "paging" {
		t.Errorf("early act %v, by %q, %v", act.Early, act.By, err)
	}
	if n, bytes := compaction.PagedOut(act.Edits); n != len(act.Edits) || bytes < 100*n {
		t.Errorf("%d of %d edits are of paging, %d bytes", n, len(act.Edits), bytes)
	}
	act, err = compaction.Plan([]compaction.Strategy{eager(), compaction.Summary{}}, v, roomy, true)
	if err != nil || act.Early || act.Summarize < 0 {
		t.Errorf("forced: by %q, %v", act.By, err)
	}
	if rest := compaction.Early(list); len(rest) != 1 || rest[0].Name() != "paging" {
		t.Errorf("early ones: %v", rest)
	}
}

// TestPagingForks: a stub that a later act put on the shared prefix holds in a branch, so what was sent of it stays.
func TestPagingForks(t *testing.T) {
	w := &world{}
	r := rand.New(rand.NewPCG(6, 6))
	for range 15 {
		w.grow(r)
	}
	v, shown := w.view(t)
	edits := eager().Plan(v, wide)
	if len(edits) < 4 {
		t.Fatalf("%d edits", len(edits))
	}
	if err := w.act(t, shown, edits); err != nil {
		t.Fatal(err)
	}
	after, _ := w.view(t)
	head := after.Items[len(after.Items)/2].Seq
	branch := &world{entries: w.entries, at: w.at, seq: w.seq}
	for i, e := range w.entries {
		if e.Seq > head {
			branch.entries = w.entries[:i]
			break
		}
	}
	row := tidemark.Overlay{}
	for _, p := range compaction.Fork(w.placed(t, w.rows), head) {
		row.Edits = append(row.Edits, w.rows[0].Overlay.Edits[p.N])
	}
	branch.seq++
	branch.rows = []compaction.Row{{ID: "fork", Seq: branch.seq, Overlay: row}}
	forked, _ := branch.view(t)
	for i, it := range forked.Items {
		if got, want := string(it.Message.AppendJSON(nil)), string(after.Items[i].Message.AppendJSON(nil)); got != want {
			t.Fatalf("item %d of the branch reads %s, sent was %s", i, got, want)
		}
	}
	if again := eager().Plan(forked, wide); len(again) > 0 {
		for _, e := range again {
			for _, old := range row.Edits {
				if e.From == old.From && e.Block == old.Block {
					t.Errorf("block %d of %s is replaced again", e.Block, e.From)
				}
			}
		}
	}
}

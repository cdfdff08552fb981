package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestTreatments runs a small session through the door under each treatment. Observing changes no byte, whatever is
// done the task is done, and the client sees nothing of ours.
func TestTreatments(t *testing.T) {
	var out, told bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_HOME=" + t.TempDir()}}
	// A small window, so that something leaves.
	if code := m.Run(t.Context(), benchCommands(), []string{"treatments", "--requests", "70", "--bytes", "3000", "--window", "50000", "--json"}); code != 0 {
		t.Fatalf("exit %d: %s", code, told.String())
	}
	var got struct{ Sessions []treatedSession }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Sessions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	list := got.Sessions[0].Treatments
	by := map[string]bench.Treated{}
	for _, r := range list {
		by[r.Treatment] = r
		if !r.Completed || r.Leaks != 0 || !r.Same {
			t.Errorf("%s: the task is not done, or the client saw something of ours: %+v", r.Treatment, r)
		}
	}
	same := by["observe"]
	if same.Treatment, same.Seconds = bench.Direct, by[bench.Direct].Seconds; !equalJSON(t, same, by[bench.Direct]) {
		t.Errorf("observing changes something: %+v and %+v", by["observe"], by[bench.Direct])
	}
	if by["trim"].Reduction <= 0 || by["page"].Reduction <= 0 || by["page+trim"].Effective >= by["page"].Effective {
		t.Errorf("what treatments save: %.3f, %.3f, %.3f", by["trim"].Reduction, by["page"].Reduction, by["page+trim"].Reduction)
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

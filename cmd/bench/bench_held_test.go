package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestBenchLeaveOneOut: two conversations are judged by one another, in words and as JSON; of one nothing can be held out.
func TestBenchLeaveOneOut(t *testing.T) {
	dir := t.TempDir()
	const talk = `{"session_1_date_time":"1:56 pm on 8 May, 2023","session_1":[{"speaker":"Ann","dia_id":"D1:1","text":"Did you get a pet?"},{"speaker":"Bob","dia_id":"D1:2","text":"A parrot called Kiwi."}],
"qa":[{"question":"What is the name of the parrot?","evidence":["D1:2"],"category":4}]}`
	args := []string{"locomo", "--leave-one-out"}
	for _, name := range []string{"7.json", "8.json"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(talk), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	run := func(want int, args ...string) (out, told string) {
		t.Helper()
		var o, e bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Environ: []string{"TIDEMARK_HOME=" + dir}}
		if code := m.Run(t.Context(), benchCommands(), args); code != want {
			t.Errorf("exit code %d\n%s%s", code, &o, &e)
		}
		return o.String(), e.String()
	}
	text, _ := run(0, args...)
	for _, want := range []string{"single-hop", "conversation 7", "2 questions, each conversation by weights that were chosen on the others", "held 8, on the others 1.000", "date "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	raw, _ := run(0, append(args, "--json")...)
	var got bench.Held
	if err := json.Unmarshal([]byte(raw), &got); err != nil || len(got.Folds) != 2 || got.Folds[0].Conversation != "7" || got.Folds[0].Weights["words"] != 0.5 || got.ByCategory["single-hop"]["5"] != 1 {
		t.Errorf("%v: %s", err, raw)
	}
	if _, told := run(cli.ExitUsage, args[:3]...); !strings.Contains(told, "1 file; want two or more") {
		t.Error(told)
	}
	if _, told := run(cli.ExitUsage, append(args, "--vectors")...); !strings.Contains(told, "leave-one-out") {
		t.Error(told)
	}
}

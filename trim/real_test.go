package trim

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/trim/logtest"
)

// cutList keeps cuts.
type cutList []Cut

func (l *cutList) Cut(c Cut) error {
	*l = append(*l, c)
	return nil
}

// trimmed trims a log in memory.
func trimmed(t testing.TB, in []byte, o Options) ([]byte, cutList, Metrics) {
	t.Helper()
	var out bytes.Buffer
	var cuts cutList
	m, err := Trim(context.Background(), bytes.NewReader(in), int64(len(in)), &out, &cuts, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), cuts, m
}

// realLogs are the logs in the folder that TIDEMARK_TRANSCRIPTS names, by their names.
func realLogs(t testing.TB) map[string][]byte {
	t.Helper()
	logs := map[string][]byte{}
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("TIDEMARK_TRANSCRIPTS"), "*.jsonl"))
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		logs[filepath.Base(p)] = b
	}
	return logs
}

// judge runs the script that TIDEMARK_CHECK_MESSAGES names over a log and its trimmed form.
func judge(t *testing.T, before, after []byte) {
	t.Helper()
	script := os.Getenv("TIDEMARK_CHECK_MESSAGES")
	if script == "" {
		return
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if os.WriteFile(in, before, 0o600) != nil || os.WriteFile(out, after, 0o600) != nil {
		t.Fatal("cannot write")
	}
	said, err := exec.Command("python3", script, in, out).Output()
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		After struct {
			Orphans    []any `json:"orphan_results"`
			Unanswered []any `json:"unanswered_calls"`
			Doubled    []any `json:"duplicate_call_ids"`
			Empty      int   `json:"empty_content_lines"`
			EmptyMsgs  int   `json:"empty_messages"`
			Dangling   int   `json:"dangling_parent_uuids"`
		}
		UserLost      int `json:"user_texts_lost"`
		AssistantLost int `json:"assistant_texts_lost"`
		AssistantNew  int `json:"assistant_texts_new"`
	}
	if err := json.Unmarshal(said, &r); err != nil {
		t.Fatal(err)
	}
	a := r.After
	if len(a.Orphans)+len(a.Unanswered)+len(a.Doubled)+a.Empty+a.EmptyMsgs+a.Dangling+r.UserLost+r.AssistantLost+r.AssistantNew > 0 {
		t.Errorf("the script finds faults: %s", said)
	}
}

func TestRealAndGeneratedLogs(t *testing.T) {
	logs := realLogs(t)
	for name, o := range map[string]logtest.Options{
		"mixed":   {Seed: 1, Bytes: 2 << 20},
		"hostile": {Seed: 2, Bytes: 1 << 20, Hostile: true, Titles: true},
		"compact": {Seed: 3, Bytes: 2 << 20, Hostile: true, Compactions: 2},
		"images":  {Seed: 4, Bytes: 3 << 20, Profile: logtest.Images},
		"talking": {Seed: 5, Bytes: 1 << 20, Profile: logtest.Talking},
	} {
		var b bytes.Buffer
		if err := logtest.Write(&b, o); err != nil {
			t.Fatal(err)
		}
		logs[name] = b.Bytes()
	}
	for name, in := range logs {
		t.Run(name, func(t *testing.T) {
			out, m := laws(t, in, Options{How: "untrim --show"})
			judge(t, in, out)
			if m.LiveTokensAfter >= m.LiveTokensBefore {
				t.Errorf("%d tokens before, %d behind", m.LiveTokensBefore, m.LiveTokensAfter)
			}
		})
	}
}

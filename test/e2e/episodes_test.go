//go:build !js

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestEpisodes plays the conversations of testdata/episodes: an agent divides its work with the tool delimiter, and what it
// is done with leaves its context. Each file begins with the rule that it guards. Then come the script, of which a line is
// what a person says or a reply of the model, with its calls behind bars, "wave 80" being a text of so many words; what the
// calls of the tool were told; and what the model was sent at last. -update writes the latter two.
func TestEpisodes(t *testing.T) {
	env := []string{"TIDEMARK_COMPACTION_STRATEGIES=episodes,summary", "TIDEMARK_COMPACTION_EPISODES_BUDGET=4k"}
	eachOwn(t, env, func(t *testing.T, s *site) {
		paths, err := filepath.Glob("testdata/episodes/*.txt")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no scripts: %v", err)
		}
		for _, path := range paths {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { playEpisodes(t, s, path) })
		}
	})
}

var (
	waves = regexp.MustCompile(`\bwave (\d+)`)
	waved = regexp.MustCompile(`(wave ){3,}`)
	// aNote is what is said of the present, behind what was said.
	aNote = regexp.MustCompile(`\{"type":"text","text":"\[(It is|The time is)[^"]*"\}`)
)

func playEpisodes(t *testing.T, s *site, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rule, rest, _ := strings.Cut(string(raw), "-- script --\n")
	script, want, _ := strings.Cut(rest, "-- answers --\n")
	k := at(t, s, "agent:episodes:web:dm:"+strings.TrimSuffix(filepath.Base(path), ".txt"))
	k.set(30_000)
	text := func(said string) string {
		return waves.ReplaceAllStringFunc(said, func(w string) string {
			n, err := strconv.Atoi(strings.Fields(w)[1])
			if err != nil {
				t.Fatal(err)
			}
			return strings.Repeat("wave ", n)
		})
	}
	said, calls := "", 0
	for line := range strings.Lines(script) {
		who, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch who {
		case "person":
			said = text(what)
		case "model":
			parts := strings.Split(what, " | ")
			step := tidemarktest.Step{Text: text(parts[0])}
			for _, p := range parts[1:] {
				calls++
				name, input, _ := strings.Cut(p, " ")
				step.Calls = append(step.Calls, tidemarktest.ToolCall{ID: fmt.Sprintf("call_%d", calls), Name: name, Input: text(input)})
			}
			k.model.Push(step)
			if len(step.Calls) == 0 {
				k.say(said)
			}
		default:
			t.Fatalf("%s: %q is no line of a script", path, line)
		}
	}
	marks := map[string]bool{}
	var answers strings.Builder
	for _, m := range k.messages() {
		for _, b := range m.Content {
			switch {
			case b.Type == tidemark.TypeToolUse && b.Name == "delimiter":
				marks[b.ID] = true
			case b.Type == tidemark.TypeToolResult && marks[b.ToolUseID]:
				fmt.Fprintf(&answers, "%s %s\n", map[bool]string{false: "told", true: "refused"}[b.IsError], b.Content[0].Text)
			}
		}
	}
	sent := k.model.Calls()
	last := sent[len(sent)-1].Messages
	if err := tidemark.Check(last); err != nil {
		t.Error(err)
	}
	got := plain(answers.String() + "-- sent --\n" + waved.ReplaceAllString(aNote.ReplaceAllString(same(last), `{"type":"text","text":"[NOTE]"}`), "waves "))
	if *updateFlag {
		if err := os.WriteFile(path, []byte(rule+"-- script --\n"+script+"-- answers --\n"+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := difference(got, want); d != "" {
		t.Errorf("%s, %s", path, d)
	}
}

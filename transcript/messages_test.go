package transcript

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// realLogs are the logs in the folder that TIDEMARK_TRANSCRIPTS names, none without it.
func realLogs(tb testing.TB) [][]byte {
	tb.Helper()
	dir := os.Getenv("TIDEMARK_TRANSCRIPTS")
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("TIDEMARK_TRANSCRIPTS is %s, which holds no *.jsonl file (%v)", dir, err)
	}
	logs := make([][]byte, len(files))
	for i, f := range files {
		if logs[i], err = os.ReadFile(f); err != nil {
			tb.Fatal(err)
		}
	}
	return logs
}

// readAll reads the messages of a log, as JSON, and the numbers of the lines with errors.
func readAll(tb testing.TB, log []byte, input string, o Options) (items []Item, bad []string) {
	tb.Helper()
	o.TempDir = tb.TempDir()
	for it, err := range Messages(inputs[input](log), o) {
		var le *LineError
		switch {
		case errors.As(err, &le):
			bad = append(bad, le.Error())
		case err != nil:
			tb.Fatal(err)
		default:
			items = append(items, it)
		}
	}
	return items, bad
}

func show(items []Item) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "%v %s", it.Lines, it.Message.AppendJSON(nil))
		if it.Boundary {
			b.WriteString(" boundary")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const (
	lineUser  = `{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}`
	lineRes   = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"r"}]}}`
	lineCall  = `{"type":"assistant","message":{"id":"%s","role":"assistant","content":[{"type":"tool_use","id":"%s","name":"n","input":{"n":1.0}}]}}`
	lineThink = `{"type":"assistant","message":{"id":"%s","role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}}`
)

func TestMessages(t *testing.T) {
	f := fmt.Sprintf
	tests := []struct {
		name      string
		lines     []string
		want, bad []string
	}{
		{"string content stays a string", []string{lineUser}, []string{`[1] {"role":"user","content":"hi"}`}, nil},
		{"user lines are never merged", []string{lineUser, lineUser}, []string{`[1] {"role":"user","content":"hi"}`, `[2] {"role":"user","content":"hi"}`}, nil},
		{"calls A, B, result of A, call C, results of B and C",
			[]string{lineUser, f(lineThink, "m"), f(lineCall, "m", "A"), f(lineCall, "m", "B"), f(lineRes, "A"), f(lineCall, "m", "C"), f(lineRes, "B"), f(lineRes, "C")},
			[]string{`[1] {"role":"user","content":"hi"}`,
				`[2 3 4 6] {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"A","name":"n","input":{"n":1.0}},{"type":"tool_use","id":"B","name":"n","input":{"n":1.0}},{"type":"tool_use","id":"C","name":"n","input":{"n":1.0}}]}`,
				`[5] {"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"r"}]}`,
				`[7] {"role":"user","content":[{"type":"tool_result","tool_use_id":"B","content":"r"}]}`,
				`[8] {"role":"user","content":[{"type":"tool_result","tool_use_id":"C","content":"r"}]}`}, nil},
		{"other ids stand between", []string{f(lineThink, "a"), f(lineThink, "b"), f(lineCall, "a", "A"), f(lineCall, "b", "B")},
			[]string{`[1 3] {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"A","name":"n","input":{"n":1.0}}]}`,
				`[2 4] {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"B","name":"n","input":{"n":1.0}}]}`}, nil},
		{"no id, no merging", []string{`{"type":"assistant","message":{"role":"assistant","content":"a"}}`, `{"type":"assistant","message":{"role":"assistant","content":"b","id":""}}`},
			[]string{`[1] {"role":"assistant","content":"a"}`, `[2] {"role":"assistant","content":"b"}`}, nil},
		{"strings and lists merge", []string{`{"type":"assistant","message":{"id":"m","content":"a"}}`, `{"type":"assistant","message":{"id":"m","content":[{"type":"new","x":1e400}]}}`},
			[]string{`[1 2] {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"new","x":1e400}]}`}, nil},
		{"other lines are none", []string{`{"type":"progress","message":{"role":"user","content":"x"}}`, "", `{"type":"summary","summary":"t","leafUuid":"u"}`, `null`, `[]`, lineUser, `{"type":"later","message":{"role":"user","content":"x"}}`},
			[]string{`[6] {"role":"user","content":"hi"}`}, nil},
		{"side chains are left out", []string{strings.Replace(lineUser, `"uuid"`, `"isSidechain":true,"uuid"`, 1), strings.Replace(lineUser, `"uuid"`, `"isSidechain":false,"uuid"`, 1)},
			[]string{`[2] {"role":"user","content":"hi"}`}, nil},
		{"a boundary marks the next message", []string{lineUser, `{"type":"system","subtype":"compact_boundary"}`, `{"type":"progress"}`, lineUser, lineUser},
			[]string{`[1] {"role":"user","content":"hi"}`, `[4] {"role":"user","content":"hi"} boundary`, `[5] {"role":"user","content":"hi"}`}, nil},
		{"a boundary within a message marks the next one", []string{f(lineThink, "m"), `{"type":"system","subtype":"compact_boundary"}`, f(lineCall, "m", "A"), f(lineRes, "A")},
			[]string{`[1 3] {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"A","name":"n","input":{"n":1.0}}]}`,
				`[4] {"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"r"}]} boundary`}, nil},
		{"human, and a line of ours", []string{`{"type":"human","message":{"content":"x"}}`, `{"role":"assistant","content":"y"}`},
			[]string{`[1] {"role":"user","content":"x"}`, `[2] {"role":"assistant","content":"y"}`}, nil},
		{"of two contents the last counts, fields beside are none", []string{`{"type":"user","message":{"Content":"no","Role":"x","content":"a","content":"b","usage":{}}}`}, []string{`[1] {"role":"user","content":"b"}`}, nil},
		{"empty content is kept", []string{`{"type":"user","message":{"content":[]}}`, `{"type":"user","message":{"content":""}}`}, []string{`[1] {"role":"user","content":[]}`, `[2] {"role":"user","content":""}`}, nil},
		{"what a newer version writes is stepped over", []string{lineUser, `{"type":"api-request-blob","message":{"role":"system","content":"x"}}`, `{"type":"cost-state","costs":[1]}`,
			`{"type":"attachment","attachment":{"type":"total_tokens_reminder","left":9}}`, `{"type":"system","subtype":"informational","content":"x"}`, `{"type":"hologram","role":"user","content":"x"}`,
			`{"kind":9}`, `{"type":7,"message":{"role":"user","content":"x"}}`},
			[]string{`[1] {"role":"user","content":"hi"}`}, nil},
		{"the system between the others", []string{lineUser, `{"role":"system","content":"x"}`, `{"type":"user","message":{"role":"system","content":[{"type":"text","text":"y"},{"type":"tool_addition"}]}}`},
			[]string{`[1] {"role":"user","content":"hi"}`, `[2] {"role":"system","content":"x"}`, `[3] {"role":"system","content":[{"type":"text","text":"y"},{"type":"tool_addition"}]}`}, nil},
		{"a block without a type is kept", []string{`{"type":"assistant","message":{"content":[{"new":"text"}]}}`}, []string{`[1] {"role":"assistant","content":[{"new":"text"}]}`}, nil},
		{"a block without a list", []string{`{"type":"user","message":{"content":{"type":"text","text":"x"}}}`}, []string{`[1] {"role":"user","content":[{"type":"text","text":"x"}]}`}, nil},
		{"broken lines are named", []string{lineUser, `{"type":"user","message":`, lineUser}, []string{`[1] {"role":"user","content":"hi"}`, `[3] {"role":"user","content":"hi"}`},
			[]string{`line 2: byte 26: the value is cut off: invalid`}},
		{"no content", []string{`{"type":"user","message":{"role":"user"}}`, `{"type":"assistant"}`, lineUser}, []string{`[3] {"role":"user","content":"hi"}`},
			[]string{`line 1: no "content" in a message: invalid`, `line 2: no "content" in a message: invalid`}},
		{"content of a foreign kind", []string{`{"type":"user","message":{"content":5}}`, lineUser}, []string{`[2] {"role":"user","content":"hi"}`},
			[]string{`line 1: decode message: decode content: want a string or a list of blocks: invalid`}},
		{"a broken block costs no text", []string{`{"type":"user","message":{"content":[null,{"type":"text","text":"kept"},7]}}`}, []string{`[1] {"role":"user","content":[{"type":"text","text":"kept"}]}`},
			[]string{`line 1: block 0 is left out: decode block: want an object: invalid`, `line 1: block 2 is left out`}},
		{"a line that cannot be read keeps the place", []string{`{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":1}]}}`, lineUser, `{"type":"assistant","message":{"id":"m","content":"kept"}}`},
			[]string{`[1 3] {"role":"assistant","content":"kept"}`, `[2] {"role":"user","content":"hi"}`}, []string{`line 1: block 0 is left out`}},
		{"a message that is too large", []string{lineUser, `{"type":"user","message":{"content":"` + strings.Repeat("x", 2000) + `"}}`, lineUser}, []string{`[1] {"role":"user","content":"hi"}`, `[3] {"role":"user","content":"hi"}`},
			[]string{`line 2: the message has more than 1000 bytes of content: too large`}},
		{"large beside the message does not matter", []string{`{"type":"user","toolUseResult":"` + strings.Repeat("x", 2000) + `","message":{"content":"a"}}`}, []string{`[1] {"role":"user","content":"a"}`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for input := range inputs {
				items, bad := readAll(t, []byte(strings.Join(tt.lines, "\n")), input, Options{MaxMessage: 1000})
				if got := strings.TrimSpace(show(items)); got != strings.Join(tt.want, "\n") {
					t.Errorf("%s: got\n%s\nwant\n%s", input, got, strings.Join(tt.want, "\n"))
				}
				if !slices.EqualFunc(bad, tt.bad, strings.HasPrefix) {
					t.Errorf("%s: errors\n%q, want\n%q", input, bad, tt.bad)
				}
			}
		})
	}
}

func TestItemSays(t *testing.T) {
	log := `{"type":"assistant","uuid":"a1","parentUuid":"p","requestId":"r","timestamp":"2026-02-11T21:18:41.543Z","isMeta":true,"isApiErrorMessage":true,"message":{"id":"m","model":"opus","stop_reason":null,"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"output_tokens":1}}}
{"type":"assistant","parentUuid":"a1","timestamp":"2026-02-11T21:18:44.000Z","message":{"id":"m","model":"opus","stop_reason":"end_turn","content":[{"type":"text","text":"b"}],"usage":{"input_tokens":3,"cache_creation_input_tokens":7,"output_tokens":250,"iterations":[{"input_tokens":99}],"service_tier":"x"}}}
{"type":"user","uuid":"u","isCompactSummary":true,"timestamp":"yesterday","message":{"content":"s","usage":{"input_tokens":-1,"output_tokens":1.5}}}`
	items, bad := readAll(t, []byte(log), "file", Options{})
	if len(items) != 2 || len(bad) != 0 {
		t.Fatalf("items %v, errors %v", items, bad)
	}
	a := items[0]
	if a.ID != "m" || !slices.Equal(a.UUIDs, []string{"a1", ""}) || a.Parent != "p" || a.Request != "r" || a.Model != "opus" ||
		a.Stop != "end_turn" || !a.Meta || !a.APIError || a.Summary || !a.At.Equal(time.Date(2026, 2, 11, 21, 18, 41, 543e6, time.UTC)) {
		t.Errorf("assistant: %+v", a)
	}
	if want := (tidemark.Usage{Input: 3, CacheRead: 10, CacheCreation: 7, Output: 250}); a.Usage == nil || *a.Usage != want {
		t.Errorf("usage %+v, want %+v", a.Usage, want)
	}
	if u := items[1]; u.Usage != nil || !u.Summary || u.Meta || !u.At.IsZero() || u.ID != "" {
		t.Errorf("user: %+v", u)
	}
}

func TestChains(t *testing.T) {
	log := lineUser + "\n" + strings.ReplaceAll(lineUser, `"uuid"`, `"isSidechain":true,"uuid"`) + "\n" +
		fmt.Sprintf(lineThink, "m") + "\n" + strings.Replace(fmt.Sprintf(lineCall, "m", "A"), `"type"`, `"isSidechain":true,"type"`, 1)
	for chain, want := range map[Chain]string{MainChain: "[[1] [3]]", SideChain: "[[2] [4]]", AllChains: "[[1] [2] [3 4]]"} {
		items, _ := readAll(t, []byte(log), "pipe", Options{Chain: chain})
		var got [][]int64
		for _, it := range items {
			got = append(got, it.Lines)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("chain %d: lines %v, want %s", chain, got, want)
		}
	}
}

// TestLogsThatGrow reads a log to which a line is appended while it is read: what was there at the
// beginning is what comes out.
func TestLogsThatGrow(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(name, []byte(fmt.Sprintf(lineThink, "m")+"\n"+lineUser+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for it, err := range Messages(f, Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n > 2 {
			t.Fatalf("lines %v were not there", it.Lines)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(fmt.Sprintf(lineCall, "m", "A")+"\n"), info.Size()); err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

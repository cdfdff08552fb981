package compaction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestPromptText is the whole text of what a summariser is asked, in the order of the reference.
func TestPromptText(t *testing.T) {
	items := scripted("u")
	items[0].Message.Content[0] = tidemark.Text("a < b")
	const talk = "<conversation>\n[user] a &lt; b\n</conversation>\n\n"
	const before = "<previous-summary>\nwas &lt; so\n</previous-summary>\n\n"
	const known = "<existing-memories>\nDo not duplicate these.\n- x &amp; y\n</existing-memories>\n\n"
	const facts = "<facts>\n1: z &gt; 0\n</facts>\n\n"
	for name, row := range map[string]struct {
		ask  Ask
		want string
	}{
		"nothing before":         {Ask{}, talk + summaryTask},
		"all":                    {Ask{Previous: "was < so", Memories: "- x & y", Near: "1: z > 0\n", Instructions: "keep <it>"}, before + known + facts + talk + "The person asked: keep &lt;it&gt;\n\n" + summaryTask + "\n\n" + nearPart},
		"only memories":          {Ask{Previous: "was < so", Memories: "- x & y", Near: "1: z > 0\n", OnlyMemories: true}, known + facts + talk + "Write one section and nothing else.\n\n" + memoryPart + "\n\n" + nearPart},
		"only memories, no fact": {Ask{OnlyMemories: true}, talk + "Write one section and nothing else.\n\n" + memoryPart},
		"no memories":            {Ask{Previous: "was < so", Memories: "- x & y", Near: "1: z > 0\n", NoMemories: true}, before + talk + "Write one section and nothing else.\n\n" + summaryPart},
	} {
		row.ask.Items, row.ask.Model = items, "m"
		got := Prompt(row.ask)
		if text := got.Messages[0].PlainText(); text != row.want || len(got.Messages) != 1 || got.Messages[0].Role != tidemark.User {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, row.want)
		}
		if got.Model != "m" || got.System != summarySystem || got.MaxTokens != 4096 {
			t.Errorf("%s: %s, %d tokens", name, got.Model, got.MaxTokens)
		}
	}
	if !strings.HasPrefix(summaryTask, "Write two sections and nothing else.\n\n<summary>\n") || !strings.HasSuffix(summaryTask, "</summary>\n\n"+memoryPart) {
		t.Error(summaryTask)
	}
}

// TestTranscribe is how a summariser reads each kind of block.
func TestTranscribe(t *testing.T) {
	doc, err := tidemark.TextDocument("plan", "one\ntwo")
	if err != nil {
		t.Fatal(err)
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	items := scripted("u c1 r1 a")
	items[0].Message.Content = []tidemark.Block{tidemark.Text(" a\nb <system-reminder>no</system-reminder> "), tidemark.Text(" "), doc, {Type: tidemark.TypeImage}}
	items[1].Message.Content = []tidemark.Block{{Type: tidemark.TypeThinking, Text: "hm"}, tidemark.ToolUse("1", "run", []byte(`{"a":"`+x(993)+`"}`)), tidemark.ToolUse("2", "run", []byte(`{"a":"`+x(992)+`"}`))}
	items[2].Message.Content = []tidemark.Block{tidemark.ToolResult("1", x(2000), false), tidemark.ToolResult("2", x(2001), true), tidemark.ToolResult("3", "a\r\nb", false)}
	want := "[user] a\n  b\n[document plan]\n  one\n  two\n[user] [image]\n" +
		"[tool call run] {\"a\":\"" + x(660) + " [...truncated 2 bytes...] " + x(331) + "\"}\n[tool call run] {\"a\":\"" + x(992) + "\"}\n" +
		"[tool result] " + x(2000) + "\n[tool error] " + x(1333) + " [...truncated 2 bytes...] " + x(666) + "\n[tool result] a\n  b\n[assistant] a\n"
	if got := Transcribe(items); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, row := range []struct {
		s    string
		n    int
		want string
	}{{"123456789", 9, "123456789"}, {"1234567890", 9, "123456 [...truncated 1 bytes...] 890"}, {"12345é7890", 9, "12345 [...truncated 3 bytes...] 890"}, {"1234567é90", 9, "123456 [...truncated 3 bytes...] 90"}} {
		if got := middle(row.s, row.n); got != row.want {
			t.Errorf("%q to %d: %q, want %q", row.s, row.n, got, row.want)
		}
	}
}

// TestAnswerParts: of several pairs of tags the last counts, and what thinking is marked goes.
func TestAnswerParts(t *testing.T) {
	for _, row := range []struct {
		text, inner, rest string
		ok                bool
	}{
		{"a<s>b</s>c", "b", "ac", true}, {"<s>b</s>x<s>d</s>", "d", "x", true}, {"a<s>b", "", "a<s>b", false}, {"a</s>b", "", "a</s>b", false}, {"</s><s>", "", "</s><s>", false}, {"<s></s>", "", "", true},
		{"<s>a<s>b</s>c</s>d", "b</s>c", "<s>ad", true}, {"", "", "", false},
	} {
		if inner, rest, ok := element(row.text, "s"); inner != row.inner || rest != row.rest || ok != row.ok {
			t.Errorf("%q: %q, %q, %v", row.text, inner, rest, ok)
		}
	}
	for text, want := range map[string]string{
		"a": "a", "<think>x</think>a": "a", "<Thinking>x\ny</thinking>a<reasoning>z</reasoning>b": "ab", "x</think>a": "a", "x</think>a</think>b": "b", "a<think>x": "a", "</think>": "",
	} {
		if got := aloud(text); got != want {
			t.Errorf("%q says %q aloud, want %q", text, got, want)
		}
	}
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintf(&lines, "- fact %d\n", i)
	}
	if got := bullets(lines.String()); len(got) != 50 || got[0] != "fact 0" || got[49] != "fact 49" {
		t.Errorf("of sixty facts there are %d", len(got))
	}
	if got := bullets("- " + strings.Repeat("x", 501) + "\n\n# head\n none \n- " + strings.Repeat("y", 500)); len(got) != 2 || got[0] != strings.Repeat("x", 500)+"…" || got[1] != strings.Repeat("y", 500) {
		t.Errorf("facts %q", got)
	}
	reply := func(stop, text string) tidemark.Reply {
		return tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, text), Call: tidemark.Call{Stop: stop}}
	}
	for _, row := range []struct {
		stop, text string
		ask        Ask
		want       string // what is wrong
	}{
		{"", "<summary>a</summary>", Ask{}, ""}, {"end_turn", "<summary>a</summary>", Ask{}, ""}, {"stop_sequence", "<summary>a</summary>", Ask{}, ""},
		{"max_tokens", "<summary>a</summary>", Ask{}, string(cutOff)}, {"tool_use", "<summary>a</summary>", Ask{}, `it stopped with "tool_use"`},
		{"", "a", Ask{}, "it has no <summary>…</summary> with something in it"}, {"", "<summary> </summary>", Ask{}, "it has no <summary>…</summary> with something in it"},
		{"", "<summary>a</summary><memories>b", Ask{}, "it has no closed <memories>"}, {"", "a", Ask{OnlyMemories: true}, "it has no closed <memories>"}, {"", "<memories>b</memories>", Ask{OnlyMemories: true}, ""},
		{"", "<summary>a<memories>b</summary>", Ask{}, ""}, // what stands within the summary is of it
	} {
		_, err := Parse(reply(row.stop, row.text), row.ask)
		if got := fmt.Sprint(err); err == nil && row.want != "" || err != nil && got != row.want {
			t.Errorf("%q, %q: %v, want %q", row.stop, row.text, err, row.want)
		}
	}
}

// TestRenderText is the whole text of a summary, and how much of what is mechanical stays as its budget shrinks.
func TestRenderText(t *testing.T) {
	numbered := func(name string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(name, i+1))
		}
		return out
	}
	at := time.Date(2026, 5, 2, 14, 32, 0, 0, time.UTC)
	d := Digest{Text: " what was said \n", Images: 2, Messages: 31, Asks: []Said{{"e1", "one"}, {"e2", "two\nlines"}, {"e3", "three"}, {"e4", "four"}}, Evicted: []Marker{{From: at, To: at, Count: 3, Tokens: 9}},
		Index: Index{Paths: numbered("p", 31), URLs: numbered("u", 16), IDs: numbered("i", 26), Numbers: numbered("n", 26), Errors: numbered("e", 9)}}
	join := func(list []string) string { return strings.Join(list, ", ") }
	tail := "\n[2 image(s) were present in the compacted history but could not be included in this summary.]\n" +
		"\n[31 messages are summarised here. Nothing is lost: recall(query) finds them word for word; the last of them are in the/file.]"
	head := SummaryMarker + "\n\n## Evicted before, not summarised\n- [Events 2026-05-02 14:32 to 14:32 evicted: 3 messages, 9 tokens. Use recall(query) to retrieve.]\n\nwhat was said\n"
	want := map[int]string{
		100: head + "\n## Index of what was mentioned\n- Paths: " + join(d.Index.Paths[1:]) + "\n- URLs: " + join(d.Index.URLs[1:]) + "\n- Identifiers: " + join(d.Index.IDs[1:]) + "\n- Numbers: " + join(d.Index.Numbers[1:]) +
			"\n- Error: " + strings.Join(d.Index.Errors[1:], "\n- Error: ") + "\n\n## Newest requests, verbatim\n- one\n- two\n  lines\n- three\n- four\n" + tail,
		50: head + "\n## Index of what was mentioned\n- Paths: " + join(d.Index.Paths[16:]) + "\n- URLs: " + join(d.Index.URLs[9:]) + "\n- Identifiers: " + join(d.Index.IDs[14:]) + "\n- Numbers: " + join(d.Index.Numbers[14:]) +
			"\n- Error: " + strings.Join(d.Index.Errors[5:], "\n- Error: ") + "\n\n## Newest requests, verbatim\n- three\n- four\n" + tail,
		25: head + "\n## Index of what was mentioned\n- Paths: " + join(d.Index.Paths[24:]) + "\n- URLs: " + join(d.Index.URLs[13:]) + "\n- Identifiers: " + join(d.Index.IDs[20:]) + "\n- Numbers: " + join(d.Index.Numbers[20:]) +
			"\n- Error: " + strings.Join(d.Index.Errors[7:], "\n- Error: ") + "\n\n## Newest requests, verbatim\n- four\n" + tail,
		0: head + tail,
	}
	for share, text := range want {
		if got := render(d, "the/file", share); got != text {
			t.Errorf("%d %%:\n%s\nwant\n%s", share, got, text)
		}
	}
	size := func(share int) tidemark.Tokens {
		return tidemark.Estimate(tidemark.NewText(tidemark.User, want[share]))
	}
	for budget, share := range map[tidemark.Tokens]int{size(100): 100, size(100) - 1: 50, size(50): 50, size(50) - 1: 25, size(25): 25, size(25) - 1: 0, 0: 0} {
		if got := Render(d, "the/file", budget); got.PlainText() != want[share] || got.Role != tidemark.User {
			t.Errorf("%d tokens: want a share of %d %%, got %d characters of %d", budget, share, len(got.PlainText()), len(want[share]))
		}
	}
	if got := (Index{Paths: []string{"a.go"}, Errors: []string{"no disk"}}).lines(100); got != "- Paths: a.go\n- Error: no disk\n" {
		t.Errorf("of one path and one error: %q", got)
	}
	bare := SummaryMarker + "\n\nso\n\n[1 messages are summarised here. Nothing is lost: recall(query) finds them word for word.]"
	if got := render(Digest{Text: "so", Messages: 1}, "", 100); got != bare {
		t.Errorf("of nothing else:\n%s", got)
	}
}

// TestBound: a rolling summary is cut in its middle to what its budget has room for, more of its beginning than of its end.
func TestBound(t *testing.T) {
	s := strings.Repeat("a", 60) + strings.Repeat("b", 41)
	for _, row := range []struct {
		s      string
		budget tidemark.Tokens
		want   string
	}{
		{s, 31, s}, // 103 characters
		{s[:100], 30, s[:100]},
		{s, 30, strings.Repeat("a", 60) + "\n[… the middle of the summary was cut to fit its budget …]\n" + strings.Repeat("b", 40)},
		{"é" + s, 1, "\n[… the middle of the summary was cut to fit its budget …]\nb"},
		{s, 0, "\n[… the middle of the summary was cut to fit its budget …]\n"},
	} {
		if got := Bound(row.s, row.budget); got != row.want {
			t.Errorf("%d characters in %d tokens: %q, want %q", len(row.s), row.budget, got, row.want)
		}
	}
	for n, want := range map[tidemark.Tokens]string{499: "~0K", 500: "~1K", 1499: "~1K", 1500: "~2K", 20_499: "~20K"} {
		if got := OversizeNote(n); got != "[Large message block ("+want+" tokens) omitted from summary]" {
			t.Errorf("%d tokens: %s", n, got)
		}
	}
}

package worker

import (
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var update = flag.Bool("update", false, "write testdata anew")

// scenes are what may happen with an input, in the words of a session.
var scenes = []struct {
	name    string
	notices []session.Notice
	out     outcome
	err     error
}{
	{name: "an answer", notices: []session.Notice{
		{Type: session.NoticeStart}, {Type: session.NoticeTaken}, text("Hel"), text("lo\u2028\n\"you\""), reply("Hello\u2028\n\"you\""),
	}},
	{name: "thinking, tools of the conversation, two replies", notices: []session.Notice{
		{Type: session.NoticeThinking, Text: "hm"}, text("Let me see."), {Type: session.NoticeTool, Text: "find"},
		reply("Let me see.", tidemark.ToolUse("c1", "find", []byte(`{"q":1}`)), tidemark.ToolUse("c2", "find", nil)),
		{Type: session.NoticeResult, Text: "find"}, {Type: session.NoticeResult, Text: "find"}, text("Found."), reply("Found."),
	}},
	{name: "it begins again and says the same", notices: []session.Notice{
		text("One two"), {Type: session.NoticeRestart, Text: "cut off"}, text("One"), text(" two three"), reply("One two three"),
	}},
	{name: "it begins again and says something else", notices: []session.Notice{
		text("One two"), {Type: session.NoticeRestart}, text("On"), text("ly one"), reply("Only one"),
	}},
	{name: "a compaction and a reset before it", notices: []session.Notice{
		{Type: session.NoticeCompacting, Text: "9 of 10 tokens"}, {Type: session.NoticeEvent, Event: &tidemark.Event{Type: "compaction", Text: "Compacted", Data: []byte(`{"n":1}`)}},
		{Type: session.NoticeEvent, Event: &tidemark.Event{Type: "reset", Text: "Reset"}}, text("Yes"), reply("Yes"),
	}},
	{name: "pieces that were missed", notices: []session.Notice{text("One"), reply("One two")}},
	{name: "all was missed", out: outcome{Reply: reply("From the log").Message}},
	{name: "its last reply was missed", notices: []session.Notice{text("Let me see."), reply("Let me see.", tidemark.ToolUse("c1", "find", nil)), text("Fo")},
		out: outcome{Reply: reply("Found.").Message}},
	{name: "cut by its bound", notices: []session.Notice{reply("So far")}, out: outcome{Stop: "max_tokens"}},
	{name: "it fails in the middle", notices: []session.Notice{text("One")}, err: &tidemark.APIError{Class: tidemark.ClassRate, Message: "slow down"}},
	{name: "somebody stops it", notices: []session.Notice{text("One")}, err: tidemark.ErrAborted},
}

func text(s string) session.Notice { return session.Notice{Type: session.NoticeText, Text: s} }

func reply(s string, calls ...tidemark.Block) session.Notice {
	m := tidemark.Message{Role: tidemark.Assistant, Content: append([]tidemark.Block{tidemark.Text(s)}, calls...)}
	return session.Notice{Type: session.NoticeReply, Message: &m}
}

// recorded returns a call whose answer is kept.
func recorded(t *testing.T) (*request, *httptest.ResponseRecorder) {
	t.Helper()
	w := httptest.NewRecorder()
	d := &door{Config: Config{Runtime: tidemarktest.NewRuntime(t), WriteTimeout: time.Minute}}
	return &request{door: d, w: &answer{ResponseWriter: w, id: "req-1"}, r: httptest.NewRequest(http.MethodPost, "/", nil)}, w
}

// play has a dialect tell all of it.
func play(d dialect, notices []session.Notice, out outcome, failure error) error {
	if err := d.open(session.Receipt{ID: "in-1", State: "new"}); err != nil {
		return err
	}
	for _, n := range notices {
		if err := d.tell(n); err != nil {
			return err
		}
	}
	if failure != nil {
		return d.fail(failure)
	}
	return d.end(out)
}

// TestDialects holds what each door says, byte for byte, to testdata/streams; -update writes it anew.
func TestDialects(t *testing.T) {
	for _, kind := range []struct {
		name string
		of   func(*request) dialect
	}{
		{"native", func(c *request) dialect { return &plain{request: c, live: true} }},
		{"openai", func(c *request) dialect { return c.completion(chatForm{model: "m", stream: true, usage: true}) }},
		{"openai-whole", func(c *request) dialect { return c.completion(chatForm{model: "m"}) }},
		{"anthropic", func(c *request) dialect { return c.message(messagesForm{model: "m", stream: true}) }},
		{"anthropic-whole", func(c *request) dialect { return c.message(messagesForm{model: "m"}) }},
		{"ui", func(c *request) dialect { return &uiStream{request: c} }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			var b strings.Builder
			for _, row := range scenes {
				c, w := recorded(t)
				row.out.ID, row.out.Session, row.out.Type = "in-1", "s-1", "done"
				row.out.Usage = tidemark.Usage{Input: 5, CacheRead: 4, CacheCreation: 3, Output: 2}
				of := kind.of(c)
				if o, ok := of.(*completion); ok {
					o.created = 0
				}
				err := play(of, row.notices, row.out, row.err)
				if err != nil && !errors.Is(err, row.err) {
					t.Fatalf("%s: %v", row.name, err)
				}
				if strings.HasSuffix(kind.name, "-whole") && strings.Contains(w.Body.String(), strings.TrimSpace(brokenOff)) {
					t.Errorf("%s: a whole answer tells of what nobody heard: %s", row.name, w.Body)
				}
				b.WriteString("== " + row.name + "\n" + w.Body.String() + "\n")
			}
			file := "testdata/streams/" + kind.name + ".txt"
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != b.String() {
				t.Errorf("%v; it says otherwise than %s (-update writes it anew):\n%s", err, file, b.String())
			}
		})
	}
}

// TestSpeech: what a client hears that can take nothing back is the answer, whatever was cut off.
func TestSpeech(t *testing.T) {
	for _, row := range []struct {
		name  string
		steps []string // "|" begins again, "=…" is the whole reply
		want  string
	}{
		{"pieces", []string{"a", "b", "=ab"}, "ab"},
		{"pieces missed", []string{"a", "=abc"}, "abc"},
		{"nothing but the whole", []string{"=abc"}, "abc"},
		{"two replies", []string{"a", "=a", "b", "=b"}, "a\n\nb"},
		{"a reply without text between", []string{"=", "b", "=b"}, "b"},
		{"the same again", []string{"ab", "|", "a", "b", "c", "=abc"}, "abc"},
		{"twice the same again", []string{"ab", "|", "a", "|", "abc", "=abc"}, "abc"},
		{"again and only the whole", []string{"ab", "|", "=abc"}, "abc"},
		{"something else", []string{"ab", "|", "xy", "=xy"}, "ab" + brokenOff + "xy"},
		{"something else, shorter", []string{"ab", "|", "a", "=a"}, "ab" + brokenOff + "a"},
		{"another whole", []string{"ab", "=xy"}, "ab" + brokenOff + "xy"},
		{"again before anything", []string{"|", "a", "=a"}, "a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var s speech
			got := ""
			for _, step := range row.steps {
				switch whole, ok := strings.CutPrefix(step, "="); {
				case ok:
					got += s.whole(whole)
				case step == "|":
					s.restart()
				default:
					got += s.piece(step)
				}
			}
			if got != row.want {
				t.Errorf("it says %q, want %q", got, row.want)
			}
		})
	}
}

package logs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/transcript"
	"github.com/tidemark-ai/tidemark/trim"
)

// log makes lines of a log.
func log(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// readAll reads a log as a test wants it.
func readAll(tb testing.TB, text string) Contents {
	tb.Helper()
	c, err := readChanged(text)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func readChanged(text string, changes ...int64) (Contents, error) {
	opus, err := cost.DefaultPrices().Find("opus")
	if err != nil {
		return Contents{}, err
	}
	rd := reader{prices: cost.DefaultPrices(), fallback: opus, changes: changes}
	return rd.read(context.Background(), strings.NewReader(text))
}

func says(role, text string) string {
	return fmt.Sprintf(`{"type":%q,"content":%q}`, role, text)
}

// spoke is a line of the model with usage.
func spoke(id string, sent, output int, blocks ...string) string {
	if len(blocks) == 0 {
		blocks = []string{`{"type":"text","text":"hi"}`}
	}
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"role":"assistant","model":"claude-opus-4-6","content":[%s],"usage":{"input_tokens":%d,"output_tokens":%d}}}`,
		id, strings.Join(blocks, ","), sent, output)
}

const (
	compacted = `{"type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":167094}}`
	oldResult = `{"type":"tool_result","tool_use_id":"t1","content":"old tool result"}`
)

// The cases of the known implementation's analyzer, and where ours differs, what is right.
func TestCounts(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		log                      string
		user, assistant, results int64
	}{
		{"users and replies, one named by its role", log(says("user", "hello"), `{"type":"assistant","content":[{"type":"text","text":"hi there"}]}`, says("user", "question"),
			`{"role":"assistant","type":"message","content":[{"type":"text","text":"answer"}]}`), 2, 2, 0},
		{"results of tools, wherever they stand", log(says("user", "read this file"), `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"t1","content":"file contents here"},{"type":"tool_result","tool_use_id":"t2","content":"another file"}]}`), 1, 1, 2},
		{"queue operations are no messages", log(says("user", "hello"), `{"type":"queue-operation","op":"something"}`, says("assistant", "hi")), 1, 1, 0},
		{"a summary begins anew", log(says("user", "old message"), `{"type":"assistant","content":[`+oldResult+`]}`, `{"type":"file-history-snapshot","data":{"files":["old.ts"]}}`,
			`{"type":"summary","summary":"This is a summary of the conversation so far."}`, says("user", "new message"), says("assistant", "new response")), 1, 1, 0},
		{"a boundary begins anew", log(says("user", "old"), says("assistant", "old response"), `{"type":"system","subtype":"compact_boundary"}`, says("user", "new")), 1, 0, 0},
		{"the last of several counts", log(says("user", "ancient"), `{"type":"summary","summary":"first summary"}`, says("user", "old"), says("assistant", "old resp"),
			`{"type":"summary","summary":"second summary"}`, says("user", "current"), says("assistant", "current resp")), 1, 1, 0},
		{"a line that is no JSON", "this is not json\n" + says("user", "hello") + "\n", 1, 0, 0},
		{"an empty file", "", 0, 0, 0},
		{"a title is no compaction", log(says("user", "first"), says("assistant", "answer"), `{"type":"summary","summary":"Fixing the login","leafUuid":"u-1"}`), 1, 1, 0},
		{"subagents have a context of their own", log(says("user", "first"), `{"type":"user","isSidechain":true,"content":"for the subagent"}`, `{"type":"assistant","isSidechain":true,"content":"its answer"}`), 1, 0, 0},
		{"scalars, nulls and odd contents", log(`null`, `7`, `"text"`, `[]`, `{"type":"user","message":null}`, `{"type":"user","message":{"content":[null,7,"x",{"type":null}]}}`), 2, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := readAll(t, tc.log)
			if c.Live.User != tc.user || c.Live.Assistant != tc.assistant || c.Live.ToolResults != tc.results {
				t.Errorf("%+v, want %d, %d and %d", c.Live, tc.user, tc.assistant, tc.results)
			}
		})
	}
}

func TestComposition(t *testing.T) {
	part := func(name string) func(Composition) Part {
		return func(c Composition) Part {
			for i, p := range c.Parts() {
				if PartNames[i] == name {
					return *p
				}
			}
			t.Fatalf("no part %q", name)
			return Part{}
		}
	}
	for _, tc := range []struct {
		name, part, log string
		count, bytes    int64
	}{
		{"signed thinking", "thinking signatures", log(`{"type":"assistant","content":[{"type":"thinking","thinking":"let me reason","signature":"sig123abc"},{"type":"text","text":"my response"}]}`,
			`{"type":"assistant","content":[{"type":"thinking","thinking":"more","signature":"sig456def"}]}`), 2, 22},
		{"thinking without a signature", "thinking signatures", log(`{"type":"assistant","content":[{"type":"thinking","thinking":"reasoning"},{"type":"thinking","thinking":"","signature":""}]}`), 0, 0},
		{"file history", "file history", log(says("user", "hello"), `{"type":"file-history-snapshot","data":{"files":["a.ts","b.ts"]}}`, `{"type":"file-history-snapshot","data":{}}`), 2,
			int64(len(`{"type":"file-history-snapshot","data":{"files":["a.ts","b.ts"]}}{"type":"file-history-snapshot","data":{}}`))},
		{"queue operations", "other", log(says("user", "hello"), `{"type":"queue-operation","op":"x"}`), 1, 35},
		{"no JSON", "other", log(`this is not json`, says("user", "hello")), 1, 16},
		{"calls", "tool requests", log(`{"type":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/a.ts"}},{"type":"tool_use","id":"t2","name":"Glob","input":{}},{"type":"text","text":"reading"}]}`), 2,
			int64(len(`{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/a.ts"}}{"type":"tool_use","id":"t2","name":"Glob","input":{}}`))},
		{"results", "tool results", log(`{"type":"user","content":[` + oldResult + `]}`), 1, int64(len(oldResult))},
		{"copies beside the messages", "copies of results", log(`{"type":"user","message":{"role":"user","content":[` + oldResult + `]},"toolUseResult":{"stdout":"old tool result"}}`), 1, 28},
		{"what a compaction left behind", "tool results", log(`{"type":"user","content":[`+oldResult+`]}`, compacted, says("user", "new")), 0, 0},
		{"the words of a legacy summary", "conversation", log(says("user", "old"), `{"type":"summary","summary":"x"}`), 1, 32},
		{"a subagent's lines", "other", log(`{"type":"assistant","isSidechain":true,"content":"abc"}`), 1, 55},
		{"progress", "other", log(`{"type":"progress","data":{"type":"bash_progress"}}`), 1, 51},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := readAll(t, tc.log)
			if got := part(tc.part)(c.Composition); got.Count != tc.count || got.Bytes != tc.bytes {
				t.Errorf("%s: %+v, want %d in %d bytes", tc.part, got, tc.count, tc.bytes)
			}
			want := int64(0) // the live part, line ends apart
			for _, l := range strings.Split(strings.TrimSuffix(tc.log[c.LiveFrom:], "\n"), "\n") {
				want += int64(len(l))
			}
			if c.LiveBytes != want {
				t.Errorf("%d live bytes of %d", c.LiveBytes, want)
			}
		})
	}
}

func TestPercentages(t *testing.T) {
	c := readAll(t, log(says("user", "hello"), `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"t1","content":"`+strings.Repeat("x", 200)+`"}]}`, `{"type":"file-history-snapshot","data":{"files":["a.ts"]}}`)).Composition
	sum := 0
	for _, p := range c.Parts() {
		sum += p.Percent
	}
	if sum < 95 || sum > 105 || c.ToolResults.Percent <= c.FileHistory.Percent {
		t.Errorf("%d %% in all: %+v", sum, c)
	}
	if e := readAll(t, "").Composition; e != (Composition{}) {
		t.Errorf("of nothing: %+v", e)
	}
}

// The estimator of papers/cmv §4.2.
func TestEstimate(t *testing.T) {
	for _, tc := range []struct {
		name string
		log  string
		want tidemark.Tokens
	}{
		{"nothing", "", 20_000},
		{"a quarter of the characters", log(says("user", strings.Repeat("a", 400))), 20_100},
		{"characters are UTF-16 units, escapes are what they mean", log(`{"type":"user","content":"` + strings.Repeat(`\u00e9é🌊\n`, 80) + `"}`), 20_100},
		{"what the call reported, and a quarter of the characters since", log(says("user", "hello"),
			`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("b", 40)+`"}],"usage":{"input_tokens":5000,"cache_creation_input_tokens":2000,"cache_read_input_tokens":1000}}}`), 8_010},
		{"usage beside the message", log(`{"role":"assistant","type":"message","content":[],"usage":{"input_tokens":100000}}`), 100_000},
		{"lines of one call are one", log(spoke("m", 5000, 1, `{"type":"text","text":"`+strings.Repeat("b", 40)+`"}`), spoke("m", 5000, 9, `{"type":"text","text":"`+strings.Repeat("b", 40)+`"}`)), 5_020},
		{"a call that reports nothing is none", log(spoke("m", 5000, 1), spoke("n", 0, 0)), 5_001},
		// The known implementation keeps what was reported before a compaction: 10,000 here. That context is gone.
		{"a compaction ends what was reported", log(spoke("m", 10_000, 1), `{"type":"summary","summary":"compacted"}`, says("user", "new msg")), 20_004},
		{"images and documents count nothing", log(`{"type":"user","message":{"content":[{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", 4000) + `"}},{"type":"document","source":{"type":"base64","data":"` + strings.Repeat("A", 4000) + `"}}]}}`), 20_000},
		{"thinking, calls and results count", log(`{"type":"assistant","content":[{"type":"thinking","thinking":"abcd"},{"type":"tool_use","id":"t","name":"X","input":{"a":"bcdefghijk"}},{"type":"tool_result","content":[{"type":"text","text":"wxyz"}]}]}`), 20_007},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if c := readAll(t, tc.log); c.Estimate != tc.want {
				t.Errorf("%d tokens, want %d", c.Estimate, tc.want)
			}
		})
	}
}

func pngOf(tb testing.TB, w, h int) string {
	tb.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black})); err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestVision(t *testing.T) {
	for _, tc := range []struct {
		w, h int
		want tidemark.Tokens
	}{{750, 1, 1}, {300, 250, 100}, {1000, 1000, 1334}, {1092, 1092, 1590}, {4000, 3000, 1600}, {1, 1, 1}} {
		block := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pngOf(t, tc.w, tc.h) + `"}}`
		for name, line := range map[string]string{
			"pasted":        `{"type":"user","message":{"role":"user","content":[` + block + `]}}`,
			"from a tool":   `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[` + block + `]}]}}`,
			"with a header": `{"type":"user","padding":"` + strings.Repeat(" ", 2<<20) + `","message":{"role":"user","content":[` + block + `]}}`,
		} {
			if c := readAll(t, log(line)); c.Weight != tc.want || c.Live.Images != 1 {
				t.Errorf("%s, %d x %d: %d tokens of %d images, want %d", name, tc.w, tc.h, c.Weight, c.Live.Images, tc.want)
			}
		}
	}
	for name, source := range map[string]string{
		"no header": `{"type":"base64","data":"AAAA"}`, "broken base64": `{"type":"base64","data":"\u0041!!"}`, "an address": `{"type":"url","url":"https://example.com/a.png"}`, "none": `null`,
	} {
		if c := readAll(t, log(`{"type":"user","message":{"content":[{"type":"image","source":`+source+`}]}}`)); c.Weight != tidemark.ImageTokens {
			t.Errorf("%s: %d tokens, want the most that an image counts", name, c.Weight)
		}
	}
	if c := readAll(t, log(`{"type":"user","message":{"content":[{"type":"document","source":{"type":"text","data":"`+strings.Repeat("d", 1000)+`"}}]}}`)); c.Weight != 300 {
		t.Errorf("a document of 1,000 characters: %d tokens", c.Weight)
	}
	inside := `[{"type":"text","text":"` + strings.Repeat("d", 973) + `"}]` // 1,000 characters as they are written
	if c := readAll(t, log(`{"type":"user","message":{"content":[{"type":"document","source":{"type":"content","content":`+inside+`}}]}}`)); c.Weight != 300 {
		t.Errorf("a document of content of %d characters: %d tokens", len(inside), c.Weight)
	}
}

func TestContext(t *testing.T) {
	long := strings.Repeat("w", 10_000)                            // 3,000 tokens
	c := readAll(t, log(says("user", long), spoke("a", 25_000, 1), // so 22,000 stand before the messages
		says("user", long), spoke("b", 28_000, 1), says("user", long)))
	if c.Prefix != 22_000 || !c.Measured || c.Context < 31_000 || c.Context > 31_010 {
		t.Errorf("prefix %d, context %d measured %v", c.Prefix, c.Context, c.Measured)
	}
	c = readAll(t, log(says("user", long)))
	if c.Prefix != transcript.TypicalPrefix || c.Measured || c.Context != 23_000 {
		t.Errorf("without usage: prefix %d, context %d measured %v", c.Prefix, c.Context, c.Measured)
	}
}

func TestCompactions(t *testing.T) {
	long := strings.Repeat("w", 10_000)
	c := readAll(t, log(says("user", "hello"), spoke("a", 20_000, 1), says("user", long), compacted, says("user", "the summary"), spoke("b", 26_000, 1),
		says("user", long), `{"type":"system","subtype":"compact_boundary","timestamp":"2026-02-11T21:18:41.543Z"}`, says("user", long)))
	if len(c.Compactions) != 2 {
		t.Fatalf("%d compactions", len(c.Compactions))
	}
	a, b := c.Compactions[0], c.Compactions[1]
	if a.Line != 4 || a.Before != 167_094 || a.BeforeBasis != "log" || a.Trigger != "auto" || a.After != 26_000 || a.AfterBasis != "usage" || a.Reduction < 84 || a.Reduction > 85 {
		t.Errorf("the first: %+v", a)
	}
	if b.Before < 29_000 || b.Before > 29_010 || b.BeforeBasis != "usage" || b.AfterBasis != "estimate" || b.After != c.Prefix+3000 || b.At.IsZero() {
		t.Errorf("the second: %+v with %d before the messages", b, c.Prefix)
	}
	if b.MessagesAfter != 3000 || b.MessagesBefore != b.Before-c.Prefix {
		t.Errorf("messages of the second: %+v", b)
	}
}

func TestBuilt(t *testing.T) {
	call := func(id, model string, side bool, create, hour, read int) string {
		return fmt.Sprintf(`{"type":"assistant","isSidechain":%v,"message":{"id":%q,"role":"assistant","model":%q,"content":[],"usage":{"input_tokens":0,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":%d}}}}`, side, id, model, create, read, hour)
	}
	const m = 1_000_000
	c := readAll(t, log(
		call("a", "claude-opus-4-6", false, m, 0, 0), call("a", "claude-opus-4-6", false, m, 0, 0), // one call: 6.25
		call("b", "claude-opus-4-6", false, 0, 0, 9*m), // 4.50
		call("c", "claude-haiku-4-5", true, m, m, 0),   // 2
		call("d", "some-model", true, m, 0, 0),         // as opus: 6.25
	))
	b := c.Built
	if b.Calls != 4 || b.Unpriced != 1 || b.Dollars != 6.25+4.50+2+6.25 || b.Hour != m || len(b.Models) != 3 || b.HitRate == nil || *b.HitRate != 0.9 || b.TTL != cost.ShortTTL {
		t.Errorf("%+v", b)
	}
	if hour := readAll(t, log(call("a", "claude-opus-4-6", false, m, m, 0))).Built; hour.TTL != cost.LongTTL || hour.Dollars != 10 {
		t.Errorf("written to the cache that lives an hour: %+v", hour)
	}
	if none := readAll(t, log(says("user", "hi"))).Built; none.HitRate != nil || none.Calls != 0 {
		t.Errorf("without calls: %+v", none)
	}
}

func TestFirstChange(t *testing.T) {
	text := log(says("user", strings.Repeat("a", 1000)), `{"type":"user","message":{"role":"user","content":[`+oldResult+`]},"toolUseResult":{"stdout":"old tool result"}}`, says("user", "end"))
	at := func(s string) int64 { return int64(strings.Index(text, s)) }
	for _, tc := range []struct {
		name    string
		changes []int64
		want    tidemark.Tokens
	}{
		{"none", nil, 0},
		{"in a result", []int64{at("old tool result")}, 300},
		{"in the copy beside it, which is not sent", []int64{at(`{"stdout`)}, 0},
		{"in the copy, then in a message", []int64{at(`{"stdout`), at("end")}, 305},
		{"a whole line", []int64{at(`{"type":"user","message"`), at("end")}, 305},
	} {
		c, err := readChanged(text, tc.changes...)
		if err != nil {
			t.Fatal(err)
		}
		if tc.want == 0 {
			tc.want = c.Weight
		}
		if c.Same != tc.want {
			t.Errorf("%s: %d tokens before it, want %d", tc.name, c.Same, tc.want)
		}
	}
}

// Changes that nobody kept may be anywhere behind those that were.
func TestMoreChanges(t *testing.T) {
	text := log(says("user", strings.Repeat("a", 1000)), says("user", strings.Repeat("b", 1000)), says("user", "end"))
	rd := reader{prices: cost.DefaultPrices(), more: true, changes: []int64{3}} // in front of the first content
	c, err := rd.read(context.Background(), strings.NewReader(text))
	if err != nil || c.Same != 0 {
		t.Errorf("%d tokens before the first change, %v; want none", c.Same, err)
	}
	var ch changes
	for i := range maxChanges + 2 {
		if err := ch.Cut(trim.Cut{From: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if !ch.more || len(ch.at) != maxChanges || ch.at[maxChanges-1] != maxChanges-1 {
		t.Errorf("kept %d changes, more %v", len(ch.at), ch.more)
	}
}

func TestFacts(t *testing.T) {
	c := readAll(t, log(`{"type":"user","content":"x","sessionId":"s-1","cwd":"/work","timestamp":"2026-02-11T10:00:00Z"}`, `{"type":"ai-title","aiTitle":"A title"}`, `{"type":"user","isSidechain":true,"sessionId":"s-2","timestamp":"2026-02-11T11:00:00Z"}`))
	if c.Session != "s-1" || c.CWD != "/work" || c.Title != "A title" || c.Last.Sub(c.First) != time.Hour || c.Side != 1 {
		t.Errorf("%+v", c)
	}
}

func TestReadFails(t *testing.T) {
	broken := errors.New("the disk")
	rd := reader{prices: cost.DefaultPrices()}
	if _, err := rd.read(context.Background(), iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a failing input: %v", err)
	}
}

// Whatever a log holds, it is read to the end, and all its bytes are counted.
func FuzzRead(f *testing.F) {
	f.Add(log(says("user", "hello"), spoke("a", 20_000, 1), compacted, says("user", "x"), `{"type":"summary","summary":"s"}`, `null`, `{"type":"user","message":{"content":[{"type":"image","source":{"data":"AA"}}]}}`))
	f.Add("\xef\xbb\xbf{\"type\":\"assistant\",\"content\":[{\"type\":\"tool_result\",\"content\":[{\"type\":\"tool_result\",\"content\":[]}]}],\"usage\":{\"input_tokens\":1e9}}\r\n\n{")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readChanged(text)
		if err != nil {
			t.Fatal(err)
		}
		if c.Bytes != int64(len(text)) || c.LiveBytes > int64(len(text)) || c.LiveFrom > int64(len(text)) {
			t.Errorf("%d bytes, %d live from %d, of %d", c.Bytes, c.LiveBytes, c.LiveFrom, len(text))
		}
		for _, p := range c.Composition.Parts() {
			if p.Bytes < 0 || p.Count < 0 || p.Tokens < 0 || p.Percent < 0 || p.Percent > 100 {
				t.Errorf("a part %+v", p)
			}
		}
		if c.Context < 0 || c.Prefix < 0 || c.Same > c.Weight {
			t.Errorf("context %d, prefix %d, same %d of %d", c.Context, c.Prefix, c.Same, c.Weight)
		}
	})
}

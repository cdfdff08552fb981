package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/transcript"
	"github.com/tidemark-ai/tidemark/trim/logtest"
)

func options(tb testing.TB, model string) Options {
	tb.Helper()
	p, err := cost.DefaultPrices().Find(model)
	if err != nil {
		tb.Fatal(err)
	}
	return Options{Prices: cost.DefaultPrices(), Model: cost.Model{Price: p, HitRate: cost.DefaultHitRate}}
}

func measure(tb testing.TB, text string, o Options) Report {
	tb.Helper()
	r, err := Measure(context.Background(), strings.NewReader(text), int64(len(text)), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// plain are exchanges with nothing in them that trimming takes. at numbers them.
func plain(n, at int) (lines []string) {
	parent := "null"
	if at > 0 {
		parent = fmt.Sprintf(`"a%d"`, at-1)
	}
	for i := at; i < at+n; i++ {
		lines = append(lines,
			fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%s,"message":{"role":"user","content":"question %d: %s"}}`, i, parent, i, strings.Repeat("words ", 40)),
			fmt.Sprintf(`{"type":"assistant","uuid":"a%d","parentUuid":"u%d","message":{"id":"m%d","role":"assistant","content":[{"type":"text","text":"answer %d: %s"}]}}`, i, i, i, i, strings.Repeat("words ", 40)))
		parent = fmt.Sprintf(`"a%d"`, i)
	}
	return lines
}

// heavy are exchanges with an output of a tool each.
func heavy(n, chars int) (lines []string) {
	parent := "null"
	for i := range n {
		lines = append(lines,
			fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%s,"message":{"role":"user","content":"look at file %d"}}`, i, parent, i),
			fmt.Sprintf(`{"type":"assistant","uuid":"c%d","parentUuid":"u%d","message":{"id":"c%d","role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/src/%d.go"}}]}}`, i, i, i, i, i),
			fmt.Sprintf(`{"type":"user","uuid":"r%d","parentUuid":"c%d","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}}`, i, i, i, strings.Repeat("x", chars)),
			fmt.Sprintf(`{"type":"assistant","uuid":"a%d","parentUuid":"r%d","message":{"id":"a%d","role":"assistant","content":[{"type":"text","text":"it says x"}]}}`, i, i, i))
		parent = fmt.Sprintf(`"a%d"`, i)
	}
	return lines
}

// What a compaction left behind is no context. The known implementation counts its bytes as saved tokens: 65 % and
// break-even at turn 3 for such a log, of which nothing can be trimmed.
func TestNothingBehindABoundaryIsSaved(t *testing.T) {
	r := measure(t, log(append(append(plain(450, 0), compacted), plain(50, 450)...)...), options(t, "opus"))
	if r.Live.Reduction > 0.1 || r.Live.BreakEven.Verdict() != cost.NotNeeded {
		t.Errorf("live: %+v", r.Live)
	}
	if r.Paper.Reduction > 1 || r.Verdict.Paper != cost.NotNeeded {
		t.Errorf("paper: %+v", r.Paper)
	}
	if r.Messages.Messages() != 100 || r.AllMessages.Messages() != 1000 || r.Bytes <= 5*r.LiveBytes {
		t.Errorf("%+v of %+v, %d of %d bytes", r.Messages, r.AllMessages, r.LiveBytes, r.Bytes)
	}
}

func TestMeasure(t *testing.T) {
	text := log(heavy(20, 8000)...)
	r := measure(t, text, options(t, "opus"))
	if r.Trim.ToolResultsStubbed != 20 {
		t.Fatalf("%d results trimmed of 20", r.Trim.ToolResultsStubbed)
	}
	if want := tidemark.Tokens(20_000 + 20*8000/4); r.Paper.Pre < want || r.Paper.Pre > want+1000 {
		t.Errorf("paper: %d tokens before, want about %d", r.Paper.Pre, want)
	}
	if r.Paper.Post < transcript.TypicalPrefix || r.Paper.Post > 25_000 || r.Live.Post < transcript.TypicalPrefix || r.Live.Post > 25_000 {
		t.Errorf("after: %d by the paper, %d live, want little more than what stands before the messages", r.Paper.Post, r.Live.Post)
	}
	// All behind the first output changes, but not what stands before it.
	if r.Live.Same < transcript.TypicalPrefix || r.Live.Same > transcript.TypicalPrefix+100 || r.Live.Penalty > max(0, r.Paper.Penalty) {
		t.Errorf("live: %+v", r.Live)
	}
	if r.After.ToolResults.Bytes >= r.Composition.ToolResults.Bytes/5 || r.After.Conversation.Tokens != r.Composition.Conversation.Tokens {
		t.Errorf("composition %+v, after %+v", r.Composition, r.After)
	}
	if r.Branch.Tokens != r.Live.Pre || r.Branch.Trimmed.Tokens != r.Live.Post || math.Abs(r.Branch.First-float64(r.Live.Pre)*6.25/1e6) > 1e-9 {
		t.Errorf("branch: %+v", r.Branch)
	}
	again := measure(t, text, options(t, "opus"))
	if !reflect.DeepEqual(r, again) {
		t.Error("one log gives two reports")
	}
	if sonnet := measure(t, text, options(t, "sonnet")); sonnet.Paper.BreakEven != r.Paper.BreakEven || sonnet.Paper.Penalty >= r.Paper.Penalty {
		t.Errorf("at other prices: %+v", sonnet.Paper)
	}
}

func TestPause(t *testing.T) {
	lines := append(heavy(2, 8000), plain(200, 0)...)
	last := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	lines = append(lines, `{"type":"user","uuid":"z","parentUuid":"a199","timestamp":"2026-02-11T12:00:00Z","message":{"role":"user","content":"go on"}}`)
	for _, tc := range []struct {
		pause time.Duration
		cold  bool
	}{{0, false}, {4 * time.Minute, false}, {5 * time.Minute, true}, {30 * 24 * time.Hour, true}, {-time.Hour, false}} {
		o := options(t, "opus")
		o.Now = last.Add(tc.pause)
		l := measure(t, log(lines...), o).Live
		if l.Cold != tc.cold || (l.Warm != nil) != tc.cold {
			t.Errorf("after %s: %+v", tc.pause, l)
		}
		if w := l.Working(); tc.cold && (l.Penalty != 0 || l.BreakEven != 1) || w.Cold || w.Penalty <= 0 {
			t.Errorf("after %s: now %+v, warm %+v", tc.pause, l.Trim, w)
		}
	}
	// A log that tells no time, or a reader that has none: the cache is taken to be warm.
	for name, o := range map[string]Options{"no clock": options(t, "opus"), "no time": options(t, "opus")} {
		timeless := log(lines...)
		if name == "no time" {
			o.Now, timeless = last, strings.ReplaceAll(timeless, `"timestamp"`, `"at"`)
		}
		if l := measure(t, timeless, o).Live; l.Cold || l.Pause != 0 {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestMeasureFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	text := log(heavy(3, 1000)...)
	if _, err := Measure(ctx, strings.NewReader(text), int64(len(text)), options(t, "opus")); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	o := options(t, "opus")
	o.Model.HitRate = 2
	if _, err := Measure(context.Background(), strings.NewReader(text), int64(len(text)), o); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a hit rate of 2: %v", err)
	}
	broken := errors.New("the disk")
	if _, err := Measure(context.Background(), brokenAt{broken}, 1000, options(t, "opus")); !errors.Is(err, broken) {
		t.Errorf("a broken disk: %v", err)
	}
}

type brokenAt struct{ err error }

func (b brokenAt) ReadAt([]byte, int64) (int, error) { return 0, b.err }

func generated(tb testing.TB, o logtest.Options) string {
	tb.Helper()
	var b bytes.Buffer
	if err := logtest.Write(&b, o); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// Laws over logs of all shapes: what is reported is of this log, and fits together.
func TestMeasureLaws(t *testing.T) {
	for i, p := range []logtest.Profile{logtest.Mixed, logtest.Tools, logtest.Images, logtest.Talking} {
		for _, hostile := range []bool{false, true} {
			o := logtest.Options{Seed: uint64(i), Bytes: 200_000, Profile: p, Compactions: i % 3, Hostile: hostile}
			text := generated(t, o)
			r := measure(t, text, options(t, "opus"))
			lawful(t, fmt.Sprintf("%s, hostile %v", p, hostile), text, r)
			if len(r.Compactions) < o.Compactions {
				t.Errorf("%s: %d compactions of %d", p, len(r.Compactions), o.Compactions)
			}
		}
	}
}

func lawful(t *testing.T, name, text string, r Report) {
	t.Helper()
	if r.Bytes != int64(len(text)) || r.Trim.OriginalBytes != r.Bytes || r.LiveBytes > r.Bytes || r.Trim.TrimmedBytes > r.Trim.OriginalBytes {
		t.Errorf("%s: %d bytes, %d live, trim %+v", name, r.Bytes, r.LiveBytes, r.Trim)
	}
	if r.Composition.bytes() != r.LiveBytes {
		t.Errorf("%s: parts have %d of %d live bytes", name, r.Composition.bytes(), r.LiveBytes)
	}
	if r.Paper.Post > r.Paper.Pre || r.Paper.Pre >= transcript.TypicalPrefix && r.Paper.Post < transcript.TypicalPrefix {
		t.Errorf("%s: paper %+v", name, r.Paper)
	}
	for _, l := range []cost.LiveTrim{r.Live.LiveTrim, r.Live.Working()} {
		if l.Same > l.Pre || l.Same < 0 || l.Post < 0 || l.Penalty < 0 || l.HitRate < 0 || l.HitRate > 1 || r.Live.Prefix > l.Pre {
			t.Errorf("%s: live %+v with %d before the messages", name, l, r.Live.Prefix)
		}
	}
	if r.After.FileHistory.Bytes != 0 || r.After.Signatures.Bytes > r.Composition.Signatures.Bytes || r.After.ToolResults.Bytes > r.Composition.ToolResults.Bytes+1<<12 {
		t.Errorf("%s: after a trim %+v, before %+v", name, r.After, r.Composition)
	}
	if r.Built.Dollars < 0 || r.Built.Unpriced > r.Built.Calls {
		t.Errorf("%s: built %+v", name, r.Built)
	}
}

// Real logs, where there are some: TIDEMARK_TRANSCRIPTS=folder.
func TestRealLogs(t *testing.T) {
	dir := os.Getenv("TIDEMARK_TRANSCRIPTS")
	if dir == "" {
		t.Skip("TIDEMARK_TRANSCRIPTS names no folder of logs")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs in %s: %v", dir, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := measure(t, string(raw), options(t, "opus"))
		lawful(t, filepath.Base(file), string(raw), r)
		if !r.Live.Measured || !r.Live.Known || r.Built.Unpriced > 0 || r.Live.Prefix < 5_000 || r.Live.Prefix > 60_000 {
			t.Errorf("%s: live %+v, built %+v", file, r.Live, r.Built)
		}
		t.Logf("%s: paper %+v, live %+v, built for $%.2f, %d compactions", filepath.Base(file), r.Paper, r.Live.Working(), r.Built.Dollars, len(r.Compactions))
	}
}

// What is written to the cache of an hour has its price in the live model and in the cost of a branch, so that both can
// be reckoned again with the price that the report tells; a hit rate that is asked for counts in both models.
func TestOnePriceOfASession(t *testing.T) {
	usage := func(hour int) string {
		return fmt.Sprintf(`,"usage":{"input_tokens":0,"output_tokens":1,"cache_read_input_tokens":30000,"cache_creation_input_tokens":10000,"cache_creation":{"ephemeral_1h_input_tokens":%d}}}}`, hour)
	}
	lines := heavy(8, 4000)
	for _, tc := range []struct {
		name  string
		hour  int
		write float64
		ttl   time.Duration
	}{{"five minutes", 0, 6.25, cost.ShortTTL}, {"an hour", 10_000, 10, cost.LongTTL}} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Join(append(lines[:len(lines):len(lines)], `{"type":"assistant","uuid":"z","message":{"id":"z","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"done"}]`+usage(tc.hour)), "\n") + "\n"
			o := options(t, "opus")
			r := measure(t, text, o)
			if r.Branch.Write != tc.write || r.Live.Write != tc.write || r.Branch.TTL != int64(tc.ttl/time.Second) || r.Live.TTL != r.Branch.TTL {
				t.Errorf("branch at %v for %d s, live at %v for %d s; want %v and %v", r.Branch.Write, r.Branch.TTL, r.Live.Write, r.Live.TTL, tc.write, tc.ttl)
			}
			read, write := 0.5, tc.write
			turn := func(n tidemark.Tokens, h float64) float64 { return float64(n) / 1e6 * (h*read + (1-h)*write) }
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 1e-12 {
					t.Errorf("%s: %v, by hand %v", what, got, want)
				}
			}
			near("branch", r.Branch.First, float64(r.Live.Pre)/1e6*write)
			near("trimmed branch", r.Branch.Trimmed.First, float64(r.Live.Post)/1e6*write)
			near("live savings", r.Live.Savings, turn(r.Live.Pre, 0.75)-turn(r.Live.Post, 0.75))
			if !r.Live.Known || r.Live.Given {
				t.Errorf("hit rate measured %v, given %v", r.Live.Known, r.Live.Given)
			}
			o.Given, o.Model.HitRate = true, 0.5
			r = measure(t, text, o)
			near("given: live savings", r.Live.Savings, turn(r.Live.Pre, 0.5)-turn(r.Live.Post, 0.5))
			if r.Live.HitRate != 0.5 || r.Live.Known || !r.Live.Given || r.HitRate != 0.5 {
				t.Errorf("given 0.5: live %v, paper %v, measured %v, given %v", r.Live.HitRate, r.HitRate, r.Live.Known, r.Live.Given)
			}
		})
	}
}

package session_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// BenchmarkRecall asks 5,000 messages of an agent as test/bench/time.mjs does on workerd: words as Zipf has them, an
// identifier in each message, another question each time.
func BenchmarkRecall(b *testing.B) {
	const length = 5000
	life, stop := context.WithCancel(context.Background())
	b.Cleanup(stop)
	s, err := session.Open(life, session.Config{Rooms: finding, Key: "agent:main:main", DB: hosttest.DB(b), Blobs: hosttest.Blobs(b), Provider: &model{}, Agent: &fakeAgent{}, Runtime: hosttest.Runtime(b),
		Settings: session.Settings{Model: "test", Window: 32_000}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := roomOf[*replay.Room](b, s).Import(life, agentLog(length), nil); err != nil {
		b.Fatal(err)
	}
	for asked := (search.Recalled{}); len(asked.Filtered) > 0 || asked.Query == ""; { // until all is in the index
		if asked, err = findIn(b, s).Recall(life, search.Wanted{Query: "index"}); err != nil {
			b.Fatal(err)
		}
		asked.Filtered = slices.DeleteFunc(asked.Filtered, func(f search.Filtered) bool { return f.Reason != search.NotIndexed })
	}
	for _, kind := range []struct {
		name string
		ask  func(i int) string
	}{
		{"identifier", func(i int) string { return agentName(i * 37 % length) }},
		{"words", func(i int) string {
			return fmt.Sprintf("%s %s %s", agentWord(i*7), agentWord(i*31+5), agentWord(i*101+900))
		}},
		{"sentence", func(i int) string {
			return fmt.Sprintf("where did we read about the %s and the %s of the %s, and what did %s say of %s?",
				agentWord(i*3), agentWord(i*17+40), agentWord(i*53+700), agentWord(i*29+9), agentName(i*91%length))
		}},
		{"absent", func(i int) string { return fmt.Sprintf("quux_%d_zzz never xylophoned the %s", i, agentWord(i)) }},
	} {
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := findIn(b, s).Recall(life, search.Wanted{Query: kind.ask(i), K: 10}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func agentWord(n int) string {
	const first, second = "bdfgklmnprstvz", "aeiou"
	var w strings.Builder
	for n = n%5000 + 50; n > 0; n /= 70 {
		w.WriteByte(first[n%70/5])
		w.WriteByte(second[n%5])
	}
	return w.String()
}

func agentName(i int) string { return fmt.Sprintf("build_%06d_%x", i, i*7919%0xfffff) }

func agentLog(n int) iter.Seq2[replay.Message, error] {
	seed := 7
	words := func(count int) string {
		out := make([]string, count)
		for i := range out {
			seed = seed * 48271 % 0x7fffffff
			out[i] = agentWord(int(math.Pow(5000, float64(seed)/0x7fffffff)) - 1)
		}
		return strings.Join(out, " ")
	}
	return func(yield func(replay.Message, error) bool) {
		for i := range n {
			id, tag := fmt.Sprintf("toolu_%d", i-i%4), agentName(i)
			var line string
			switch i % 4 {
			case 0:
				line = fmt.Sprintf(`{"role":"user","content":"%s %s"}`, words(20+i%30), tag)
			case 1:
				line = fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"read","input":{"file":"/srv/%s.go","tag":%q}}]}`, id, words(1), tag)
			case 2:
				text := tag
				for range 8 {
					text += fmt.Sprintf(`\nfunc %s(ctx) error { %s }`, words(1), words(8))
				}
				line = fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"%s"}]}`, id, text)
			case 3:
				line = fmt.Sprintf(`{"role":"assistant","content":"%s %s"}`, words(10+i%20), tag)
			}
			var in replay.Message
			if err := json.Unmarshal([]byte(line), &in.Message); !yield(in, err) {
				return
			}
		}
	}
}

//go:build !js

package session_test

import (
	"bytes"
	"fmt"
	"iter"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/transcript"
)

// BenchmarkImport replays logs through a session in MB/s of the log. Its baseline is what must be
// done at least: find the lines and decode each.
func BenchmarkImport(b *testing.B) {
	for name, log := range transcripts(b) {
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				decodeLines(b, log)
			}
		})
		b.Run(name+"/read", func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				for _, err := range transcript.Messages(bytes.NewReader(log), transcript.Options{}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		for _, window := range []tidemark.Tokens{32_000, 200_000} {
			b.Run(fmt.Sprintf("%s/window=%d", name, window), func(b *testing.B) {
				b.SetBytes(int64(len(log)))
				var res replay.Result
				for b.Loop() {
					res = importOnce(b, log, window)
				}
				b.ReportMetric(float64(res.Messages), "messages")
				b.ReportMetric(float64(res.Compactions), "compactions")
			})
		}
	}
}

func decodeLines(b *testing.B, log []byte) {
	for line := range bytes.Lines(log) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// importOnce imports into a new session. Making its files is not counted.
func importOnce(b *testing.B, log []byte, window tidemark.Tokens) replay.Result {
	b.StopTimer()
	ctx, rt := life(b)
	s := openSession(b, ctx, session.Config{Key: "agent:main:main", DB: fileDB(b), Blobs: dirBlobs(b), Provider: offline.Model{}, Runtime: rt,
		Settings: session.Settings{Window: window}})
	b.StartTimer()
	res, err := roomOf[*replay.Room](b, s).Import(ctx, imported(transcript.Messages(bytes.NewReader(log), transcript.Options{})), nil)
	if err != nil {
		b.Fatal(err)
	}
	if res.Messages == 0 || res.ContextTokens > res.Limit {
		b.Fatalf("import gave %+v", res)
	}
	return res
}

func imported(items iter.Seq2[transcript.Item, error]) iter.Seq2[replay.Message, error] {
	return func(yield func(replay.Message, error) bool) {
		for it, err := range items {
			in := replay.Message{Message: it.Message, At: it.At}
			if it.Message.Role == tidemark.Assistant {
				in.Call = &tidemark.Call{Model: it.Model, Stop: it.Stop}
			}
			if !yield(in, err) {
				return
			}
		}
	}
}

//go:build !js

package session_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/transcript"
)

// BenchmarkArtifacts compares logs of agents with large results compressed beside their entries, and in them: the
// time of an import and of a view, and what the tables take.
func BenchmarkArtifacts(b *testing.B) {
	for name, log := range transcripts(b) {
		for _, chars := range []int{-1, 1024, 4096} {
			b.Run(fmt.Sprintf("%s/chars=%d", name, chars), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					ctx, rt := life(b)
					db := fileDB(b)
					s := openSession(b, ctx, session.Config{Key: "agent:main:main", DB: db, Blobs: dirBlobs(b), Provider: offline.Model{}, Runtime: rt,
						Settings: session.Settings{ArtifactChars: chars}})
					b.StartTimer()
					start := rt.Now()
					if _, err := roomOf[*replay.Room](b, s).Import(ctx, imported(transcript.Messages(bytes.NewReader(log), transcript.Options{})), nil); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(rt.Now().Sub(start).Milliseconds()), "import-ms")
					start = rt.Now()
					const views = 20
					for range views {
						if _, err := s.View(ctx); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(rt.Now().Sub(start).Microseconds())/views, "view-µs")
					b.StopTimer()
					rows, err := db.Query(ctx, `SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size), (SELECT sum(length(payload)) FROM entries) LIMIT 1`)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(rows[0].Int(0)>>10), "db-KiB")
					b.ReportMetric(float64(rows[0].Int(1)>>10), "payload-KiB")
					b.StartTimer()
				}
			})
		}
	}
}

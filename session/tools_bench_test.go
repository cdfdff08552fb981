//go:build !js

package session_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// looper is a model in the process that calls tools so many rounds, so many at a time, and then ends.
type looper struct{ rounds, calls int }

func (l looper) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		round := 0
		for i := len(req.Messages) - 1; i >= 0 && (req.Messages[i].Role == tidemark.Assistant || len(req.Messages[i].Results()) > 0); i-- {
			if req.Messages[i].Role == tidemark.Assistant {
				round++
			}
		}
		m := tidemark.NewText(tidemark.Assistant, "done")
		if round < l.rounds {
			m = tidemark.Message{Role: tidemark.Assistant}
			for i := range l.calls {
				m.Content = append(m.Content, tidemark.ToolUse(fmt.Sprintf("c%d-%d-%d", len(req.Messages), round, i), "files__read", []byte(`{"path":"notes/today.md"}`)))
			}
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: req.Model, Stop: "end_turn"}}}, nil)
	}
}

// reader is a toolbox with one tool that answers at once.
type reader struct{ text string }

func (reader) Tools(context.Context, tidemark.Scope) ([]tidemark.Tool, []string) {
	return []tidemark.Tool{tool("files__read", true)}, nil
}

func (r reader) Call(_ context.Context, _ tidemark.Scope, c tidemark.Block) tidemark.Block {
	return tidemark.ToolResult(c.ID, r.text, false)
}

// BenchmarkToolRound is what the loop adds to a round: a turn of one round less a turn without tools, with tools that
// take no time. parallel has 100 calls in one reply, of which eight run at a time.
func BenchmarkToolRound(b *testing.B) {
	for _, row := range []struct {
		name          string
		rounds, calls int
	}{{"none", 0, 0}, {"one", 1, 1}, {"ten", 10, 1}, {"parallel", 1, 100}} {
		b.Run(row.name, func(b *testing.B) {
			ctx, rt := life(b)
			s := openSession(b, ctx, session.Config{Key: "agent:main:main", DB: fileDB(b), Blobs: dirBlobs(b), Runtime: rt,
				Provider: looper{row.rounds, row.calls}, Tools: reader{strings.Repeat("a line of a file\n", 40)}})
			sub, err := s.Subscribe()
			if err != nil {
				b.Fatal(err)
			}
			defer sub.Close()
			for i := range b.N {
				if i%20 == 0 && i > 0 { // the history stays short
					b.StopTimer()
					if _, err := s.Post(ctx, session.Input{Kind: session.InputReset, Text: "manual"}); err != nil {
						b.Fatal(err)
					}
					until(b, sub)
					b.StartTimer()
				}
				if _, err := s.Post(ctx, byOwner("read it")); err != nil {
					b.Fatal(err)
				}
				until(b, sub)
			}
		})
	}
}

// until waits for the end of a turn.
func until(b *testing.B, sub *session.Subscription) {
	b.Helper()
	for range sub.Ready {
		for n, ok := sub.Next(); ok; n, ok = sub.Next() {
			switch n.Type {
			case session.NoticeDone:
				return
			case session.NoticeError:
				b.Fatal(n.Text)
			}
		}
	}
}

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/transcript"
)

// recorded is a log that is played again: each reply was asked for by what stands before it.
type recorded struct {
	talks [][][]json.RawMessage // conversations: a compaction began a new one; messages by turns, the user's first
	now   int                   // the conversation, and the message that is asked for
	at    int
}

// RunLog plays a log of Claude Code under each treatment. Its agent does not react to what left, so nothing is read
// again for it, and whether its task was done is not asked.
func (t Treatments) RunLog(ctx context.Context, r io.Reader) ([]Treated, error) {
	if len(t.Names) == 0 {
		return nil, t.check()
	}
	talks, err := readTalks(r)
	if err != nil {
		return nil, err
	}
	if len(talks) == 0 {
		return nil, fmt.Errorf("no message of the model in the log: %w", tidemark.ErrInvalid)
	}
	return t.each(ctx, func(up *upstream) { up.play = &recorded{talks: talks} }, playLog)
}

// readTalks reads a log. Messages of one role that follow each other are one, as the API wants them.
func readTalks(r io.Reader) (talks [][][]json.RawMessage, err error) {
	var now [][]json.RawMessage
	end := func() {
		if len(now)%2 == 1 {
			now = now[:len(now)-1] // what nobody answered
		}
		if len(now) > 0 {
			talks = append(talks, now)
		}
		now = nil
	}
	for it, err := range transcript.Messages(r, transcript.Options{}) {
		var bad *transcript.LineError
		if errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if it.Boundary {
			end()
		}
		user := it.Message.Role == tidemark.User
		if it.APIError || len(it.Message.Content) == 0 || len(now) == 0 && !user {
			continue
		}
		var blocks []json.RawMessage
		for _, b := range it.Message.Content {
			blocks = append(blocks, b.AppendJSON(nil))
		}
		if same := len(now) > 0 && (len(now)%2 == 1) == user; same {
			now[len(now)-1] = append(now[len(now)-1], blocks...)
		} else {
			now = append(now, blocks)
		}
	}
	end()
	return talks, nil
}

// reply is the recorded one.
func (r *recorded) reply(*apiAsk) (blocks []string, stop string) {
	stop = "end_turn"
	for _, b := range r.talks[r.now][r.at] {
		var head struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(b, &head) == nil && head.Type == tidemark.TypeToolUse {
			stop = "tool_use"
		}
		blocks = append(blocks, string(b))
	}
	return blocks, stop
}

// sameJSON reports whether two values are one but for white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// playLog sends the requests of a log. What comes back is what stands there.
func playLog(_ context.Context, up *upstream, c *simClient) (one Treated, err error) {
	for n, talked := range up.play.talks {
		for i := 1; i < len(talked); i += 2 {
			up.mu.Lock()
			up.play.now, up.play.at = n, i
			up.mu.Unlock()
			c.clock.now = c.clock.now.Add(15e9)
			raw, err := c.post(c.body(&thread{messages: talked[:i], system: "You are played again."}, false))
			if err != nil {
				return one, err
			}
			var got struct {
				Content []json.RawMessage `json:"content"`
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				return one, err
			}
			if !slices.EqualFunc(got.Content, talked[i], sameJSON) {
				c.leaks++
			}
		}
	}
	return one, nil
}

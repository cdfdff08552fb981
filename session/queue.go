package session

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// Waiting is an input that no turn has taken up yet.
type Waiting struct {
	ID   string    `json:"id"`
	Kind string    `json:"kind"` // message, compact, reset, ask (another command), amend (a correction, without a text for what is taken back)
	At   time.Time `json:"at"`
	Text string    `json:"text"` // its beginning; what is no text is left out
}

// waitingText is how many bytes of an input's text the queue shows.
const waitingText = 500

// Queue returns the run in work, empty for none, and the oldest inputs that wait for their turn. What
// a run has taken up stands in the log and not here.
func (s *Session) Queue(ctx context.Context) (run string, out []Waiting, err error) {
	if run, err = s.Busy(ctx); err != nil {
		return "", nil, fmt.Errorf("find run: %w", err)
	}
	q, err := s.waiting(ctx)
	if err != nil {
		return "", nil, err
	}
	for i := range q {
		if q[i].Kind == inputAgain {
			continue
		}
		if err := s.load(ctx, q[i:i+1]); err != nil { // one at a time: they may be large
			return "", nil, err
		}
		w := Waiting{ID: q[i].ID, Kind: q[i].Kind, At: q[i].At.UTC()}
		if w.Text, err = wordsOf(q[i]); err != nil {
			return "", nil, fmt.Errorf("read input %s: %w", w.ID, err)
		}
		q[i].Payload = nil
		out = append(out, w)
	}
	return run, out, nil
}

// Occupied reports whether a turn is in work, or an input waits for one.
func (s *Session) Occupied(ctx context.Context) (bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND state IN ('new', 'taken') LIMIT 1`, string(s.Key))
	if err != nil {
		return false, fmt.Errorf("look for what is in work: %w", err)
	}
	busy, err := s.Busy(ctx)
	return len(rows) > 0 || busy != "", err
}

// wordsOf is the beginning of what an input says.
func wordsOf(in queued) (text string, err error) {
	if len(in.Payload) == 0 {
		return "", nil // taken up a moment ago
	}
	switch in.Kind {
	case InputMessage:
		var m tidemark.Message
		if err = json.Unmarshal(in.Payload, &m); err == nil {
			text = m.PlainText()
		}
	case inputAmend:
		var a Amendment
		_, a, err = in.amendment()
		text = a.Text
	default:
		err = json.Unmarshal(in.Payload, &text)
	}
	if text = strings.TrimSpace(text); len(text) > waitingText {
		cut := waitingText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text, err
}

// queue is what rooms may ask of what is posted.
func (s *Session) queue() room.Queue {
	return room.Queue{
		Post: func(ctx context.Context, e tidemark.Errand) error {
			in := Input{ID: e.ID, Message: tidemark.NewText(tidemark.User, e.Text), Origin: e.Origin}
			if err := in.Validate(); err != nil {
				return err
			}
			p, err := s.posted(ctx, e.ID)
			if err == nil && !p.There {
				err = s.limit(ctx, e.Limits)
			}
			if err != nil {
				return fmt.Errorf("errand %s: %w", e.ID, err)
			}
			_, err = s.Post(ctx, in)
			return err
		},
		Stop: func(ctx context.Context, id string) error {
			_, err := s.Post(ctx, Input{ID: id, Kind: InputAsk, Text: tidemark.CommandStop, Origin: tidemark.Origin{From: tidemark.FromAgent}})
			return err
		},
		Find: s.posted,
		Withdraw: func(ctx context.Context, id string) error {
			err := s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE inputs SET state = 'done', payload = '' WHERE key = ? AND id = ? AND state = 'new'`, Args: []any{string(s.Key), id}, Want: 1}})
			if err == nil {
				s.hub.send(Notice{Type: NoticeDone, Run: "drop:" + id, Inputs: []string{id}})
			}
			return err
		},
		Follow: func() (room.Ends, error) {
			sub, err := s.Subscribe()
			return &endings{s, sub, heartbeat}, err
		},
	}
}

// Package occasion is the room that tells the agent what came of the runs of schedules, once each, from the transaction that
// ends them on. What of an answer is delivered, tidemark.Occasion says. Begin with OutcomeStmts.
package occasion

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// kind of what the agent is told: a tidemark.Ran.
const kind = "ran"

// Room tells of the runs in one conversation.
type Room struct {
	room.Self
	room.Mail
	usage    func(ctx context.Context, run string) tidemark.Usage
	delivers bool
}

// Make returns what makes the room; delivers says that answers go to people over channels.
func Make(delivers bool) room.Maker {
	return func(p room.Ports) any { return &Room{p.Self, p.Mail, p.Usage, delivers} }
}

var (
	_ room.Concluder = (*Room)(nil)
	_ room.Reporter  = (*Room)(nil)
)

// tellAfter is when the agent is told by alarm, in case the life that ended the run ends before it is.
const tellAfter = time.Minute

// OutcomeStmts implements room.Concluder.
func (s *Room) OutcomeStmts(ctx context.Context, t room.Turn, out tidemark.Outcome) []tidemark.Stmt {
	var stmts []tidemark.Stmt
	for _, o := range t.Origins {
		if o.Occasion == nil {
			continue
		}
		if len(stmts) == 0 {
			out.Usage = s.usage(ctx, t.Run)
		}
		ran := tidemark.Ran{Schedule: o.Occasion.Schedule, Due: o.Occasion.Due, Session: s.Key, At: s.Runtime.Now(), Outcome: out}
		if out.Text != "" {
			ran.Said = tidemark.SaidHash(out.Text)
			ran.Delivered = o.To != nil && s.delivers && o.Occasion.Delivers(out.Text)
		}
		if len(out.Text) > tidemark.MaxRanText {
			ran.Outcome.Text = strings.ToValidUTF8(out.Text[:tidemark.MaxRanText], "") + "…"
		}
		stmts = append(stmts, s.Outbox(fmt.Sprintf("ran:%s/%s/%d", s.Key, ran.Schedule, ran.Due), kind, ran, tellAfter)...)
	}
	return stmts
}

// runner is an agent that has schedules.
type runner interface {
	// Ran takes up what came of a run; the same twice is one.
	Ran(ctx context.Context, ran tidemark.Ran) error
}

// Reports implements room.Reporter.
func (s *Room) Reports() string { return kind }

// Report hands what came of a run to an agent that has schedules; another one is told nothing.
func (s *Room) Report(ctx context.Context, raw []byte) error {
	var ran tidemark.Ran
	if err := json.Unmarshal(raw, &ran); err != nil {
		return fmt.Errorf("decode: %w: %w", err, tidemark.ErrInvalid)
	}
	if to, ok := s.Agent.(runner); ok {
		return to.Ran(ctx, ran)
	}
	return nil
}

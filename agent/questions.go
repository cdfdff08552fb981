package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// questionTables are what the agent's conversations ask the owner about tool calls. The conversation that asks
// has the truth; this is to find it by its code.
var questionTables = []string{
	`CREATE TABLE agent_questions(agent TEXT NOT NULL, session TEXT NOT NULL, code TEXT NOT NULL, expires INTEGER NOT NULL, closed INTEGER NOT NULL DEFAULT 0,
		asked INTEGER NOT NULL, question TEXT NOT NULL, PRIMARY KEY(agent, code, session)) WITHOUT ROWID`,
}

// maxQuestions bounds what is listed.
const maxQuestions = 1000

// Question takes up what a conversation asks the owner, or that it asks no more. The same twice is one, and what is closed
// stays closed. Where the owner is not in the conversation that asks, their main session asks for it.
func (qs *questions) Question(ctx context.Context, q tidemark.Question) error {
	if q.Session.Agent() != qs.cfg.Name {
		return fmt.Errorf("question of %.80q to agent %s: %w", q.Session, qs.cfg.Name, tidemark.ErrForbidden)
	}
	if q.Code == "" || len(q.Code) > maxCode {
		return fmt.Errorf("question code %.20q: want 1 to %d letters: %w", q.Code, maxCode, tidemark.ErrInvalid)
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("question %s: %w", q.Code, err)
	}
	closed := 0
	if q.Closed {
		closed = 1
	}
	err = qs.cfg.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `INSERT INTO agent_questions(agent, session, code, expires, closed, asked, question) VALUES(?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT(agent, code, session) DO UPDATE SET closed = max(closed, excluded.closed)`,
			Args: []any{qs.cfg.Name, string(q.Session), q.Code, q.Expires.UnixMilli(), closed, q.Asked.UnixMilli(), string(raw)}},
		{SQL: `DELETE FROM agent_questions WHERE agent = ? AND expires < ?`, Args: []any{qs.cfg.Name, qs.now().Add(-keepDone).UnixMilli()}},
	})
	if err != nil {
		return fmt.Errorf("keep question %s: %w", q.Code, err)
	}
	to := qs.cfg.Sessions
	if !q.Elsewhere || q.Closed || to == nil || !q.Expires.After(qs.now()) {
		return nil
	}
	decided, err := host.Number(ctx, qs.cfg.DB, "find question", `SELECT 1 FROM agent_questions WHERE agent = ? AND code = ? AND session = ? AND closed = 1 LIMIT 1`, qs.cfg.Name, q.Code, string(q.Session))
	if err != nil || decided > 0 { // it was decided meanwhile
		return err
	}
	o, err := qs.planner.ownerAt(ctx)
	if err != nil {
		return fmt.Errorf("find the owner: %w", err)
	}
	q.To = o.To
	where := q.Where
	if where.Agent() != qs.cfg.Name || where.Channel() == tidemark.ChannelDelegate || !where.Local() { // nobody reads there
		where = qs.mainKey()
	}
	if err := to.Relay(ctx, where, q); err != nil {
		return fmt.Errorf("ask in %s: %w", where, err)
	}
	return nil
}

// maxCode bounds a code in bytes.
const maxCode = 20

// Questions lists what waits for the owner in all conversations of the agent, oldest first.
func (qs *questions) Questions(ctx context.Context) ([]tidemark.Question, error) {
	return host.Read(ctx, qs.cfg.DB, "read questions", host.JSON[tidemark.Question], `SELECT question FROM agent_questions WHERE agent = ? AND closed = 0 AND expires > ? ORDER BY asked, code LIMIT ?`,
		qs.cfg.Name, qs.now().UnixMilli(), maxQuestions)
}

// Asked reports whether a conversation asked under a code lately, also one that was decided since.
func (qs *questions) Asked(ctx context.Context, code string) (bool, error) {
	n, err := host.Number(ctx, qs.cfg.DB, "find question", `SELECT 1 FROM agent_questions WHERE agent = ? AND code = ? LIMIT 1`, qs.cfg.Name, strings.ToUpper(code))
	return n > 0, err
}

// Answer carries the owner's decision to the conversation that asked, and returns what was asked.
//
// # Errors
//
// ErrNotFound for a code that nobody waits under, ErrForbidden for anybody but the owner, ErrConflict for what is decided
// already or over.
func (qs *questions) Answer(ctx context.Context, d tidemark.Decision) (tidemark.Question, error) {
	if !d.By.Owner {
		return tidemark.Question{}, fmt.Errorf("only the owner decides about tool calls: %w", tidemark.ErrForbidden)
	}
	list, err := qs.Questions(ctx)
	if err != nil {
		return tidemark.Question{}, err
	}
	for _, q := range list {
		if q.Code != strings.ToUpper(d.Code) {
			continue
		}
		if qs.cfg.Sessions == nil {
			return q, fmt.Errorf("answer %s: this host reaches no sessions: %w", q.Code, tidemark.ErrUnavailable)
		}
		d.Code = q.Code
		err := qs.cfg.Sessions.Decide(ctx, q.Session, d)
		if err == nil || errors.Is(err, tidemark.ErrConflict) || errors.Is(err, tidemark.ErrNotFound) {
			q.Closed = true
			err = errors.Join(err, qs.Question(ctx, q))
		}
		return q, err
	}
	if asked, err := qs.Asked(ctx, d.Code); err != nil || asked {
		return tidemark.Question{}, errors.Join(err, fmt.Errorf("the call %.20q was decided already, or its time is over: %w", d.Code, tidemark.ErrConflict))
	}
	return tidemark.Question{}, fmt.Errorf("no call waits under the code %.20q: %w", d.Code, tidemark.ErrNotFound)
}

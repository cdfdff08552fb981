package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
)

// Peer answers what the objects of sessions ask through a [Remote]. It checks no token: the host
// must not let requests from outside come here.
func (a *Agent) Peer(w http.ResponseWriter, r *http.Request) {
	var q question
	var out reply
	err := host.ReadQuestion(r, &q)
	if err == nil {
		out, err = a.answer(r.Context(), strings.TrimPrefix(r.URL.Path, PeerPath), q)
	}
	out.Refusal = host.Refuse(err)
	host.WriteAnswer(w, out)
}

func (a *Agent) answer(ctx context.Context, what string, q question) (out reply, err error) {
	switch {
	case what == askPrompt:
		most := q.Most
		if most == 0 {
			most = a.cfg.Budget
		}
		out.Text, out.Mark, err = a.PromptWithin(ctx, q.Scope, q.Now, most)
	case what == askNews && q.Since != nil:
		out.News, err = a.News(ctx, q.Scope, *q.Since)
	case what == askRemember && q.Extraction != nil:
		err = a.Remember(ctx, *q.Extraction)
	case what == askReport && q.Info != nil:
		err = a.Report(ctx, *q.Info, q.Archives)
	case what == askCall && q.Call != nil:
		result := a.Call(ctx, q.Scope, *q.Call)
		out.Result = &result
	case what == askName:
		err = a.addName(ctx, q.Name)
	case what == askNames:
		out.Names, err = a.Names(ctx)
	case what == askSittings:
		err = a.Sittings(ctx, q.Sittings)
	case what == askShow:
		err = a.Snapshots(ctx, q.Nodes)
	case what == askQuestion && q.Question != nil:
		err = a.Question(ctx, *q.Question)
	case what == askAsked:
		var asked bool
		if asked, err = a.Asked(ctx, q.Name); asked {
			out.Next = 1
		}
	case what == askAnswer && q.Decision != nil:
		out.Questions = make([]tidemark.Question, 1)
		out.Questions[0], err = a.Answer(ctx, *q.Decision)
	case what == askRan && q.Ran != nil:
		err = a.Ran(ctx, *q.Ran)
	case what == askWindows:
		out.Windows, err = a.Windows(ctx, q.Windows)
	case what == askDigests && q.Digests != nil:
		out.Next, err = a.Digests(ctx, *q.Digests)
	case what == askRecall && q.Ask != nil:
		var found recall.Answer
		found, err = a.Recall(ctx, q.Scope.Key.Scope(), *q.Ask) // by the key, whatever else it says
		out.Found = &found
	default:
		err = fmt.Errorf("question %.40q: %w", what, tidemark.ErrInvalid)
	}
	return out, err
}

// addName notes that an agent of a name is there.
func (a *Agent) addName(ctx context.Context, name string) error {
	if !validName(name) {
		return fmt.Errorf("agent name %.80q: %w", name, tidemark.ErrInvalid)
	}
	return a.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO agent_names(name) VALUES(?) ON CONFLICT(name) DO NOTHING`, Args: []any{name}}})
}

// maxNames bounds the agents that are listed.
const maxNames = 1000

// Names lists the agents that told this one of themselves.
func (a *Agent) Names(ctx context.Context) ([]string, error) {
	rows, err := a.cfg.DB.Query(ctx, `SELECT name FROM agent_names ORDER BY name LIMIT ?`, maxNames)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Text(0)
	}
	return names, nil
}

// Exists reports whether a database is that of an agent: one that somebody has told something. It
// changes nothing.
func Exists(ctx context.Context, db tidemark.DB) (bool, error) {
	rows, err := db.Query(ctx, `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'agent_sessions' LIMIT 1`)
	return len(rows) > 0, err
}

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// Reconcile says who compares facts at night.
type Reconcile string

// The ways to reconcile.
const (
	ReconcileOff   Reconcile = "off"   // nobody; also the empty value
	ReconcileRules Reconcile = "rules" // memory.Sweep
	ReconcileModel Reconcile = "model" // memory.Sweep, then a model
)

// Bounds of a sweep.
const (
	sweepWindow   = 40  // new facts that are compared at a time
	sweepStanding = 120 // older ones that a model is shown beside them
	sweepRelated  = 6   // that the index of words gives for each
	sweepWindows  = 50  // in one night
	sweepCall     = 2 * time.Minute
	sweepUnread   = 3 // nights in which an answer cannot be read, after which it is not asked for again
)

// Who decided, in rows of the ledger.
const (
	byRules = "rules"
	byModel = "model"
)

// reconciles reports whether anybody compares facts.
func (a *Agent) reconciles() bool { return a.cfg.Reconcile != "" && a.cfg.Reconcile != ReconcileOff }

// reconcile compares the facts that came since the last sweep with those that stand (Annex A.3), and returns
// how many decisions that gave. Window by window, decisions and the place up to which they go are one
// transaction: a crash costs the work of one window and decides nothing twice. A model that does not answer, or
// whose answer cannot be read, holds the place, not what the rules decide: it is an [unasked] or an [unread], and the
// next sweep asks again. A window whose answer could not be read in so many nights before is passed over, so that one
// that a model cannot cope with does not hold up all others; the error says so. What is left for the next sweep for
// another reason is a [remaining]. It also returns in how many nights by now the answer on the next window could not be read.
func (a *Agent) reconcile(ctx context.Context, unreadNights int) (decided, nights int, err error) {
	if !a.reconciles() {
		return 0, 0, nil
	}
	if err := a.openLedger(ctx); err != nil {
		return 0, unreadNights, err
	}
	var passed error
	for range sweepWindows {
		upto, err := a.sweptUpto(ctx)
		if err != nil {
			return decided, unreadNights, err
		}
		fresh, err := a.factsAfter(ctx, upto, sweepWindow)
		if err != nil || len(fresh) == 0 {
			return decided, 0, cmp.Or(err, passed)
		}
		var stmts []tidemark.Stmt
		var silent *unasked
		var garbled *unread
		for _, group := range groups(fresh) {
			more, err := a.decide(ctx, group, silent == nil)
			if err != nil && !errors.As(err, &silent) && !errors.As(err, &garbled) {
				return decided, unreadNights, err
			}
			stmts = append(stmts, more...)
		}
		n, next := len(stmts), fresh[len(fresh)-1].seq
		if garbled != nil && unreadNights+1 >= sweepUnread {
			garbled.passed = true
			a.cfg.Logger.Warn("sweep by a model", "agent", a.cfg.Name, "nights", unreadNights+1, "err", garbled)
			passed, garbled, unreadNights = garbled, nil, 0
		}
		if silent != nil || garbled != nil {
			next = upto
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL:  `INSERT INTO agent_nights(agent, upto) VALUES(?, ?) ON CONFLICT(agent) DO UPDATE SET upto = excluded.upto WHERE agent_nights.upto = ?`,
			Args: []any{a.cfg.Name, next, upto}, Want: 1,
		})
		if err := a.cfg.DB.Tx(ctx, append(stmts, a.tailStmt())); errors.Is(err, tidemark.ErrConflict) {
			return decided, unreadNights, both(passed, remaining("somebody else compares facts, or a person took one back meanwhile"))
		} else if err != nil {
			return decided, unreadNights, fmt.Errorf("write ledger: %w", err)
		}
		switch decided += n; {
		case silent != nil:
			return decided, unreadNights, both(passed, silent)
		case garbled != nil:
			return decided, unreadNights + 1, both(passed, garbled)
		}
		unreadNights = 0
	}
	return decided, unreadNights, both(passed, remaining(fmt.Sprintf("%d facts are compared in one night", sweepWindows*sweepWindow)))
}

// unasked says that a model could not be asked: a key is wrong, a quota used up, nobody answers in time.
type unasked struct{ err error }

func (u *unasked) Error() string { return "no model compares facts: " + u.err.Error() }
func (u *unasked) Unwrap() error { return u.err }

// unread says that a model answered with what is no answer.
type unread struct {
	err    error
	passed bool // it is not asked again
}

func (u *unread) Error() string {
	if u.passed {
		return "for so many nights the answer of the model that compares facts could not be read that they are left as the rules compared them: " + u.err.Error()
	}
	return "the answer of the model that compares facts cannot be read: " + u.err.Error()
}
func (u *unread) Unwrap() error { return u.err }

// remaining says why facts are left that nothing keeps from being compared.
type remaining string

func (r remaining) Error() string { return "the rest is compared the next night: " + string(r) }

// both is two errors in one line.
func both(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

// tailStmt drops rows that are not in force, when many have come since.
func (a *Agent) tailStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM agent_ledger WHERE agent = ? AND seq <= (SELECT seq FROM agent_ledger WHERE agent = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)
		AND EXISTS (SELECT 1 FROM agent_ledger n WHERE n.agent = agent_ledger.agent AND n.target = agent_ledger.target AND n.seq > agent_ledger.seq)`,
		Args: []any{a.cfg.Name, a.cfg.Name, ledgerTail}}
}

// sweptUpto is the last fact that was compared.
func (a *Agent) sweptUpto(ctx context.Context) (int64, error) {
	rows, err := a.cfg.DB.Query(ctx, `SELECT upto FROM agent_nights WHERE agent = ? LIMIT 1`, a.cfg.Name)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Int(0), nil
}

// factsAfter returns facts in the order in which they came.
func (a *Agent) factsAfter(ctx context.Context, seq int64, limit int) ([]Fact, error) {
	rows, err := a.cfg.DB.Query(ctx, `SELECT `+factColumns+` FROM agent_facts f JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
		WHERE f.agent = ? AND f.seq > ? ORDER BY f.seq LIMIT ?`, a.cfg.Name, seq, limit)
	return scanFacts(rows, err)
}

func scanFacts(rows []tidemark.Row, err error) ([]Fact, error) {
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	out := make([]Fact, len(rows))
	for i, r := range rows {
		if out[i], err = scanFact(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// groups divides facts by whose they are: what one person says never decides on what another said. A peer must
// not be able to end what the owner holds true, nor the reverse.
func groups(facts []Fact) [][]Fact {
	at := map[string]int{}
	var out [][]Fact
	for _, f := range facts {
		i, ok := at[f.Peer]
		if !ok {
			i = len(out)
			at[f.Peer], out = i, append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// decide compares new facts of one group and returns the rows that follow: those of the rules beside an
// [unasked] or an [unread], too.
func (a *Agent) decide(ctx context.Context, fresh []Fact, ask bool) ([]tidemark.Stmt, error) {
	standing, err := a.related(ctx, fresh)
	if err != nil {
		return nil, err
	}
	byID := map[int64]Fact{}
	w := memory.Window{}
	for _, f := range standing {
		byID[f.seq], w.Standing = f, append(w.Standing, memory.Known{ID: f.seq, Text: f.Text})
	}
	for _, f := range fresh {
		byID[f.seq], w.Fresh = f, append(w.Fresh, memory.Known{ID: f.seq, Text: f.Text})
	}
	decisions := memory.Sweep(w.Fresh, w.Standing)
	who := map[int64]string{}
	for _, d := range decisions {
		who[d.Target] = byRules
	}
	var silent error
	if ask && a.cfg.Reconcile == ReconcileModel && a.cfg.Model != nil && len(w.Standing)+len(w.Fresh) > 1 {
		var said []memory.Decision
		if said, silent = a.askModel(ctx, w); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, d := range said {
			if who[d.Target] == "" {
				who[d.Target], decisions = byModel, append(decisions, d)
			}
		}
	}
	settled, err := a.settled(ctx, decisions)
	if err != nil {
		return nil, err
	}
	var stmts []tidemark.Stmt
	for _, d := range decisions {
		if settled[d.Target] {
			continue
		}
		sources, err := json.Marshal(append(append([]tidemark.EntryID{}, byID[d.Target].Sources...), byID[d.By].Sources...))
		if err != nil {
			return nil, err
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL: `INSERT INTO agent_ledger(agent, target, action, cause, reason, sources, who, at) SELECT ?, ?, ?, ?, ?, ?, ?, ?
				WHERE NOT EXISTS (SELECT 1 FROM agent_ledger WHERE agent = ? AND target = ?)`,
			Args: []any{a.cfg.Name, d.Target, string(d.Action), d.By, d.Reason, string(sources), who[d.Target], a.now().UnixMilli(), a.cfg.Name, d.Target}, Want: 1,
		})
	}
	return stmts, silent
}

// related returns the older facts of the same group that share words with new ones and count still, in order.
func (a *Agent) related(ctx context.Context, fresh []Fact) ([]Fact, error) {
	if err := a.fillWords(ctx); err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	var out []Fact
	for _, f := range fresh {
		terms := a.stem.Terms(f.Text)
		if len(terms) == 0 {
			continue
		}
		rows, err := a.cfg.DB.Query(ctx, `SELECT `+factColumns+` FROM agent_words w JOIN agent_facts f ON f.seq = w.rowid
			JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
			WHERE agent_words MATCH ? AND f.agent = ? AND x.peer = ? AND f.seq < ? AND NOT `+inForce+` ORDER BY bm25(agent_words), f.seq DESC LIMIT ?`,
			anyOf(terms[:min(len(terms), searchTerms)]), a.cfg.Name, f.Peer, fresh[0].seq, sweepRelated)
		facts, err := scanFacts(rows, err)
		if err != nil {
			return nil, err
		}
		for _, s := range facts {
			if !seen[s.seq] && len(out) < sweepStanding {
				seen[s.seq], out = true, append(out, s)
			}
		}
	}
	return out, nil
}

// settled returns which targets have a row already: one that is in force, or one that a person took back, which
// is the last word.
func (a *Agent) settled(ctx context.Context, decisions []memory.Decision) (map[int64]bool, error) {
	const step = 90
	out := map[int64]bool{}
	for from := 0; from < len(decisions); from += step {
		some := decisions[from:min(from+step, len(decisions))]
		args := []any{a.cfg.Name}
		for _, d := range some {
			args = append(args, d.Target)
		}
		rows, err := a.cfg.DB.Query(ctx, `SELECT DISTINCT target FROM agent_ledger WHERE agent = ? AND target IN (`+marks(len(some))+`) LIMIT ?`, append(args, step)...)
		if err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		for _, r := range rows {
			out[r.Int(0)] = true
		}
	}
	return out, nil
}

// askModel has the model compare a window. Whatever is wrong with its answer decides nothing. That it did not
// answer, for want of a key or of time, is an [unasked], and that its answer cannot be read an [unread]: the window is
// asked again.
func (a *Agent) askModel(ctx context.Context, w memory.Window) ([]memory.Decision, error) {
	limited, stop := a.cfg.Runtime.WithTimeout(ctx, sweepCall)
	defer stop()
	reply, err := tidemark.Complete(limited, a.cfg.Model, w.Ask(a.cfg.ModelName))
	var api *tidemark.APIError
	if errors.As(err, &api) && api.Type == tidemark.EmptyReply {
		return nil, &unread{err: err}
	}
	if answered := errors.As(err, &api) && (api.Class == tidemark.ClassOverflow || api.Class == tidemark.ClassRefusal); err != nil && !answered {
		return nil, &unasked{err}
	}
	var decisions []memory.Decision
	refused, garbled := 0, false
	if err == nil {
		decisions, refused, err = w.Read(reply)
		garbled = err != nil
	}
	if err != nil || refused > 0 {
		a.cfg.Logger.Warn("sweep by a model", "agent", a.cfg.Name, "facts", len(w.Fresh), "refused", refused, "err", err)
	}
	if garbled {
		return nil, &unread{err: err}
	}
	return decisions, nil
}

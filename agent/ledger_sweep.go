package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
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

// byModel is who decided, in rows of the ledger.
const byModel = "model"

// reconciles reports whether a model compares facts.
func (led *ledger) reconciles() bool { return led.cfg.Reconcile && led.cfg.Model != nil }

// reconcile compares the facts that came since the last sweep with those that stand (Annex A.3), and returns
// how many decisions that gave. Window by window, decisions and the place up to which they go are one
// transaction: a crash costs the work of one window and decides nothing twice. A model that does not answer, or
// whose answer cannot be read, holds the place, not what it says of another person's facts: it is errUnasked or
// errUnread, and the next sweep asks again. A window whose answer could not be read in so many nights before is passed over, so that one
// that a model cannot cope with does not hold up all others; the error says so. What is left for the next sweep for
// another reason is errRemaining. It also returns in how many nights by now the answer on the next window could not be read.
func (led *ledger) reconcile(ctx context.Context, unreadNights int) (decided, nights int, err error) {
	if !led.reconciles() {
		return 0, 0, nil
	}
	var passed error
	for range sweepWindows {
		upto, err := led.sweptUpto(ctx)
		if err != nil {
			return decided, unreadNights, err
		}
		fresh, err := led.factsAfter(ctx, upto, sweepWindow)
		if err != nil || len(fresh) == 0 {
			return decided, 0, cmp.Or(err, passed)
		}
		var stmts []tidemark.Stmt
		var silent, garbled *uncompared
		unread := 0 // facts
		for _, group := range groups(fresh) {
			more, err := led.decide(ctx, group)
			var why *uncompared
			if err != nil && !errors.As(err, &why) {
				return decided, unreadNights, err
			}
			if stmts = append(stmts, more...); errors.Is(err, errUnasked) {
				silent = why
				break
			} else if err != nil {
				garbled, unread = why, unread+len(group)
			}
		}
		n, next := len(stmts), fresh[len(fresh)-1].seq
		if garbled != nil && unreadNights+1 >= sweepUnread {
			garbled.what, garbled.facts = errPassed, unread
			led.cfg.Logger.Warn("sweep by a model", "agent", led.cfg.Name, "nights", unreadNights+1, "err", garbled)
			passed, garbled, unreadNights = garbled, nil, 0
		}
		if silent != nil || garbled != nil {
			next = upto
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL:  `INSERT INTO agent_nights(agent, upto) VALUES(?, ?) ON CONFLICT(agent) DO UPDATE SET upto = excluded.upto WHERE agent_nights.upto = ?`,
			Args: []any{led.cfg.Name, next, upto}, Want: 1,
		})
		if err := led.cfg.DB.Tx(ctx, append(stmts, led.tailStmt())); errors.Is(err, tidemark.ErrConflict) {
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

// uncompared says why facts are not compared yet.
type uncompared struct {
	what, err error
	facts     int // that are left for ever
}

func (u *uncompared) Error() string   { return u.what.Error() + ": " + u.err.Error() }
func (u *uncompared) Unwrap() []error { return []error{u.what, u.err} }

var (
	errUnasked = errors.New("no model compares facts") // a key is wrong, a quota used up, nobody answers in time
	errUnread  = errors.New("the answer of the model that compares facts cannot be read")
	errPassed  = errors.New("for so many nights the answer of the model that compares facts could not be read that they are left as they are")
	// errRemaining is of facts that nothing keeps from being compared.
	errRemaining = errors.New("the rest is compared the next night")
)

func remaining(why string) error { return &uncompared{what: errRemaining, err: errors.New(why)} }

// both is two errors in one line.
func both(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

// tailStmt drops rows that are not in force, when many have come since.
func (led *ledger) tailStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM agent_ledger WHERE agent = ? AND seq <= (SELECT seq FROM agent_ledger WHERE agent = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)
		AND EXISTS (SELECT 1 FROM agent_ledger n WHERE n.agent = agent_ledger.agent AND n.target = agent_ledger.target AND n.seq > agent_ledger.seq)`,
		Args: []any{led.cfg.Name, led.cfg.Name, ledgerTail}}
}

// sweptUpto is the last fact that was compared.
func (led *ledger) sweptUpto(ctx context.Context) (int64, error) {
	return host.Number(ctx, led.cfg.DB, "read the last night", `SELECT upto FROM agent_nights WHERE agent = ? LIMIT 1`, led.cfg.Name)
}

// factsAfter returns facts in the order in which they came.
func (led *ledger) factsAfter(ctx context.Context, seq int64, limit int) ([]Fact, error) {
	return host.Read(ctx, led.cfg.DB, "read facts", scanFact, `SELECT `+factColumns+` FROM agent_facts f JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
		WHERE f.agent = ? AND f.seq > ? ORDER BY f.seq LIMIT ?`, led.cfg.Name, seq, limit)
}

// groups divides facts on which nobody has decided by whose they are: what one person says never decides on what another said. A peer must
// not be able to end what the owner holds true, nor the reverse.
func groups(facts []Fact) [][]Fact {
	at := map[string]int{}
	var out [][]Fact
	for _, f := range facts {
		if f.decided {
			continue
		}
		i, ok := at[f.Peer]
		if !ok {
			i = len(out)
			at[f.Peer], out = i, append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// decide has the model compare new facts of one group and returns the rows that follow.
func (led *ledger) decide(ctx context.Context, fresh []Fact) ([]tidemark.Stmt, error) {
	older, err := led.related(ctx, fresh, sweepStanding)
	if err != nil || len(older)+len(fresh) < 2 {
		return nil, err
	}
	decisions, err := led.askModel(ctx, memory.Window{Fresh: knownOf(fresh), Standing: knownOf(older)})
	if err != nil {
		return nil, err
	}
	byID := map[int64]Fact{}
	for _, f := range append(older, fresh...) {
		byID[f.seq] = f
	}
	settled, err := led.settled(ctx, decisions)
	if err != nil {
		return nil, err
	}
	var stmts []tidemark.Stmt
	for _, d := range decisions {
		if settled[d.Target] {
			continue
		}
		stmt, err := led.ledgerStmt(d.Action, byID[d.Target], byID[d.By], "said at night, of facts that were compared")
		if err != nil {
			return nil, err
		}
		stmt.Want = 1
		stmts = append(stmts, stmt)
	}
	return stmts, nil
}

// ledgerStmt is a row of the ledger, unless there is one of that fact already. A newer fact that is not stored yet has
// no number: it is the last one.
func (led *ledger) ledgerStmt(action memory.Action, old, by Fact, reason string) (tidemark.Stmt, error) {
	sources, err := json.Marshal(append(append([]tidemark.EntryID{}, old.Sources...), by.Sources...))
	cause, args := `?`, []any{by.seq}
	if by.seq == 0 {
		cause, args = `(SELECT seq FROM agent_facts WHERE agent = ? AND extraction = ? AND text = ?)`, []any{led.cfg.Name, by.Extraction, by.Text}
	}
	return tidemark.Stmt{
		SQL: `INSERT INTO agent_ledger(agent, target, action, reason, sources, who, at, cause) SELECT ?, ?, ?, ?, ?, ?, ?, ` + cause +
			` WHERE NOT EXISTS (SELECT 1 FROM agent_ledger WHERE agent = ? AND target = ?)`,
		Args: slices.Concat([]any{led.cfg.Name, old.seq, string(action), reason, string(sources), byModel, led.now().UnixMilli()}, args, []any{led.cfg.Name, old.seq}),
	}, err
}

// decidedStmts are the rows that follow from what a model said of new facts when it drew them. A target must be a fact
// of the same person that was there before.
func (led *ledger) decidedStmts(ctx context.Context, x tidemark.Extraction, facts []tidemark.Fact) ([]tidemark.Stmt, error) {
	if !led.reconciles() {
		return nil, nil
	}
	var stmts []tidemark.Stmt
	for _, f := range facts {
		if f.Target == 0 {
			continue
		}
		old, err := host.Read(ctx, led.cfg.DB, "read facts", scanFact, `SELECT `+factColumns+` FROM agent_facts f JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
			WHERE f.agent = ? AND f.seq = ? AND x.peer = ? LIMIT 1`, led.cfg.Name, f.Target, peerOf(x.Scope))
		if err != nil {
			return nil, err
		}
		if action := memory.Action(f.Action); len(old) == 1 && (action == memory.Update || action == memory.Delete) {
			stmt, err := led.ledgerStmt(action, old[0], Fact{Text: f.Text, Extraction: x.ID, Sources: f.Sources}, "said with the newer fact, when it was drawn")
			if err != nil {
				return nil, err
			}
			stmts = append(stmts, stmt)
		}
	}
	return stmts, nil
}

// near returns the facts of a scope that are near a text, line by line, and count still.
func (led *ledger) near(ctx context.Context, scope tidemark.Scope, text string) ([]memory.Known, error) {
	if !led.reconciles() || !scope.Owner && scope.Peer == "" {
		return nil, nil
	}
	var lines []Fact
	for l := range strings.Lines(text) {
		lines = append(lines, Fact{Text: l, Peer: peerOf(scope), seq: maxSeq})
	}
	facts, err := led.related(ctx, lines[max(0, len(lines)-sweepWindow):], sweepWindow)
	return knownOf(facts), err
}

// maxSeq is above the number of any fact.
const maxSeq = 1 << 52

func knownOf(facts []Fact) []memory.Known {
	out := make([]memory.Known, len(facts))
	for i, f := range facts {
		out[i] = memory.Known{ID: f.seq, Text: f.Text}
	}
	return out
}

// related returns at most so many older facts of the same group that share words with new ones and count still.
func (led *ledger) related(ctx context.Context, fresh []Fact, most int) ([]Fact, error) {
	seen := map[int64]bool{}
	var out []Fact
	for _, f := range fresh {
		terms := led.stem.Terms(f.Text)
		if len(terms) == 0 {
			continue
		}
		facts, err := host.Read(ctx, led.cfg.DB, "read facts", scanFact, `SELECT `+factColumns+` FROM agent_words w JOIN agent_facts f ON f.seq = w.rowid
			JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
			WHERE agent_words MATCH ? AND f.agent = ? AND x.peer = ? AND f.seq < ? AND NOT `+inForce+` ORDER BY bm25(agent_words), f.seq DESC LIMIT ?`,
			anyOf(terms[:min(len(terms), searchTerms)]), led.cfg.Name, f.Peer, fresh[0].seq, sweepRelated)
		if err != nil {
			return nil, err
		}
		for _, s := range facts {
			if !seen[s.seq] && len(out) < most {
				seen[s.seq], out = true, append(out, s)
			}
		}
	}
	return out, nil
}

// settled returns which targets have a row already: one that is in force, or one that a person took back, which
// is the last word.
func (led *ledger) settled(ctx context.Context, decisions []memory.Decision) (map[int64]bool, error) {
	const step = 90
	out := map[int64]bool{}
	for from := 0; from < len(decisions); from += step {
		some := decisions[from:min(from+step, len(decisions))]
		args := []any{led.cfg.Name}
		for _, d := range some {
			args = append(args, d.Target)
		}
		targets, err := host.Read(ctx, led.cfg.DB, "read ledger", host.Integer, `SELECT DISTINCT target FROM agent_ledger WHERE agent = ? AND target IN (`+host.Marks(len(some))+`) LIMIT ?`, append(args, step)...)
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			out[t] = true
		}
	}
	return out, nil
}

// askModel has the model compare a window. Whatever is wrong with its answer decides nothing. That it did not
// answer, for want of a key or of time, is errUnasked, and that its answer cannot be read errUnread: the window is
// asked again.
func (led *ledger) askModel(ctx context.Context, w memory.Window) ([]memory.Decision, error) {
	limited, stop := led.cfg.Runtime.WithTimeout(ctx, sweepCall)
	defer stop()
	reply, err := tidemark.Complete(limited, led.cfg.Model, w.Ask(led.cfg.ModelName))
	var api *tidemark.APIError
	if errors.As(err, &api) && api.Type == tidemark.EmptyReply {
		return nil, &uncompared{what: errUnread, err: err}
	}
	if answered := errors.As(err, &api) && (api.Class == tidemark.ClassOverflow || api.Class == tidemark.ClassRefusal); err != nil && !answered {
		return nil, &uncompared{what: errUnasked, err: err}
	}
	var decisions []memory.Decision
	refused, garbled := 0, false
	if err == nil {
		decisions, refused, err = w.Read(reply)
		garbled = err != nil
	}
	if err != nil || refused > 0 {
		led.cfg.Logger.Warn("sweep by a model", "agent", led.cfg.Name, "facts", len(w.Fresh), "refused", refused, "err", err)
	}
	if garbled {
		return nil, &uncompared{what: errUnread, err: err}
	}
	return decisions, nil
}

package room

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
)

// List is the rooms of a conversation. Each of its methods asks those that can answer, by type assertion; without one it
// says what is so where there is none. The receiver is a pointer, so that a method which is bound while rooms are made sees those
// that are made later.
type List []any

// Find returns the first room that is of a type, or has what an interface says.
func Find[T any](l List) (found T, ok bool) {
	for _, r := range l {
		if t, ok := r.(T); ok {
			return t, true
		}
	}
	return found, false
}

// all returns the rooms that have what an interface says.
func all[T any](l List) (out []T) {
	for _, r := range l {
		if t, ok := r.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Apart refuses rooms of which two, or one and the core, give one name to a table, to what is due or to what the agent is
// told: one of them would never be called. core, kinds and reports are the names of the core.
func (l *List) Apart(core Tables, kinds, reports []string) error {
	taken := map[string]bool{}
	claim := func(r any, what string, names ...string) error {
		for _, name := range names {
			if taken[what+name] {
				return fmt.Errorf("%T: %s %q is taken; begin it with the name of the room: %w", r, what, name, tidemark.ErrConflict)
			}
			taken[what+name] = true
		}
		return nil
	}
	err := errors.Join(claim(core, "table", core.Names()...), claim(core, "kind of due work", kinds...), claim(core, "kind of report", reports...))
	for _, r := range *l {
		if k, ok := r.(Tabler); ok {
			err = errors.Join(err, claim(r, "table", k.Tables().Names()...), claim(r, "space", k.Tables().Space))
		}
		if w, ok := r.(Waker); ok {
			err = errors.Join(err, claim(r, "kind of due work", w.Wakes()))
		}
		if m, ok := r.(Reporter); ok {
			err = errors.Join(err, claim(r, "kind of report", m.Reports()))
		}
	}
	return err
}

// Open has rooms do what they do when a session is opened.
func (l *List) Open(ctx context.Context) error {
	for _, o := range all[Opener](*l) {
		if err := o.Open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Closed has rooms do what a reset or an import ends.
func (l *List) Closed(ctx context.Context) {
	for _, c := range all[Closer](*l) {
		c.Closed(ctx)
	}
}

// Wake has the room that a kind of work is of do it; ok is false for what is of none.
func (l *List) Wake(ctx context.Context, kind string) (ok bool, err error) {
	for _, w := range all[Waker](*l) {
		if w.Wakes() == kind {
			return true, w.Wake(ctx)
		}
	}
	return false, nil
}

// Report has the room that a kind of report is of tell the agent.
func (l *List) Report(ctx context.Context, kind string, raw []byte) error {
	for _, r := range all[Reporter](*l) {
		if r.Reports() == kind {
			return r.Report(ctx, raw)
		}
	}
	return nil // of a room that is not there any more
}

// ToldStmts are what rooms write with the end of a report.
func (l *List) ToldStmts() (stmts []tidemark.Stmt) {
	for _, t := range all[Informer](*l) {
		stmts = append(stmts, t.ToldStmts()...)
	}
	return stmts
}

// Told lets rooms know that the agent has what they reported.
func (l *List) Told(ctx context.Context) {
	for _, t := range all[Informer](*l) {
		t.Told(ctx)
	}
}

// Answer has the room that a word is of answer it; ok is false for a word of none.
func (l *List) Answer(ctx context.Context, q Asked) (answer string, ok bool, err error) {
	for _, a := range all[Answerer](*l) {
		if slices.Contains(a.Answers(), q.Word) {
			answer, err = a.Answer(ctx, q)
			return answer, true, err
		}
	}
	return "", false, nil
}

// Commander returns the room that carries out a command at once, nil for none.
func (l *List) Commander(word string) Commander {
	for _, c := range all[Commander](*l) {
		if slices.Contains(c.Commands(), word) {
			return c
		}
	}
	return nil
}

// Tools lists the tools of rooms; pointing says that what leaves the view leaves pointers.
func (l *List) Tools(pointing bool) (out []tidemark.Tool) {
	for _, t := range all[Tools](*l) {
		out = append(out, t.Tools(pointing)...)
	}
	return out
}

// Brief is what rooms say to the model behind the rest of what it is told of itself.
func (l *List) Brief() (out string) {
	for _, b := range all[Briefer](*l) {
		if text := b.Brief(); text != "" {
			out += "\n\n" + text
		}
	}
	return out
}

// EndStmts are what rooms write with the end of a run.
func (l *List) EndStmts() (stmts []tidemark.Stmt) {
	for _, e := range all[Ender](*l) {
		stmts = append(stmts, e.EndStmts()...)
	}
	return stmts
}

// OutcomeStmts write down what came of a run, in the transaction that ends it.
func (l *List) OutcomeStmts(ctx context.Context, t Turn, out tidemark.Outcome) (stmts []tidemark.Stmt) {
	for _, c := range all[Concluder](*l) {
		stmts = append(stmts, c.OutcomeStmts(ctx, t, out)...)
	}
	return stmts
}

// PruneStmts let go of what is old, in the transaction of a reset.
func (l *List) PruneStmts() (stmts []tidemark.Stmt) {
	for _, p := range all[Pruner](*l) {
		stmts = append(stmts, p.PruneStmts()...)
	}
	return stmts
}

// Pinned returns the entries of a log, and of what it continues, that stay in view.
func (l *List) Pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error) {
	if r, ok := Find[Holder](*l); ok {
		return r.Pinned(ctx, log)
	}
	return nil, nil
}

// Working returns what the conversation works on, as its agent or a person keeps it; the zero Task when neither does.
func (l *List) Working(ctx context.Context) (recall.Task, error) {
	if r, ok := Find[Marker](*l); ok {
		return r.Working(ctx)
	}
	return recall.Task{}, nil
}

// Marks returns what is known of some entries; those of which nothing is are absent.
func (l *List) Marks(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]Mark, error) {
	if r, ok := Find[Marker](*l); ok {
		return r.Marks(ctx, ids)
	}
	return nil, nil
}

// Compacted tells a room of a compaction that holds.
func (l *List) Compacted(ctx context.Context, log string, edits []tidemark.Edit) {
	if c, ok := Find[Compactor](*l); ok {
		c.Compacted(ctx, log, edits)
	}
}

// Tune returns strategies as a room has them be.
func (l *List) Tune(ctx context.Context, list []compaction.Strategy) ([]compaction.Strategy, error) {
	if c, ok := Find[Compactor](*l); ok {
		return c.Tune(ctx, list)
	}
	return list, nil
}

// Plan is [compaction.Plan] with what a room knows of the log, where a strategy asks for it.
func (l *List) Plan(ctx context.Context, log string, list []compaction.Strategy, v compaction.View, b compaction.Budget, force bool) (act compaction.Act, err error) {
	plan := func(v compaction.View) (err error) {
		act, err = compaction.Plan(list, v, b, force)
		return err
	}
	if d, ok := Find[Divider](*l); ok {
		err = d.Divide(ctx, log, v, force, plan)
	} else {
		err = plan(v)
	}
	return act, err
}

// Unsound returns why a self-check has just taken back the same act, "" for one that is new.
func (l *List) Unsound(ctx context.Context, edits []tidemark.Edit) (why string, err error) {
	if c, ok := Find[Checker](*l); ok {
		return c.Lifted(ctx, edits)
	}
	return "", nil
}

// Offered returns a tool of others as the model was told of it last.
func (l *List) Offered(name string) (t tidemark.Tool, ok bool) {
	if o, ok := Find[Offerer](*l); ok {
		return o.Offered(name)
	}
	return t, false
}

// Changed reports whether a tool of others is another than the one that the model was told of.
func (l *List) Changed(ctx context.Context, name string) bool {
	o, ok := Find[Offerer](*l)
	return ok && o.Changed(ctx, name)
}

// Near asks the room that finds by more than words; nothing is near where there is none.
func (l *List) Near(ctx context.Context, query string, in *host.Lineage) (near map[int64]recall.Stand, told string) {
	if r, ok := Find[Finder](*l); ok {
		return r.Near(ctx, query, in)
	}
	return nil, ""
}

// Texts gives those of some messages to use that recall finds, each with its text or the beginning of a long one.
func (l *List) Texts(ctx context.Context, seqs []int64, use func(e tidemark.Entry, text string)) error {
	if r, ok := Find[Indexer](*l); ok {
		return r.Texts(ctx, seqs, use)
	}
	return nil
}

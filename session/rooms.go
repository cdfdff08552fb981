package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Room returns the first room of a session that is of a type, or has what an interface says.
func Room[T any](s *Session) (found T, ok bool) {
	for _, r := range s.rooms {
		if t, ok := r.(T); ok {
			return t, true
		}
	}
	return found, false
}

// ports is what rooms may use of the session.
func (s *Session) ports() room.Ports {
	return room.Ports{
		Self: room.Self{Key: s.Key, DB: s.DB, Made: &s.made, Runtime: s.Runtime, Life: s.life, Logger: s.Logger, Warn: s.warn, MayChange: s.mayChange,
			Zone: func() *time.Location { return s.settings().Zone },
			Observe: func(kind, how string, count int) {
				if s.Config.Observe != nil {
					s.Config.Observe(Notice{Type: NoticeRoom, Room: kind, Text: how, Count: count})
				}
			}},
		History: room.History{Log: s.log, Current: s.Reader.Current, Segments: s.lineage.Segments, Reaches: s.lineage.Reaches, Logs: s.Reader.Logs,
			Entry: s.Reader.Message, Messages: s.Reader.Messages, Words: s.Reader.Words, Texts: s.findable, Info: s.Info, Counts: s.counts, MarksOf: s.marksOf,
			Settled: func(ctx context.Context) (int64, error) { return leaver(s).Settled(ctx) },
			Announce: func(ctx context.Context, log string, e tidemark.Event, stmts ...tidemark.Stmt) error {
				if err := s.DB.Tx(ctx, append([]tidemark.Stmt{s.eventStmt(log, e)}, stmts...)); err != nil {
					return err
				}
				s.hub.send(Notice{Type: NoticeEvent, Event: &e})
				return nil
			}, Note: s.putNote},
		Work: room.Work{Due: s.dueStmt, Undue: s.undueStmt, Alarm: s.setAlarm},
		Mail: room.Mail{Agent: s.Agent, Tell: s.report,
			Outbox: func(id, kind string, payload any, after time.Duration) []tidemark.Stmt {
				return []tidemark.Stmt{s.outboxStmt(id, kind, payload), s.dueStmt(dueOutbox, s.Runtime.Now().Add(after), "")}
			}},
		View: room.View{EvictedAt: s.Reader.EvictedAt, Strategies: s.strategies, Budget: s.Budget, NoteRoom: s.noteRoom,
			Seen: func(ctx context.Context, log string) (room.Seen, error) {
				v, err := s.view(ctx, log)
				return v.Seen, err
			}},
		Voice: room.Voice{Event: s.eventStmt,
			Happened: func(run string, e tidemark.Event) { s.hub.send(Notice{Type: NoticeEvent, Run: run, Event: &e}) },
			Rests: func(run string, list []tidemark.Question, text string) {
				s.hub.send(Notice{Type: NoticeApproval, Run: run, Approvals: list, Text: text})
			}},
		Channels: room.Channels{
			Lines: func(ctx context.Context, log string, to []tidemark.Origin, text string) ([]tidemark.Stmt, error) {
				return s.teller().Lines(ctx, log, to, text)
			},
			Say: func(ctx context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error {
				return s.teller().Say(ctx, id, to, text, e)
			}},
		Turns: room.Turns{Active: s.activeRun, Usage: s.usageOf, GoOn: s.goOnStmts, Resume: func() { s.Runtime.Go(s.goOn) }, Hold: s.lend},
		Lease: room.Lease{Owner: s.owner, Bound: s.ownerBound, Held: func() tidemark.Stmt {
			return tidemark.Stmt{SQL: `UPDATE heads SET lives = lives WHERE key = ? AND lives = ?`, Args: []any{string(s.Key), s.number}, Want: 1}
		}},
		Past: s.past(), Blocks: room.Blocks{MaxBlock: blocks.MaxBytes, Export: s.blocks.Export, Import: s.blocks.Import, Whole: s.blocks.Imported,
			Keep: func(ctx context.Context, m tidemark.Message) (tidemark.Message, []tidemark.Stmt, error) {
				return s.blocks.Compress(ctx, m, s.settings().ArtifactChars)
			}}, Toolbox: s.Tools,
		Finding: room.Finding{Stemmer: s.Stemmer, Lineage: s.lineage.For, Task: s.task, Near: s.nearest, Recalled: s.noteRecall, Stored: s.blocks.Stored,
			Far: func() (room.Reader, bool) { return Room[room.Reader](s) }, Episodes: func() (room.EpisodeReader, bool) { return Room[room.EpisodeReader](s) }, Gate: func() memory.Gate { return s.settings().Gate }},
		Records:   s.records(),
		Checks:    s.checks(),
		Queue:     s.queue(),
		Allowance: room.Allowance{Limits: s.setLimits, Offered: s.tools, Account: s.account, Spend: callSpends},
	}
}

// apart refuses rooms of which two, or one and the core, give one name to a table, to what is due or to what the agent is
// told: one of them would never be called.
func (s *Session) apart() error {
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
	core := room.Tables{Steps: tables}
	for _, t := range coreTables {
		core.Steps = append(core.Steps[:len(core.Steps):len(core.Steps)], t.Steps...)
	}
	err := errors.Join(claim(s, "table", core.Names()...), claim(s, "kind of due work", coreKinds...), claim(s, "kind of report", coreReports...))
	for _, r := range s.rooms {
		if k, ok := r.(room.Tabler); ok {
			err = errors.Join(err, claim(r, "table", k.Tables().Names()...), claim(r, "space", k.Tables().Space))
		}
		if w, ok := r.(room.Waker); ok {
			err = errors.Join(err, claim(r, "kind of due work", w.Wakes()))
		}
		if m, ok := r.(room.Reporter); ok {
			err = errors.Join(err, claim(r, "kind of report", m.Reports()))
		}
	}
	return err
}

// putNote appends a message to a log in which no turn is in work, with an event behind it and what else is written first.
func (s *Session) putNote(ctx context.Context, log string, e tidemark.Entry, m tidemark.Message, ev tidemark.Event, first ...tidemark.Stmt) error {
	stmts, err := s.noteStmts(ctx, log, &e, m)
	if err != nil {
		return err
	}
	if err := s.DB.Tx(ctx, append(append(first, stmts...), s.eventStmt(log, ev))); err != nil {
		return err
	}
	s.hub.send(Notice{Type: NoticeEvent, Event: &ev})
	s.tellSoon()
	return nil
}

// noteStmts append a message at the end of a log where no turn is in work, and no other message came meanwhile.
func (s *Session) noteStmts(ctx context.Context, log string, e *tidemark.Entry, m tidemark.Message) ([]tidemark.Stmt, error) {
	tail, err := s.log.Tail(ctx, log, 0, 1)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	if len(tail) > 0 {
		last = tail[0].Seq
	}
	prev, err := s.log.Chain(ctx, log)
	if err != nil {
		return nil, err
	}
	e.Tokens = tidemark.Estimate(m)
	idle := tidemark.Stmt{SQL: `UPDATE heads SET active = ?, messages = messages + 1, context = context + ? WHERE key = ? AND log = ?
			AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))
			AND NOT EXISTS (SELECT 1 FROM entries WHERE log = ? AND kind = 'message' AND seq > ?)`,
		Args: []any{e.At.UnixMilli(), int64(e.Tokens), string(s.Key), log, string(s.Key), log, last}, Want: 1}
	stmts, err := s.entryStmts(ctx, log, e, m, prev)
	return append([]tidemark.Stmt{idle}, stmts...), err
}

// toldStmts are what rooms write with the end of a report, and toldRooms lets them know of it.
func (s *Session) toldStmts() (stmts []tidemark.Stmt) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Informer); ok {
			stmts = append(stmts, t.ToldStmts()...)
		}
	}
	return stmts
}

func (s *Session) toldRooms(ctx context.Context) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Informer); ok {
			t.Told(ctx)
		}
	}
}

// openRooms has rooms do what they do when a session is opened.
func (s *Session) openRooms(ctx context.Context) error {
	for _, r := range s.rooms {
		if o, ok := r.(room.Opener); ok {
			if err := o.Open(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// wakeRooms has the room that a kind of work is of do it; what is of none is not due any more.
func (s *Session) wakeRooms(ctx context.Context, kind string) error {
	for _, r := range s.rooms {
		if w, ok := r.(room.Waker); ok && w.Wakes() == kind {
			return w.Wake(ctx)
		}
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(kind)})
}

// answerRooms has the room that a word is of answer it; ok is false for a word of none.
func (s *Session) answerRooms(ctx context.Context, r *run, word, text string, owner bool) (answer string, ok bool, err error) {
	for _, x := range s.rooms {
		a, answers := x.(room.Answerer)
		if !answers || !slices.Contains(a.Answers(), word) {
			continue
		}
		q := room.Asked{Word: word, Text: text, Owner: owner}
		if r.command != nil {
			q.ID, q.At = r.command.ID, r.command.At
		}
		answer, err := a.Answer(ctx, q)
		if errors.Is(err, tidemark.ErrForbidden) {
			return s.notYours(), true, nil
		}
		return answer, true, err
	}
	return "", false, nil
}

// roomTools lists the tools of rooms.
func (s *Session) roomTools() (out []tidemark.Tool) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Tools); ok {
			out = append(out, t.Tools(s.pointing())...)
		}
	}
	return out
}

// turn is a turn as rooms have it.
func (r *run) turn() room.Turn {
	return room.Turn{Run: r.ID, Log: r.Log, Round: r.Round, Origins: r.origins}
}

// callOf is a call as rooms have it.
func (s *Session) callOf(r *run, c call) room.Call {
	run, owner, log := r.ID, r.owner, r.Log
	return room.Call{Turn: r.turn(), N: c.N, ID: c.ID, Tool: c.Block.Name, Input: c.Block.Input, Fence: func() tidemark.Stmt {
		return tidemark.Stmt{SQL: `UPDATE runs SET updated = ? WHERE id = ? AND owner = ? AND state = 'tools' AND log = ?`, Args: []any{s.Runtime.Now().UnixMilli(), run, owner, log}, Want: 1}
	}, May: func(ctx context.Context, search bool) error { return s.mayRecall(ctx, r, c, !search) },
		Begun: func(ctx context.Context) (int64, error) { return s.turnFrom(ctx, r) }}
}

// cancelCalls has a room end what calls of a run began that have no result, before the run ends itself: whichever life ends
// it comes by here.
func (s *Session) cancelCalls(ctx context.Context, r *run, calls []call) {
	in, ok := Room[room.Canceller](s)
	started := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.State != callStarted })
	if !ok || len(started) == 0 {
		return
	}
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM runs WHERE id = ? AND owner = ? AND state = 'tools' AND log = ? LIMIT 1`, r.ID, r.owner, r.Log)
	if err != nil || len(rows) == 0 {
		return // another life has the run, and waits for them
	}
	for _, c := range started {
		in.Cancel(ctx, s.callOf(r, c))
	}
}

// briefs is what rooms say to the model behind the rest of what it is told of itself.
func (s *Session) briefs() (out string) {
	for _, r := range s.rooms {
		if b, ok := r.(room.Briefer); ok && b.Brief() != "" {
			out += "\n\n" + b.Brief()
		}
	}
	return out
}

// pinned returns the entries of a log, and of what it continues, that stay in view.
func (s *Session) pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error) {
	if r, ok := Room[room.Holder](s); ok {
		return r.Pinned(ctx, log)
	}
	return nil, nil
}

// task returns what the conversation works on, as its agent or a person keeps it; the zero Task when neither does.
func (s *Session) task(ctx context.Context) (recall.Task, error) {
	if r, ok := Room[room.Marker](s); ok {
		return r.Working(ctx)
	}
	return recall.Task{}, nil
}

// marksOf returns what is known of some entries; those of which nothing is are absent.
func (s *Session) marksOf(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) {
	if r, ok := Room[room.Marker](s); ok {
		return r.Marks(ctx, ids)
	}
	return nil, nil
}

// baseArchived is how far the archives of what a log continues as a branch held its history when it began.
func (s *Session) baseArchived(ctx context.Context, log string) (int64, error) {
	if b, ok := Room[room.Brancher](s); ok {
		return b.BaseArchived(ctx, log)
	}
	return 0, nil
}

// closeRooms has rooms do what a reset or an import ends.
func (s *Session) closeRooms(ctx context.Context) {
	for _, r := range s.rooms {
		if c, ok := r.(room.Closer); ok {
			c.Closed(ctx)
		}
	}
}

// noTeller is the teller of a conversation without one.
type noTeller struct{}

func (noTeller) Dispatch()                                         {}
func (noTeller) Typing(context.Context) func(to []tidemark.Origin) { return func([]tidemark.Origin) {} }
func (noTeller) Unsent(context.Context) (int64, error)             { return 0, nil }
func (noTeller) Lines(context.Context, string, []tidemark.Origin, string, ...string) ([]tidemark.Stmt, error) {
	return nil, nil
}
func (noTeller) Say(context.Context, string, *tidemark.Address, string, *tidemark.Event) error {
	return fmt.Errorf("this conversation has no channels: %w", tidemark.ErrNotFound)
}

// teller is the room that tells people over channels.
func (s *Session) teller() room.Teller {
	if t, ok := Room[room.Teller](s); ok {
		return t
	}
	return noTeller{}
}

// wroteStmts are what the arrival of an input over a channel changes.
func (s *Session) wroteStmts(ctx context.Context, in Input) ([]tidemark.Stmt, error) {
	a, ok := Room[room.Addressee](s)
	if !ok || in.Origin.To == nil {
		return nil, nil
	}
	if in.Kind != InputMessage {
		in.Origin.Message = ""
	}
	return a.Wrote(ctx, in.Origin, room.Searchable(in.Message))
}

// quoting puts before what a person wrote a line that says which message they answered.
func (s *Session) quoting(ctx context.Context, in Input) (tidemark.Message, error) {
	a, ok := Room[room.Addressee](s)
	if !ok || in.Kind != InputMessage {
		return in.Message, nil
	}
	line, err := a.Quoted(ctx, in.Quoted)
	return tidemark.Message{Role: in.Message.Role, Content: append([]tidemark.Block{tidemark.Text(line)}, in.Message.Content...)}, err
}

// outcomeStmts write down what came of a run, in the transaction that ends it.
func (s *Session) outcomeStmts(ctx context.Context, r *run, out tidemark.Outcome) (stmts []tidemark.Stmt) {
	for _, x := range s.rooms {
		if c, ok := x.(room.Concluder); ok {
			stmts = append(stmts, c.OutcomeStmts(ctx, room.Turn{Run: r.ID, Log: r.Log, Round: r.Round, Origins: r.origins}, out)...)
		}
	}
	return stmts
}

// pruneStmts let go of what is old, in the transaction of a reset.
func (s *Session) pruneStmts() (stmts []tidemark.Stmt) {
	for _, x := range s.rooms {
		if p, ok := x.(room.Pruner); ok {
			stmts = append(stmts, p.PruneStmts()...)
		}
	}
	return stmts
}

// tellRooms tells a room of a compaction that holds.
func (s *Session) tellRooms(ctx context.Context, p *plan) {
	if c, ok := Room[room.Compactor](s); ok && p.overlay != "" {
		c.Compacted(ctx, p.Log, p.edits)
	}
}

// tuned returns strategies as a room has them be.
func (s *Session) tuned(ctx context.Context, list []compaction.Strategy) ([]compaction.Strategy, error) {
	if c, ok := Room[room.Compactor](s); ok {
		return c.Tune(ctx, list)
	}
	return list, nil
}

// frozenTool returns a tool of others as the model was told of it last.
func (s *Session) frozenTool(name string) (t tidemark.Tool, ok bool) {
	if o, ok := Room[room.Offerer](s); ok {
		return o.Offered(name)
	}
	return t, false
}

// anew reports whether a tool of others is another than the one that the model was told of.
func (s *Session) anew(ctx context.Context, name string) bool {
	o, ok := Room[room.Offerer](s)
	return ok && o.Changed(ctx, name)
}

// answerFirst has a room answer the calls of its tool, and returns the room, nil where there are none. A life that takes
// the turn up later answers them the same.
func (s *Session) answerFirst(ctx context.Context, r *run, calls []call) (room.CallAnswerer, error) {
	a, ok := Room[room.CallAnswerer](s)
	if !ok {
		return nil, nil
	}
	var of []int
	var ids []string
	for i, name := 0, a.Answers(); i < len(calls) && name != ""; i++ {
		if calls[i].Block.Name == name {
			of, ids = append(of, i), append(ids, calls[i].ID)
		}
	}
	if len(of) == 0 {
		return nil, nil
	}
	told, err := a.Answer(ctx, r.Log, ids)
	if err != nil {
		return nil, err
	}
	for n, i := range of {
		calls[i].told = told[n]
	}
	return a, nil
}

// planned is [compaction.Plan] with what a room knows of the log, where a strategy asks for it.
func (s *Session) planned(ctx context.Context, log string, list []compaction.Strategy, v compaction.View, force bool) (act compaction.Act, err error) {
	plan := func(v compaction.View) (err error) {
		act, err = compaction.Plan(list, v, s.Budget(), force)
		return err
	}
	if d, ok := Room[room.Divider](s); ok {
		err = d.Divide(ctx, log, v, force, plan)
	} else {
		err = plan(v)
	}
	return act, err
}

// leftBy has a room say what a plan does to episodes, by the measure of the view before.
func (s *Session) leftBy(ctx context.Context, p *plan, v View, after compaction.View, done *Compacted) error {
	d, ok := Room[room.Divider](s)
	if !ok {
		return nil
	}
	after.Size = v.measure(v.Fixed + after.Tokens())
	left, err := d.Left(ctx, p.Log, p.Act.By, v.View, after)
	if err == nil && left != nil {
		done.After, done.Episodes = after.Size, left
	}
	return err
}

// nearest asks the room that finds by more than words; none when there is none.
func (s *Session) nearest(ctx context.Context, query string, in *host.Lineage) (near map[int64]recall.Stand, told string) {
	if r, ok := Room[room.Finder](s); ok {
		return r.Near(ctx, query, in)
	}
	return nil, ""
}

// advised adds to what is pushed what the model is told of a context that fills up. It is not stored, and what it
// takes is counted where there is room for it only: a full window has the word all the same.
func (s *Session) advised(r *run, v View) View {
	text := r.over
	if p, ok := Room[room.Pager](s); ok {
		text = strings.TrimSpace(p.Advice(v.View) + "\n" + text)
	}
	if r.untidy != "" {
		text, r.untidy = strings.TrimSpace(text+"\n"+r.untidy), ""
	}
	if text == "" {
		return v
	}
	v.Size += tidemark.EstimateText(text)
	if v.Pack != "" {
		text = v.Pack + "\n\n" + text
	}
	v.Pack = text
	return v
}

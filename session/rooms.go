package session

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/summary"
)

// Room returns the first room of a session that is of a type, or has what an interface says.
func Room[T any](s *Session) (found T, ok bool) { return room.Find[T](s.rooms) }

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
			Entry: s.Reader.Message, Messages: s.Reader.Messages, Words: s.Reader.Words, Texts: s.rooms.Texts, Info: s.Info, Counts: s.counts, MarksOf: s.rooms.Marks,
			Settled: func(ctx context.Context) (int64, error) { return s.rooms.Leaver().Settled(ctx) },
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
		View: room.View{EvictedAt: s.Reader.EvictedAt, Strategies: s.strategies, Budget: s.Budget, Windows: &s.windows,
			NoteRoom: func() (rest, all tidemark.Tokens) { return room.PackShares(s.settings().PackTokens) },
			PackTokens: func() tidemark.Tokens {
				if !s.pointing() {
					return 0
				}
				return max(s.settings().PackTokens, 0)
			},
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
				return s.rooms.Teller().Lines(ctx, log, to, text)
			},
			Say: func(ctx context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error {
				return s.rooms.Teller().Say(ctx, id, to, text, e)
			}},
		Turns: room.Turns{Active: s.activeRun, Usage: s.usageOf, GoOn: s.goOnStmts, Resume: func() { s.Runtime.Go(s.goOn) }, Hold: s.lend},
		Lease: room.Lease{Owner: s.owner, Bound: s.ownerBound, Held: func() tidemark.Stmt {
			return tidemark.Stmt{SQL: `UPDATE heads SET lives = lives WHERE key = ? AND lives = ?`, Args: []any{string(s.Key), s.number}, Want: 1}
		}},
		Past: s.past(), Blocks: room.Blocks{MaxBlock: blocks.MaxBytes, Export: s.blocks.Export, Import: s.blocks.Import, Whole: s.blocks.Imported,
			Keep: func(ctx context.Context, m tidemark.Message) (tidemark.Message, []tidemark.Stmt, error) {
				return s.blocks.Compress(ctx, m, s.settings().ArtifactChars)
			}}, Toolbox: s.Tools,
		Finding: room.Finding{Stemmer: s.Stemmer, Lineage: s.lineage.For, Task: s.rooms.Working, Near: s.rooms.Near, Recalled: s.noteRecall, Stored: s.blocks.Stored,
			Far: func() (room.Reader, bool) { return room.Find[room.Reader](s.rooms) }, Episodes: func() (room.EpisodeReader, bool) { return room.Find[room.EpisodeReader](s.rooms) }, Gate: func() memory.Gate { return s.settings().Gate }},
		Records:   s.records(),
		Checks:    s.checks(),
		Queue:     s.queue(),
		Allowance: room.Allowance{Limits: s.setLimits, Offered: s.tools, Account: s.account, Spend: callSpends},
	}
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
	in, ok := room.Find[room.Canceller](s.rooms)
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

// wroteStmts are what the arrival of an input over a channel changes.
func (s *Session) wroteStmts(ctx context.Context, in Input) ([]tidemark.Stmt, error) {
	a, ok := room.Find[room.Addressee](s.rooms)
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
	a, ok := room.Find[room.Addressee](s.rooms)
	if !ok || in.Kind != InputMessage {
		return in.Message, nil
	}
	line, err := a.Quoted(ctx, in.Quoted)
	return tidemark.Message{Role: in.Message.Role, Content: append([]tidemark.Block{tidemark.Text(line)}, in.Message.Content...)}, err
}

// answerFirst has a room answer the calls of its tool, and returns the room, nil where there are none. A life that takes
// the turn up later answers them the same.
func (s *Session) answerFirst(ctx context.Context, r *run, calls []call) (room.CallAnswerer, error) {
	a, ok := room.Find[room.CallAnswerer](s.rooms)
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

// leftBy has a room say what a plan does to episodes, by the measure of the view before.
func (s *Session) leftBy(ctx context.Context, p *plan, v View, after compaction.View, done *Compacted) error {
	d, ok := room.Find[room.Divider](s.rooms)
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

// writerPorts are what the writer of summaries is given.
func writerPorts(s *Session) summary.Ports {
	return summary.Ports{Scope: s.Scope(), Provider: s.Provider, Runtime: s.Runtime, Learn: s.windows.Learn, Findable: s.unskipped,
		Near: func(ctx context.Context, items []compaction.Item) []memory.Known {
			if k, ok := room.Find[room.Knower](s.rooms); ok {
				return k.Near(ctx, items)
			}
			return nil
		},
		Failures: func(ctx context.Context) (int, error) {
			h, err := s.head(ctx)
			return h.Failures, err
		},
		Settings: func() summary.Settings {
			now, model := s.settings(), s.summaryModel()
			return summary.Settings{Model: model, Own: model == now.Model, Window: s.windows.Of(model, now.set).Tokens, NoMemories: now.NoMemories}
		}}
}

// known returns what tells what memory has of a view, which need not be extracted again.
func (s *Session) known(v View) func(ctx context.Context) []string {
	return func(ctx context.Context) []string {
		if k, ok := room.Find[room.Knower](s.rooms); ok {
			return k.Memories(ctx, v.Seen)
		}
		return nil
	}
}

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// Kinds of inputs. A command queues like a message, so it is durable, in order and done once.
const (
	InputMessage = "message"
	InputCompact = "compact"
	InputReset   = "reset"
	InputAsk     = "ask"             // answered from what the session knows, without a model
	inputAgain   = "summarize-again" // of an alarm: a summary that an extract stands in for
)

// Input is what someone wants of a session.
type Input struct {
	// ID makes the same input twice one turn: a platform's message id, or one of the client's.
	// Empty: a new one.
	ID      string
	Kind    string // empty: message
	Message tidemark.Message
	Origin  tidemark.Origin
	Text    string // of a command: what to keep in the summary, why to reset, what is asked
	Quoted  string // platform's id of the message that it answers
}

// Receipt says that an input is durable.
type Receipt struct {
	ID        string `json:"id"`
	Session   string `json:"sessionId"`
	Duplicate bool   `json:"duplicate,omitempty"` // it had been received before
	State     string `json:"state"`               // new, taken, done, unmet
	Run       string `json:"-"`                   // that took it up, empty for none
}

// Bounds of inputs.
const (
	maxInputID  = 200
	maxQueued   = 20_000
	maxTaken    = 64              // inputs that one model call takes up
	MaxMessage  = blocks.MaxBytes // bytes of one message
	maxCommand  = 4_000           // bytes of a command's text
	maxInputLen = 1_800_000       // bytes of a message in the database; larger blocks stand in the bucket
)

// Post makes an input durable before anything else happens, and starts a turn if none is in work.
// A message of a person must have content and no tool results.
func (s *Session) Post(ctx context.Context, in Input) (Receipt, error) {
	now := s.Runtime.Now()
	if in.Kind == "" {
		in.Kind = InputMessage
	}
	if in.ID == "" {
		in.ID = tidemark.NewID(now)
	}
	in, err := s.readAsCommand(ctx, in)
	if err != nil {
		return Receipt{}, err
	}
	r := Receipt{ID: in.ID, State: "new"}
	write := s.DB.Tx
	if in.Kind == InputAsk && in.Text == tidemark.CommandStop { // it is for now, and not for behind what it stops
		r.State = "done"
		write = func(ctx context.Context, stmts []tidemark.Stmt) error { return s.stop(ctx, in, stmts) }
	}
	word, text := "", ""
	if in.Kind == InputAsk {
		word, text, _ = strings.Cut(in.Text, " ")
	}
	if c := s.rooms.Commander(word); c != nil { // nor is this for behind what waits for it
		write = func(ctx context.Context, stmts []tidemark.Stmt) (err error) {
			state, err := s.commandRoom(ctx, c, in, word, text, stmts)
			r.State = cmp.Or(state, r.State)
			return err
		}
	}
	stmts, hash, err := s.inputStmts(ctx, in, r.State, now)
	if err != nil {
		return Receipt{}, err
	}
	ahead := s.activeRun()
	before := ""
	if h, ok := room.Find[room.Hearer](s.rooms); ok && in.Kind == InputMessage && in.Origin.To != nil {
		before = h.Ahead(ctx, in.Origin) // behind the write it may be the input's own turn that asks
	}
	err = write(ctx, stmts)
	if errors.Is(err, tidemark.ErrConflict) {
		if r, err = s.receipt(ctx, in.ID, hash); errors.Is(err, tidemark.ErrNotFound) {
			return Receipt{}, fmt.Errorf("input %s: %d inputs wait already; wait until some are answered: %w", in.ID, maxQueued, tidemark.ErrBusy)
		}
		r.Duplicate = true
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("store input %s: %w", in.ID, err)
	}
	s.setAlarm(ctx)
	if r.State == "new" && !r.Duplicate {
		s.sayQueued(in.ID, ahead)
		if before != "" {
			if err := s.rooms.Teller().Say(ctx, "waits/"+in.ID, in.Origin.To, "Your message is kept and comes next. First: "+before, nil); err != nil {
				s.warn("tell what waits", err)
			}
		}
	}
	if tries, _ := s.retries(); tries > 0 {
		s.Runtime.Go(s.goOn)
	} else {
		s.kick()
	}
	s.rooms.Teller().Dispatch()
	r.Session, err = s.log.Ref(ctx, headRef(s.Key))
	return r, err
}

// sayQueued tells those who listen of an input that the run which was in work before it does not answer yet. What begins a
// run is told of by that, and so is what a run that began meanwhile takes up.
func (s *Session) sayQueued(id, ahead string) {
	if ahead != "" && ahead == s.activeRun() {
		s.hub.send(Notice{Type: NoticeQueued, Inputs: []string{id}})
	}
}

// inputStmts make an input durable, with what its arrival changes. The hash is of what was posted.
func (s *Session) inputStmts(ctx context.Context, in Input, state string, now time.Time) (stmts []tidemark.Stmt, hash string, err error) {
	payload, tokens, err := s.encodeInput(ctx, in)
	if err != nil {
		return nil, "", err
	}
	hash = inputHash(in.Kind, payload)
	heard, err := s.wroteStmts(ctx, in)
	if err != nil {
		return nil, "", err
	}
	if in.Quoted != "" {
		if in.Message, err = s.quoting(ctx, in); err != nil {
			return nil, "", err
		}
		if payload, tokens, err = s.encodeInput(ctx, in); err != nil {
			return nil, "", err
		}
	}
	return append([]tidemark.Stmt{{
		SQL: `INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, tokens)
			SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM inputs WHERE key = ? AND state = 'new') < ?
			ON CONFLICT(key, id) DO NOTHING`,
		Args: []any{string(s.Key), in.ID, in.Kind, state, now.UnixMilli(), mustJSON(in.Origin), payload, hash, int64(tokens), string(s.Key), maxQueued},
		Want: 1,
	}, s.waitStmt(now)}, heard...), hash, nil
}

// receipt returns what became of an input.
func (s *Session) receipt(ctx context.Context, id, hash string) (Receipt, error) {
	rows, err := s.DB.Query(ctx, `SELECT state, hash, run FROM inputs WHERE key = ? AND id = ? LIMIT 1`, string(s.Key), id)
	if err != nil {
		return Receipt{}, err
	}
	if len(rows) == 0 {
		return Receipt{}, tidemark.ErrNotFound
	}
	if rows[0].Text(1) != hash {
		return Receipt{}, fmt.Errorf("input id %s was used for another message; give each message an id of its own: %w", id, tidemark.ErrConflict)
	}
	return Receipt{ID: id, State: rows[0].Text(0), Run: rows[0].Text(2)}, nil
}

// posted is what became of an input, the zero value for one that is not there.
func (s *Session) posted(ctx context.Context, id string) (p room.Posted, err error) {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(r.state, i.state), coalesce(r.reply, ''), coalesce(r.error, ''), coalesce(r.spent, 0) + (SELECT coalesce(sum(spent), 0) FROM calls WHERE run = r.id)
		FROM inputs i LEFT JOIN runs r ON r.id = i.run WHERE i.key = ? AND i.id = ? LIMIT 1`, string(s.Key), id)
	if err != nil || len(rows) == 0 {
		return p, err
	}
	r := rows[0]
	p = room.Posted{There: true, Spent: tidemark.Tokens(r.Int(3))}
	switch r.Text(0) {
	case stateFailed:
		p.Over, p.Failure = true, r.Text(2)
	case stateDone:
		p.Over, p.Reply = true, tidemark.EntryID(r.Text(1))
	}
	return p, nil
}

// Reply returns the last message of the run that took an input: what a client that sends the
// same input again is given. ok is false while it is in work.
func (s *Session) Reply(ctx context.Context, input string) (e tidemark.Entry, failure string, ok bool, err error) {
	p, err := s.posted(ctx, input)
	if err != nil || p.Reply == "" { // it failed, is in work, or was a command
		return e, p.Failure, p.Over, err
	}
	e, err = s.log.Entry(ctx, p.Reply)
	return e, "", err == nil, err
}

// inputHash tells whether two inputs of one id are the same.
func inputHash(kind, payload string) string {
	return string(tidemark.HashOf([]byte(kind + "\n" + payload)))
}

// Validate reports what a session would refuse of an input, so that a door can say so before it
// makes a session for it.
func (in Input) Validate() error {
	if len(in.ID) > maxInputID {
		return fmt.Errorf("input id has %d bytes, at most %d: %w", len(in.ID), maxInputID, tidemark.ErrInvalid)
	}
	if !utf8.ValidString(in.ID) {
		return fmt.Errorf("input id: want UTF-8: %w", tidemark.ErrInvalid)
	}
	switch in.Kind {
	case InputAsk:
		if got, err := Command(in.Text); err != nil || got.Kind != InputAsk || got.Text != in.Text {
			return fmt.Errorf("text of a question to the session %q: want status, stop, model, memory or help: %w", in.Text, tidemark.ErrInvalid)
		}
		return nil
	case InputCompact, InputReset, inputAgain:
		if len(in.Text) > maxCommand {
			return fmt.Errorf("text of /%s has %d bytes, at most %d: %w", in.Kind, len(in.Text), maxCommand, tidemark.ErrTooLarge)
		}
		return nil
	case inputAmend:
		if len(in.Text) > maxAmended {
			return fmt.Errorf("an amendment has %d bytes, at most %d: %w", len(in.Text), maxAmended, tidemark.ErrTooLarge)
		}
		return nil
	case InputMessage, "":
	default:
		return fmt.Errorf("input kind %q: want message, compact, reset or ask: %w", in.Kind, tidemark.ErrInvalid)
	}
	if in.Message.Role != tidemark.User {
		return fmt.Errorf("the role of an input must be user: %w", tidemark.ErrInvalid)
	}
	if len(in.Message.Results()) > 0 {
		return fmt.Errorf("an input answers no tool calls, but has a tool_result block: %w", tidemark.ErrInvalid)
	}
	var shape *tidemark.ShapeError
	if errors.As(tidemark.Check([]tidemark.Message{in.Message}), &shape) {
		return fmt.Errorf("the content has %s: %w", shape.Rule, tidemark.ErrInvalid)
	}
	if n := len(in.Message.AppendJSON(nil)); n > MaxMessage {
		return fmt.Errorf("a message of %d bytes, at most %d: %w", n, MaxMessage, tidemark.ErrTooLarge)
	}
	return nil
}

// encodeInput validates an input and returns its payload as stored.
func (s *Session) encodeInput(ctx context.Context, in Input) (string, tidemark.Tokens, error) {
	if err := in.Validate(); err != nil {
		return "", 0, err
	}
	if in.Kind != InputMessage {
		return mustJSON(in.Text), 0, nil
	}
	tokens := tidemark.Estimate(in.Message)
	m, err := s.blocks.Spill(ctx, in.Message)
	if err != nil {
		return "", 0, err
	}
	raw := m.AppendJSON(nil)
	if len(raw) > maxInputLen {
		return "", 0, fmt.Errorf("message has %d bytes after large blocks were stored apart, at most %d: %w", len(raw), maxInputLen, tidemark.ErrTooLarge)
	}
	return string(raw), tokens, nil
}

// queued is an input that waits.
type queued struct {
	N       int64
	ID      string
	Kind    string
	At      time.Time
	Origin  tidemark.Origin
	Payload []byte // read when it is taken up
	Tokens  tidemark.Tokens
}

// load reads the payloads of the inputs that are taken up.
func (s *Session) load(ctx context.Context, q []queued) error {
	for i := range q {
		rows, err := s.DB.Query(ctx, `SELECT payload FROM inputs WHERE n = ? LIMIT 1`, q[i].N)
		if err != nil || len(rows) == 0 {
			return fmt.Errorf("read input %s: %w", q[i].ID, cmp.Or(err, tidemark.ErrNotFound))
		}
		q[i].Payload = rows[0].Bytes(0)
	}
	return nil
}

// waiting returns the oldest inputs that wait, without their payloads.
func (s *Session) waiting(ctx context.Context) ([]queued, error) {
	rows, err := s.DB.Query(ctx, `SELECT n, id, kind, at, origin, tokens FROM inputs WHERE key = ? AND state = 'new' ORDER BY n LIMIT ?`, string(s.Key), maxTaken)
	if err != nil {
		return nil, fmt.Errorf("read queue: %w", err)
	}
	out := make([]queued, len(rows))
	for i, r := range rows {
		out[i] = queued{N: r.Int(0), ID: r.Text(1), Kind: r.Text(2), At: time.UnixMilli(r.Int(3)), Tokens: tidemark.Tokens(r.Int(5))}
		if err := json.Unmarshal(r.Bytes(4), &out[i].Origin); err != nil {
			return nil, fmt.Errorf("read input %s: %w", out[i].ID, err)
		}
	}
	return out, nil
}

// batch returns the messages at the head of the queue that one call takes up: up to a quarter of
// the window, at least one, none behind a command.
func batch(q []queued, window tidemark.Tokens) []queued {
	var size tidemark.Tokens
	for i, in := range q {
		if size += in.Tokens; in.Kind != InputMessage || i > 0 && size > window/4 {
			return q[:i]
		}
	}
	return q
}

// lostTries is how often an input is tried that has a block which cannot be read.
const lostTries = 3

// takeStmts moves inputs into the log, in the transaction that goes on with the run.
func (s *Session) takeStmts(ctx context.Context, r *run, q []queued, chain tidemark.Hash) ([]tidemark.Stmt, error) {
	var stmts []tidemark.Stmt
	for _, in := range q {
		var m tidemark.Message
		if err := json.Unmarshal(in.Payload, &m); err != nil {
			return nil, fmt.Errorf("take input %s: %w", in.ID, err)
		}
		origin := in.Origin
		origin.Input = in.ID
		if origin.From == "" {
			origin.From = tidemark.FromPerson
		}
		e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(in.At)), Kind: tidemark.KindMessage, At: in.At, Tokens: in.Tokens, Origin: origin}
		full, err := s.blocks.Read(ctx, m) // it was spilled when it came
		if err != nil {
			return nil, fmt.Errorf("take input %s: %w", in.ID, err)
		}
		if tries, _ := s.retries(); tries+1 < lostTries && r.owner != "" { // who stops it does not wait
			if _, err := s.blocks.Noted(m, full, in.ID); err != nil {
				return nil, err
			}
		}
		more, err := s.storedStmts(ctx, r.Log, &e, full, m, chain)
		if err != nil {
			return nil, err
		}
		chain = e.Chain
		stmts = append(stmts, more...)
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE inputs SET state = 'taken', run = ?, payload = '' WHERE n = ? AND state = 'new'`, Args: []any{r.ID, in.N}, Want: 1})
	}
	return stmts, nil
}

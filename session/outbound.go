package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// States of a row of the ledger: what is known of a message on its way to a person.
const (
	OutPending = "pending" // nothing was sent, or what was sent is known not to have come through
	OutSending = "sending" // a life is handing it over
	OutSent    = "sent"    // the platform has it
	OutUnknown = "unknown" // it may have been sent: never sent again, a status of the platform tells
	OutFailed  = "failed"  // it is given up
)

// Why a pending row waits for more than its turn.
const (
	HoldClosed = "closed" // the person must write first
	HoldHalted = "halted" // the account may not send now
)

// keepSettled is how long the ledger knows of a message that is settled, and what a person wrote for who
// quotes it. The conversation itself keeps both.
const keepSettled = 30 * 24 * time.Hour

// pruneStmts let go of what is older, at a reset; never of a message that is on its way.
func (s *Session) pruneStmts(now time.Time) []tidemark.Stmt {
	if !s.made.Here(ledgerTables) {
		return nil
	}
	old := []any{string(s.Key), now.Add(-keepSettled).UnixMilli()}
	return []tidemark.Stmt{
		{SQL: `DELETE FROM outbound WHERE key = ? AND open = 0 AND at < ?`, Args: old},
		{SQL: `DELETE FROM heard WHERE key = ? AND at < ?`, Args: old},
		{SQL: `DELETE FROM inputs WHERE key = ? AND id >= 'say:' AND id < 'say;' AND kind = 'say' AND at < ?`, Args: old},
	}
}

// writesOut reports a ledger that is known to be there.
func (s *Session) writesOut() bool { return s.made.Here(ledgerTables) }

// findLedger opens a ledger that an earlier life has made, and goes on with it. What that life was
// handing over when it ended may have been sent or not.
func (s *Session) findLedger(ctx context.Context) error {
	if s.Courier == nil {
		return nil
	}
	rows, err := s.made.Query(ctx, ledgerTables, `SELECT 1 FROM outbound WHERE key = ? AND open = 1 LIMIT 1`, string(s.Key))
	if err == nil && len(rows) > 0 {
		s.dispatch()
	}
	return err
}

// Outbound is a message on its way to a person, as the ledger knows it.
type Outbound struct {
	Ref    string           `json:"ref"`
	State  string           `json:"state"`            // pending, sending, sent, unknown, failed
	Hold   string           `json:"hold,omitempty"`   // closed, halted
	Status string           `json:"status,omitempty"` // what the platform said of it last: sent, delivered, read, failed
	To     tidemark.Address `json:"to"`
	Text   string           `json:"text"`
	Quote  string           `json:"quote,omitempty"`
	ID     string           `json:"id,omitempty"` // platform's id
	Tries  int              `json:"tries"`
	Error  string           `json:"error,omitempty"`
	At     time.Time        `json:"at"`
	Next   time.Time        `json:"next,omitzero"` // not tried, or not given up, before

	n       int64
	peer    string // who reads it, see readerOf
	address string // To, as it is stored
	past    string // ids of earlier tries that came to nothing
}

// outColumns are what scanOut reads.
const outColumns = `n, state, hold, status, peer, address, text, quote, id, past, tries, error, at, next`

func (s *Session) scanOut(r tidemark.Row) (Outbound, error) {
	o := Outbound{n: r.Int(0), State: r.Text(1), Hold: r.Text(2), Status: r.Text(3), peer: r.Text(4), address: r.Text(5), Text: r.Text(6), Quote: r.Text(7), ID: r.Text(8),
		past: r.Text(9), Tries: int(r.Int(10)), Error: r.Text(11), At: time.UnixMilli(r.Int(12))}
	if next := r.Int(13); next > 0 {
		o.Next = time.UnixMilli(next)
	}
	o.Ref = string(s.Key) + "/" + strconv.FormatInt(o.n, 10)
	if err := json.Unmarshal(r.Bytes(5), &o.To); err != nil {
		return o, fmt.Errorf("read outbound %s: %w", o.Ref, err)
	}
	return o, nil
}

// Outbound returns the newest messages of the ledger, newest first.
func (s *Session) Outbound(ctx context.Context, limit int) ([]Outbound, error) {
	out := []Outbound{}
	if !s.made.Here(ledgerTables) {
		return out, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT `+outColumns+` FROM outbound WHERE key = ? ORDER BY n DESC LIMIT ?`, string(s.Key), min(limit, 1000))
	if err != nil {
		return nil, fmt.Errorf("read outbound: %w", err)
	}
	for _, r := range rows {
		o, err := s.scanOut(r)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// readerOf is who reads the answer to an input, in one string: what one reads is sent in order. A person
// whom the platform names now by a number and now by an id is one, on each account that they write to.
func readerOf(o tidemark.Origin) string {
	if o.To.Group || o.Peer == "" {
		return peerOf(*o.To)
	}
	return strings.Join([]string{o.To.Platform, o.To.Account, "", o.Peer}, outSeparator) // no address has an empty peer
}

// peerOf is an address in one string: the reader of what is said to no person that is known. Rows of before
// people were told apart have it, too.
func peerOf(a tidemark.Address) string {
	return strings.Join([]string{a.Platform, a.Account, a.Peer}, outSeparator)
}

const outSeparator = "\x1f"

// outStmts put a text into the ledger, a row for each message that the platform makes of it, in the
// transaction of what it tells of. The first may quote a message.
func (s *Session) outStmts(l listener, text string) []tidemark.Stmt {
	now := s.Runtime.Now()
	parts, quote := s.Courier.Parts(l.To, text), l.quote()
	stmts := make([]tidemark.Stmt, 0, len(parts)+1)
	for i, p := range parts {
		if i > 0 {
			quote = ""
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO outbound(key, state, open, peer, address, text, quote, at) VALUES(?, 'pending', 1, ?, ?, ?, ?, ?)`,
			Args: []any{string(s.Key), l.who, mustJSON(l.To), p, quote, now.UnixMilli()}, Want: 1})
	}
	if len(stmts) == 0 {
		return nil
	}
	return append(stmts, s.dueStmt(dueOut, now.Add(outGrace), ""))
}

// outGrace is when an alarm looks after rows that the life which wrote them does not send.
const outGrace = 10 * time.Second

// listener is where an answer goes.
type listener struct {
	who    string           // see readerOf
	To     tidemark.Address // which they wrote from last
	newest string           // platform's id of what they wrote last
	wrote  int              // messages that the run took up
}

// listeners are those who read what is said to some inputs, each once. Who is reached by schedules reads answers only.
func listeners(from []tidemark.Origin) []listener {
	var out []listener
	for _, o := range from {
		if o.To == nil || o.Occasion != nil { // see audience
			continue
		}
		who := readerOf(o)
		i := slices.IndexFunc(out, func(l listener) bool { return l.who == who })
		if i < 0 {
			i, out = len(out), append(out, listener{who: who})
		}
		out[i].To, out[i].newest, out[i].wrote = *o.To, o.Message, out[i].wrote+1
	}
	return out
}

// quote is what an answer shows itself to be one to. Between two people who take turns a quote is noise;
// in a group it says who is meant, and behind several messages how far they were read.
func (l listener) quote() string {
	if l.To.Group || l.wrote > 1 {
		return l.newest
	}
	return ""
}

// tellStmts put a text into the ledger for all who wrote one of these inputs, but the readers of except.
func (s *Session) tellStmts(ctx context.Context, log string, from []tidemark.Origin, text string, except ...string) ([]tidemark.Stmt, error) {
	to := listeners(from)
	if len(to) == 0 || strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if s.Courier == nil {
		return s.muteStmts(log, to[0].To), nil
	}
	if err := s.made.Open(ctx, ledgerTables); err != nil {
		return nil, err
	}
	var stmts []tidemark.Stmt
	for _, l := range to {
		if !slices.Contains(except, l.who) && !slices.Contains(except, peerOf(l.To)) {
			stmts = append(stmts, s.outStmts(l, text)...)
		}
	}
	return stmts, nil
}

// muteStmts say, once a life, that answers have no way out.
func (s *Session) muteStmts(log string, to tidemark.Address) []tidemark.Stmt {
	if s.mute.Swap(true) {
		return nil
	}
	s.Logger.Warn("answers are not sent: no channel is set up", "session", s.Key, "platform", to.Platform)
	return []tidemark.Stmt{s.eventStmt(log, tidemark.Event{Type: "error", Text: fmt.Sprintf("Answers stay in the log: no channel that sends over %s is set up here.", to.Platform)})}
}

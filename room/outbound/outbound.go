// Package outbound is the room that keeps a ledger of what people are sent over channels, and sends it: each message at most
// once, in order for each reader, and again after a failure that is known to have sent nothing. What is said is written in
// the transaction of what it tells of. Begin with Room, Lines (lines.go) and sendAll (send.go).
package outbound

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// States of a row of the ledger: what is known of a message on its way to a person.
const (
	Pending = "pending" // nothing was sent, or what was sent is known not to have come through
	Sending = "sending" // a life is handing it over
	Sent    = "sent"    // the platform has it
	Unknown = "unknown" // it may have been sent: never sent again, a status of the platform tells
	Failed  = "failed"  // it is given up
)

// Why a pending row waits for more than its turn.
const (
	HoldClosed = "closed" // the person must write first
	HoldHalted = "halted" // the account may not send now
)

// tables are made when a person first writes over a channel: each table and each index holds a page of memory in every live
// object, and most conversations need none of these.
var tables = room.Tables{Space: "outbound", Steps: []string{
	// What is to be sent, in order. open is 1 while the sender has something to do with a row.
	`CREATE TABLE outbound(
		n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, state TEXT NOT NULL, open INTEGER NOT NULL, hold TEXT NOT NULL DEFAULT '',
		peer TEXT NOT NULL, address TEXT NOT NULL, text TEXT NOT NULL, quote TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL,
		next INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '', id TEXT NOT NULL DEFAULT '',
		past TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '')`,
	`CREATE INDEX outbound_open ON outbound(key, n) WHERE open = 1`,
	`CREATE INDEX outbound_id ON outbound(key, id) WHERE id <> ''`,
	// What people wrote, by the platform's id of it, for those who answer it.
	`CREATE TABLE heard(key TEXT NOT NULL, message TEXT NOT NULL, said TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(key, message)) WITHOUT ROWID`,
}}

// Room is the ledger of one conversation.
type Room struct {
	room.Self
	room.Work
	room.Voice
	room.Lease
	current func(ctx context.Context) (log string, err error)
	active  func() (run string)
	courier tidemark.Courier // nil: answers go to nobody but readers

	mute    atomic.Bool // it was said that no courier is there
	napping atomic.Bool // a goroutine waits for the next try

	mu       sync.Mutex // guards the following two; never held over a wait
	sending  bool       // a goroutine sends what is pending
	sendMore bool       // and looks again before it ends
}

// Make returns what makes the room. Without a courier nothing is sent, and what is pending waits for one.
func Make(courier tidemark.Courier) room.Maker {
	return func(p room.Ports) any {
		return &Room{Self: p.Self, Work: p.Work, Voice: p.Voice, Lease: p.Lease, current: p.Current, active: p.Active, courier: courier}
	}
}

var (
	_ room.Tabler    = (*Room)(nil)
	_ room.Opener    = (*Room)(nil)
	_ room.Teller    = (*Room)(nil)
	_ room.Addressee = (*Room)(nil)
	_ room.Waker     = (*Room)(nil)
	_ room.Worker    = (*Room)(nil)
	_ room.Pruner    = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// Open goes on with a ledger that an earlier life has made. What that life was handing over when it ended may have been sent
// or not.
func (s *Room) Open(ctx context.Context) error {
	if s.courier == nil {
		return nil
	}
	rows, err := s.Made.Query(ctx, tables, `SELECT 1 FROM outbound WHERE key = ? AND open = 1 LIMIT 1`, string(s.Key))
	if err == nil && len(rows) > 0 {
		s.Dispatch()
	}
	return err
}

// keepSettled is how long the ledger knows of a message that is settled, and what a person wrote for who
// quotes it. The conversation itself keeps both.
const keepSettled = 30 * 24 * time.Hour

// PruneStmts let go of what is older; never of a message that is on its way.
func (s *Room) PruneStmts() []tidemark.Stmt {
	if !s.Made.Here(tables) {
		return nil
	}
	old := []any{string(s.Key), s.Runtime.Now().Add(-keepSettled).UnixMilli()}
	return []tidemark.Stmt{
		{SQL: `DELETE FROM outbound WHERE key = ? AND open = 0 AND at < ?`, Args: old},
		{SQL: `DELETE FROM heard WHERE key = ? AND at < ?`, Args: old},
		{SQL: `DELETE FROM inputs WHERE key = ? AND id >= 'say:' AND id < 'say;' AND kind = 'say' AND at < ?`, Args: old},
	}
}

// Message is a message on its way to a person, as the ledger knows it.
type Message struct {
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
	peer    string // who reads it, see tidemark.Origin.Reader
	address string // To, as it is stored
	past    string // ids of earlier tries that came to nothing
}

// columns are what scan reads.
const columns = `n, state, hold, status, peer, address, text, quote, id, past, tries, error, at, next`

func (s *Room) scan(r tidemark.Row) (Message, error) {
	m := Message{n: r.Int(0), State: r.Text(1), Hold: r.Text(2), Status: r.Text(3), peer: r.Text(4), address: r.Text(5), Text: r.Text(6), Quote: r.Text(7), ID: r.Text(8),
		past: r.Text(9), Tries: int(r.Int(10)), Error: r.Text(11), At: time.UnixMilli(r.Int(12))}
	if next := r.Int(13); next > 0 {
		m.Next = time.UnixMilli(next)
	}
	m.Ref = string(s.Key) + "/" + strconv.FormatInt(m.n, 10)
	if err := json.Unmarshal(r.Bytes(5), &m.To); err != nil {
		return m, fmt.Errorf("read outbound %s: %w", m.Ref, err)
	}
	return m, nil
}

// Messages returns the newest messages of the ledger, newest first.
func (s *Room) Messages(ctx context.Context, limit int) ([]Message, error) {
	out := []Message{}
	if !s.Made.Here(tables) {
		return out, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT `+columns+` FROM outbound WHERE key = ? ORDER BY n DESC LIMIT ?`, string(s.Key), min(limit, 1000))
	if err != nil {
		return nil, fmt.Errorf("read outbound: %w", err)
	}
	for _, r := range rows {
		m, err := s.scan(r)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// Unsent implements room.Teller.
func (s *Room) Unsent(ctx context.Context) (int64, error) {
	if !s.Made.Here(tables) {
		return 0, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT count(*) FROM outbound WHERE key = ? AND open = 1 LIMIT 1`, string(s.Key))
	if err != nil {
		return 0, fmt.Errorf("count outbound: %w", err)
	}
	return rows[0].Int(0), nil
}

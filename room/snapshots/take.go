package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Options say what a snapshot is called and where it is taken. The zero value is the newest message, by the
// session's title.
type Options struct {
	Name        string           `json:"name,omitempty"` // a label; "" is made of the title, or the time
	Description string           `json:"description,omitempty"`
	Tags        []string         `json:"tags,omitempty"`
	At          tidemark.EntryID `json:"at,omitempty"` // the last message of it; "" is the newest that it can end with

	id   string // of what may be asked for twice: one that is there is taken for it
	most int    // of the conversation; 0 is MaxNodes
	more int    // that are made with it: its branch
}

// Take names a place in the session: its messages up to there, as they are shown. It costs a row, copies nothing
// and never changes. While a turn is between a call and its result it is taken before that turn's call.
//
// # Errors
//
// tidemark.ErrInvalid for a name or a place that cannot be one, tidemark.ErrNotFound for a message that is not of this
// session.
func (s *Room) Take(ctx context.Context, o Options) (snapshot.Node, error) {
	made, stmts, err := s.takeStmts(ctx, o)
	if err == nil && len(stmts) > 0 {
		err = s.DB.Tx(ctx, stmts)
	}
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("snapshot of %s: %w", s.Key, err)
	}
	s.tellNow(ctx, made.Node)
	s.tellSoon()
	return made.Node, nil
}

// takeStmts returns a snapshot and what stores it, nothing for one that is there.
func (s *Room) takeStmts(ctx context.Context, o Options) (room.Place, []tidemark.Stmt, error) {
	if err := s.may(); err != nil {
		return room.Place{}, nil, err
	}
	if err := o.check(); err != nil {
		return room.Place{}, nil, err
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return room.Place{}, nil, err
	}
	if o.id != "" {
		if n, err := s.findAs(ctx, o.id, true); !errors.Is(err, tidemark.ErrNotFound) {
			return n, nil, err
		}
	}
	if err := s.fits(ctx, cmp.Or(o.most, MaxNodes), 1+o.more); err != nil {
		return room.Place{}, nil, err
	}
	h, err := s.head(ctx)
	if err != nil {
		return room.Place{}, nil, err
	}
	p, err := s.placeOf(ctx, h.log, o.At)
	if err != nil {
		return room.Place{}, nil, err
	}
	state, err := s.State(ctx, p.seq, p.past) // at once: what follows takes a while, and a card of later is of what was said later
	if err != nil {
		return room.Place{}, nil, err
	}
	now := s.Runtime.Now()
	out := room.Place{Log: h.log, Seq: p.seq, State: state, Node: snapshot.Node{
		ID: cmp.Or(o.id, snapID(tidemark.NewID(now))), Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Session: string(s.Key),
		Name: cmp.Or(o.Name, snapshot.Label(h.title), now.In(s.Zone()).Format("2006-01-02 15.04.05")), Description: o.Description, Tags: o.Tags,
		Created: now.UTC().Truncate(time.Millisecond)}}
	if out.Parent, err = s.parentOf(ctx, h.log); err != nil {
		return out, nil, err
	}
	if out.Hash, err = s.Log.ChainAt(ctx, h.log, p.seq); err != nil {
		return out, nil, err
	}
	if out.Messages, _, err = s.Log.Count(ctx, h.log, host.Range{From: 1, To: p.seq}, 0); err != nil {
		return out, nil, err
	}
	if p.newest && h.context > 0 {
		out.Tokens = h.context
	} else if out.Tokens, err = s.Weigh(ctx, h.log, p.seq, false); err != nil {
		return out, nil, err
	}
	return out, append(s.store(out), s.tellStmts(out.Node, "snapshot:"+out.ID)...), nil
}

// snapID makes the id of a snapshot of a [tidemark.NewID].
func snapID(id string) string { return "snap-" + strings.ToLower(id) }

// store is the row of a snapshot.
func (s *Room) store(n room.Place) []tidemark.Stmt {
	return []tidemark.Stmt{{SQL: `INSERT INTO snapshots(id, root, log, seq, parent, created, node, state) VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id, root) DO NOTHING`,
		Args: []any{n.ID, string(s.Key.Root()), n.Log, n.Seq, n.Parent, n.Created.UnixMilli(), room.JSON(n.Node), room.JSON(n.State)}, Want: 1}}
}

func (o Options) check() error {
	if o.Name != "" {
		if err := snapshot.CheckName(o.Name); err != nil {
			return err
		}
	}
	if err := snapshot.CheckDescription(o.Description); err != nil {
		return err
	}
	return snapshot.CheckTags(o.Tags)
}

// kind of what the agent is told: a snapshot.Node.
const kind = "snapshot"

// shower is an agent that keeps the tree of all snapshots.
type shower interface {
	// Snapshots takes up nodes; the same one twice is one.
	Snapshots(ctx context.Context, nodes []snapshot.Node) error
}

// tellStmts have the agent told of a snapshot or branch, once for an id. Conversations that share a database may each have
// the same one.
func (s *Room) tellStmts(n snapshot.Node, id string) []tidemark.Stmt {
	if _, ok := s.Agent.(shower); !ok {
		return nil
	}
	return s.Outbox(id+" "+n.Session, kind, n, 0)
}

// Reports implements room.Reporter.
func (s *Room) Reports() string { return kind }

// Report hands a node to the agent.
func (s *Room) Report(ctx context.Context, raw []byte) error {
	var n snapshot.Node
	if err := json.Unmarshal(raw, &n); err != nil {
		return fmt.Errorf("decode: %w: %w", err, tidemark.ErrInvalid)
	}
	to, ok := s.Agent.(shower)
	if !ok {
		return nil
	}
	return to.Snapshots(ctx, []snapshot.Node{n})
}

// tellWait is how long a caller waits for the agent to hear of what was made.
const tellWait = 2 * time.Second

// tellNow has the agent know of nodes before their maker does, who may ask it for one next. An agent that is slow, or
// fails, hears of them from the outbox.
func (s *Room) tellNow(ctx context.Context, nodes ...snapshot.Node) {
	to, ok := s.Agent.(shower)
	if !ok {
		return
	}
	wait, told := context.WithCancel(ctx)
	s.Runtime.Go(func() {
		defer told()
		if err := to.Snapshots(s.Life, nodes); err != nil {
			s.Warn("tell of a snapshot", err)
		}
	})
	_ = s.Runtime.Sleep(wait, tellWait)
	told()
}

// tellSoon tells the agent behind what the caller waits for.
func (s *Room) tellSoon() {
	s.Runtime.Go(func() {
		s.Tell(s.Life)
		s.Alarm(s.Life)
	})
}

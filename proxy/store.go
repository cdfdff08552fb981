package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// Bounds of one transaction.
const (
	storeRows  = 50
	storeBytes = 4 << 20
)

// stepRow is a step as its row has it.
type stepRow struct {
	Cut      bool               `json:"cut,omitempty"`
	Keep     int                `json:"keep,omitempty"`
	Release  []string           `json:"release,omitempty"`
	Anchor   []string           `json:"anchor,omitempty"`
	IDs      []tidemark.EntryID `json:"ids,omitempty"`
	Usage    *tidemark.Usage    `json:"usage,omitempty"`
	Model    string             `json:"model,omitempty"`
	Fixed    int                `json:"fixed,omitempty"`
	Whole    []string           `json:"whole,omitempty"`
	Answered bool               `json:"answered,omitempty"`
	Said     tidemark.EntryID   `json:"said,omitempty"`    // the answer, where episodes may leave,
	Context  tidemark.Tokens    `json:"context,omitempty"` // and how large the context was with it
	Sum      paging.Sum         `json:"sum"`               // of the track so far
}

// editRow is what a reply did by tags.
type editRow struct {
	Step    int       `json:"step"` // the newest one then
	Release []string  `json:"release,omitempty"`
	Anchor  []string  `json:"anchor,omitempty"`
	Edits   []oneEdit `json:"edits,omitempty"`
	Act     *act      `json:"act,omitempty"` // episodes that left
}

type oneEdit struct {
	From  tidemark.EntryID `json:"from"`
	To    tidemark.EntryID `json:"to"`
	Block int              `json:"block"`
	Raw   json.RawMessage  `json:"raw"`
}

// owed is what a reply did by tags, until it is stored.
type owed struct {
	edits []edit
	row   editRow
}

func rowsOf(edits []edit) (out []oneEdit) {
	for _, e := range edits {
		out = append(out, oneEdit{e.from.id, e.to.id, e.block, e.raw})
	}
	return out
}

// open returns the log of a track, which is made behind the message that the track begins behind.
func (c *Conversation) open(ctx context.Context, t *track) error {
	if t.log != "" {
		return nil
	}
	base, seq := "", int64(0)
	if t.from.depth > 0 {
		if t.from.seq == 0 || t.from.owner == nil || t.from.owner.log == "" {
			return fmt.Errorf("track %d begins behind a message that is not stored: %w", t.n, tidemark.ErrConflict)
		}
		base, seq = t.from.owner.log, t.from.seq
	}
	log, err := c.Home.Branch(ctx, t.name, base, seq)
	if err != nil {
		return err
	}
	bn, after := -1, 0
	if t.base != nil {
		bn, after = t.base.n, t.after
	}
	stmts := []tidemark.Stmt{{SQL: `INSERT INTO proxy_tracks(key, n, name, log, base, steps, created) VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		Args: []any{string(c.Key), t.n, t.name, log, bn, after, c.Runtime.Now().UnixMilli()}}}
	if len(t.edits) > 0 {
		stmts = append(stmts, c.editStmt(t, editRow{Step: -1, Edits: rowsOf(t.edits)}))
		o, err := overlay(t.edits, "fork")
		if err != nil {
			return err
		}
		more, err := c.overlays(log, o)
		if err != nil {
			return err
		}
		stmts = append(stmts, more...)
	}
	for _, a := range t.from.acts { // its overlay stands behind the message, where the branch does not see it
		more, err := c.overlays(log, a.overlay(t.from.path()))
		if err != nil {
			return err
		}
		stmts = append(stmts, more...)
	}
	if err := c.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("make track %d: %w", t.n, err)
	}
	t.log = log
	return nil
}

func (c *Conversation) editStmt(t *track, r editRow) tidemark.Stmt {
	raw, _ := json.Marshal(r)
	return tidemark.Stmt{SQL: `INSERT INTO proxy_edits(key, track, n, record) SELECT ?, ?, coalesce(max(n), 0) + 1, ? FROM proxy_edits WHERE key = ? AND track = ?`,
		Args: []any{string(c.Key), t.n, string(raw), string(c.Key), t.n}}
}

// note appends an entry of ours to a log: an overlay or an event.
func (c *Conversation) note(log string, kind tidemark.Kind, what any) ([]tidemark.Stmt, error) {
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	now := c.Runtime.Now()
	return c.Home.Log().AppendStmts(log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: kind, At: now, Origin: tidemark.Origin{From: tidemark.FromSystem}, Payload: raw})
}

// keep stores the messages of a request that are not stored, each at the end of the log of its track.
func (c *Conversation) keep(ctx context.Context, x *Exchange) error {
	var stmts []tidemark.Stmt
	var waiting []*node
	size := 0
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		if err := c.DB.Tx(ctx, stmts); err != nil {
			return fmt.Errorf("store messages: %w", err)
		}
		if err := c.positions(ctx, waiting); err != nil {
			return err
		}
		for _, n := range waiting {
			n.putKept, n.raw = n.put != nil, nil
		}
		x.kept += len(waiting)
		stmts, waiting, size = nil, nil, 0
		return nil
	}
	for i, n := range x.path {
		if n.put != nil && !n.putKept {
			more, err := c.putStmts(n)
			if err != nil {
				return err
			}
			stmts, waiting = append(stmts, more...), append(waiting, n)
		}
		if n.seq != 0 {
			continue
		}
		t := n.owner
		if t == nil {
			t = x.track
		}
		if t.log == "" {
			if err := flush(); err != nil {
				return err
			}
			if err := c.open(ctx, t); err != nil {
				return err
			}
		}
		more, err := c.entryStmts(ctx, t, n, x.req.Items[i].Raw)
		if err != nil {
			return err
		}
		stmts, waiting, size = append(stmts, more...), append(waiting, n), size+len(x.req.Items[i].Raw)
		if len(waiting) >= storeRows || size >= storeBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return c.keepAct(ctx, x)
}

// entryStmts store a message in the form in which the pager took it.
func (c *Conversation) entryStmts(ctx context.Context, t *track, n *node, came []byte) ([]tidemark.Stmt, error) {
	raw := n.raw
	if raw == nil {
		raw = came
	}
	it, err := body.NewItem(raw)
	if err != nil {
		return nil, fmt.Errorf("store entry %s: %w", n.id, err)
	}
	m, _, err := messageOf(it)
	if err != nil {
		return nil, fmt.Errorf("store entry %s: %w", n.id, err)
	}
	return c.Home.Append(ctx, t.log, &tidemark.Entry{ID: n.id, Kind: tidemark.KindMessage, At: n.at, Call: n.call, Origin: tidemark.Origin{From: tidemark.SourceOf(m), Channel: "proxy"}}, m, n.parent.chain)
}

// putStmts store what the client never saw of a reply.
func (c *Conversation) putStmts(n *node) ([]tidemark.Stmt, error) {
	raw, err := json.Marshal(n.put)
	if err != nil {
		return nil, err
	}
	return []tidemark.Stmt{{SQL: `INSERT INTO proxy_puts(key, entry, record) VALUES(?, ?, ?) ON CONFLICT DO NOTHING`, Args: []any{string(c.Key), string(n.id), string(raw)}}}, nil
}

// positions reads where messages stand in the log.
func (c *Conversation) positions(ctx context.Context, list []*node) error {
	ids := make([]tidemark.EntryID, len(list))
	for i, n := range list {
		ids[i] = n.id
	}
	seqs, err := c.Home.Log().Seqs(ctx, ids)
	if err != nil {
		return err
	}
	for _, n := range list {
		n.seq = seqs[n.id]
	}
	return nil
}

// record stores what an exchange was: its step, its reply, what the model did by tags, what the view shows now. It is
// called with the lock held.
func (c *Conversation) record(ctx context.Context, x *Exchange, rec Record, event *tidemark.Event) error {
	if err := c.keep(ctx, x); err != nil {
		return err
	}
	brought := x.kept
	t := x.track
	if err := c.open(ctx, t); err != nil {
		return err
	}
	stmts, steps, err := c.stepStmts(x)
	if err != nil {
		return err
	}
	if n := x.reply; n != nil && n.seq == 0 && n.raw != nil {
		more, err := c.entryStmts(ctx, t, n, nil)
		if err != nil {
			return err
		}
		stmts, brought = append(stmts, more...), brought+1
		if n.put != nil {
			if more, err = c.putStmts(n); err != nil {
				return err
			}
			stmts = append(stmts, more...)
		}
	}
	acts, shown, err := c.actStmts(x)
	if err != nil {
		return err
	}
	stmts = append(append(stmts, acts...), c.explored.stmts(c.Key)...)
	explored := len(c.explored.names)
	if event != nil {
		more, err := c.note(t.log, tidemark.KindEvent, event)
		if err != nil {
			return err
		}
		stmts = append(stmts, more...)
	}
	leaf := x.path[len(x.path)-1]
	rec.Last, rec.LastID = leaf.seq, leaf.id
	stmts = append(stmts, c.Home.Called(t.name, t.log, title(x.path, x.req.Items), brought, rec)...)
	if err := c.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("store a reply: %w", err)
	}
	for _, s := range steps {
		s.stored = true
	}
	c.explored.kept = explored
	for _, s := range shown {
		t.shown[s] = true
	}
	t.owed = nil
	if n := x.reply; n != nil && n.seq == 0 {
		n.putKept, n.raw = n.put != nil, nil
		return c.positions(ctx, []*node{n})
	}
	return nil
}

// stepStmts store the step of an exchange with what the provider reported, and those before it that nobody answered:
// a step says what it added to the one before.
func (c *Conversation) stepStmts(x *Exchange) (stmts []tidemark.Stmt, stored []*step, err error) {
	for t := x.of; t != nil; t = t.base {
		for _, s := range t.steps {
			if s.stored && s != x.step || slices.ContainsFunc(s.nodes, func(n *node) bool { return n.seq == 0 }) {
				continue
			}
			row := stepRow{Cut: s.cut, Keep: s.keep, Release: s.release, Anchor: s.anchor, Usage: s.usage, Model: s.model, Fixed: s.fixed, Whole: s.whole, Answered: s.answered, Sum: t.sum}
			if s.said != nil {
				row.Said, row.Context = s.said.id, s.said.reported
			}
			for _, n := range s.nodes {
				row.IDs = append(row.IDs, n.id)
			}
			raw, err := json.Marshal(row)
			if err != nil {
				return nil, nil, err
			}
			stored = append(stored, s)
			stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO proxy_steps(key, track, n, record, decision) VALUES(?, ?, ?, ?, ?) ON CONFLICT(key, track, n) DO UPDATE SET record = excluded.record, decision = excluded.decision`,
				Args: []any{string(c.Key), t.n, s.n, string(raw), string(s.line)}})
		}
	}
	return stmts, stored, nil
}

// actStmts store what now reads otherwise: stubs that are new to the log, and edits by tags.
func (c *Conversation) actStmts(x *Exchange) (stmts []tidemark.Stmt, shown []shownKey, err error) {
	t := x.track
	o := tidemark.Overlay{By: []string{"paging"}, Reason: "threshold"}
	for _, s := range x.plan.stubs {
		if t.base != nil && len(t.steps) < 2 {
			break // who leaves a track with each request would write all stubs each time
		}
		if t.shown[shownKey{s.node.id, s.block}] {
			continue
		}
		var b tidemark.Block
		if err := json.Unmarshal(s.raw, &b); err != nil {
			return nil, nil, err
		}
		shown = append(shown, shownKey{s.node.id, s.block})
		o.Edits = append(o.Edits, tidemark.Edit{From: s.node.id, Block: s.block + 1, Blocks: []tidemark.Block{b}, Data: json.RawMessage(`{"proxy":{}}`)})
	}
	if stmts, err = c.overlays(t.log, o); err != nil {
		return nil, nil, err
	}
	for _, w := range t.owed {
		stmts = append(stmts, c.editStmt(t, w.row))
		o, err := overlay(w.edits, "tags")
		if err != nil {
			return nil, nil, err
		}
		more, err := c.overlays(t.log, o)
		if err != nil {
			return nil, nil, err
		}
		stmts = append(stmts, more...)
	}
	return stmts, shown, nil
}

// maxEdits bounds the stubs of one row.
const maxEdits = 500

// title is what a conversation is called: the beginning of what was asked first.
func title(path []*node, items []item) string {
	for i, n := range path {
		if !n.asks {
			continue
		}
		var m tidemark.Message
		if json.Unmarshal(items[i].Raw, &m) != nil {
			return ""
		}
		text := strings.Join(strings.Fields(tidemark.StripReminders(m.PlainText())), " ")
		const most = 60
		if r := []rune(text); len(r) > most {
			text = string(r[:most]) + "…"
		}
		return text
	}
	return ""
}

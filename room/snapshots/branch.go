package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// BranchOptions say where a branch begins and what it is called. The zero value is an untrimmed branch of the session
// as it is now; with Trim, it is the primitive of papers/cmv §2.2.
type BranchOptions struct {
	Snapshot    string `json:"snapshot,omitempty"`    // id; "" takes one now
	Name        string `json:"name,omitempty"`        // its label; its key has it behind #, as far as a key may. A taken one is tidemark.ErrConflict; "" is made of the snapshot's
	Orientation string `json:"orientation,omitempty"` // what the branch is told before everything else
	Trim        bool   `json:"trim"`
	Threshold   int    `json:"threshold,omitempty"` // of the trim, see package compaction; 0 is its default

	// Of the snapshot that is taken where none is named.
	Of Options `json:"-"`
}

// Bounds of branches.
const (
	MaxOrientation = 8_000  // characters
	maxDepth       = 100    // branches of branches; an export that is imported into another store begins anew
	maxAlike       = 10_000 // branches whose names begin alike
)

// Branch is a branch that was made.
type Branch struct {
	Node     snapshot.Node           `json:"branch"`
	Key      tidemark.Key            `json:"key"`
	Snapshot snapshot.Node           `json:"snapshot"`       // that it began at
	Trim     *compaction.TrimMetrics `json:"trim,omitempty"` // nil: not trimmed
}

// Branch makes a session of its own that goes on from a snapshot of this conversation. It copies no message: what
// stands before the snapshot is read through it, and neither sees what the other says from then on. The orientation
// stands before its first message whatever is compacted later, until it is undone; a reset of the branch ends it.
//
// # Errors
//
// tidemark.ErrInvalid, tidemark.ErrNotFound for a snapshot that is not of this conversation, tidemark.ErrConflict for a
// name that is taken, tidemark.ErrTooLarge for a chain of branches that is too long.
func (s *Room) Branch(ctx context.Context, o BranchOptions) (Branch, error) {
	b, err := s.makeBranch(ctx, o)
	if err != nil {
		return Branch{}, fmt.Errorf("branch of %s: %w", s.Key, err)
	}
	s.tellNow(ctx, b.Snapshot, b.Node)
	s.tellBranch(b)
	return b, nil
}

// growing is a branch that is made.
type growing struct {
	BranchOptions
	from  room.Place
	stmts []tidemark.Stmt // that store the snapshot, where one is taken
	log   string
	at    time.Time
	trim  []tidemark.Overlay
	gain  *compaction.TrimMetrics
	size  tidemark.Tokens // of its context
}

func (s *Room) makeBranch(ctx context.Context, o BranchOptions) (Branch, error) {
	if err := s.may(); err != nil {
		return Branch{}, err
	}
	if err := o.check(); err != nil {
		return Branch{}, err
	}
	g := &growing{BranchOptions: o}
	var err error
	if o.Snapshot == "" {
		o.Of.more = 1
		g.from, g.stmts, err = s.takeStmts(ctx, o.Of)
		if err == nil && len(g.stmts) == 0 {
			if b, ok, err := s.firstBranch(ctx, g.from); ok || err != nil {
				return b, err
			}
		}
	} else {
		if g.from, err = s.find(ctx, o.Snapshot); err == nil {
			err = s.fits(ctx, MaxNodes, 1)
		}
	}
	if err == nil {
		err = s.mayContinue(ctx, g.from)
	}
	if err == nil {
		err = s.planTrim(ctx, g)
	}
	if err != nil {
		return Branch{}, err
	}
	const tries = 5 // others may take the names that are free
	for n := 1; ; n++ {
		b, err := s.tryBranch(ctx, g, n == tries)
		if !errors.Is(err, tidemark.ErrConflict) || snapshot.Slug(o.Name) != "" || n == tries {
			return b, err
		}
	}
}

// firstBranch is the branch that was made in one with its snapshot. What trimming did to it is not known any more.
func (s *Room) firstBranch(ctx context.Context, from room.Place) (Branch, bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT node FROM branches WHERE snapshot = ? AND key BETWEEN ? AND ? AND node <> '' ORDER BY created LIMIT 1`,
		from.ID, string(s.Key.Root())+"#", string(s.Key.Root())+"#~")
	if err != nil || len(rows) == 0 {
		return Branch{}, false, err
	}
	b := Branch{Snapshot: from.Node}
	if err := json.Unmarshal(rows[0].Bytes(0), &b.Node); err != nil {
		return Branch{}, false, fmt.Errorf("read branch of %s: %w", from.ID, err)
	}
	b.Key = tidemark.Key(b.Node.Session)
	return b, true, nil
}

func (o BranchOptions) check() error {
	if o.Name != "" {
		if err := snapshot.CheckName(o.Name); err != nil {
			return err
		}
	}
	switch {
	case !utf8.ValidString(o.Orientation):
		return fmt.Errorf("orientation: is no UTF-8: %w", tidemark.ErrInvalid)
	case utf8.RuneCountInString(o.Orientation) > MaxOrientation:
		return fmt.Errorf("orientation: over %d characters: %w", MaxOrientation, tidemark.ErrTooLarge)
	}
	return compaction.Trim{Threshold: o.Threshold}.Check()
}

// mayContinue refuses a chain of branches that is too long to be read at once.
func (s *Room) mayContinue(ctx context.Context, from room.Place) error {
	all, err := s.Log.Segments(ctx, from.Log, 0)
	if err == nil && len(all) > maxDepth {
		err = fmt.Errorf("snapshot %s: it is in a branch of %d others, at most %d: branch an earlier one, or export it and import it under another agent or on another server, where it has none before it: %w", from.ID, len(all), maxDepth, tidemark.ErrTooLarge)
	}
	return err
}

// planTrim plans the trim.
func (s *Room) planTrim(ctx context.Context, g *growing) error {
	if g.size = g.from.Tokens; !g.BranchOptions.Trim {
		return nil
	}
	overlays, gain, err := s.Past.Trim(ctx, g.from.Log, g.from.Seq, g.from.State.Pins(), g.Threshold)
	if err != nil {
		return err
	}
	g.trim, g.gain, g.size = overlays, &gain, gain.After
	return nil
}

// tryBranch makes the branch in one transaction: all of it is there, or nothing. In a crowd, a name that is made for it
// is one that nobody else comes to.
func (s *Room) tryBranch(ctx context.Context, g *growing, crowd bool) (Branch, error) {
	g.at = s.Runtime.Now()
	g.log = tidemark.NewID(g.at)
	name, key, err := s.freeName(ctx, g, crowd)
	if err != nil {
		return Branch{}, err
	}
	node := snapshot.Node{ID: string(key), Kind: snapshot.KindBranch, Of: snapshot.OfSession, Name: name, Session: string(key), Parent: g.from.ID,
		Created: g.at.UTC().Truncate(time.Millisecond), Messages: g.from.Messages, Tokens: g.size, Hash: g.from.Hash, Trimmed: g.BranchOptions.Trim}
	b := Branch{Node: node, Key: key, Snapshot: g.from.Node, Trim: g.gain}
	archived, err := s.Archived(ctx, g.from.Log, g.from.Seq)
	if err != nil {
		return Branch{}, err
	}
	stmts := append(s.stillThere(g), s.Begin(b.info(g.log, g.at), g.from)...)
	stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO branches(log, key, snapshot, orientation, archived, created, node) VALUES(?, ?, ?, ?, ?, ?, ?)`,
		Args: []any{g.log, string(key), g.from.ID, g.Orientation, archived, g.at.UnixMilli(), room.JSON(node)}, Want: 1})
	more, err := s.firstOverlays(ctx, g)
	if err != nil {
		return Branch{}, err
	}
	stmts = append(stmts, more...)
	if more, err = s.Restore(ctx, key, g.from); err != nil {
		return Branch{}, err
	}
	stmts = append(append(stmts, more...), s.tellStmts(node, "snapshot:"+node.ID)...)
	if err := s.DB.Tx(ctx, stmts); err != nil {
		if errors.Is(err, tidemark.ErrConflict) {
			if _, gone := s.find(ctx, g.from.ID); gone != nil && len(g.stmts) == 0 {
				return Branch{}, fmt.Errorf("it was removed meanwhile: %w", gone)
			}
			err = fmt.Errorf("name %q: the session %s is there already: give another name: %w", name, key, tidemark.ErrConflict)
		}
		return Branch{}, err
	}
	return b, nil
}

// info is what the directory shows of a branch that was made at a time, in a log.
func (b Branch) info(log string, at time.Time) tidemark.SessionInfo {
	return tidemark.SessionInfo{Key: b.Key, ID: log, Title: b.Node.Name, CreatedAt: at, UpdatedAt: at, Messages: b.Node.Messages, ContextTokens: b.Node.Tokens}
}

// stillThere stores the snapshot of a branch, or asks that it was not removed since it was read: nothing may hang at one
// that is gone.
func (s *Room) stillThere(g *growing) []tidemark.Stmt {
	if len(g.stmts) > 0 {
		return slices.Clone(g.stmts)
	}
	return []tidemark.Stmt{{SQL: `UPDATE snapshots SET gone = 0 WHERE id = ? AND root = ? AND gone = 0`, Args: []any{g.from.ID, string(s.Key.Root())}, Want: 1}}
}

// freeName returns the label of a branch and its key: as it was asked for, or the first that is free; in a crowd with
// letters of chance in the place of a number.
func (s *Room) freeName(ctx context.Context, g *growing, crowd bool) (string, tidemark.Key, error) {
	label := cmp.Or(g.Name, g.from.Name)
	slug := snapshot.Slug(label)
	root := string(s.Key.Root()) + "#"
	if g.Name != "" && slug != "" {
		return label, tidemark.Key(root + slug), nil
	}
	if slug == "" { // no letter that a key may have
		slug = "branch"
	}
	if crowd {
		const letters = 8
		number := "-" + strings.ToLower(g.log[len(g.log)-letters:])
		if g.Name == "" {
			label = snapshot.Numbered(label, number)
		}
		return label, tidemark.Key(root + slug + number), nil
	}
	rows, err := s.DB.Query(ctx, `SELECT key FROM heads WHERE key >= ? AND key <= ? LIMIT ?`, root+slug, root+slug+"~", maxAlike)
	if err != nil {
		return "", "", fmt.Errorf("read names of branches: %w", err)
	}
	taken := make(map[string]bool, len(rows))
	for _, r := range rows {
		taken[strings.TrimPrefix(r.Text(0), root)] = true
	}
	free, number := slug, ""
	for n := 2; taken[free]; n++ {
		number = "-" + strconv.Itoa(n)
		free = slug + number
	}
	if len(rows) == maxAlike {
		return "", "", fmt.Errorf("name %q: over %d branches begin with it: give another name: %w", slug, maxAlike, tidemark.ErrTooLarge)
	}
	if g.Name == "" {
		label = snapshot.Numbered(label, number)
	}
	return label, tidemark.Key(root + free), nil
}

// firstOverlays are what the branch shows of its base: trimmed, and behind its orientation. That is an insertion before
// the first message of the history, which no span covers: whatever leaves the view later, it stands first.
func (s *Room) firstOverlays(ctx context.Context, g *growing) ([]tidemark.Stmt, error) {
	var entries []tidemark.Entry
	add := func(o tidemark.Overlay) {
		entries = append(entries, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(g.at)), Kind: tidemark.KindOverlay, At: g.at,
			Origin: tidemark.Origin{From: tidemark.FromSystem}, Payload: []byte(room.JSON(o))})
	}
	for _, o := range g.trim {
		add(o)
	}
	if g.Orientation != "" {
		first, err := s.Log.Next(ctx, g.from.Log, 0, g.from.Seq, 1)
		if err != nil {
			return nil, err
		}
		if len(first) == 0 {
			return nil, fmt.Errorf("orientation: the snapshot %s has no message: %w", g.from.ID, tidemark.ErrInvalid)
		}
		add(tidemark.Overlay{By: []string{compaction.OrientationName}, Reason: "branch",
			Edits: []tidemark.Edit{{From: first[0].ID, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, g.Orientation)}}}})
	}
	return s.Log.AppendStmts(g.log, entries...)
}

// tellBranch tells the agent of a new session, behind what the caller waits for. If that fails the session does when it
// wakes.
func (s *Room) tellBranch(b Branch) {
	s.Runtime.Go(func() {
		rows, err := s.DB.Query(s.Life, `SELECT log FROM heads WHERE key = ? LIMIT 1`, string(b.Key))
		if err == nil && len(rows) > 0 {
			err = s.Enter(s.Life, b.info(rows[0].Text(0), b.Node.Created))
		}
		if err != nil {
			s.Warn("report branch", err)
		}
		s.Tell(s.Life)
		s.Alarm(s.Life)
	})
}

package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// sizedStep is a step with what was reported of its answer, which may stand in any track.
type sizedStep struct {
	step *step
	size tidemark.Tokens
}

// page is how many rows are read at a time.
const page = 1000

// load reads the tree that an earlier life left: names and places, no texts. It is called with the lock held.
func (c *Conversation) load(ctx context.Context) error {
	if c.loaded {
		return nil
	}
	rows, err := c.DB.Query(ctx, `SELECT n, name, log, base, steps FROM proxy_tracks WHERE key = ? ORDER BY n LIMIT ?`, string(c.Key), maxTracks)
	if err != nil {
		return fmt.Errorf("read tracks: %w", err)
	}
	l := loader{c, newTree(c.Config), map[tidemark.EntryID]sizedStep{}}
	for _, r := range rows {
		n := int(r.Int(0))
		for len(l.tracks) < n { // one that was begun and never stored
			l.tracks = append(l.tracks, newTrack(len(l.tracks)))
		}
		t := newTrack(n)
		t.name, t.log, t.after = r.Text(1), r.Text(2), int(r.Int(4))
		if b := int(r.Int(3)); b >= 0 && b < n {
			t.base = l.tracks[b]
		}
		switch err := l.track(ctx, t); {
		case errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, tidemark.ErrInvalid):
			// Its messages hold, what was decided of them is decided again.
			c.Logger.Error("a track cannot be read", "key", c.Key, "track", n, "err", err)
			t.base, t.steps, t.edits, t.release, t.anchor = nil, nil, nil, nil, nil
		case err != nil:
			return fmt.Errorf("read track %d: %w", n, err)
		}
		l.tracks = append(l.tracks, t)
	}
	known, err := host.Read(ctx, c.DB, "read explorations", host.Text, `SELECT name FROM proxy_explored WHERE key = ? ORDER BY n LIMIT ?`, string(c.Key), episodes.MaxEpisodes)
	if err != nil {
		return err
	}
	for _, n := range l.nodes {
		if s, ok := l.said[n.id]; ok {
			n.reported, s.step.said = s.size, n
		}
	}
	c.tree, c.explored, c.loaded = l.tree, explored{kept: len(known)}, true
	for _, name := range known {
		c.explored.add(name)
	}
	return nil
}

// loader reads what an earlier life left of a conversation.
type loader struct {
	c *Conversation
	*tree
	said map[tidemark.EntryID]sizedStep // answers of steps
}

// track reads the messages of a track's history and its steps.
func (l *loader) track(ctx context.Context, t *track) error {
	log := l.c.Home.Log()
	chains, err := log.Chains(ctx, t.log)
	if err != nil {
		return err
	}
	list, err := log.Skeletons(ctx, t.log, host.Range{To: 1 << 53})
	if err != nil {
		return err
	}
	if len(list) != len(chains) {
		return fmt.Errorf("%d messages have %d links: %w", len(list), len(chains), tidemark.ErrInvalid)
	}
	info, err := log.Info(ctx, t.log)
	if err != nil {
		return err
	}
	byID := map[tidemark.EntryID]*node{}
	at := l.root
	t.from = l.root
	for i, k := range list {
		n := l.nodes[chains[i]]
		if n == nil {
			n = &node{chain: chains[i], id: k.ID, parent: at, depth: at.depth + 1, at: k.At, role: k.Role, owner: t, seq: k.Seq,
				asks: k.Role == tidemark.User && len(k.Results) == 0}
			l.nodes[n.chain] = n
		}
		byID[n.id] = n
		if at = n; k.Seq <= info.BaseSeq {
			t.from = n
		}
	}
	t.leaf = at
	if at.depth > 0 {
		l.leaves[at] = t
	}
	if err := l.steps(ctx, t, byID); err != nil {
		return err
	}
	if err := l.puts(ctx, byID); err != nil {
		return err
	}
	marks, err := log.Marks(ctx, t.log)
	if err != nil {
		return err
	}
	for _, m := range marks {
		for _, e := range m.Overlay.Edits {
			if e.Block > 0 && len(m.Overlay.By) == 1 && m.Overlay.By[0] == "paging" {
				t.shown[shownKey{e.From, e.Block - 1}] = true
			}
		}
	}
	return l.edits(ctx, t, byID)
}

func (l *loader) steps(ctx context.Context, t *track, byID map[tidemark.EntryID]*node) error {
	from := -1
	for r, err := range host.Pages(ctx, l.c.DB, "read requests", page, func() []any { return []any{string(l.c.Key), t.n, from} },
		`SELECT n, record, decision FROM proxy_steps WHERE key = ? AND track = ? AND n > ? ORDER BY n LIMIT ?`) {
		if err != nil {
			return err
		}
		from = int(r.Int(0))
		var row stepRow
		if err := json.Unmarshal(r.Bytes(1), &row); err != nil {
			return fmt.Errorf("request %d: %w", from, err)
		}
		s := &step{n: from, cut: row.Cut, keep: row.Keep, release: row.Release, anchor: row.Anchor, usage: row.Usage, stored: true, line: r.Bytes(2), model: row.Model, fixed: row.Fixed, whole: row.Whole, answered: row.Answered}
		for _, name := range row.Whole {
			t.whole[name] = true
		}
		for _, id := range row.IDs {
			n := byID[id]
			if n == nil {
				return fmt.Errorf("request %d: entry %s: %w", from, id, tidemark.ErrNotFound)
			}
			s.nodes = append(s.nodes, n)
		}
		if row.Said != "" {
			l.said[row.Said] = sizedStep{s, row.Context}
		}
		t.steps, t.sum = append(t.steps, s), row.Sum
	}
	return nil
}

func (l *loader) puts(ctx context.Context, byID map[tidemark.EntryID]*node) error {
	after := ""
	for r, err := range host.Pages(ctx, l.c.DB, "read what was put", 100, func() []any { return []any{string(l.c.Key), after} },
		`SELECT entry, record FROM proxy_puts WHERE key = ? AND entry > ? ORDER BY entry LIMIT ?`) {
		if err != nil {
			return err
		}
		after = r.Text(0)
		n := byID[tidemark.EntryID(after)]
		if n == nil || n.put != nil {
			continue
		}
		n.put = new(put)
		if err := json.Unmarshal(r.Bytes(1), n.put); err != nil {
			return fmt.Errorf("what was put behind entry %s: %w", after, err)
		}
		n.putKept = true
	}
	return nil
}

func (l *loader) edits(ctx context.Context, t *track, byID map[tidemark.EntryID]*node) error {
	rows, err := host.Read(ctx, l.c.DB, "edits", host.JSON[editRow], `SELECT record FROM proxy_edits WHERE key = ? AND track = ? ORDER BY n LIMIT 20000`, string(l.c.Key), t.n)
	if err != nil {
		return err
	}
	last := t.newest()
	for _, row := range rows {
		if row.Step == last {
			t.release, t.anchor = append(t.release, row.Release...), append(t.anchor, row.Anchor...)
		}
		if a := row.Act; a != nil {
			if at := byID[a.At]; at != nil {
				a.stored = true
				at.acts = append(at.acts, a)
			}
		}
		for _, e := range row.Edits {
			if from, to := byID[e.From], byID[e.To]; from != nil && to != nil {
				t.edits = append(t.edits, edit{from, to, e.Block, e.Raw})
			}
		}
	}
	return nil
}

// ensure brings what pagers must know of messages that only the log has after a restart: of those of a track's steps, and of
// those of a request. How the client sends a message now may be another form of it.
func (c *Conversation) ensure(ctx context.Context, t *track, path []*node) error {
	list := path
	if t.pager == nil {
		list = slices.Clone(path)
		for _, s := range t.all() {
			list = append(list, s.nodes...)
		}
	}
	var missing []*node
	for _, n := range list {
		if !n.fed && n.seq != 0 {
			missing = append(missing, n)
		}
	}
	scan := paging.Scanner{Tools: c.Settings.Tools}
	return c.read(ctx, missing, func(n *node, it body.Item) {
		if n.feed(&scan, it); c.marks {
			n.work = workOf(n, it)
		}
	})
}

// read gives messages of a list as the log has them. Those that are not there are left out.
func (c *Conversation) read(ctx context.Context, list []*node, each func(*node, body.Item)) error {
	if len(list) == 0 {
		return nil
	}
	ids, byID := make([]tidemark.EntryID, len(list)), make(map[tidemark.EntryID]*node, len(list))
	for i, n := range list {
		ids[i], byID[n.id] = n.id, n
	}
	err := c.Home.Messages(ctx, ids, func(id tidemark.EntryID, m tidemark.Message) {
		each(byID[id], logged(m))
	})
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	return nil
}

// message returns one message as the log has it.
func (c *Conversation) message(ctx context.Context, id tidemark.EntryID) (m tidemark.Message, err error) {
	found := false
	err = c.Home.Messages(ctx, []tidemark.EntryID{id}, func(_ tidemark.EntryID, one tidemark.Message) { m, found = one, true })
	if err == nil && !found {
		err = tidemark.ErrNotFound
	}
	if err != nil {
		return m, fmt.Errorf("read entry %s: %w", id, err)
	}
	return m, nil
}

package channel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// Channel is a platform with what a configuration says of it.
type Channel struct {
	Platform
	Rules Rules
}

// Config is what an [Ingress] stands on. All fields are required but those that say otherwise.
type Config struct {
	DB       tidemark.DB
	Blobs    tidemark.Blobs
	Runtime  tidemark.Runtime
	Channels map[string]Channel // by name
	Desk     func(agent string) Desk
	Sessions Sessions
	// Schedule asks for a call of Wake at a time or before. It does not wait.
	Schedule func(at time.Time)
	Logger   *slog.Logger // nil: no logging; it never gets content

	// Count notes what became of an arrival on a channel: done, again, given_up, unreadable. nil: nothing
	// is counted.
	Count func(channel, outcome string)

	Width    int   // people who are served side by side, default 6: the connections of a Worker's object
	MaxShown int64 // bytes of a file that a model is shown, default 3.75 MB: 5 MB in base64
}

// Defaults and bounds of an Ingress.
const (
	defaultWidth    = 6
	defaultMaxShown = 3_932_160
	// MaxBody is the longest webhook: platforms post 3 MB at most.
	MaxBody = 3<<20 + 64<<10
	// rescue is when an alarm looks after what a life that ended left in work.
	rescue = 5 * time.Second
)

// Ingress takes webhooks, stores them, and works them off. Each has tables of its own in its database;
// it may be opened anew at any time on what another life left.
type Ingress struct {
	Config
	life context.Context

	mu      sync.Mutex // guards the following; never held over a wait
	writing bool       // somebody writes, and takes along what waits
	waiting []*change
	idle    chan struct{} // closed when the work at hand has ended; nil while there is none
	again   bool          // there is more since the work looked
	next    time.Time     // when Schedule was asked for

	more chan struct{} // has room for one: the work at hand looks again
}

// bodyTables hold what was received and not worked off.
var bodyTables = []string{
	// A webhook as it came, until all that it tells is a row of its own; a long one has a second piece.
	// due: when it is looked at, negative for one that cannot be read. ended: when it was given up.
	`CREATE TABLE channel_bodies(n INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT NOT NULL, hash TEXT NOT NULL, piece INTEGER NOT NULL DEFAULT 0,
		at INTEGER NOT NULL, bytes BLOB NOT NULL, due INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', ended INTEGER NOT NULL DEFAULT 0,
		UNIQUE(platform, hash, piece))`,
	// One thing that a webhook tells, by its name. due: when it is done, negative for one that was given up. unset: since
	// when it waits for its channel to be set up. files: how often a file of it was tried in vain.
	`CREATE TABLE channel_arrivals(n INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT NOT NULL, name TEXT NOT NULL, lane TEXT NOT NULL,
		at INTEGER NOT NULL, arrival TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, due INTEGER NOT NULL DEFAULT 0,
		error TEXT NOT NULL DEFAULT '', ended INTEGER NOT NULL DEFAULT 0, unset INTEGER NOT NULL DEFAULT 0, files INTEGER NOT NULL DEFAULT 0,
		UNIQUE(platform, name))`,
	`CREATE INDEX channel_lanes ON channel_arrivals(lane, due)`,
}

// OpenIngress opens an Ingress, for a life that ends with the context. What another life left begins
// with the next Wake.
func OpenIngress(life context.Context, c Config) (*Ingress, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Count == nil {
		c.Count = func(string, string) {}
	}
	if c.Width <= 0 {
		c.Width = defaultWidth
	}
	if c.MaxShown <= 0 {
		c.MaxShown = defaultMaxShown
	}
	return &Ingress{Config: c, life: life, more: make(chan struct{}, 1)}, host.Migrate(life, c.DB, "channel", bodyTables)
}

// Handshake answers the GET by which a platform tries its address.
func (g *Ingress) Handshake(platform string, query url.Values) (string, error) {
	c, ok := g.Channels[platform]
	if !ok {
		return "", fmt.Errorf("channel %.40q is not set up: %w", platform, tidemark.ErrNotFound)
	}
	return c.Handshake(query)
}

// Expect reports whether a webhook with such headers may be read: ErrNotFound, ErrUnauthorized.
func (g *Ingress) Expect(platform string, h http.Header) error {
	c, ok := g.Channels[platform]
	if !ok {
		return fmt.Errorf("channel %.40q is not set up: %w", platform, tidemark.ErrNotFound)
	}
	return c.Signed(h)
}

// Receive verifies a webhook and makes it durable; it returns before any work is done. The same body
// twice, while the first is in work, is one.
//
// # Errors
//
// ErrNotFound, ErrUnauthorized, ErrTooLarge; ErrUnavailable: the platform shall post it again.
func (g *Ingress) Receive(ctx context.Context, platform string, h http.Header, body []byte) error {
	c, ok := g.Channels[platform]
	switch {
	case !ok:
		return fmt.Errorf("channel %.40q is not set up: %w", platform, tidemark.ErrNotFound)
	case len(body) > MaxBody:
		return fmt.Errorf("webhook of %d bytes, at most %d: %w", len(body), MaxBody, tidemark.ErrTooLarge)
	}
	if err := c.Verify(h, body); err != nil {
		return err
	}
	if err := g.commit(ctx, len(body), bodyStmts(platform, body, g.Runtime.Now())...); err != nil { // posted again, it is one
		return fmt.Errorf("store webhook of %s: %w", platform, err)
	}
	g.Kick()
	return nil
}

// change is what is on its way to the disk.
type change struct {
	stmts []tidemark.Stmt
	bytes int
	done  chan error
}

// Bounds of what one transaction takes.
const (
	together      = 64
	togetherBytes = 4 << 20
)

// commit makes a change durable. Those that come while another is written wait and go together: a disk
// gives a few hundred transactions a second, whatever is in them. A caller that leaves does not know.
func (g *Ingress) commit(ctx context.Context, bytes int, stmts ...tidemark.Stmt) error {
	c := &change{stmts, bytes, make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	if !g.writing {
		g.writing = true
		g.Runtime.Go(g.write)
	}
	g.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write makes durable what waits until nothing does.
func (g *Ingress) write() {
	for batch := g.batch(); len(batch) > 0; batch = g.batch() {
		var all []tidemark.Stmt
		for _, c := range batch {
			all = append(all, c.stmts...)
		}
		err := g.DB.Tx(g.life, all)
		for _, c := range batch {
			if err != nil && len(batch) > 1 { // each for itself: one must not fail the others
				c.done <- g.DB.Tx(g.life, c.stmts)
				continue
			}
			c.done <- err
		}
	}
}

// batch takes what is to be written together; without any the writer ends.
func (g *Ingress) batch() []*change {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.waiting) && n < together {
		if size += g.waiting[n].bytes; n > 0 && size > togetherBytes {
			break
		}
		n++
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.writing = n > 0
	return batch
}

// bodyStmts stores a body, in pieces that a row can hold. One that was put off or given up begins anew.
func bodyStmts(platform string, body []byte, now time.Time) []tidemark.Stmt {
	const most = 1_800_000
	var stmts []tidemark.Stmt
	hash, rest := string(tidemark.HashOf(body)), body
	for piece := 0; piece == 0 || len(rest) > 0; piece++ {
		n := min(len(rest), most)
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO channel_bodies(platform, hash, piece, at, bytes) VALUES(?, ?, ?, ?, ?) ON CONFLICT(platform, hash, piece) DO UPDATE SET at = excluded.at, due = 0, error = '' WHERE due <> 0`,
			Args: []any{platform, hash, piece, now.UnixMilli(), rest[:n]}})
		rest = rest[n:]
	}
	return stmts
}

// Kick starts the work, if there is none at hand, and asks for a wake in case this life ends in it.
func (g *Ingress) Kick() {
	g.schedule(g.Runtime.Now().Add(rescue))
	g.begin()
}

// begin starts the work or tells the one at hand to look again, and returns what is closed when it ends.
func (g *Ingress) begin() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle != nil {
		g.again = true
		select {
		case g.more <- struct{}{}:
		default:
		}
		return g.idle
	}
	idle := make(chan struct{})
	g.idle, g.again = idle, false
	g.Runtime.Go(func() {
		defer g.end(idle) // behind a panic: the alarm begins anew
		for {
			err := g.work(g.life)
			if err != nil && g.life.Err() == nil {
				g.Logger.Warn("work off webhooks", "err", err)
				g.schedule(g.Runtime.Now().Add(rescue))
			}
			if g.rest(idle, err != nil) {
				return
			}
		}
	})
	return idle
}

// rest ends the work unless somebody has told of more meanwhile. Who tells later finds none at hand.
func (g *Ingress) rest(idle chan struct{}, failed bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.again && !failed {
		g.again = false
		return false
	}
	g.idle = nil
	close(idle)
	return true
}

// end ends the work if that was not done.
func (g *Ingress) end(idle chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == idle {
		g.idle = nil
		close(idle)
	}
}

// Wake works off what is due, asks for the next wake, and returns when that is, zero for never.
func (g *Ingress) Wake(ctx context.Context) (time.Time, error) {
	g.mu.Lock()
	g.next = time.Time{}
	g.mu.Unlock()
	select {
	case <-g.begin():
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	next, err := nextDue(ctx, g.DB, g.Runtime.Now())
	if err != nil || next.IsZero() {
		return next, err
	}
	if soonest := g.Runtime.Now().Add(firstPause); next.Before(soonest) { // what just failed to be done
		next = soonest
	}
	g.schedule(next)
	return next, nil
}

// Idle reports that nothing is at hand.
func (g *Ingress) Idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.idle == nil && !g.writing
}

// schedule asks for a wake, unless an earlier one was asked for.
func (g *Ingress) schedule(at time.Time) {
	g.mu.Lock()
	now := g.Runtime.Now()
	if !g.next.IsZero() && g.next.After(now) && !at.Before(g.next) {
		g.mu.Unlock()
		return
	}
	g.next = at
	g.mu.Unlock()
	g.Schedule(at)
}

// nextDue returns when the next body or arrival is due.
func nextDue(ctx context.Context, db tidemark.DB, now time.Time) (time.Time, error) {
	ms, err := host.Number(ctx, db, "look what is due", `SELECT min(CASE WHEN due > ? THEN 1 ELSE max(due, 1) END) FROM (SELECT due FROM channel_bodies WHERE due >= 0 AND piece = 0 UNION ALL SELECT due FROM channel_arrivals WHERE due >= 0) LIMIT 1`,
		now.Add(farOff).UnixMilli())
	if err != nil || ms == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(ms), nil
}

// Left returns when an Ingress that is to be opened on a database has something to do, zero for never;
// it changes nothing.
func Left(ctx context.Context, db tidemark.DB, now time.Time) (time.Time, error) {
	if there, err := host.HasTable(ctx, db, "channel_arrivals"); err != nil || !there {
		return time.Time{}, err
	}
	return nextDue(ctx, db, now)
}

// permanent reports a failure that trying again does not mend.
func permanent(err error) bool {
	for _, e := range []error{tidemark.ErrInvalid, tidemark.ErrTooLarge, tidemark.ErrForbidden, tidemark.ErrNotFound} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

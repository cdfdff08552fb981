package channel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of the work.
const (
	maxLanes   = 256 // people whose turn is looked up at once
	maxLane    = 64  // arrivals of one that are done before others come
	firstPause = time.Second
	lastPause  = 30 * time.Minute
	farOff     = 2 * lastPause // nothing is put off so long: the clock was ahead
	maxTries   = 40            // some 16 hours
	maxOddTry  = 3             // of what trying again does not mend
	aliasTries = 8             // some four minutes, in which what people write waits for an alias
	keepDead   = 30 * 24 * time.Hour
	keepUnset  = 7 * 24 * time.Hour // what came waits for its channel to be set up
	maxError   = 300
)

// work does what is due until nothing is: one lane after another in a goroutine each, Width at a time.
// A lane is a person or a group; what tells that a name has changed goes before them all.
func (g *Ingress) work(ctx context.Context) error {
	done := make(chan string, g.Width)
	busy := map[string]bool{}
	waits := map[string]bool{} // lanes that were found due while they were busy
	var ready []string
	var failed error
	for look := true; ; {
		if look && len(ready) == 0 && failed == nil && ctx.Err() == nil {
			ready, failed = g.look(ctx)
			look = false
		}
		for len(ready) > 0 && len(busy) < g.Width {
			lane := ready[0]
			ready = ready[1:]
			if busy[lane] {
				waits[lane] = true
				continue
			}
			busy[lane] = true
			g.Runtime.Go(func() {
				defer func() { done <- lane }()
				g.drive(ctx, lane)
			})
		}
		if len(busy) == 0 {
			return failed
		}
		select {
		case lane := <-done:
			delete(busy, lane)
			look = look || waits[lane] || len(busy) == 0 // of what comes meanwhile, more tells
			delete(waits, lane)
		case <-g.more:
			look = true
		}
	}
}

// look unpacks the bodies that wait, does the aliases, puts what people wrote into their lanes, and returns
// the lanes that have something due.
func (g *Ingress) look(ctx context.Context) ([]string, error) {
	for {
		found, err := g.unpack(ctx)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
	}
	for { // as long as there are more than are looked up at once
		if err := g.aliases(ctx); err != nil {
			return nil, err
		}
		lanes, err := g.lanes(ctx)
		if err != nil {
			return nil, err
		}
		unnamed := slices.DeleteFunc(slices.Clone(lanes), func(l string) bool { return !strings.HasPrefix(l, laneNames) })
		if len(unnamed) == 0 {
			return slices.DeleteFunc(lanes, func(l string) bool { return strings.HasPrefix(l, laneAlias) }), nil
		}
		if err := g.assign(ctx, unnamed); err != nil {
			return nil, err
		}
	}
}

// aliases does what tells that names have changed. Where that fails, what people of the platform wrote since
// waits with it for a while: by the old names, who has a new number would be a stranger.
func (g *Ingress) aliases(ctx context.Context) error {
	for driven := false; ; driven = true {
		rows, err := g.DB.Query(ctx, `SELECT lane, platform, max(`+isDue+`), max(due), (SELECT tries FROM channel_arrivals AS h WHERE h.lane = a.lane AND h.due >= 0 ORDER BY h.at, h.n LIMIT 1)
			FROM channel_arrivals AS a WHERE lane >= ? AND lane < ? AND due >= 0 GROUP BY lane LIMIT ?`, append(g.dueArgs(), laneAlias, past(laneAlias), maxLanes)...)
		if err != nil {
			return fmt.Errorf("look up aliases: %w", err)
		}
		due := slices.DeleteFunc(slices.Clone(rows), func(r tidemark.Row) bool { return r.Int(2) == 0 })
		if driven || len(due) == 0 {
			return g.hold(ctx, rows)
		}
		for _, r := range due {
			for g.drive(ctx, r.Text(0)) {
			}
		}
	}
}

// hold puts off what nobody was asked about yet, as long as the aliases of its platform.
func (g *Ingress) hold(ctx context.Context, aliases []tidemark.Row) error {
	var stmts []tidemark.Stmt
	for _, r := range aliases {
		if r.Int(4) >= aliasTries {
			continue
		}
		names := laneNames + r.Text(1) + "/"
		now := g.Runtime.Now()
		due := min(max(r.Int(3), now.Add(firstPause).UnixMilli()), now.Add(lastPause).UnixMilli())
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE channel_arrivals SET due = ? WHERE lane >= ? AND lane < ? AND due >= 0 AND due < ?`, Args: []any{due, names, past(names), due}})
		g.schedule(time.UnixMilli(due))
	}
	if len(stmts) == 0 {
		return nil
	}
	return g.commit(ctx, 0, stmts...)
}

// past is what comes behind all that begins with a prefix that ends in a slash.
func past(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" }

// assign puts what people wrote into the lanes of those people, whatever names they came by. It is done behind
// the aliases, Width at a time: the desk may live elsewhere.
func (g *Ingress) assign(ctx context.Context, unnamed []string) error {
	found := make([]tidemark.Stmt, len(unnamed))
	failed := make([]error, len(unnamed))
	turns, left := make(chan struct{}, g.Width), make(chan struct{}, len(unnamed))
	for i, lane := range unnamed {
		turns <- struct{}{}
		g.Runtime.Go(func() {
			defer func() { <-turns; left <- struct{}{} }()
			found[i], failed[i] = g.laneStmt(ctx, lane)
		})
	}
	for range unnamed {
		<-left
	}
	return errors.Join(errors.Join(failed...), g.commit(ctx, 0, slices.DeleteFunc(found, func(s tidemark.Stmt) bool { return s.SQL == "" })...))
}

// laneStmt asks whose a lane is. Where that cannot be said, its head has failed; it moves behind what its
// person has put off.
func (g *Ingress) laneStmt(ctx context.Context, lane string) (tidemark.Stmt, error) {
	platform, names, _ := strings.Cut(strings.TrimPrefix(lane, laneNames), "/")
	person, err := g.who(ctx, platform, strings.Split(names, "\n"))
	if err != nil {
		t, _, broken := g.head(ctx, lane)
		if t == nil {
			return tidemark.Stmt{}, broken
		}
		return tidemark.Stmt{}, g.settle(ctx, lane, t, err)
	}
	to := laneFrom + platform + "/" + person.Name
	return tidemark.Stmt{SQL: `UPDATE channel_arrivals SET lane = ?, due = max(due, coalesce((SELECT max(due) FROM channel_arrivals WHERE lane = ?), 0)) WHERE lane = ? AND due >= 0`,
		Args: []any{to, to, lane}}, nil
}

// who asks the desk of a channel for a person, whom it remembers when they are welcome.
func (g *Ingress) who(ctx context.Context, platform string, names []string) (Person, error) {
	c, ok := g.Channels[platform]
	if !ok {
		return Person{}, fmt.Errorf("%w: %w", errUnset, tidemark.ErrUnavailable)
	}
	meet := !strings.HasPrefix(names[0], groupName) && c.Rules.Welcome(names)
	return g.Desk(c.Rules.Agent).Who(ctx, platform, names, meet)
}

// isDue is what is due in SQL, with dueArgs. What a clock that was ahead has put off is due as soon as the
// clock is right: else its people would be silent for as long as it was ahead.
const isDue = `due >= 0 AND (due <= ? OR due > ?)`

func (g *Ingress) dueArgs() []any {
	now := g.Runtime.Now()
	return []any{now.UnixMilli(), now.Add(farOff).UnixMilli()}
}

// lanes lists those that have something due, in the order of what came first.
func (g *Ingress) lanes(ctx context.Context) ([]string, error) {
	return host.Read(ctx, g.DB, "look up lanes", host.Text, `SELECT lane FROM channel_arrivals WHERE `+isDue+` GROUP BY lane ORDER BY min(n) LIMIT ?`, append(g.dueArgs(), maxLanes)...)
}

// Lanes of what no person wrote.
const (
	laneAlias  = "alias/" // a channel
	laneStatus = "status/"
	laneFrom   = "from/"  // a channel, and the desk's name of a person or a group
	laneNames  = "names/" // a channel, and the names that came: the desk was not asked yet
)

// lane names what an arrival waits for: whatever else is for the same person.
func (a Arrival) lane(platform string) string {
	switch {
	case a.Alias != nil:
		return laneAlias + platform
	case a.Status != nil:
		key, _ := tidemark.RefKey(a.Status.Ref)
		return laneStatus + string(key)
	case a.Message.Group != "":
		return laneNames + platform + "/" + groupName + a.Message.Group
	}
	return laneNames + platform + "/" + strings.Join(a.Message.From, "\n")
}

// name is what makes an arrival that comes twice one.
func (a Arrival) name(raw []byte) string {
	switch {
	case a.Message != nil && a.Message.ID != "":
		return "message/" + a.Message.ID
	case a.Status != nil && a.Status.ID != "":
		return "status/" + a.Status.Status + "/" + a.Status.ID
	}
	return "hash/" + string(tidemark.HashOf(raw))
}

// arrivalStmt stores an arrival. Where something of its lane is put off, it waits behind that. One that was
// given up begins anew.
func (g *Ingress) arrivalStmt(platform string, a Arrival) tidemark.Stmt {
	raw, err := json.Marshal(a)
	due, note := int64(0), ""
	if err == nil && len(raw) > tidemark.MaxRow-8<<10 {
		err = fmt.Errorf("%d bytes: %w", len(raw), tidemark.ErrTooLarge)
	}
	if err != nil { // kept as a trace
		g.Logger.Error("an arrival cannot be stored", "channel", platform, "err", err)
		due, note, raw = -1, clip.To(err.Error(), maxError), []byte("{}")
	}
	lane := a.lane(platform)
	return tidemark.Stmt{SQL: `INSERT INTO channel_arrivals(platform, name, lane, at, arrival, due, ended, error)
		SELECT ?, ?, ?, ?, ?, CASE WHEN CAST(? AS INTEGER) < 0 THEN -1 ELSE coalesce((SELECT max(due) FROM channel_arrivals WHERE lane = ? AND due > 0), 0) END, ?, ?
		WHERE true ON CONFLICT(platform, name) DO UPDATE SET lane = excluded.lane, arrival = excluded.arrival, tries = 0, unset = 0, files = 0, due = excluded.due, error = excluded.error WHERE due < 0`,
		Args: []any{platform, a.name(raw), lane, a.order(), string(raw), due, lane, g.Runtime.Now().UnixMilli(), note}}
}

// task is an arrival that is due.
type task struct {
	n        int64
	platform string
	tries    int
	files    int   // tries that a file of it failed
	unset    int64 // since when its channel is not set up; 0: it is
	arrival  Arrival
}

// drive does what is due of a lane, in order, until something fails or, then it returns true, others should
// have their turn.
func (g *Ingress) drive(ctx context.Context, lane string) bool {
	last := false
	for range maxLane {
		if last { // what comes meanwhile is found by the next look
			return false
		}
		var t *task
		var err error
		t, last, err = g.head(ctx, lane)
		if err != nil && t != nil { // it cannot be read, ever
			err = g.settle(ctx, lane, t, fmt.Errorf("%w: %w", err, tidemark.ErrInvalid))
		} else if t != nil {
			err = g.settle(ctx, lane, t, g.safely(ctx, t))
		}
		if err != nil || t == nil {
			if err != nil && ctx.Err() == nil {
				g.Logger.Warn("work off an arrival", "lane", laneKind(lane), "err", err)
				g.schedule(g.Runtime.Now().Add(lastPause / 60))
			}
			return false
		}
	}
	return !last
}

// head returns the first of a lane that is due, nil for none, and whether it is the last, too.
func (g *Ingress) head(ctx context.Context, lane string) (t *task, last bool, err error) {
	args := append([]any{lane}, g.dueArgs()...)
	r, err := host.First(ctx, g.DB, "look up a lane", `SELECT n, platform, tries, arrival, files, unset, (SELECT count(*) FROM (SELECT 1 FROM channel_arrivals WHERE lane = ? AND `+isDue+` LIMIT 2))
		FROM channel_arrivals WHERE lane = ? AND `+isDue+` ORDER BY at, n LIMIT 1`, append(args, args...)...)
	if r == nil {
		return nil, true, err
	}
	t = &task{n: r.Int(0), platform: r.Text(1), tries: int(r.Int(2)), files: int(r.Int(4)), unset: r.Int(5)}
	return t, r.Int(6) == 1, json.Unmarshal(r.Bytes(3), &t.arrival)
}

// safely does an arrival; one that panics must not end the work of all others.
func (g *Ingress) safely(ctx context.Context, t *task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v: %w", p, tidemark.ErrInvalid)
		}
	}()
	return g.do(ctx, t)
}

// settle notes what became of an arrival: done, put off with all of its lane, or given up visibly. It
// returns an error when the lane is not to go on.
func (g *Ingress) settle(ctx context.Context, lane string, t *task, failed error) error {
	if failed == nil {
		g.Count(t.platform, "done")
		return g.commit(ctx, 0, tidemark.Stmt{SQL: `DELETE FROM channel_arrivals WHERE n = ?`, Args: []any{t.n}})
	}
	if ctx.Err() != nil { // a life that ends is no failure
		return context.Cause(ctx)
	}
	now := g.Runtime.Now()
	tries := t.tries + 1
	waits, pause := waiting(t, failed, now)
	if waits {
		tries = t.tries
	}
	if !waits && errors.Is(failed, errUnset) || tries >= maxTries || permanent(failed) && tries >= maxOddTry {
		g.Count(t.platform, "given_up")
		g.Logger.Error("an arrival is given up", "channel", t.platform, "n", t.n, "tries", tries, "err", clip.To(failed.Error(), maxError))
		return g.DB.Tx(ctx, []tidemark.Stmt{
			{SQL: `DELETE FROM channel_arrivals WHERE due < 0 AND ended < ?`, Args: []any{now.Add(-keepDead).UnixMilli()}},
			{SQL: `UPDATE channel_arrivals SET tries = ?, due = -1, ended = ?, error = ? WHERE n = ?`, Args: []any{tries, now.UnixMilli(), clip.To(failed.Error(), maxError), t.n}},
		})
	}
	g.Count(t.platform, "again")
	due := now.Add(pause)
	err := g.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `UPDATE channel_arrivals SET tries = ?, files = files + ?, error = ? WHERE n = ?`, Args: []any{tries, errors.Is(failed, errFile), clip.To(failed.Error(), maxError), t.n}},
		{SQL: `UPDATE channel_arrivals SET due = ?, unset = CASE WHEN ? = 0 THEN 0 WHEN unset BETWEEN 1 AND ? THEN unset ELSE ? END WHERE lane = ? AND due >= 0`,
			Args: []any{due.UnixMilli(), waits, now.UnixMilli(), now.UnixMilli(), lane}},
	})
	if err != nil {
		return err
	}
	g.schedule(due)
	g.Logger.Warn("an arrival is tried again", "channel", t.platform, "n", t.n, "tries", tries, "err", clip.To(failed.Error(), maxError))
	return nil // head finds nothing due
}

// waiting reports whether an arrival waits for its channel to be set up, which is no try of it and ends after
// keepUnset, and how long the next try is put off.
func waiting(t *task, failed error, now time.Time) (bool, time.Duration) {
	if !errors.Is(failed, errUnset) {
		return false, min(lastPause, firstPause<<min(t.tries, 20))
	}
	waited := time.Duration(0)
	if t.unset > 0 {
		waited = max(0, now.Sub(time.UnixMilli(t.unset)))
	}
	return waited < keepUnset, min(lastPause, max(firstPause, waited))
}

// Stuck is an arrival or a webhook that was given up.
type Stuck struct {
	N       int64     `json:"n"`
	Channel string    `json:"channel"`
	Tries   int       `json:"tries,omitempty"`
	Error   string    `json:"error"`
	At      time.Time `json:"at,omitzero"` // when
}

// GivenUp lists what was given up in a database, newest first. One that holds no Ingress has nothing.
func GivenUp(ctx context.Context, db tidemark.DB) ([]Stuck, error) {
	if there, err := host.HasTable(ctx, db, "channel_arrivals"); err != nil || !there {
		return nil, err
	}
	return host.Read(ctx, db, "list what was given up", func(r tidemark.Row) (Stuck, error) {
		return Stuck{N: r.Int(0), Channel: r.Text(1), Tries: int(r.Int(2)), Error: r.Text(3), At: host.UTC(r.Int(4))}, nil
	}, `SELECT n, platform, tries, error, ended FROM channel_arrivals WHERE due < 0
		UNION ALL SELECT n, platform, 0, error, ended FROM channel_bodies WHERE due < 0 AND piece = 0 ORDER BY ended DESC, n DESC LIMIT ?`, maxListed)
}

func laneKind(lane string) string {
	kind, _, _ := strings.Cut(lane, "/")
	return kind
}

var errUnset = errors.New("the channel is not set up")

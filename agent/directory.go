package agent

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Report brings the directory and the archive index up to date. A report that arrives after a newer
// one changes nothing; an archive reported twice is one. With no key in info only the archives count.
func (d *directory) Report(ctx context.Context, info tidemark.SessionInfo, archives []archive.Info) error {
	var stmts []tidemark.Stmt
	if info.Key != "" {
		if info.Key.Agent() != d.cfg.Name {
			return fmt.Errorf("report session %.80q to agent %s: %w", info.Key, d.cfg.Name, tidemark.ErrForbidden)
		}
		raw, err := json.Marshal(info)
		if err != nil {
			return fmt.Errorf("report session %s: %w", info.Key, err)
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL: `INSERT INTO agent_sessions(agent, key, updated, info) VALUES(?, ?, ?, ?)
				ON CONFLICT(agent, key) DO UPDATE SET updated = excluded.updated, info = excluded.info WHERE excluded.updated >= agent_sessions.updated`,
			Args: []any{d.cfg.Name, string(info.Key), info.UpdatedAt.UnixMilli(), string(raw)},
		})
	}
	for _, i := range archives {
		agent, _, _, ok := archive.ParseKey(i.Key)
		if !ok || agent != d.cfg.Name {
			return fmt.Errorf("report archive %.120q to agent %s: want a key of one of its archives: %w", i.Key, d.cfg.Name, tidemark.ErrInvalid)
		}
		raw, err := json.Marshal(i)
		if err != nil {
			return fmt.Errorf("report archive %s: %w", i.Key, err)
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL:  `INSERT INTO agent_archives(agent, key, at, info) VALUES(?, ?, ?, ?) ON CONFLICT(agent, key) DO NOTHING`,
			Args: []any{d.cfg.Name, i.Key, i.At.UnixMilli(), string(raw)},
		})
	}
	if len(stmts) == 0 {
		return nil
	}
	if err := d.cfg.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("report session %s: %w", info.Key, err)
	}
	if len(archives) > 0 {
		if err := d.files.indexPending(ctx); err != nil {
			d.cfg.Logger.Warn("index archives", "agent", d.cfg.Name, "err", err)
		}
		d.schedule(d.files.next(ctx))
	}
	return nil
}

// Sessions lists the directory, last active first. next is empty on the last page.
func (d *directory) Sessions(ctx context.Context, cursor string, limit int) (page []tidemark.SessionInfo, next string, err error) {
	limit = pageLimit(limit)
	ms, key, _ := strings.Cut(cursor, "@")
	before, err := parseCursor(ms)
	if err != nil {
		return nil, "", err
	}
	all, err := host.Read(ctx, d.cfg.DB, "list sessions", host.JSON[tidemark.SessionInfo], `SELECT info FROM agent_sessions WHERE agent = ? AND (updated < ? OR updated = ? AND key > ?)
		ORDER BY updated DESC, key LIMIT ?`, d.cfg.Name, before, before, key, limit+1)
	page, next = paged(all, limit, func(i tidemark.SessionInfo) string { return fmt.Sprintf("%d@%s", i.UpdatedAt.UnixMilli(), i.Key) })
	return page, next, err
}

// Session returns one row of the directory; an unknown key is ErrNotFound.
func (d *directory) Session(ctx context.Context, key tidemark.Key) (tidemark.SessionInfo, error) {
	return host.One(ctx, d.cfg.DB, "read directory", fmt.Sprintf("session %.200q", string(key)), host.JSON[tidemark.SessionInfo], `SELECT info FROM agent_sessions WHERE agent = ? AND key = ? LIMIT 1`, d.cfg.Name, string(key))
}

// Archives lists the index of archives, newest first, with those that are not in it yet on the
// first page.
func (d *directory) Archives(ctx context.Context, opt archive.ListOptions) (page []archive.Info, next string, err error) {
	waiting, err := host.Read(ctx, d.cfg.DB, "list archives", host.JSON[archive.Info], `SELECT info FROM agent_archives WHERE agent = ? AND indexed = 0 ORDER BY at DESC LIMIT ?`, d.cfg.Name, flushPage)
	if err != nil {
		return nil, "", err
	}
	if page, next, err = archive.List(ctx, d.cfg.Blobs, d.cfg.Name, opt); err != nil || opt.Cursor != "" {
		return page, next, err
	}
	for _, i := range slices.Backward(waiting) {
		listed := slices.ContainsFunc(page, func(p archive.Info) bool { return p.Key == i.Key })
		if !listed && (opt.Session == "" || opt.Session == i.Session) {
			page = slices.Insert(page, 0, i)
		}
	}
	return page, next, nil
}

// Mend compares the bucket with the index of archives, see [archive.Mend]. What was reported and only
// waits to be indexed is not called lost.
func (d *directory) Mend(ctx context.Context, b archive.Bounds) (archive.Survey, error) {
	waiting, err := host.Read(ctx, d.cfg.DB, "mend index", host.Text, `SELECT key FROM agent_archives WHERE agent = ? AND indexed = 0 LIMIT ?`, d.cfg.Name, flushPage)
	if err != nil {
		return archive.Survey{}, err
	}
	s, err := archive.Mend(ctx, d.cfg.Blobs, d.cfg.Name, b)
	s.Added = slices.DeleteFunc(s.Added, func(key string) bool { return slices.Contains(waiting, key) })
	if err == nil && len(s.Added) > 0 {
		d.cfg.Logger.Warn("archives were not in the index", "agent", d.cfg.Name, "added", len(s.Added), "first", s.Added[0])
	}
	return s, err
}

const (
	defaultPage = 100
	maxPage     = 1000
)

func pageLimit(n int) int {
	if n <= 0 {
		return defaultPage
	}
	return min(n, maxPage)
}

// parseCursor reads the number of a cursor; empty is before everything.
func parseCursor(s string) (int64, error) {
	if s == "" {
		return math.MaxInt32 << 20, nil // the year 73,000 in milliseconds, and exact as a float
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cursor %.40q: give back what the last page returned: %w", s, tidemark.ErrInvalid)
	}
	return n, nil
}

// paged cuts what was read, one more than a page, to the page and the cursor of the next: that of the last of it.
func paged[T any](all []T, limit int, cursor func(T) string) (page []T, next string) {
	switch {
	case len(all) == 0:
		return nil, ""
	case len(all) <= limit:
		return all, ""
	}
	return all[:limit], cursor(all[limit-1])
}

// addName notes that an agent of a name is there.
func (a *Agent) addName(ctx context.Context, name string) error {
	if !validName(name) {
		return fmt.Errorf("agent name %.80q: %w", name, tidemark.ErrInvalid)
	}
	return a.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO agent_names(name) VALUES(?) ON CONFLICT(name) DO NOTHING`, Args: []any{name}}})
}

// maxNames bounds the agents that are listed.
const maxNames = 1000

// Names lists the agents that told this one of themselves.
func (a *Agent) Names(ctx context.Context) ([]string, error) {
	return host.Read(ctx, a.cfg.DB, "list agents", host.Text, `SELECT name FROM agent_names ORDER BY name LIMIT ?`, maxNames)
}

// Exists reports whether a database is that of an agent: one that somebody has told something. It
// changes nothing.
func Exists(ctx context.Context, db tidemark.DB) (bool, error) {
	return host.HasTable(ctx, db, "agent_sessions")
}

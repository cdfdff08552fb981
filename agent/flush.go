package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

const (
	// DefaultFlush is the shortest time between two writes of one object: R2 takes one a second
	// (https://developers.cloudflare.com/r2/platform/limits/).
	DefaultFlush = 2 * time.Second
	maxBackoff   = 5 * time.Minute
	// clockSlack is how far ahead a planned write may lie; beyond it the clock was moved back.
	clockSlack  = 2 * maxBackoff
	flushTries  = 8   // of a write that a person or another process races with
	flushPage   = 500 // sections in one write
	wakePaths   = 200 // files in one Wake
	keepDone    = 30 * 24 * time.Hour
	markdown    = "text/markdown; charset=utf-8"
	indexMarker = "index" // the row of agent_writes for the index of archives
)

// claim takes the right to write an object now: one writer wins, and nobody else does for two
// seconds. Otherwise it is ErrConflict.
func (a *files) claim(ctx context.Context, path string) error {
	now := a.now()
	return a.cfg.DB.Tx(ctx, []tidemark.Stmt{{
		SQL: `INSERT INTO agent_writes(agent, path, next) VALUES(?, ?, ?) ON CONFLICT(agent, path) DO UPDATE SET next = excluded.next
			WHERE agent_writes.next <= ? OR agent_writes.next > ?`,
		Args: []any{a.cfg.Name, path, now.Add(a.cfg.FlushEvery).UnixMilli(), now.UnixMilli(), now.Add(clockSlack).UnixMilli()}, Want: 1,
	}})
}

// settle records how a claimed write ended, and when the next may be tried.
func (a *files) settle(ctx context.Context, path string, failed error) error {
	now := a.now()
	stmt := tidemark.Stmt{SQL: `UPDATE agent_writes SET fails = 0 WHERE agent = ? AND path = ? AND fails > 0`, Args: []any{a.cfg.Name, path}}
	if failed != nil {
		a.cfg.Logger.Warn("write memory", "agent", a.cfg.Name, "path", path, "err", failed)
		stmt = tidemark.Stmt{
			SQL:  `UPDATE agent_writes SET fails = fails + 1, next = ? + MIN(?, ? * (1 << MIN(fails, 10))) WHERE agent = ? AND path = ?`,
			Args: []any{now.UnixMilli(), maxBackoff.Milliseconds(), a.cfg.FlushEvery.Milliseconds(), a.cfg.Name, path},
		}
	}
	return a.cfg.DB.Tx(ctx, []tidemark.Stmt{stmt})
}

// guarded does a write if it is allowed now. A failure is logged and planned again, never returned:
// what is to be written is durable already.
func (a *files) guarded(ctx context.Context, path string, write func() error) {
	if !a.held().IsZero() {
		return
	}
	err := a.claim(ctx, path)
	if errors.Is(err, tidemark.ErrConflict) {
		return
	}
	if err == nil {
		err = a.settle(ctx, path, write())
	}
	a.hold(err)
}

// hold keeps an agent from all writes for a while when its database takes no claim or what came of it, as on a
// full disk: what cannot be written down is tried ever more rarely all the same. The first failure is logged, and
// then one in maxBackoff. It returns until when it keeps it.
func (a *files) hold(failed error) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if failed == nil {
		a.fails, a.until = 0, time.Time{}
		return a.until
	}
	pause := min(a.cfg.FlushEvery<<min(a.fails, 16), maxBackoff)
	a.until = a.now().Add(pause)
	if a.fails++; a.fails == 1 || pause == maxBackoff {
		a.cfg.Logger.Warn("write memory later", "agent", a.cfg.Name, "tries", a.fails, "err", failed)
	}
	return a.until
}

// held is until when nothing is written, zero for now.
func (a *files) held() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wait := a.until.Sub(a.now()); wait <= 0 || wait > maxBackoff { // the clock was set back
		return time.Time{}
	}
	return a.until
}

// flushSoon writes a file now or asks for a Wake that does. The alarm stands before the write begins: a
// crash in the middle must not leave the file to the nightly sweep.
func (a *files) flushSoon(ctx context.Context, path string) {
	a.schedule(a.now().Add(a.cfg.FlushEvery))
	a.guarded(ctx, path, func() error { return a.flush(ctx, path) })
	a.schedule(a.next(ctx))
}

// flush puts all pending sections of a file into it with one write. What others wrote meanwhile is
// read again and kept.
func (a *files) flush(ctx context.Context, path string) error {
	for range flushTries {
		sections, err := a.pending(ctx, path)
		if err != nil || len(sections) == 0 {
			return err
		}
		file, opt, err := a.load(ctx, path)
		if err != nil {
			return err
		}
		out := memory.Append(file, a.cfg.Zone, sections...)
		if len(out) > memory.MaxFile {
			return fmt.Errorf("file %s would have %d bytes, at most %d: %w", path, len(out), memory.MaxFile, tidemark.ErrTooLarge)
		}
		if !bytes.Equal(out, file) {
			opt.ContentType = markdown
			_, err = a.cfg.Blobs.Put(ctx, a.blobKey(path), bytes.NewReader(out), int64(len(out)), opt)
		}
		if errors.Is(err, tidemark.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		return a.flushed(ctx, path, sections)
	}
	return fmt.Errorf("file %s was changed by others %d times in a row: %w", path, flushTries, tidemark.ErrConflict)
}

// pending returns the sections that a file still has to take up, oldest first.
func (a *files) pending(ctx context.Context, path string) ([]memory.Section, error) {
	return a.sectionRows(ctx, `SELECT body FROM agent_sections WHERE agent = ? AND path = ? AND done = 0 ORDER BY at, id LIMIT ?`, a.cfg.Name, path, flushPage)
}

func (a *files) sectionRows(ctx context.Context, sql string, args ...any) ([]memory.Section, error) {
	rows, err := a.cfg.DB.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read sections: %w", err)
	}
	sections := make([]memory.Section, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Bytes(0), &sections[i]); err != nil {
			return nil, fmt.Errorf("read sections: %w", err)
		}
	}
	return sections, nil
}

func (a *files) flushed(ctx context.Context, path string, sections []memory.Section) error {
	stmts := make([]tidemark.Stmt, len(sections))
	for i, s := range sections {
		stmts[i] = tidemark.Stmt{SQL: `UPDATE agent_sections SET done = ? WHERE agent = ? AND path = ? AND id = ? AND done = 0`,
			Args: []any{a.now().UnixMilli(), a.cfg.Name, path, s.ID}}
	}
	return a.cfg.DB.Tx(ctx, stmts)
}

// load reads a file, empty when there is none, and the condition under which it is still that.
func (a *files) load(ctx context.Context, path string) ([]byte, tidemark.PutOptions, error) {
	return a.loadUnless(ctx, path, func(string) bool { return false })
}

// loadUnless is load for who may have the version that is there: then it is not read.
func (a *files) loadUnless(ctx context.Context, path string, have func(etag string) bool) ([]byte, tidemark.PutOptions, error) {
	o, body, err := a.cfg.Blobs.Get(ctx, a.blobKey(path))
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil, tidemark.PutOptions{IfAbsent: true}, nil
	}
	if err != nil {
		return nil, tidemark.PutOptions{}, err
	}
	defer body.Close()
	if have(o.ETag) {
		return nil, tidemark.PutOptions{IfMatch: o.ETag}, nil
	}
	data, err := io.ReadAll(io.LimitReader(body, memory.MaxFile+1))
	if err != nil {
		return nil, tidemark.PutOptions{}, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > memory.MaxFile {
		return nil, tidemark.PutOptions{}, fmt.Errorf("file %s has more than %d bytes: %w", path, memory.MaxFile, tidemark.ErrTooLarge)
	}
	return data, tidemark.PutOptions{IfMatch: o.ETag}, nil
}

// current is a file as it will be once its pending sections are in it. They are read first, so that
// one which is flushed meanwhile is found in the file.
func (a *files) current(ctx context.Context, path string) ([]byte, tidemark.PutOptions, error) {
	sections, err := a.pending(ctx, path)
	if err != nil {
		return nil, tidemark.PutOptions{}, err
	}
	file, opt, err := a.load(ctx, path)
	if err != nil {
		return nil, opt, err
	}
	return memory.Append(file, a.cfg.Zone, sections...), opt, nil
}

// next is when the earliest pending write is allowed; zero when nothing is pending.
func (a *files) next(ctx context.Context) time.Time {
	rows, err := a.cfg.DB.Query(ctx, `SELECT MIN(COALESCE(w.next, 0)) FROM
		(SELECT DISTINCT path FROM agent_sections WHERE agent = ? AND done = 0
		 UNION SELECT ? FROM agent_archives WHERE agent = ? AND indexed = 0) p
		LEFT JOIN agent_writes w ON w.agent = ? AND w.path = p.path HAVING COUNT(*) > 0 LIMIT 1`, a.cfg.Name, indexMarker, a.cfg.Name, a.cfg.Name)
	now := a.now()
	switch {
	case err != nil:
		return a.hold(fmt.Errorf("plan wake: %w", err))
	case len(rows) == 0:
		return time.Time{}
	}
	if until := a.held(); !until.IsZero() {
		return until
	}
	at := time.UnixMilli(rows[0].Int(0))
	if at.Before(now) || at.After(now.Add(clockSlack)) {
		return now
	}
	return at
}

// indexPending adds archives to the index that are not in it.
func (a *files) indexPending(ctx context.Context) error {
	rows, err := a.cfg.DB.Query(ctx, `SELECT key, info FROM agent_archives WHERE agent = ? AND indexed = 0 ORDER BY at LIMIT ?`, a.cfg.Name, flushPage)
	if err != nil || len(rows) == 0 {
		return err
	}
	infos := make([]archive.Info, len(rows))
	done := make([]tidemark.Stmt, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Bytes(1), &infos[i]); err != nil {
			return fmt.Errorf("read archive %s: %w", r.Text(0), err)
		}
		done[i] = tidemark.Stmt{SQL: `UPDATE agent_archives SET indexed = 1 WHERE agent = ? AND key = ?`, Args: []any{a.cfg.Name, r.Text(0)}}
	}
	a.guarded(ctx, indexMarker, func() error {
		if err := archive.Index(ctx, a.cfg.Blobs, a.cfg.Name, infos...); err != nil {
			return err
		}
		return a.cfg.DB.Tx(ctx, done)
	})
	return nil
}

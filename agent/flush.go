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
	"github.com/tidemark-ai/tidemark/host"
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
func (fs *files) claim(ctx context.Context, path string) error {
	now := fs.now()
	return fs.cfg.DB.Tx(ctx, []tidemark.Stmt{{
		SQL: `INSERT INTO agent_writes(agent, path, next) VALUES(?, ?, ?) ON CONFLICT(agent, path) DO UPDATE SET next = excluded.next
			WHERE agent_writes.next <= ? OR agent_writes.next > ?`,
		Args: []any{fs.cfg.Name, path, now.Add(fs.cfg.FlushEvery).UnixMilli(), now.UnixMilli(), now.Add(clockSlack).UnixMilli()}, Want: 1,
	}})
}

// settle records how a claimed write ended, and when the next may be tried.
func (fs *files) settle(ctx context.Context, path string, failed error) error {
	now := fs.now()
	stmt := tidemark.Stmt{SQL: `UPDATE agent_writes SET fails = 0 WHERE agent = ? AND path = ? AND fails > 0`, Args: []any{fs.cfg.Name, path}}
	if failed != nil {
		fs.cfg.Logger.Warn("write memory", "agent", fs.cfg.Name, "path", path, "err", failed)
		stmt = tidemark.Stmt{
			SQL:  `UPDATE agent_writes SET fails = fails + 1, next = ? + MIN(?, ? * (1 << MIN(fails, 10))) WHERE agent = ? AND path = ?`,
			Args: []any{now.UnixMilli(), maxBackoff.Milliseconds(), fs.cfg.FlushEvery.Milliseconds(), fs.cfg.Name, path},
		}
	}
	return fs.cfg.DB.Tx(ctx, []tidemark.Stmt{stmt})
}

// guarded does a write if it is allowed now. A failure is logged and planned again, never returned:
// what is to be written is durable already.
func (fs *files) guarded(ctx context.Context, path string, write func() error) {
	if !fs.held().IsZero() {
		return
	}
	err := fs.claim(ctx, path)
	if errors.Is(err, tidemark.ErrConflict) {
		return
	}
	if err == nil {
		err = fs.settle(ctx, path, write())
	}
	fs.hold(err)
}

// hold keeps an agent from all writes for a while when its database takes no claim or what came of it, as on a
// full disk: what cannot be written down is tried ever more rarely all the same. The first failure is logged, and
// then one in maxBackoff. It returns until when it keeps it.
func (fs *files) hold(failed error) time.Time {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if failed == nil {
		fs.fails, fs.until = 0, time.Time{}
		return fs.until
	}
	pause := min(fs.cfg.FlushEvery<<min(fs.fails, 16), maxBackoff)
	fs.until = fs.now().Add(pause)
	if fs.fails++; fs.fails == 1 || pause == maxBackoff {
		fs.cfg.Logger.Warn("write memory later", "agent", fs.cfg.Name, "tries", fs.fails, "err", failed)
	}
	return fs.until
}

// held is until when nothing is written, zero for now.
func (fs *files) held() time.Time {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if wait := fs.until.Sub(fs.now()); wait <= 0 || wait > maxBackoff { // the clock was set back
		return time.Time{}
	}
	return fs.until
}

// flushSoon writes a file now or asks for a Wake that does. The alarm stands before the write begins: a
// crash in the middle must not leave the file to the nightly sweep.
func (fs *files) flushSoon(ctx context.Context, path string) {
	fs.schedule(fs.now().Add(fs.cfg.FlushEvery))
	fs.guarded(ctx, path, func() error { return fs.flush(ctx, path) })
	fs.schedule(fs.next(ctx))
}

// flush puts all pending sections of a file into it with one write. What others wrote meanwhile is
// read again and kept.
func (fs *files) flush(ctx context.Context, path string) error {
	for range flushTries {
		sections, err := fs.pending(ctx, path)
		if err != nil || len(sections) == 0 {
			return err
		}
		file, opt, err := fs.load(ctx, path)
		if err != nil {
			return err
		}
		out := memory.Append(file, fs.cfg.Zone, sections...)
		if len(out) > memory.MaxFile {
			return fmt.Errorf("file %s would have %d bytes, at most %d: %w", path, len(out), memory.MaxFile, tidemark.ErrTooLarge)
		}
		if !bytes.Equal(out, file) {
			opt.ContentType = markdown
			_, err = fs.cfg.Blobs.Put(ctx, fs.blobKey(path), bytes.NewReader(out), int64(len(out)), opt)
		}
		if errors.Is(err, tidemark.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		return fs.flushed(ctx, path, sections)
	}
	return fmt.Errorf("file %s was changed by others %d times in a row: %w", path, flushTries, tidemark.ErrConflict)
}

// pending returns the sections that a file still has to take up, oldest first.
func (fs *files) pending(ctx context.Context, path string) ([]memory.Section, error) {
	return fs.sectionRows(ctx, `SELECT body FROM agent_sections WHERE agent = ? AND path = ? AND done = 0 ORDER BY at, id LIMIT ?`, fs.cfg.Name, path, flushPage)
}

func (fs *files) sectionRows(ctx context.Context, sql string, args ...any) ([]memory.Section, error) {
	return host.Read(ctx, fs.cfg.DB, "read sections", host.JSON[memory.Section], sql, args...)
}

func (fs *files) flushed(ctx context.Context, path string, sections []memory.Section) error {
	stmts := make([]tidemark.Stmt, len(sections))
	for i, s := range sections {
		stmts[i] = tidemark.Stmt{SQL: `UPDATE agent_sections SET done = ? WHERE agent = ? AND path = ? AND id = ? AND done = 0`,
			Args: []any{fs.now().UnixMilli(), fs.cfg.Name, path, s.ID}}
	}
	return fs.cfg.DB.Tx(ctx, stmts)
}

// load reads a file, empty when there is none, and the condition under which it is still that.
func (fs *files) load(ctx context.Context, path string) ([]byte, tidemark.PutOptions, error) {
	return fs.loadUnless(ctx, path, func(string) bool { return false })
}

// loadUnless is load for who may have the version that is there: then it is not read.
func (fs *files) loadUnless(ctx context.Context, path string, have func(etag string) bool) ([]byte, tidemark.PutOptions, error) {
	o, body, err := fs.cfg.Blobs.Get(ctx, fs.blobKey(path))
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
func (fs *files) current(ctx context.Context, path string) ([]byte, tidemark.PutOptions, error) {
	sections, err := fs.pending(ctx, path)
	if err != nil {
		return nil, tidemark.PutOptions{}, err
	}
	file, opt, err := fs.load(ctx, path)
	if err != nil {
		return nil, opt, err
	}
	return memory.Append(file, fs.cfg.Zone, sections...), opt, nil
}

// next is when the earliest pending write is allowed; zero when nothing is pending.
func (fs *files) next(ctx context.Context) time.Time {
	first, err := host.First(ctx, fs.cfg.DB, "plan wake", `SELECT MIN(COALESCE(w.next, 0)) FROM
		(SELECT DISTINCT path FROM agent_sections WHERE agent = ? AND done = 0
		 UNION SELECT ? FROM agent_archives WHERE agent = ? AND indexed = 0) p
		LEFT JOIN agent_writes w ON w.agent = ? AND w.path = p.path HAVING COUNT(*) > 0 LIMIT 1`, fs.cfg.Name, indexMarker, fs.cfg.Name, fs.cfg.Name)
	now := fs.now()
	switch {
	case err != nil:
		return fs.hold(err)
	case first == nil:
		return time.Time{}
	}
	if until := fs.held(); !until.IsZero() {
		return until
	}
	at := time.UnixMilli(first.Int(0))
	if at.Before(now) || at.After(now.Add(clockSlack)) {
		return now
	}
	return at
}

// indexPending adds archives to the index that are not in it.
func (fs *files) indexPending(ctx context.Context) error {
	infos, err := host.Read(ctx, fs.cfg.DB, "read archives", host.JSON[archive.Info], `SELECT info FROM agent_archives WHERE agent = ? AND indexed = 0 ORDER BY at LIMIT ?`, fs.cfg.Name, flushPage)
	if err != nil || len(infos) == 0 {
		return err
	}
	done := make([]tidemark.Stmt, len(infos))
	for i, a := range infos {
		done[i] = tidemark.Stmt{SQL: `UPDATE agent_archives SET indexed = 1 WHERE agent = ? AND key = ?`, Args: []any{fs.cfg.Name, a.Key}}
	}
	fs.guarded(ctx, indexMarker, func() error {
		if err := archive.Index(ctx, fs.cfg.Blobs, fs.cfg.Name, infos...); err != nil {
			return err
		}
		return fs.cfg.DB.Tx(ctx, done)
	})
	return nil
}

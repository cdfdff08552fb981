//go:build !js

// Package crash has the native binary kill itself at a point that is asked for, as kill -9 would. Only a build with the
// tag fault has it in, which is that of test/fault.
package crash

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
)

// Variable names the point at which the process kills itself, as kill -9 would. It is for
// test/fault, which proves that every point of the path of a message has an answer after a kill; no
// configuration and no flag sets it, and a process that has it says so when it starts. The value is
//
//	[before |during ]{arrow}[:{n}]
//
// that is before, in the middle of (files only) or, when nothing is said, just after the n-th time
// that the arrow is passed, such as "plan stored:2". What dies is this process; the session, the
// agent and their stores know nothing of it.
const Variable = "TIDEMARK_CRASH_AT"

// arrow is a step that a turn, a compaction or a reset makes durable: a transaction or a file. The
// order of arrows is that of DESIGN §1, of which each is a row's change.
type arrow struct {
	name string
	tx   func([]tidemark.Stmt) bool
	put  func(key string) bool
}

// arrows tells the steps apart by their statements, so that the core need not name them. A
// statement that is worded anew leaves its arrow unpassed, which test/fault reports.
func arrows() []arrow {
	return []arrow{
		{name: "input stored", tx: has("INSERT INTO inputs")},
		{name: "run begun", tx: has("INSERT INTO runs")},
		{name: "inputs taken", tx: has("UPDATE inputs SET state = 'taken'")},
		{name: "attempt counted", tx: func(s []tidemark.Stmt) bool {
			return len(s) == 2 && has("UPDATE runs SET state")(s[:1]) && has("INSERT INTO due")(s[1:])
		}},
		{name: "probe made", tx: func(s []tidemark.Stmt) bool {
			return len(s) == 4 && has("UPDATE runs SET state", "calling")(s[:1]) && has("UPDATE runs SET spent")(s[3:])
		}},
		{name: "part taken out", tx: func(s []tidemark.Stmt) bool {
			return slices.ContainsFunc(s, func(s tidemark.Stmt) bool {
				return slices.ContainsFunc(s.Args, func(a any) bool {
					raw, _ := a.(string)
					return strings.Contains(raw, `"reason":"refused"`)
				})
			})
		}},
		{name: "reply committed", tx: has("UPDATE runs SET reply")},
		{name: "tools registered", tx: has("INSERT INTO calls")},
		{name: "call started", tx: has("UPDATE calls SET state", "started")},
		{name: "call done", tx: has("UPDATE calls SET state", "done")},
		{name: "results committed", tx: func(s []tidemark.Stmt) bool {
			return has("UPDATE runs SET state", "calling")(s[:1]) && slices.Contains(s[0].Args, any("tools"))
		}},
		{name: "plan stored", tx: has("INSERT INTO plans")},
		{name: "part begun", tx: has("INSERT INTO parts")},
		{name: "part put", put: archived(true)},
		{name: "part recorded", tx: has("UPDATE parts SET last")},
		{name: "chunk stored", tx: has("UPDATE plans SET chunk")},
		{name: "overlay installed", tx: has("UPDATE plans SET state = 'done'")},
		{name: "reset begun", tx: has("INSERT INTO resets")},
		{name: "whole put", put: archived(false)},
		{name: "archived", tx: has("UPDATE resets SET step", "extract")},
		{name: "extracted", tx: has("UPDATE resets SET step", "move")},
		{name: "moved", tx: has("UPDATE resets SET step = 'done'")},
		{name: "facts handed", tx: has("INSERT INTO agent_extractions")},
		{name: "agent told", tx: has("DELETE FROM outbox")},
		{name: "memory put", put: func(key string) bool { return strings.Contains(key, "/memory/") }},
		{name: "memory flushed", tx: has("UPDATE agent_sections SET done")},
		{name: "index put", put: func(key string) bool { return strings.Contains(key, "/sessions/index/") }},
		{name: "index recorded", tx: has("UPDATE agent_archives SET indexed")},
		{name: "webhook stored", tx: has("INSERT INTO channel_bodies")},
		{name: "webhook decoded", tx: has("INSERT INTO channel_arrivals")},
		{name: "arrival done", tx: has("DELETE FROM channel_arrivals WHERE n =")},
		{name: "send begun", tx: has("UPDATE outbound SET state = 'sending'")},
		{name: "send settled", tx: has("UPDATE outbound SET state = 'sent', open = 0, hold = '', next = 0, error = '', id = ?")},
	}
}

// has matches a transaction with a statement that begins so, and whose first argument is first.
func has(sql string, first ...any) func([]tidemark.Stmt) bool {
	return func(stmts []tidemark.Stmt) bool {
		return slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool {
			return strings.HasPrefix(s.SQL, sql) && (len(first) == 0 || len(s.Args) > 0 && s.Args[0] == first[0])
		})
	}
}

// archived matches the archive of a part, or of a whole session.
func archived(part bool) func(string) bool {
	return func(key string) bool {
		return strings.HasSuffix(key, ".jsonl.gz") && strings.Contains(key, "-part") == part
	}
}

// Crash is a death that was asked for. A nil one never comes.
type Crash struct {
	at   arrow
	when string // before, during, after
	left atomic.Int64
}

// Asked reads the variable.
func Asked(log *slog.Logger) (*Crash, error) {
	value := os.Getenv(Variable)
	if value == "" {
		return nil, nil
	}
	c := &Crash{when: "after"}
	c.left.Store(1)
	name, n, counted := strings.Cut(value, ":")
	for _, when := range []string{"before", "during"} {
		if rest, ok := strings.CutPrefix(name, when+" "); ok {
			c.when, name = when, rest
		}
	}
	i := slices.IndexFunc(arrows(), func(a arrow) bool { return a.name == name })
	times, err := strconv.ParseInt(n, 10, 32)
	if i < 0 || counted && (err != nil || times < 1) || c.when == "during" && arrows()[i].put == nil {
		return nil, fmt.Errorf("%s is %q, which names no point to die at; unset it: it is for tests, and it kills the server: %w", Variable, value, tidemark.ErrInvalid)
	}
	if c.at = arrows()[i]; counted {
		c.left.Store(times)
	}
	log.Error("this process will kill itself, as "+Variable+" asks", "at", value)
	return c, nil
}

// DB returns a database that dies at the arrow.
func (c *Crash) DB(db tidemark.DB) tidemark.DB {
	if c == nil || c.at.tx == nil {
		return db
	}
	return &crashDB{db, c}
}

// Blobs returns a bucket that dies at the arrow.
func (c *Crash) Blobs(b tidemark.Blobs) tidemark.Blobs {
	if c == nil || c.at.put == nil {
		return b
	}
	return &crashBlobs{b, c}
}

// pass counts the arrow and dies if this is the time. Killing is not stopping: nothing is written,
// closed or answered any more.
func (c *Crash) pass(when string) {
	if when != c.when || c.left.Add(-1) != 0 {
		return
	}
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("kill this process: %v", err))
	}
	select {}
}

type crashDB struct {
	tidemark.DB
	c *Crash
}

// Tx implements tidemark.DB.
func (d *crashDB) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if len(stmts) == 0 || !d.c.at.tx(stmts) {
		return d.DB.Tx(ctx, stmts)
	}
	d.c.pass("before")
	err := d.DB.Tx(ctx, stmts)
	if err == nil {
		d.c.pass("after")
	}
	return err
}

type crashBlobs struct {
	tidemark.Blobs
	c *Crash
}

// Put implements tidemark.Blobs.
func (b *crashBlobs) Put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	if !b.c.at.put(key) {
		return b.Blobs.Put(ctx, key, r, size, opt)
	}
	b.c.pass("before")
	o, err := b.Blobs.Put(ctx, key, &crashReader{r, b.c, size / 2}, size, opt)
	if err == nil {
		b.c.pass("after")
	}
	return o, err
}

// Close closes the bucket, if it can be closed.
func (b *crashBlobs) Close() error {
	if c, ok := b.Blobs.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// crashReader dies once left bytes were read.
type crashReader struct {
	io.Reader
	c    *Crash
	left int64
}

// Read implements io.Reader.
func (r *crashReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return r.Reader.Read(p)
	}
	n, err := r.Reader.Read(p[:min(int64(len(p)), r.left)])
	if r.left -= int64(n); r.left <= 0 {
		r.c.pass("during")
	}
	return n, err
}

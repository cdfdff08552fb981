//go:build !js

package native

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.DB = (*DB)(nil)

const (
	maxReaders  = 4          // connections that read at once; reads are short pages
	busyTimeout = "5000"     // milliseconds; only a foreign tool can hold the file against us
	walLimit    = "67108864" // bytes of write-ahead log kept after a checkpoint
	memoryPath  = ":memory:" // a database without a file, for tests
	lockSuffix  = ".lock"    // beside the database, holds the owner's process id
	filePerm    = os.FileMode(0o600)
	dirPerm     = os.FileMode(0o700)
)

// DB is a SQLite database in one file, owned by this process alone. One connection writes, up to
// four read the last committed state beside it (write-ahead log).
//
// A Tx that returned nil survives the loss of power: synchronous=FULL, one fsync a transaction.
// Numbers are bound as REAL, as a Durable Object binds them, so that a statement which depends on
// an integer argument (division, a column without affinity, JSON) shows it here and not only there;
// write CAST(? AS INTEGER) in these places.
type DB struct {
	path string // as given, for messages
	dsn  string
	lock *flock.Flock // nil in memory

	writer  chan *conn    // holds the connection that writes while nobody does
	readers chan *conn    // idle connections that read; nil in memory
	shadow  *conn         // reads in memory; belongs to who holds the writer
	unused  chan struct{} // readers that may still be opened
	done    chan struct{} // closed by Close
	once    sync.Once
}

// LockedError says that another process, or another DB of this one, owns the database. It is
// [tidemark.ErrBusy].
type LockedError struct {
	Path string // of the database
	PID  int    // of the owner, 0 when it is unknown
}

// Error names the database, its owner and what to do.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("database %s is in use by %s: stop it, or talk to the server it runs", e.Path, who)
}

// Is makes the error an [tidemark.ErrBusy].
func (e *LockedError) Is(target error) bool { return target == tidemark.ErrBusy }

// OpenDB opens the database at path and creates it, and its folder, when it is not there. The path
// ":memory:" gives one that lives as long as the DB, for tests.
//
// # Errors
//
// A [*LockedError] when the file has an owner, otherwise ErrUnavailable with the path and the fix:
// a damaged file, a file of another kind, a folder that cannot be written.
func OpenDB(path string) (*DB, error) {
	d := &DB{path: path, writer: make(chan *conn, 1), done: make(chan struct{})}
	if path == memoryPath {
		// Connections of one process share what this VFS keeps under a name, until the last is closed.
		d.dsn = "file:/" + rand.Text() + "?vfs=memdb&"
		return d, d.openMemory()
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	d.dsn = "file:" + (&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath() + "?"
	d.readers = make(chan *conn, maxReaders)
	d.unused = make(chan struct{}, maxReaders)
	for range maxReaders {
		d.unused <- struct{}{}
	}
	if d.lock, err = lockDatabase(path); err != nil {
		return nil, err
	}
	if f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm); err == nil {
		f.Close() // SQLite alone would make the file readable for everyone; what stops us here it names better
	}
	if err := d.openWriter(); err != nil {
		d.lock.Close()
		return nil, err
	}
	return d, nil
}

// lockDatabase takes the lock file beside the database, until the process ends, however it ends, and writes our process
// id into it. The file itself stays: removing it would race with a new owner.
func lockDatabase(path string) (*flock.Flock, error) {
	if err := os.MkdirAll(filepath.Dir(path), dirPerm); err != nil {
		return nil, fmt.Errorf("open database %s: %w; %s: %w", path, err, folderFix(err), tidemark.ErrUnavailable)
	}
	lock := flock.New(path+lockSuffix, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(filePerm))
	ours, err := lock.TryLock()
	if err == nil && !ours {
		lock.Close()
		owner, _ := os.ReadFile(lock.Path()) // what cannot be read names nobody
		pid, _ := strconv.Atoi(strings.TrimSpace(string(owner)))
		return nil, &LockedError{Path: path, PID: pid}
	}
	if err == nil {
		err = os.WriteFile(lock.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), filePerm)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("open database %s: lock: %w; %s: %w", path, err, folderFix(err), tidemark.ErrUnavailable)
	}
	return lock, nil
}

// folderFix says what to do about a folder in which no file can be made or written.
func folderFix(err error) string {
	if Full(err) {
		return "the disk is full, free some space"
	}
	return "its folder must be writable for this user"
}

// openWriter opens the writing connection and reads the schema, which is what finds a file that is
// no database.
func (d *DB) openWriter() error {
	dsn := pragmas("foreign_keys(1)")
	if d.readers != nil {
		dsn = pragmas("journal_mode(wal)", "synchronous(full)", "foreign_keys(1)", "journal_size_limit("+walLimit+")")
	}
	c, err := openConn(d.dsn + dsn)
	if err != nil {
		return d.fail("open", err)
	}
	if _, err := c.query(context.Background(), "SELECT count(*) FROM sqlite_schema", nil); err != nil {
		c.close()
		return d.fail("open", err)
	}
	d.writer <- c
	return nil
}

// openMemory opens the two connections of a database in memory, of which one is used at a time. One alone
// would need PRAGMA query_only around each query, which has SQLite compile every statement again.
func (d *DB) openMemory() error {
	if err := d.openWriter(); err != nil {
		return err
	}
	var err error
	if d.shadow, err = openConn(d.dsn + pragmas("query_only(1)")); err != nil {
		return errors.Join(d.fail("open reader", err), (<-d.writer).close())
	}
	return nil
}

// pragmas is the part of a data source name that runs on every new connection.
func pragmas(ps ...string) string {
	q := "_busy_timeout=" + busyTimeout
	for _, p := range ps {
		q += "&_pragma=" + url.QueryEscape(p)
	}
	return q
}

// Query implements [tidemark.DB]. The statement can only read; one that writes is ErrInvalid.
func (d *DB) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if err := checkStmt(sql, args); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	c, release, err := d.reader(ctx)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", d.path, err)
	}
	defer release()
	rows, err := c.query(ctx, sql, args)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("query %s: %w", d.path, context.Cause(ctx))
		}
		return nil, d.failRead(err)
	}
	return rows, nil
}

// Tx implements [tidemark.DB]. The context is looked at between statements, never in one, so that
// a transaction is either refused by it or committed.
func (d *DB) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	for i, s := range stmts {
		if err := checkStmt(s.SQL, s.Args); err != nil {
			return fmt.Errorf("transaction: statement %d: %w", i, err)
		}
	}
	c, err := d.take(ctx, d.writer)
	if err != nil {
		return fmt.Errorf("transaction %s: %w", d.path, err)
	}
	defer func() { d.writer <- c }()
	if _, err := c.exec("BEGIN IMMEDIATE", nil); err != nil {
		return d.fail("begin", err)
	}
	if err := d.run(ctx, c, stmts); err != nil {
		// SQLite has undone the transaction already when the disk was full, and then says so.
		_, _ = c.exec("ROLLBACK", nil)
		return err
	}
	return nil
}

// run executes and commits; its caller undoes.
func (d *DB) run(ctx context.Context, c *conn, stmts []tidemark.Stmt) error {
	for i, s := range stmts {
		if ctx.Err() != nil {
			return fmt.Errorf("transaction %s: %w", d.path, context.Cause(ctx))
		}
		n, err := c.exec(s.SQL, s.Args)
		if err != nil {
			return d.fail(fmt.Sprintf("transaction: statement %d", i), err)
		}
		if s.Want != 0 && n != int64(s.Want) {
			return fmt.Errorf("transaction %s: statement %d changed %d rows, want %d: %w",
				d.path, i, n, s.Want, tidemark.ErrConflict)
		}
	}
	if _, err := c.exec("COMMIT", nil); err != nil {
		return d.fail("commit", err)
	}
	return nil
}

// Check reads the whole file and reports damage; it takes time in proportion to its size.
func (d *DB) Check(ctx context.Context) error {
	rows, err := d.Query(ctx, "PRAGMA quick_check(1)")
	if err != nil {
		return err
	}
	if len(rows) != 1 || rows[0].Text(0) != "ok" {
		return d.damaged("check", errors.New(rows[0].Text(0)))
	}
	return nil
}

// Close waits for what is running, closes the file and gives up its lock. Later calls of Query and
// Tx are ErrUnavailable. Closing twice is no error.
func (d *DB) Close() error {
	var err error
	d.once.Do(func() {
		close(d.done)
		for range cap(d.readers) {
			select {
			case c := <-d.readers:
				err = errors.Join(err, c.close())
			case <-d.unused:
			}
		}
		writer := <-d.writer
		if d.shadow != nil {
			err = errors.Join(err, d.shadow.close())
		}
		err = errors.Join(err, writer.close()) // last: it folds the write-ahead log in
		if d.lock != nil {
			err = errors.Join(err, os.Truncate(d.lock.Path(), 0), d.lock.Close())
		}
	})
	if err != nil {
		return fmt.Errorf("close database %s: %w", d.path, err)
	}
	return nil
}

// take waits for a connection of the pool.
func (d *DB) take(ctx context.Context, pool chan *conn) (*conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case <-d.done:
		return nil, errClosed
	default:
	}
	select {
	case c := <-pool:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.done:
		return nil, errClosed
	}
}

var errClosed = fmt.Errorf("database is closed: %w", tidemark.ErrUnavailable)

// reader gives a connection that cannot write, and the function that returns it.
func (d *DB) reader(ctx context.Context) (*conn, func(), error) {
	if d.readers == nil {
		c, err := d.take(ctx, d.writer)
		if err != nil {
			return nil, nil, err
		}
		return d.shadow, func() { d.writer <- c }, nil
	}
	c, err := d.idleReader(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c, func() { d.readers <- c }, nil
}

// idleReader prefers an open connection to opening one, since each has a cache of its own.
func (d *DB) idleReader(ctx context.Context) (*conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case <-d.done:
		return nil, errClosed
	default:
	}
	select {
	case c := <-d.readers:
		return c, nil
	default:
	}
	select {
	case c := <-d.readers:
		return c, nil
	case <-d.unused:
		c, err := openConn(d.dsn + pragmas("query_only(1)"))
		if err != nil {
			d.unused <- struct{}{}
			return nil, d.fail("open reader", err)
		}
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.done:
		return nil, errClosed
	}
}

// checkStmt adds to the limits of the contract what a Durable Object refuses in a statement: it
// runs transactions itself. https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/
func checkStmt(sql string, args []any) error {
	word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	switch strings.ToUpper(strings.TrimRight(word, ";")) {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "VACUUM":
		return fmt.Errorf("statement begins with %s, which a DB does itself or cannot do: %w", word, tidemark.ErrInvalid)
	}
	return tidemark.CheckStmt(sql, args)
}

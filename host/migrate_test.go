package host_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// racing is a database in which another program migrates right before each transaction of this one.
type racing struct {
	tidemark.DB
	before func()
}

func (r *racing) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	r.before()
	return r.DB.Tx(ctx, stmts)
}

// TestMigrateTogether: of many that share a database one does each migration, and the others find it done.
func TestMigrateTogether(t *testing.T) {
	list := []string{`CREATE TABLE m(a INTEGER)`, `INSERT INTO m VALUES (1)`, `ALTER TABLE m ADD COLUMN b INTEGER`, `INSERT INTO m VALUES (2, 3)`}
	db := hosttest.DB(t)
	failed := make([]error, 16)
	var wait sync.WaitGroup
	for i := range failed {
		wait.Go(func() { failed[i] = host.Migrate(t.Context(), db, "test", list) })
	}
	wait.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Error(err)
	}
	for step := range 4 { // the other is there first at one step after another
		db := hosttest.DB(t)
		n := 0
		other := &racing{db, func() {
			if n++; n == step {
				if err := host.Migrate(t.Context(), db, "test", list); err != nil {
					t.Errorf("step %d: the other: %v", step, err)
				}
			}
		}}
		if err := host.Migrate(t.Context(), other, "test", list); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
		rows, err := db.Query(t.Context(), `SELECT count(*), max(b) FROM m LIMIT 1`)
		if err != nil || rows[0].Int(0) != 2 || rows[0].Int(1) != 3 {
			t.Errorf("step %d: the table holds %v, %v", step, rows, err)
		}
	}
}

// TestMigrateConflict: a migration that breaks a rule by itself is an error, not a wait for somebody else.
func TestMigrateConflict(t *testing.T) {
	list := []string{`CREATE TABLE m(a INTEGER PRIMARY KEY)`, `INSERT INTO m VALUES (1)`, `INSERT INTO m VALUES (1)`}
	if err := host.Migrate(t.Context(), hosttest.DB(t), "test", list); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// TestTryWrite: a small write is tried in a migrated database, again and again, and leaves nothing.
func TestTryWrite(t *testing.T) {
	db := hosttest.DB(t)
	if err := host.TryWrite(t.Context(), db); err == nil {
		t.Error("a database without tables takes it")
	}
	if err := host.Migrate(t.Context(), db, "test", []string{`CREATE TABLE m(a INTEGER)`}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := host.TryWrite(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.Query(t.Context(), `SELECT space, version FROM schema_versions LIMIT 9`)
	if err != nil || len(rows) != 1 || rows[0].Text(0) != "test" || rows[0].Int(1) != 1 {
		t.Errorf("%v, %v", rows, err)
	}
}

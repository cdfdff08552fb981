package room

import (
	"context"
	"strings"
	"sync"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// Tables are some that a database has from their first row on: each costs memory while an object lives.
type Tables struct {
	Space string   // the name of their version
	Steps []string // statements, see host.Migrate
	Own   bool     // no other session writes what this one reads of them, so it asks once whether they are there
}

// Names lists them.
func (t Tables) Names() (out []string) {
	for _, sql := range t.Steps {
		rest, ok := strings.CutPrefix(strings.Replace(sql, " VIRTUAL ", " ", 1), "CREATE TABLE ")
		if end := strings.IndexAny(rest, " ("); ok && end > 0 {
			out = append(out, rest[:end])
		}
	}
	return out
}

// Open makes them, if they are not there.
func (t Tables) Open(ctx context.Context, db tidemark.DB) error {
	return host.Migrate(ctx, db, t.Space, t.Steps)
}

// Made is what a session knows of tables in its database.
type Made struct {
	DB   tidemark.DB
	seen sync.Map // whether they are there, by Space
}

// Here reports whether tables are known to be there.
func (m *Made) Here(t Tables) bool {
	there, _ := m.seen.Load(t.Space)
	return there == true
}

// Open makes tables, if they are not there.
func (m *Made) Open(ctx context.Context, t Tables) error {
	if m.Here(t) {
		return nil
	}
	err := t.Open(ctx, m.DB)
	if err == nil {
		m.seen.Store(t.Space, true)
	}
	return err
}

// Has reports whether tables are there, and makes none.
func (m *Made) Has(ctx context.Context, t Tables) (bool, error) {
	if there, ok := m.seen.Load(t.Space); ok {
		return there == true, nil
	}
	there, err := host.Migrated(ctx, m.DB, t.Space)
	if err == nil && there {
		return true, m.Open(ctx, t)
	}
	if err == nil && t.Own {
		m.seen.LoadOrStore(t.Space, false)
	}
	return there, err
}

// Query asks tables; where they are not there nothing is in them.
func (m *Made) Query(ctx context.Context, t Tables, sql string, args ...any) ([]tidemark.Row, error) {
	if there, err := m.Has(ctx, t); err != nil || !there {
		return nil, err
	}
	return m.DB.Query(ctx, sql, args...)
}

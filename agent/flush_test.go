package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// fullDisk is a database that takes nothing down while it is full.
type fullDisk struct {
	tidemark.DB
	full  string // what statements it refuses hold, empty for none
	tries int
}

func (f *fullDisk) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if f.full != "" && strings.Contains(stmts[0].SQL, f.full) {
		f.tries++
		return fmt.Errorf("disk is full: %w", tidemark.ErrUnavailable)
	}
	return f.DB.Tx(ctx, stmts)
}

// TestFlushOnFullDisk: while neither a claim nor the end of a write can be written down, tries grow apart and the log
// stays short; with room again all is written.
func TestFlushOnFullDisk(t *testing.T) {
	for _, full := range []string{"INSERT INTO agent_writes", "UPDATE agent_"} {
		t.Run(full, func(t *testing.T) {
			w := newWorld(t)
			disk := &fullDisk{DB: w.db}
			var log bytes.Buffer
			w.cfg.DB, w.cfg.FlushEvery, w.cfg.Logger = disk, 100*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
			w.restart()
			w.settle() // the first night is planned
			disk.full = full
			for i := range 5 {
				w.remember(scope(t, "agent:main:whatsapp:dm:+"+fmt.Sprint(i)), fmt.Sprint("x", i), fmt.Sprint("fact ", i))
			}
			wakes, began := 0, w.clock.Now()
			for w.clock.Now().Sub(began) < time.Hour {
				next, err := w.Wake(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if wakes++; wakes > 100 {
					t.Fatalf("%d wakes in %v, %d tries", wakes, w.clock.Now().Sub(began), disk.tries)
				}
				w.clock.move(max(next.Sub(w.clock.Now()), 0))
			}
			if lines := strings.Count(log.String(), "write memory later"); disk.tries < 10 || disk.tries > 100 || lines < 2 || lines > 15 {
				t.Errorf("%d tries, %d lines of the log", disk.tries, lines)
			}
			disk.full = ""
			w.settle()
			for i := range 5 {
				if got := w.stored(fmt.Sprintf("memory/peers/whatsapp~+%d/2026-11-21.md", i)); !strings.Contains(got, fmt.Sprint("fact ", i)) {
					t.Errorf("fact %d is not written: %q", i, got)
				}
			}
		})
	}
}

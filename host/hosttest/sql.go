package hosttest

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// Exec writes a statement of a test's own.
func Exec(t testing.TB, db tidemark.DB, sql string, args ...any) {
	t.Helper()
	if err := db.Tx(context.Background(), []tidemark.Stmt{{SQL: sql, Args: args}}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Lines are the rows of a query of one text.
func Lines(t testing.TB, db tidemark.DB, sql string, args ...any) string {
	t.Helper()
	rows, err := db.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Text(0)
	}
	return strings.Join(out, "\n")
}

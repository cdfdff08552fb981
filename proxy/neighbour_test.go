package proxy_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
)

// An agent has as many proxied clients as people point at it, all in one database. Two others are always there, one that
// sorts before the client of a test and one behind it, with the same numbers of tracks, requests and edits.

var neighbours = []string{"agent:main:proxy:dm:00000000000000000000000000000000", "agent:main:proxy:dm:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"}

// neighbourRows name an exploration as TestInherited does, and otherwise cannot be read as rows of the client of a test: their entries are not in its conversation.
const neighbourRows = `
INSERT INTO proxy_tracks(key, n, name, log, base, steps, created) VALUES('$key', 0, 'its name', 'its-log', -1, 3, 1), ('$key', 1, '', 'its-other-log', 0, 1, 1);
INSERT INTO proxy_steps(key, track, n, record, decision) VALUES
	('$key', 0, 0, '{"ids":["its-entry"]}', ''), ('$key', 0, 1, '{"ids":["its-entry"]}', ''), ('$key', 0, 2, '{"ids":["its-entry"]}', ''), ('$key', 1, 0, '{"ids":["its-entry"]}', '');
INSERT INTO proxy_edits(key, track, n, record) VALUES('$key', 0, 1, '{"step":"its own"}'), ('$key', 0, 2, '{"step":"its own"}'), ('$key', 1, 1, '{"step":"its own"}');
INSERT INTO proxy_puts(key, entry, record) VALUES('$key', 'its-entry', '{}');
INSERT INTO proxy_explored(key, n, name) VALUES('$key', 0, 'no such'), ('$key', 1, 'its other exploration')`

// beside puts the others into the database of the rig, and compares their rows at the end of the test.
func (r *rig) beside() {
	r.t.Helper()
	var stmts []tidemark.Stmt
	for _, key := range neighbours {
		for sql := range strings.SplitSeq(neighbourRows, ";\n") {
			stmts = append(stmts, tidemark.Stmt{SQL: strings.ReplaceAll(sql, "$key", key)})
		}
	}
	if err := r.db.Tx(context.Background(), stmts); err != nil {
		r.t.Fatal(err)
	}
	db := r.db
	before := othersRows(r.t, db)
	r.t.Cleanup(func() {
		if after := othersRows(r.t, db); !slices.Equal(before, after) {
			r.t.Errorf("rows of other clients were\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	})
}

// othersRows are what the others have.
func othersRows(t testing.TB, db tidemark.DB) []string {
	t.Helper()
	var out []string
	for _, q := range []string{
		`SELECT key || ' ' || n || ' ' || name || ' ' || log || ' ' || base || ' ' || steps FROM proxy_tracks`,
		`SELECT key || ' ' || track || ' ' || n || ' ' || record || ' ' || decision FROM proxy_steps`,
		`SELECT key || ' ' || track || ' ' || n || ' ' || record FROM proxy_edits`,
		`SELECT key || ' ' || entry || ' ' || record FROM proxy_puts`,
		`SELECT key || ' ' || n || ' ' || name FROM proxy_explored`,
	} {
		rows, err := db.Query(context.Background(), q+` WHERE key IN (?, ?) ORDER BY 1 LIMIT 1000`, neighbours[0], neighbours[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			out = append(out, r.Text(0))
		}
	}
	return out
}

// strict fails the test when what is stored of a client cannot be read, unless the test has damaged it.
type strict struct {
	slog.Handler
	r *rig
}

func (s strict) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Message == "a track cannot be read" && !s.r.damaged {
		why := ""
		rec.Attrs(func(a slog.Attr) bool { why += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
		s.r.t.Errorf("%s:%s", rec.Message, why)
	}
	if !s.Handler.Enabled(ctx, rec.Level) {
		return nil
	}
	return s.Handler.Handle(ctx, rec)
}

// Enabled is so for all levels: what is logged is looked at, wherever it goes.
func (s strict) Enabled(context.Context, slog.Level) bool { return true }

func (s strict) WithAttrs(a []slog.Attr) slog.Handler {
	return strict{s.Handler.WithAttrs(a), s.r}
}
func (s strict) WithGroup(g string) slog.Handler { return strict{s.Handler.WithGroup(g), s.r} }

// What is stored of a client is read by the page: as much as fits on one, and what is behind it, once.
func TestPagesOfSteps(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	history := []string{text("user", "begin")}
	for i := range 3 {
		r.exchange("", request(history...), reply("end_turn", textBlock(fmt.Sprint("answer ", i))))
		history = append(history, said(textBlock(fmt.Sprint("answer ", i))), text("user", fmt.Sprint("go on ", i)))
	}
	if err := r.db.Tx(t.Context(), []tidemark.Stmt{
		{SQL: `WITH RECURSIVE i(n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM i WHERE n < 2100)
			INSERT INTO proxy_steps(key, track, n, record) SELECT ?, 0, n, '{}' FROM i`, Args: []any{string(key)}},
		{SQL: `WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < 250)
			INSERT INTO proxy_puts(key, entry, record) SELECT ?, printf('0000%06d', n), '{}' FROM i`, Args: []any{string(key)}},
	}); err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.exchange("", request(history...), reply("end_turn", textBlock("answer 3")))
	rows, err := r.db.Query(t.Context(), `SELECT max(n), count(*) FROM proxy_steps WHERE key = ? AND track = 0 LIMIT 1`, string(key))
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Int(0) != 2101 || rows[0].Int(1) != 2102 {
		t.Errorf("the last request is %d of %d, want 2101 of 2102", rows[0].Int(0), rows[0].Int(1))
	}
}

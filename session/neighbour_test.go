package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/session"
)

// Natively the conversations of an agent share a database, so the one that a test plays is never alone there: one sorts
// before it and one behind it, both older and busier, with ids and numbers like its own, and each says something after
// each of its turns. Whatever a test does, it changes none of their rows.

// neighbours are the other conversations in the database of a test.
type neighbours struct {
	t      testing.TB
	db     tidemark.DB // as it is, behind whatever a test puts around it
	log    *host.Log
	before map[string][]string // their rows by table

	mu    sync.Mutex // guards said
	turns int        // of the test
	said  int
}

// others are the names of the neighbours, of which one sorts before agent:main:main and one behind it.
var others = []string{"aunt", "zoe"}

// longAgo is when they were busy.
var longAgo = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// begun is what an empty database becomes one with neighbours by, and how it then reads: worked out by the first test
// that has them.
var begun struct {
	sync.Mutex
	log    *host.Log // makes statements
	stmts  []tidemark.Stmt
	before map[string][]string
}

// written notes all that is written into a database.
type written struct {
	tidemark.DB
	stmts []tidemark.Stmt
}

func (w *written) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	w.stmts = append(w.stmts, stmts...)
	return w.DB.Tx(ctx, stmts)
}

// withNeighbours puts neighbours into an empty database, and compares their rows at the end of the test.
func withNeighbours(t testing.TB, db tidemark.DB) *neighbours {
	t.Helper()
	n := &neighbours{t: t, db: db}
	begun.Lock()
	defer begun.Unlock()
	if begun.stmts == nil {
		n.begin()
	} else if err := db.Tx(t.Context(), begun.stmts); err != nil {
		t.Fatal(err)
	}
	n.log, n.before = begun.log, begun.before
	t.Cleanup(n.compare)
	return n
}

// begin makes the tables and the neighbours' rows.
func (n *neighbours) begin() {
	n.t.Helper()
	w := &written{DB: n.db}
	var err error
	if n.log, err = session.MigrateAll(n.t.Context(), w); err != nil {
		n.t.Fatal(err)
	}
	var stmts []tidemark.Stmt
	for i, name := range others {
		stmts = append(stmts, n.rows(name, i+1)...)
	}
	if err := w.Tx(n.t.Context(), stmts); err != nil {
		n.t.Fatal(err)
	}
	begun.log, begun.stmts, begun.before = n.log, w.stmts, n.dump()
}

// rows are what a busy conversation has: a turn in work, inputs that wait, what is due and what its agent is not told
// yet, plans, questions, messages to be sent, an import that broke off, a reset at each of its steps.
func (n *neighbours) rows(name string, i int) []tidemark.Stmt {
	n.t.Helper()
	key := "agent:main:" + name
	var stmts []tidemark.Stmt
	for _, l := range []struct{ id, key string }{{name + "-log", key}, {name + "-branch", key + "#side"}, {name + "-stage", "import:" + key}} {
		stmts = append(stmts, n.log.CreateStmt(host.Info{ID: l.id, Key: tidemark.Key(l.key), Created: longAgo}))
		for j := range 6 {
			stmts = append(stmts, n.message(l.id, j)...)
		}
	}
	for sql := range strings.SplitSeq(strings.TrimSpace(neighbourRows), ";\n") {
		sql = strings.NewReplacer("$key", key, "$name", name, "$n", fmt.Sprint(i), "$at", fmt.Sprint(longAgo.UnixMilli())).Replace(sql)
		stmts = append(stmts, tidemark.Stmt{SQL: strings.TrimSuffix(sql, ";")})
	}
	return stmts
}

// message is an entry of a neighbour.
func (n *neighbours) message(log string, j int) []tidemark.Stmt {
	role := []tidemark.Role{tidemark.User, tidemark.Assistant}[j%2]
	text := fmt.Sprintf("of the neighbour %s, message %d", log, j)
	at := longAgo.Add(time.Duration(j) * time.Minute)
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NamedID(at, log+fmt.Sprint(j))), Kind: tidemark.KindMessage, At: at, Tokens: 1000,
		Payload: tidemark.NewText(role, text).AppendJSON(nil)}
	stmts, err := n.log.AppendStmts(log, e)
	if err != nil {
		n.t.Fatal(err)
	}
	return append(stmts, tidemark.Stmt{SQL: `INSERT INTO words(rowid, home, terms) VALUES((SELECT max(seq) FROM entries), ?, ?)`,
		Args: []any{"h" + string(tidemark.HashOf([]byte(log)))[:16], text}})
}

// speak has each of them say something, so that its rows stand between those of the test.
func (n *neighbours) speak() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.turns++; testing.Short() && n.turns > 2 && n.turns%8 > 0 { // of many turns some are enough
		return
	}
	n.said++
	var stmts []tidemark.Stmt
	for _, name := range others {
		stmts = append(stmts, n.message(name+"-log", 100+n.said)...)
	}
	if err := n.db.Tx(context.Background(), stmts); err != nil {
		n.t.Errorf("a neighbour cannot speak: %v", err)
	}
}

// dump gives all rows by table.
func (n *neighbours) dump() map[string][]string {
	out := map[string][]string{}
	ctx := context.Background()
	tables, err := n.db.Query(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		AND name NOT LIKE '\_cf%' ESCAPE '\' AND name NOT LIKE 'words\_%' ESCAPE '\' AND name NOT LIKE 'piece\_words\_%' ESCAPE '\' AND name <> 'schema_versions' LIMIT 200`)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, t := range tables {
		name := t.Text(0)
		columns, err := n.db.Query(ctx, `SELECT name FROM pragma_table_info(?) LIMIT 100`, name)
		if err != nil {
			n.t.Fatal(err)
		}
		var quoted []string
		for _, c := range columns {
			quoted = append(quoted, `quote("`+c.Text(0)+`")`)
		}
		rows, err := n.db.Query(ctx, `SELECT `+strings.Join(quoted, ` || ', ' || `)+` FROM "`+name+`" ORDER BY 1 LIMIT 20000`)
		if err != nil {
			n.t.Fatalf("rows of %s: %v", name, err)
		}
		for _, r := range rows {
			out[name] = append(out[name], r.Text(0))
		}
	}
	return out
}

// compare fails the test when a row of a neighbour is gone, or is not what it was.
func (n *neighbours) compare() {
	after := n.dump()
	for table, rows := range n.before {
		for _, r := range rows {
			if _, there := slices.BinarySearch(after[table], r); !there {
				n.t.Errorf("a row of %s, of another conversation, is gone or changed:\n%s", table, r)
			}
		}
	}
	for table, rows := range after {
		for _, r := range rows {
			if _, there := slices.BinarySearch(n.before[table], r); !there && table != "entries" && (strings.Contains(r, "'agent:main:aunt") || strings.Contains(r, "'agent:main:zoe")) {
				n.t.Errorf("a row of %s was added to another conversation:\n%s", table, r)
			}
		}
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/session"
)

// TestDoctorUnsound: compactions that were taken back are told, those of long ago are not.
func TestDoctorUnsound(t *testing.T) {
	db := hosttest.DB(t)
	var out bytes.Buffer
	d := &doctor{m: &Main{out: &output{w: &out}, err: &output{w: &out}}}
	if err := d.unsound(t.Context(), db); err != nil || len(d.found) != 0 {
		t.Fatalf("%v, %v", err, d.found)
	}
	stmts := []tidemark.Stmt{{SQL: `CREATE TABLE unsound(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, overlay TEXT NOT NULL, at INTEGER NOT NULL, act TEXT NOT NULL, text TEXT NOT NULL)`}}
	for _, at := range []time.Time{time.Now().Add(-100 * 24 * time.Hour), time.Now()} {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO unsound(key, overlay, at, act, text) VALUES('agent:main:main', 'x', ?, '', 'entry y cannot be read')`, Args: []any{at.UnixMilli()}})
	}
	if err := db.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	if list, err := session.Unsounds(t.Context(), db, 9); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := d.unsound(t.Context(), db); err != nil || len(d.found) != 1 || !strings.Contains(d.found[0].Text, "entry y cannot be read") {
		t.Errorf("%v, %+v", err, d.found)
	}
}

func TestMetric(t *testing.T) {
	text := []byte("# HELP a_total x\n# TYPE a_total counter\na_total 12\nb_total{x=\"y\"} 3\n")
	if metric(text, "a_total") != 12 || metric(text, "b_total") != 0 || metric(text, "c_total") != 0 {
		t.Error("the text is not read")
	}
}

// TestDoctorVectors: nothing is said of vectors that nobody asked for, and a failing endpoint is told.
func TestDoctorVectors(t *testing.T) {
	db := hosttest.DB(t)
	var out bytes.Buffer
	d := &doctor{m: &Main{out: &output{w: &out}, err: &output{w: &out}}}
	if err := d.vectors(t.Context(), db); err != nil || len(d.found) != 0 {
		t.Fatal(d.found, err)
	}
	for _, sql := range []string{`CREATE TABLE vectors(key TEXT, seq INTEGER, vector BLOB)`, `CREATE TABLE embedded(key TEXT, log TEXT, model TEXT, seq INTEGER, failures INTEGER)`,
		`INSERT INTO vectors VALUES('k', 1, x'01')`} {
		if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: sql}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.vectors(t.Context(), db); err != nil || len(d.found) != 1 || d.found[0].Verdict != fine {
		t.Fatal(d.found, err)
	}
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO embedded VALUES('k', 'l', 'm', 0, 2)`}}); err != nil {
		t.Fatal(err)
	}
	if err := d.vectors(t.Context(), db); err != nil || len(d.found) != 2 || d.found[1].Verdict != odd {
		t.Fatal(d.found, err)
	}
}

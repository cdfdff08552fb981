package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
)

// TestDoctorUnsound: compactions that were taken back are told, those of long ago are not.
func TestDoctorUnsound(t *testing.T) {
	db := hosttest.DB(t)
	var out bytes.Buffer
	d := &doctor{m: &cli.Main{Out: &cli.Output{W: &out}, Err: &cli.Output{W: &out}}}
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
	if list, err := selfcheck.Unsounds(t.Context(), db, 9); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := d.unsound(t.Context(), db); err != nil || len(d.found) != 1 || !strings.Contains(d.found[0].Text, "entry y cannot be read") {
		t.Errorf("%v, %+v", err, d.found)
	}
}

func TestMetric(t *testing.T) {
	text := []byte("# HELP a_total x\n# TYPE a_total counter\na_total 12\nb_total{x=\"y\"} 3\n")
	if metric(text, "a_total") != 12 || metric(text, "b_total") != 0 || metric(text, `b_total{x="y"}`) != 3 || metric(text, "c_total") != 0 {
		t.Error("the text is not read")
	}
}

// TestDoctorVectors: nothing is said of vectors that nobody asked for, and a failing endpoint is told.
func TestDoctorVectors(t *testing.T) {
	db := hosttest.DB(t)
	var out bytes.Buffer
	d := &doctor{m: &cli.Main{Out: &cli.Output{W: &out}, Err: &cli.Output{W: &out}}}
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

// TestDoctorEmbedder: an endpoint that is gone is told before a message had to do without, and one that answers is.
func TestDoctorEmbedder(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1,0]}]}`))
	}))
	defer s.Close()
	for url, want := range map[string]string{s.URL: fine, "http://127.0.0.1:1": odd} {
		c := config.Default()
		c.Recall.Embeddings, c.Recall.EmbeddingURL = config.OpenAI, url
		d := &doctor{m: &cli.Main{Out: &cli.Output{W: io.Discard}, Err: &cli.Output{W: io.Discard}}, cfg: c}
		if d.embedder(t.Context()); len(d.found) != 1 || d.found[0].Verdict != want {
			t.Errorf("%s: %+v", url, d.found)
		}
	}
	home := t.TempDir()
	var out bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: []string{"TIDEMARK_HOME=" + home, "TIDEMARK_RECALL_EMBEDDINGS=workers-ai"}}
	if m.Run(t.Context(), commands(), []string{"doctor"}); !strings.Contains(out.String(), "no [ai] is bound here") {
		t.Error(out.String())
	}
}

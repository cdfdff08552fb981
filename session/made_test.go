package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// What tests of cost and benchmarks are made of; all of it is the same in each run.

var vocabulary = strings.Fields("harbour tide gauge moon level storm chart depth keel anchor signal buoy pilot ledger window token session overlay summary archive parser reader writer schema index table column engine worker bucket object alarm queue input reply stream retry fence")

// words is some text of a person.
func words(rng *rand.Rand, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = vocabulary[rng.IntN(len(vocabulary))]
		if rng.IntN(6) == 0 {
			out[i] += fmt.Sprint(rng.IntN(500))
		}
	}
	return strings.Join(out, " ")
}

// code is the result of reading a file.
func code(rng *rand.Rand, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%6d\tfunc %s%x(ctx context.Context, n int) error { return %q }\n", i, words(rng, 1), rng.Uint32()%4096, words(rng, 3))
	}
	return b.String()
}

// history is n stored messages of a person and a model, taking turns.
func history(n int) []tidemark.Entry {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	out := make([]tidemark.Entry, n)
	chain := tidemark.Hash("")
	for i := range out {
		role, from := tidemark.User, tidemark.FromPerson
		if i%2 == 1 {
			role, from = tidemark.Assistant, tidemark.FromModel
		}
		m := tidemark.NewText(role, words(rng, 60))
		chain = tidemark.Chain(chain, m)
		at = at.Add(time.Second)
		out[i] = tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(at)), Kind: tidemark.KindMessage, At: at, Tokens: tidemark.Estimate(m),
			Origin: tidemark.Origin{From: from}, Chain: chain, Payload: m.AppendJSON(nil)}
	}
	return out
}

// appendAll writes entries into a log in large transactions.
func appendAll(tb testing.TB, db tidemark.DB, log string, entries ...tidemark.Entry) {
	tb.Helper()
	l := &host.Log{DB: db}
	const each = 2000
	for len(entries) > 0 {
		n := min(each, len(entries))
		stmts, err := l.AppendStmts(log, entries[:n]...)
		if err != nil {
			tb.Fatal(err)
		}
		if err := db.Tx(context.Background(), stmts); err != nil {
			tb.Fatal(err)
		}
		entries = entries[n:]
	}
}

package host_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// TestChain holds Chain and Chains against what Walk yields: over pages, behind events, through the
// bases of branches, and for a log without messages.
func TestChain(t *testing.T) {
	ctx := t.Context()
	l, err := host.OpenLog(ctx, hosttest.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	add := func(log string, kind tidemark.Kind, n int) {
		t.Helper()
		entries := make([]tidemark.Entry, n)
		for i := range entries {
			entries[i] = tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(time.Now())), Kind: kind, At: time.Now(), Payload: []byte(`{"type":"note","text":""}`)}
			if kind == tidemark.KindMessage {
				entries[i].Payload = tidemark.NewText(tidemark.User, fmt.Sprint(log, i)).AppendJSON(nil)
				entries[i].Chain = tidemark.HashOf(entries[i].Payload)
			}
		}
		stmts, err := l.AppendStmts(log, entries...)
		if err == nil {
			err = l.DB.Tx(ctx, stmts)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(i host.Info) {
		t.Helper()
		if err := l.DB.Tx(ctx, []tidemark.Stmt{l.CreateStmt(i)}); err != nil {
			t.Fatal(err)
		}
	}
	create(host.Info{ID: "trunk"})
	add("trunk", tidemark.KindMessage, 1100)
	create(host.Info{ID: "branch", BaseLog: "trunk", BaseSeq: 1050})
	add("branch", tidemark.KindEvent, 70)
	create(host.Info{ID: "twig", BaseLog: "branch", BaseSeq: 1130})
	add("trunk", tidemark.KindMessage, 3)
	add("trunk", tidemark.KindEvent, 70)
	add("twig", tidemark.KindMessage, 2)
	create(host.Info{ID: "empty"})

	for _, tc := range []struct {
		log  string
		want int
	}{{"trunk", 1103}, {"branch", 1050}, {"twig", 1052}, {"empty", 0}} {
		t.Run(tc.log, func(t *testing.T) {
			want := walked(t, ctx, l, tc.log)
			got, err := l.Chains(ctx, tc.log)
			if err != nil || len(want) != tc.want || !slices.Equal(got, want) {
				t.Errorf("chains: %d links, Walk has %d, want %d, %v", len(got), len(want), tc.want, err)
			}
			last := tidemark.Hash("")
			if len(want) > 0 {
				last = want[len(want)-1]
			}
			if got, err := l.Chain(ctx, tc.log); got != last || err != nil {
				t.Errorf("chain %q, want %q, %v", got, last, err)
			}
		})
	}
}

func walked(t *testing.T, ctx context.Context, l *host.Log, log string) []tidemark.Hash {
	t.Helper()
	var out []tidemark.Hash
	for e, err := range l.Walk(ctx, log, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == tidemark.KindMessage {
			out = append(out, e.Chain)
		}
	}
	slices.Reverse(out)
	return out
}

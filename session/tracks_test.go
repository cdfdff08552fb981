package session_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// visitor writes what clients say, as package proxy does.
type visitor struct {
	*harness
	n int
}

// says stores messages in a track, each with a call, and returns the position of the last.
func (v *visitor) says(name, log string, messages int) (last int64) {
	v.t.Helper()
	g := v.Guest()
	for range messages {
		v.n++
		m := tidemark.NewText(tidemark.User, fmt.Sprintf("number%d", v.n))
		e := tidemark.Entry{ID: tidemark.EntryID(fmt.Sprintf("e%06d", v.n)), Kind: tidemark.KindMessage, At: v.rt.Now(), Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: "proxy"}}
		stmts, err := g.Append(v.t.Context(), log, &e, m, "")
		if err != nil {
			v.t.Fatal(err)
		}
		stmts = append(stmts, g.Called(name, "title "+name, 1, tidemark.Usage{Input: 1}, tidemark.Tokens(v.n))...)
		if err := v.db.Tx(v.t.Context(), stmts); err != nil {
			v.t.Fatal(err)
		}
		seqs, err := g.Log().Seqs(v.t.Context(), []tidemark.EntryID{e.ID})
		if err != nil {
			v.t.Fatal(err)
		}
		last = seqs[e.ID]
	}
	return last
}

// begins makes a track behind a position of another one.
func (v *visitor) begins(name, base string, seq int64) string {
	v.t.Helper()
	log, err := v.Guest().Branch(v.t.Context(), name, base, seq)
	if err != nil {
		v.t.Fatal(err)
	}
	return log
}

// TestTracks: of the histories of a client the longest stands for all, counted with what it has in common with others,
// and of equals the newest.
func TestTracks(t *testing.T) {
	v := &visitor{harness: newHarness(t, session.Settings{})}
	const root = tidemark.Key("agent:main:proxy:dm:0123456789abcdef0123456789abcdef")
	v.key = root
	v.open()
	shown := func(want string) {
		t.Helper()
		key, list, err := lineage.Shown(t.Context(), v.db, v.key)
		got := string(key) + ":"
		for _, track := range list {
			got += fmt.Sprintf(" %s=%d", track.Key[len(root):], track.Messages)
			if track.Main != (track.Key == key) {
				t.Errorf("track %s: main %t", track.Key, track.Main)
			}
		}
		if err != nil || got != string(root)+want {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	}
	shown("#t1: #t1=0")
	v.says("", v.begins("", "", 0), 1) // what a client asks first, and never again
	shown("#t1: #t1=1")
	long := v.begins("t2", "", 0)
	fork := v.says("t2", long, 4)
	v.says("t2", long, 3)
	shown("#t2: #t1=1 #t2=7")
	rewound := v.begins("t3", long, fork)
	v.says("t3", rewound, 2)
	shown("#t2: #t1=1 #t2=7 #t3=6")
	third := v.says("t3", rewound, 1)
	shown("#t3: #t1=1 #t2=7 #t3=7") // of equals
	v.begins("t4", "", 0)           // nothing stands there
	for i := 10; i <= 12; i++ {     // by their numbers, not by their letters
		v.says(fmt.Sprint("t", i), v.begins(fmt.Sprint("t", i), rewound, third), i)
	}
	v.says("t5", v.begins("t5", long, fork-1), 1)
	shown("#t12: #t1=1 #t2=7 #t3=7 #t5=4 #t10=17 #t11=18 #t12=19")

	info, err := v.Info(t.Context())
	if err != nil || info.Key != root || info.Title != "title t12" || info.Messages != 19 || info.ContextTokens != tidemark.Tokens(v.n-1) || info.Usage.Input != tidemark.Tokens(v.n) {
		t.Errorf("the row is %+v, %v", info, err)
	}
	if err := v.Configure(t.Context(), session.Override{Title: "Mine"}); err != nil {
		t.Fatal(err)
	}
	if info, err = v.Info(t.Context()); err != nil || info.Title != "Mine" {
		t.Errorf("the title is %q, %v", info.Title, err)
	}
	for _, word := range []string{"number1", "number3", "number9", fmt.Sprint("number", v.n)} { // in whatever track it is
		found, err := v.Recall(t.Context(), search.Wanted{Query: word})
		if err != nil || len(found.Results) == 0 || found.Results[0].Text != word {
			t.Errorf("recall of %s: %+v, %v", word, found.Results, err)
		}
		if found, err := v.Search(t.Context(), word, 5); err != nil || len(found) != 1 {
			t.Errorf("search for %s: %+v, %v", word, found, err)
		}
	}
}

// TestNoTracks: no other conversation has any, nor looks into its branches.
func TestNoTracks(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.open()
	if key, list, err := lineage.Shown(t.Context(), h.db, h.key); key != "" || list != nil || err != nil {
		t.Errorf("%q %v %v", key, list, err)
	}
	if list, err := lineage.Tracks(context.Background(), h.db, "agent:main:proxy:dm:none"); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
}

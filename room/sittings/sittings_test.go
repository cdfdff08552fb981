package sittings

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestMomentsWhole: what a sitting's topics are taken from is never cut inside a character.
func TestMomentsWhole(t *testing.T) {
	db, rt := hosttest.DB(t), hosttest.Runtime(t)
	log, err := host.OpenLog(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	const key = tidemark.Key("agent:main:main")
	if err := db.Tx(t.Context(), []tidemark.Stmt{log.CreateStmt(host.Info{ID: "log", Key: key, Created: rt.Now()})}); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if err := log.Append(t.Context(), "log", tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(rt.Now())), Kind: tidemark.KindMessage, At: rt.Now(),
			Origin:  tidemark.Origin{From: tidemark.FromPerson},
			Payload: tidemark.NewText(tidemark.User, strings.Repeat("x", n)+strings.Repeat("日", sittingText)).AppendJSON(nil)}); err != nil {
			t.Fatal(err)
		}
	}
	s := &Room{Self: room.Self{Key: key, DB: db, Runtime: rt}, History: room.History{Log: log,
		MarksOf: func(context.Context, []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) { return nil, nil }}}
	moments, err := s.moments(t.Context(), 0)
	if err != nil || len(moments) != 4 {
		t.Fatal(len(moments), err)
	}
	for _, m := range moments {
		if !utf8.ValidString(m.Text) || len(m.Text) < sittingText-3 || len(m.Text) > sittingText {
			t.Errorf("%d bytes, %q at the end", len(m.Text), m.Text[len(m.Text)-4:])
		}
	}
}

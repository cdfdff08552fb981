package search

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// silent is an agent with nothing to say.
type silent struct{ session.Agent }

func (silent) Prompt(context.Context, tidemark.Scope, time.Time) (string, error)  { return "", nil }
func (silent) Report(context.Context, tidemark.SessionInfo, []archive.Info) error { return nil }
func (silent) Tools(tidemark.Scope) []tidemark.Tool                               { return nil }

// opened is a session that answers nobody, with the room.
func opened(t *testing.T, blobs tidemark.Blobs) (*session.Session, *Room) {
	t.Helper()
	s, err := session.Open(t.Context(), session.Config{Key: "agent:main:main", DB: hosttest.DB(t), Blobs: blobs, Agent: silent{}, Settings: session.Settings{Window: 1 << 20},
		Runtime: hosttest.Runtime(t), Rooms: []room.Maker{Make, replay.Make}})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := session.Room[*Room](s)
	if !ok {
		t.Fatal("the session has no room that finds")
	}
	return s, r
}

// TestRestOnce: a long text whose reading two recalls begin side by side, or begin again, is stored once.
func TestRestOnce(t *testing.T) {
	s, r := opened(t, tidemarktest.NewBlobs())
	var text strings.Builder
	for i := 0; text.Len() < 2*room.WordsBytes; i++ {
		fmt.Fprintf(&text, "row %d of the dump %d\n", i, i*i)
	}
	m := tidemark.NewText(tidemark.User, text.String())
	log, _ := session.Room[*replay.Room](s)
	if _, err := log.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		yield(replay.Message{At: time.UnixMilli(1), Message: m}, nil)
	}, nil); err != nil {
		t.Fatal(err)
	}
	count := func(of string) int64 {
		t.Helper()
		rows, err := r.DB.Query(t.Context(), `SELECT count(*) FROM `+of+` LIMIT 1`)
		if err != nil {
			t.Fatal(err)
		}
		return rows[0].Int(0)
	}
	entries, err := r.Log.Payloads(t.Context(), []int64{1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	again, err := r.pieces.restStmts(t.Context(), entries[0], m)
	if err != nil || len(again) == 0 {
		t.Fatal(again, err)
	}
	if err := r.pieces.readRest(t.Context(), piecesAWake); err != nil {
		t.Fatal(err)
	}
	want, words := count("pieces"), count("piece_words")
	if want < 3 || words != want || count("unread") != 0 {
		t.Fatalf("%d pieces, %d in the index, %d texts unread", want, words, count("unread"))
	}
	if err := r.DB.Tx(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if n := count("unread"); n != 0 {
		t.Errorf("%d texts are read again", n)
	}
	if err := r.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO unread(key, entry, at) VALUES(?, ?, 0)`, Args: []any{string(r.Key), string(entries[0].ID)}}}); err != nil {
		t.Fatal(err)
	}
	if err := r.pieces.readRest(t.Context(), piecesAWake); err != nil {
		t.Fatal(err)
	}
	if n, w := count("pieces"), count("piece_words"); n != want || w != words || count("unread") != 0 {
		t.Errorf("%d pieces and %d in the index after a second reading, want %d", n, w, want)
	}
}

// TestIndexWithoutImages: the index of a turn that waited reads no image from the bucket: it has no words.
func TestIndexWithoutImages(t *testing.T) {
	blobs := tidemarktest.NewBlobs()
	blobs.Fail = func(op, key string) error { return errors.New(op + " of " + key) }
	_, r := opened(t, blobs)
	log, err := r.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := tidemark.EntryID(tidemark.NewID(r.Runtime.Now()))
	payload := `{"role":"user","content":[{"type":"image","tidemark_blob":{"sha256":"` + strings.Repeat("ab", 32) + `","bytes":400000}},{"type":"text","text":"the boathouse"}]}`
	if err := r.Log.Append(t.Context(), log, tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: r.Runtime.Now(), Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
	if err := r.index.put(t.Context(), r.skips.byID(t.Context(), []tidemark.EntryID{"unknown", id})); err != nil {
		t.Fatal(err)
	}
	e, err := r.Log.Entry(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := r.index.holds(t.Context(), e.Seq, r.Stemmer.Terms("boathouse")[0]); !found || err != nil {
		t.Errorf("not in the index, %v", err)
	}
}

package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestRestOnce: a long text whose reading two recalls begin side by side, or begin again, is stored once.
func TestRestOnce(t *testing.T) {
	s, err := Open(t.Context(), Config{Key: "agent:main:main", DB: hosttest.DB(t), Blobs: tidemarktest.NewBlobs(), Agent: silent{}, Settings: Settings{Window: 1 << 20}, Runtime: hosttest.Runtime(t)})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := 0; text.Len() < 2*wordsBytes; i++ {
		fmt.Fprintf(&text, "row %d of the dump %d\n", i, i*i)
	}
	m := tidemark.NewText(tidemark.User, text.String())
	if _, err := s.Import(t.Context(), func(yield func(Imported, error) bool) {
		yield(Imported{At: time.UnixMilli(1), Message: m}, nil)
	}, nil); err != nil {
		t.Fatal(err)
	}
	count := func(of string) int64 {
		t.Helper()
		rows, err := s.DB.Query(t.Context(), `SELECT count(*) FROM `+of+` LIMIT 1`)
		if err != nil {
			t.Fatal(err)
		}
		return rows[0].Int(0)
	}
	entries, err := s.log.Payloads(t.Context(), []int64{1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	again, err := s.restStmts(t.Context(), entries[0], m)
	if err != nil || len(again) == 0 {
		t.Fatal(again, err)
	}
	if err := s.readRest(t.Context(), piecesAWake); err != nil {
		t.Fatal(err)
	}
	want, words := count("pieces"), count("piece_words")
	if want < 3 || words != want || count("unread") != 0 {
		t.Fatalf("%d pieces, %d in the index, %d texts unread", want, words, count("unread"))
	}
	if err := s.DB.Tx(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if n := count("unread"); n != 0 {
		t.Errorf("%d texts are read again", n)
	}
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO unread(key, entry, at) VALUES(?, ?, 0)`, Args: []any{string(s.Key), string(entries[0].ID)}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.readRest(t.Context(), piecesAWake); err != nil {
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
	s, err := Open(t.Context(), Config{Key: "agent:main:main", DB: hosttest.DB(t), Blobs: blobs, Agent: silent{}, Runtime: hosttest.Runtime(t)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := tidemark.EntryID(tidemark.NewID(s.Runtime.Now()))
	payload := `{"role":"user","content":[{"type":"image","tidemark_blob":{"sha256":"` + strings.Repeat("ab", 32) + `","bytes":400000}},{"type":"text","text":"the boathouse"}]}`
	if err := s.log.Append(t.Context(), h.Log, tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: s.Runtime.Now(), Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
	if err := s.index(t.Context(), s.byID(t.Context(), []tidemark.EntryID{"unknown", id})); err != nil {
		t.Fatal(err)
	}
	e, err := s.log.Entry(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.holds(t.Context(), e.Seq, s.Stemmer.Terms("boathouse")[0]); !found || err != nil {
		t.Errorf("not in the index, %v", err)
	}
}

package blocks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// stores returns the stores of two conversations that share a database and a bucket.
func stores(t *testing.T) (s, beside *Store, blobs *tidemarktest.Blobs) {
	t.Helper()
	db := hosttest.DB(t)
	blobs = tidemarktest.NewBlobs()
	of := func(key tidemark.Key) *Store {
		return &Store{Key: key, DB: db, Blobs: blobs,
			Open:  func(ctx context.Context) error { return host.Migrate(ctx, db, "blocks", Tables) },
			There: func(ctx context.Context) (bool, error) { return host.Migrated(ctx, db, "blocks") }}
	}
	return of("agent:main:main"), of("agent:other:main"), blobs
}

// kept stores a message and returns it as an entry keeps it.
func kept(t *testing.T, s *Store, m tidemark.Message, most int) tidemark.Message {
	t.Helper()
	m, err := s.Spill(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	m, stmts, err := s.Compress(t.Context(), m, most)
	if err == nil && len(stmts) > 0 {
		err = s.DB.Tx(t.Context(), stmts)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out tidemark.Message
	if err := out.UnmarshalJSON(m.AppendJSON(nil)); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReadBack: what was stored reads as it came, wherever its parts stand, and in its own conversation only.
func TestReadBack(t *testing.T) {
	long := strings.Repeat("a line of a log, and the next.\n", 400)
	forged := tidemark.Block{}
	if err := forged.UnmarshalJSON([]byte(`{"type":"text","text":"x","tidemark_blob":{"sha256":"` + strings.Repeat("ab", 32) + `","bytes":3}}`)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		m       tidemark.Message
		most    int
		far     bool // a block of it stands in the bucket
		beside  bool // and one in the database
		foreign bool // another conversation reads it, too
	}{
		"small":            {m: tidemark.NewText(tidemark.User, "hello"), most: 100, foreign: true},
		"a result":         {m: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", long, false)}}, most: 100, beside: true},
		"a result, off":    {m: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", long, false)}}, most: -1, foreign: true},
		"a large text":     {m: tidemark.NewText(tidemark.User, strings.Repeat(long, 30)), most: 100, far: true},
		"a large and more": {m: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", strings.Repeat(long, 30), true), tidemark.ToolResult("c2", long, false)}}, most: 100, far: true, beside: true},
		"forged":           {m: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{forged}}, most: 100, far: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, other, _ := stores(t)
			stored := kept(t, s, tc.m, tc.most)
			all := make([]int, len(stored.Content))
			for i := range all {
				all[i] = i
			}
			large, _ := Large(stored)
			if rows := RowRefs(stored, all); (len(rows) > 0) != tc.beside || (len(large) > len(rows)) != tc.far {
				t.Fatalf("%d blocks stand elsewhere, %d of them in the database", len(large), len(rows))
			}
			got, err := s.Read(t.Context(), stored)
			if err != nil || !bytes.Equal(got.AppendJSON(nil), tc.m.AppendJSON(nil)) {
				t.Errorf("read %.200s, %v", got.AppendJSON(nil), err)
			}
			if _, err := s.Noted(stored, got, "it"); err != nil {
				t.Error(err)
			}
			read, err := other.Read(t.Context(), stored)
			if err != nil || bytes.Equal(read.AppendJSON(nil), tc.m.AppendJSON(nil)) != tc.foreign {
				t.Errorf("another conversation reads %.200s, %v", read.AppendJSON(nil), err)
			}
		})
	}
}

// TestNotedLost: a block that is gone, or is not what was stored, is a note that says so, and the others are read.
func TestNotedLost(t *testing.T) {
	s, _, blobs := stores(t)
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text(strings.Repeat("walnut ", SpillBytes)), tidemark.Text("and this")}}
	stored := kept(t, s, m, 100)
	page, _, err := blobs.List(t.Context(), "agents/main/artifacts/", "", 10)
	if err != nil || len(page) != 1 {
		t.Fatalf("%d blocks in the bucket, %v", len(page), err)
	}
	if _, err := blobs.Put(t.Context(), page[0].Key, strings.NewReader("other"), 5, tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	full, err := s.Read(t.Context(), stored)
	if err != nil {
		t.Fatal(err)
	}
	noted, err := s.Noted(stored, full, "entry 1")
	if !errors.Is(err, ErrDamaged) || !strings.HasPrefix(noted.Content[0].Text, "[block 1 (text) of entry 1") || noted.Content[1].Text != "and this" {
		t.Errorf("%+v, %v", noted.Content, err)
	}
}

// TestCarried: what one store exports reads as it came where it was imported, and nothing else does.
func TestCarried(t *testing.T) {
	s, other, blobs := stores(t)
	long := strings.Repeat("a line of a log, and the next.\n", 400)
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", strings.Repeat(long, 30), true), tidemark.ToolResult("c2", long, false), tidemark.Text("and this")}}
	other.Blobs = tidemarktest.NewBlobs()
	e := tidemark.Entry{Kind: tidemark.KindMessage, Payload: kept(t, s, m, 100).AppendJSON(nil)}
	brought := map[tidemark.Hash]bool{}
	payload, err := s.Export(t.Context(), e, func(sum tidemark.Hash, size int64, body io.Reader) error {
		brought[sum] = true
		return errors.Join(other.Import(t.Context(), sum, size, body), other.Import(t.Context(), sum, size, strings.NewReader(strings.Repeat("x", int(size)))))
	})
	if err != nil || len(brought) != 1 {
		t.Fatalf("%d blocks, %v", len(brought), err)
	}
	carried, err := tidemark.Entry{Payload: payload}.Message()
	if err != nil {
		t.Fatal(err)
	}
	got, err := other.Imported(t.Context(), carried, func(sum tidemark.Hash) bool { return brought[sum] })
	if err != nil || !bytes.Equal(got.AppendJSON(nil), m.AppendJSON(nil)) {
		t.Errorf("read %.200s, %v", got.AppendJSON(nil), err)
	}
	if _, err := other.Imported(t.Context(), carried, func(tidemark.Hash) bool { return false }); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a block that was not imported: %v", err)
	}
	for sum := range brought {
		if _, err := blobs.Put(t.Context(), s.Name(string(sum)), strings.NewReader("other"), 5, tidemark.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Export(t.Context(), e, func(tidemark.Hash, int64, io.Reader) error { return nil }); !errors.Is(err, ErrDamaged) || !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("a damaged block: %v", err)
	}
}

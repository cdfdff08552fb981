package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// lodger is a room with a table, a kind of due work and a kind of report.
type lodger struct{ space, table, wakes, reports string }

func (l lodger) Tables() room.Tables {
	return room.Tables{Space: l.space, Steps: []string{`CREATE TABLE ` + l.table + `(key TEXT)`, `CREATE INDEX at ON ` + l.table + `(key)`}}
}
func (l lodger) Wakes() string                        { return l.wakes }
func (l lodger) Wake(context.Context) error           { return nil }
func (l lodger) Reports() string                      { return l.reports }
func (l lodger) Report(context.Context, []byte) error { return nil }

// TestRoomsApart: a room that gives something the name of another's, or of the core's, is refused: it would never be called.
func TestRoomsApart(t *testing.T) {
	first := lodger{"kite", "kites", "kite", "kite"}
	for _, tc := range []struct {
		name string
		room lodger
		want string
	}{
		{"apart", lodger{"string", "strings", "string", "string"}, ""},
		{"space of another", lodger{"kite", "strings", "string", "string"}, `space "kite"`},
		{"table of another", lodger{"string", "kites", "string", "string"}, `table "kites"`},
		{"table of the core", lodger{"string", "heads", "string", "string"}, `table "heads"`},
		{"later table of the core", lodger{"string", "artifacts", "string", "string"}, `table "artifacts"`},
		{"virtual table of the core", lodger{"string", "words", "string", "string"}, `table "words"`},
		{"due work of another", lodger{"string", "strings", "kite", "string"}, `kind of due work "kite"`},
		{"due work of the core", lodger{"string", "strings", "outbox", "string"}, `kind of due work "outbox"`},
		{"report of another", lodger{"string", "strings", "string", "kite"}, `kind of report "kite"`},
		{"report of the core", lodger{"string", "strings", "string", "facts"}, `kind of report "facts"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			life, end := context.WithCancel(t.Context())
			defer end()
			var rooms []room.Maker
			for _, r := range []lodger{first, tc.room} {
				rooms = append(rooms, func(room.Ports) any { return r })
			}
			_, err := session.Open(life, session.Config{Key: "agent:main:main", DB: hosttest.DB(t), Blobs: tidemarktest.NewBlobs(), Provider: &model{}, Agent: &fakeAgent{}, Runtime: hosttest.Runtime(t), Rooms: rooms})
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// parted is a room of parts.
type parted struct{ parts []any }

func (p parted) Parts() []any { return p.parts }

// TestRoomsParts: parts of a room take part as rooms do, each with what is its own.
func TestRoomsParts(t *testing.T) {
	first, second := lodger{"kite", "kites", "kite", "kite"}, lodger{"string", "strings", "string", "string"}
	open := func(parts ...any) (*session.Session, error) {
		life, end := context.WithCancel(context.Background())
		t.Cleanup(end)
		return session.Open(life, session.Config{Key: "agent:main:main", DB: hosttest.DB(t), Blobs: tidemarktest.NewBlobs(), Provider: &model{}, Agent: &fakeAgent{}, Runtime: hosttest.Runtime(t),
			Rooms: []room.Maker{func(room.Ports) any { return parted{parts} }}})
	}
	s, err := open(first, second)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := session.Room[room.Waker](s); !ok || r.Wakes() != "kite" {
		t.Errorf("the first that wakes is %v", r)
	}
	second.table = first.table
	if _, err := open(first, second); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("two parts with one table: %v", err)
	}
}

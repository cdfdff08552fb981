package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// silent is an agent with nothing to say.
type silent struct{ Agent }

func (silent) Prompt(context.Context, tidemark.Scope, time.Time) (string, error)  { return "", nil }
func (silent) Report(context.Context, tidemark.SessionInfo, []archive.Info) error { return nil }
func (silent) Tools(tidemark.Scope) []tidemark.Tool                               { return nil }

// TestCheckOfStorageDown: a bucket that does not answer tells nothing of an entry; one that lost its block, or
// has another in its place, does.
func TestCheckOfStorageDown(t *testing.T) {
	for _, bytes := range []int{300 << 10, 700 << 10} { // read; looked for
		for name, tc := range map[string]struct {
			fail       error
			other      bool // the block is overwritten
			violations int
		}{
			"sound":     {},
			"no answer": {fail: errors.New("bucket is down")},
			"timeout":   {fail: fmt.Errorf("get: %w", tidemark.ErrTimeout)},
			"cut off":   {fail: io.ErrUnexpectedEOF},
			"gone":      {fail: tidemark.ErrNotFound, violations: 1},
			"other":     {other: true, violations: 1},
		} {
			t.Run(fmt.Sprintf("%s %d", name, bytes), func(t *testing.T) {
				blobs := tidemarktest.NewBlobs()
				failing := false
				blobs.Fail = func(op, _ string) error {
					if op == "get" && failing {
						return tc.fail
					}
					return nil
				}
				s, err := Open(t.Context(), Config{Key: "agent:main:main", DB: hosttest.DB(t), Blobs: blobs, Agent: silent{}, Settings: Settings{Window: 1 << 20}, Runtime: hosttest.Runtime(t), Rooms: []room.Maker{search.Make, selfcheck.Make, replay.Make}})
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Repeat("boathouse ", bytes/10)
				if _, err := s.imports(t.Context(), func(yield func(replay.Message, error) bool) {
					yield(replay.Message{At: time.UnixMilli(1), Message: tidemark.NewText(tidemark.User, text)}, nil)
				}, nil); err != nil {
					t.Fatal(err)
				}
				page, _, err := blobs.List(t.Context(), "agents/main/artifacts/", "", 10)
				if err != nil || len(page) != 1 {
					t.Fatalf("%d blocks in the bucket, %v", len(page), err)
				}
				if tc.other {
					if _, err := blobs.Put(t.Context(), page[0].Key, strings.NewReader("other"), 5, tidemark.PutOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				failing = true
				entries, err := s.log.Payloads(t.Context(), []int64{1})
				if err != nil || len(entries) != 1 {
					t.Fatal(entries, err)
				}
				checks, _ := room.Find[*selfcheck.Room](s.rooms)
				id := entries[0].ID
				c, err := checks.Check(t.Context(), room.Acted{Log: s.current(t), Overlay: "o", Edits: []tidemark.Edit{{From: id, To: id}}, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}})
				unmade := tc.fail != nil && tc.violations == 0
				if len(c.Violations) != tc.violations || unmade != (err != nil) {
					t.Errorf("violations %q, %v", c.Violations, err)
				}
			})
		}
	}
}

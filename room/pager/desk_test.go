package pager

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
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

// desk is a paged conversation, and the ids of its messages.
type desk struct {
	*Room
	t   *testing.T
	log string
	ids []tidemark.EntryID
	may error
}

// morning is when its first message was said, each a minute behind the one before.
var morning = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// deskOf opens a conversation that some messages are imported into.
func deskOf(t *testing.T, db tidemark.DB, key tidemark.Key, set session.Settings, by []compaction.Strategy, messages ...tidemark.Message) *desk {
	t.Helper()
	s, err := session.Open(t.Context(), session.Config{Key: key, DB: db, Blobs: tidemarktest.NewBlobs(), Agent: silent{}, Settings: set, Runtime: hosttest.Runtime(t), Strategies: by, Rooms: []room.Maker{Make, replay.Make}})
	if err != nil {
		t.Fatal(err)
	}
	log, _ := session.Room[*replay.Room](s)
	if _, err := log.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		for i, m := range messages {
			if !yield(replay.Message{At: morning.Add(time.Duration(i) * time.Minute), Message: m}, nil) {
				return
			}
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t}
	var ok bool
	if d.Room, ok = session.Room[*Room](s); !ok {
		t.Fatal("the session has no room that pages")
	}
	if d.log, err = d.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e, err := range d.Messages(t.Context(), d.log, host.Range{To: host.LogEnd}) {
		if err != nil {
			t.Fatal(err)
		}
		d.ids = append(d.ids, e.ID)
	}
	return d
}

// strategies are paging of results of any size.
func strategies() []compaction.Strategy {
	return []compaction.Strategy{&compaction.Paging{MinBytes: 1}}
}

// wide is a window in which nothing leaves.
var wide = session.Settings{Window: 2_000_000, ArtifactChars: -1}

// paged is a conversation of some messages in such a window.
func paged(t *testing.T, messages ...tidemark.Message) *desk {
	t.Helper()
	return deskOf(t, hosttest.DB(t), "agent:main:main", wide, strategies(), messages...)
}

// call returns the answer of a tool to a list of names.
func (d *desk) call(tool string, names ...string) tidemark.Block {
	d.t.Helper()
	raw, err := json.Marshal(map[string]any{"paths": names})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.with(tool, string(raw))
}

// with is call of an input.
func (d *desk) with(tool, input string) tidemark.Block {
	d.t.Helper()
	b := d.Call(d.t.Context(), room.Call{Turn: room.Turn{Log: d.log}, ID: "c9", Tool: tool, Input: []byte(input), May: func(_ context.Context, search bool) error {
		if search {
			d.t.Error("it is taken for a search")
		}
		return d.may
	}})
	if b.ToolUseID != "c9" || b.Type != tidemark.TypeToolResult {
		d.t.Errorf("%s: %+v", tool, b)
	}
	return b
}

// text is an answer of one text, behind "refused: " where it is an error.
func text(b tidemark.Block) string {
	out := ""
	for _, c := range b.Content {
		if out += c.Text; c.Type != tidemark.TypeText {
			out += "[" + c.Type + "]"
		}
	}
	if b.IsError {
		return "refused: " + out
	}
	return out
}

func user(content ...tidemark.Block) tidemark.Message {
	return tidemark.Message{Role: tidemark.User, Content: content}
}

func uses(id, tool, input string) tidemark.Message {
	return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, tool, []byte(input))}}
}

// parsed is a block as it was sent.
func parsed(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// picture is an image of some data.
func picture(t *testing.T, data string) tidemark.Block {
	t.Helper()
	return parsed(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+data+`"}}`)
}

// worked are messages of somebody who works on files: a.go was read and changed, b.go was read.
func worked(t *testing.T) []tidemark.Message {
	return []tidemark.Message{
		user(tidemark.Text("go on"), picture(t, "QUJD")), // 0
		uses("c1", "read_file", `{"path":"a.go"}`),
		user(tidemark.ToolResult("c1", "the text of a", false)), // 2
		uses("c2", "write_file", `{"path":"a.go","content":"new"}`),
		user(tidemark.ToolResult("c2", "written", false)), // 4
		uses("c3", "read_file", `{"path":"b.go"}`),
		user(tidemark.ToolResult("c3", "the text of b", false), tidemark.Text("and?")), // 6
		tidemark.NewText(tidemark.Assistant, "Done."),
		uses("c4", "read_file", `{"path":"`+longest+`"}`),
		user(tidemark.ToolResult("c4", "the text of a long path", false)), // 9
		tidemark.NewText(tidemark.Assistant, "Done."),
	}
}

// longest is a path that is as long as one may be.
var longest = strings.Repeat("d/", maxPath/2-2) + "f.go"

// padded is the handle of the first block of an entry with so many bytes.
func padded(id tidemark.EntryID, n int) string {
	return string(id) + "#" + strings.Repeat("0", n-len(id)-1)
}

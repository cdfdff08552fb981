// Package toolset is the room of the tools of others that a conversation is offered. Begin with Room and Offer.
package toolset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// tables keep the list. They are made where there are tools of others.
var tables = room.Tables{Space: "session_tools", Steps: []string{
	`CREATE TABLE toolsets(key TEXT PRIMARY KEY, day TEXT NOT NULL, list TEXT NOT NULL) WITHOUT ROWID`,
}}

// Room keeps the list of one conversation. It is frozen with the system prompt, and for the same reason: definitions stand
// before all messages, and a change of one costs the provider's cache of everything. A server that was down when it was
// made is looked for again now and then.
type Room struct {
	room.Self
	box    tidemark.Toolbox
	frozen atomic.Pointer[list]
	thawed atomic.Bool
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{Self: p.Self, box: p.Toolbox} }

var (
	_ room.Tabler  = (*Room)(nil)
	_ room.Offerer = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// list is what a conversation is offered.
type list struct {
	Mark    string   `json:"mark"` // of the configuration that it was made with
	At      int64    `json:"at"`   // when, in milliseconds
	Tools   []offer  `json:"tools"`
	Missing []string `json:"missing,omitempty"` // sources that could not be reached
	offered []tidemark.Tool
}

// offer is a tool with what is not told to models.
type offer struct {
	tidemark.Tool
	Idempotent bool   `json:"idempotent,omitempty"`
	TimeoutMs  int64  `json:"timeoutMs,omitempty"`
	Mark       string `json:"mark,omitempty"`
}

// Bounds of making a list.
const (
	listTime   = 15 * time.Second // to ask all sources
	askMissing = time.Minute      // before one that could not be reached is asked again
)

// marking is a toolbox that can say whether its configuration is the one that a list was made with.
type marking interface{ Mark() string }

// Offer implements room.Offerer.
func (s *Room) Offer(ctx context.Context) ([]tidemark.Tool, error) {
	if s.box == nil {
		return nil, nil
	}
	set := s.frozen.Load()
	if set == nil {
		if err := s.Made.Open(ctx, tables); err != nil {
			return nil, err
		}
		rows, err := s.DB.Query(ctx, `SELECT t.list FROM toolsets t JOIN heads h ON h.key = t.key AND h.prompt_day = t.day WHERE t.key = ? LIMIT 1`, string(s.Key))
		if err != nil {
			return nil, fmt.Errorf("read list of tools: %w", err)
		}
		if len(rows) > 0 {
			if set, err = read(rows[0].Bytes(0)); err != nil {
				s.Warn("read list of tools", err) // it is made anew
			}
		}
	}
	if s.thawed.Swap(false) || set == nil || s.outdated(set) {
		return s.freezeTools(ctx, set)
	}
	s.frozen.Store(set)
	return set.offered, nil
}

func read(raw []byte) (*list, error) {
	set := &list{}
	if err := json.Unmarshal(raw, set); err != nil {
		return nil, err
	}
	for _, t := range set.Tools {
		tool := t.Tool
		tool.Idempotent, tool.Timeout, tool.Mark = t.Idempotent, time.Duration(t.TimeoutMs)*time.Millisecond, t.Mark
		set.offered = append(set.offered, tool)
	}
	return set, nil
}

// Thaw implements room.Offerer.
func (s *Room) Thaw() { s.thawed.Store(true) }

// outdated reports a list of another configuration, or one that lacks a source which may be back.
func (s *Room) outdated(set *list) bool {
	if m, ok := s.box.(marking); ok && m.Mark() != set.Mark {
		return true
	}
	age := s.Runtime.Now().Sub(time.UnixMilli(set.At))
	return len(set.Missing) > 0 && (age < 0 || age >= askMissing)
}

// of returns the tools of some sources, by the names before their own.
func (t *list) of(sources []string) []offer {
	var out []offer
	for _, o := range t.Tools {
		if slices.ContainsFunc(sources, func(s string) bool { return strings.HasPrefix(o.Name, s+"__") }) {
			out = append(out, o)
		}
	}
	return out
}

// freezeTools asks for the list and keeps it. The tools of sources that cannot be reached stay as they were in the older
// list: a call of one says what is wrong.
func (s *Room) freezeTools(ctx context.Context, old *list) ([]tidemark.Tool, error) {
	limited, stop := s.Runtime.WithTimeout(ctx, listTime)
	defer stop()
	tools, missing := s.box.Tools(limited, s.Key.Scope())
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	set := list{At: s.Runtime.Now().UnixMilli(), Missing: missing}
	if m, ok := s.box.(marking); ok {
		set.Mark = m.Mark()
	}
	for _, t := range tools {
		set.Tools = append(set.Tools, offer{Tool: t, Idempotent: t.Idempotent, TimeoutMs: t.Timeout.Milliseconds(), Mark: t.Mark})
	}
	if old != nil && old.Mark == set.Mark {
		set.Tools = append(set.Tools, old.of(missing)...)
	}
	text := room.JSON(set)
	err := s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO toolsets(key, day, list) SELECT key, prompt_day, ? FROM heads WHERE key = ?
		ON CONFLICT(key) DO UPDATE SET day = excluded.day, list = excluded.list`, Args: []any{text, string(s.Key)}}})
	if err != nil {
		return nil, fmt.Errorf("store list of tools: %w", err)
	}
	if len(missing) > 0 {
		s.Logger.Warn("tools are missing", "session", s.Key, "sources", missing)
	}
	kept, err := read([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read list of tools: %w", err)
	}
	s.frozen.Store(kept)
	return kept.offered, nil
}

// drifting is a toolbox whose sources may change a tool behind a list that was made of it.
type drifting interface {
	Changed(ctx context.Context, scope tidemark.Scope, name, mark string) bool
}

// Offered implements room.Offerer.
func (s *Room) Offered(name string) (tidemark.Tool, bool) {
	set := s.frozen.Load()
	if set == nil {
		return tidemark.Tool{}, false
	}
	for _, t := range set.offered {
		if t.Name == name {
			return t, true
		}
	}
	return tidemark.Tool{}, false
}

// Changed implements room.Offerer.
func (s *Room) Changed(ctx context.Context, name string) bool {
	t, ok := s.Offered(name)
	c, may := s.box.(drifting)
	if !ok || !may || t.Mark == "" {
		return false
	}
	limited, stop := s.Runtime.WithTimeout(ctx, listTime)
	defer stop()
	if !c.Changed(limited, s.Key.Scope(), name, t.Mark) {
		return false
	}
	s.thawed.Store(true)
	return true
}

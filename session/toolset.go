package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// toolset is what a conversation is offered of the tools of others. It is frozen with the system prompt, and for the same
// reason: definitions stand before all messages, and a change of one costs the provider's cache of everything. A server
// that was down when it was made is looked for again now and then.
type toolset struct {
	Mark    string      `json:"mark"` // of the configuration that it was made with
	At      int64       `json:"at"`   // when, in milliseconds
	Tools   []toolOffer `json:"tools"`
	Missing []string    `json:"missing,omitempty"` // sources that could not be reached
	offered []tidemark.Tool
}

// offering is what this life knows of the tools that the model is offered.
type offering struct {
	frozen  atomic.Pointer[toolset] // those of others
	thawed  atomic.Bool             // the system prompt was made anew, so they may be
	leftOut atomic.Int64            // how many the model API takes no more of, as it was told
}

// toolOffer is a tool with what is not told to models.
type toolOffer struct {
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

// offer returns the tools of others that the model is told of. It is called behind system, which makes the prompt anew
// when the prefix breaks anyway.
func (s *Session) offer(ctx context.Context) ([]tidemark.Tool, error) {
	if s.Tools == nil {
		return nil, nil
	}
	set := s.frozen.Load()
	if set == nil {
		if err := s.made.Open(ctx, toolsetTables); err != nil {
			return nil, err
		}
		rows, err := s.DB.Query(ctx, `SELECT t.list FROM toolsets t JOIN heads h ON h.key = t.key AND h.prompt_day = t.day WHERE t.key = ? LIMIT 1`, string(s.Key))
		if err != nil {
			return nil, fmt.Errorf("read list of tools: %w", err)
		}
		if len(rows) > 0 {
			if set, err = readToolset(rows[0].Bytes(0)); err != nil {
				s.warn("read list of tools", err) // it is made anew
				set = nil
			}
		}
	}
	if s.thawed.Swap(false) || set == nil || s.outdated(set) {
		return s.freezeTools(ctx, set)
	}
	s.frozen.Store(set)
	return set.offered, nil
}

func readToolset(raw []byte) (*toolset, error) {
	set := &toolset{}
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

// outdated reports a list of another configuration, or one that lacks a source which may be back.
func (s *Session) outdated(set *toolset) bool {
	if m, ok := s.Tools.(marking); ok && m.Mark() != set.Mark {
		return true
	}
	age := s.Runtime.Now().Sub(time.UnixMilli(set.At))
	return len(set.Missing) > 0 && (age < 0 || age >= askMissing)
}

// of returns the tools of some sources, by the names before their own.
func (t *toolset) of(sources []string) []toolOffer {
	var out []toolOffer
	for _, o := range t.Tools {
		if slices.ContainsFunc(sources, func(s string) bool { return strings.HasPrefix(o.Name, s+"__") }) {
			out = append(out, o)
		}
	}
	return out
}

// freezeTools asks for the list and keeps it. The tools of sources that cannot be reached stay as they were in the older
// list: a call of one says what is wrong.
func (s *Session) freezeTools(ctx context.Context, old *toolset) ([]tidemark.Tool, error) {
	limited, stop := s.Runtime.WithTimeout(ctx, listTime)
	defer stop()
	tools, missing := s.Tools.Tools(limited, s.Scope())
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	set := toolset{At: s.Runtime.Now().UnixMilli(), Missing: missing}
	if m, ok := s.Tools.(marking); ok {
		set.Mark = m.Mark()
	}
	for _, t := range tools {
		set.Tools = append(set.Tools, toolOffer{Tool: t, Idempotent: t.Idempotent, TimeoutMs: t.Timeout.Milliseconds(), Mark: t.Mark})
	}
	if old != nil && old.Mark == set.Mark {
		set.Tools = append(set.Tools, old.of(missing)...)
	}
	text := mustJSON(set)
	err := s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO toolsets(key, day, list) SELECT key, prompt_day, ? FROM heads WHERE key = ?
		ON CONFLICT(key) DO UPDATE SET day = excluded.day, list = excluded.list`, Args: []any{text, string(s.Key)}}})
	if err != nil {
		return nil, fmt.Errorf("store list of tools: %w", err)
	}
	if len(missing) > 0 {
		s.Logger.Warn("tools are missing", "session", s.Key, "sources", missing)
	}
	kept, err := readToolset([]byte(text))
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

// frozenTool returns a tool of the list that the model was told of last.
func (s *Session) frozenTool(name string) (tidemark.Tool, bool) {
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

// anew reports whether a tool is another than the one that the model was told of, and has the list made anew then: what
// nobody has read must not run.
func (s *Session) anew(ctx context.Context, name string) bool {
	t, ok := s.frozenTool(name)
	c, may := s.Tools.(drifting)
	if !ok || !may || t.Mark == "" {
		return false
	}
	limited, stop := s.Runtime.WithTimeout(ctx, listTime)
	defer stop()
	if !c.Changed(limited, s.Scope(), name, t.Mark) {
		return false
	}
	s.thawed.Store(true)
	return true
}

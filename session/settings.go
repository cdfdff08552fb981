package session

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// Override is what one session has set for itself; zero fields leave the configured value.
type Override struct {
	Title   string          `json:"title,omitempty"`
	Model   string          `json:"model,omitempty"`
	Window  tidemark.Tokens `json:"window,omitempty"`
	Reserve tidemark.Tokens `json:"reserveTokens,omitempty"`
	Keep    tidemark.Tokens `json:"keepRecentTokens,omitempty"`

	Limits *tidemark.Limits `json:"limits,omitempty"` // of the newest errand; its Model and Window go before those above
}

// with is o with what an errand sets, and without what an earlier one set.
func (o Override) with(l tidemark.Limits) Override {
	o.Limits = nil
	if mustJSON(l) != "{}" {
		o.Limits = &l
	}
	return o
}

// limits are those of the newest errand, none where there was none.
func (o Override) limits() tidemark.Limits {
	if o.Limits == nil {
		return tidemark.Limits{}
	}
	return *o.Limits
}

// equal reports whether two set the same.
func (o Override) equal(p Override) bool { return mustJSON(o) == mustJSON(p) }

// Bounds of an Override.
const (
	MinWindow tidemark.Tokens = 4_000
	MaxWindow tidemark.Tokens = 10_000_000
	maxTitle                  = 200
)

// Validate names the field that is out of bounds.
func (o Override) Validate() error {
	switch {
	case o.Window != 0 && (o.Window < MinWindow || o.Window > MaxWindow):
		return fmt.Errorf("window %d: want %d to %d tokens: %w", o.Window, MinWindow, MaxWindow, tidemark.ErrInvalid)
	case o.Reserve < 0 || o.Keep < 0:
		return fmt.Errorf("reserveTokens and keepRecentTokens must not be negative: %w", tidemark.ErrInvalid)
	case len(o.Title) > maxTitle || len(o.Model) > maxTitle:
		return fmt.Errorf("title and model may have %d bytes: %w", maxTitle, tidemark.ErrInvalid)
	}
	return validLimits(o.limits())
}

// settings returns what is in force now.
func (s *Session) settings() *Settings { return s.now.Load() }

// Override returns what the session has set for itself.
func (s *Session) Override(ctx context.Context) (Override, error) {
	rows, err := s.DB.Query(ctx, `SELECT settings FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return Override{}, fmt.Errorf("read settings of %s: %w", s.Key, cmp.Or(err, tidemark.ErrNotFound))
	}
	var o Override
	return o, json.Unmarshal(rows[0].Bytes(0), &o)
}

// Configure sets what is the session's own. It holds from the next model call on.
func (s *Session) Configure(ctx context.Context, o Override) error {
	if err := o.Validate(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE heads SET settings = ?, title = ?, prompt = '' WHERE key = ?`,
		Args: []any{mustJSON(o), o.Title, string(s.Key)}, Want: 1}})
	if err != nil {
		return fmt.Errorf("configure %s: %w", s.Key, err)
	}
	return s.loadSettings(ctx)
}

// limit sets what the conversation may use from now on.
func (s *Session) limit(ctx context.Context, l tidemark.Limits) error {
	if err := s.mayStart(l); err != nil {
		return err
	}
	o, err := s.Override(ctx)
	if err != nil {
		return err
	}
	if next := o.with(l); !next.equal(o) {
		return s.Configure(ctx, next)
	}
	return nil
}

// loadSettings puts the configured settings, their defaults and the session's own together.
func (s *Session) loadSettings(ctx context.Context) error {
	o, err := s.Override(ctx)
	if err != nil {
		return err
	}
	c := s.Settings
	c.limits = o.limits()
	c.Model = cmp.Or(c.limits.Model, o.Model, c.Model)
	c.set = cmp.Or(c.limits.Window, o.Window, c.Window, DefaultWindow)
	c.Window = s.windows.Of(c.Model, c.set).Tokens
	if n := tidemark.Tokens(s.tried.Load()); n > 0 {
		c.Window = min(c.Window, n)
	}
	c.Reserve = cmp.Or(o.Reserve, c.Reserve, compaction.DefaultReserve)
	c.Keep = cmp.Or(o.Keep, c.Keep, compaction.DefaultKeep)
	c.Zone = cmp.Or(c.Zone, time.UTC)
	c.MaxRounds = cmp.Or(c.limits.Rounds, c.MaxRounds, DefaultRounds)
	c.ToolTimeout = cmp.Or(c.ToolTimeout, DefaultToolTimeout)
	c.TurnTimeout = cmp.Or(c.TurnTimeout, DefaultTurnTimeout)
	c.ViewBytes = cmp.Or(c.ViewBytes, DefaultViewBytes)
	c.PackTokens = cmp.Or(c.PackTokens, room.DefaultPack)
	c.ArtifactChars = cmp.Or(c.ArtifactChars, blocks.DefaultChars)
	c.strategies = narrowed(s.Strategies, c.limits.Strategies)
	base := defaultSystem
	if pointing(c.strategies) {
		base = pointerSystem
	}
	c.System = cmp.Or(c.System, base)
	c.System += s.rooms.Brief()
	if was := s.now.Swap(&c); was != nil && was.Model != c.Model {
		s.mostTaken.Store(0)
		s.mostReply.Store(0)
	}
	return nil
}

func (s *Session) summaryModel() string {
	if s.settings().SummaryModel != "" {
		return s.settings().SummaryModel
	}
	return s.settings().Model
}

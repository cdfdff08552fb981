package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// What is done with requests: the paper's treatment conditions (§4.3), and paging by itself.
const (
	Observe  = "observe"   // nothing is changed, all is logged
	Trim     = "trim"      // definitions of unused tools are stubbed, what is repeated is sent once
	Page     = "page"      // tool results, inputs and images leave, and the model takes part
	PageTrim = "page+trim" // both
	Episodes = "episodes"  // what the model marks as done leaves (papers/cwl)

	EpisodesTrim = "episodes+trim"
)

// Treatments are all of them, the default first.
func Treatments() []string { return []string{Page, Observe, Trim, PageTrim, Episodes, EpisodesTrim} }

// Settings say what is done. The zero value is the default treatment with the paper's figures.
type Settings struct {
	Treatment string          // "" is the first of [Treatments]
	Window    tidemark.Tokens // of the models that are called, default 200,000
	Alone     bool            // the model takes no part: no tools of ours, no tags
	Paging    paging.Options  // policy, tau, sizes and zones; window and fixed are filled in
	Tools     paging.Tools    // what tools do, nil for paging.DefaultTools
	Episodes  EpisodeSettings
}

const defaultWindow tidemark.Tokens = 200_000

// Home is where the conversation stands among those of its agent. Statements that it returns are run in a
// transaction of the caller.
type Home interface {
	// Branch returns the log of a branch, "" for the root; one that is not there begins behind a position of its base.
	Branch(ctx context.Context, name, base string, seq int64) (log string, err error)
	// Append stores a message at the end of a log; large blocks are put aside before.
	Append(ctx context.Context, log string, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) ([]tidemark.Stmt, error)
	// Messages gives entries of any branch as they were stored, in no order and a page at a time. Those that are not there, or
	// of another conversation, are left out.
	Messages(ctx context.Context, ids []tidemark.EntryID, each func(tidemark.EntryID, tidemark.Message)) error
	// Called notes a call of a branch.
	Called(name, log, title string, messages int, r Record) []tidemark.Stmt
	// Log is where the messages are.
	Log() *host.Log
}

// Teller is a [Home] that tells those who follow the conversation what was added to it.
type Teller interface {
	Told(e tidemark.Event)
}

// Config is what a conversation stands on.
type Config struct {
	Key      tidemark.Key
	DB       tidemark.DB
	Home     Home
	Runtime  tidemark.Runtime
	Logger   *slog.Logger // nil: no logging; it never gets content
	Settings Settings
}

// Conversation is what one client session says to one API: a tree of message chains, of which each leaf is a track of
// its own. Its methods may be called at once. What is kept here can be lost at any time; the log has it all.
type Conversation struct {
	Config

	mu       sync.Mutex // guards the following; held over reads and writes of this conversation's own rows
	loaded   bool
	tree     *tree
	explored explored
	busy     int  // exchanges that have begun and not ended
	marks    bool // episodes were asked for: messages are kept as graphs take them
}

// Tables of all proxied conversations of a database, each with the key.
var tables = []string{
	// A leaf of the tree; it takes the first so many steps of the one that it forked from.
	`CREATE TABLE proxy_tracks(key TEXT NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, log TEXT NOT NULL,
		base INTEGER NOT NULL, steps INTEGER NOT NULL, created INTEGER NOT NULL, PRIMARY KEY(key, n)) WITHOUT ROWID`,
	// A request: what it added, what was let go, what the provider reported, what was decided.
	`CREATE TABLE proxy_steps(key TEXT NOT NULL, track INTEGER NOT NULL, n INTEGER NOT NULL, record TEXT NOT NULL,
		decision TEXT NOT NULL DEFAULT '', PRIMARY KEY(key, track, n)) WITHOUT ROWID`,
	// What a reply did by tags, in order.
	`CREATE TABLE proxy_edits(key TEXT NOT NULL, track INTEGER NOT NULL, n INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY(key, track, n)) WITHOUT ROWID`,
	// What the client never saw of a reply.
	`CREATE TABLE proxy_puts(key TEXT NOT NULL, entry TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(key, entry)) WITHOUT ROWID`,

	// Explorations that ended, of all tracks: actions of any may rest on them.
	`CREATE TABLE proxy_explored(key TEXT NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY(key, n)) WITHOUT ROWID`,
}

// Open returns the conversation of a key. What was there before is read with the first request.
func Open(ctx context.Context, c Config) (*Conversation, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Settings.Window <= 0 {
		c.Settings.Window = defaultWindow
	}
	if c.Settings.Tools == nil {
		c.Settings.Tools = paging.DefaultTools()
	}
	if !c.Settings.Episodes.Tools.Known() {
		c.Settings.Episodes.Tools = episodes.DefaultTools(c.Settings.Tools)
	}
	if c.Settings.Treatment == "" {
		c.Settings.Treatment = Treatments()[0]
	}
	if err := host.Migrate(ctx, c.DB, "proxy", tables); err != nil {
		return nil, fmt.Errorf("open proxy %s: %w", c.Key, err)
	}
	return &Conversation{Config: c, tree: newTree(c)}, nil
}

// Idle reports whether no exchange is in work, so that the conversation may be forgotten.
func (c *Conversation) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy == 0
}

// Ask is a request of a client.
type Ask struct {
	Dialect   body.Dialect
	Treatment string // "" for that of the settings
	Body      []byte
	Count     bool // its size is asked for, not an answer
}

// treatment is what is done with it.
func (a Ask) treatment(c *Conversation) (string, error) {
	if a.Treatment == "" {
		return c.Settings.Treatment, nil
	}
	if slices.Contains(Treatments(), a.Treatment) {
		return a.Treatment, nil
	}
	return "", fmt.Errorf("treatment %q: want one of %q: %w", a.Treatment, Treatments(), tidemark.ErrInvalid)
}

// Package session owns one conversation and its branches: durable inputs, one turn at a time,
// compaction, reset. What leaves the view and when a reset is due is decided by compaction and reset,
// which are pure, and what sessions share belongs to package agent. Begin with turn.go, the path of one
// message behind Post (input.go).
//
// Every step leaves the database so that a kill at any point has an answer; see the table in RATIONALE,
// "What stands on disk between the steps?".
package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/window"
)

// Agent is what a session needs of the agent that owns it: what its sessions share. Methods may
// be called at once. An error of Prompt, Remember or Report never fails a turn.
type Agent interface {
	// Prompt returns persona, instructions and memory as a system prompt for the scope.
	Prompt(ctx context.Context, scope tidemark.Scope, now time.Time) (string, error)
	// Remember stores an extraction; the same id twice is one.
	Remember(ctx context.Context, x tidemark.Extraction) error
	// Report brings the directory and the archive index up to date.
	Report(ctx context.Context, info tidemark.SessionInfo, archives []archive.Info) error
	// Tools lists the memory tools that the scope may use.
	Tools(scope tidemark.Scope) []tidemark.Tool
	// Call runs one of them; failures are results with is_error.
	Call(ctx context.Context, scope tidemark.Scope, call tidemark.Block) tidemark.Block
}

// Settings are the configured limits and policies of a session. The zero value of each field
// means its default.
type Settings struct {
	Model        string
	Window       tidemark.Tokens // the most of a model's, default 200,000; where it takes less, less
	MaxTokens    tidemark.Tokens // bound on a reply
	System       string          // base of the system prompt, default a short one
	Reserve      tidemark.Tokens
	Keep         tidemark.Tokens
	NoCompaction bool // compaction.enabled = false
	NoMemories   bool // compaction.extractMemories = false
	SummaryModel string
	Reset        reset.Policy
	Zone         *time.Location // of the agent, default UTC
	MaxRounds    int            // model calls in one turn, default 50
	ToolTimeout  time.Duration  // default 60 s
	TurnTimeout  time.Duration  // default 30 min
	// ViewBytes is how much of a conversation may stand in memory at once, default 64 MB. Beyond it large
	// blocks of older messages are notes to the model.
	ViewBytes int64
	// ArtifactChars is the size over which the result of a tool is stored compressed, beside its entry, default
	// 1,024; -1: never.
	ArtifactChars int
	// Gate decides which turns recall leaves out, such as memory.BySize; nil: none.
	Gate memory.Gate
	// ReportEvery is the shortest time between two rows for the agent's directory when nothing else is
	// to be told; 0 tells after every turn.
	ReportEvery time.Duration
	// PackTokens is the budget that what is pushed beside the view has its shares of, default 4,096; below 0
	// nothing is pushed. It is in force with the strategy pointer only.
	PackTokens tidemark.Tokens

	set        tidemark.Tokens       // the window, as it is set
	limits     tidemark.Limits       // of the errand that is in force
	strategies []compaction.Strategy // of Config.Strategies, those that it leaves
}

// Defaults of Settings.
const (
	DefaultWindow      tidemark.Tokens = 200_000
	DefaultRounds                      = 50
	DefaultToolTimeout                 = 60 * time.Second
	DefaultTurnTimeout                 = 30 * time.Minute
	DefaultViewBytes   int64           = 64 << 20
	defaultSystem                      = "You are a helpful assistant in a conversation that never ends. Older parts of it are summarised; tools bring back the originals."
	// pointerSystem is the default where what leaves the view leaves pointers.
	pointerSystem = "You are a helpful assistant in a conversation that never ends. Older parts of it leave your view, and a marker or a pointer stands in their place: " +
		"recall brings back word for word what was there. Use it before you say that you do not know."
)

// Config is the ports that a session stands on.
type Config struct {
	Key        tidemark.Key
	DB         tidemark.DB
	Blobs      tidemark.Blobs
	Provider   tidemark.Provider
	Agent      Agent
	Tools      tidemark.Toolbox // of others; nil: none
	Rooms      []room.Maker     // what this conversation has beside its core
	Runtime    tidemark.Runtime
	Strategies []compaction.Strategy // nil: the rolling summary
	// Windows says how many tokens models take; nil: as many as Settings.Window, until one refuses.
	Windows window.Models
	// Stemmer makes the words of the index; sessions of a process may share one. nil: one of its own.
	Stemmer *recall.Stemmer
	// Alarm asks the host to call Wake at a time; nil when the host polls.
	Alarm func(ctx context.Context, at time.Time) error
	// Admit is asked before a view of over 1 MB comes into memory, where that is scarce; release gives
	// the bytes back. A turn that is not let in waits. nil lets all in.
	Admit func(bytes int64) (release func(), ok bool)
	// Observe sees every notice, for metrics; nil when nobody counts. It must not wait.
	Observe  func(Notice)
	Logger   *slog.Logger // nil: no logging
	Settings Settings
}

// Session is one conversation. Its methods may be called at once; the database is the truth, and
// what is kept here can be lost at any time.
type Session struct {
	Config
	rooms  room.List
	log    *host.Log
	blocks blocks.Store    // what is large of its messages
	life   context.Context // ends when the host drops the object
	number int64           // of this life, counted in the database
	hub    hub
	now    atomic.Pointer[Settings] // Config.Settings with defaults and the session's own

	made room.Made // which optional tables are there

	running   // the turn in work
	windowing // of its models
	reading   // of what was said
}

// Open returns the session of a key, brings its tables up to date and takes up what an earlier
// life left: a run that was in work goes on. life bounds everything that it starts.
func Open(life context.Context, c Config) (*Session, error) {
	if c.Strategies == nil {
		c.Strategies = []compaction.Strategy{compaction.Summary{}}
	}
	if c.Stemmer == nil {
		c.Stemmer = &recall.Stemmer{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	log, err := Migrate(life, c.DB)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", c.Key, err)
	}
	s := &Session{Config: c, log: log, life: life, made: room.Made{DB: c.DB}, running: running{mine: map[string]bool{}}}
	s.blocks = blocks.Store{Key: c.Key, DB: c.DB, Blobs: c.Blobs,
		Open:  func(ctx context.Context) error { return s.made.Open(ctx, artifactTables) },
		There: func(ctx context.Context) (bool, error) { return s.made.Has(ctx, artifactTables) }}
	s.hub.observe = c.Observe
	s.windows.Ports = windowPorts(s)
	s.lineage.Key, s.lineage.DB, s.lineage.Log = c.Key, c.DB, log
	s.Reader = readerOf(s)
	s.parts.Ports, s.writer.Ports = partPorts(s), writerPorts(s)
	for _, r := range c.Rooms {
		made := r(s.ports())
		s.rooms = append(s.rooms, made)
		if p, ok := made.(room.Parted); ok {
			s.rooms = append(s.rooms, p.Parts()...)
		}
	}
	if err := s.rooms.Apart(core(), coreKinds, coreReports); err != nil {
		return nil, fmt.Errorf("open session %s: %w", c.Key, err)
	}
	for _, step := range []func(context.Context) error{s.ensure, s.begins, s.readLearned, s.loadSettings, s.rooms.Open, s.resume} {
		if err := step(life); err != nil {
			return nil, fmt.Errorf("open session %s: %w", c.Key, err)
		}
	}
	return s, nil
}

// begins counts this life of the session. An object that should be gone but is not, because its host
// forgot it or was slow to drop it, has a lower number and can take no run from a later one.
func (s *Session) begins(ctx context.Context) error {
	count := tidemark.Stmt{SQL: `UPDATE heads SET lives = lives + 1 WHERE key = ?`, Args: []any{string(s.Key)}, Want: 1}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{count}); err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT lives FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	if err == nil && len(rows) > 0 {
		s.number = rows[0].Int(0)
	}
	return err
}

// owner returns a new name for who works on a run: it sorts by life.
func (s *Session) owner() string {
	return fmt.Sprintf("%012d/%s", s.number, tidemark.NewID(s.Runtime.Now()))
}

// ownerBound sorts behind every owner of this life and before those of later ones.
func (s *Session) ownerBound() string { return fmt.Sprintf("%012d0", s.number) }

// Exists reports whether a database holds a conversation; opening one makes it.
func Exists(ctx context.Context, db tidemark.DB, key tidemark.Key) (bool, error) {
	rows, err := db.Query(ctx, `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'heads' LIMIT 1`)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	rows, err = db.Query(ctx, `SELECT 1 FROM heads WHERE key = ? LIMIT 1`, string(key))
	return len(rows) > 0, err
}

// Budget returns the limits that plans are made within, scaled to the window.
func (s *Session) Budget() compaction.Budget {
	return compaction.Budget{Window: s.settings().Window, Reserve: s.settings().Reserve, Keep: s.settings().Keep}.Fit()
}

// Scope returns on whose behalf the session runs.
func (s *Session) Scope() tidemark.Scope { return s.Key.Scope() }

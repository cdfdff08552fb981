// Package agent is the actor that owns what the sessions of an agent share: the directory, the
// memory files and the ledger of facts, the index of archives, schedules and skills. It stays off the
// path of a turn, and conversations themselves belong to package session. Begin with [Agent] here,
// then remember.go and flush.go for the path of a fact.
//
// What it is told goes into SQL first, in one transaction, and from there into the bucket at most
// every two seconds a file, with a conditional write that keeps what a person edited there
// meanwhile. After a failed write or a crash the rows stay pending, and [Agent.Wake] carries them out.
// No memory of the process holds truth, and no method waits for another.
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
)

// Config is what an agent consists of. DB, Blobs and Runtime are required.
type Config struct {
	Name    string // as in its sessions' keys; empty is main
	DB      tidemark.DB
	Blobs   tidemark.Blobs
	Runtime tidemark.Runtime
	Zone    *time.Location  // of its days; nil is UTC
	Sharing memory.Sharing  // who sees its daily files; empty is memory.SharePeer
	Budget  tidemark.Tokens // of persona and memory in a prompt; 0 is memory.DefaultBudget
	Logger  *slog.Logger    // nil logs nothing
	// Reconcile has Model compare new facts with older ones: when they are drawn, and at night those on which nobody decided.
	Reconcile bool
	Model     tidemark.Provider
	ModelName string
	// Digest has memory/DIGEST.md written at night, of DigestLines lines at most; 0 is memory.DefaultDigestLines.
	Digest      bool
	DigestLines int
	// Sessions answer what is looked for in all of them; nil: Recall is unavailable.
	Sessions Sessions
	// NoSchedules runs none and takes none. MaxRunning of them run at once; 0 is DefaultRunning.
	NoSchedules bool
	MaxRunning  int
	// Resting reports a host that begins none by itself for now, as a command that soon ends; nil: none.
	Resting func() bool
	// Address finds the person whom a schedule's answers go to, named "platform:name", and whether it is the
	// owner. One whom the owner has not let in is ErrForbidden, a channel that is not set up ErrInvalid. nil: none is.
	Address func(ctx context.Context, to string) (tidemark.Origin, error)
	// FlushEvery is the shortest time between two writes of one object; 0 is DefaultFlush, which R2
	// needs. A folder can do with less.
	FlushEvery time.Duration
	// Schedule asks the host to call Wake at that time or later. It must not wait. Without it the
	// host calls Wake by itself, with the time that the last call returned.
	Schedule func(at time.Time)
}

// Agent is the owner of many sessions. Its methods may be called at once. Each room has its own tables, and reaches
// others by the fields that it has of them.
type Agent struct {
	*core
	*files
	*ledger
	*directory
	*finder
	*planner
	*skillset
	*questions
}

// core is what all rooms of an agent stand on.
type core struct {
	cfg  Config
	stem *recall.Stemmer
	soon atomic.Int64 // the earliest time that schedules asked for since the last Wake, in ms; 0: none
}

// files are the memory files and the index of archives in the bucket, and what they still have to take up.
type files struct {
	*core
	mu    sync.Mutex // guards the following, see hold
	fails int
	until time.Time
}

// ledger is what is remembered, what of it counts no more, and what the nights made of it.
type ledger struct {
	*core
	files *files
}

// directory is what sessions tell of themselves: that they are there, their archives, snapshots and windows.
type directory struct {
	*core
	files *files
}

// finder finds in memory, and in all conversations.
type finder struct {
	*core
	files     *files
	ledger    *ledger
	directory *directory
	shelf     shelf // digests that were read
}

// planner runs schedules.
type planner struct {
	*core
	files *files
	seen  atomic.Int64 // what the clock showed at the last Wake, in ms; 0: there was none
}

// skillset is the skills in the bucket.
type skillset struct{ *core }

// questions are what conversations ask the owner about calls of tools.
type questions struct {
	*core
	planner *planner
}

// New returns the agent of a name and brings its tables up to date. It does not wait for the
// bucket. One database may hold several agents.
func New(cfg Config) (*Agent, error) {
	if cfg.DB == nil || cfg.Blobs == nil || cfg.Runtime == nil {
		return nil, fmt.Errorf("new agent: DB, Blobs and Runtime are required: %w", tidemark.ErrInvalid)
	}
	if cfg.Name == "" {
		cfg.Name = "main"
	}
	if !validName(cfg.Name) {
		return nil, fmt.Errorf("new agent: name %.80q: want lower-case letters, digits, - and _: %w", cfg.Name, tidemark.ErrInvalid)
	}
	var err error
	if cfg.Sharing, err = memory.ParseSharing(string(cfg.Sharing)); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	if cfg.MaxRunning <= 0 {
		cfg.MaxRunning = DefaultRunning
	}
	if cfg.FlushEvery <= 0 {
		cfg.FlushEvery = DefaultFlush
	}
	if cfg.Zone == nil {
		cfg.Zone = time.UTC
	}
	if cfg.Budget <= 0 {
		cfg.Budget = memory.DefaultBudget
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := Migrate(context.Background(), cfg.DB); err != nil {
		return nil, fmt.Errorf("new agent %s: %w", cfg.Name, err)
	}
	c := &core{cfg: cfg, stem: &recall.Stemmer{}}
	f := &files{core: c}
	l, d, p := &ledger{c, f}, &directory{c, f}, &planner{core: c, files: f}
	return &Agent{c, f, l, d, &finder{core: c, files: f, ledger: l, directory: d}, p, &skillset{c}, &questions{c, p}}, nil
}

func validName(name string) bool {
	key, err := tidemark.ParseKey("agent:" + name + ":main")
	return err == nil && key.Agent() == name && !strings.ContainsRune(name, ':')
}

// Migrate makes the tables of agents in a database, as New does.
func Migrate(ctx context.Context, db tidemark.DB) error {
	return host.Migrate(ctx, db, "agent", slices.Concat(tables, ledgerTables, digestTables, questionTables, skillTables, snapshotTables, scheduleTables))
}

// tables begin with agent_ and name the agent, because natively its sessions and other agents live
// in the same database. Times are milliseconds.
var tables = []string{
	`CREATE TABLE agent_sessions(agent TEXT NOT NULL, key TEXT NOT NULL, updated INTEGER NOT NULL, info TEXT NOT NULL, PRIMARY KEY(agent, key))`,
	`CREATE INDEX agent_sessions_updated ON agent_sessions(agent, updated, key)`,
	`CREATE TABLE agent_archives(agent TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, info TEXT NOT NULL,
		indexed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, key))`,
	`CREATE INDEX agent_archives_pending ON agent_archives(agent, at) WHERE indexed = 0`,
	`CREATE TABLE agent_extractions(agent TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, session_key TEXT NOT NULL, peer TEXT NOT NULL,
		at INTEGER NOT NULL, path TEXT NOT NULL, PRIMARY KEY(agent, id))`,
	`CREATE TABLE agent_facts(seq INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, extraction TEXT NOT NULL, n INTEGER NOT NULL,
		text TEXT NOT NULL, fold TEXT NOT NULL, sources TEXT NOT NULL, path TEXT NOT NULL, decided INTEGER NOT NULL DEFAULT 0, UNIQUE(agent, extraction, n))`,
	`CREATE INDEX agent_facts_path ON agent_facts(agent, path)`,
	// The words of facts as those of messages are made, by recall.Stemmer.
	`CREATE VIRTUAL TABLE agent_words USING fts5(terms, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_-./@'")`,
	// What a file still has to take up (done = 0), or took up at that time.
	`CREATE TABLE agent_sections(agent TEXT NOT NULL, path TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
		done INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, path, id))`,
	`CREATE INDEX agent_sections_pending ON agent_sections(agent, path, at) WHERE done = 0`,
	// The next write of an object is not before this time, see claim.
	`CREATE TABLE agent_writes(agent TEXT NOT NULL, path TEXT NOT NULL, next INTEGER NOT NULL, fails INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, path))`,
	`CREATE TABLE agent_versions(seq INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, path TEXT NOT NULL, at INTEGER NOT NULL,
		replaced_by TEXT NOT NULL, body TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0)`,
	`CREATE INDEX agent_versions_path ON agent_versions(agent, path, seq)`,
	// Other agents that are there, where nobody else can list them.
	`CREATE TABLE agent_names(name TEXT PRIMARY KEY)`,
	// What conversations learned of the windows of models.
	`CREATE TABLE agent_windows(model TEXT PRIMARY KEY, tokens INTEGER NOT NULL, learned_from TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID`,
}

// own reports a scope of another agent, whose memory this one must not touch.
func (c *core) own(scope tidemark.Scope) error {
	if scope.Agent != c.cfg.Name {
		return fmt.Errorf("agent %s: the scope is of agent %.80q: %w", c.cfg.Name, scope.Agent, tidemark.ErrForbidden)
	}
	return nil
}

// blobKey is where a memory file lies in the bucket.
func (c *core) blobKey(path string) string { return memory.Folder(c.cfg.Name) + path }

func (c *core) now() time.Time { return c.cfg.Runtime.Now() }

// schedule asks for a Wake.
func (c *core) schedule(at time.Time) {
	if c.cfg.Schedule != nil && !at.IsZero() {
		c.cfg.Schedule(c.Soonest(at))
	}
}

func (c *core) mainKey() tidemark.Key { return tidemark.Key("agent:" + c.cfg.Name + ":main") }

// rest lets others have the processor between two pages of a long reading.
func (c *core) rest(ctx context.Context) error { return c.cfg.Runtime.Sleep(ctx, time.Millisecond) }

// sweepAt is when the next sweep is planned, zero for not yet.
func (c *core) sweepAt(ctx context.Context) (time.Time, error) {
	ms, err := host.Number(ctx, c.cfg.DB, "read plan of the sweep", `SELECT next FROM agent_writes WHERE agent = ? AND path = ? LIMIT 1`, c.cfg.Name, sweepMarker)
	if err != nil || ms == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(ms), nil
}

// Soonest is when the agent wants to be woken, where its host is about to set its alarm to a time: that time, or
// earlier, for what came up since.
func (c *core) Soonest(at time.Time) time.Time {
	if soon := c.soon.Load(); soon != 0 {
		return earliest(at, time.UnixMilli(soon))
	}
	return at
}

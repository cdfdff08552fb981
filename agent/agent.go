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
	// Reconcile says who compares new facts with older ones at night; empty is ReconcileOff.
	Reconcile Reconcile
	Model     tidemark.Provider // of ReconcileModel; nil leaves it to rules
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

// Agent is the owner of many sessions. Its methods may be called at once.
type Agent struct {
	cfg     Config
	stem    *recall.Stemmer
	ledger  atomic.Bool // the tables of the ledger are there
	snapped atomic.Bool // and those of snapshots
	asked   questions   // to the owner
	skilled atomic.Bool // and that of skills
	filled  atomic.Bool // all facts are in the index of words
	shelf   shelf       // digests that were read

	scheduled atomic.Int32 // what is known of the tables of schedules
	soon      atomic.Int64 // the earliest time that schedules asked for since the last Wake, in ms; 0: none
	seen      atomic.Int64 // what the clock showed at the last Wake, in ms; 0: there was none

	mu    sync.Mutex // guards the following, see hold
	fails int
	until time.Time
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
	return &Agent{cfg: cfg, stem: &recall.Stemmer{}}, nil
}

func validName(name string) bool {
	key, err := tidemark.ParseKey("agent:" + name + ":main")
	return err == nil && key.Agent() == name && !strings.ContainsRune(name, ':')
}

// Migrate brings the tables of agents in a database up to date, as New does.
func Migrate(ctx context.Context, db tidemark.DB) error {
	return host.Migrate(ctx, db, "agent", tables)
}

// tables begin with agent_ and name the agent, because natively its sessions and other agents live
// in the same database. Times are milliseconds.
var tables = [][]string{{
	`CREATE TABLE agent_sessions(agent TEXT NOT NULL, key TEXT NOT NULL, updated INTEGER NOT NULL, info TEXT NOT NULL, PRIMARY KEY(agent, key))`,
	`CREATE INDEX agent_sessions_updated ON agent_sessions(agent, updated, key)`,
	`CREATE TABLE agent_archives(agent TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, info TEXT NOT NULL,
		indexed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, key))`,
	`CREATE INDEX agent_archives_pending ON agent_archives(agent, at) WHERE indexed = 0`,
	`CREATE TABLE agent_extractions(agent TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, session_key TEXT NOT NULL, peer TEXT NOT NULL,
		at INTEGER NOT NULL, path TEXT NOT NULL, PRIMARY KEY(agent, id))`,
	`CREATE TABLE agent_facts(seq INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, extraction TEXT NOT NULL, n INTEGER NOT NULL,
		text TEXT NOT NULL, fold TEXT NOT NULL, sources TEXT NOT NULL, path TEXT NOT NULL, UNIQUE(agent, extraction, n))`,
	`CREATE INDEX agent_facts_path ON agent_facts(agent, path)`,
	`CREATE VIRTUAL TABLE agent_words USING fts5(terms, content='', tokenize="unicode61 remove_diacritics 0")`,
	// What a file still has to take up (done = 0), or took up at that time.
	`CREATE TABLE agent_sections(agent TEXT NOT NULL, path TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
		done INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, path, id))`,
	`CREATE INDEX agent_sections_pending ON agent_sections(agent, path, at) WHERE done = 0`,
	// The next write of an object is not before this time, see claim.
	`CREATE TABLE agent_writes(agent TEXT NOT NULL, path TEXT NOT NULL, next INTEGER NOT NULL, fails INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, path))`,
	`CREATE TABLE agent_versions(seq INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, path TEXT NOT NULL, at INTEGER NOT NULL,
		replaced_by TEXT NOT NULL, body TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0)`,
	`CREATE INDEX agent_versions_path ON agent_versions(agent, path, seq)`,
}, {
	// Other agents that are there, where nobody else can list them.
	`CREATE TABLE agent_names(name TEXT PRIMARY KEY)`,
}, {
	// The words of facts as those of messages are made, by recall.Stemmer; fillWords fills it.
	`DROP TABLE agent_words`,
	`CREATE VIRTUAL TABLE agent_words USING fts5(terms, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_-./@'")`,
}, {
	// What conversations learned of the windows of models.
	`CREATE TABLE agent_windows(model TEXT PRIMARY KEY, tokens INTEGER NOT NULL, learned_from TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID`,
}}

// own reports a scope of another agent, whose memory this one must not touch.
func (a *Agent) own(scope tidemark.Scope) error {
	if scope.Agent != a.cfg.Name {
		return fmt.Errorf("agent %s: the scope is of agent %.80q: %w", a.cfg.Name, scope.Agent, tidemark.ErrForbidden)
	}
	return nil
}

// blobKey is where a memory file lies in the bucket.
func (a *Agent) blobKey(path string) string { return memory.Folder(a.cfg.Name) + path }

func (a *Agent) now() time.Time { return a.cfg.Runtime.Now() }

// schedule asks for a Wake.
func (a *Agent) schedule(at time.Time) {
	if a.cfg.Schedule != nil && !at.IsZero() {
		a.cfg.Schedule(a.Soonest(at))
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/parts"
	"github.com/tidemark-ai/tidemark/room"
)

// tables of all sessions of a database; each has the key, since natively sessions share one. Each table and
// each index takes a page of the file, and of memory while its object lives: one whose key is not a number is
// WITHOUT ROWID, which has no index beside it.
var tables = []string{
	// What a session is now. log is its current session id, people when a person last said something or was answered (0: active),
	// windows what is known of those of its models, refused which tools their APIs refused, mark what memory the prompt was made from: the hash of its memory.Mark.
	`CREATE TABLE heads(
		key TEXT PRIMARY KEY, log TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL,
		active INTEGER NOT NULL, messages INTEGER NOT NULL DEFAULT 0, context INTEGER NOT NULL DEFAULT 0,
		compactions INTEGER NOT NULL DEFAULT 0, resets INTEGER NOT NULL DEFAULT 0, usage TEXT NOT NULL DEFAULT '{}',
		prompt TEXT NOT NULL DEFAULT '', prompt_day TEXT NOT NULL DEFAULT '',
		cooldown INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
		settings TEXT NOT NULL DEFAULT '{}', lives INTEGER NOT NULL DEFAULT 0,
		people INTEGER NOT NULL DEFAULT 0, windows TEXT NOT NULL DEFAULT '{}', refused TEXT NOT NULL DEFAULT '{}', mark TEXT NOT NULL DEFAULT '') WITHOUT ROWID`,
	`CREATE TABLE prompts(hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID`,
	// An input is new, taken by a run, or done. An amendment whose message had not come is unmet.
	`CREATE TABLE inputs(
		n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
		at INTEGER NOT NULL, origin TEXT NOT NULL, payload TEXT NOT NULL, hash TEXT NOT NULL, tokens INTEGER NOT NULL DEFAULT 0,
		run TEXT NOT NULL DEFAULT '', UNIQUE(key, id))`,
	`CREATE INDEX inputs_new ON inputs(key, state, n)`,
	`CREATE INDEX inputs_run ON inputs(run)`,
	// A run is calling, in tools, done or failed. One is active a key. spent is of its budget, by its own calls of models.
	`CREATE TABLE runs(
		id TEXT PRIMARY KEY, key TEXT NOT NULL, log TEXT NOT NULL, owner TEXT NOT NULL, state TEXT NOT NULL,
		attempt INTEGER NOT NULL DEFAULT 0, round INTEGER NOT NULL DEFAULT 0, started INTEGER NOT NULL,
		updated INTEGER NOT NULL, reply TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', spent INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
	`CREATE UNIQUE INDEX runs_active ON runs(key) WHERE state IN ('calling', 'tools')`,
	// A call is registered, started, done or interrupted. spent is of its run's budget, by what it delegated.
	`CREATE TABLE calls(
		run TEXT NOT NULL, round INTEGER NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, call TEXT NOT NULL,
		idempotent INTEGER NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL DEFAULT '', spent INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(run, round, n)) WITHOUT ROWID`,
	// A plan is open, done or dropped; its finished chunks are not paid twice. why is of a summary that is not a whole one.
	`CREATE TABLE plans(
		id TEXT PRIMARY KEY, key TEXT NOT NULL, log TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
		instructions TEXT NOT NULL, act TEXT NOT NULL, part_ms INTEGER NOT NULL, last INTEGER NOT NULL,
		size INTEGER NOT NULL, chunk INTEGER NOT NULL DEFAULT 0, rolling TEXT NOT NULL DEFAULT '',
		tier TEXT NOT NULL DEFAULT 'full', facts TEXT NOT NULL DEFAULT '[]', usage TEXT NOT NULL DEFAULT '{}', owed INTEGER NOT NULL DEFAULT 0, chunk_size INTEGER NOT NULL, created INTEGER NOT NULL, why TEXT NOT NULL DEFAULT '') WITHOUT ROWID`,
	`CREATE UNIQUE INDEX plans_open ON plans(key) WHERE state = 'open'`,
	parts.Table,
	// A reset is at archive, extract, move, done.
	`CREATE TABLE resets(
		old TEXT PRIMARY KEY, key TEXT NOT NULL, new TEXT NOT NULL, step TEXT NOT NULL, reason TEXT NOT NULL,
		at INTEGER NOT NULL, archive TEXT NOT NULL DEFAULT '', messages INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
	// What is to be told to the agent, until it has it.
	`CREATE TABLE outbox(id TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, at INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
	`CREATE INDEX outbox_key ON outbox(key, at, id)`,
	// One alarm an object: the earliest of these.
	`CREATE TABLE due(key TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL DEFAULT '', PRIMARY KEY(key, kind)) WITHOUT ROWID`,
	`CREATE INDEX due_at ON due(at)`,
	// Full text of messages, as tokens made in Go (recall.Stemmer.Row); rowid is the entry's seq, home tells conversations
	// that share a database apart.
	`CREATE VIRTUAL TABLE words USING fts5(home, terms, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_-./@'")`,
	// How often a message has a word, which the index of words knows and FTS5 tells only for all that have it.
	`CREATE VIRTUAL TABLE words_seen USING fts5vocab(words, instance)`,
}

// Migrate brings the tables of log and sessions up to date and returns the log.
func Migrate(ctx context.Context, db tidemark.DB) (*host.Log, error) {
	log, err := host.OpenLog(ctx, db)
	if err != nil {
		return nil, err
	}
	return log, host.Migrate(ctx, db, "session", tables)
}

// head is the row of a session.
type head struct {
	Log         string
	Title       string
	Created     time.Time
	Active      time.Time // last activity of a person or the model
	People      time.Time // of a person, or an answer to one: by it a reset is due
	Messages    int
	Context     tidemark.Tokens
	Compactions int
	Resets      int
	Usage       tidemark.Usage
	Prompt      string // hash
	PromptDay   string
	Mark        string // hash of what memory the prompt was made from
	Cooldown    time.Time
	Failures    int
}

// headRef is the ref that names the current log of a key.
func headRef(k tidemark.Key) string { return "head:" + string(k) }

// logStmts make a new log the current one of its key, in the place of another, "" for none.
func (s *Session) logStmts(i host.Info, old string) []tidemark.Stmt {
	return []tidemark.Stmt{s.log.CreateStmt(i), s.log.RefStmt(headRef(i.Key), old, i.ID)}
}

// ensure makes the rows of a new conversation.
func (s *Session) ensure(ctx context.Context) error {
	if _, err := s.head(ctx); err == nil || !errors.Is(err, tidemark.ErrNotFound) {
		return err
	}
	now := s.Runtime.Now()
	id := tidemark.NewID(now)
	err := s.DB.Tx(ctx, append(s.logStmts(host.Info{ID: id, Key: s.Key, Created: now}, ""),
		tidemark.Stmt{SQL: `INSERT INTO heads(key, log, created, active, people) VALUES(?, ?, ?, ?, ?)`, Args: []any{string(s.Key), id, now.UnixMilli(), now.UnixMilli(), now.UnixMilli()}, Want: 1}))
	if errors.Is(err, tidemark.ErrConflict) {
		return nil // another request made it
	}
	return err
}

func (s *Session) head(ctx context.Context) (head, error) {
	rows, err := s.DB.Query(ctx, `SELECT log, title, created, active, messages, context, compactions, resets, usage, prompt, prompt_day, cooldown, failures, CASE people WHEN 0 THEN active ELSE people END, mark
		FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return head{}, fmt.Errorf("read session %s: %w", s.Key, err)
	}
	if len(rows) == 0 {
		return head{}, fmt.Errorf("session %s: %w", s.Key, tidemark.ErrNotFound)
	}
	r := rows[0]
	h := head{Log: r.Text(0), Title: r.Text(1), Created: time.UnixMilli(r.Int(2)), Active: time.UnixMilli(r.Int(3)), Messages: int(r.Int(4)),
		Context: tidemark.Tokens(r.Int(5)), Compactions: int(r.Int(6)), Resets: int(r.Int(7)), Prompt: r.Text(9), PromptDay: r.Text(10),
		Cooldown: time.UnixMilli(r.Int(11)), Failures: int(r.Int(12)), People: time.UnixMilli(r.Int(13)), Mark: r.Text(14)}
	if err := json.Unmarshal(r.Bytes(8), &h.Usage); err != nil {
		return head{}, fmt.Errorf("read session %s: usage: %w", s.Key, err)
	}
	return h, nil
}

// Info returns what the directory shows of the session.
func (s *Session) Info(ctx context.Context) (tidemark.SessionInfo, error) {
	h, err := s.head(ctx)
	if err != nil {
		return tidemark.SessionInfo{}, err
	}
	i, err := s.log.Info(ctx, h.Log)
	if err != nil {
		return tidemark.SessionInfo{}, err
	}
	skipped, err := s.rooms.Leaver().Count(ctx)
	if err != nil {
		return tidemark.SessionInfo{}, err
	}
	out := tidemark.SessionInfo{Key: s.Key, ID: h.Log, Previous: i.Previous, Title: h.Title, CreatedAt: h.Created, UpdatedAt: h.Active,
		Messages: h.Messages, ContextTokens: h.Context, Window: s.settings().Window, Compactions: h.Compactions, Resets: h.Resets, Skipped: skipped, Usage: h.Usage}
	if s.Key != s.Key.Root() {
		return out, nil
	}
	shown, list, err := lineage.Shown(ctx, s.DB, s.Key)
	if err != nil || len(list) == 0 {
		return out, err
	}
	own, err := s.Override(ctx)
	if err == nil {
		lineage.Whole(&out, shown, list, own.Title)
	}
	return out, err
}

// coreTables are those that a database has from their first row on.
var coreTables = []room.Tables{artifactTables}

// core are the tables of the core.
func core() room.Tables {
	all := room.Tables{Steps: tables}
	for _, t := range coreTables {
		all.Steps = append(all.Steps[:len(all.Steps):len(all.Steps)], t.Steps...)
	}
	return all
}

// artifactTables are made with the first large result of a tool.
var artifactTables = room.Tables{Space: "session_artifacts", Steps: blocks.Tables}

// mustJSON encodes values of ours, which always encode.
func mustJSON(v any) string { return room.JSON(v) }

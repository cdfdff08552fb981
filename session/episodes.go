package session

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// episodeTables remember how far the agent was told of episodes. They are there where memory.digest is on.
var episodeTables = [][]string{{
	`CREATE TABLE episodes(key TEXT PRIMARY KEY, upto INTEGER NOT NULL) WITHOUT ROWID`,
}}

// episodeSpace is the name of the tables' version.
const episodeSpace = "session_episodes"

const (
	maxEpisode  = 2000 // messages; a longer one is told in parts
	episodePage = 200
	episodeText = 1000 // bytes of a message that topics are taken from
)

// chronicler is an agent that keeps episodes.
type chronicler interface {
	Episodes(ctx context.Context, episodes []memory.Episode) error
}

// tellEpisode hands an episode to an agent that keeps them; another one is told nothing.
func (s *Session) tellEpisode(ctx context.Context, raw []byte) error {
	var e memory.Episode
	if err := decode(raw, &e); err != nil {
		return err
	}
	a, ok := s.Agent.(chronicler)
	if !ok {
		return nil
	}
	return a.Episodes(ctx, []memory.Episode{e})
}

// episodeStmts look for episodes when the conversation has been silent for as long as ends one: that costs a row
// a turn, and nobody reads a log for it again.
func (s *Session) episodeStmts() []tidemark.Stmt {
	if !s.settings().Episodes {
		return nil
	}
	return []tidemark.Stmt{s.dueStmt(dueEpisode, s.Runtime.Now().Add(memory.EpisodeGap), "")}
}

// endEpisodes tells at once what a reset or an import has ended. What fails is due still.
func (s *Session) endEpisodes(ctx context.Context) {
	if s.settings().Episodes {
		if err := s.closeEpisodes(ctx); err != nil {
			s.warn("tell episodes", err)
		}
	}
}

// closeEpisodes puts the episodes that are over into the outbox, and remembers the last message of them.
func (s *Session) closeEpisodes(ctx context.Context) error {
	if !s.settings().Episodes {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(dueEpisode)}) // it was switched off
	}
	if err := host.Migrate(ctx, s.DB, episodeSpace, episodeTables); err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT upto FROM episodes WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return fmt.Errorf("read episodes: %w", err)
	}
	upto := int64(0)
	if len(rows) > 0 {
		upto = rows[0].Int(0)
	}
	moments, err := s.moments(ctx, upto)
	if err != nil {
		return err
	}
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	over := now
	if n := len(moments); n >= maxEpisode || n > 0 && moments[n-1].Log != h.Log { // a reset ends one
		over = moments[len(moments)-1].At.Add(memory.EpisodeGap)
	}
	found := memory.Episodes(s.Key, moments, over)
	stmts := []tidemark.Stmt{s.undueStmt(dueEpisode)}
	if n := len(moments); n > 0 && (len(found) == 0 || found[len(found)-1].Upto < moments[n-1].Seq) || n >= maxEpisode {
		stmts[0] = s.dueStmt(dueEpisode, now.Add(memory.EpisodeGap), "")
		if n >= maxEpisode {
			stmts[0] = s.dueStmt(dueEpisode, now, "")
		}
	}
	for _, e := range found {
		stmts = append(stmts, s.outboxStmt("episode:"+string(s.Key)+":"+string(e.First), outEpisode, e))
	}
	if len(found) > 0 {
		stmts = append(stmts, s.dueStmt(dueOutbox, now.Add(outboxRetry), ""), tidemark.Stmt{
			SQL:  `INSERT INTO episodes(key, upto) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET upto = excluded.upto WHERE episodes.upto = ?`,
			Args: []any{string(s.Key), found[len(found)-1].Upto, upto}, Want: 1})
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("store episodes: %w", err)
	}
	if len(found) > 0 {
		s.report(ctx)
	}
	return nil
}

// moments returns the messages behind a position, with what persons and the model said in them.
func (s *Session) moments(ctx context.Context, upto int64) ([]memory.Moment, error) {
	var out []memory.Moment
	for len(out) < maxEpisode {
		rows, err := s.DB.Query(ctx, `SELECT seq, id, log, at, CASE WHEN instr(origin, '"from":"person"') + instr(origin, '"from":"model"') > 0 AND length(payload) < 65536 THEN payload ELSE '' END
			FROM entries WHERE log IN (SELECT id FROM logs WHERE key = ?) AND kind = 'message' AND seq > ? ORDER BY seq LIMIT ?`, string(s.Key), upto, episodePage)
		if err != nil {
			return nil, fmt.Errorf("read episodes: %w", err)
		}
		ids := make([]tidemark.EntryID, len(rows))
		for i, r := range rows {
			upto, ids[i] = r.Int(0), tidemark.EntryID(r.Text(1))
			m := memory.Moment{ID: ids[i], Seq: upto, Log: r.Text(2), At: time.UnixMilli(r.Int(3))}
			if raw := r.Bytes(4); len(raw) > 0 {
				var msg tidemark.Message
				if err := json.Unmarshal(raw, &msg); err != nil {
					return nil, fmt.Errorf("read entry %s: %w", m.ID, err)
				}
				m.Text = clip(tidemark.StripReminders(msg.PlainText()), episodeText)
			}
			out = append(out, m)
		}
		marks, err := s.marksOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := range ids {
			m := &out[len(out)-len(ids)+i]
			m.Task = marks[m.ID].Task
		}
		if len(rows) < episodePage {
			break
		}
		if err := s.Runtime.Sleep(ctx, paceRest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

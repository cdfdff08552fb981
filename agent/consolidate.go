package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// Bounds of a digest's input.
const (
	digestFacts    = 20_000 // newest of the owner's; older ones stand in the daily files
	digestPage     = 1000
	digestSittings = 1000
	digestArchives = 500
	keepSittings   = 5000 // of the owner's, and as many of all others
)

// Importance of what is derived, beside that of facts: a sitting goes before a fact of no mark.
const (
	sittingImportance = 4
	summaryImportance = 3
)

// compactionMark begins the ids of lines that stand for a compaction.
const compactionMark = "s"

// Consolidated says what a night did.
type Consolidated struct {
	Decided    int      `json:"decided"`               // rows of the ledger
	Written    []string `json:"written"`               // files of the digest that were
	Suggested  []string `json:"suggested,omitempty"`   // written beside files that a person edited
	Unchanged  int      `json:"unchanged"`             // files that were as they should be
	Digest     bool     `json:"digest"`                // it is on
	Reconciled bool     `json:"reconciled"`            // facts were compared, all that came
	Note       string   `json:"note,omitempty"`        // nothing is on, or the next night goes on
	Entries    int      `json:"entries,omitempty"`     // of the digest
	Demoted    int      `json:"demoted,omitempty"`     // of these in detail files
	DetailSize int      `json:"detailFiles,omitempty"` // files that are linked
	Waiting    string   `json:"waiting,omitempty"`     // why facts wait for the model that compares them
	Unread     int      `json:"unread,omitempty"`      // nights in a row in which its answer could not be read
	Passed     int      `json:"passed,omitempty"`      // facts that were never compared for that, in all nights
}

// Consolidate does what belongs to the night, now: the sweep over new facts, then the digest. Doing it twice
// changes nothing the second time, and what was cut off goes on where it stood.
func (led *ledger) Consolidate(ctx context.Context) (Consolidated, error) {
	c := Consolidated{Written: []string{}, Digest: led.cfg.Digest, Reconciled: led.reconciles()}
	if !c.Digest && !c.Reconciled {
		c.Note = "nothing is on: set memory.digest, or recall.reconcile to model"
		return c, nil
	}
	nights, passed, err := led.unreadNights(ctx)
	if err != nil {
		return c, fmt.Errorf("sweep facts: %w", err)
	}
	c.Decided, c.Unread, err = led.reconcile(ctx, nights)
	c.Passed = passed
	if why := (*uncompared)(nil); errors.As(err, &why) {
		c.Passed += why.facts
	}
	left, silent := err, errors.Is(err, errUnasked)
	switch { // the digest does not wait for a key, and a model that babbles does so in an hour, too
	case silent, errors.Is(err, errUnread), errors.Is(err, errPassed):
		c.Reconciled, c.Waiting = false, err.Error()
	case errors.Is(err, errRemaining):
		c.Reconciled, c.Note = false, err.Error()
	case err != nil:
		return c, fmt.Errorf("sweep facts: %w", err)
	}
	if c.Digest {
		d, err := led.digest(ctx)
		if err != nil {
			return c, fmt.Errorf("digest: %w", err)
		}
		if err := led.writeDigest(ctx, d, &c); err != nil {
			return c, fmt.Errorf("digest: %w", err)
		}
	}
	note, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	if err := led.cfg.DB.Tx(ctx, []tidemark.Stmt{{
		SQL:  `INSERT INTO agent_nights(agent, at, note) VALUES(?, ?, ?) ON CONFLICT(agent) DO UPDATE SET at = excluded.at, note = excluded.note`,
		Args: []any{led.cfg.Name, led.now().UnixMilli(), string(note)},
	}}); err != nil || !silent {
		return c, err
	}
	return c, fmt.Errorf("sweep facts: %w", left)
}

// oneNight is how long what is asked again counts as the same night.
const oneNight = 12 * time.Hour

// unreadNights is how many nights in a row, before this one, the last answers could not be read, and how many facts were
// passed over for that by now.
func (led *ledger) unreadNights(ctx context.Context) (nights, passed int, err error) {
	r, err := host.First(ctx, led.cfg.DB, "read the last night", `SELECT coalesce(max(max(coalesce(json_extract(note, '$.unread'), 0) - (at > ?), 0)), 0), coalesce(max(json_extract(note, '$.passed')), 0)
		FROM agent_nights WHERE agent = ? AND note <> '' LIMIT 1`, led.now().Add(-oneNight).UnixMilli(), led.cfg.Name)
	if err != nil {
		return 0, 0, err
	}
	return int(r.Int(0)), int(r.Int(1)), nil
}

// Digest returns the digest as it would be written now.
func (led *ledger) Digest(ctx context.Context) (memory.Digested, error) {
	d, err := led.digest(ctx)
	if err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	return d, nil
}

func (led *ledger) digest(ctx context.Context) (memory.Digested, error) {
	lines, err := led.factLines(ctx)
	if err != nil {
		return memory.Digested{}, err
	}
	past, err := led.sittingLines(ctx)
	if err != nil {
		return memory.Digested{}, err
	}
	return memory.WriteDigest(append(lines, past...), led.cfg.DigestLines), nil
}

// factLines returns what the owner's facts say that count still. What was learned from others never stands there.
func (led *ledger) factLines(ctx context.Context) ([]memory.Line, error) {
	type known struct {
		line int
		days map[string]bool
	}
	at := map[string]*known{}
	var lines []memory.Line
	before := int64(1 << 53)
	for r, err := range host.Pages(ctx, led.cfg.DB, "read facts", digestPage, func() []any { return []any{led.cfg.Name, before} },
		`SELECT f.seq, f.text, f.fold, f.path, x.at, x.session_key FROM agent_facts f JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
		WHERE f.agent = ? AND x.peer = '' AND f.seq < ?`+standing+` ORDER BY f.seq DESC LIMIT ?`) {
		if err != nil {
			return nil, err
		}
		if before = r.Int(0); !tidemark.Key(r.Text(5)).Scope().Owner {
			continue // of a conversation of somebody without a name
		}
		k := at[r.Text(2)]
		if k == nil {
			if len(lines) == digestFacts {
				break
			}
			k = &known{line: len(lines), days: map[string]bool{}}
			at[r.Text(2)] = k
			lines = append(lines, memory.Line{ID: fmt.Sprintf("f%015d", before), Text: r.Text(1), At: time.UnixMilli(r.Int(4))})
		}
		k.days[r.Text(3)] = true
	}
	for _, k := range at {
		lines[k.line].Importance = memory.Importance(lines[k.line].Text, len(k.days))
	}
	return lines, nil
}

// sittingLines returns a line for each sitting and each compaction of the owner's conversations, the newest.
func (led *ledger) sittingLines(ctx context.Context) ([]memory.Line, error) {
	var lines []memory.Line
	sittings, err := host.Read(ctx, led.cfg.DB, "read sittings", host.JSON[memory.Sitting], `SELECT body FROM agent_episodes WHERE agent = ? AND owner = 1 ORDER BY at DESC, key, first LIMIT ?`, led.cfg.Name, digestSittings)
	if err != nil {
		return nil, err
	}
	for _, s := range sittings {
		if s.Key.Scope().Owner {
			lines = append(lines, memory.Line{ID: "e" + string(s.First), Text: s.Line(led.cfg.Zone), Importance: sittingImportance, At: s.From, Past: true})
		}
	}
	archives, err := led.ownArchives(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range archives {
		if at := i.First.Time(); !at.IsZero() { // an import archives what was said long before
			i.At = at
		}
		lines = append(lines, memory.Line{ID: compactionMark + i.Key, Importance: summaryImportance, At: i.At, Past: true,
			Text: fmt.Sprintf("%s %s: %d messages left the context, whole in %s", i.At.In(led.cfg.Zone).Format("2006-01-02 15:04"), i.SessionKey, i.Messages, strings.TrimPrefix(i.Key, memory.Folder(led.cfg.Name)))})
	}
	return lines, nil
}

// ownArchives returns the newest archives of the owner's conversations, newest first. All are looked through,
// page by page: whose one is stands in what is told of it alone.
func (led *ledger) ownArchives(ctx context.Context) ([]archive.Info, error) {
	var own []archive.Info
	newest := func() {
		slices.SortStableFunc(own, func(x, y archive.Info) int { return cmp.Or(y.At.Compare(x.At), cmp.Compare(x.Key, y.Key)) })
		own = own[:min(len(own), digestArchives)]
	}
	for after := ""; ; {
		rows, err := led.cfg.DB.Query(ctx, `SELECT key, info FROM agent_archives WHERE agent = ? AND key > ? ORDER BY key LIMIT ?`, led.cfg.Name, after, digestArchives)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			var i archive.Info
			if err := json.Unmarshal(r.Bytes(1), &i); err != nil {
				return nil, fmt.Errorf("read archive: %w", err)
			}
			after = r.Text(0)
			if i.SessionKey.Scope().Owner {
				own = append(own, i)
			}
		}
		newest()
		if len(rows) < digestArchives {
			return own, nil
		}
		if err := led.rest(ctx); err != nil {
			return nil, err
		}
	}
}

// writeDigest puts the files of a digest into the bucket: details first, so that no link dangles. A detail file
// that is not needed any more says so.
func (led *ledger) writeDigest(ctx context.Context, d memory.Digested, c *Consolidated) error {
	c.Entries, c.DetailSize = d.Shown, len(d.Details)
	wanted := map[string]bool{memory.DigestFile: true}
	for _, f := range d.Details {
		c.Entries, c.Demoted = c.Entries+f.Lines, c.Demoted+f.Lines
		wanted[memory.DetailFile(f.Slug)] = true
		if err := led.putDigest(ctx, memory.DetailFile(f.Slug), f.Text, c); err != nil {
			return err
		}
	}
	if err := led.putDigest(ctx, memory.DigestFile, d.Text, c); err != nil {
		return err
	}
	paths, err := host.Read(ctx, led.cfg.DB, "read the digest", host.Text, `SELECT path FROM agent_digest_files WHERE agent = ? LIMIT ?`, led.cfg.Name, digestPage)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if !wanted[path] && !wanted[original(path)] {
			if err := led.putDigest(ctx, path, unneeded, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// unneeded is the text of a detail file that nothing is demoted to now.
const unneeded = "# Memory digest\n\nEverything that stood here fits into [the digest](../DIGEST.md) again.\n"

// original is the file that a suggestion stands beside.
func original(path string) string { return strings.ReplaceAll(path, ".suggested.", ".") }

// putDigest writes one file unless a person has: then what is there stays, and ours goes beside it.
func (led *ledger) putDigest(ctx context.Context, path, text string, c *Consolidated) error {
	done, err := led.putOurs(ctx, path, text)
	switch {
	case errors.Is(err, errEdited):
		beside := memory.Suggestion(path)
		if text == unneeded || strings.Contains(path, ".suggested.") {
			return nil
		}
		led.cfg.Logger.Warn("the digest was edited and stays as it is", "agent", led.cfg.Name, "path", path, "suggestion", beside)
		if _, err := led.putOurs(ctx, beside, text); err != nil && !errors.Is(err, errEdited) {
			return err
		}
		c.Suggested = append(c.Suggested, beside)
		return nil
	case err != nil:
		return err
	case done:
		c.Written = append(c.Written, path)
	default:
		c.Unchanged++
	}
	return nil
}

// errEdited says that a file is not what we wrote last.
var errEdited = errors.New("a person edited the file")

// putOurs writes a file if it is absent or as we left it. Two nights at once may both write: what the other wrote
// meanwhile is ours, too. done is false when nothing changes.
func (led *ledger) putOurs(ctx context.Context, path, text string) (done bool, err error) {
	const tries = 5
	for range tries {
		if done, err = led.putOnce(ctx, path, text); !errors.Is(err, tidemark.ErrConflict) {
			return done, err
		}
	}
	return false, err
}

// putOnce is putOurs; a file that another one writes meanwhile is ErrConflict. What is about to be written is
// noted first, so that a crash behind the write does not make our own text look like a person's, and stays noted:
// another night may write, too, and note it later or not at all.
func (led *ledger) putOnce(ctx context.Context, path, text string) (done bool, err error) {
	file, opt, err := led.files.load(ctx, path)
	if err != nil {
		return false, err
	}
	r, err := host.First(ctx, led.cfg.DB, "read the digest", `SELECT hash, next FROM agent_digest_files WHERE agent = ? AND path = ? LIMIT 1`, led.cfg.Name, path)
	if err != nil {
		return false, err
	}
	now, want := string(tidemark.HashOf(file)), string(tidemark.HashOf([]byte(text)))
	ours := opt.IfAbsent || r != nil && (now == r.Text(0) || strings.Contains(r.Text(1), now))
	switch {
	case !ours && now != want:
		return false, errors.Join(errEdited, led.noteDigest(ctx, path, `UPDATE SET edited = 1`, "", ""))
	case opt.IfAbsent && text == unneeded:
		return false, nil
	case now == want && !opt.IfAbsent:
		return false, led.noteDigest(ctx, path, `UPDATE SET hash = excluded.hash, edited = 0`, want, "")
	}
	const noted = 8 * (sha256.Size*2 + 1) // the newest that were written
	add := fmt.Sprintf(`UPDATE SET next = CASE WHEN instr(next, trim(excluded.next)) THEN next ELSE substr(next || excluded.next, -%d) END`, noted)
	if err := led.noteDigest(ctx, path, add, "", " "+want); err != nil {
		return false, err
	}
	opt.ContentType = markdown
	if _, err := led.cfg.Blobs.Put(ctx, led.blobKey(path), bytes.NewReader([]byte(text)), int64(len(text)), opt); err != nil {
		return false, err
	}
	return true, led.noteDigest(ctx, path, `UPDATE SET hash = excluded.hash, edited = 0`, want, "")
}

func (led *ledger) noteDigest(ctx context.Context, path, update, hash, next string) error {
	edited := 0
	if hash == "" && next == "" {
		edited = 1
	}
	return led.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO agent_digest_files(agent, path, hash, next, edited) VALUES(?, ?, ?, ?, ?) ON CONFLICT(agent, path) DO ` + update,
		Args: []any{led.cfg.Name, path, hash, next, edited}}})
}

// Night is what is known of the last consolidation.
type Night struct {
	At          time.Time       `json:"at,omitzero"`
	Edited      []string        `json:"edited,omitempty"` // files of the digest that a person edited
	Superseded  int             `json:"superseded"`       // facts that count no more
	Sittings    int             `json:"episodes"`         // that the digest has
	Compactions int             `json:"compactions"`      // that it has beside them
	Last        json.RawMessage `json:"last,omitempty"`   // what it did: a Consolidated
}

// LastNight tells of the last consolidation; its zero value is that of an agent that never did one.
func (led *ledger) LastNight(ctx context.Context) (Night, error) {
	var n Night
	r, err := host.First(ctx, led.cfg.DB, "read the last night", `SELECT coalesce((SELECT at FROM agent_nights WHERE agent = ?), 0), coalesce((SELECT note FROM agent_nights WHERE agent = ?), ''),
		(SELECT count(*) FROM agent_facts f WHERE f.agent = ? AND `+inForce+`) LIMIT 1`, led.cfg.Name, led.cfg.Name, led.cfg.Name)
	if err != nil {
		return n, err
	}
	if at := r.Int(0); at > 0 {
		n.At = host.UTC(at)
	}
	if n.Superseded = int(r.Int(2)); r.Text(1) != "" {
		n.Last = r.Bytes(1)
	}
	past, err := led.sittingLines(ctx)
	if err != nil {
		return n, fmt.Errorf("read the last night: %w", err)
	}
	for _, l := range past {
		if strings.HasPrefix(l.ID, compactionMark) {
			n.Compactions++
		} else {
			n.Sittings++
		}
	}
	n.Edited, err = host.Read(ctx, led.cfg.DB, "read the last night", host.Text, `SELECT path FROM agent_digest_files WHERE agent = ? AND edited = 1 ORDER BY path LIMIT ?`, led.cfg.Name, digestPage)
	return n, err
}

// Sittings stores what a session tells of its sittings; the same one twice is one. They are derived: a longer
// one with the same beginning takes the place of a shorter.
func (led *ledger) Sittings(ctx context.Context, sittings []memory.Sitting) error {
	var stmts []tidemark.Stmt
	for _, s := range sittings {
		if s.Key.Agent() != led.cfg.Name || s.First == "" {
			return fmt.Errorf("sitting of %.80q told to agent %s: %w", s.Key, led.cfg.Name, tidemark.ErrInvalid)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("store sitting: %w", err)
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO agent_episodes(agent, key, first, at, body, owner) VALUES(?, ?, ?, ?, ?, ?)
			ON CONFLICT(agent, key, first) DO UPDATE SET body = excluded.body, owner = excluded.owner`,
			Args: []any{led.cfg.Name, string(s.Key), string(s.First), s.From.UnixMilli(), string(raw), s.Key.Scope().Owner}})
	}
	if len(stmts) == 0 {
		return nil
	}
	for _, owner := range []bool{true, false} { // what others say takes no room from the owner's
		stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM agent_episodes WHERE agent = ? AND owner = ? AND at < (SELECT at FROM agent_episodes WHERE agent = ? AND owner = ? ORDER BY at DESC LIMIT 1 OFFSET ?)`,
			Args: []any{led.cfg.Name, owner, led.cfg.Name, owner, keepSittings}})
	}
	if err := led.cfg.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("store sittings: %w", err)
	}
	return nil
}

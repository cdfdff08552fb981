package channel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Desk knows who the people are that write to an agent. All of it may be asked at once and twice.
type Desk interface {
	// Who returns what is known of a person by all names that a platform gave, the steadiest first. With
	// meet, one that is not known is remembered, so that the name stays when the platform's change.
	Who(ctx context.Context, platform string, names []string, meet bool) (Person, error)
	// Knock notes that a stranger wrote, and gives the code to tell them: for the message that asked
	// first. It is empty for others of theirs, and for one stranger too many.
	Knock(ctx context.Context, k Knock) (code string, err error)
	// Rename notes that two names are one person, and which of them ended by that.
	Rename(ctx context.Context, a Alias) error
}

// Knock is a stranger who wrote.
type Knock struct {
	Platform string   `json:"platform"`
	Names    []string `json:"names"`
	Called   string   `json:"called"`  // what they call themselves
	Message  string   `json:"message"` // id of the input

	Key   tidemark.Key     `json:"key"` // their own conversation, by which they are told
	Reply tidemark.Address `json:"reply"`
}

// Bounds of pairing.
const (
	codeLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789" // none that is read as another; 32, so a byte has no favourites
	codeLength  = 8
	codeLife    = time.Hour
	maxPending  = 3 // a channel
	maxWrong    = 10
	wrongSpan   = 10 * time.Minute
	maxNames    = 8   // of a person in one message
	maxName     = 256 // bytes of a name
	maxCalled   = 60  // letters of what a person calls themselves
	oldName     = 30 * 24 * time.Hour
)

// bookTables are those of an agent's desk.
var bookTables = [][]string{{
	`CREATE TABLE channel_people(platform TEXT NOT NULL, name TEXT NOT NULL, standing TEXT NOT NULL DEFAULT '',
		called TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL, PRIMARY KEY(platform, name)) WITHOUT ROWID`,
	// A name that leads to a person. steady: it came before others of theirs. until: 0, or when it ends.
	`CREATE TABLE channel_names(platform TEXT NOT NULL, alias TEXT NOT NULL, name TEXT NOT NULL, steady INTEGER NOT NULL DEFAULT 0,
		until INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(platform, alias)) WITHOUT ROWID`,
	`CREATE TABLE channel_codes(platform TEXT NOT NULL, name TEXT NOT NULL, code TEXT NOT NULL, called TEXT NOT NULL,
		names TEXT NOT NULL, asked TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(platform, name)) WITHOUT ROWID`,
	`CREATE TABLE channel_wrong(n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL)`,
}, { // where a stranger is told, of what they asked and that they are let in
	`ALTER TABLE channel_codes ADD COLUMN key TEXT NOT NULL DEFAULT ''`,
	`ALTER TABLE channel_codes ADD COLUMN reply TEXT NOT NULL DEFAULT '{}'`,
}}

// Book is a [Desk] in a database: that of the agent.
type Book struct {
	db tidemark.DB
	rt tidemark.Runtime
	to Sessions
}

var _ Desk = (*Book)(nil)

// OpenBook brings the tables up to date. Who is let in is told so over sessions; nil tells nobody.
func OpenBook(ctx context.Context, db tidemark.DB, rt tidemark.Runtime, sessions Sessions) (*Book, error) {
	return &Book{db, rt, sessions}, host.Migrate(ctx, db, "people", bookTables)
}

// usable takes out names that no platform gives.
func usable(names []string) []string {
	out := make([]string, 0, min(len(names), maxNames))
	for _, n := range names {
		if n != "" && len(n) <= maxName && len(out) < maxNames {
			out = append(out, n)
		}
	}
	return out
}

// Who implements [Desk].
func (b *Book) Who(ctx context.Context, platform string, names []string, meet bool) (Person, error) {
	if names = usable(names); len(names) == 0 {
		return Person{}, fmt.Errorf("a message on %s from nobody: %w", platform, tidemark.ErrInvalid)
	}
	for range 3 { // another message of the same person may be first
		p, missing, ended, err := b.find(ctx, platform, names)
		if err == nil && len(ended) > 0 {
			err = b.revive(ctx, platform, p.Name, ended, names[0])
		}
		if err != nil || p.Name != "" && len(missing) == 0 {
			return p, err
		}
		if p.Name == "" && !meet {
			return Person{Name: names[0]}, nil
		}
		stmts, name, err := b.meetStmts(ctx, platform, p.Name, names, missing)
		if err != nil {
			return Person{}, err
		}
		switch err = b.db.Tx(ctx, stmts); {
		case err == nil:
			return Person{Name: name, Standing: p.Standing}, nil
		case !errors.Is(err, tidemark.ErrConflict):
			return Person{}, fmt.Errorf("remember a person on %s: %w", platform, err)
		}
	}
	return Person{}, fmt.Errorf("remember a person on %s: %w", platform, tidemark.ErrBusy)
}

// find returns the person of names, with an empty name when there is none, which names are new, and
// which of the person's are to end. A person who has another steadiest name is somebody else: numbers are given to new people.
func (b *Book) find(ctx context.Context, platform string, names []string) (p Person, missing, ended []string, err error) {
	args := []any{platform, b.rt.Now().UnixMilli()}
	for _, n := range names {
		args = append(args, n)
	}
	rows, err := b.db.Query(ctx, `SELECT a.alias, a.name, p.standing, a.until,
			(SELECT count(*) FROM channel_names o WHERE o.platform = a.platform AND o.name = a.name AND o.steady = 1 AND o.until = 0)
		FROM channel_names a JOIN channel_people p ON p.platform = a.platform AND p.name = a.name
		WHERE a.platform = ? AND (a.until = 0 OR a.until > ?) AND a.alias IN (?`+strings.Repeat(", ?", len(names)-1)+`) LIMIT 20`, args...)
	if err != nil {
		return p, nil, nil, fmt.Errorf("look up a person on %s: %w", platform, err)
	}
	known := map[string]tidemark.Row{}
	for _, r := range rows {
		known[r.Text(0)] = r
	}
	first := known[names[0]]
	for _, n := range names {
		r := known[n]
		switch {
		case r == nil:
			missing = append(missing, n)
		case p.Name != "":
		case n != names[0] && first == nil && r.Int(4) > 0:
		default:
			p = Person{Name: r.Text(1), Standing: Standing(r.Text(2))}
		}
	}
	for _, n := range names {
		if r := known[n]; r != nil && r.Text(1) == p.Name && r.Int(3) > 0 {
			ended = append(ended, n)
		}
	}
	return p, missing, ended, nil
}

// meetStmts binds names to a person, whom it makes when the name is empty.
func (b *Book) meetStmts(ctx context.Context, platform, name string, names, missing []string) ([]tidemark.Stmt, string, error) {
	var stmts []tidemark.Stmt
	now := b.rt.Now().UnixMilli()
	if name == "" {
		var err error
		if name, err = b.free(ctx, platform, names[0]); err != nil {
			return nil, "", err
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO channel_people(platform, name, at) VALUES(?, ?, ?) ON CONFLICT DO NOTHING`, Args: []any{platform, name, now}, Want: 1})
	}
	for _, n := range missing {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO channel_names(platform, alias, name, steady) VALUES(?, ?, ?, ?)
			ON CONFLICT(platform, alias) DO UPDATE SET name = excluded.name, steady = excluded.steady, until = 0 WHERE until > 0 AND until <= ?`,
			Args: []any{platform, n, name, len(names) > 1 && n == names[0], now}, Want: 1})
	}
	return stmts, name, nil
}

// free returns a name for a new person: the first one who had it may have another number by now.
func (b *Book) free(ctx context.Context, platform, want string) (string, error) {
	const most = 1000
	for i := 1; i < most; i++ {
		name := want
		if i > 1 {
			name = fmt.Sprintf("%s~%d", want, i)
		}
		rows, err := b.db.Query(ctx, `SELECT 1 FROM channel_people WHERE platform = ? AND name = ? LIMIT 1`, platform, name)
		if err != nil {
			return "", fmt.Errorf("look up a name on %s: %w", platform, err)
		}
		if len(rows) == 0 {
			return name, nil
		}
	}
	return "", fmt.Errorf("name %.40q on %s had %d owners: %w", want, platform, most, tidemark.ErrTooLarge)
}

// Rename implements [Desk]. What is told of people comes in two kinds. A name in the place of one of its
// kind, a number for a number, an id for an id, ends the old one: it leads to the person for some time
// still, for what is late, and then may become somebody else's, as numbers do. A name of the other kind
// stands beside it; but who has a new number has no other one.
func (b *Book) Rename(ctx context.Context, a Alias) error {
	if names := usable([]string{a.Old, a.New}); len(names) != 2 || a.Old == a.New {
		return nil
	}
	now := b.rt.Now()
	rows, err := b.db.Query(ctx, `SELECT name, steady FROM channel_names WHERE platform = ? AND alias = ? AND (until = 0 OR until > ?) LIMIT 1`, a.Platform, a.Old, now.UnixMilli())
	if err != nil || len(rows) == 0 {
		return err
	}
	person, steady := rows[0].Text(0), rows[0].Int(1) > 0
	phone := number(a.New) != ""
	same := phone == (number(a.Old) != "")
	if !same {
		steady = !phone // ids are the steadier of the two
	}
	stmts := []tidemark.Stmt{{SQL: `INSERT INTO channel_names(platform, alias, name, steady) VALUES(?, ?, ?, ?)
		ON CONFLICT(platform, alias) DO UPDATE SET name = excluded.name, until = 0,
			steady = CASE WHEN name = excluded.name THEN max(steady, excluded.steady) ELSE excluded.steady END`,
		Args: []any{a.Platform, a.New, person, steady}}}
	const end = `UPDATE channel_names SET until = ?, steady = 0 WHERE platform = ? AND name = ? AND until = 0 AND alias `
	args := []any{now.Add(oldName).UnixMilli(), a.Platform, person}
	switch {
	case a.Keep:
	case same:
		stmts = append(stmts, tidemark.Stmt{SQL: end + `= ?`, Args: append(args, a.Old)})
	case phone:
		stmts = append(stmts, tidemark.Stmt{SQL: end + `<> ? AND ` + digitsOnly, Args: append(args, a.New)})
	}
	if err := b.db.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("rename a person on %s: %w", a.Platform, err)
	}
	return nil
}

// digitsOnly is of phone numbers, as platforms write them.
const digitsOnly = `alias NOT GLOB '*[^0-9]*'`

// revive takes back that names end which a person is seen to have still. Of numbers that is so for the
// only one beside a name that is good: one alone may be somebody else's by now, or late.
func (b *Book) revive(ctx context.Context, platform, person string, ended []string, steady string) error {
	var stmts []tidemark.Stmt
	for _, n := range ended {
		sql := `UPDATE channel_names SET until = 0, steady = max(steady, ?) WHERE platform = ? AND alias = ? AND name = ? AND until > 0`
		args := []any{n == steady, platform, n, person}
		if number(n) != "" {
			if n == steady {
				continue
			}
			sql += ` AND NOT EXISTS (SELECT 1 FROM channel_names WHERE platform = ? AND name = ? AND until = 0 AND ` + digitsOnly + `)`
			args = append(args, platform, person)
		}
		stmts = append(stmts, tidemark.Stmt{SQL: sql, Args: args})
	}
	if len(stmts) == 0 {
		return nil
	}
	if err := b.db.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("keep a name on %s: %w", platform, err)
	}
	return nil
}

// Knock implements [Desk].
func (b *Book) Knock(ctx context.Context, k Knock) (string, error) {
	names := usable(k.Names)
	if len(names) == 0 {
		return "", nil
	}
	now := b.rt.Now()
	code, err := newCode()
	if err != nil {
		return "", err
	}
	reply, err := json.Marshal(k.Reply)
	if err != nil {
		return "", err
	}
	err = b.db.Tx(ctx, []tidemark.Stmt{
		{SQL: `DELETE FROM channel_codes WHERE at <= ?`, Args: []any{now.Add(-codeLife).UnixMilli()}},
		{
			SQL: `INSERT INTO channel_codes(platform, name, code, called, names, asked, at, key, reply) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
				WHERE (SELECT count(*) FROM channel_codes WHERE platform = ?) < ? ON CONFLICT DO NOTHING`,
			Args: []any{k.Platform, names[0], code, oneLine(k.Called), strings.Join(names, "\n"), k.Message, now.UnixMilli(), string(k.Key), string(reply), k.Platform, maxPending}, Want: 1,
		},
	})
	if err == nil {
		return code, nil
	}
	if !errors.Is(err, tidemark.ErrConflict) {
		return "", fmt.Errorf("note who knocks on %s: %w", k.Platform, err)
	}
	// A life that ended before it told the code asks again.
	rows, err := b.db.Query(ctx, `SELECT code FROM channel_codes WHERE platform = ? AND name = ? AND asked = ? AND at > ? LIMIT 1`,
		k.Platform, names[0], k.Message, now.Add(-codeLife).UnixMilli())
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Text(0), nil
}

// newCode draws a code that cannot be guessed: 40 bits, and few tries.
func newCode() (string, error) {
	raw := make([]byte, codeLength)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("draw a code: %w", err)
	}
	for i := range raw {
		raw[i] = codeLetters[int(raw[i])%len(codeLetters)]
	}
	return string(raw), nil
}

// oneLine bounds what a person calls themselves, and takes out what would draw beside it.
func oneLine(s string) string {
	out := make([]rune, 0, maxCalled)
	for _, r := range s {
		if len(out) == maxCalled {
			break
		}
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff || r == 0xfffd {
			r = ' '
		}
		out = append(out, r)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

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
	newOwner    = 8 * 24 * time.Hour // platforms repeat a webhook for 7 days

	// clockStep is how far ahead a clock may have been that was set back, for what it noted to count. Beyond
	// that, what seems to be of the future would last for as long as the clock was wrong.
	clockStep = 10 * time.Minute
)

// lately bounds the times, in ms, of what happened within d and counts.
func (b *Book) lately(d time.Duration) (from, to int64) {
	now := b.rt.Now()
	return now.Add(-d).UnixMilli() + 1, now.Add(clockStep).UnixMilli()
}

// bookTables are those of an agent's desk.
var bookTables = []string{
	// was: the standing before this one, which is since at.
	`CREATE TABLE channel_people(platform TEXT NOT NULL, name TEXT NOT NULL, standing TEXT NOT NULL DEFAULT '', was TEXT NOT NULL DEFAULT '',
		called TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL, PRIMARY KEY(platform, name)) WITHOUT ROWID`,
	// A name that leads to a person. steady: it is good, and theirs for good ([lasting]). until: 0, or when it ends.
	`CREATE TABLE channel_names(platform TEXT NOT NULL, alias TEXT NOT NULL, name TEXT NOT NULL, steady INTEGER NOT NULL DEFAULT 0,
		until INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(platform, alias)) WITHOUT ROWID`,
	// key and reply: where a stranger is told, of what they asked and that they are let in.
	`CREATE TABLE channel_codes(platform TEXT NOT NULL, name TEXT NOT NULL, code TEXT NOT NULL, called TEXT NOT NULL, names TEXT NOT NULL, asked TEXT NOT NULL,
		key TEXT NOT NULL DEFAULT '', reply TEXT NOT NULL DEFAULT '{}', at INTEGER NOT NULL, PRIMARY KEY(platform, name)) WITHOUT ROWID`,
	`CREATE TABLE channel_wrong(n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL)`,
}

// Book is a [Desk] in a database: that of the agent.
//
// # Who is who
//
// A person has one name of ours, of which session keys are made, and any number of names of the platform's that lead to
// it. There are three kinds of those: an id, which the platform made for this person and gives to nobody else; a phone
// number, which is given to new people; and the id of an account's parent, which stands beside the person's own. In a
// message the steadiest comes first.
//
//   - A message is from the person to whom its first name leads, whatever stands beside that name.
//   - When the first name is not known, another one says who it is, unless that person has an id already, or has given
//     that name up: then it is somebody else, and the number that they came with ends for that person.
//   - What a message of a person shows beside is theirs from then on, if it was nobody's. Beside a known id, a new
//     number ends the number of before.
//   - A notice that names have changed is about the person who would be found by a message with the old ones. A number
//     in the place of a number, or an id in that of an id, ends the old one. A number that is told to be the new one of
//     somebody who is not known leads to nobody else, at once.
//   - A name that has ended leads to its person for 30 days, for what is late, when it comes alone or with a name that
//     is theirs. Then it is anybody's.
//   - An owner who lets somebody in by a name means who has it today; who takes a standing away may use one that has ended.
//
// So nobody inherits a standing with a number, at the price that who comes with a new id that no notice told of
// is a stranger, and has to be let in again.
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

// Knock implements [Desk]. Who got a standing while their message was judged is told no code any more.
func (b *Book) Knock(ctx context.Context, k Knock) (string, error) {
	names := usable(k.Names)
	if len(names) == 0 {
		return "", nil
	}
	now := b.rt.Now()
	from, to := b.lately(codeLife)
	code, err := newCode()
	if err != nil {
		return "", err
	}
	reply, err := json.Marshal(k.Reply)
	if err != nil {
		return "", err
	}
	err = b.db.Tx(ctx, []tidemark.Stmt{
		{SQL: `DELETE FROM channel_codes WHERE at NOT BETWEEN ? AND ?`, Args: []any{from, to}},
		{
			SQL: `INSERT INTO channel_codes(platform, name, code, called, names, asked, at, key, reply) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
				WHERE (SELECT count(*) FROM channel_codes WHERE platform = ?) < ? AND NOT EXISTS (SELECT 1 FROM channel_names n
					JOIN channel_people p ON p.platform = n.platform AND p.name = n.name
					WHERE n.platform = ? AND n.alias = ? AND n.until = 0 AND p.standing <> '') ON CONFLICT DO NOTHING`,
			Args: []any{
				k.Platform, names[0], code, oneLine(k.Called), strings.Join(names, "\n"), k.Message, now.UnixMilli(), string(k.Key), string(reply),
				k.Platform, maxPending, k.Platform, names[0],
			}, Want: 1,
		},
	})
	if err == nil {
		return code, nil
	}
	if !errors.Is(err, tidemark.ErrConflict) {
		return "", fmt.Errorf("note who knocks on %s: %w", k.Platform, err)
	}
	// A life that ended before it told the code asks again.
	code, err = host.One(ctx, b.db, "look up a code", "a code", host.Text, `SELECT code FROM channel_codes WHERE platform = ? AND name = ? AND asked = ? AND at BETWEEN ? AND ? LIMIT 1`,
		k.Platform, names[0], k.Message, from, to)
	if errors.Is(err, tidemark.ErrNotFound) {
		err = nil
	}
	return code, err
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

package channel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Listing is what an owner sees of the people who write to an agent.
type Listing struct {
	Pending []Pending `json:"pending"`
	People  []Known   `json:"people"`
}

// Pending is a stranger who was told a code.
type Pending struct {
	Channel string    `json:"channel"`
	Name    string    `json:"name"`
	Called  string    `json:"called,omitempty"` // by themselves; not to be trusted
	Code    string    `json:"code"`
	Expires time.Time `json:"expires"`
}

// Known is a person of a standing.
type Known struct {
	Channel  string    `json:"channel"`
	Name     string    `json:"name"`
	Aliases  []string  `json:"aliases,omitempty"` // other names of theirs
	Called   string    `json:"called,omitempty"`
	Standing Standing  `json:"standing"`
	Since    time.Time `json:"since"`
}

// maxListed bounds a listing.
const maxListed = 1000

// List returns who waits for a code to be entered, and everyone of a standing.
func (b *Book) List(ctx context.Context) (Listing, error) {
	out := Listing{Pending: []Pending{}, People: []Known{}}
	rows, err := b.db.Query(ctx, `SELECT platform, name, called, code, at FROM channel_codes WHERE at > ? ORDER BY at LIMIT ?`, b.rt.Now().Add(-codeLife).UnixMilli(), maxListed)
	if err != nil {
		return out, fmt.Errorf("list who knocked: %w", err)
	}
	for _, r := range rows {
		out.Pending = append(out.Pending, Pending{r.Text(0), r.Text(1), r.Text(2), r.Text(3), time.UnixMilli(r.Int(4)).Add(codeLife).UTC()})
	}
	rows, err = b.db.Query(ctx, `SELECT p.platform, p.name, p.called, p.standing, p.at,
			(SELECT group_concat(a.alias, char(10)) FROM channel_names a WHERE a.platform = p.platform AND a.name = p.name AND a.alias <> p.name AND a.until = 0)
		FROM channel_people p WHERE p.standing <> '' ORDER BY p.at LIMIT ?`, maxListed)
	if err != nil {
		return out, fmt.Errorf("list people: %w", err)
	}
	for _, r := range rows {
		k := Known{Channel: r.Text(0), Name: r.Text(1), Called: r.Text(2), Standing: Standing(r.Text(3)), Since: time.UnixMilli(r.Int(4)).UTC()}
		if names := r.Text(5); names != "" {
			k.Aliases = strings.Split(names, "\n")
		}
		out.People = append(out.People, k)
	}
	return out, nil
}

// Approve lets the one in who was told a code. Small letters and a hyphen are forgiven.
//
// # Errors
//
// ErrNotFound for a code that nobody has, ErrBusy after too many of them.
func (b *Book) Approve(ctx context.Context, code string, as Standing) (Known, error) {
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(code)))
	now := b.rt.Now()
	rows, err := b.db.Query(ctx, `SELECT count(*) FROM channel_wrong WHERE at > ? LIMIT 1`, now.Add(-wrongSpan).UnixMilli())
	if err != nil {
		return Known{}, fmt.Errorf("count wrong codes: %w", err)
	}
	if len(rows) > 0 && rows[0].Int(0) >= maxWrong {
		return Known{}, fmt.Errorf("%d wrong codes in %s; try again later: %w", maxWrong, wrongSpan, tidemark.ErrBusy)
	}
	rows, err = b.db.Query(ctx, `SELECT platform, names, called, key, reply FROM channel_codes WHERE code = ? AND at > ? LIMIT 1`, code, now.Add(-codeLife).UnixMilli())
	if err != nil {
		return Known{}, fmt.Errorf("look up a code: %w", err)
	}
	if len(rows) == 0 {
		err := b.db.Tx(ctx, []tidemark.Stmt{
			{SQL: `DELETE FROM channel_wrong WHERE at <= ?`, Args: []any{now.Add(-wrongSpan).UnixMilli()}},
			{SQL: `INSERT INTO channel_wrong(at) VALUES(?)`, Args: []any{now.UnixMilli()}},
		})
		return Known{}, errors.Join(fmt.Errorf("nobody was told that code in the last hour: %w", tidemark.ErrNotFound), err)
	}
	k, err := b.Stand(ctx, rows[0].Text(0), strings.Split(rows[0].Text(1), "\n"), rows[0].Text(2), as)
	if err == nil && as != Blocked {
		err = b.welcome(ctx, code, rows[0])
	}
	return k, err
}

// welcome tells a person that they are let in, by the row of their code. They are, whatever becomes of it.
func (b *Book) welcome(ctx context.Context, code string, r tidemark.Row) error {
	var to tidemark.Address
	key := tidemark.Key(r.Text(3))
	if b.to == nil || key == "" { // asked before codes had an address
		return nil
	}
	err := json.Unmarshal(r.Bytes(4), &to)
	if err == nil {
		err = b.to.Say(ctx, key, "welcome/"+code, to, "You are let in.")
	}
	if err != nil {
		return fmt.Errorf("%s is let in, and could not be told: %w", r.Text(2), err)
	}
	return nil
}

// Deny forgets a code, and blocks who was told it.
func (b *Book) Deny(ctx context.Context, code string) (Known, error) {
	return b.Approve(ctx, code, Blocked)
}

// Named checks what an owner calls a person on a channel, and returns it as the platform writes it.
//
// # Errors
//
// ErrInvalid, with what is wanted instead.
func Named(platform, name string) (string, error) {
	name = strings.TrimSpace(name)
	digits := number(name)
	wrong := ""
	switch {
	case platform != "whatsapp" && platform != "telegram":
		wrong = fmt.Sprintf("channel %.40q: there is whatsapp and telegram", platform)
	case platform == "telegram" && (digits == "" || digits != name):
		wrong = fmt.Sprintf("%.60q is no id of Telegram; it is a number such as 123456789 and no @name (a code, or `tidemark pairing ls`, names who wrote to you)", name)
	case platform == "whatsapp" && digits == "" && !businessID(name):
		wrong = fmt.Sprintf("%.60q is no name on WhatsApp; give a phone number with its country, such as +49 151 23456789, or an id such as US.13491208655302741918", name)
	case platform == "whatsapp" && digits != "" && (len(digits) < leastPhone || len(digits) > mostPhone):
		wrong = fmt.Sprintf("%.60q has %d digits; a phone number with its country has %d to %d", name, len(digits), leastPhone, mostPhone)
	case digits != "":
		return digits, nil
	}
	if wrong != "" {
		return "", fmt.Errorf("%s: %w", wrong, tidemark.ErrInvalid)
	}
	return name, nil
}

// Digits of a phone number with its country.
const (
	leastPhone = 7
	mostPhone  = 15
)

// businessID reports whether a name is an id of WhatsApp's: a country, a point, letters and digits, and
// ENT between for an account's parent.
func businessID(name string) bool {
	country, rest, ok := strings.Cut(name, ".")
	rest = strings.TrimPrefix(rest, "ENT.")
	return ok && len(country) == 2 && strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && rest != "" && len(rest) <= maxName/2 &&
		!strings.ContainsFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
}

// Told is a code as people were told it.
func Told(code string) string {
	half := len(code) / 2
	return code[:half] + "-" + code[half:]
}

// MostPending is how many strangers of a channel may wait at once; one more gets no answer.
const MostPending = maxPending

// Stand gives a person a standing, by any of their names; Stranger takes it away.
func (b *Book) Stand(ctx context.Context, platform string, names []string, called string, as Standing) (Known, error) {
	if platform == "" || strings.ContainsAny(platform, ": \n") {
		return Known{}, fmt.Errorf("channel %.40q: want whatsapp or telegram: %w", platform, tidemark.ErrInvalid)
	}
	for i, n := range names {
		if digits := number(n); digits != "" { // as platforms write it
			names[i] = digits
		}
	}
	p, err := b.Who(ctx, platform, names, true)
	if err != nil {
		return Known{}, err
	}
	now := b.rt.Now()
	stmts := []tidemark.Stmt{{SQL: `UPDATE channel_people SET standing = ?, at = ?, called = CASE WHEN ? = '' THEN called ELSE ? END WHERE platform = ? AND name = ?`,
		Args: []any{string(as), now.UnixMilli(), oneLine(called), oneLine(called), platform, p.Name}, Want: 1}}
	for _, n := range usable(names) {
		stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM channel_codes WHERE platform = ? AND (name = ? OR name = ?)`, Args: []any{platform, n, p.Name}})
	}
	if err := b.db.Tx(ctx, stmts); err != nil {
		return Known{}, fmt.Errorf("note a person on %s: %w", platform, err)
	}
	return Known{Channel: platform, Name: p.Name, Called: oneLine(called), Standing: as, Since: now.UTC()}, nil
}

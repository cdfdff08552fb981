package channel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
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
	Name     string    `json:"name"`            // of their conversation: the one that they came by first
	Names    []string  `json:"names,omitempty"` // what leads to them now; Name may be somebody else's since
	Called   string    `json:"called,omitempty"`
	Standing Standing  `json:"standing"`
	Since    time.Time `json:"since"`
}

// maxListed bounds a listing.
const maxListed = 1000

// List returns who waits for a code to be entered, and everyone of a standing.
func (b *Book) List(ctx context.Context) (Listing, error) {
	var out Listing
	from, to := b.lately(codeLife)
	pending, err := host.Read(ctx, b.db, "list who knocked", func(r tidemark.Row) (Pending, error) {
		return Pending{r.Text(0), r.Text(1), r.Text(2), r.Text(3), host.UTC(r.Int(4)).Add(codeLife)}, nil
	}, `SELECT platform, name, called, code, at FROM channel_codes WHERE at BETWEEN ? AND ? ORDER BY at LIMIT ?`, from, to, maxListed)
	if err != nil {
		return out, err
	}
	people, err := host.Read(ctx, b.db, "list people", knownOf, selectKnown+` WHERE p.standing <> '' ORDER BY p.at LIMIT ?`, maxListed)
	if err != nil {
		return out, err
	}
	return Listing{pending, people}, nil
}

const selectKnown = `SELECT p.platform, p.name, p.called, p.standing, p.at,
	(SELECT group_concat(a.alias, char(10)) FROM channel_names a WHERE a.platform = p.platform AND a.name = p.name AND a.until = 0)
	FROM channel_people p`

func knownOf(r tidemark.Row) (Known, error) {
	k := Known{Channel: r.Text(0), Name: r.Text(1), Called: r.Text(2), Standing: Standing(r.Text(3)), Since: host.UTC(r.Int(4))}
	if names := r.Text(5); names != "" {
		k.Names = strings.Split(names, "\n")
	}
	slices.Sort(k.Names)
	return k, nil
}

// Approve lets the one in who was told a code. Small letters and a hyphen are forgiven.
//
// # Errors
//
// ErrNotFound for a code that nobody has, ErrBusy after too many of them, ErrConflict when who was told it was
// blocked since, or is to be, and was linked as the owner.
func (b *Book) Approve(ctx context.Context, code string, as Standing) (Known, error) {
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(code)))
	tried, to := b.lately(wrongSpan)
	wrong, err := host.Number(ctx, b.db, "count wrong codes", `SELECT count(*) FROM channel_wrong WHERE at BETWEEN ? AND ? LIMIT 1`, tried, to)
	if err != nil {
		return Known{}, err
	}
	if wrong >= maxWrong {
		return Known{}, fmt.Errorf("%d wrong codes in %s; try again later: %w", maxWrong, wrongSpan, tidemark.ErrBusy)
	}
	told, to := b.lately(codeLife)
	r, err := host.First(ctx, b.db, "look up a code", `SELECT platform, names, called, key, reply FROM channel_codes WHERE code = ? AND at BETWEEN ? AND ? LIMIT 1`, code, told, to)
	if err != nil {
		return Known{}, err
	}
	if r == nil {
		err := b.db.Tx(ctx, []tidemark.Stmt{
			{SQL: `DELETE FROM channel_wrong WHERE at NOT BETWEEN ? AND ?`, Args: []any{tried, to}},
			{SQL: `INSERT INTO channel_wrong(at) VALUES(?)`, Args: []any{b.rt.Now().UnixMilli()}},
		})
		return Known{}, errors.Join(fmt.Errorf("nobody was told that code in the last hour: %w", tidemark.ErrNotFound), err)
	}
	platform, names := r.Text(0), strings.Split(r.Text(1), "\n")
	if as, err = b.beside(ctx, platform, names, as); err != nil {
		return Known{}, err
	}
	k, err := b.admit(ctx, platform, names, r.Text(2), as)
	if err == nil && as != Blocked {
		err = b.welcome(ctx, code, r)
	}
	return k, err
}

// beside is the standing that a code gives to somebody who may have got one since they were told it: a code
// takes no decision back.
func (b *Book) beside(ctx context.Context, platform string, names []string, as Standing) (Standing, error) {
	p, err := b.Who(ctx, platform, names, false)
	switch {
	case err != nil:
		return as, err
	case p.Standing == Blocked && as != Blocked:
		return as, fmt.Errorf("who was told that code is blocked since, as %s; forget them first: %w", p.Name, tidemark.ErrConflict)
	case p.Standing == Owner && as == Blocked:
		return as, fmt.Errorf("who was told that code is the owner since, as %s; unlink them first: %w", p.Name, tidemark.ErrConflict)
	case p.Standing == Owner:
		return Owner, nil
	}
	return as, nil
}

// welcome tells a person that they are let in, by the row of their code. They are, whatever becomes of it.
func (b *Book) welcome(ctx context.Context, code string, r tidemark.Row) error {
	var to tidemark.Address
	if b.to == nil {
		return nil
	}
	err := json.Unmarshal(r.Bytes(4), &to)
	if err == nil {
		err = b.to.Say(ctx, tidemark.Key(r.Text(3)), "welcome/"+code, to, "You are let in.")
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
	case platform == "whatsapp" && digits == "" && !BusinessID(name):
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

// parentMark follows the country in the id of an account's parent.
const parentMark = ".ENT."

// BusinessID reports whether a name is an id of WhatsApp's: a country, a point, letters and digits, and
// ENT between for an account's parent.
func BusinessID(name string) bool {
	country, rest, ok := strings.Cut(name, ".")
	rest = strings.TrimPrefix(rest, parentMark[1:])
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

// Stand gives a person a standing, by what an owner calls them. Whoever is let in is who has the names today.
// Standing is taken away ([Stranger]) from who has the name, or else had it: a person is not missed because they
// changed their number since they were listed. [Blocked] takes no name that was somebody's: it could mean two people.
//
// # Errors
//
// ErrNotFound when Stranger is for nobody who is known, ErrConflict for a name that leads to nobody any more,
// and was somebody's whom Blocked may mean.
func (b *Book) Stand(ctx context.Context, platform string, names []string, called string, as Standing) (Known, error) {
	if platform == "" || strings.ContainsAny(platform, ": \n") {
		return Known{}, fmt.Errorf("channel %.40q: want whatsapp or telegram: %w", platform, tidemark.ErrInvalid)
	}
	names = slices.Clone(names)
	for i, n := range names {
		if digits := number(n); digits != "" { // as platforms write it
			names[i] = digits
		}
	}
	if names = usable(names); len(names) == 0 {
		return Known{}, fmt.Errorf("nobody is named on %s: %w", platform, tidemark.ErrInvalid)
	}
	if as != Stranger && as != Blocked {
		return b.admit(ctx, platform, names, called, as)
	}
	holder, was, err := b.holder(ctx, platform, names[0])
	switch {
	case err != nil:
		return Known{}, err
	case as == Stranger && holder.Name == "" && was.Name == "":
		return Known{}, fmt.Errorf("nobody on %s is known by %.60q: %w", platform, names[0], tidemark.ErrNotFound)
	case as == Stranger && holder.Name == "":
		holder = was
	case as == Blocked && holder.Name == "" && was.Name != "":
		return Known{}, fmt.Errorf("%.60q is given up; who had it is %s now, and who has it since is not known: name one of theirs: %w", names[0], strings.Join(was.Names, ", "), tidemark.ErrConflict)
	case holder.Name == "" && was.Name == "":
		return b.admit(ctx, platform, names, called, as)
	}
	return b.set(ctx, platform, holder.Name, names, called, as)
}

// holder finds whom a name leads to now, and who had it before: by what is late, or as the name that they came by.
func (b *Book) holder(ctx context.Context, platform, name string) (now, was Known, err error) {
	const alias = `SELECT name FROM channel_names WHERE platform = ? AND alias = ? AND until `
	for _, q := range []struct {
		into *Known
		sql  string
		args []any
	}{
		{&now, ` = (` + alias + `= 0)`, []any{platform, platform, name}},
		{&was, ` = (` + alias + `> 0)`, []any{platform, platform, name}},
		{&was, ` = ? AND NOT EXISTS (` + alias + `= 0 AND name = p.name)`, []any{platform, name, platform, name}},
	} {
		found, err := host.Read(ctx, b.db, "look up a name on "+platform, knownOf, selectKnown+` WHERE p.platform = ? AND p.name`+q.sql+` LIMIT 1`, q.args...)
		if err != nil {
			return now, was, err
		}
		if len(found) > 0 && (q.into.Name == "" || q.into.Standing == Stranger) {
			*q.into = found[0]
		}
	}
	return now, was, nil
}

// admit gives a standing to who has the names today, and makes a person of them. A name that leads to somebody
// because it was theirs lately does so no more.
func (b *Book) admit(ctx context.Context, platform string, names []string, called string, as Standing) (Known, error) {
	free := make([]tidemark.Stmt, len(names))
	for i, n := range names {
		free[i] = tidemark.Stmt{SQL: `DELETE FROM channel_names WHERE platform = ? AND alias = ? AND until > 0`, Args: []any{platform, n}}
	}
	if err := b.db.Tx(ctx, free); err != nil {
		return Known{}, fmt.Errorf("free a name on %s: %w", platform, err)
	}
	p, err := b.Who(ctx, platform, names, true)
	if err != nil {
		return Known{}, err
	}
	return b.set(ctx, platform, p.Name, names, called, as)
}

// set notes the standing of a person, whose codes end by that: those told under any name of theirs.
func (b *Book) set(ctx context.Context, platform, person string, names []string, called string, as Standing) (Known, error) {
	stmts := []tidemark.Stmt{{SQL: `UPDATE channel_people SET standing = ?1, was = CASE WHEN standing = ?1 THEN was ELSE standing END, at = CASE WHEN standing = ?1 THEN at ELSE ?2 END,
		called = CASE WHEN ?3 = '' THEN called ELSE ?3 END WHERE platform = ?4 AND name = ?5`,
		Args: []any{string(as), b.rt.Now().UnixMilli(), oneLine(called), platform, person}, Want: 1}}
	const told = `instr(char(10) || names || char(10), char(10) || `
	for _, n := range names {
		stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM channel_codes WHERE platform = ? AND ` + told + `? || char(10)) > 0`, Args: []any{platform, n}})
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM channel_codes WHERE platform = ? AND EXISTS (SELECT 1 FROM channel_names a
		WHERE a.platform = channel_codes.platform AND a.name = ? AND a.until = 0 AND ` + told + `a.alias || char(10)) > 0)`, Args: []any{platform, person}})
	if err := b.db.Tx(ctx, stmts); err != nil {
		return Known{}, fmt.Errorf("note a person on %s: %w", platform, err)
	}
	return host.One(ctx, b.db, "look up a person on "+platform, "look up a person on "+platform, knownOf, selectKnown+` WHERE p.platform = ? AND p.name = ? LIMIT 1`, platform, person)
}

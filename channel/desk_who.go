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
)

// Who implements [Desk].
func (b *Book) Who(ctx context.Context, platform string, names []string, meet bool) (Person, error) {
	if names = usable(names); len(names) == 0 {
		return Person{}, fmt.Errorf("a message on %s from nobody: %w", platform, tidemark.ErrInvalid)
	}
	for range 3 { // another message of the same person may be first
		f, err := b.find(ctx, platform, names)
		if err == nil && len(f.ended) > 0 {
			err = b.revive(ctx, platform, f.Name, f.ended, names[0])
		}
		if err == nil && len(f.left) > 0 {
			err = b.db.Tx(ctx, f.left)
		}
		switch {
		case err != nil || f.Name != "" && len(f.missing) == 0:
			return f.Person, err
		case f.Name == "" && (!meet || f.doubt): // nothing is bound that may be the other's
			name, err := b.free(ctx, platform, names[0])
			return Person{Name: name}, err
		}
		stmts, name, err := b.meetStmts(ctx, platform, f.Name, names, f.missing)
		if err != nil {
			return Person{}, err
		}
		if f.Name != "" && lasting(names[0]) && !slices.Contains(f.missing, names[0]) {
			for _, n := range f.missing { // a new number that no notice told of
				if number(n) != "" {
					stmts = append(stmts, b.otherNumbers(platform, name, n))
				}
			}
		}
		switch err = b.db.Tx(ctx, stmts); {
		case err == nil:
			f.Name, f.Names = name, slices.Concat(f.Names, f.missing)
			return f.Person, nil
		case !errors.Is(err, tidemark.ErrConflict):
			return Person{}, fmt.Errorf("remember a person on %s: %w", platform, err)
		}
	}
	return Person{}, fmt.Errorf("remember a person on %s: %w", platform, tidemark.ErrBusy)
}

// found is what the desk knows of names.
type found struct {
	Person                  // whose they are; without a name when they are nobody's
	missing []string        // names that lead nowhere
	ended   []string        // the person's, that are to end
	left    []tidemark.Stmt // ends numbers that somebody else has by now: with a name that nobody knows
	doubt   bool            // nobody's, and one of them was given up lately: theirs, and late, or somebody else's by now
}

// find looks names up.
func (b *Book) find(ctx context.Context, platform string, names []string) (f found, err error) {
	soonest, most := b.ending()
	args := []any{soonest, most, platform, soonest, most}
	for _, n := range names {
		args = append(args, n)
	}
	rows, err := b.db.Query(ctx, `SELECT a.alias, a.name, p.standing, a.until,
			(SELECT count(*) FROM channel_names o WHERE o.platform = a.platform AND o.name = a.name AND o.steady = 1 AND o.until = 0),
			(SELECT group_concat(o.alias, char(10)) FROM channel_names o WHERE o.platform = a.platform AND o.name = a.name AND (o.until = 0 OR o.until BETWEEN ? AND ?)),
			p.was, p.at
		FROM channel_names a JOIN channel_people p ON p.platform = a.platform AND p.name = a.name
		WHERE a.platform = ? AND (a.until = 0 OR a.until BETWEEN ? AND ?) AND a.alias IN (`+host.Marks(len(names))+`) LIMIT 20`, args...)
	if err != nil {
		return f, fmt.Errorf("look up a person on %s: %w", platform, err)
	}
	known := map[string]tidemark.Row{}
	for _, r := range rows {
		known[r.Text(0)] = r
	}
	stranger := known[names[0]] == nil // by the steadiest name; the others must not be somebody's who has another such
	for _, n := range names {
		r := known[n]
		switch {
		case r == nil:
			f.missing = append(f.missing, n)
		case f.Name != "":
		case stranger && r.Int(4) > 0:
			if number(n) != "" && r.Int(3) == 0 {
				f.left = append(f.left, b.endStmt(platform, r.Text(1), `= ?`, n))
			}
		case stranger && r.Int(3) > 0:
			f.doubt = true
		default:
			f.Person = b.person(r)
		}
	}
	for _, n := range names {
		if r := known[n]; r != nil && r.Text(1) == f.Name && r.Int(3) > 0 {
			f.ended = append(f.ended, n)
		}
	}
	return f, nil
}

// person reads a row of find's.
func (b *Book) person(r tidemark.Row) Person {
	p := Person{Name: r.Text(1), Standing: Standing(r.Text(2)), Names: strings.Split(r.Text(5), "\n")}
	if age := b.rt.Now().Sub(time.UnixMilli(r.Int(7))); p.Standing == Owner && age >= 0 && age < newOwner {
		p.Was, p.Since = Standing(r.Text(6)), time.UnixMilli(r.Int(7))
	}
	return p
}

// ending bounds the times, in ms, at which names end that lead to somebody till then.
func (b *Book) ending() (soonest, most int64) {
	now := b.rt.Now()
	return now.UnixMilli() + 1, now.Add(oldName + clockStep).UnixMilli()
}

// meetStmts binds names to a person, whom it makes when the name is empty.
func (b *Book) meetStmts(ctx context.Context, platform, name string, names, missing []string) ([]tidemark.Stmt, string, error) {
	var stmts []tidemark.Stmt
	now := b.rt.Now().UnixMilli()
	soonest, most := b.ending()
	if name == "" {
		var err error
		if name, err = b.free(ctx, platform, names[0]); err != nil {
			return nil, "", err
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO channel_people(platform, name, at) VALUES(?, ?, ?) ON CONFLICT DO NOTHING`, Args: []any{platform, name, now}, Want: 1})
	}
	for _, n := range missing {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO channel_names(platform, alias, name, steady) VALUES(?, ?, ?, ?)
			ON CONFLICT(platform, alias) DO UPDATE SET name = excluded.name, steady = excluded.steady, until = 0 WHERE until > 0 AND until NOT BETWEEN ? AND ?`,
			Args: []any{platform, n, name, lasting(n), soonest, most}, Want: 1})
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
		if n, err := host.Number(ctx, b.db, "look up a name on "+platform, `SELECT 1 FROM channel_people WHERE platform = ? AND name = ? LIMIT 1`, platform, name); err != nil || n == 0 {
			return name, err
		}
	}
	return "", fmt.Errorf("name %.40q on %s had %d owners: %w", want, platform, most, tidemark.ErrTooLarge)
}

// Rename implements [Desk]. Who had the old names is found as by a message. What is told of people comes in two
// kinds. A name in the place of one of its kind, a number for a number, an id for an id, ends the old one. A name of
// the other kind stands beside it; but who has a new number has no other one, and no one else has it.
func (b *Book) Rename(ctx context.Context, a Alias) error {
	if names := usable([]string{a.Old, a.New}); len(names) != 2 || a.Old == a.New {
		return nil
	}
	had := usable(a.From)
	if !slices.Contains(had, a.Old) {
		had = append([]string{a.Old}, had...)
	}
	f, err := b.find(ctx, a.Platform, had)
	if err != nil {
		return err
	}
	if f.Name == "" {
		return b.taken(ctx, a, had)
	}
	f.missing = slices.DeleteFunc(f.missing, func(n string) bool { return n == a.New })
	stmts, _, err := b.meetStmts(ctx, a.Platform, f.Name, had, f.missing)
	if err != nil {
		return err
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO channel_names(platform, alias, name, steady) VALUES(?, ?, ?, ?)
		ON CONFLICT(platform, alias) DO UPDATE SET name = excluded.name, until = 0, steady = excluded.steady`,
		Args: []any{a.Platform, a.New, f.Name, lasting(a.New)}})
	switch phone := number(a.New) != ""; {
	case a.Keep:
	case phone == (number(a.Old) != ""):
		stmts = append(stmts, b.endStmt(a.Platform, f.Name, `= ?`, a.Old))
	case phone:
		stmts = append(stmts, b.otherNumbers(a.Platform, f.Name, a.New))
	}
	if err := b.db.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("rename a person on %s: %w", a.Platform, err)
	}
	return nil
}

// endStmt ends names of a person: they lead to them for some time still.
func (b *Book) endStmt(platform, person, which, name string) tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE channel_names SET until = ?, steady = 0 WHERE platform = ? AND name = ? AND until = 0 AND alias ` + which,
		Args: []any{b.rt.Now().Add(oldName).UnixMilli(), platform, person, name}}
}

// otherNumbers ends all numbers of a person but one.
func (b *Book) otherNumbers(platform, person, but string) tidemark.Stmt {
	return b.endStmt(platform, person, `<> ? AND `+digitsOnly, but)
}

// taken notes that somebody who is not known has a number from now on: it leads to nobody else any more, and for
// no time still. What is told again, of one who had one of the old names lately and has the number since, is not that.
func (b *Book) taken(ctx context.Context, a Alias, had []string) error {
	if number(a.New) == "" || slices.Contains(had, a.New) {
		return nil
	}
	args := []any{a.Platform, a.New}
	for _, n := range had {
		args = append(args, n)
	}
	err := b.db.Tx(ctx, []tidemark.Stmt{{SQL: `DELETE FROM channel_names WHERE platform = ? AND alias = ? AND NOT EXISTS (SELECT 1 FROM channel_names o
		WHERE o.platform = channel_names.platform AND o.name = channel_names.name AND o.until > 0 AND o.alias IN (` + host.Marks(len(had)) + `))`, Args: args}})
	if err != nil {
		return fmt.Errorf("note whose a number is on %s: %w", a.Platform, err)
	}
	return nil
}

// lasting reports whether a name is one person's for good: an id that the platform made for them. Numbers are
// given to new people, and the id of an account's parent stands beside the person's own.
func lasting(name string) bool {
	return number(name) == "" && !(len(name) > 3 && strings.HasPrefix(name[2:], parentMark))
}

// digitsOnly is of phone numbers, as platforms write them.
const digitsOnly = `alias NOT GLOB '*[^0-9]*'`

// revive takes back that names end which a person is seen to have still. Of numbers that is so for the
// only one beside a name that is good: one alone may be somebody else's by now, or late.
func (b *Book) revive(ctx context.Context, platform, person string, ended []string, first string) error {
	var stmts []tidemark.Stmt
	for _, n := range ended {
		sql := `UPDATE channel_names SET until = 0, steady = ? WHERE platform = ? AND alias = ? AND name = ? AND until > 0`
		args := []any{lasting(n), platform, n, person}
		if number(n) != "" {
			if n == first {
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

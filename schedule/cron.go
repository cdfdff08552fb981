package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// cron is an expression of five fields, each as the set of what matches.
type cron struct {
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool // the field begins with *: then the other one decides alone
}

// field says what one of the five may hold.
type field struct {
	name        string
	least, most int
	names       []string // of least, least+1, …
}

var fields = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// macros are words for an expression.
var macros = [...]struct{ word, means string }{
	{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
	{"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
}

// maxCron bounds an expression in bytes.
const maxCron = 200

// parseCron reads an expression, or a word such as @daily.
func parseCron(s string) (cron, error) {
	if len(s) > maxCron {
		return cron{}, fmt.Errorf("cron: %d bytes, at most %d: %w", len(s), maxCron, tidemark.ErrInvalid)
	}
	text := strings.ToLower(strings.TrimSpace(s))
	if strings.HasPrefix(text, "@") {
		known := ""
		for _, m := range macros {
			if m.word == text {
				text = m.means
			}
			known += " " + m.word
		}
		if strings.HasPrefix(text, "@") {
			return cron{}, fmt.Errorf("cron %q: want one of%s, or five fields: %w", text, known, tidemark.ErrInvalid)
		}
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		return cron{}, fmt.Errorf("cron %q: %d fields, want five: minute, hour, day of month, month, day of week, as in \"0 8 * * 1-5\": %w", s, len(parts), tidemark.ErrInvalid)
	}
	var sets [len(fields)]uint64
	for i, p := range parts {
		set, err := fields[i].parse(p)
		if err != nil {
			return cron{}, fmt.Errorf("cron %q: %w: %w", s, err, tidemark.ErrInvalid)
		}
		sets[i] = set
	}
	if sets[4]&(1<<7) != 0 { // Sunday is 0 and 7
		sets[4] = sets[4]&^(1<<7) | 1
	}
	return cron{minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4],
		anyDay: parts[2][0] == '*', anyWeekday: parts[4][0] == '*'}, nil
}

// parse reads a list of one field.
func (f field) parse(s string) (set uint64, err error) {
	for _, item := range strings.Split(s, ",") {
		one, err := f.item(item)
		if err != nil {
			return 0, err
		}
		set |= one
	}
	return set, nil
}

// item reads "*", a value, or a range, each with a step or without.
func (f field) item(s string) (set uint64, err error) {
	body, stepText, stepped := strings.Cut(s, "/")
	from, to, step := f.least, f.most, 1
	if f.most == 7 {
		to = 6 // * is each weekday once
	}
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.most || stepText[0] == '+' {
			return 0, fmt.Errorf("%s %q: want a step from 1 to %d behind /", f.name, s, f.most)
		}
	}
	if body != "*" {
		first, last, ranged := strings.Cut(body, "-")
		if from, err = f.value(first, s); err != nil {
			return 0, err
		}
		switch {
		case ranged:
			if to, err = f.value(last, s); err != nil {
				return 0, err
			}
			if f.most == 7 && to == 0 && from > 0 {
				to = 7 // fri-sun
			}
		case !stepped:
			to = from
		}
		if from > to {
			return 0, fmt.Errorf("%s %q: the range ends before it begins; write two, as in \"22-23,0-4\"", f.name, s)
		}
	}
	for v := from; v <= to; v += step {
		set |= 1 << v
	}
	return set, nil
}

// value reads a number or a name.
func (f field) value(s, all string) (int, error) {
	for i, n := range f.names {
		if s == n {
			return f.least + i, nil
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < f.least || n > f.most || len(s) > 2 || s[0] == '+' || s[0] == '-' {
		names := ""
		if f.names != nil {
			names = " or a name such as " + f.names[1]
		}
		return 0, fmt.Errorf("%s %q: want %d to %d%s, as *, a list, a range or with /step", f.name, all, f.least, f.most, names)
	}
	return n, nil
}

func has(set uint64, v int) bool { return set>>v&1 != 0 }

// on reports whether a day matches. When both of day of month and day of week are given, one is enough, as in
// Vixie's cron; a field that begins with * is not given, but what it leaves out stays out.
func (c cron) on(d date) bool {
	if !has(c.month, int(d.month)) {
		return false
	}
	day, weekday := has(c.day, d.day), has(c.weekday, int(d.weekday()))
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// horizon is how many days ahead a match is looked for: leap days on one weekday are at most 40 years apart.
const horizon = 41 * 366

// allHours is the hour field of a schedule that follows the clock as it shows, see [Plan.Next].
const allHours = 1<<24 - 1

// next is the first time after one that matches.
func (c cron) next(after time.Time, zone *time.Location) (time.Time, bool) {
	d := dateOf(after.In(zone)).add(-1) // a day that does not exist runs at the begin of the next
	for i := 0; i < horizon; i++ {
		if !has(c.month, int(d.month)) { // to the first of the next month
			next := date{d.year, d.month + 1, 1}.add(0)
			i += int(next.number()-d.number()) - 1
			d = next
			continue
		}
		if c.on(d) {
			if t, ok := c.within(d, after, zone); ok {
				return t, true
			}
		}
		d = d.add(1)
	}
	return time.Time{}, false
}

// within is the first match of a day behind after.
func (c cron) within(d date, after time.Time, zone *time.Location) (time.Time, bool) {
	if c.hour == allHours {
		return c.shown(d, after, zone)
	}
	if end := d.at(24*60, zone); !end.After(after) {
		return time.Time{}, false
	}
	for hours := c.hour; hours != 0; hours &= hours - 1 {
		h := bits.TrailingZeros64(hours)
		for minutes := c.minute; minutes != 0; minutes &= minutes - 1 {
			if t := d.at(h*60+bits.TrailingZeros64(minutes), zone); t.After(after) {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// shown is the first time of a day behind after when a clock on the wall shows a minute that matches.
func (c cron) shown(d date, after time.Time, zone *time.Location) (time.Time, bool) {
	t := d.at(0, zone)
	end := d.at(24*60, zone)
	if !t.After(after) {
		t = after.Truncate(time.Minute).Add(time.Minute)
	}
	for ; t.Before(end); t = t.Add(time.Minute) {
		local := t.In(zone)
		if dateOf(local) == d && has(c.minute, local.Minute()) {
			return t, true
		}
	}
	return time.Time{}, false
}

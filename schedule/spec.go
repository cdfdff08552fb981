// Package schedule says when something is due: once, every so often, by a cron expression, or as a heartbeat
// within active hours. It is pure: a specification and a time go in, the next time comes out; what is run then is for
// package agent. Begin with [Spec].
//
// # Clocks that change
//
// A cron expression means the clock on the wall of its zone, daylight saving included, exactly:
//
//   - Where hours are named, each named time runs once a day. One that the clock jumps over runs at the jump (several
//     are one run); one that it shows twice runs the first time.
//   - Where every hour matches (the hour is *), it runs whenever the clock shows a minute that matches, as in
//     "*/15 * * * *": none are made up for an hour that is skipped, and one that is repeated has its runs again.
//
// every counts real time and knows no daylight saving. A heartbeat counts real time from the beginning of the active
// hours of each day.
package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of schedules.
const (
	MinEvery = time.Minute          // the shortest period
	MaxEvery = 366 * 24 * time.Hour // and the longest
	maxText  = 100                  // bytes of a time or a period

	// Years of the times that are taken: their distances are durations.
	firstYear, lastYear = 1970, 2199
)

// Spec is when something is due, as a person writes it: exactly one of At, Every, Cron and Heartbeat.
type Spec struct {
	At        string `json:"at,omitempty"`        // "2026-12-01 09:00", RFC 3339, "09:00", "tomorrow 09:00" or "in 20m"
	Every     string `json:"every,omitempty"`     // 90m, 2h, 1d
	Anchor    string `json:"anchor,omitempty"`    // a time that Every counts from, RFC 3339
	Cron      string `json:"cron,omitempty"`      // five fields, or a word such as @daily
	Heartbeat string `json:"heartbeat,omitempty"` // a period, within Active
	Active    string `json:"active,omitempty"`    // hours of Heartbeat: "8-22" or "22:30-6"; empty is always
	Zone      string `json:"zone,omitempty"`      // IANA name; empty is the agent's
}

// Plan is a Spec that was read.
type Plan struct {
	spec   Spec
	at     time.Time
	every  time.Duration // of Every and Heartbeat
	anchor time.Time
	cron   cron
	from   int // first minute of a day that is active, and the one behind the last; past 24 h when it is of the next day
	to     int
	zone   *time.Location
}

// Parse reads a specification as it is meant at a time, in a zone where it names none. The plan's Spec is what Parse
// reads in the same way at any other time.
//
// # Errors
//
// ErrInvalid, with the field and what it wants; also for what would never be due.
func (s Spec) Parse(now time.Time, zone *time.Location) (Plan, error) {
	p := Plan{spec: s, zone: zone}
	if err := p.inZone(s.Zone); err != nil {
		return Plan{}, err
	}
	given := 0
	for _, f := range []string{s.At, s.Every, s.Cron, s.Heartbeat} {
		if strings.TrimSpace(f) != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return Plan{}, fmt.Errorf("a schedule has one of at, every, cron and heartbeat, this one has %d: %w", given, tidemark.ErrInvalid)
	case s.Anchor != "" && s.Every == "":
		return Plan{}, fmt.Errorf("anchor: it goes with every only; leave it out: %w", tidemark.ErrInvalid)
	case s.Active != "" && s.Heartbeat == "":
		return Plan{}, fmt.Errorf("active: it goes with heartbeat only; name the hours in cron, as in \"0 8-21 * * *\": %w", tidemark.ErrInvalid)
	}
	var err error
	switch {
	case s.At != "":
		err = p.readAt(now)
	case s.Every != "":
		err = p.readEvery(now)
	case s.Cron != "":
		p.cron, err = parseCron(s.Cron)
		if err == nil {
			if _, ok := p.Next(now); !ok {
				err = fmt.Errorf("cron %q: no day of the calendar matches, so it would never run: %w", s.Cron, tidemark.ErrInvalid)
			}
		}
	default:
		err = p.readHeartbeat()
	}
	if err != nil {
		return Plan{}, err
	}
	return p, nil
}

// inZone sets the zone that a name stands for.
func (p *Plan) inZone(name string) error {
	if p.zone == nil {
		p.zone = time.UTC
	}
	if name == "" {
		p.spec.Zone = p.zone.String()
		return nil
	}
	z, err := time.LoadLocation(name)
	if err != nil || len(name) > maxText || strings.EqualFold(name, "local") {
		return fmt.Errorf("zone %.60q: want an IANA name such as \"Europe/Berlin\": %w", name, tidemark.ErrInvalid)
	}
	p.zone = z
	return nil
}

// layouts are those of a time without a zone.
var layouts = [...]string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"}

func (p *Plan) readAt(now time.Time) error {
	text := strings.TrimSpace(p.spec.At)
	lower := strings.ToLower(text)
	bad := fmt.Errorf("at %.60q: want a time such as \"2026-12-01 09:00\", \"tomorrow 09:00\", \"in 20m\" or RFC 3339: %w", text, tidemark.ErrInvalid)
	if len(text) > maxText {
		return bad
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = p.wall(text)
	}
	today := dateOf(now.In(p.zone))
	switch {
	case err == nil:
	case strings.HasPrefix(lower, "in "):
		d, err := duration("at", strings.TrimSpace(lower[3:]))
		if err != nil {
			return err
		}
		t = now.Add(d)
	default:
		rest, tomorrow := strings.CutPrefix(lower, "tomorrow ")
		rest = strings.TrimPrefix(rest, "today ")
		minute, ok := clock(strings.TrimSpace(rest))
		if !ok || minute >= 24*60 {
			return bad
		}
		if tomorrow {
			today = today.add(1)
		}
		t = today.at(minute, p.zone)
		if !t.After(now) && rest == lower { // a bare time of day is the next one
			t = today.add(1).at(minute, p.zone)
		}
	}
	if y := t.Year(); y < firstYear || y > lastYear {
		return bad
	}
	p.at = t.Truncate(time.Second).In(p.zone)
	p.spec.At = p.at.Format(time.RFC3339)
	return nil
}

// wall reads a time on the wall of the plan's zone.
func (p *Plan) wall(text string) (time.Time, error) {
	var err error
	for _, l := range layouts {
		var t time.Time
		if t, err = time.Parse(l, text); err == nil {
			at := dateOf(t).at(t.Hour()*60+t.Minute(), p.zone)
			return at.Add(time.Duration(t.Second()) * time.Second), nil
		}
	}
	return time.Time{}, err
}

func (p *Plan) readEvery(now time.Time) error {
	var err error
	if p.every, err = Period("every", p.spec.Every); err != nil {
		return err
	}
	if p.anchor = now.Truncate(time.Second); p.spec.Anchor != "" {
		if p.anchor, err = time.Parse(time.RFC3339, strings.TrimSpace(p.spec.Anchor)); err != nil {
			if p.anchor, err = p.wall(strings.TrimSpace(p.spec.Anchor)); err != nil {
				return fmt.Errorf("anchor %.60q: want a time such as \"2026-12-01 09:00\" or RFC 3339: %w", p.spec.Anchor, tidemark.ErrInvalid)
			}
		}
	}
	if y := p.anchor.Year(); y < firstYear || y > lastYear {
		return fmt.Errorf("anchor %.60q: want a year from %d to %d: %w", p.spec.Anchor, firstYear, lastYear, tidemark.ErrInvalid)
	}
	p.spec.Anchor = p.anchor.UTC().Format(time.RFC3339)
	return nil
}

func (p *Plan) readHeartbeat() (err error) {
	if p.every, err = Period("heartbeat", p.spec.Heartbeat); err != nil {
		return err
	}
	if p.from, p.to = 0, 24*60; p.spec.Active == "" {
		return nil
	}
	bad := fmt.Errorf("active %.40q: want hours such as \"8-22\" or \"22:30-6\", which are not the same: %w", p.spec.Active, tidemark.ErrInvalid)
	first, last, ok := strings.Cut(strings.ReplaceAll(p.spec.Active, " ", ""), "-")
	from, ok1 := clock(first)
	to, ok2 := clock(last)
	if !ok || !ok1 || !ok2 || from == to || from == 24*60 {
		return bad
	}
	if to < from {
		to += 24 * 60
	}
	p.from, p.to = from, to
	return nil
}

// clock reads a time of day as a minute: 8, 08:00, 22:30, 24.
func clock(s string) (minute int, ok bool) {
	h, m, split := strings.Cut(s, ":")
	if len(h) == 0 || len(h) > 2 || split && len(m) != 2 || strings.Trim(h+m, "0123456789") != "" {
		return 0, false
	}
	hour, _ := strconv.Atoi(h)
	minute, _ = strconv.Atoi(m)
	if minute > 59 || hour*60+minute > 24*60 {
		return 0, false
	}
	return hour*60 + minute, true
}

// Period reads a duration of a named field within the bounds of one.
func Period(name, s string) (time.Duration, error) {
	d, err := duration(name, s)
	if err == nil && (d < MinEvery || d > MaxEvery || d%time.Second != 0) {
		return 0, fmt.Errorf("%s %.40q: want whole seconds from %s to %d days: %w", name, s, "1m", int(MaxEvery/(24*time.Hour)), tidemark.ErrInvalid)
	}
	return d, err
}

// duration reads 90m, 2h30m, 1d, 2w.
func duration(name, s string) (time.Duration, error) {
	text := strings.ToLower(strings.ReplaceAll(s, " ", ""))
	bad := fmt.Errorf("%s %.40q: want a duration such as 30m, 2h, 1d or 1w: %w", name, s, tidemark.ErrInvalid)
	for _, u := range []struct {
		unit string
		is   time.Duration
	}{{"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour}} {
		if n, ok := strings.CutSuffix(text, u.unit); ok {
			count, err := strconv.Atoi(n)
			if err != nil || count < 1 || count > 366 {
				return 0, bad
			}
			return time.Duration(count) * u.is, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || len(text) > maxText {
		return 0, bad
	}
	return d, nil
}

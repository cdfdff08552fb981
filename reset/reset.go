// Package reset decides when a conversation begins anew. It is pure: package session archives, remembers
// and moves the ref. Begin with [Policy].
//
// A daily reset is due when the last activity lies before the most recent boundary, an idle one
// when the time since the last activity exceeds the limit (both as in the reference, strictly).
// Nothing is due while the clock stands before the last activity, so a clock that was moved back
// resets nobody.
package reset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Mode says what begins a conversation anew.
type Mode string

// The modes of a [Policy].
const (
	Manual Mode = "manual" // only a person
	Daily  Mode = "daily"  // the first activity after an hour of the day
	Idle   Mode = "idle"   // a pause
	Both   Mode = "both"   // daily or idle, whichever is first
)

// Defaults of the settings; hour and minutes are the reference's.
const (
	DefaultHour        = 4
	DefaultIdleMinutes = 60

	maxIdleMinutes = 366 * 24 * 60
	jitterSpan     = 15 * time.Minute
)

// Policy says when a conversation is reset by itself. The zero value is never.
type Policy struct {
	Mode        Mode
	AtHour      int            // 0 to 23, daily and both
	Zone        *time.Location // of AtHour; nil is UTC
	IdleMinutes int            // idle and both; 0: each time nothing waits for an answer
}

// Settings is a policy as configuration writes it; what is missing has a default.
type Settings struct {
	Mode        string `json:"mode,omitempty"`
	AtHour      *int   `json:"atHour,omitempty"`
	IdleMinutes *int   `json:"idleMinutes,omitempty"`
	Zone        string `json:"zone,omitempty"` // IANA name, empty for the agent's zone
}

// Parse makes a policy of settings; zone is the agent's.
func Parse(s Settings, zone *time.Location) (Policy, error) {
	p := Policy{Mode: Mode(s.Mode), AtHour: DefaultHour, Zone: zone, IdleMinutes: DefaultIdleMinutes}
	if p.Mode == "" {
		p.Mode = Manual
	}
	if s.AtHour != nil {
		p.AtHour = *s.AtHour
	}
	if s.IdleMinutes != nil {
		p.IdleMinutes = *s.IdleMinutes
	}
	if s.Zone != "" {
		z, err := time.LoadLocation(s.Zone)
		if err != nil || s.Zone == "Local" {
			return Policy{}, fmt.Errorf("reset zone %.60q: want an IANA name such as \"Europe/Berlin\": %w", s.Zone, tidemark.ErrInvalid)
		}
		p.Zone = z
	}
	return p, p.Check()
}

// Check reports a policy that means nothing, with the field and what it may be.
func (p Policy) Check() error {
	switch p.Mode {
	case "", Manual, Daily, Idle, Both:
	default:
		return fmt.Errorf("reset mode %.40q: want \"manual\", \"daily\", \"idle\" or \"both\": %w", p.Mode, tidemark.ErrInvalid)
	}
	if p.AtHour < 0 || p.AtHour > 23 {
		return fmt.Errorf("reset atHour %d: want 0 to 23: %w", p.AtHour, tidemark.ErrInvalid)
	}
	if p.IdleMinutes < 0 || p.IdleMinutes > maxIdleMinutes {
		return fmt.Errorf("reset idleMinutes %d: want 0 to %d: %w", p.IdleMinutes, maxIdleMinutes, tidemark.ErrInvalid)
	}
	return nil
}

func (p Policy) daily() bool { return p.Mode == Daily || p.Mode == Both }
func (p Policy) idle() bool  { return p.Mode == Idle || p.Mode == Both }

func (p Policy) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

// Due reports whether a conversation with that last activity is to be reset now, and why, in words
// for people. Times count in milliseconds, as they are stored. A conversation without any activity
// is never due.
func Due(p Policy, last, now time.Time) (due bool, reason string) {
	if last.IsZero() {
		return false, ""
	}
	at, reason := first(p, last, 0)
	if at.IsZero() || now.UnixMilli() < at.UnixMilli() {
		return false, ""
	}
	return true, reason
}

// Alarm returns when a host is to look whether a session is to be reset, now when that is due already, and the zero time
// when it never is: some time behind the hour of a daily reset, so that a thousand sessions do not wake in one second. Idle
// ones are spread by themselves.
func Alarm(p Policy, key string, last, now time.Time) time.Time {
	return next(p, last, now, Jitter(key))
}

func next(p Policy, last, now time.Time, jitter time.Duration) time.Time {
	if last.IsZero() {
		return time.Time{}
	}
	at, _ := first(p, last, jitter)
	if !at.IsZero() && at.Before(now) {
		return now
	}
	return at
}

// first returns the first moment at which a policy resets a conversation with that last activity;
// jitter is how long behind its hour a daily one comes.
func first(p Policy, last time.Time, jitter time.Duration) (at time.Time, reason string) {
	last = last.Truncate(time.Millisecond)
	if p.daily() {
		at = boundaryAfter(last, p.AtHour, p.zone()).Add(jitter)
		reason = fmt.Sprintf("daily reset at %02d:00 %s", p.AtHour, p.zone())
	}
	if p.idle() {
		// One millisecond beyond the limit: exactly at the limit is not yet due.
		t := last.Add(time.Duration(p.IdleMinutes)*time.Minute + time.Millisecond)
		if at.IsZero() || t.Before(at) {
			at, reason = t, fmt.Sprintf("idle for more than %d minutes", p.IdleMinutes)
		}
	}
	return at, reason
}

// boundaryAfter returns the first daily boundary after t.
func boundaryAfter(t time.Time, hour int, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	// The day before too: in a zone that crosses the date line a day's hour may come twice late.
	for i := -1; ; i++ {
		if b := boundary(y, m, d+i, hour, zone); b.After(t) {
			return b
		}
	}
}

// boundary returns the first moment at which the clocks of a zone have reached an hour of a day: the
// first of two when the hour comes twice, the end of the gap when it is left out. time.Date
// promises neither (https://pkg.go.dev/time#Date).
func boundary(y int, m time.Month, d, hour int, zone *time.Location) time.Time {
	wall := time.Date(y, m, d, hour, 0, 0, 0, time.UTC) // the reading of the clock, taken as UTC
	const span = 26 * time.Hour                         // no zone is farther from UTC
	period := wall.Add(-span).In(zone)
	for {
		_, offset := period.Zone()
		start, end := period.ZoneBounds()
		if !end.IsZero() && !end.After(period) { // Go lets a year that a rule governs end with its 365th day
			end = period.Add(time.Hour)
		}
		at := wall.Add(-time.Duration(offset) * time.Second)
		if !start.IsZero() && at.Before(start) {
			at = start
		}
		if end.IsZero() || at.Before(end) {
			return at.In(zone)
		}
		period = end.In(zone)
	}
}

// Jitter spreads the alarms of many sessions over 15 minutes after the hour of a daily reset. It is the same for a
// session key each time.
func Jitter(key string) time.Duration {
	sum := sha256.Sum256([]byte(key))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%uint64(jitterSpan/time.Second)) * time.Second
}

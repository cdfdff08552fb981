package schedule

import "time"

// date is a day of the calendar, in no zone.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date{y, m, d}
}

func (d date) utc() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

// add is n days later.
func (d date) add(n int) date { return dateOf(d.utc().AddDate(0, 0, n)) }

func (d date) weekday() time.Weekday { return d.utc().Weekday() }

// number counts days.
func (d date) number() int64 { return d.utc().Unix() / (24 * 60 * 60) }

// at is when a clock in a zone shows a minute of a day, the first time if it does twice. One that it never shows is
// where the clock jumps over it. Minutes of 24 h and more are of the days behind.
func (d date) at(minute int, zone *time.Location) time.Time {
	wall := d.utc().Add(time.Duration(minute) * time.Minute)
	before, after := offset(wall.Add(-24*time.Hour), zone), offset(wall.Add(24*time.Hour), zone)
	first, second := wall.Add(-before), wall.Add(-after)
	ok1, ok2 := offset(first, zone) == before, offset(second, zone) == after
	switch {
	case ok1 && ok2 && second.Before(first), ok2 && !ok1:
		return second.In(zone)
	case ok1:
		return first.In(zone)
	}
	jump, _ := first.In(zone).ZoneBounds()
	if jump.IsZero() {
		jump = first
	}
	return jump.In(zone)
}

// offset is how far a zone is ahead of UTC at a time.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, s := t.In(zone).Zone()
	return time.Duration(s) * time.Second
}

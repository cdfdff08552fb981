package schedule

import (
	"strings"
	"time"
)

// Spec is the plan in writing, with nothing in it that depends on when it was read.
func (p Plan) Spec() Spec { return p.spec }

// Once reports a plan that is due one time only.
func (p Plan) Once() bool { return p.spec.At != "" }

// Beats reports a heartbeat.
func (p Plan) Beats() bool { return p.spec.Heartbeat != "" }

// Next is the first time behind after at which the plan is due; false for never again.
func (p Plan) Next(after time.Time) (time.Time, bool) {
	switch {
	case p.Once():
		return p.at, p.at.After(after)
	case p.Beats():
		return p.beat(after)
	case p.spec.Every != "":
		gone := after.Sub(p.anchor)
		if gone < 0 {
			return p.anchor.In(p.zone), true
		}
		return p.anchor.Add((gone/p.every + 1) * p.every).In(p.zone), true
	case p.zone == nil: // the zero Plan
		return time.Time{}, false
	}
	return p.cron.next(after, p.zone)
}

// beat is the next time of a heartbeat: so many periods behind the beginning of a day's active hours.
func (p Plan) beat(after time.Time) (time.Time, bool) {
	const days = 4 // yesterday's hours may reach into today, and a day may be one that a zone left out
	d := dateOf(after.In(p.zone)).add(-1)
	for range days {
		from := d.at(p.from, p.zone)
		to := d.at(p.to, p.zone)
		t := from
		if gone := after.Sub(from); gone >= 0 {
			t = from.Add((gone/p.every + 1) * p.every)
		}
		if t.Before(to) {
			return t, true
		}
		d = d.add(1)
	}
	return time.Time{}, false
}

// Active reports whether a time lies in the active hours; always, where there are none.
func (p Plan) Active(t time.Time) bool {
	if !p.Beats() || p.spec.Active == "" {
		return true
	}
	d := dateOf(t.In(p.zone))
	for _, day := range []date{d.add(-1), d} {
		from := day.at(p.from, p.zone)
		to := day.at(p.to, p.zone)
		if !t.Before(from) && t.Before(to) {
			return true
		}
	}
	return false
}

// String is the plan for people: "every 2h", "cron 0 8 * * 1-5 (Europe/Berlin)".
func (p Plan) String() string {
	s := p.spec
	switch {
	case s.At != "":
		return "at " + p.at.Format("2006-01-02 15:04 MST")
	case s.Every != "":
		return "every " + s.Every
	case s.Heartbeat != "" && s.Active != "":
		return "heartbeat " + s.Heartbeat + ", " + s.Active + " (" + s.Zone + ")"
	case s.Heartbeat != "":
		return "heartbeat " + s.Heartbeat
	}
	return "cron " + s.Cron + " (" + s.Zone + ")"
}

// Words reads what a person writes where one field must do: "every 2h", "0 8 * * 1-5", "@daily", or a time as in
// [Spec.At]. What it means is for Parse to say.
func Words(s string) Spec {
	s = strings.TrimSpace(s)
	lower := strings.ToLower(s)
	if rest, ok := strings.CutPrefix(lower, "every "); ok {
		return Spec{Every: strings.TrimSpace(rest)}
	}
	if rest, ok := strings.CutPrefix(lower, "at "); ok {
		return Spec{At: strings.TrimSpace(rest)}
	}
	if strings.HasPrefix(s, "@") || len(strings.Fields(s)) >= 4 || strings.Contains(s, "*") {
		return Spec{Cron: s}
	}
	return Spec{At: s}
}

// At is the time of a plan that is due once; zero for others.
func (p Plan) At() time.Time { return p.at }

// Zone is where the plan's clocks hang.
func (p Plan) Zone() *time.Location { return p.zone }

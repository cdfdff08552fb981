package search

import (
	"testing"
	"time"
)

// TestBetweenTimes: a time is read as markers and results say it, where the agent is; up to a minute is to its end.
func TestBetweenTimes(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	at := time.Date(2026, 2, 11, 18, 36, 0, 0, time.UTC)
	minute := time.Minute - time.Millisecond
	for text, want := range map[string][2]time.Time{
		"2026-02-11 20:36":       {at, at.Add(minute)},
		"2026-02-11T20:36":       {at, at.Add(minute)},
		"2026-02-11T20:36:00":    {at, at},
		"2026-02-11T18:36Z":      {at, at.Add(minute)},
		"2026-02-11T18:36:00Z":   {at, at},
		"2026-02-11 18:36:00Z":   {at, at},
		"2026-02-11T19:36+01:00": {at, at.Add(minute)}, // a minute, too
		"2026-02-11 20:36:00":    {at, at},
		"2026-02-11":             {at.Add(-20*time.Hour - 36*time.Minute), at.Add(3*time.Hour + 24*time.Minute - time.Millisecond)},
	} {
		from, to, err := Between(text, text, zone)
		if err != nil || !from.Equal(want[0]) || !to.Equal(want[1]) {
			t.Errorf("%s: %s to %s, %v", text, from, to, err)
		}
	}
	for _, text := range []string{"yesterday", "2026-02-11 25:00", "20:36"} {
		if _, _, err := Between(text, "", zone); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}

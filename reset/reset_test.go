package reset_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zone files

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/reset"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestNext holds the moment of each reset; Due must turn at exactly that millisecond.
func TestNext(t *testing.T) {
	daily := func(hour int, zone string) reset.Settings {
		return reset.Settings{Mode: "daily", AtHour: &hour, Zone: zone}
	}
	idle := func(minutes int) reset.Settings { return reset.Settings{Mode: "idle", IdleMinutes: &minutes} }
	both := func(hour, minutes int) reset.Settings {
		return reset.Settings{Mode: "both", AtHour: &hour, IdleMinutes: &minutes, Zone: "UTC"}
	}
	rows := []struct {
		name     string
		settings reset.Settings
		last     string
		want     string
	}{
		{"daily, before the hour", daily(4, "UTC"), "2026-03-01T03:00:00Z", "2026-03-01T04:00:00Z"},
		{"daily, one ms before", daily(4, "UTC"), "2026-03-01T03:59:59.999Z", "2026-03-01T04:00:00Z"},
		{"daily, at the hour is the new day", daily(4, "UTC"), "2026-03-01T04:00:00Z", "2026-03-02T04:00:00Z"},
		{"daily, one ms after", daily(4, "UTC"), "2026-03-01T04:00:00.001Z", "2026-03-02T04:00:00Z"},
		{"daily, session over midnight", daily(4, "UTC"), "2026-03-01T23:59:59Z", "2026-03-02T04:00:00Z"},
		{"daily at midnight, end of year", daily(0, "UTC"), "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"},
		{"Berlin, gap at 2: the clock reads 3", daily(2, "Europe/Berlin"), "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"Berlin, gap before 4", daily(4, "Europe/Berlin"), "2026-03-28T12:00:00Z", "2026-03-29T02:00:00Z"},
		{"Berlin, overlap at 2: the first of two", daily(2, "Europe/Berlin"), "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z"},
		{"Berlin, overlap at 2 comes once a day", daily(2, "Europe/Berlin"), "2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"},
		{"Berlin, overlap at 3: after both", daily(3, "Europe/Berlin"), "2026-10-24T12:00:00Z", "2026-10-25T02:00:00Z"},
		{"New York, gap at 2", daily(2, "America/New_York"), "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z"},
		{"New York, overlap at 1", daily(1, "America/New_York"), "2026-10-31T12:00:00Z", "2026-11-01T05:00:00Z"},
		{"Lord Howe, half-hour gap at 2: the clock reads 2:30", daily(2, "Australia/Lord_Howe"), "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"},
		{"Lord Howe, half-hour overlap from 2 to 1:30", daily(2, "Australia/Lord_Howe"), "2026-04-04T12:00:00Z", "2026-04-04T15:30:00Z"},
		{"Kiritimati, UTC+14", daily(4, "Pacific/Kiritimati"), "2026-05-10T13:59:59.999Z", "2026-05-10T14:00:00Z"},
		{"Pago Pago, UTC-11", daily(4, "Pacific/Pago_Pago"), "2026-05-10T14:59:59.999Z", "2026-05-10T15:00:00Z"},
		{"Apia left out 2011-12-30", daily(4, "Pacific/Apia"), "2011-12-29T20:00:00Z", "2011-12-30T10:00:00Z"},
		{"idle", idle(60), "2026-03-01T03:00:00Z", "2026-03-01T04:00:00.001Z"},
		{"idle 0 resets at every pause", idle(0), "2026-03-01T03:00:00Z", "2026-03-01T03:00:00.001Z"},
		{"idle ignores daylight saving", idle(120), "2026-03-29T00:30:00Z", "2026-03-29T02:30:00.001Z"},
		{"both, the hour is first", both(4, 120), "2026-03-01T03:00:00Z", "2026-03-01T04:00:00Z"},
		{"both, the pause is first", both(4, 30), "2026-03-01T03:00:00Z", "2026-03-01T03:30:00.001Z"},
		{"part of a millisecond does not count", idle(1), "2026-03-01T03:00:00.0009Z", "2026-03-01T03:01:00.001Z"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p, err := reset.Parse(r.settings, nil)
			if err != nil {
				t.Fatal(err)
			}
			last, want := at(t, r.last), at(t, r.want)
			if got := reset.Next(p, last, last); !got.Equal(want) {
				t.Fatalf("Next = %s, want %s", got.UTC(), want)
			}
			if due, _ := reset.Due(p, last, want.Add(-time.Millisecond)); due {
				t.Errorf("due one ms before %s", want)
			}
			due, reason := reset.Due(p, last, want)
			if !due || reason == "" {
				t.Errorf("Due at %s = %v, %q", want, due, reason)
			}
			if due, _ := reset.Due(p, last, want.Add(time.Millisecond)); !due {
				t.Errorf("not due one ms after %s", want)
			}
			if due, _ := reset.Due(p, last, last.Add(-48*time.Hour)); due {
				t.Error("due although the clock was moved back before the last activity")
			}
			late := want.Add(49 * time.Hour)
			if got := reset.Next(p, last, late); !got.Equal(late) {
				t.Errorf("Next when overdue = %s, want now, %s", got, late)
			}
		})
	}
}

func TestNever(t *testing.T) {
	now := at(t, "2026-03-01T04:00:00Z")
	for name, p := range map[string]reset.Policy{"zero": {}, "manual": {Mode: reset.Manual, AtHour: 4, IdleMinutes: 1}} {
		t.Run(name, func(t *testing.T) {
			if due, _ := reset.Due(p, now.AddDate(-3, 0, 0), now); due {
				t.Error("due")
			}
			if next := reset.Next(p, now, now); !next.IsZero() {
				t.Errorf("next %s", next)
			}
		})
	}
	p := reset.Policy{Mode: reset.Both, AtHour: 4}
	if due, _ := reset.Due(p, time.Time{}, now); due || !reset.Next(p, time.Time{}, now).IsZero() {
		t.Error("due without any activity")
	}
}

// TestBoundaries walks four years of hours in zones with every kind of change. The law: a daily
// policy comes once for each calendar day, at the first moment at which the clocks have reached its
// hour.
func TestBoundaries(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Africa/Casablanca", "America/Nuuk"} {
		z := zone(t, name)
		for hour := range 24 {
			p := reset.Policy{Mode: reset.Daily, AtHour: hour, Zone: z}
			now := time.Date(2023, 1, 1, hour, 0, 0, 0, z).UTC()
			for day := 1; day < 4*365; day++ {
				next := reset.Next(p, now, now)
				want := time.Date(2023, 1, 1+day, hour, 0, 0, 0, time.UTC) // readings of the clock, as UTC
				if wall(next, z).Before(want) || !wall(next.Add(-time.Second), z).Before(want) {
					t.Fatalf("%s at %d: boundary %d is %s", name, hour, day, next.In(z))
				}
				now = next
			}
		}
	}
}

// wall is what the clocks of a zone read, as UTC.
func wall(t time.Time, z *time.Location) time.Time {
	_, offset := t.In(z).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

func TestParse(t *testing.T) {
	hour, minutes, last, longest, longer, least := 24, -1, 23, 366*24*60, 366*24*60+1, 0
	rows := []struct {
		name string
		in   reset.Settings
		want string // piece of the error
	}{
		{"defaults", reset.Settings{}, ""},
		{"mode", reset.Settings{Mode: "weekly"}, `mode "weekly"`},
		{"hour", reset.Settings{Mode: "daily", AtHour: &hour}, "atHour 24"},
		{"the last hour, the longest time", reset.Settings{Mode: "both", AtHour: &last, IdleMinutes: &longest}, "-"},
		{"the first hour, no time", reset.Settings{Mode: "both", AtHour: &least, IdleMinutes: &least}, "-"},
		{"too long", reset.Settings{Mode: "idle", IdleMinutes: &longer}, "idleMinutes 527041"},
		{"minutes", reset.Settings{Mode: "idle", IdleMinutes: &minutes}, "idleMinutes -1"},
		{"zone", reset.Settings{Mode: "daily", Zone: "Berlin"}, `zone "Berlin"`},
		{"zone of the machine", reset.Settings{Mode: "daily", Zone: "Local"}, `zone "Local"`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p, err := reset.Parse(r.in, time.UTC)
			if r.want == "" {
				if err != nil || p.Mode != reset.Manual || p.AtHour != 4 || p.IdleMinutes != 60 || p.Zone != time.UTC {
					t.Fatalf("%+v, %v", p, err)
				}
				return
			}
			if r.want == "-" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), r.want) {
				t.Errorf("error %v, want one with %q", err, r.want)
			}
		})
	}
}

// TestAlarm: only a daily reset comes behind its moment, so that an idle one is there when the next input
// would find it due.
func TestAlarm(t *testing.T) {
	const key = "agent:main:main"
	last, now := at(t, "2026-03-01T03:00:00Z"), at(t, "2026-03-01T03:10:00Z")
	hour := at(t, "2026-03-01T04:00:00Z")
	for _, r := range []struct {
		name string
		p    reset.Policy
		now  time.Time
		want time.Time
	}{
		{"daily", reset.Policy{Mode: reset.Daily, AtHour: 4}, now, hour.Add(reset.Jitter(key))},
		{"daily, behind the hour", reset.Policy{Mode: reset.Daily, AtHour: 4}, hour.Add(time.Second), hour.Add(reset.Jitter(key))},
		{"daily, long ago", reset.Policy{Mode: reset.Daily, AtHour: 4}, hour.Add(time.Hour), hour.Add(time.Hour)},
		{"idle", reset.Policy{Mode: reset.Idle, IdleMinutes: 60}, now, hour.Add(time.Millisecond)},
		{"idle 0", reset.Policy{Mode: reset.Idle}, now, now},
		{"both, the pause before the jittered hour", reset.Policy{Mode: reset.Both, AtHour: 4, IdleMinutes: 60}, now, hour.Add(time.Millisecond)},
		{"manual", reset.Policy{}, now, time.Time{}},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := reset.Alarm(r.p, key, last, r.now); !got.Equal(r.want) {
				t.Errorf("%s, want %s", got, r.want)
			}
		})
	}
	if reset.Jitter(key) < time.Second {
		t.Error("the key of this test has no jitter")
	}
}

func TestJitter(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 500 {
		key := "agent:main:whatsapp:dm:+49" + strings.Repeat("1", i)
		j := reset.Jitter(key)
		if j < 0 || j >= 15*time.Minute || j != reset.Jitter(key) {
			t.Fatalf("jitter %s", j)
		}
		seen[j] = true
	}
	if len(seen) < 300 {
		t.Errorf("500 keys share %d moments", len(seen))
	}
}

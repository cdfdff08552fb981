package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zone files

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/schedule"
)

func zone(t interface {
	Helper()
	Fatal(...any)
}, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func parse(t testing.TB, s schedule.Spec, now time.Time) schedule.Plan {
	t.Helper()
	p, err := s.Parse(now, time.UTC)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return p
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestNext holds what comes next, daylight saving included. Berlin jumps at 2026-03-29 02:00 to 03:00 and at
// 2026-10-25 03:00 back to 02:00.
func TestNext(t *testing.T) {
	for _, row := range []struct {
		name  string
		spec  schedule.Spec
		after string
		want  string // several, in order
	}{
		{"working days", schedule.Spec{Cron: "0 8 * * 1-5"}, "2026-11-27T08:00:00Z", "2026-11-30T08:00:00Z 2026-12-01T08:00:00Z"},
		{"names", schedule.Spec{Cron: "0 8 * JAN,mar Mon"}, "2026-11-27T08:00:00Z", "2027-01-04T08:00:00Z 2027-01-11T08:00:00Z"},
		{"Sunday is 0", schedule.Spec{Cron: "0 0 * * 0"}, "2026-11-25T00:00:00Z", "2026-11-29T00:00:00Z"},
		{"Sunday is 7", schedule.Spec{Cron: "0 0 * * 7"}, "2026-11-25T00:00:00Z", "2026-11-29T00:00:00Z"},
		{"a range to Sunday", schedule.Spec{Cron: "0 0 * * fri-sun"}, "2026-11-25T00:00:00Z", "2026-11-27T00:00:00Z 2026-11-28T00:00:00Z 2026-11-29T00:00:00Z 2026-12-04T00:00:00Z"},
		{"a day of the month or of the week", schedule.Spec{Cron: "0 0 13 * 5"}, "2026-11-10T00:00:00Z", "2026-11-13T00:00:00Z 2026-11-20T00:00:00Z 2026-11-27T00:00:00Z 2026-12-04T00:00:00Z 2026-12-11T00:00:00Z 2026-12-13T00:00:00Z"},
		{"a star with a step is no day", schedule.Spec{Cron: "0 0 */2 * 1"}, "2026-11-01T00:00:00Z", "2026-11-09T00:00:00Z 2026-11-23T00:00:00Z"},
		{"a step from a value", schedule.Spec{Cron: "50/5 23 * * *"}, "2026-11-25T00:00:00Z", "2026-11-25T23:50:00Z 2026-11-25T23:55:00Z 2026-11-26T23:50:00Z"},
		{"leap days", schedule.Spec{Cron: "0 0 29 2 *"}, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"daily", schedule.Spec{Cron: "@daily"}, "2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z"},
		{"seconds behind", schedule.Spec{Cron: "* * * * *"}, "2026-11-25T00:00:59Z", "2026-11-25T00:01:00Z"},

		{"a time that is jumped over runs at the jump", schedule.Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"several are one", schedule.Spec{Cron: "*/15 2 * * *", Zone: "Europe/Berlin"}, "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z"},
		{"with one that is there", schedule.Spec{Cron: "0 2,3 * * *", Zone: "Europe/Berlin"}, "2026-03-28T03:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z 2026-03-30T01:00:00Z"},
		{"a time that comes twice runs once", schedule.Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"quarters through the jump", schedule.Spec{Cron: "*/15 * * * *", Zone: "Europe/Berlin"}, "2026-03-29T00:30:00Z", "2026-03-29T00:45:00Z 2026-03-29T01:00:00Z 2026-03-29T01:15:00Z"},
		{"half past through the jump", schedule.Spec{Cron: "30 * * * *", Zone: "Europe/Berlin"}, "2026-03-29T00:00:00Z", "2026-03-29T00:30:00Z 2026-03-29T01:30:00Z"},
		{"half past where the hour comes twice", schedule.Spec{Cron: "30 * * * *", Zone: "Europe/Berlin"}, "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-25T02:30:00Z"},
		{"midnight that is jumped over", schedule.Spec{Cron: "0 0 * * *", Zone: "Africa/Cairo"}, "2026-04-22T22:30:00Z", "2026-04-23T22:00:00Z 2026-04-24T21:00:00Z"},
		{"half an hour of daylight saving", schedule.Spec{Cron: "15 2 * * *", Zone: "Australia/Lord_Howe"}, "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"a day that is no day", schedule.Spec{Cron: "0 8 30 12 *", Zone: "Pacific/Apia"}, "2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z 2012-12-29T18:00:00Z"},
		{"Kathmandu", schedule.Spec{Cron: "0 9 * * *", Zone: "Asia/Kathmandu"}, "2026-11-25T00:00:00Z", "2026-11-25T03:15:00Z"},

		{"every, from its anchor", schedule.Spec{Every: "2h", Anchor: "2026-11-25T00:30:00Z"}, "2026-11-25T02:30:00Z", "2026-11-25T04:30:00Z 2026-11-25T06:30:00Z"},
		{"every, before its anchor", schedule.Spec{Every: "1d", Anchor: "2026-12-01T00:30:00Z"}, "2026-11-25T02:30:00Z", "2026-12-01T00:30:00Z 2026-12-02T00:30:00Z"},
		{"heartbeat", schedule.Spec{Heartbeat: "5h", Active: "8-22", Zone: "Europe/Berlin"}, "2026-11-25T12:00:00Z", "2026-11-25T17:00:00Z 2026-11-26T07:00:00Z 2026-11-26T12:00:00Z"},
		{"heartbeat over midnight", schedule.Spec{Heartbeat: "3h", Active: "22:30-6"}, "2026-11-25T12:00:00Z", "2026-11-25T22:30:00Z 2026-11-26T01:30:00Z 2026-11-26T04:30:00Z 2026-11-26T22:30:00Z"},
		{"heartbeat all day", schedule.Spec{Heartbeat: "7h"}, "2026-11-25T13:00:00Z", "2026-11-25T14:00:00Z 2026-11-25T21:00:00Z 2026-11-26T00:00:00Z"},
		{"at", schedule.Spec{At: "2026-12-01 09:00", Zone: "Europe/Berlin"}, "2026-11-25T13:00:00Z", "2026-12-01T08:00:00Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			after := instant(t, row.after)
			p := parse(t, row.spec, after)
			for _, want := range strings.Fields(row.want) {
				next, ok := p.Next(after)
				if got := next.UTC().Format(time.RFC3339); !ok || got != want {
					t.Fatalf("after %s comes %s, %t, want %s", after, got, ok, want)
				}
				after = next
			}
			if _, more := p.Next(after); more != (row.spec.At == "") {
				t.Errorf("more: %t", more)
			}
		})
	}
}

// TestParse holds how times and periods are read: what is written down stays the same when it is read again.
func TestParse(t *testing.T) {
	now := instant(t, "2026-11-25T13:30:20Z") // 14:30 in Berlin
	berlin := zone(t, "Europe/Berlin")
	for _, row := range []struct{ name, at, want string }{
		{"a date and a time", "2026-12-01 09:00", "2026-12-01T09:00:00+01:00"},
		{"with T", "2026-12-01T09:00", "2026-12-01T09:00:00+01:00"},
		{"RFC 3339", "2026-12-01T09:00:00Z", "2026-12-01T10:00:00+01:00"},
		{"in", "in 20m", "2026-11-25T14:50:20+01:00"},
		{"days", "in 2d", "2026-11-27T14:30:20+01:00"},
		{"a time of today", "15:00", "2026-11-25T15:00:00+01:00"},
		{"a time of tomorrow", "9:00", "2026-11-26T09:00:00+01:00"},
		{"tomorrow", "Tomorrow 15:00", "2026-11-26T15:00:00+01:00"},
		{"past", "today 9:00", "2026-11-25T09:00:00+01:00"},
		{"a time that is jumped over", "2026-03-29 02:30", "2026-03-29T03:00:00+02:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := schedule.Spec{At: row.at}.Parse(now, berlin)
			if err != nil || p.Spec().At != row.want || p.Spec().Zone != "Europe/Berlin" {
				t.Fatalf("%+v, %v, want %s", p.Spec(), err, row.want)
			}
			again, err := p.Spec().Parse(now.Add(1000*time.Hour), time.UTC)
			if err != nil || again.Spec() != p.Spec() || again.String() != p.String() {
				t.Errorf("read again %+v, %v", again.Spec(), err)
			}
		})
	}
}

// TestRefused holds that each mistake is told with its field and the way out.
func TestRefused(t *testing.T) {
	now := instant(t, "2026-11-25T13:30:20Z")
	for _, row := range []struct {
		name string
		spec schedule.Spec
		want string
	}{
		{"nothing", schedule.Spec{}, "one of at, every, cron and heartbeat"},
		{"two", schedule.Spec{At: "in 5m", Every: "5m"}, "has 2"},
		{"never", schedule.Spec{Cron: "30 2 31 2 *"}, "would never run"},
		{"never, of two", schedule.Spec{Cron: "0 0 31 2,4,6,9,11 *"}, "would never run"},
		{"four fields", schedule.Spec{Cron: "0 8 * *"}, "want five"},
		{"a minute too many", schedule.Spec{Cron: "60 8 * * *"}, `minute "60": want 0 to 59`},
		{"no number", schedule.Spec{Cron: "0 x * * *"}, `hour "x": want 0 to 23`},
		{"month 0", schedule.Spec{Cron: "0 0 1 0 *"}, "month"},
		{"a name elsewhere", schedule.Spec{Cron: "0 0 * mon *"}, `month "mon": want 1 to 12 or a name such as feb`},
		{"a range that ends before it begins", schedule.Spec{Cron: "0 22-4 * * *"}, "write two"},
		{"a step of nothing", schedule.Spec{Cron: "*/0 * * * *"}, "step"},
		{"an empty item", schedule.Spec{Cron: "1,,2 * * * *"}, "minute"},
		{"a word", schedule.Spec{Cron: "@reboot"}, "@daily"},
		{"too often", schedule.Spec{Every: "30s"}, "from 1m"},
		{"too seldom", schedule.Spec{Every: "100w"}, "to 366 days"},
		{"no duration", schedule.Spec{Every: "soon"}, "every"},
		{"negative", schedule.Spec{Every: "-5m"}, "every"},
		{"a zone", schedule.Spec{Every: "5m", Zone: "Berlin"}, "IANA name"},
		{"the zone of the machine", schedule.Spec{Every: "5m", Zone: "Local"}, "IANA name"},
		{"an anchor of a cron", schedule.Spec{Cron: "@daily", Anchor: "2026-01-01T00:00:00Z"}, "anchor"},
		{"hours of a cron", schedule.Spec{Cron: "@daily", Active: "8-22"}, "active"},
		{"hours that are none", schedule.Spec{Heartbeat: "30m", Active: "8-8"}, "active"},
		{"hours beyond the day", schedule.Spec{Heartbeat: "30m", Active: "8-25"}, "active"},
		{"a time of nothing", schedule.Spec{At: "soon"}, "at"},
		{"a far year", schedule.Spec{At: "9999-01-01 00:00"}, "at"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.spec.Parse(now, time.UTC)
			if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// TestActive holds the ends of active hours, also of those over midnight.
func TestActive(t *testing.T) {
	for _, row := range []struct {
		hours, at string
		want      bool
	}{
		{"8-22", "2026-11-25T07:59:59Z", false}, {"8-22", "2026-11-25T08:00:00Z", true}, {"8-22", "2026-11-25T22:00:00Z", false},
		{"22-6", "2026-11-25T23:00:00Z", true}, {"22-6", "2026-11-25T05:59:00Z", true}, {"22-6", "2026-11-25T06:00:00Z", false},
		{"", "2026-11-25T03:00:00Z", true}, {"0-24", "2026-11-25T00:00:00Z", true},
	} {
		if got := parse(t, schedule.Spec{Heartbeat: "30m", Active: row.hours}, instant(t, row.at)).Active(instant(t, row.at)); got != row.want {
			t.Errorf("%q at %s: %t", row.hours, row.at, got)
		}
	}
}

// TestWords holds what one line is read as.
func TestWords(t *testing.T) {
	for line, want := range map[string]schedule.Spec{
		"every 2h":            {Every: "2h"},
		"0 8 * * 1-5":         {Cron: "0 8 * * 1-5"},
		"@daily":              {Cron: "@daily"},
		"tomorrow 09:00":      {At: "tomorrow 09:00"},
		"at 2026-12-01 09:00": {At: "2026-12-01 09:00"},
		"in 20m":              {At: "in 20m"},
	} {
		if got := schedule.Words(line); got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

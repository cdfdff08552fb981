package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"pgregory.net/rapid"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/schedule"
)

// fieldOf draws one field of an expression. With plain it has nothing that other programs read in another way.
func fieldOf(least, most int, plain bool) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var items []string
		for range rapid.IntRange(1, 3).Draw(t, "items") {
			a, b := rapid.IntRange(least, most).Draw(t, "a"), rapid.IntRange(least, most).Draw(t, "b")
			step := rapid.IntRange(1, 7).Draw(t, "step")
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				return "*"
			case 1:
				if !plain {
					return fmt.Sprintf("*/%d", step)
				}
				items = append(items, fmt.Sprint(a))
			case 2:
				items = append(items, fmt.Sprintf("%d-%d", min(a, b), max(a, b)))
			case 3:
				items = append(items, fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), step))
			default:
				items = append(items, fmt.Sprint(a))
			}
		}
		return strings.Join(items, ",")
	})
}

// expression draws one.
func expression(plain bool) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join([]string{fieldOf(0, 59, plain).Draw(t, "minute"), fieldOf(0, 23, plain).Draw(t, "hour"), fieldOf(1, 31, plain).Draw(t, "day"),
			fieldOf(1, 12, plain).Draw(t, "month"), fieldOf(0, 6, plain).Draw(t, "weekday")}, " ")
	})
}

func someTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(1_600_000_000, 2_500_000_000).Draw(t, "unix"), 0).UTC()
	})
}

// TestLikeGronx holds our reading of an expression against that of another program, in a zone without daylight
// saving.
func TestLikeGronx(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, after := expression(true).Draw(t, "cron"), someTime().Draw(t, "after")
		p, err := schedule.Spec{Cron: text}.Parse(after, time.UTC)
		if err != nil {
			if strings.Contains(err.Error(), "would never run") {
				t.Skip()
			}
			t.Fatal(err)
		}
		got, ok := p.Next(after)
		want, err := gronx.NextTickAfter(text, after, false)
		if err != nil {
			t.Skip() // it gives up beyond some years
		}
		if !ok || !got.Equal(want) {
			t.Fatalf("%q after %s: %s, want %s", text, after, got, want)
		}
	})
}

// TestLaws holds what is true of each plan in each zone: the next time lies ahead, nothing due lies between, and what
// is written down is the same plan.
func TestLaws(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "Asia/Beirut"}
	rapid.Check(t, func(t *rapid.T) {
		after := someTime().Draw(t, "after")
		spec := schedule.Spec{Zone: rapid.SampledFrom(zones).Draw(t, "zone")}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			spec.Cron = expression(false).Draw(t, "cron")
		case 1:
			spec.Every = fmt.Sprintf("%dm", rapid.IntRange(1, 5000).Draw(t, "every"))
		default:
			from := rapid.IntRange(0, 23).Draw(t, "from")
			spec.Heartbeat, spec.Active = fmt.Sprintf("%dm", rapid.IntRange(1, 2000).Draw(t, "every")), fmt.Sprintf("%d-%d", from, (from+rapid.IntRange(1, 23).Draw(t, "hours"))%24)
		}
		p, err := spec.Parse(after, time.UTC)
		if err != nil {
			if strings.Contains(err.Error(), "would never run") {
				t.Skip()
			}
			t.Fatal(err)
		}
		next, ok := p.Next(after)
		if !ok || !next.After(after) || next.Nanosecond() != 0 {
			t.Fatalf("%+v after %s: %s, %t", spec, after, next, ok)
		}
		between := after.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(after))-1).Draw(t, "between")))
		if same, ok := p.Next(between); !ok || !same.Equal(next) {
			t.Fatalf("%+v: after %s comes %s, but after %s %s", spec, after, next, between, same)
		}
		if p.Beats() && !p.Active(next) {
			t.Fatalf("%+v: %s is not active", spec, next)
		}
		again, err := p.Spec().Parse(next, zone(t, "Asia/Kathmandu"))
		if err != nil {
			t.Fatal(err)
		}
		if same, _ := again.Next(after); again.Spec() != p.Spec() || !same.Equal(next) {
			t.Fatalf("%+v read again is %+v, %s, want %s", p.Spec(), again.Spec(), same, next)
		}
	})
}

// TestNamedTimesRunOncePerDay: an expression that names one time runs once for each day of the calendar that there
// is, whatever the clock does.
func TestNamedTimesRunOncePerDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "America/Santiago"}).Draw(t, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		z := zone(t, name)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, z).Add(-time.Second)
		p, err := schedule.Spec{Cron: fmt.Sprintf("%d %d * * *", minute, hour), Zone: name}.Parse(at, nil)
		if err != nil {
			t.Fatal(err)
		}
		for day := range 365 {
			at, _ = p.Next(at)
			if want := time.Date(2026, 1, 1+day, 12, 0, 0, 0, z).Format("2006-01-02"); at.Format("2006-01-02") != want {
				t.Fatalf("%02d:%02d in %s: run %d is at %s, want %s", hour, minute, name, day, at, want)
			}
		}
	})
}

// FuzzParse: whatever is read is bounded, and what is written down reads as the same; whatever is refused says so as
// our errors do.
func FuzzParse(f *testing.F) {
	f.Add("0 8 * * 1-5", 0)
	f.Add("2h", 1)
	f.Add("tomorrow 09:00", 2)
	f.Add("22:30-6", 3)
	f.Add("*/15,3-9/2 0-23 1,31 jan-dec fri-sun", 0)
	now := time.Date(2026, 11, 25, 13, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string, kind int) {
		spec := [...]schedule.Spec{{Cron: text}, {Every: text}, {At: text}, {Heartbeat: "30m", Active: text}, schedule.Words(text)}[uint(kind)%5]
		p, err := spec.Parse(now, zone(t, "Europe/Berlin"))
		if err != nil {
			if tidemark.Sentinel(err) == nil {
				t.Fatalf("%q: %v is of no kind", text, err)
			}
			return
		}
		again, err := p.Spec().Parse(now.Add(time.Hour), time.UTC)
		if err != nil || again.Spec() != p.Spec() {
			t.Fatalf("%q: %+v read again is %+v, %v", text, p.Spec(), again.Spec(), err)
		}
		a, ok := p.Next(now)
		if b, same := again.Next(now); ok != same || !a.Equal(b) {
			t.Fatalf("%q: next is %s, and read again %s", text, a, b)
		}
	})
}

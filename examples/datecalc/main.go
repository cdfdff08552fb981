// Command datecalc is a tool for Tidemark: it does with calendar dates what models get wrong. It reads one JSON
// object on standard input and writes one on standard output, so it runs on a terminal too. It imports nothing of
// Tidemark's: begin here to write a module of your own.
//
//	GOOS=wasip1 GOARCH=wasm go build -o datecalc.wasm ./examples/datecalc
//	tidemark tool add datecalc.wasm --manifest examples/datecalc/tool.json
//	tidemark tool test datecalc '{"from":"2024-02-29","to":"2026-11-25"}'
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	// What every call needs is done once before the input is read: an instance is started in advance and waits
	// there, so that a call does not pay for it.
	if err := run(strings.NewReader(`{"from":"2000-01-31","add":{"months":1,"workdays":1}}`), io.Discard); err != nil {
		fail(err)
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fail(err)
	}
}

// run answers one question. The clock is read behind the input: what was read while nobody asked would be late.
func run(r io.Reader, w io.Writer) error {
	in, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var q question
	if err := json.Unmarshal(in, &q); err != nil {
		return fmt.Errorf("read the input: %w", err)
	}
	a, err := q.answer(time.Now().UTC())
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(a)
}

// fail says on standard error what is wrong, in words that help the model to ask again.
func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// question is the input. From is where it begins; it ends at To, or after Add.
type question struct {
	From string `json:"from"`
	To   string `json:"to"`
	Add  step   `json:"add"`
}

// step is a way through the calendar. Years and months come first, and end at the last day of a month that is
// shorter; then weeks and days; then workdays.
type step struct {
	Years    int `json:"years"`
	Months   int `json:"months"`
	Weeks    int `json:"weeks"`
	Days     int `json:"days"`
	Workdays int `json:"workdays"`
}

// answer is the output.
type answer struct {
	From     day    `json:"from"`
	To       day    `json:"to"`
	Days     int    `json:"days"`
	Workdays int    `json:"workdays"`
	Calendar string `json:"calendar"`
}

// day is a date with what people ask of it.
type day struct {
	Date    string `json:"date"`
	Weekday string `json:"weekday"`
	Week    string `json:"iso_week"`
	OfYear  int    `json:"day_of_year"`
}

// most bounds every step, and the distance of two dates.
const most = 400_000

func (q question) answer(now time.Time) (answer, error) {
	from, err := date("from", q.From, now)
	if err != nil {
		return answer{}, err
	}
	var to time.Time
	if q.To != "" {
		if q.Add != (step{}) {
			return answer{}, fmt.Errorf("give \"to\" or \"add\", not both")
		}
		if to, err = date("to", q.To, now); err != nil {
			return answer{}, err
		}
	} else if to, err = q.Add.after(from); err != nil {
		return answer{}, err
	}
	days := distance(from, to)
	if days > most || days < -most {
		return answer{}, fmt.Errorf("%d days lie between, at most %d", days, most)
	}
	return answer{From: describe(from), To: describe(to), Days: days, Workdays: workdays(from, days), Calendar: calendar(from, to)}, nil
}

// distance is in days. A time.Duration ends after 292 years.
func distance(from, to time.Time) int {
	const day = 24 * 60 * 60
	return int((to.Unix() - from.Unix()) / day)
}

func date(member, s string, now time.Time) (time.Time, error) {
	if s == "today" || s == "" && member == "from" {
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC), nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return t, fmt.Errorf("%q: %q is no date; want YYYY-MM-DD, or today", member, s)
	}
	return t, nil
}

// after takes the step.
func (s step) after(t time.Time) (time.Time, error) {
	for _, n := range []int{s.Years, s.Months, s.Weeks, s.Days, s.Workdays} {
		if n > most || n < -most {
			return t, fmt.Errorf("\"add\": %d is too far, at most %d", n, most)
		}
	}
	t = months(t, 12*s.Years+s.Months).AddDate(0, 0, 7*s.Weeks+s.Days)
	way, left := 1, s.Workdays
	if left < 0 {
		way, left = -1, -left
	}
	for left > 0 {
		if t = t.AddDate(0, 0, way); works(t) {
			left--
		}
	}
	return t, nil
}

// months goes some months on, to the same day or the last one that the month has.
func months(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

func works(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }

// workdays counts the days from Monday to Friday behind from, up to the last one; backwards they are negative.
func workdays(from time.Time, days int) int {
	n, way := 0, 1
	if days < 0 {
		way = -1
	}
	for i := way; i != days+way; i += way {
		if works(from.AddDate(0, 0, i)) {
			n += way
		}
	}
	return n
}

// calendar is a distance as people say it.
func calendar(from, to time.Time) string {
	before := ""
	if to.Before(from) {
		from, to, before = to, from, " before"
	}
	n := 12*(to.Year()-from.Year()) + int(to.Month()-from.Month())
	if months(from, n).After(to) {
		n--
	}
	days := distance(months(from, n), to)
	return fmt.Sprintf("%d years, %d months, %d days%s", n/12, n%12, days, before)
}

func describe(t time.Time) day {
	year, week := t.ISOWeek()
	return day{Date: t.Format(time.DateOnly), Weekday: t.Weekday().String(), Week: fmt.Sprintf("%d-W%02d", year, week), OfYear: t.YearDay()}
}

package main

import (
	"testing"
	"time"
)

func TestAnswer(t *testing.T) {
	now := time.Date(2026, 11, 25, 23, 59, 0, 0, time.UTC)
	for _, row := range []struct {
		name     string
		q        question
		to       string
		weekday  string
		days     int
		workdays int
		calendar string
	}{
		{"over a leap day", question{From: "2024-02-29", To: "2026-11-25"}, "2026-11-25", "Wednesday", 1000, 714, "2 years, 8 months, 27 days"},
		{"to a shorter month", question{From: "2026-01-31", Add: step{Months: 1}}, "2026-02-28", "Saturday", 28, 20, "0 years, 1 months, 0 days"},
		{"workdays over a weekend", question{From: "2026-11-27", Add: step{Workdays: 2}}, "2026-12-01", "Tuesday", 4, 2, "0 years, 0 months, 4 days"},
		{"back", question{From: "today", Add: step{Days: -25}}, "2026-10-31", "Saturday", -25, -17, "0 years, 0 months, 25 days before"},
		{"nothing", question{}, "2026-11-25", "Wednesday", 0, 0, "0 years, 0 months, 0 days"},
		{"a year from a leap day", question{From: "2024-02-29", Add: step{Years: 1}}, "2025-02-28", "Friday", 365, 261, "1 years, 0 months, 0 days"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, err := row.q.answer(now)
			if err != nil {
				t.Fatal(err)
			}
			if a.To.Date != row.to || a.To.Weekday != row.weekday || a.Days != row.days || a.Workdays != row.workdays || a.Calendar != row.calendar {
				t.Errorf("%+v, want %+v", a, row)
			}
		})
	}
	for _, q := range []question{{From: "2026-02-30"}, {From: "today", To: "2026-1-1"}, {To: "today", Add: step{Days: 1}}, {Add: step{Days: most + 1}}, {From: "0001-01-01", To: "9999-01-01"}} {
		if a, err := q.answer(now); err == nil {
			t.Errorf("%+v is answered with %+v", q, a)
		}
	}
}

package worker

import (
	"strings"
	"testing"
)

// TestBetween: a comment fits between events of a stream and nowhere else, however the stream is cut.
func TestBetween(t *testing.T) {
	for _, row := range []struct {
		name, passed string
		events, want bool
	}{
		{"before the first", "", true, true},
		{"behind an event", "event: a\ndata: 1\n\n", true, true},
		{"behind an event, with the other ends of lines", "data: 1\r\n\r\n", true, true},
		{"in a line", "data: 1", true, false},
		{"behind a line", "event: a\ndata: 1\n", true, false},
		{"behind a line, with the other end", "data: 1\r\n", true, false},
		{"within an end", "data: 1\r\n\r", true, false},
		{"what is no stream of events", "a\n\n", false, false},
	} {
		for size := 1; size <= max(1, len(row.passed)); size++ {
			b := between{events: row.events}
			for rest := row.passed; rest != ""; rest = rest[min(size, len(rest)):] {
				b.pass([]byte(rest[:min(size, len(rest))]))
			}
			if b.open() != row.want {
				t.Errorf("%s, in pieces of %d: %t", row.name, size, b.open())
			}
		}
	}
	chunked := ""
	for p, err := range chunks(strings.NewReader(strings.Repeat("abc", 40_000))) {
		if chunked += string(p); err != nil {
			t.Error(err)
		}
	}
	if len(chunked) != 120_000 || strings.Trim(chunked, "abc") != "" {
		t.Errorf("%d bytes", len(chunked))
	}
}

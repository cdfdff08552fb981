package lineage

import (
	"testing"
	"time"
)

// TestMainTrack: of the histories of a client the longest stands for all, of equals the newest, of those the last.
func TestMainTrack(t *testing.T) {
	at := func(messages int, sec int64) Track { return Track{Messages: messages, Active: time.Unix(sec, 0)} }
	for name, c := range map[string]struct {
		list []Track
		want int
	}{
		"none": {nil, -1}, "one": {[]Track{at(0, 1)}, 0}, "the longest": {[]Track{at(3, 1), at(5, 1), at(4, 9)}, 1}, "the first is": {[]Track{at(5, 1), at(3, 9)}, 0},
		"the newer of equals": {[]Track{at(3, 5), at(3, 4)}, 0}, "the newer, behind": {[]Track{at(3, 4), at(3, 5)}, 1}, "as new": {[]Track{at(3, 4), at(3, 4)}, 1},
	} {
		if got := MainTrack(c.list); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

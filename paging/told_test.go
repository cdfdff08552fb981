package paging

import (
	"cmp"
	"strings"
	"testing"
)

// TestTold: options that a line tells are those that were written, and what no line tells stays as it was.
func TestTold(t *testing.T) {
	var scan Scanner
	read := func(fields string) (Session, error) {
		return scan.Session([]byte(`{"session":"s",` + fields + `"steps":[]}`))
	}
	for _, o := range []Options{{}, {Window: 9}, {Window: 200_000, Policy: "lru", Tau: 3, MinBytes: 12, Zones: Zones{1, 2, 3}}, {Tau: -1, MinBytes: -1}} {
		s, err := read(string(AppendSettings(nil, o)))
		if err != nil {
			t.Fatal(err)
		}
		var got Options
		s.Told.Fill(&got)
		a, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(got)
		if err != nil {
			t.Fatal(err)
		}
		if a.rule != b.rule || a.tau != b.tau || a.min != b.min || a.window != b.window || cmp.Or(a.zones, DefaultZones) != b.zones {
			t.Errorf("%+v is read as %+v", o, got)
		}
	}
	s, err := read(`"tau":null,"window":null,"zones":null,"policy":null,"whole":true,`)
	if err != nil || s.Told != (Told{}) || !s.Whole {
		t.Errorf("nothing is told as %+v, %v", s, err)
	}
	was := Options{Policy: "fifo", Tau: 7}
	if s.Told.Fill(&was); was != (Options{Policy: "fifo", Tau: 7}) {
		t.Errorf("it became %+v", was)
	}
	for fields, want := range map[string]string{
		`"window":-1,`: "window -1: want a number of tokens", `"tau":"x",`: "tau", `"minBytes":1.5,`: "minBytes 1.5: want a number of bytes",
		`"policy":"best",`: `policy "best": want one of`, `"zones":[1,2],`: "want three percents", `"zones":[3,2,1],`: "that ascend", `"zones":[0,0,0],`: "that ascend",
		`"zones":{},`: "want three percents", `"window":[,`: "",
	} {
		if _, err := read(fields); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

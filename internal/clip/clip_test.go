package clip

import "testing"

func TestTo(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{{"tide", 4, "tide"}, {"tides", 4, "tide…"}, {"aé", 2, "a…"}, {"aé", 3, "aé"}, {"é", 1, "…"}, {"é", 0, "…"}, {"", 0, ""}} {
		if got := To(c.s, c.limit); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func TestRunes(t *testing.T) {
	for _, c := range []struct{ s, want string }{{"tide", "tide"}, {"aé", "aé"}, {"a\xc3", "a"}, {"a\xe3\x83", "a"}, {"a\xf0\x9f\x98", "a"}, {"\xc3", "\xc3"}, {"a\x80", "a\x80"}, {"", ""}} {
		if got := Runes(c.s); got != c.want {
			t.Errorf("%q: %q, want %q", c.s, got, c.want)
		}
	}
}

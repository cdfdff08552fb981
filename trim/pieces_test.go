package trim

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestAppendText: what is put into a string stays in it, on one line.
func TestAppendText(t *testing.T) {
	for text, want := range map[string]string{"a\"b": `a\"b`, `a\b`: `a\\b`, "a\nb\tc\x1fd\x7fe": "a b c d e", "a\u0085\u2028\u2029b~\u0086": "a   b~\u0086", "\xff東\xe6": "?東?", "\ufffd": "\ufffd", " ": " "} {
		if got := string(appendText([]byte("x"), []byte(text))); got != "x"+want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestMediaType: a type is named with what may stand in a name, forty characters of it.
func TestMediaType(t *testing.T) {
	for c := range rune(256) {
		want := "a"
		if c < 0x80 && regexp.MustCompile(`[a-zA-Z0-9/+.-]`).MatchString(string(c)) {
			want += string(c)
		}
		if got := mediaType([]byte{'a', byte(c)}); got != want {
			t.Errorf("%q: %q", c, got)
		}
	}
	for raw, want := range map[string]string{"": "unknown type", "<>": "unknown type", strings.Repeat("a", 41): strings.Repeat("a", 40)} {
		if got := mediaType([]byte(raw)); got != want {
			t.Errorf("%q: %q", raw, got)
		}
	}
}

// TestNewUUID: the id of a line that is added is a UUID of version 8, and the same for the same.
func TestNewUUID(t *testing.T) {
	form, seen := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), map[string]bool{}
	for i := range 100 {
		id := newUUID([]byte(fmt.Sprint(i)), []byte("p"))
		if seen[id] || !form.MatchString(id) || id != newUUID([]byte(fmt.Sprint(i)), []byte("p")) || id == newUUID([]byte(fmt.Sprint(i)), []byte("q")) {
			t.Errorf("%d: %s", i, id)
		}
		seen[id] = true
	}
}

// TestChangedPlaces: where a log was changed is told by its lines.
func TestChangedPlaces(t *testing.T) {
	for _, c := range []struct {
		first, last int64
		want, not   string
	}{{2, 2, "in line 2", "between"}, {2, 3, "between line 2 and line 3", "in line"}, {1, 1, "in line 1, or it is the log of another trim", "between"}, {3, 2, "in line 3", "between"}} {
		if got := fmt.Sprint(changed(c.first, c.last, 0, 9)); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%d to %d: %s", c.first, c.last, got)
		}
	}
}

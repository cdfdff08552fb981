package approvals

import (
	"reflect"
	"strings"
	"testing"
)

func x(n int) string { return strings.Repeat("x", n) }

// TestShownWithin: arguments are shown whole where there is room, and else with each value as long as there is room for all of
// them; what cannot be shown says how much it is.
func TestShownWithin(t *testing.T) {
	one := `{"a":"` + x(100) + `"}` // 108 bytes
	three := `["` + x(100) + `","` + x(100) + `","` + x(100) + `"]`
	cut := func(n int) string { return `"` + x(n) + `… (100 bytes)"` }
	for _, tc := range []struct {
		name string
		raw  string
		most int
		want string
	}{
		{"with room for all", one, 108, one},
		{"with a byte less", one, 107, `{"a":` + cut(53) + `}`},
		{"with room for just that", one, 46, `{"a":` + cut(23) + `}`},
		{"with a byte less than that", one, 44, `{"a":"` + x(16) + `… (108 bytes in all: more than can be shown)`},
		{"with the shortest values", three, 128, `[` + cut(16) + `,` + cut(16) + `,` + cut(16) + `]`},
		{"with no room for these", three, 100, three[:50] + `… (310 bytes in all: more than can be shown)`},
		{"no JSON", x(50), 40, x(20) + `… (50 bytes in all: more than can be shown)`},
		{"cut in a letter", "x" + strings.Repeat("é", 30), 40, "x" + strings.Repeat("é", 9) + `… (61 bytes in all: more than can be shown)`},
		{"nothing", ``, 40, ``},
		{"as deep as may be", `[[[[[[["` + x(300) + `"]]]]]]]`, 200, `[[[[[[["` + x(100) + `… (300 bytes)"]]]]]]]`},
	} {
		if got := shownInput([]byte(tc.raw), tc.most); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestVisible: what is not seen, or turns a line around, is written as its number.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{"plain é 日 😀\n": "plain é 日 😀\n", "a\u200bb": `a\u200bb`, "\u202etxt": `\u202etxt`, "a\ue000": `a\ue000`, "\U000e0041": `\ue0041`, "": ""} {
		if got := visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestShorter: of a value long texts, lists and depths are cut, each with a word of how much there is.
func TestShorter(t *testing.T) {
	list := func(n int) (out []any) {
		for range n {
			out = append(out, true)
		}
		return out
	}
	deep := func(n int, in any, wrap func(any) any) any {
		for range n {
			in = wrap(in)
		}
		return in
	}
	inList := func(v any) any { return []any{v} }
	inObject := func(v any) any { return map[string]any{"k": v} }
	for _, tc := range []struct {
		name    string
		v, want any
	}{
		{"a text as long as may be", x(10), x(10)},
		{"a longer one", x(11), x(10) + "… (11 bytes)"},
		{"one of letters", strings.Repeat("é", 8), strings.Repeat("é", 5) + "… (16 bytes)"},
		{"cut in a letter", "x" + strings.Repeat("é", 8), "x" + strings.Repeat("é", 4) + "… (17 bytes)"},
		{"one that was shortened before", x(12) + "… (5000 bytes)", x(10) + "… (5000 bytes)"},
		{"one that was to less", x(3) + "… (5000 bytes)", x(3) + "… (5000 bytes)"},
		{"one that was to nothing", "… (5000 bytes)", "… (5000 bytes)"},
		{"one that only looks so", x(12) + "… (5000 bytes) y", x(10) + "… (30 bytes)"},
		{"a list as long as may be", list(20), list(20)},
		{"a longer one", list(23), append(list(20), "… (23 elements)")},
		{"lists as deep as may be", deep(7, x(1), inList), deep(7, x(1), inList)},
		{"deeper ones", deep(9, x(1), inList), deep(7, "… (1 elements)", inList)},
		{"objects as deep as may be", deep(7, x(1), inObject), deep(7, x(1), inObject)},
		{"deeper ones", deep(9, x(1), inObject), deep(7, "… (1 members)", inObject)},
		{"in an object", map[string]any{"a": x(11), "b": 5.0}, map[string]any{"a": x(10) + "… (11 bytes)", "b": 5.0}},
		{"an empty list", []any{}, []any{}},
		{"nothing", nil, nil},
	} {
		if got := shorter(tc.v, 10, 0); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

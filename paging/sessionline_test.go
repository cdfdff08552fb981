package paging

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestSessionErrors: what is wrong with a line is said, and where.
func TestSessionErrors(t *testing.T) {
	const m = `{"role":"user","content":"x"}`
	step := func(s string) string { return `{"session":"s","steps":[` + s + `]}` }
	names := func(n, long int) string {
		return `["` + strings.Repeat("a", long) + `"` + strings.Repeat(`,"a"`, n-1) + `]`
	}
	for line, want := range map[string]string{
		`[]`:                                "byte 0: want an object with session and steps",
		``:                                  "byte 0: want an object with session and steps",
		`{"steps":[]}`:                      `byte 12: "session": want a string that names the session`,
		`{"session":7,"steps":[]}`:          `"session": want a string`,
		`{"session":"s"}`:                   `byte 15: "steps": want a list of steps, {"append":[messages]} each`,
		`{"session":"s","steps":{}}`:        `"steps": want a list`,
		`{"session":"s","steps":[]} 7`:      "byte 27: more than one value on the line: give one session a line",
		`{"session":"s","steps":[]`:         "byte 25: want a comma or the end",
		`{"session":"s","fixed":-1}`:        "fixed -1: want a number of bytes, from 0",
		`{"session":"s","fixed":1.5}`:       "fixed 1.5: want a number of bytes",
		`{"session":"s","tau":-1}`:          "tau -1: want a number of messages",
		`{"session":"s","zones":[1,2,3,4]}`: "zones [1,2,3,4]: want three percents of the window",
		`{"session":"s","zones":[1,2,101]}`: "zones [1,2,101]: want three percents of the window that ascend, from 1 to 100",
		`{"session":"s","system":"a`:        "string without an end",
		`{"session":"s","policy":7,`:        `policy "": want one of`,
		step(`7`):                           "steps[0]: byte 24: want an object with append",
		step(`{"append":[]},{}`):            `steps[1]: byte 40: "append" is missing: want a list of messages, [] for none`,
		step(`{"append":7}`):                "append: want a list of messages",
		step(`{"append":[` + m + `,7]}`):    "steps[0]: append[1]: byte 65: a message is an object",
		step(`{"append":[],"keep":-1}`):     "keep -1: want a whole number of messages, from 0",
		step(`{"append":[],"keep":0.5}`):    "keep 0.5: want a whole number",
		step(`{"append":[],"keep":"1"}`):    `keep "1": want a whole number`,
		step(`{"append":[` + m + `]},{"append":[],"keep":2}`):       "steps[1]: byte 89: keep 2: the history has 1 messages: want 0 to 1",
		step(`{"append":[],"usage":7}`):                             "usage: want an object with input_tokens",
		step(`{"append":[],"release":[7]}`):                         "release: want a list of strings",
		step(`{"append":[],"release":7}`):                           "release: want a list of strings",
		step(`{"append":[],"release":` + names(maxAsks+1, 1) + `}`): "release: more than 4096",
		step(`{"append":[],"anchor":` + names(1, maxPath+1) + `}`):  "anchor: a name of 4097 bytes: want at most 4096",
		step(`{"append":[` + m + `],"ids":["a","b"]}`):              "ids: 2 for 1 messages of append: want one for each",
		step(`{"append":[` + m + `],"ids":"a"}`):                    "ids: want a list of strings",
	} {
		s := Scanner{Tools: DefaultTools()}
		if _, err := s.Session([]byte(line)); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.120s: %v, want %q", line, err, want)
		}
	}
}

// TestSessionRead: what a line says, at the bounds of what it may say.
func TestSessionRead(t *testing.T) {
	const m, n = `{"role":"user","content":"abc"}`, `{"role":"user","content":"see a.go"}`
	read := func(line string) Session {
		t.Helper()
		s := Scanner{Tools: DefaultTools()}
		out, err := s.Session([]byte(line))
		if err != nil {
			t.Fatalf("%.100s: %v", line, err)
		}
		return out
	}
	s := read(` {"tools":[ {"a": 1} ], "session":"\u0061b","system":"x","fixed":100,"whole":true,"steps":[]} `)
	if s.ID != "ab" || s.Fixed != 9+3+100 || !s.Whole || len(s.Steps) != 0 {
		t.Errorf("%+v", s)
	}
	if s := read(`{"session":"","system":null,"tools":null,"whole":false,"model":{"a":[1]},"steps":[{"append":[]}]}`); s.ID != "" || s.Fixed != 0 || s.Whole || len(s.Steps) != 1 {
		t.Errorf("%+v", s)
	}
	ask, long := `["`+strings.Repeat("a", maxPath)+`"`+strings.Repeat(`,"b"`, maxAsks-1)+`]`, strings.Repeat("h", maxHandle)
	s = read(`{"session":"s","steps":[{"append":[` + m + `],"append":[` + m + `,` + n + `],"ids":["` + long + `",""]},{"keep":2,"append":[],"release":` + ask + `,"anchor":` + ask + `},` +
		`{"keep":null,"append":[],"usage":null,"ids":[],"stay":true,"x":{}},{"keep":0,"append":[],"usage":{"input_tokens":7,"output_tokens":8}}]}`)
	if a := s.Steps[0].Append; len(a) != 2 || a[0].Handle != long || a[1].Handle != "" || !slices.Equal(a[1].Names, []string{"a.go"}) || s.Steps[0].Cut {
		t.Errorf("of two lists the last counts: %+v", a)
	}
	if st := s.Steps[1]; !st.Cut || st.Keep != 2 || st.Stay || len(st.Release) != maxAsks || len(st.Anchor) != maxAsks || len(st.Release[0]) != maxPath {
		t.Errorf("keep %d, %d and %d names", st.Keep, len(st.Release), len(st.Anchor))
	}
	if st := s.Steps[2]; st.Cut || st.Keep != 0 || st.Usage != nil || !st.Stay || st.Release != nil {
		t.Errorf("%+v", st)
	}
	if st := s.Steps[3]; !st.Cut || st.Usage == nil || *st.Usage != (tidemark.Usage{Input: 7, Output: 8}) {
		t.Errorf("%+v", st)
	}
}

// TestSessionShared: of a message that stands in the place of another one it is told how many first bytes they share, as compact JSON.
func TestSessionShared(t *testing.T) {
	m := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	const head = len(`{"role":"user","content":"`)
	for _, row := range []struct {
		name, steps string
		want        []int
	}{
		{"another text", `{"append":[` + m("abc") + `]},{"keep":0,"append":[` + m("abd") + `]}`, []int{0, head + 2}},
		{"white space does not count", `{"append":[ { "role" : "user", "content":"abc"} ]},{"keep":0,"append":[` + m("abd") + `]}`, []int{0, head + 2}},
		{"the same", `{"append":[` + m("abc") + `]},{"keep":0,"append":[` + m("abc") + `]}`, []int{0, len(m("abc"))}},
		{"its beginning", `{"append":[` + m("abc") + `]},{"keep":0,"append":[` + m("abcd") + `]}`, []int{0, head + 3}},
		{"the first of several", `{"append":[` + m("a") + `,` + m("b") + `,` + m("bc") + `]},{"keep":1,"append":[` + m("bd") + `,` + m("x") + `]}`, []int{0, head + 1}},
		{"in what a cut left", `{"append":[` + m("a") + `,` + m("bbb") + `]},{"keep":1,"append":[` + m("bcd") + `]},{"keep":1,"append":[` + m("bcx") + `]}`, []int{0, head + 1, head + 2}},
		{"none behind all", `{"append":[` + m("a") + `]},{"keep":1,"append":[` + m("a") + `]}`, []int{0, 0}},
		{"none without a cut", `{"append":[` + m("a") + `]},{"append":[` + m("a") + `]}`, []int{0, 0}},
		{"none of nothing", `{"append":[` + m("a") + `]},{"keep":0,"append":[]}`, []int{0, 0}},
	} {
		s := Scanner{Tools: DefaultTools()}
		session, err := s.Session([]byte(`{"session":"s","steps":[` + row.steps + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, st := range session.Steps {
			got = append(got, st.Shared)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// TestAppendSettings: options are told with their defaults in their places.
func TestAppendSettings(t *testing.T) {
	for _, row := range []struct {
		o    Options
		want string
	}{
		{Options{}, `"window":0,"policy":"cost","tau":4,"minBytes":500,"zones":[30,50,60],`},
		{Options{Window: 9, Policy: "lru", Tau: 1, MinBytes: 2, Zones: Zones{3, 4, 5}}, `"window":9,"policy":"lru","tau":1,"minBytes":2,"zones":[3,4,5],`},
		{Options{Tau: -1, MinBytes: -7}, `"window":0,"policy":"cost","tau":0,"minBytes":0,"zones":[30,50,60],`},
	} {
		if got := string(AppendSettings([]byte("{"), row.o)); got != "{"+row.want {
			t.Errorf("%+v: %s", row.o, got)
		}
	}
}

// TestReadToolsErrors: what is wrong with a row is said by its name and field, and what is cut off by its place.
func TestReadToolsErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":{"kind":"reads"`:                    "byte 20: want a comma or the end",
		`{"a":{"kind":"reads"}`:                   "byte 21: want a comma or the end",
		`{"a":{"kind":`:                           "byte 13: the value is cut off",
		`{"a":tru`:                                "byte 8: want true",
		`{"a":{"kind":"reads"},"b":7}`:            `tool "b": want an object with kind`,
		`{"a":{"kind":7}}`:                        `tool "a": kind is 7: want reads, changes or looks`,
		`{"a":{"kind":null}}`:                     `tool "a": kind is null: want reads, changes or looks`,
		`{"a":{"kind":"reads","path":[1]}}`:       `tool "a": path is [1]: want a list of names of fields of the input`,
		`{"a":{"kind":"reads","verb":7}}`:         `tool "a": verb is 7: want the name of a field of the input`,
		`{"a":{"kind":"reads","views":"show"}}`:   `tool "a": views is "show": want a list of words, those of verb that only read`,
		`{"a":{"kind":"reads","patch":["x"]}}`:    `tool "a": patch is ["x"]: want the name of a field of the input`,
		`{"a":{"path":["x"]}}`:                    `tool "a": kind is missing: want reads, changes or looks`,
		`{"-_":{"kind":"reads"}}`:                 `tool "-_": want a name with a letter`,
		`{"a":{"kind":"reads"},"A":{"kind":"x"}}`: `tool "A": kind is "x"`,
	} {
		if rows, err := ReadTools([]byte(in)); !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", in, rows, err, want)
		}
	}
	rows, err := ReadTools([]byte(`{"A_b":{"kind":"changes","path":["x","y"],"verb":"do","views":["show"],"patch":"p"},"c":{"kind":"reads"}}`))
	if err != nil || len(rows) != 2 || rows["c"].Kind != Reads {
		t.Fatalf("%+v, %v", rows, err)
	}
	if r := rows["A_b"]; r.Kind != Changes || !slices.Equal(r.Path, []string{"x", "y"}) || r.Verb != "do" || !slices.Equal(r.Views, []string{"show"}) || r.Patch != "p" {
		t.Errorf("%+v", r)
	}
}

package json

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// standard is what encoding/json makes of a string.
func standard(tb testing.TB, s string) string {
	tb.Helper()
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestAppendString(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", `""`},
		{"plain", "tide", `"tide"`},
		{"quote and backslash", `a"b\c`, `"a\"b\\c"`},
		{"short escapes", "\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"control characters", "\x00\x1f\x7f", "\"\\u0000\\u001f\x7f\""},
		{"each place of eight", "\"123456\\1234567\n12345é7\x1f", `"\"123456\\1234567\n12345é7\u001f"`},
		{"no HTML escapes", "<a&b>", `"<a&b>"`},
		{"beyond ASCII", "größe 潮 🌊", `"größe 潮 🌊"`},
		{"invalid", "a\xffb\xc3", `"a\ufffdb\ufffd"`},
		{"half a surrogate", "\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`},
		{"the replacement character itself", "\ufffd", "\"\ufffd\""},
		{"line ends of JavaScript", "a\u2028b\u2029\u202a", "\"a\\u2028b\\u2029\u202a\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(AppendString([]byte("x"), tc.in)); got != "x"+tc.want {
				t.Errorf("got %s, want x%s", got, tc.want)
			}
			if std := standard(t, tc.in); std != tc.want {
				t.Errorf("encoding/json gives %s, the table wants %s", std, tc.want)
			}
		})
	}
}

// TestAppendStringRandom holds the appender against encoding/json on random bytes of a few kinds.
func TestAppendStringRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "low at six and", "tide ", "\"", "\\", "\n", "\x01", "\xff", "\xe2\x80", "\u2028", "\u2029", "é", "潮", "🌊", "\xf0\x9f", "<&>", "\x7f"}
	for range 20_000 {
		var s strings.Builder
		for range rng.IntN(20) {
			s.WriteString(pieces[rng.IntN(len(pieces))])
		}
		if got, want := string(AppendString(nil, s.String())), standard(t, s.String()); got != want {
			t.Fatalf("%q: got %s, want %s", s.String(), got, want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "tide", "a\"\\\n\x00", "\xff\u2028\ufffd", "\xed\xa0\x80🌊"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(AppendString(nil, s)), standard(t, s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	})
}

// BenchmarkAppendString compares the appender with an encoder a string, on prose and on a short name.
func BenchmarkAppendString(b *testing.B) {
	for _, tc := range []struct{ name, s string }{
		{"name", "tool_result"},
		{"prose", strings.Repeat("The tide is \"low\" at six.\n", 200)},
	} {
		run := func(how string, f func()) {
			b.Run(tc.name+"/"+how, func(b *testing.B) {
				b.SetBytes(int64(len(tc.s)))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		buf := make([]byte, 0, 2*len(tc.s))
		run("append", func() { buf = AppendString(buf[:0], tc.s) })
		run("encode", func() {
			raw, err := Marshal(tc.s)
			if err != nil {
				b.Fatal(err)
			}
			buf = append(buf[:0], raw...)
		})
	}
}

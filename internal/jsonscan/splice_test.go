package jsonscan

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestCursorAgrees: what a cursor takes for a value is what encoding/json takes for one, and it ends where that does, whether
// it is skipped or walked through.
func TestCursorAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	good := 0
	for range 60_000 {
		raw := []byte(tidemarktest.OddJSON(r))
		c, w := Over(raw), Over(raw)
		c.Skip()
		c.End()
		through(&w)
		w.End()
		valid := stdjson.Valid(raw)
		if (c.Err() == nil) != valid || (w.Err() == nil) != valid {
			t.Fatalf("%q: %v, %v", raw, c.Err(), w.Err())
		}
		if !valid {
			continue
		}
		good++
		var short bytes.Buffer
		if err := stdjson.Compact(&short, raw); err != nil || c.Compact() != short.Len() {
			t.Fatalf("%q: %d bytes, compact %d", raw, c.Compact(), short.Len())
		}
		law(t, raw, "k", []byte(`"new"`))
		law(t, raw, "a", nil)
	}
	if good < 5000 {
		t.Errorf("%d values are whole", good)
	}
}

func through(c *Cursor) {
	switch c.Peek() {
	case '{':
		c.Members("it", func([]byte) { through(c) })
	case '[':
		c.Elements("it", func(int) { through(c) })
	default:
		c.Skip()
	}
}

// TestEscapes: which bytes behind a backslash are an escape.
func TestEscapes(t *testing.T) {
	whole := func(inner string) bool {
		c := Over([]byte(`"` + inner + `"`))
		c.Skip()
		c.End()
		return c.Err() == nil
	}
	for b := range 256 {
		if c := byte(b); c != 'u' && whole(`\`+string([]byte{c})) != (strings.IndexByte(`\/bfnrt`, c) >= 0) && c != '"' {
			t.Errorf("%q", c)
		}
		for at := range 4 {
			hex := []byte(`\u09aF`)
			if hex[2+at] = byte(b); whole(string(hex)) != (strings.IndexByte("0123456789abcdefABCDEF", byte(b)) >= 0) {
				t.Errorf("%q", hex)
			}
		}
	}
}

// TestCursorDepth: a cursor refuses what is nested deeper than it was told.
func TestCursorDepth(t *testing.T) {
	for _, most := range []int{1, 63, 64, 65, 100} {
		for depth := most - 1; depth <= most+1; depth++ {
			for _, raw := range []string{strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth), strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)} {
				c := From([]byte(raw), 0, most)
				if c.Skip(); (c.Err() == nil) != (depth <= most) {
					t.Errorf("%d deep of %d: %v", depth, most, c.Err())
				}
			}
		}
	}
}

// law: nothing set is the very bytes; of what is set the member alone is different, all others are where they were with
// the bytes that they had; and what was put in and is taken out leaves the values that were there.
func law(t *testing.T, raw []byte, key string, value []byte) {
	t.Helper()
	if got := Set([]byte("x"), raw); string(got) != "x"+string(raw) {
		t.Fatalf("%q with nothing set is %q", raw, got)
	}
	got := Set(nil, raw, Field{key, value})
	before, after := pairs(raw), pairs(got)
	if before == nil {
		if !bytes.Equal(got, raw) {
			t.Fatalf("%q is no object, and came out as %q", raw, got)
		}
		return
	}
	if !stdjson.Valid(got) {
		t.Fatalf("%q with %s as %q is %q", raw, key, value, got)
	}
	var want [][2]string
	done := value == nil
	for _, p := range before {
		switch {
		case p[0] != key:
			want = append(want, p)
		case !done:
			want, done = append(want, [2]string{key, string(value)}), true
		}
	}
	if !done {
		want = append(want, [2]string{key, string(value)})
	}
	if len(want)+len(after) > 0 && !reflect.DeepEqual(after, want) {
		t.Fatalf("%q with %s as %q is %q", raw, key, value, got)
	}
	if first := Find(raw, key); value != nil && !bytes.Equal(Find(got, key), value) || first != nil && bytes.Count(raw, []byte(key)) == 1 &&
		!bytes.Equal(Set(nil, got, Field{key, first}), raw) && value != nil {
		t.Fatalf("%q with %s as %q, and back, is %q", raw, key, value, Set(nil, got, Field{key, first}))
	}
}

// pairs are the members of an object, nil for what is none.
func pairs(raw []byte) [][2]string {
	out := [][2]string{}
	if Members(raw, func(key, value []byte) { out = append(out, [2]string{string(key), string(value)}) }) != nil {
		return nil
	}
	return out
}

func TestSet(t *testing.T) {
	for _, c := range []struct{ name, obj, want string }{
		{"in its place", `{ "a" : 1 , "k" : 2, "b":3}`, `{ "a" : 1 , "k" : 9, "b":3}`},
		{"at the end", `{"a":1}`, `{"a":1,"k":9}`},
		{"alone", `{ }`, `{ "k":9}`},
		{"once", `{"k":1,"a":2,"k":3}`, `{"k":9,"a":2}`},
		{"taken out first", `{"gone":1, "a":2}`, `{ "a":2,"k":9}`},
		{"taken out last", `{"a":2, "gone":1}`, `{"a":2,"k":9}`},
		{"taken out in the middle", `{"a":2, "gone":1, "b":3}`, `{"a":2, "b":3,"k":9}`},
		{"all taken out", `{"gone":1, "gone":2}`, `{ "k":9}`},
		{"an escaped name", `{"g\u006fne":1}`, `{"k":9}`},
		{"no object", `[1]`, `[1]`},
		{"broken", `{"a":1,}`, `{"a":1,}`},
	} {
		if got := string(Set(nil, []byte(c.obj), Field{"k", []byte("9")}, Field{Key: "gone"})); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"a" : [ 1 , 2 ] , "k" : "d" }`))
	f.Add([]byte(`{"k":{"k":1},"b":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if stdjson.Valid(data) {
			law(t, data, "k", []byte("7"))
			law(t, data, "k", nil)
		}
	})
}

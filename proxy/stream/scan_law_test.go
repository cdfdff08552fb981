package stream

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestScanLaw: what is set and read of a value is what encoding/json finds there.
func TestScanLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	good := 0
	for range 60_000 {
		raw := tidemarktest.OddJSON(r)
		data := []byte(raw)
		if !json.Valid(data) {
			continue
		}
		good++
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			continue // a number beyond all bounds
		}
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{"k", "a", "none"} {
				for _, value := range []any{nil, "x\n", 5.0} {
					put, _ := json.Marshal(value)
					if value == nil {
						put = nil
					}
					want := map[string]any{}
					for k, w := range v {
						want[k] = w
					}
					if want[key] = value; value == nil {
						delete(want, key)
					}
					var got map[string]any
					if err := json.Unmarshal(set(data, key, put), &got); err != nil || !reflect.DeepEqual(got, want) {
						t.Fatalf("%q with %s as %q is %s", raw, key, put, set(data, key, put))
					}
				}
				var w any
				if at := valueOf(data, key); (at != nil) != (json.Unmarshal(at, &w) == nil) || at != nil && !reflect.DeepEqual(w, v[key]) {
					t.Fatalf("%s of %q is %q", key, raw, at)
				}
			}
		case string:
			if bare := bytes.TrimSpace(data); utf8.Valid(bare) && (text(bare) != v || !is(bare, v) || is(bare, v+"x") || !quoted(bare)) {
				t.Fatalf("%q says %q", raw, text(bare))
			}
		}
	}
	if good < 5000 {
		t.Errorf("%d values are whole", good)
	}
}

// TestDepth: what is nested deeper than is read is not taken for whole.
func TestDepth(t *testing.T) {
	for depth := maxDepth - 2; depth < maxDepth+4; depth++ {
		for _, pair := range []string{"[]", "{}"} {
			raw := "1"
			for range depth {
				if raw = "[" + raw + "]"; pair == "{}" {
					raw = `{"a":` + raw[1:len(raw)-1] + "}"
				}
			}
			c := over([]byte(raw), 0)
			if c.Skip(); (c.Err() == nil) != (depth <= maxDepth+1) {
				t.Errorf("%d deep in %s: %v", depth, pair, c.Err())
			}
		}
	}
}

// TestNumbers: small whole numbers are read, and nothing else is one.
func TestNumbers(t *testing.T) {
	for _, raw := range []string{"", "0", "9", "10", "123456", "999999", "1234567", "-1", "1.0", "1e1", "/", ":", "a", "1a"} {
		want, err := strconv.Atoi(raw)
		if got, ok := number([]byte(raw)); ok != (err == nil && len(raw) <= 6 && raw[0] != '-') || ok && got != want {
			t.Errorf("%q: %d, %t", raw, got, ok)
		}
	}
}

// TestUsageSums: figures of several answers are summed, whatever they are called, and those of a later event stand in place of
// earlier ones.
func TestUsageSums(t *testing.T) {
	for _, c := range []struct{ a, b, sum, over string }{
		{`{"n":1,"x":{"m":2}}`, `{"n":3,"x":{"m":4,"k":5}}`, `{"n":4,"x":{"m":6,"k":5}}`, `{"n":3,"x":{"m":4,"k":5}}`},
		{`{"n":1,"only":7}`, `{"n":3}`, `{"n":4,"only":7}`, `{"n":3,"only":7}`},
		{`{"n":1}`, `{"n":null,"m":2}`, `{"n":1,"m":2}`, `{"n":1,"m":2}`}, {`{"n":null}`, `{"n":2}`, `{"n":2}`, `{"n":2}`},
		{`{"c":0.5}`, `{"c":0.25}`, `{"c":0.75}`, `{"c":0.25}`}, {`{"c":1}`, `{"c":0.5}`, `{"c":1.5}`, `{"c":0.5}`}, {`{"c":1e308}`, `{"c":1e308}`, `{"c":1e308}`, `{"c":1e308}`},
		{`{"l":[1]}`, `{"l":[2]}`, `{"l":[1,2]}`, `{"l":[2]}`}, {`{"s":"a"}`, `{"s":"b"}`, `{"s":"b"}`, `{"s":"b"}`}, {`{"s":1}`, `{"s":"b"}`, `{"s":"b"}`, `{"s":"b"}`}, {`{"s":[1]}`, `{"s":{"a":1}}`, `{"s":{"a":1}}`, `{"s":{"a":1}}`},
		{``, `{"n":1}`, `{"n":1}`, `{"n":1}`}, {`{"n":1}`, ``, `{"n":1}`, `{"n":1}`}, {`null`, `{"n":1}`, `{"n":1}`, `{"n":1}`}, {`{"n":2305843009213693951}`, `{"n":1}`, `{"n":2305843009213693952}`, `{"n":1}`},
	} {
		for want, got := range map[string][]byte{c.sum: addUsage([]byte(c.a), []byte(c.b)), c.over: overUsage([]byte(c.a), []byte(c.b))} {
			var x, y any
			if json.Unmarshal(got, &x) != nil || json.Unmarshal([]byte(want), &y) != nil || !reflect.DeepEqual(x, y) {
				t.Errorf("%s and %s: %s, want %s", c.a, c.b, got, want)
			}
		}
	}
	for raw, want := range map[string]tidemark.Usage{
		`{"prompt_tokens":10,"completion_tokens":3}`:                                                   {Input: 10, Output: 3},
		`{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}`:       {Input: 6, CacheRead: 4, Output: 3},
		`{"prompt_tokens":10,"prompt_cache_hit_tokens":4}`:                                             {Input: 6, CacheRead: 4},
		`{"prompt_tokens":10,"prompt_cache_hit_tokens":4,"prompt_tokens_details":{"cached_tokens":5}}`: {Input: 5, CacheRead: 5},
		`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":11}}`:                            {CacheRead: 10},
		`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":-1}}`:                            {Input: 10},
		`{"completion_tokens":1}`: {Output: 1}, `{"prompt_tokens":1}`: {Input: 1},
		`{"prompt_tokens":0,"completion_tokens":0}`: {}, `{"prompt_tokens":-1,"completion_tokens":5}`: {}, `{"prompt_tokens":5,"completion_tokens":-1}`: {}, `{}`: {}, ``: {}, `[]`: {},
	} {
		if u, reported := provider.ChatUsage([]byte(raw)); u != want || reported != (want != tidemark.Usage{}) {
			t.Errorf("%s: %+v, %t", raw, u, reported)
		}
	}
}

package paging

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestPolicies has a row for what lru and cost do otherwise than fifo. tau is 1: two rounds of tools or a
// turn of the user for lru, a round for cost.
func TestPolicies(t *testing.T) {
	for _, row := range []struct{ name, policy, lines, want string }{
		{"a turn of the user", "lru", "begin; bash x; say", "2: gc t1"},
		{"two rounds", "lru", "begin; bash x; bash y; bash z", "3: gc t1"},
		{"a use of the file", "lru", "begin; read /a v; bash x; edit /a; say", "4: evict t1; 4: gc t2"},
		{"no use of the file", "lru", "begin; read /a v; edit /b; bash x", "3: evict t1"},
		{"the newest of equal errors stays", "lru", "begin; bash x fail; bash x fail; say; say", "2: gc t1"},
		{"what was changed", "cost", "begin; read /a v + edit /a", "1: evict t1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := run(t, Options{Policy: row.policy, Tau: 1}, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestMeasured: where the provider reads nothing from its cache, nothing is lost by a break.
func TestMeasured(t *testing.T) {
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := mark{out: 1000, same: 900, usage: &tidemark.Usage{Input: 1000}}
	_, whole := p.prices()
	p.measured(before)
	if _, lose := p.prices(); lose >= whole {
		t.Errorf("a break costs %v a byte, as before", lose)
	}
	before.usage = &tidemark.Usage{CacheRead: 900, CacheCreation: 100}
	for range 20 {
		p.measured(before)
	}
	if _, lose := p.prices(); lose < 0.99*whole {
		t.Errorf("a break costs %v a byte, want %v", lose, whole)
	}
}

func TestNamed(t *testing.T) {
	for _, row := range []struct {
		word, file string
		want       bool
	}{
		{"pager.go", "/src/pager.go", true}, {"./src/pager.go", "/src/pager.go", true}, {"/src/pager.go", "/src/pager.go", true},
		{"ger.go", "/src/pager.go", false}, {"/pager.go", "/src/pager.go", false}, {"pager.go", "pager.go", true},
	} {
		if got := named([]string{row.word}, row.file); got != row.want {
			t.Errorf("%s for %s: %v", row.word, row.file, got)
		}
	}
}

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
		{"one that was the newest goes when another comes", "lru", "begin; bash x fail; say; say; bash x fail; say", "4: gc t1"},
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

// TestHints has a row for what a turn may speak of without its path. tau is 1 with lru: a turn of the user. All
// results come with request 1, and the words with request 2, so what is not named goes then.
func TestHints(t *testing.T) {
	big := strings.Repeat("tide and moon ", 60)
	results := map[string][2]string{ // tool and input, and what is in the result
		"grep":   {`"name":"Grep","input":{"pattern":"func needed","path":"/src"}`, big},
		"test":   {`"name":"Bash","input":{"command":"cd /src && CGO_ENABLED=0 go test ./..."}`, big},
		"make":   {`"name":"Bash","input":{"command":"make check"}`, big + "error E4711 in req_01abC"},
		"make2":  {`"name":"Bash","input":{"command":"make lint"}`, big + "ENOENT"},
		"read":   {`"name":"Read","input":{"file_path":"/src/Makefile"}`, big},
		"reader": {`"name":"Read","input":{"file_path":"/src/reader.go"}`, big},
	}
	order := []string{"grep", "test", "make", "make2", "read", "reader"}
	for _, row := range []struct{ words, stays string }{
		{"go on", ""},
		{"what does the grep output say", "grep"},
		{"where is func needed called", "grep"},
		{"why did go test fail", "test"},
		{"once more after make", "make2"}, // the newest of that program
		{"and the bash output", "make2"},
		{"make check says no", "make make2"},
		{"what is E4711", "make"},
		{"see `req_01abC`, please", "make"},
		{"we got ENOENT.", "make2"},
		{"add it to the Makefile", "read"},
		{"the reader is slow", "reader"},
	} {
		var calls, answers []string
		for _, id := range order {
			calls = append(calls, `{"type":"tool_use","id":"`+id+`",`+results[id][0]+`}`)
			answers = append(answers, `{"type":"tool_result","tool_use_id":"`+id+`","content":"`+results[id][1]+`"}`)
		}
		line := `{"session":"s","steps":[{"append":[{"role":"user","content":"begin"}]},{"append":[{"role":"assistant","content":[` + strings.Join(calls, ",") +
			`]},{"role":"user","content":[` + strings.Join(answers, ",") + `]}]},{"append":[{"role":"assistant","content":"ok"},{"role":"user","content":"` + row.words + `"}]}]}`
		sc := Scanner{Tools: DefaultTools()}
		s, err := sc.Session([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := New(Options{Policy: "lru", Tau: 1})
		for _, st := range s.Steps {
			if _, err := p.Step(st); err != nil {
				t.Fatal(err)
			}
		}
		var stays []string
		for _, g := range p.pages {
			if !g.stub {
				stays = append(stays, g.ID)
			}
		}
		if got := strings.Join(stays, " "); got != row.stays {
			t.Errorf("%q keeps %q, want %q", row.words, got, row.stays)
		}
	}
}

// TestProgram: what a command runs.
func TestProgram(t *testing.T) {
	for command, want := range map[string]string{
		"": " ", "make": "make ", "go test ./...": "go test", "cd /a && sudo A=b /usr/bin/git -C x log": "git log", "cd /a": "cd /a",
		`grep -rn "needed" .`: "grep needed", "A=b": "a=b ", "&& ;": "; ",
	} {
		name, first := program(command)
		if got := name + " " + first; got != want {
			t.Errorf("%q runs %q, want %q", command, got, want)
		}
	}
}

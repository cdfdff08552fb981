package trim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// parsed is the parser behind one line.
func parsed(t *testing.T, line string) *parser {
	t.Helper()
	p := &parser{threshold: DefaultThreshold}
	if _, ok := p.parse(jsonscan.Line{Number: 1, Raw: []byte(line)}); !ok {
		t.Fatalf("not read: %s", line)
	}
	return p
}

// A member that goes takes one comma with it, wherever it stands.
func TestUsageGoes(t *testing.T) {
	for in, want := range map[string]string{
		`{"usage":1}`:                        `{}`,
		`{ "usage" : 1 }`:                    `{  }`,
		`{"usage":1,"a":2}`:                  `{"a":2}`,
		`{"a":2,"usage":1}`:                  `{"a":2}`,
		`{"a":2 , "usage":{"b":[1]} ,"c":3}`: `{"a":2 ,"c":3}`,
		`{"usage":1,"usage":2}`:              `{}`,
		`{"usage":1, "usage":2 , "a":3}`:     `{"a":3}`,
		`{"usage":1,"a":3,"usage":2}`:        `{"a":3}`,
		`{"a":3,"usage":1,"usage":2,"b":4}`:  `{"a":3,"b":4}`,
		`{"us\u0061ge":1}`:                   `{}`,
		`{"message":{"usage":1}}`:            `{"message":{}}`,
		`{"message":{"usage":1,"role":"user","usage":2,"content":"a"}}`:                       `{"message":{"role":"user","content":"a"}}`,
		`{"message":{"role":"user","content":[{"type":"text","text":"a"}],"usage":2,"id":1}}`: `{"message":{"role":"user","content":[{"type":"text","text":"a"}],"id":1}}`,
		`{"message":{"a":{"usage":1}},"b":{"usage":2},"c":"usage"}`:                           `{"message":{"a":{"usage":1}},"b":{"usage":2},"c":"usage"}`,
		`["usage",{"usage":1}]`: `["usage",{"usage":1}]`,
	} {
		if out, _ := laws(t, []byte(in+"\n"), Options{}); string(out) != want+"\n" {
			t.Errorf("%s: %s, want %s", in, out, want)
		}
	}
}

// A field that names a line names one that is there, or none; a title goes without only when it may.
func TestLinks(t *testing.T) {
	const parent, logical, source, leaf = `"parentUuid":`, `"logicalParentUuid":`, `"sourceToolAssistantUUID":`, `"leafUuid":`
	for in, want := range map[string]string{
		parent + `"q"`: `"q"`, parent + `"g"`: `"q"`, parent + `"g2"`: `"q"`, parent + `"nobody"`: `null`, parent + `"z"`: `"z"`, parent + `"c1"`: `null`, parent + `""`: `""`, parent + `null`: `null`,
		parent + `false`: `false`, parent + `true`: `null`, parent + `7`: `null`, parent + `{"a":1}`: `null`, parent + `[]`: `null`,
		logical + `"q"`: `"q"`, logical + `"g"`: `"q"`, logical + `"nobody"`: `null`, logical + `7`: `7`, logical + `""`: `""`,
		source + `"q"`: `"q"`, source + `"g"`: `"q"`, source + `"nobody"`: `null`, source + `7`: `7`,
		leaf + `"q"`: `"q"`, leaf + `"g"`: `"q"`, leaf + `"nobody"`: `"nobody"`, leaf + `7`: `7`,
	} {
		gone := func(uuid, parent string) string {
			return `{"type":"assistant","uuid":"` + uuid + `","parentUuid":"` + parent + `","message":{"role":"assistant","content":[` + thinking("x") + `]}}`
		}
		field, value, _ := strings.Cut(in, ":")
		log := named("q", "a") + "\n" + gone("g", "q") + "\n" + gone("g2", "g") + "\n" + gone("c1", "c2") + "\n" + gone("c2", "c1") + "\n" +
			strings.Replace(gone("", "q"), `"uuid":"",`, ``, 1) + "\n"
		out, _, m := trimmed(t, []byte(log+`{"uuid":"z",`+in+"}\n"), Options{})
		if line := named("q", "a") + "\n" + `{"uuid":"z",` + field + `:` + want + "}\n"; string(out) != line {
			t.Errorf("%s: %s, want %s", in, out, line)
		}
		if relinked := m.LinesRelinked == 1; relinked != (field+":" == parent && (want != value)) {
			t.Errorf("%s: relinked %d", in, m.LinesRelinked)
		}
	}
}

// The name of a line is taken over as it stands as long as it is no longer than names are.
func TestLinkToLongName(t *testing.T) {
	for n, want := range map[int]string{maxText - 2: `"` + long(maxText-2) + `"`, maxText - 1: "null"} {
		in := named(long(n), "a") + "\n" + `{"type":"assistant","uuid":"g","parentUuid":"` + long(n) + `","message":{"role":"assistant","content":[]}}` + "\n" + `{"uuid":"z","parentUuid":"g"}` + "\n"
		if out, _ := laws(t, []byte(in), Options{}); !strings.HasSuffix(string(out), "\n"+`{"uuid":"z","parentUuid":`+want+"}\n") {
			t.Errorf("%d: %.100s", n, out[max(0, len(out)-100):])
		}
	}
}

// Who speaks in a line, whether that is a message, and what it weighs.
func TestRoles(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"user"}`: "user message 0",
		`{"type":"human","message":{"content":"ab"}}`:                                                       "user message string 2",
		`{"type":"x","role":"assistant"}`:                                                                   "assistant message 0",
		`{"type":"assistant","role":"assistant","message":{"role":"user"}}`:                                 "user message 0",
		`{"type":"assistant","role":"user"}`:                                                                "user message 0",
		`{"type":"user","role":"assistant","message":{"role":""}}`:                                          "assistant message 0",
		`{"type":"user","role":"human","message":"text"}`:                                                   "user message 0",
		`{"type":"system","role":"user"}`:                                                                   "user 0",
		`{"type":"summary","role":"assistant","message":{"id":"m"}}`:                                        "assistant 0",
		`{"type":"progress","role":"user"}`:                                                                 "user 0",
		`{"type":"attachment","role":"user"}`:                                                               "user 0",
		`{"type":"oracle"}`:                                                                                 "nobody 0",
		`{"type":"user","message":{"role":"oracle"}}`:                                                       "nobody 0",
		`{"type":"user","content":"abc"}`:                                                                   "user message string 3",
		`{"type":"user","content":"abc","message":{"content":"a"}}`:                                         "user message string 1",
		`{"type":"user","content":"abc","message":{"content":null}}`:                                        "user message string 3",
		`{"type":"user","content":"abc","message":{"content":7}}`:                                           "user message 0",
		`{"type":"user","content":"abc","message":{"role":"user"}}`:                                         "user message string 3",
		`{"type":"user","content":"abc","message":[{"content":"a"}]}`:                                       "user message string 3",
		`{"type":"user","content":""}`:                                                                      "user message 0",
		`{"type":"user","content":"a\u00e9\ud83d\ude00"}`:                                                   "user message string 4",
		`{"type":"user","content":[{"type":"text","text":"abc"}]}`:                                          "user message 3",
		`{"type":"assistant","message":{"id":"m"}}`:                                                         "assistant message id 0",
		`{"type":"assistant","message":{"id":7}}`:                                                           "assistant message 0",
		`{"type":"user","message":{"id":"m"}}`:                                                              "user message 0",
		`{"type":"user","message":{"role":"assistant","id":"m","content":"abc"},"message":{"content":"a"}}`: "user message string 1",
		`{"type":"user","isSidechain":true}`:                                                                "user message side 0",
		`{"type":"user","isSidechain":true,"agentId":"g"}`:                                                  "user message side agent 0",
		`{"type":"user","isSidechain":true,"agentId":7}`:                                                    "user message side 0",
		`{"type":"user","isSidechain":false,"agentId":"g","isMeta":true}`:                                   "user message meta 0",
	} {
		p := parsed(t, line)
		got := "nobody"
		switch {
		case p.m.UserMessages == 1 && p.m.AssistantResponses == 0:
			got = "user"
		case p.m.AssistantResponses == 1 && p.m.UserMessages == 0:
			got = "assistant"
		}
		for _, f := range []struct {
			yes  bool
			name string
		}{{p.h.flags&isMessage != 0, "message"}, {p.h.flags&hasString != 0, "string"}, {p.h.id != 0, "id"}, {p.h.flags&isSide != 0, "side"}, {p.h.agent != 0, "agent"}, {p.h.flags&isMeta != 0, "meta"}} {
			if f.yes {
				got += " " + f.name
			}
		}
		if got += fmt.Sprint(" ", p.h.chars); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		if speaks := p.h.flags&isAssistant != 0; speaks != strings.HasPrefix(want, "assistant message") {
			t.Errorf("%s: a reply: %t", line, speaks)
		}
	}
}

// What other languages take for true.
func TestTruthy(t *testing.T) {
	for raw, want := range map[string]bool{
		`null`: false, `false`: false, `true`: true, `0`: false, `0.0`: false, `0.5`: true, `-1`: true, `1`: true, `12`: true,
		`""`: false, `"a"`: true, `"0"`: true, `[]`: false, `[0]`: true, `{}`: false, `{"a":1}`: true,
	} {
		if p := parsed(t, `{"type":"user","isMeta":`+raw+`}`); (p.h.flags&isMeta != 0) != want {
			t.Errorf("%s: %t", raw, !want)
		}
	}
	if p := parsed(t, `{"type":"user"}`); p.h.flags&(isMeta|isSide) != 0 {
		t.Error("what is not there is true")
	}
}

// The copies of a result count in a line that is not replaced as a whole, what progress carries only in one of progress.
func TestPartsThatCount(t *testing.T) {
	for f, want := range map[flags]string{
		0: "true false", isProgress: "true true", hasWhole: "false false", hasWhole | isProgress: "true false", isMessage: "true false",
	} {
		h := head{flags: f, list: partList + 5}
		if got := fmt.Sprint(h.counts(partCopy), " ", h.counts(partData)); got != want {
			t.Errorf("%b: %s, want %s", f, got, want)
		}
		if h.counts(partList+4) || !h.counts(partList+5) || h.counts(partList+6) {
			t.Errorf("%b: another list counts", f)
		}
	}
}

// A line about which nothing is to be decided takes no memory, and elements that stay take as much as one of them.
func TestFacts(t *testing.T) {
	for line, want := range map[string]int{
		`{"kind":9}`: -1, `7`: -1, `{"message":{"role":"system","content":"x"}}`: -1,
		`{"uuid":"a"}`: 0, `{"type":"user"}`: 0, `{"parentUuid":"a"}`: 0, `{"type":"queue-operation"}`: 0, `{"usage":1}`: 0,
		assistant(strings.Repeat(`{"type":"text","text":"a"},`, 50) + `7`):                               1,
		assistant(`{"type":"text","text":"a"},` + thinking("x") + `,7,` + bash("t") + `,{"type":"odd"}`): 3,
		assistant(thinking("x") + `,7,8`):                                                                2,
	} {
		p := parsed(t, line)
		f, ok := factOf(&p.h, p.ops)
		if got := len(f.items); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d items, %t", line, got, ok)
		}
	}
}

// What a note says of a call: the tool, and the first there is of what tells what it was about.
func TestLabels(t *testing.T) {
	rows := map[string]string{
		`"name":"Bash","input":{"command":"ls"}`:                             "Bash ls",
		`"name":"Bash","input":{"description":"d","command":"ls"}`:           "Bash ls",
		`"name":"Bash","input":{"command":"ls","description":"d"}`:           "Bash ls",
		`"name":"Read","input":{"file_path":"/a"}`:                           "Read /a",
		`"name":"Bash","input":{"file_path":"","command":"l"}`:               "Bash l",
		`"name":"Bash","input":{"file_path":7,"command":"ls"}`:               "Bash ls",
		`"name":"Bash","input":{"x":"y"}`:                                    "Bash",
		`"name":"Bash","input":{}`:                                           "Bash",
		`"name":"Bash"`:                                                      "Bash",
		`"input":{"command":"ls"}`:                                           "ls",
		`"name":7,"input":{"command":"ls"}`:                                  "ls",
		`"name":"Bash","input":{"command":"ls"},"input":{"x":1}`:             "Bash",
		`"name":"Bash","input":{"command":"ls"},"input":7`:                   "Bash",
		`"name":"Bash","input":{"comm\u0061nd":"l\ns"}`:                      "Bash l\ns",
		`"name":"` + long(maxTool) + `"`:                                     long(maxTool),
		`"name":"` + long(maxTool+1) + `"`:                                   long(maxTool) + "…",
		`"name":"` + long(maxText-1) + `","input":{"command":"ls"}`:          "ls",
		`"name":"` + long(maxText-2) + `","input":{"command":"ls"}`:          long(maxTool) + "… ls",
		`"name":"B","input":{"command":"` + long(maxLabel) + `"}`:            "B " + long(maxLabel),
		`"name":"B","input":{"command":"` + long(maxLabel+1) + `"}`:          "B " + long(maxLabel) + "…",
		`"name":"B","input":{"url":"` + strings.Repeat("é", maxLabel) + `"}`: "B " + strings.Repeat("é", maxLabel),
	}
	for i, key := range labelKeys {
		all := ""
		for _, k := range labelKeys[i:] {
			all = `,"` + k + `":"` + k + `"` + all
		}
		rows[`"name":"T","input":{`+all[1:]+`}`] = "T " + key
	}
	for in, want := range rows {
		p := parsed(t, assistant(`{"type":"tool_use","id":"t1",`+in+`}`))
		var got []string
		for _, o := range p.ops {
			if o.kind == opCall {
				got = append(got, string(o.label))
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a\xffb": "a?b", "\ufffd": "\ufffd", "abc": "abc", "abcd": "abc…", "東京都庁": "東京都…", "": ""} {
		if got := string(clip([]byte("x"), []byte(in), 3)); got != "x"+want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// A name is the same whether it is written with escapes or not, unless it is longer than names are.
func TestNames(t *testing.T) {
	id := func(s string) uint64 {
		r := source{data: []byte(s), base: 7}
		return r.id(span{7, 7 + int64(len(s))})
	}
	if id(`"ab"`) != id(`"a\u0062"`) || id(`"ab"`) != nameHash("ab") || id(`"ab"`) == id(`"ac"`) || id(`"a"`) == 0 {
		t.Error("names of two letters are taken for others")
	}
	if id(`""`) != 0 || nameHash("") != 0 {
		t.Error("an empty name is one")
	}
	plain := long(maxText - 8)
	if whole := id(`"` + plain + `\u0078"`); whole != nameHash(plain+"x") {
		t.Error("the longest name is another one when it is written with escapes")
	}
	if beyond := id(`"` + plain + `x\u0078"`); beyond == 0 || beyond == nameHash(plain+"xx") || beyond != id(`"`+plain+`x\u0078"`) {
		t.Error("a name beyond the bound is not told apart as it is written")
	}
}

// White space alone is a blank line, and a line may be a boundary when one of its words is in it, however written.
func TestBlankAndBoundary(t *testing.T) {
	for c := range 256 {
		b := byte(c)
		if want := b == ' ' || b == '\t' || b == '\r' || b == '\n'; blank([]byte{' ', b, '\t'}) != want {
			t.Errorf("%q: blank %t", b, !want)
		}
	}
	for line, want := range map[string]bool{`"compact_boundary"`: true, `"summary"`: true, `"\u0073ummary"`: true, `summary`: false, `"compact"`: false, "": false} {
		if mayEnd([]byte(line)) != want {
			t.Errorf("%s: %t", line, !want)
		}
	}
}

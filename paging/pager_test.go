package paging

import (
	"fmt"
	"strings"
	"testing"
)

// script makes a session of short words, a line for a request:
//
//	read /a 1-50 v1 [as id]   a call and its result, whose text is told by the word v1
//	edit /a | bash x          a change, a command
//	release t1,t2 | recall t1 the model lets results go, or has one back
//	release-path /a | fault /a the same by paths or handles
//	write /a v                a change whose input is large, and told by the word v
//	show png|pdf|url|note     the user gives an image, a document, one by its address, a document of text
//	fail                      behind one of them: the result is an error
//	say [words]               the user types
//	keep n [stay]             the history is cut first, what is out stays so
//	release=t1,/a anchor=t1   what a step asks for, in this order
//	a + b                     calls in one message; a result of "none" is left out
type script struct {
	b    strings.Builder
	next int
}

func (s *script) request(line string) {
	if s.b.Len() > 0 {
		s.b.WriteByte(',')
	}
	s.b.WriteByte('{')
	if rest, ok := strings.CutPrefix(line, "keep "); ok {
		n, more, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&s.b, `"keep":%s,`, n)
		line = more
	}
	if rest, ok := strings.CutPrefix(line, "stay "); ok {
		s.b.WriteString(`"stay":true,`)
		line = rest
	}
	for _, field := range []string{"release", "anchor"} {
		if rest, ok := strings.CutPrefix(line, field+"="); ok {
			names, more, _ := strings.Cut(rest, " ")
			fmt.Fprintf(&s.b, `"%s":["%s"],`, field, strings.ReplaceAll(names, ",", `","`))
			line = more
		}
	}
	s.b.WriteString(`"append":[`)
	switch line {
	case "":
	case "say":
		s.b.WriteString(`{"role":"assistant","content":"ok"},{"role":"user","content":"go on"}`)
	case "begin":
		s.b.WriteString(`{"role":"user","content":"begin"}`)
	default:
		if kind, ok := strings.CutPrefix(line, "show "); ok {
			fmt.Fprintf(&s.b, `{"role":"assistant","content":"ok"},{"role":"user","content":[{"type":"text","text":"look"},%s]}`, shown(kind))
			break
		}
		if words, ok := strings.CutPrefix(line, "say "); ok {
			fmt.Fprintf(&s.b, `{"role":"assistant","content":"ok"},{"role":"user","content":%q}`, words)
			break
		}
		var calls, results []string
		for _, part := range strings.Split(line, " + ") {
			c, r := s.call(part)
			calls = append(calls, c...)
			results = append(results, r...)
		}
		if len(calls) > 0 {
			fmt.Fprintf(&s.b, `{"role":"assistant","content":[%s]},`, strings.Join(calls, ","))
		}
		fmt.Fprintf(&s.b, `{"role":"user","content":[%s]}`, strings.Join(results, ","))
	}
	s.b.WriteString("]}")
}

func (s *script) call(part string) (calls, results []string) {
	line, id, named := strings.Cut(part, " as ")
	if !named {
		s.next++
		id = fmt.Sprint("t", s.next)
	}
	w := append(strings.Fields(line), "", "", "")
	name, input, text := "Bash", `{"command":"x"}`, w[1]
	switch w[0] {
	case "read":
		name, input, text = "Read", fmt.Sprintf(`{"file_path":%q}`, w[1]), w[2]
		var from, to int
		if n, _ := fmt.Sscanf(w[2], "%d-%d", &from, &to); n == 2 {
			input, text = fmt.Sprintf(`{"file_path":%q,"offset":%d,"limit":%d}`, w[1], from, to-from+1), w[3]
		}
	case "edit":
		name, input, text = "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, w[1]), "ok"
	}
	if w[0] == "release" {
		name, input = ReleaseTool, fmt.Sprintf(`{"handles":["%s"]}`, strings.ReplaceAll(w[1], ",", `","`))
	}
	if w[0] == "recall" {
		name, input = RecallTool, fmt.Sprintf(`{"entry":%q}`, w[1])
	}
	if w[0] == "release-path" {
		name, input = ReleaseTool, fmt.Sprintf(`{"paths":["%s"]}`, strings.ReplaceAll(w[1], ",", `","`))
	}
	if w[0] == "fault" {
		name, input = FaultTool, fmt.Sprintf(`{"paths":["%s"]}`, strings.ReplaceAll(w[1], ",", `","`))
	}
	if w[0] == "write" {
		name, input, text = "Write", fmt.Sprintf(`{"file_path":%q,"content":"%s"}`, w[1], strings.Repeat(w[2]+`\n`, 300)), "ok"
	}
	if w[0] != "orphan" {
		calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"%s","name":"%s","input":%s}`, id, name, input))
	}
	if strings.Contains(line, "none") {
		return calls, nil
	}
	content := `"` + strings.Repeat(text+" ", 300) + `"`
	if w[0] == "edit" || w[0] == "write" || strings.Contains(line, "short") {
		content = `"ok"`
	}
	if strings.Contains(line, "tiny") {
		content = `"` + strings.Repeat("tiny ", 40) + `"`
	}
	if strings.Contains(line, "list") {
		content = fmt.Sprintf(`[{"type":"text","text":%s},{"type":"text","text":"and"}]`, content)
	}
	failed := strings.Contains(line, "fail")
	return calls, []string{fmt.Sprintf(`{"type":"tool_result","tool_use_id":"%s","is_error":%t,"content":%s}`, id, failed, content)}
}

// shown is an image or a document that a user gives.
func shown(kind string) string {
	switch kind {
	case "pdf":
		return `{"source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("QUJD", 300) + `"},"type":"document","title":"t"}`
	case "url":
		return `{"type":"image","source":{"type":"url","url":"https://example.org/` + strings.Repeat("a", 600) + `.png"}}`
	case "note":
		return `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + strings.Repeat(`a\n`, 300) + `"}}`
	}
	return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("QUJD", 300) + `QQ=="}}`
}

// run replays a script at tau 2 and says what was decided, one request "n: word ids" after another.
func run(t *testing.T, o Options, lines []string) string {
	t.Helper()
	var s script
	for _, l := range lines {
		s.request(l)
	}
	sc := Scanner{Tools: DefaultTools()}
	session, err := sc.Session([]byte(`{"session":"s","steps":[` + s.b.String() + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for n, st := range session.Steps {
		d, err := p.Step(st)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Fault {
			out = append(out, fmt.Sprintf("%d: fault %s of %s", n, f.ID, f.Of.ID))
		}
		if d.Tau != 0 {
			out = append(out, fmt.Sprintf("%d: tau %d", n, d.Tau))
		}
		for _, l := range []struct {
			word  string
			pages []*Page
		}{{"unpin", d.Unpin}, {"pin", d.Pin}, {"evict", d.Evict}, {"gc", d.GC}, {"input", d.Input}, {"image", d.Image}} {
			for _, g := range l.pages {
				out = append(out, fmt.Sprintf("%d: %s %s", n, l.word, strings.Trim(string(appendName(nil, g)), `"`)))
			}
		}
	}
	return strings.Join(out, "; ")
}

// TestFifo has a row for each rule. tau is 2: what request n brought goes with request n+2.
func TestFifo(t *testing.T) {
	for _, row := range []struct {
		name  string
		lines string
		want  string
	}{
		{"age and size", "begin; bash x; read /a v; bash short; say; say", "3: gc t1; 4: evict t2"},
		{"errors stay", "begin; bash x fail; read /a v fail; say; say; say", ""},
		{"a list of texts", "begin; bash x list; say; say", "3: gc t1"},
		{"a result without a call", "begin; orphan x as zz; say; say", "3: gc zz"},
		{"a call without a result", "begin; read /a none + bash x; say; say", "3: gc t2"},
		{"a fault", "begin; read /a v; say; say; read /a v", "3: evict t1; 4: fault t2 of t1"},
		{"decided before the eviction", "begin; read /a v; say; read /a v", "3: evict t1"},
		{"another range", "begin; read /a 1-50 v; say; say; read /a 51-90 v", "3: evict t1"},
		{"the same range, written in another way", "begin; read /a 1-50 v; say; say; read /b/../a 0-49 v", "3: evict t1; 4: fault t2 of t1"},
		{"an unread file", "begin; read /a v; say; say; read /b v", "3: evict t1"},
		{"an edit is no fault", "begin; read /a v; say; say; edit /a", "3: evict t1"},
		{"a command again is no fault", "begin; bash x; say; say; bash x", "3: gc t1"},
		{"a full copy stands there", "begin; read /a v; read /a v; say; read /a v", "3: evict t1; 4: evict t2"},
		{"a wider range stands there", "begin; read /a 10-20 v; read /a 1-50 w; say; read /a 10-20 v", "3: evict t1; 4: evict t2"},
		{"the whole file stands there", "begin; read /a 10-20 v; read /a w; say; read /a 10-20 v", "3: evict t1; 4: evict t2"},
		{"a narrower range is no full copy", "begin; read /a 1-50 v; read /a 10-20 w; say; read /a 1-50 v", "3: evict t1; 4: fault t3 of t1; 4: evict t2"},
		{"a failed read is no full copy", "begin; read /a v; read /a x fail; say; read /a v", "3: evict t1; 4: fault t3 of t1"},
		{"a copy of before a change is none", "begin; read /a v; edit /a + read /a 1-9 x + read /a v; say; read /a v", "3: evict t1; 4: evict t3; 4: evict t4"},
		{"changed since", "begin; read /a 1-9 v; read /a v + edit /a; say; read /a 1-9 w", "3: evict t1; 4: fault t4 of t1; 4: evict t2"},
		{"two calls at once count once", "begin; read /a v; say; say; read /a v + read /a v; say; say", "3: evict t1; 4: fault t2 of t1; 6: pin t2"},
		{"two pages at once", "begin; read /a v + read /b v; say; say; read /a v + read /b v", "3: evict t1; 3: evict t2; 4: fault t3 of t1; 4: fault t4 of t2"},
		{"a fault pins", "begin; read /a v; say; say; read /a v; say; say; say", "3: evict t1; 4: fault t2 of t1; 6: pin t2"},
		{"changed when read again: no pin", "begin; read /a v; say; say; read /a w; say; say", "3: evict t1; 4: fault t2 of t1; 6: evict t2"},
		{"changed before it is of age: no pin", "begin; read /a v; say; say; read /a v; read /a w; say; say", "3: evict t1; 4: fault t2 of t1; 6: evict t2; 7: evict t3"},
		{"an edit unpins", "begin; read /a v; say; say; read /a v; say; say; edit /a", "3: evict t1; 4: fault t2 of t1; 6: pin t2; 7: unpin t2; 7: evict t2"},
		{"a failed edit does not", "begin; read /a v; say; say; read /a v; say; say; edit /a fail", "3: evict t1; 4: fault t2 of t1; 6: pin t2"},
		{"another content unpins", "begin; read /a v; say; say; read /a v; say; say; read /a w", "3: evict t1; 4: fault t2 of t1; 6: pin t2; 7: unpin t2; 7: evict t2"},
		{"copies of what is pinned stay too", "begin; read /a v; say; say; read /a v; say; read /a v; say; say; say", "3: evict t1; 4: fault t2 of t1; 6: pin t2"},
		{"equal ids of calls", "begin; bash x as d; read /a v as d; say; say", "3: gc d; 4: evict d"},
		{"keep cuts an eviction away", "begin; read /a v; say; say; keep 3 say; say", "3: evict t1; 5: evict t1"},
		{"keep cuts a fault away", "begin; read /a v; say; say; read /a v; keep 7 read /a v; say; say", "3: evict t1; 4: fault t2 of t1; 5: fault t3 of t1; 7: pin t3"},
		{"keep cuts a pin away", "begin; read /a v; say; say; read /a v; say; say; keep 11 edit /a; say", "3: evict t1; 4: fault t2 of t1; 6: pin t2; 7: evict t2"},
		{"keep nothing", "begin; read /a v; say; say; keep 0 begin; read /a v; say; say", "3: evict t1; 7: evict t2"},
		{"keep all", "begin; read /a v; say; keep 5 say", "3: evict t1"},
		{"keep in the middle of a step", "begin; read /a v; say; say; keep 4 orphan x as zz; say; say", "3: evict t1; 5: evict t1; 6: gc zz"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := run(t, Options{Policy: "fifo", Tau: 2}, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

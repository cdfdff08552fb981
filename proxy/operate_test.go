package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// turns is a history of turns, each with its own words; the newest has no answer.
func turns(n int) (out []string) {
	for i := 1; i <= n; i++ {
		out = append(out, text("user", fmt.Sprintf("question %d%s", i, strings.Repeat(" and more", 60))))
		if i < n {
			out = append(out, spoke(fmt.Sprintf("answer %d", i)))
		}
	}
	return out
}

// refusals are the operations by tags that were not carried out.
func (r *rig) refusals() (out []string) {
	r.t.Helper()
	for _, e := range r.events("tags") {
		var list []string
		if err := json.Unmarshal(e.Data, &list); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, list...)
	}
	return out
}

// operated is what is sent of turns after the model answered the newest with operations, and what was refused.
func operated(t *testing.T, history []string, ops ...string) (sent []tidemark.Message, refused []string) {
	t.Helper()
	r := newRig(t, proxy.Settings{})
	r.exchange(proxy.Page, request(history...), reply("end_turn", tagged("so", ops...)))
	history = append(history[:len(history):len(history)], spoke("so\n"), text("user", "next"))
	e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("ok")))
	sent, refused = e.messages(t, 0), r.refusals()
	if err := tidemark.Check(sent); err != nil {
		t.Fatal(err)
	}
	r.restart()
	again := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("ok")))
	if !bytes.Equal(again.sent[0], e.sent[0]) {
		t.Errorf("after a restart sent\n%s\nbefore\n%s", again.sent[0], e.sent[0])
	}
	return sent, refused
}

// TestNewestStays: the turn that a person began last is neither dropped, nor summed up, nor collapsed.
func TestNewestStays(t *testing.T) {
	history := turns(3)
	words := "question 3"
	inTurn := append(turns(3), said(textBlock("I look. "+strings.Repeat("It takes long. ", 40)), call("c1", "Read", `{"file_path":"a.go"}`)), result("c1", strings.Repeat("a line\n", 200)))
	newest := handle(t, 0, history...)
	for name, row := range map[string]struct {
		history []string
		op      string
	}{
		"dropped":              {history, "drop: block:" + newest},
		"summed up":            {history, `summarize: block:` + newest + ` "short"`},
		"collapsed":            {history, `collapse: turns 3-3 "short"`},
		"collapsed with all":   {history, `collapse: turns 1-3 "short"`},
		"beyond it":            {history, `collapse: turns 2-9 "short"`},
		"a text of it":         {inTurn, "drop: block:" + handle(t, 0, inTurn[:6]...)},
		"a result of it":       {inTurn, `summarize: block:` + handle(t, 0, inTurn...) + ` "short"`},
		"a result of it, gone": {inTurn, "drop: block:" + handle(t, 0, inTurn...)},
	} {
		t.Run(name, func(t *testing.T) {
			sent, refused := operated(t, row.history, row.op)
			if len(refused) != 1 || !strings.Contains(refused[0], "newest") {
				t.Errorf("refused %q", refused)
			}
			for i, raw := range row.history {
				var m tidemark.Message
				if err := json.Unmarshal([]byte(raw), &m); err != nil {
					t.Fatal(err)
				}
				if got, want := string(sent[i].AppendJSON(nil)), string(m.AppendJSON(nil)); got != want {
					t.Errorf("%s: message %d is sent as %s", words, i, got)
				}
			}
		})
	}
}

// TestRefusedOperations: what names nothing, or would save nothing, is refused and changes nothing.
func TestRefusedOperations(t *testing.T) {
	history := turns(3)
	short := handle(t, 0, history[:2]...)
	first := handle(t, 0, history[:1]...)
	id, _, _ := strings.Cut(first, "#")
	for name, row := range map[string]struct{ op, why string }{
		"a note is longer than the block":   {"drop: block:" + short, "no shorter"},
		"a summary is longer":               {`summarize: block:` + first + ` "` + strings.Repeat("long ", 200) + `"`, "no shorter"},
		"a summary of turns is longer":      {`collapse: turns 1-2 "` + strings.Repeat("long ", 400) + `"`, "no shorter"},
		"no such block":                     {"drop: block:" + id + "#4", "is no block"},
		"no such message":                   {"drop: block:AAAAAAAAAAAAAAAA#0", "is not in this conversation"},
		"no number":                         {"drop: block:" + id + "#x", "is no handle"},
		"an anchor of what is not there":    {"anchor: block:AAAAAAAAAAAAAAAA#0", "is not in this conversation"},
		"turns that there are not":          {`collapse: turns 7-9 "short"`, "there are turns 1 to 2"},
		"a summary of what is not there":    {`summarize: block:BBBBBBBBBBBBBBBB#0 "x"`, "is not in this conversation"},
		"a summary just as long as it goes": {`summarize: block:` + first + ` "` + strings.Repeat("x", 560) + `"`, "no shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			sent, refused := operated(t, history, row.op)
			if len(refused) != 1 || !strings.Contains(refused[0], row.why) {
				t.Errorf("refused %q", refused)
			}
			var all strings.Builder
			for _, m := range sent {
				all.WriteString(m.PlainText())
			}
			if got := all.String(); strings.Count(got, "and more") != 180 || strings.Contains(got, "memory_fault with") || !strings.Contains(got, "answer 1") {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// TestNotesAreShorter: whatever is summed up, and with how many words, what stands for it is shorter, or it stays.
func TestNotesAreShorter(t *testing.T) {
	history := turns(2)
	size := func(m tidemark.Message) int { return len(m.AppendJSON(nil)) }
	var was tidemark.Message
	if err := json.Unmarshal([]byte(history[0]), &was); err != nil {
		t.Fatal(err)
	}
	done := 0
	for n := 400; n < 620; n += 11 {
		sent, refused := operated(t, history, `summarize: block:`+handle(t, 0, history[0])+` "`+strings.Repeat("x", n)+`"`)
		if len(refused) == 0 {
			done++
		}
		if shorter := size(sent[0]) < size(was); shorter != (len(refused) == 0) {
			t.Errorf("a summary of %d bytes: %d bytes of %d, refused %q", n, size(sent[0]), size(was), refused)
		}
	}
	if done == 0 || done == 20 {
		t.Errorf("%d are carried out", done)
	}
}

// TestOverlap: turns of which a part stands in another summary are refused; a summary within another, and around it, hold.
func TestOverlap(t *testing.T) {
	for name, row := range map[string]struct {
		ops     []string
		refused int
		sent    string // the first words of what is sent
	}{
		"a part of it behind":  {[]string{`collapse: turns 1-2 "first"`, `collapse: turns 2-3 "second"`}, 1, "[Turns 1-2|question 3|answer 3|question 4"},
		"a part of it before":  {[]string{`collapse: turns 2-3 "first"`, `collapse: turns 1-2 "second"`}, 1, "question 1|answer 1|[Turns 2-3|question 4"},
		"within":               {[]string{`collapse: turns 1-3 "first"`, `collapse: turns 2-2 "second"`}, 0, "[Turns 1-3|question 4"},
		"around":               {[]string{`collapse: turns 2-2 "first"`, `collapse: turns 1-3 "second"`}, 0, "[Turns 1-3|question 4"},
		"beside one another":   {[]string{`collapse: turns 1-1 "first"`, `collapse: turns 2-3 "second"`}, 0, "[Turns 1-1|[Turns 2-3|question 4"},
		"the same once more":   {[]string{`collapse: turns 1-2 "first"`, `collapse: turns 1-2 "second"`}, 0, "[Turns 1-2|question 3|answer 3|question 4"},
		"a block within turns": {[]string{`summarize: block:` + handle(t, 0, turns(2)...) + ` "b"`, `collapse: turns 2-3 "second"`}, 0, "question 1|answer 1|[Turns 2-3|question 4"},
	} {
		t.Run(name, func(t *testing.T) {
			sent, refused := operated(t, turns(4), row.ops...)
			if len(refused) != row.refused {
				t.Errorf("refused %q", refused)
			}
			var got []string
			for _, m := range sent {
				words := strings.Fields(m.PlainText())
				got = append(got, strings.TrimSuffix(strings.Join(words[:min(2, len(words))], " "), ","))
			}
			if s := strings.Join(got, "|"); !strings.HasPrefix(s, row.sent+"|so|next") {
				t.Errorf("sent %s, want %s", s, row.sent)
			}
		})
	}
}

// TestCollapsedComesBack: turns that were summed up are whole again where they come to be the newest.
func TestCollapsedComesBack(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	history := turns(3)
	r.exchange(proxy.Page, request(history...), reply("end_turn", tagged("so", `collapse: turns 1-2 "short"`)))
	for _, row := range []struct {
		history []string
		hidden  bool
	}{
		{append(history[:4:4], text("user", "instead")), true},
		{history[:4:4], false}, // the client wants the answer to be gone on with
	} {
		e := r.exchange(proxy.Page, request(row.history...), reply("end_turn", textBlock("ok")))
		if got := !bytes.Contains(e.sent[0], []byte("question 2")); got != row.hidden || bytes.Contains(e.sent[0], []byte("[Turns 1-2, 4 messages, as you summed them up")) != row.hidden {
			t.Errorf("of %d messages sent %s", len(row.history), e.sent[0])
		}
	}
}

// TestCollapsedPages: what stands in turns that were summed up is not counted as stubs, nor told to the log as such; our
// own calls in them are not put back.
func TestCollapsedPages(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	if a.stubs == 0 {
		t.Fatal("nothing left")
	}
	r.exchange(proxy.Page, request(a.history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["no.go"]}`)), reply("end_turn", textBlock("all read")))
	a.history = append(a.history, spoke("all read"), text("user", "and?"))
	r.exchange(proxy.Page, request(a.history...), reply("end_turn", tagged("so", `collapse: turns 1-1 "read them all"`)))
	told := len(r.edits("paging"))
	a.history = append(a.history, spoke("so\n"), text("user", "next"))
	e := r.exchange(proxy.Page, request(a.history...), reply("end_turn", textBlock("ok")))
	if m := e.messages(t, 0); len(m) != 4 || !strings.Contains(m[0].PlainText(), "read them all") || bytes.Contains(e.sent[0], []byte(`"p1"`)) {
		t.Errorf("sent %s", e.sent[0])
	}
	if got := r.lastRecord().Paging; got == nil || got.Stubs != 0 || len(r.edits("paging")) != told {
		t.Errorf("recorded %+v; the log knows %d stubs, before %d", got, len(r.edits("paging")), told)
	}
}

package proxy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// still is a runtime whose time stands.
type still struct{ tidemark.Runtime }

func (still) Now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// newStill is a rig whose time stands.
func newStill(t *testing.T, settings proxy.Settings) *rig {
	r := newRig(t, settings)
	r.rt = still{r.rt}
	r.restart()
	return r
}

const storedThen = ", stored 2026-05-01 12:00:00 UTC):"

// TestCopies: a copy says what it is, of which tool and file, and when it was stored; each kind of block has its form.
func TestCopies(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	odd := `{"type":"hologram","x":1}`
	history := []string{`{"role":"user","content":[` + textBlock("look") + "," + image + "," + odd + `]}`, said(call("c1", "Read", `{"file_path":"a.go"}`), call("c2", "Bash", `{"command":"ls"}`)),
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"package a"},{"type":"tool_result","tool_use_id":"c2","content":[` + textBlock("") + "," + textBlock("b.go") + `]}]}`}
	at := func(message, block int) string { return handle(t, block, history[:message+1]...) }
	for _, row := range []struct {
		name string
		head string // in the brackets
		want []string
	}{
		{at(0, 0), "text", []string{"look"}},
		{at(0, 1), "image", []string{image}},
		{at(0, 2), "hologram", []string{odd}},
		{at(1, 0), "tool_use", []string{`{"file_path":"a.go"}`}},
		{at(2, 0), "Read a.go", []string{"package a"}},
		{at(2, 1), "Bash", []string{"b.go"}},
	} {
		b := newStill(t, proxy.Settings{}).fault(history, row.name)
		got := []string{}
		for _, c := range b.Content[1:] {
			if c.Type == tidemark.TypeText {
				got = append(got, c.Text)
			} else {
				got = append(got, string(c.AppendJSON(nil)))
			}
		}
		if head := b.Content[0].Text; head != row.name+" ("+row.head+storedThen || !slices.Equal(got, row.want) || b.IsError {
			t.Errorf("%s\n%q\nwant %s %q", head, got, row.head, row.want)
		}
	}
	r := newStill(t, proxy.Settings{})
	e := r.exchange("", request(history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["a.go"],"handles":["`+at(0, 0)+`"]}`)), reply("end_turn", textBlock("ok")))
	m := e.messages(t, 1)
	if got := textsOf(m[len(m)-1].Content[0]); len(got) != 4 || got[1] != "package a" || got[3] != "look" {
		t.Errorf("by path and by handle: %q", got)
	}
}

// TestCopyWasChanged: a copy of a file that a later call changed says by which tool and when, also where one call changed several.
func TestCopyWasChanged(t *testing.T) {
	read := readOf("c1", "a.go", "package a")
	patch := []string{said(call("c2", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: b.go\n@@\n-x\n+y\n*** Update File: a.go\n@@\n-x\n+y\n*** End Patch"}`)), result("c2", "done")}
	named := handle(t, 0, append([]string{text("user", "q")}, read...)...)
	for tool, changes := range map[string][]string{"Edit": editOf("c2", "a.go"), "apply_patch": patch} {
		b := newStill(t, proxy.Settings{}).fault(flat([]string{text("user", "q")}, read, changes), named)
		want := "a.go was changed after this copy was stored (" + tool + ", 2026-05-01 12:00:00 UTC): read the file for what it holds now. The copy:\n" + named + " (Read a.go" + storedThen
		if got := b.Content[0].Text; got != want || b.Content[1].Text != "package a" {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// TestCopyOfOtherThread: what another thread of the conversation said is given back by its handle, as the log has it, also after a
// restart; a block that the message has not is not found.
func TestCopyOfOtherThread(t *testing.T) {
	r := newStill(t, proxy.Settings{})
	a := append([]string{text("user", "read it")}, readOf("c1", "a.go", "package a")...)
	r.exchange("", request(a...), reply("end_turn", textBlock("done")))
	named := handle(t, 0, a...)
	for i := range 2 {
		b := r.fault([]string{text("user", fmt.Sprint("another ", i))}, named)
		if got := textsOf(b); !slices.Equal(got, []string{named + " (tool_result" + storedThen, "package a"}) {
			t.Errorf("given back %q", got)
		}
		b = r.fault([]string{text("user", fmt.Sprint("a third ", i))}, strings.TrimSuffix(named, "0")+"1")
		if got := textsOf(b); !b.IsError || len(got) != 1 || !strings.HasSuffix(got[0], "#1 cannot be read now: it was not found.") {
			t.Errorf("of a block that is not there: %q", got)
		}
		r.restart()
	}
}

// TestDroppedPage: a result that the model drops by a tag is let go as a page, like any that leaves, and is no edit of its own.
func TestDroppedPage(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	history := append([]string{text("user", "q")}, readOf("c1", "a.go", strings.Repeat("a line\n", 300))...)
	named := handle(t, 0, history...)
	history = append(history, spoke("read"), text("user", "on"))
	r.exchange("", request(history...), reply("end_turn", tagged("so", "drop: block:"+named)))
	r.restart()
	r.exchange("", request(append(history, spoke("so\n"), text("user", "next"))...), reply("end_turn", textBlock("ok")))
	list := r.steps("")
	if got := list[len(list)-1].Release; !slices.Equal(got, []string{named}) || len(r.edits("cooperation")) > 0 || len(r.refusals()) > 0 {
		t.Errorf("let go %q, %d edits, refused %q", got, len(r.edits("cooperation")), r.refusals())
	}
}

// TestUnmarkedComesBack: work that was not marked and left is named by its entry, by which it comes back: what was said, called and
// answered in it, and nothing that a person said.
func TestUnmarkedComesBack(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 8 {
		for range 3 {
			a.round()
		}
		a.r.exchange("", request(a.history...), reply("end_turn", textBlock(fmt.Sprint("part ", i, " is done"))))
		a.history = append(a.history, spoke(fmt.Sprint("part ", i, " is done")), text("user", fmt.Sprint("go on ", i)))
	}
	a.round()
	names := regexp.MustCompile(`episode:[A-Z2-7]{16}`).FindAllString(string(a.sent[len(a.sent)-1]), -1)
	if len(names) < 1 {
		t.Fatalf("of %d pieces is told how they come back: %s", len(names), a.sent[len(a.sent)-1])
	}
	for _, restart := range []bool{false, true} {
		if restart {
			a.r.restart()
		}
		e := a.r.exchange("", request(a.history...), reply("tool_use", call("p", paging.FaultTool, `{"paths":["`+names[0]+`","episode: `+strings.TrimPrefix(names[0], "episode:")+`","episode:AAAAAAAAAAAAAAAA"]}`)), reply("end_turn", textBlock("ok")))
		m := e.messages(t, 1)
		got := textsOf(m[len(m)-1].Content[0])
		all := strings.Join(got, "\n")
		if !strings.HasPrefix(got[0], "unmarked work ") || !strings.HasSuffix(got[0], ", as it was:") || !strings.Contains(all, `Read {"file_path":"f`) || strings.Count(all, "holds this line") != 360 || strings.Count(all, "stands in an answer above") != 1 ||
			strings.Contains(all, "begin") || strings.Contains(all, "go on") || m[len(m)-1].Content[0].IsError {
			t.Errorf("restart %t: given back %.1000s", restart, all)
		}
		if !strings.Contains(all, "episode:AAAAAAAAAAAAAAAA is not in this conversation") {
			t.Errorf("restart %t: one that is not there: %s", restart, got[len(got)-1])
		}
	}
}

// TestCopiesFit: what is given back in one answer fits to the byte; a byte more, and the last of it is not there.
func TestCopiesFit(t *testing.T) {
	const most = 512 << 10
	size := func(texts ...string) (n int) {
		for _, s := range texts {
			n += len(tidemark.Text(s).AppendJSON(nil))
		}
		return n
	}
	for _, more := range []int{0, 1} {
		history := append([]string{text("user", "q")}, readOf("c1", "a.go", strings.Repeat("a", 1_000))...)
		first := handle(t, 0, history...)
		left := most - size(first+" (Read a.go"+storedThen, strings.Repeat("a", 1_000))
		// The name has as many letters whatever the file holds.
		left -= size(first+" (Read b.go"+storedThen, "")
		history = append(history, readOf("c2", "b.go", strings.Repeat("b", left+more))...)
		got := textsOf(newStill(t, proxy.Settings{}).fault(history, "a.go", "b.go"))
		if whole := len(got) == 4 && len(got[3]) == left; whole != (more == 0) || more > 0 && got[len(got)-1] != fmt.Sprintf("b.go has %d bytes, more than one answer holds beside the rest; ask for it alone, or read the file in parts.", most-size(got[:2]...)+1) {
			t.Errorf("%d bytes too many: %d texts, the last %.200q", more, len(got), got[len(got)-1])
		}
	}
}

package session_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestToolsFrozen: the list of tools stays as it was while the prompt does, over lives, and is made anew with it, when the
// configuration is another one, and when a source is back.
func TestToolsFrozen(t *testing.T) {
	h, c, b := newAsking(t, "agent:main:main", nil)
	h.model.set(nil)
	names := func() string {
		var out []string
		for _, t := range h.model.calls[len(h.model.calls)-1].Tools {
			if strings.HasPrefix(t.Name, "files__") {
				out = append(out, strings.TrimPrefix(t.Name, "files__"))
			}
		}
		return strings.Join(out, " ")
	}
	step := func(what, want string, lists int) {
		t.Helper()
		h.post(byOwner(what))
		if got := names(); got != want || b.lists != lists {
			t.Errorf("%s: offered %q after %d lists, want %q after %d", what, got, b.lists, want, lists)
		}
	}
	step("first", "read write rm", 1)
	b.tools = b.tools[:1]
	step("a server has others now", "read write rm", 1)
	h.stop()
	h.idle()
	h.open()
	step("another life", "read write rm", 1)
	b.mark = "other"
	step("another configuration", "read", 2)
	b.tools = append(b.tools, tool("files__new", false))
	c.set(c.Now().Add(24 * time.Hour))
	step("another day", "read new", 3)
	b.tools, b.missing = nil, []string{"files"}
	c.set(c.Now().Add(24 * time.Hour))
	step("a source that is missing keeps what it had", "read new", 4)
	b.missing, b.tools = nil, []tidemark.Tool{tool("files__last", false)}
	step("it is not asked again at once", "read new", 4)
	c.set(c.Now().Add(2 * time.Minute))
	step("it is back", "last", 5)
	if set := h.model.calls[len(h.model.calls)-1].Tools; set[0].Name != "recall" {
		t.Errorf("our own come first, and not %s", set[0].Name)
	}
}

// TestToolsOfOthersInTheOwners: where somebody else talks in the owner's conversation, tools see that it is not the owner.
func TestToolsOfOthersInTheOwners(t *testing.T) {
	h, _, b := newAsking(t, "agent:main:main", nil)
	h.model.set(calls(tidemark.ToolUse("c1", "files__read", []byte(`{}`))))
	in := wrote(ann, "in1", "go")
	h.post(in)
	h.idle()
	if len(b.scopes) != 1 || b.scopes[0].Owner {
		t.Errorf("called for %+v", b.scopes)
	}
}

// short is a provider that leaves out tools.
type short struct {
	tidemark.Provider
	tools []string
}

func (p *short) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		for d, err := range p.Provider.Stream(ctx, req) {
			if d.Reply != nil {
				d.Reply.LeftOut = p.tools
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// TestTooManyTools: who talks with a model whose API takes no more tools is told which it goes without, once.
func TestTooManyTools(t *testing.T) {
	h := unopened(t, session.Settings{})
	h.provider = &short{h.model, []string{"wiki_find", "wiki_read"}}
	h.open()
	for range 2 {
		if got := h.say("hello"); !strings.HasPrefix(got, "ok") {
			t.Fatalf("answered %q", got)
		}
	}
	if told := h.events("notice"); len(told) != 1 || !strings.Contains(told[0], "without 2 of them: wiki_find, wiki_read.") {
		t.Errorf("notices %q", told)
	}
}

// TestChangedTool: a call of a tool that its server changed since the model was told of it does not run, whether it changed
// before the call or while the owner decided about it. The other calls run.
func TestChangedTool(t *testing.T) {
	const changed = " not run: the tool was changed by its server since you were told of it. Read its definition, which is made anew, before you call it.; "
	for _, row := range []struct{ name, before, while, want string }{
		{"before the call", "files__read", "", "c1true" + changed + "c2false done: files__write; "},
		{"while the owner decides", "", "files__write", "c1false done: files__read; c2true" + changed},
		{"not at all", "", "", "c1false done: files__read; c2false done: files__write; "},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, _, b := newAsking(t, "agent:main:main", nil)
			drift := func(name string) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.drifted = name
			}
			for i := range b.tools {
				b.tools[i].Mark = "first"
			}
			drift(row.before)
			code, r := h.parked(byOwner("go"))
			drift(row.while)
			if err := h.Decide(t.Context(), tidemark.Decision{Code: code, Allow: true, By: tidemark.Origin{Owner: true}}); err != nil {
				t.Fatal(err)
			}
			h.gave(r.ID, row.want+denied)
		})
	}
}

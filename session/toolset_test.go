package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
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

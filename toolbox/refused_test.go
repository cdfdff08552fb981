package toolbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// TestRefused: a definition that the API of the models refused is offered to nobody any more, and the state says why. Its
// neighbours stay, one of the same name of another server among them, and so does it when it is another.
func TestRefused(t *testing.T) {
	t.Parallel()
	one := &source{tools: []tidemark.Tool{tool("a", "A.", object), tool("odd", "Odd.", object)}}
	two := &source{tools: []tidemark.Tool{tool("odd", "Odd.", object)}}
	box := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(t), Servers: []toolbox.Server{{Name: "one", Source: one}, {Name: "two", Source: two}}})
	tools, _ := box.Tools(t.Context(), owner)
	i := slices.IndexFunc(tools, func(t tidemark.Tool) bool { return t.Name == "one__odd" })
	if i < 0 {
		t.Fatalf("offered %q", names(tools))
	}
	box.Refused("one__odd", tools[i].Mark, "no anyOf\x1b[31m at the top")
	if tools, _ = box.Tools(t.Context(), owner); !slices.Equal(names(tools), []string{"one__a", "two__odd"}) {
		t.Errorf("offered %q", names(tools))
	}
	report := box.Report(t.Context(), owner)
	if left := report.Sources[0].LeftOut; len(report.Tools) != 2 || len(left) != 1 || !strings.HasPrefix(left[0], "odd: ") || !strings.Contains(left[0], "no anyOf") || strings.Contains(left[0], "\x1b") {
		t.Errorf("the state says %q of %d tools", left, len(report.Tools))
	}
	if left := report.Sources[1].LeftOut; len(left) > 0 {
		t.Errorf("the state of its neighbour says %q", left)
	}
	box.Refused("one__odd", "another mark", "an older definition")
	if tools, _ = box.Tools(t.Context(), owner); len(tools) != 3 {
		t.Errorf("another definition is left out: %q", names(tools))
	}
}

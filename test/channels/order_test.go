//go:build !js

package channels

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/graph"
)

// TestOrder: what people write in a row stands in their logs in that order, though many write at once and
// each line is a webhook of its own.
func TestOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, target string) {
		const people, lines = 5, 12
		h := newHost(t, target, graph.Config{}, "TIDEMARK_CHANNELS_WHATSAPP_ACCESS=open")
		person := func(i int) graph.Person {
			return graph.Person{Number: fmt.Sprintf("1555200%04d", i), Name: fmt.Sprintf("Person %d", i)}
		}
		for line := range lines {
			for i := range people {
				h.meta.Say(person(i), h.meta.Text(person(i), fmt.Sprintf("Line %02d.", line)))
			}
			h.acknowledged()
		}
		for i := range people {
			key := "agent:main:whatsapp:dm:" + person(i).Number
			var said []string
			h.eventually(fmt.Sprintf("all lines of %s are in their log", person(i).Name), func() bool {
				said = regexp.MustCompile(`"content":"Line \d\d\.`).FindAllString(h.history(key), -1)
				return len(said) >= lines
			})
			slices.Reverse(said) // the log is listed from its newest
			if !slices.IsSorted(said) || len(said) != lines {
				t.Errorf("%s said %q", person(i).Name, said)
			}
		}
	})
}

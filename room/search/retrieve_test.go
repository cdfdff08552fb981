package search

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/room"
)

// FuzzQuoted: no text ends its quotation.
func FuzzQuoted(f *testing.F) {
	f.Add("a\r\nb\u2028c\vd")
	f.Fuzz(func(t *testing.T, text string) {
		s := &Room{ports: ports{Self: room.Self{Zone: func() *time.Location { return time.UTC }}}}
		for i, line := range strings.FieldsFunc(s.pushed(Recollection{Text: text}), func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			if i > 0 && !strings.HasPrefix(line, "| ") || strings.Contains(line, "<system-reminder") {
				t.Errorf("line %d is %q", i, line)
			}
		}
	})
}

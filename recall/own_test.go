package recall

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestWhatPersonsWrote: what programs put into a message is not what its person asked for.
func TestWhatPersonsWrote(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"<task-notification>\n<task-id>b1</task-id>\nAgent \"Mend\" must always finish.\n</task-notification>", ""},
		{"<task-notification>never</task-notification>\nMend the gauge.", "Mend the gauge."},
		{"Mend it.\n<local-command-stdout>TODO: x</local-command-stdout> now\n<bash_output n=\"1\">never", "Mend it.\n now"},
		{"<div class=\"a-b\">is HTML</div> and a <x-y>", "<div class=\"a-b\">is HTML</div> and a <x-y>"},
		{"a < b-c and d > e", "a < b-c and d > e"},
		{strings.Repeat("<a-b></a-b>\n", 100) + "late", ""},
		{"[Request interrupted by user for tool use]", ""},
		{"<task-notification>done</task-notification>\nRead the output file to retrieve the result: /tmp/out", ""},
		{"This session is being continued from a previous conversation that ran out of context.\nImplement the gauge.", ""},
	} {
		if got := OwnWords(tidemark.NewText(tidemark.User, row.text)); got != row.want {
			t.Errorf("%.60q: %q, want %q", row.text, got, row.want)
		}
	}
}

package tidemark_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestParseCommand(t *testing.T) {
	for _, row := range []struct{ line, word, text string }{ // no word: refused
		{"/status", "status", ""},
		{" STATUS ", "status", ""},
		{"/Status", "status", ""},
		{"/stop", "stop", ""},
		{"/help", "help", ""},
		{"/memory", "memory", ""},
		{"/new", "new", ""},
		{"/reset", "reset", ""},
		{"/model", "model", ""},
		{"/model  sonnet-5 ", "model", "sonnet-5"},
		{"/model\u00a0small", "model", "small"},
		{"/snapshot", "snapshot", ""},
		{"/snapshot before  the move", "snapshot", "before  the move"},
		{"/Branch left", "branch", "left"},
		{"/branch left\nright", "", ""},
		{"/snapshot " + strings.Repeat("x", 300), "", ""},
		{"/compact", "compact", ""},
		{"/compact keep  the numbers", "compact", "keep  the numbers"},
		{"/compact\nkeep", "compact", "keep"},
		{"/reset the router please", "", ""},
		{"/stop worrying", "", ""},
		{"/status now", "", ""},
		{"/status\u200b", "", ""},
		{"/model a b", "", ""},
		{"/model " + strings.Repeat("x", 300), "", ""},
		{"//new", "", ""},
		{"/ model x", "", ""},
		{"/", "", ""},
		{"", "", ""},
		{"/newer", "", ""},
		{"new York", "", ""},
		{"please /reset", "", ""},
		{"／status", "", ""},
	} {
		t.Run(row.line, func(t *testing.T) {
			word, text, err := tidemark.ParseCommand(row.line)
			if word != row.word || text != row.text || (err == nil) != (row.word != "") || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%q %q %v", word, text, err)
			}
		})
	}
}

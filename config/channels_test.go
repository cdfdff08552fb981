package config_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/config"
)

// TestSharedMain: to put others into the owner's session is warned of, whoever they are.
func TestSharedMain(t *testing.T) {
	for _, row := range []struct {
		name, scope, access, more string
		want                      string // in the warning; empty: none
	}{
		{"open", "main", "open", "", "everyone who writes shares"},
		{"pairing", "main", "pairing", "", "everyone who is let in shares"},
		{"list", "main", "allow", "", "everyone who is let in shares"},
		{"owner", "main", "owner", "", ""},
		{"not used", "main", "open", `, "enabled": false`, ""},
		{"conversations of their own", "per-peer", "open", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := config.Parse("x", []byte(`{"session":{"dmScope":"`+row.scope+`"},"channels":{"telegram":{"enabled":false},"whatsapp":{"access":"`+row.access+`"`+row.more+`}}}`))
			if err != nil {
				t.Fatal(err)
			}
			c.Resolve()
			if all := strings.Join(c.Warnings, "\n"); (row.want == "") != (all == "") || !strings.Contains(all, row.want) {
				t.Errorf("warned %q, want %q", all, row.want)
			}
		})
	}
}

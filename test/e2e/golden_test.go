//go:build !js

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	anID    = regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`)
	aTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	aDate   = regexp.MustCompile(`([A-Z][a-z]+day, )?\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?`)
	aStamp  = regexp.MustCompile(`\b1[789]\d{11}\b`) // milliseconds
	aTokens = regexp.MustCompile(`("(?:contextTokens|[a-z_]+_tokens|tokensCleared|size|context|bytes|rawBytes|seq|n|last|until|next|requestMs|contextUtilPct|toolTokens|maxTokens)":)[\d.]+`)
	aHash   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	anETag  = regexp.MustCompile(`"etag":"[^"]*"`) // each store makes its own
	// aFix is where a person finds the token, which each host says in its own words.
	aFix = regexp.MustCompile(`\(TIDEMARK_TOKEN as [^()]*\)`)
)

// plain takes out of an answer what must differ: ids are numbered in the order in which they come,
// times are named, and figures that depend on a clock or on who else uses the server.
func plain(text string) string {
	seen := map[string]string{}
	text = anID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("ID%d", len(seen)+1)
		}
		return seen[id]
	})
	text = aTime.ReplaceAllString(text, "TIME")
	text = aDate.ReplaceAllString(text, "DATE")
	text = aStamp.ReplaceAllString(text, "MS")
	text = aTokens.ReplaceAllString(text, "${1}N")
	text = anETag.ReplaceAllString(text, `"etag":"ETAG"`)
	text = aHash.ReplaceAllString(text, "HASH")
	return aFix.ReplaceAllString(text, "(FIX)")
}

// golden holds what a target answered against testdata, which is the same for all targets.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got = plain(got)
	if *updateFlag {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if d := difference(got, string(raw)); d != "" {
		t.Errorf("%s, %s", path, d)
	}
}

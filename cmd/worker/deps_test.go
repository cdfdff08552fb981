//go:build !js

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// module is where our own packages lie; which of them may reach the Worker is for internal/lint.
const module = "github.com/tidemark-ai/tidemark"

// linkable are the packages of others that the Worker may link, each with its reason. A new one
// needs a line here, behind a look at its timers, goroutines and package state; what must never be linked stands in internal/lint.
var linkable = map[string]string{
	"github.com/oklog/ulid/v2":                                       "time-sortable ids of entries",
	"go.yaml.in/yaml/v3":                                             "the front matter of skills; it starts no goroutine or timer and keeps no state",
	"github.com/tailscale/hujson":                                    "config.json in the bucket may have comments, as the document natively",
	"github.com/kljensen/snowball/english":                           "recall finds a word in another form, as natively",
	"github.com/kljensen/snowball/romance":                           "imported by the package above",
	"github.com/kljensen/snowball/snowballword":                      "the same",
	"github.com/syumai/workers/cloudflare":                           "variables and bindings (Getenv, GetBinding), which are the same for all objects of an instance",
	"github.com/syumai/workers/cloudflare/internal/cfruntimecontext": "the context contract behind them",
	"github.com/syumai/workers/cloudflare/kv":                        "imported by the package above, not called",
	"github.com/syumai/workers/cloudflare/r2":                        "the same: RATIONALE says why not",
	"github.com/syumai/workers/internal/jshttp":                      "the same",
	"github.com/syumai/workers/internal/jsutil":                      "the same",
}

// TestDependencies holds what the Worker links against the table, both ways.
func TestDependencies(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list what the Worker links: %v", err)
	}
	seen := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		seen[path] = true
		if path == module || strings.HasPrefix(path, module+"/") {
			continue
		}
		if linkable[path] == "" {
			t.Errorf("the Worker links %s: do without it, or add it to the table with its reason", path)
		}
	}
	if !seen[module+"/cmd/worker"] {
		t.Fatalf("the list lacks the Worker itself: %q", out)
	}
	for path := range linkable {
		if !seen[path] {
			t.Errorf("%s is no longer linked: take it off the table", path)
		}
	}
}

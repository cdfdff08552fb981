package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// most is how much code of one package not of ours may be in the module without a line in big.
const most = 40_000

// big are the packages of others that may have more code than that in the Worker, each with its
// reason, so that no import brings a large one unseen. Ours, and what is generated, are free.
var big = map[string]string{
	"bytes":                                "everywhere",
	"compress/flate":                       "archives are gzip",
	"encoding/json":                        "the doors; goccy is twice as large",
	"fmt":                                  "errors",
	"github.com/tailscale/hujson":          "the configuration may have comments",
	"github.com/kljensen/snowball/english": "recall finds a word in another form",
	"internal/runtime/maps":                "every map",
	"internal/strconv":                     "numbers in JSON and SQL",
	"log/slog":                             "the one logger",
	"net/http":                             "types and router of the doors",
	"net/url":                              "addresses",
	"os":                                   "fmt and time import it, and start it",
	"reflect":                              "encoding/json",
	"runtime":                              "scheduler and collector",
	"slices":                               "sorting, once for each type of element",
	"strings":                              "everywhere",
	"time":                                 "zones and formats",
}

// largest lists the n packages with the most code.
func largest(sizes map[string]int, n int) string {
	paths := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	var b strings.Builder
	for _, p := range paths[:min(n, len(paths))] {
		fmt.Fprintf(&b, "\n  %9d %s", sizes[p], p)
	}
	return b.String()
}

// unexpected reports packages of others that are large and not in big.
func unexpected(sizes map[string]int) error {
	var found []string
	for p, n := range sizes {
		if n > most && big[p] == "" && p != "generated" && p != "main" && !strings.HasPrefix(p, "github.com/tidemark-ai/tidemark") {
			found = append(found, fmt.Sprintf("%s: %d bytes", p, n))
		}
	}
	if found == nil {
		return nil
	}
	slices.Sort(found)
	return fmt.Errorf("the module has packages of more than %d bytes of code that build/size.go does not list: do without, or add the reason\n  %s", most, strings.Join(found, "\n  "))
}

// stale reports lines of big that nothing needs any more.
func stale(sizes map[string]int) error {
	for _, p := range slices.Sorted(maps.Keys(big)) {
		if sizes[p] <= most {
			return fmt.Errorf("%s has %d bytes of code: take it off the list in build/size.go", p, sizes[p])
		}
	}
	return nil
}

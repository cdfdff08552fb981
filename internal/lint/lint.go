// Package lint holds what `make check` demands of this repository beyond what a general linter can
// say: the discipline of code that reaches the Worker, the import table and the size budgets. It leaves
// out style that gofmt or golangci-lint covers, and does not see aliases (a package variable handed to
// a function that writes through it). Begin with bans.go, imports.go and budgets.go; repo_test.go runs them.
//
// Every ban carries its reason and the way out, and has a snippet that proves it bites. It links nothing
// but the standard library and reports all breaches at once.
package lint

import (
	"fmt"
	"go/token"
	"path/filepath"
	"sort"
	"strings"
)

// Module is the import path of this repository's module.
const Module = "github.com/tidemark-ai/tidemark"

// Finding is one breach of one rule.
type Finding struct {
	File string // relative to the module root, or a package path
	Line int    // 0 when the finding concerns the whole file or package
	Rule string // its name in the tables, as in the table of exceptions
	Name string // what is banned: a variable, function, import or package
	Text string // what is wrong, why, and the way out
}

// String is one readable line.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: [%s] %s", f.File, f.Rule, f.Text)
	}
	return fmt.Sprintf("%s:%d: [%s] %s", f.File, f.Line, f.Rule, f.Text)
}

// Report joins findings, sorted by place, one a line.
func Report(fs []Finding) string {
	lines := make([]string, len(fs))
	sort.SliceStable(fs, func(i, j int) bool {
		if fs[i].File != fs[j].File {
			return fs[i].File < fs[j].File
		}
		return fs[i].Line < fs[j].Line
	})
	for i, f := range fs {
		lines[i] = "  " + f.String()
	}
	return strings.Join(lines, "\n")
}

// place turns a position into a path below root and a line.
func place(root string, p token.Position) (string, int) {
	if rel, err := filepath.Rel(root, p.Filename); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel), p.Line
	}
	return filepath.Base(p.Filename), p.Line
}

// Short is the name of a package of ours in the tables: its folder, "tidemark" for the root, and
// empty for a package of someone else.
func Short(path string) string {
	if path == Module {
		return "tidemark"
	}
	rest, ok := strings.CutPrefix(path, Module+"/")
	if !ok {
		return ""
	}
	return rest
}

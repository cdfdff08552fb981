package lint

import (
	"slices"
	"strings"
	"testing"
)

func TestTableIsWellFormed(t *testing.T) {
	var above []string
	for _, r := range table {
		if slices.Contains(above, r.pkg) {
			t.Errorf("%s has two rows", r.pkg)
		}
		if r.why == "" {
			t.Errorf("%s has no reason", r.pkg)
		}
		for _, name := range append(strings.Fields(r.may), strings.Fields(r.not)...) {
			if name != "*" && !slices.Contains(above, name) {
				t.Errorf("%s may import %s, which has no row above it", r.pkg, name)
			}
		}
		above = append(above, r.pkg)
	}
	for _, p := range parted {
		if !slices.Contains(above, p.a) || !slices.Contains(above, p.b) || p.why == "" {
			t.Errorf("%s and %s are parted without rows or reason", p.a, p.b)
		}
		for _, r := range table {
			if may := strings.Fields(r.may); r.pkg == p.a && slices.Contains(may, p.b) || r.pkg == p.b && slices.Contains(may, p.a) {
				t.Errorf("the row of %s allows what parts %s and %s", r.pkg, p.a, p.b)
			}
		}
	}
}

func TestImportTableBites(t *testing.T) {
	rows := []struct {
		name, pkg, imports string
		want               string // part of the finding, empty for none
	}{
		{"allowed", "session", "compaction", ""},
		{"root is open to all", "archive", "tidemark", ""},
		{"json is open to all", "archive", "internal/json", ""},
		{"session and agent are parted", "session", "agent", "two Durable Objects"},
		{"agent and session are parted", "agent", "session", "two Durable Objects"},
		{"root imports nothing", "tidemark", "archive", "down only"},
		{"doors import business", "worker", "session", ""},
		{"business does not import doors", "session", "worker", "down only"},
		{"a session is given its provider", "session", "provider", "ports of the root"},
		{"upwards", "compaction", "session", "down only"},
		{"sideways", "archive", "compaction", "a file format"},
		{"not in the row", "memory", "compaction", "files, facts"},
		{"test package", "session", "tidemarktest", "down only"},
		{"test package from a program", "cmd/tidemark", "tidemarktest", "for tests only"},
		{"worker program without native host", "cmd/worker", "host/native", "native only"},
		{"native program with all", "cmd/tidemark", "host/native", ""},
		{"contract tests of hosts", "host/hosttest", "host/native", ""},
		{"unknown target", "session", "tools", "no row"},
		{"unknown package", "tools", "tidemark", "has no row"},
		{"too deep", "host/native/sqlite", "tidemark", "no row"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			path := Module + "/" + r.imports
			if r.imports == "tidemark" {
				path = Module
			}
			fs := Imports(Graph{r.pkg: {path}})
			if got := Report(fs); (r.want == "") != (len(fs) == 0) || !strings.Contains(got, r.want) {
				t.Errorf("found %q, want %q", got, r.want)
			}
		})
	}
}

func TestHomesBite(t *testing.T) {
	rows := []struct {
		pkg, path string
		want      int
	}{
		{"session", "github.com/aws/aws-sdk-go-v2/service/s3", 1},
		{"host/native", "github.com/aws/aws-sdk-go-v2/service/s3", 0},
		{"session", "encoding/json", 1},
		{"session", "encoding/json/v2", 1},
		{"internal/json", "encoding/json", 0},
		{"provider", "github.com/openai/openai-go/v3/option", 1},
		{"provider", "github.com/openai/openai-gopher", 0},
		{"session", "testing", 1},
		{"tidemarktest", "testing", 0},
	}
	for _, r := range rows {
		t.Run(r.pkg+" "+r.path, func(t *testing.T) {
			if fs := Imports(Graph{r.pkg: {r.path}}); len(fs) != r.want {
				t.Errorf("%d findings, want %d:\n%s", len(fs), r.want, Report(fs))
			}
		})
	}
}

func TestLongestChain(t *testing.T) {
	g := Graph{}
	for i, name := range strings.Fields("a b c d e f g h") {
		g[name] = []string{"fmt", Module + "/" + string(rune('b'+i))}
	}
	g["x"] = []string{Module + "/d"}
	if got := strings.Join(longest(g), ""); got != "abcdefghi" {
		t.Errorf("longest chain %q", got)
	}
	if !strings.Contains(Report(Imports(g)), "chain of 8 imports, at most 7") {
		t.Errorf("a chain of 8 passes")
	}
}

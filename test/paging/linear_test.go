//go:build !js

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLinear holds that a session twice as long takes about twice the work, by the count of statements that the program
// runs to decide: time would tell of the machine, too. Reading the session is not in it, and copies of whole
// lists count once; the benchmarks in paging/ show those.
func TestLinear(t *testing.T) {
	const most = 2.3
	dir := t.TempDir()
	program := filepath.Join(dir, "paging")
	build := exec.Command("go", "build", "-cover", "-covermode=count", "-coverpkg=github.com/tidemark-ai/tidemark/paging,.", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, policy := range []string{"cost", "lru", "fifo"} {
		for _, profile := range []string{"steady", "edit", "workingset", "parallel", "chat"} {
			var counts []int
			for _, requests := range []int{100, 200, 400, 800} {
				counts = append(counts, statements(t, program, policy, profile, requests))
			}
			t.Logf("%-6s %-10s %v", policy, profile, counts)
			for i, n := range counts[1:] {
				if n == 0 || float64(n) > most*float64(counts[i]) {
					t.Errorf("%s, %s: %v statements for 100, 200, 400 and 800 requests: want at most %v times as many for twice the requests", policy, profile, counts, most)
					break
				}
			}
		}
	}
}

// statements runs a replay and counts what it ran of the deciding part of paging.
func statements(t *testing.T, program, policy, profile string, requests int) (n int) {
	t.Helper()
	dir := t.TempDir()
	run := exec.Command(program, "-alone", profile, "-policy", policy, "-sessions", "1", "-requests", strconv.Itoa(requests), "-bytes", "2000")
	run.Env = append(os.Environ(), "GOCOVERDIR="+dir)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := filepath.Join(dir, "counts")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", dir, "-o", text).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(text)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() { // file:from,to statements times
		words := strings.Fields(lines.Text())
		if len(words) != 3 || reads(words[0]) {
			continue
		}
		many, err := strconv.Atoi(words[1])
		times, errTimes := strconv.Atoi(words[2])
		if err != nil || errTimes != nil {
			t.Fatalf("line %q", lines.Text())
		}
		n += many * times
	}
	return n
}

// reads reports whether a place is in what makes or reads sessions, which takes as long as they are, or in this program.
func reads(place string) bool {
	name, _, _ := strings.Cut(place, ":")
	switch folder, file := path.Split(name); file {
	case "cursor.go", "message.go", "session.go", "profiles.go":
		return true
	default:
		return !strings.HasSuffix(folder, "/tidemark/paging/")
	}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// harmless has the reason for each fault that no test has to notice, by how it is printed: package, function, kind and
// text, never a line number, so that an entry stays true while the code around it changes.
type harmless map[string]string

// readHarmless reads lines of four fields apart by tabs, the last of which is the reason.
func readHarmless(name string) (harmless, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return harmless{}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseHarmless(name, string(b))
}

func parseHarmless(name, text string) (harmless, error) {
	out := harmless{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, '\t')
		if strings.Count(line, "\t") != 3 || strings.TrimSpace(line[cut:]) == "" {
			return nil, fmt.Errorf("%s, line %d: want function, kind, text and reason, apart by tabs", name, i+1)
		}
		out[line[:cut]] = line[cut+1:]
	}
	return out, nil
}

// stale tells of entries of a package that stand for nothing any more.
func (h harmless) stale(w io.Writer, pkg string, found []*fault) {
	there := map[string]bool{}
	for _, f := range found {
		there[f.String()] = true
	}
	var gone []string
	for k := range h {
		if strings.HasPrefix(k, pkg+".") && !there[k] {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	for _, k := range gone {
		say(w, "no longer there, take it out of the list\t%s\n", k)
	}
}

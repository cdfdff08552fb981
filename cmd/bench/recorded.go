package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// zoned says how full the window of a model is.
type zoned struct {
	Window int64 // tokens, 0 for none
	Zones  []int // percent of it
}

// recorded reads recorded sessions.
type recorded struct {
	MaxLine int64
	Chain   transcript.Chain // of a log
	Damaged int              // lines of a log that could not be read
	Scanner paging.Scanner
	Names   map[string]string // of sessions, by the file of their log
}

// logSession reads a log of Claude Code as a session: all that stands before a reply was a request. A compaction
// began a new history. read, which may be nil, sees each message with the request that it was first part of.
func (r *recorded) logSession(name string, f io.Reader, read func(it transcript.Item, request int)) (paging.Session, error) {
	s := paging.Session{ID: cmp.Or(r.Names[filepath.Clean(name)], name), Whole: true}
	if at, ok := f.(io.Seeker); ok {
		if _, err := at.Seek(0, io.SeekStart); err != nil {
			return s, err
		}
	}
	var st paging.Step
	for it, err := range transcript.Messages(f, transcript.Options{Chain: r.Chain}) {
		var bad *transcript.LineError
		if errors.As(err, &bad) {
			r.Damaged++ // one line of many that cannot be read
			continue
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		if it.Boundary {
			st = paging.Step{Cut: true}
		}
		if it.Message.Role == tidemark.Assistant && asks(st) {
			st.Usage = it.Usage
			s.Steps = append(s.Steps, st)
			st = paging.Step{}
		}
		m, err := r.Scanner.Of(it.Message)
		if err != nil {
			return s, fmt.Errorf("%s line %d: %w", name, it.Lines[0], err)
		}
		st.Append = append(st.Append, m)
		if read != nil {
			read(it, len(s.Steps))
		}
	}
	if asks(st) {
		s.Steps = append(s.Steps, st)
	}
	return s, nil
}

// each gives the sessions of a file that has one a line, with the number of the line and where it begins. Of a log of Claude
// Code, which is one session, asLog gets the first line instead.
func (r *recorded) each(name string, in *bufio.Reader, asLog func(first []byte) error, visit func(s paging.Session, number int, begin int64) error) error {
	if head, _ := in.Peek(len(cli.Packed)); string(head) == cli.Packed {
		return cli.Advise(fmt.Errorf("%s is packed (gzip): %w", name, tidemark.ErrInvalid), "unpack it, or give it through a pipe: gunzip -c FILE | tidemark-bench replay -")
	}
	at, first := int64(0), true
	for number := 1; ; number++ {
		line, err := r.line(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s line %d: %w", name, number, err)
		}
		begin := at
		at += int64(len(line))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if first && isLog(line) {
			return asLog(line)
		}
		first = false
		s, err := r.Scanner.Session(line)
		if err == nil {
			err = visit(s, number, begin)
		}
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			return cli.Advise(fmt.Errorf("%s line %d: %w", name, number, err),
				"correct the field that is named; `tidemark-bench replay --help` shows the form of a line")
		}
	}
}

// isLog reports whether a first line is one of a log of Claude Code and no session of replay.
func isLog(line []byte) bool {
	var l struct {
		Type  string          `json:"type"`
		Steps json.RawMessage `json:"steps"`
	}
	return json.Unmarshal(line, &l) == nil && l.Type != "" && l.Steps == nil
}

// sessionNames names the sessions of logs: a log's file name without its end, as Claude Code names it by the
// session. Of different files with one name as many folders stand before it as tell them apart.
func sessionNames(files []string) map[string]string {
	names, parts := map[string]string{}, map[string]int{} // by file; how many parts of its path
	for _, file := range files {
		parts[filepath.Clean(file)] = 1
	}
	for again := true; again; {
		again = false
		users := map[string]int{}
		for file, n := range parts {
			names[file] = lastParts(file, n)
			users[names[file]]++
		}
		for file, n := range parts {
			if users[names[file]] > 1 && n <= strings.Count(file, "/") {
				parts[file], again = n+1, true
			}
		}
	}
	users := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(names)) {
		if users[names[file]] || names[file] == "" { // other in the extension only
			names[file] = file
		}
		users[names[file]] = true
	}
	return names
}

// lastParts is the end of a path, n parts of it, without the extension.
func lastParts(file string, n int) string {
	file = strings.TrimSuffix(filepath.ToSlash(file), filepath.Ext(file))
	at := len(file)
	for ; n > 0 && at >= 0; n-- {
		at = strings.LastIndexByte(file[:at], '/')
	}
	return file[at+1:]
}

// asks reports whether a step ends with a message that a model answers.
func asks(s paging.Step) bool {
	n := len(s.Append)
	return n > 0 && s.Append[n-1].Role == tidemark.User
}

// line reads a line without its end; io.EOF behind the last.
func (r *recorded) line(in *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if int64(len(long)+len(part)) > r.MaxLine {
			return nil, cli.Advise(fmt.Errorf("the line has more than %d bytes: %w", r.MaxLine, tidemark.ErrTooLarge),
				"give one session a line, or raise --max-line")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if long != nil {
			part = append(long, part...)
		}
		if errors.Is(err, io.EOF) && len(part) > 0 {
			err = nil
		}
		return part, err
	}
}

// readTools is the table of tools with the rows of a file, "" for none.
func readTools(name string) (paging.Tools, error) {
	if name == "" {
		return paging.DefaultTools(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxTools+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTools {
		return nil, fmt.Errorf("%s has more than %d bytes: want a table of tools: %w", name, maxTools, tidemark.ErrTooLarge)
	}
	rows, err := paging.ReadTools(data)
	if err != nil {
		return nil, cli.Advise(fmt.Errorf("%s: %w", name, err), "correct the tool that is named; `tidemark-bench replay --help` shows the form")
	}
	return paging.DefaultTools().With(rows), nil
}

// maxTools bounds the bytes of a file of tools.
const maxTools = 1 << 20

// percents are the zones; they have been checked.
func (r *zoned) percents() paging.Zones {
	return paging.Zones{Advisory: r.Zones[0], Involuntary: r.Zones[1], Aggressive: r.Zones[2]}
}

// Options are those of a policy, as flags have them: 0 is a value there.
func (r *zoned) Options(policy string, tau, minBytes int) paging.Options {
	none := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return paging.Options{Policy: policy, Tau: none(tau), MinBytes: none(minBytes), Window: tidemark.Tokens(r.Window), Zones: r.percents()}
}

// checkZones refuses zones that are none, and windows for policies that know none.
func (r *zoned) checkZones(policies []string) error {
	d := paging.DefaultZones
	switch {
	case r.Window < 0:
		return cli.Usagef("--window %d: want a number of tokens, such as 200000", r.Window)
	case len(r.Zones) != 3:
		return cli.Usagef("--zones: %d numbers: want three percents of the window, such as %d,%d,%d", len(r.Zones), d.Advisory, d.Involuntary, d.Aggressive)
	case r.percents() == paging.Zones{}:
		return cli.Usagef("--zones: want three percents of the window, such as %d,%d,%d", d.Advisory, d.Involuntary, d.Aggressive)
	}
	if err := r.percents().Valid(); err != nil {
		return cli.Usagef("--zones: %v", err)
	}
	for _, name := range paging.Bounds() {
		if r.Window > 0 && slices.Contains(policies, name) {
			return cli.Usagef("--policy %s: a bound knows no zones: leave out --window", name)
		}
	}
	return nil
}

// errNoWindow refuses zones of nothing.
var errNoWindow = cli.Usagef("--zones are percents of a window: give --window")

// recordings lists the files that are meant: of a folder the logs below it.
func recordings(paths []string) (files []string, err error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path) // to be opened, and told then if it is not there
			continue
		}
		below, err := cli.Logs([]string{path})
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

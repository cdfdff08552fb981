package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// isLog reports whether a first line is one of a log of Claude Code and no session of replay.
func isLog(line []byte) bool {
	var l struct {
		Type  string          `json:"type"`
		Steps json.RawMessage `json:"steps"`
	}
	return json.Unmarshal(line, &l) == nil && l.Type != "" && l.Steps == nil
}

// log replays a log of Claude Code, of which a line has been read. What cannot be read again, as a pipe, is given by
// that line and the rest. A subagent's own log is all side chain, which is its session.
func (r *replay) log(name string, f io.Reader, line []byte, rest io.Reader) error {
	again, seekable := io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), rest), false
	if s, ok := f.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err == nil {
			again, seekable = f, true
		}
	}
	s, err := r.logSession(name, again, nil)
	if err == nil && len(s.Steps) == 0 && seekable {
		r.chain, r.damaged = transcript.SideChain, 0
		s, err = r.logSession(name, again, nil)
		r.chain = transcript.MainChain
	}
	if err != nil || len(s.Steps) == 0 {
		return err
	}
	return r.session(s)
}

// logSession reads a log of Claude Code as a session: all that stands before a reply was a request. A compaction
// began a new history. read, which may be nil, sees each message with the request that it was first part of.
func (r *replay) logSession(name string, f io.Reader, read func(it transcript.Item, request int)) (paging.Session, error) {
	s := paging.Session{ID: cmp.Or(r.names[filepath.Clean(name)], name), Whole: true}
	if at, ok := f.(io.Seeker); ok {
		if _, err := at.Seek(0, io.SeekStart); err != nil {
			return s, err
		}
	}
	var st paging.Step
	for it, err := range transcript.Messages(f, transcript.Options{Chain: r.chain}) {
		var bad *transcript.LineError
		if errors.As(err, &bad) {
			r.damaged++ // one line of many that cannot be read
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
		m, err := r.scanner.Of(it.Message)
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

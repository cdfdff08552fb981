package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/tidemark-ai/tidemark/transcript"
)

// log replays a log of Claude Code, of which a line has been read. What cannot be read again, as a pipe, is given by
// that line and the rest. A subagent's own log is all side chain, which is its session.
func (r *replay) log(name string, f io.Reader, line []byte, rest io.Reader) error {
	again, seekable := io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), rest), false
	if s, ok := f.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err == nil {
			again, seekable = f, true
		}
	}
	s, err := r.LogSession(name, again, nil)
	if err == nil && len(s.Steps) == 0 && seekable {
		r.Chain, r.Damaged = transcript.SideChain, 0
		s, err = r.LogSession(name, again, nil)
		r.Chain = transcript.MainChain
	}
	if err != nil || len(s.Steps) == 0 {
		return err
	}
	return r.session(s)
}

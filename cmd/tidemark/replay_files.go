package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// replayFile replays the sessions of one file, or of standard input.
func replayFile(m *cli.Main, r *replay, name string) error {
	f, _, err := m.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, 1<<20)
	if head, _ := in.Peek(len(cli.Packed)); string(head) == cli.Packed {
		return cli.Advise(fmt.Errorf("%s is packed (gzip): %w", name, tidemark.ErrInvalid), "unpack it: gunzip -c FILE | tidemark replay -")
	}
	before := r.runs[0].Totals.Sessions
	r.Damaged = 0
	if err := r.sessions(name, f, in); err != nil {
		return err
	}
	if r.Damaged > 0 {
		m.Err.Printf("%s: %s passed over: not to be read\n", cli.Safe(name), cli.Plural(r.Damaged, "line"))
	}
	if r.runs[0].Totals.Sessions == before {
		m.Err.Printf("%s: no session in it\n", cli.Safe(name))
	}
	return nil
}

// sessions replays what is read from a file, line by line.
func (r *replay) sessions(name string, f io.Reader, in *bufio.Reader) error {
	first := true
	for number := 1; ; number++ {
		line, err := r.Line(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s line %d: %w", name, number, err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if first && cli.IsLog(line) {
			return r.log(name, f, line, in)
		}
		first = false
		s, err := r.Scanner.Session(line)
		if err == nil {
			err = r.session(s)
		}
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			return cli.Advise(fmt.Errorf("%s line %d: %w", name, number, err),
				"correct the field that is named; `tidemark replay --help` shows the form of a line")
		}
	}
}

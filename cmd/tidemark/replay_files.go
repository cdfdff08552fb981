package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-ai/tidemark"
)

// packed is how a file begins that gzip packed (RFC 1952, 2.3.1).
const packed = "\x1f\x8b"

// recordings lists the files that are meant: of a folder the logs below it.
func recordings(paths []string) (files []string, err error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path) // to be opened, and told then if it is not there
			continue
		}
		below, err := logs([]string{path})
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

// spare refuses to write a file that is read, or where none can be, before any work is done.
func spare(flag, out string, inputs []string) error {
	if out == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(out)); err != nil || !info.IsDir() {
		return &fixed{fmt.Errorf("%s %s: there is no folder %s", flag, out, filepath.Dir(out)), "make the folder, or name a file in one that is there"}
	}
	info, err := os.Stat(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if info.IsDir() {
		return &fixed{fmt.Errorf("%s %s is a folder", flag, out), "name a file"}
	}
	for _, in := range inputs {
		if read, err := os.Stat(in); err == nil && os.SameFile(read, info) {
			return &fixed{fmt.Errorf("%s %s is read, too", flag, out), "name another file"}
		}
	}
	return nil
}

// replayFile replays the sessions of one file, or of standard input.
func (m *Main) replayFile(r *replay, name string) error {
	f, _, err := m.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, 1<<20)
	if head, _ := in.Peek(len(packed)); string(head) == packed {
		return &fixed{fmt.Errorf("%s is packed (gzip): %w", name, tidemark.ErrInvalid), "unpack it: gunzip -c FILE | tidemark replay -"}
	}
	before := r.runs[0].Totals.Sessions
	r.damaged = 0
	if err := r.sessions(name, f, in); err != nil {
		return err
	}
	if r.damaged > 0 {
		m.err.printf("%s: %s passed over: not to be read\n", safe(name), plural(r.damaged, "line"))
	}
	if r.runs[0].Totals.Sessions == before {
		m.err.printf("%s: no session in it\n", safe(name))
	}
	return nil
}

// sessions replays what is read from a file, line by line.
func (r *replay) sessions(name string, f io.Reader, in *bufio.Reader) error {
	first := true
	for number := 1; ; number++ {
		line, err := r.line(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s line %d: %w", name, number, err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if first && isLog(line) {
			return r.log(name, f, line, in)
		}
		first = false
		s, err := r.scanner.Session(line)
		if err == nil {
			err = r.session(s)
		}
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			return &fixed{fmt.Errorf("%s line %d: %w", name, number, err),
				"correct the field that is named; `tidemark replay --help` shows the form of a line"}
		}
	}
}

// line reads a line without its end; io.EOF behind the last.
func (r *replay) line(in *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if int64(len(long)+len(part)) > r.maxLine {
			return nil, &fixed{fmt.Errorf("the line has more than %d bytes: %w", r.maxLine, tidemark.ErrTooLarge),
				"give one session a line, or raise --max-line"}
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

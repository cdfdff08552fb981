package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/trim"
)

// logFile opens a log. What is no file is copied to one: the log is read more than once. never is what the log is a
// copy of, when that is a file.
func logFile(ctx context.Context, m *cli.Main, path string) (f *os.File, never []place.Named, done func(), err error) {
	if path == "-" {
		return logInput(ctx, m)
	}
	if err := cli.NoPipe(path); err != nil {
		return nil, nil, nil, err
	}
	if f, err = os.Open(path); err != nil {
		return nil, nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, nil, errors.Join(err, f.Close())
	case info.IsDir():
		return nil, nil, nil, errors.Join(fmt.Errorf("%s is a folder, want a file", path), f.Close())
	case info.Mode().IsRegular():
		return f, nil, func() { _ = f.Close() }, nil
	}
	defer f.Close()
	spool, done, err := spooled(ctx, f)
	return spool, nil, done, err
}

// logInput is standard input as a file: the one that it is, when somebody gave one with < and nothing of it was read.
func logInput(ctx context.Context, m *cli.Main) (f *os.File, never []place.Named, done func(), err error) {
	if f, ok := m.Stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if at, err := f.Seek(0, io.SeekCurrent); err == nil && at == 0 {
				return f, nil, func() {}, nil
			}
			never = []place.Named{{Name: "standard input", File: info}}
		}
	}
	f, done, err = spooled(ctx, m.Stdin)
	return f, never, done, err
}

// spooled copies a stream to a file. When ctx ends it does not wait for what the stream never gave: the reading ends
// with the process, or as soon as it has something to write.
func spooled(ctx context.Context, from io.Reader) (*os.File, func(), error) {
	spool, drop, err := place.Temp("", "tidemark-trim-*")
	if err != nil {
		return nil, nil, err
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(spool, from)
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		drop()
		return nil, nil, err
	}
	return spool, drop, nil
}

// notInto refuses standard output that is the log: what is written there would be appended to it, or stand in it.
func notInto(m *cli.Main, in *os.File, never []place.Named) error {
	f, ok := m.Stdout.(*os.File)
	if !ok {
		return nil
	}
	out, err := f.Stat()
	if err != nil || !out.Mode().IsRegular() {
		return nil //nolint:nilerr // who writes there says so
	}
	if info, err := in.Stat(); err == nil {
		never = append(never, place.Named{Name: in.Name(), File: info})
	}
	for _, one := range never {
		if os.SameFile(out, one.File) {
			return fmt.Errorf("write standard output: it is the same file as %s, which is never changed in place: %w", one.Name, tidemark.ErrInvalid)
		}
	}
	return nil
}

// staleCuts looks for cuts beside OUT that are of another trim: `tidemark untrim OUT` would take them for those of this
// one, and say that OUT was changed. With --force they go as the OUT went that they were of.
func staleCuts(ctx context.Context, m *cli.Main, t trimming, in *os.File) {
	path := t.Output + trim.CutsSuffix
	if t.Output == "-" || t.Cuts == path || !cli.There(path) || !otherCuts(ctx, t.Output, path) {
		return
	}
	its, err := os.Stat(path)
	if err != nil {
		return
	}
	log, err := in.Stat()
	if err != nil || os.SameFile(its, log) {
		return
	}
	if kept, err := os.Stat(t.Cuts); err == nil && os.SameFile(its, kept) {
		return
	}
	if t.Force && os.Remove(path) == nil {
		m.Err.Printf("removed %s: those cuts were of the log that %s replaced\n", path, t.Output)
		return
	}
	m.Err.Printf("%s is of another trim: `tidemark untrim %s` takes it for that of this one until it is gone\n", path, shellWord(t.Output))
}

// otherCuts reports whether a cuts file does not fit a trimmed log.
func otherCuts(ctx context.Context, out, path string) bool {
	raw, err := os.Open(path)
	if err != nil {
		return false
	}
	defer raw.Close()
	info, err := raw.Stat()
	if err != nil {
		return false
	}
	cuts, err := trim.OpenCuts(raw, info.Size())
	if err != nil {
		return false // something else of that name
	}
	log, err := os.Open(out)
	if err != nil {
		return false
	}
	defer log.Close()
	if info, err = log.Stat(); err != nil {
		return false
	}
	return errors.Is(cuts.Check(ctx, log, info.Size()), tidemark.ErrConflict)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/trim"
)

// untrimming is the command of that name.
type untrimming struct {
	log, Cuts                    string
	Output, Show                 string
	List, All, Check, Raw, Force bool
}

// given holds the flags to one of the things that the command does.
func (u *untrimming) given(m *cli.Main) error {
	given := m.Changed
	ways := 0
	for _, is := range []bool{given("show"), u.List, u.Check, given("output") && !given("show")} {
		if is {
			ways++
		}
	}
	switch {
	case u.log == "" && (u.Cuts == "" || !given("show")):
		return cli.Usagef("%s: which log? want the trimmed log, or the id of a trimmed session", m.Path())
	case ways == 0:
		return cli.Usagef("%s: what for? want -o FILE for the whole log, --show HANDLE for one piece, --list or --check", m.Path())
	case ways > 1:
		return cli.Usagef("%s: want one of -o, --show, --list and --check", m.Path())
	case given("show") && (len(u.Show) < minShown || strings.Trim(strings.ToLower(u.Show), "0123456789abcdef") != ""):
		return cli.Usagef("--show %q: want a handle, or its first %d characters and more: digits and the letters a to f", u.Show, minShown)
	case given("output") && u.Output == "":
		return cli.Usagef("-o: the path is empty: want a file, or - for standard output")
	case u.Raw && !given("show"):
		return cli.Usagef("--raw: is for --show")
	case u.All && !u.List:
		return cli.Usagef("--all: is for --list")
	}
	return nil
}

// minShown is how much of a handle is told at least.
const minShown = 4

// untrim does what the flags say.
func untrim(ctx context.Context, m *cli.Main, u *untrimming) error {
	u.log = strings.Join(m.Args, "")
	if err := u.given(m); err != nil {
		return err
	}
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	if err := locate(ctx, m, u); err != nil {
		return err
	}
	if err := errors.Join(cli.NoPipe(u.Cuts), cli.NoPipe(u.log)); err != nil {
		return err
	}
	raw, err := os.Open(u.Cuts)
	if err != nil {
		return u.noCuts(err)
	}
	defer raw.Close()
	info, err := raw.Stat()
	if err != nil {
		return fmt.Errorf("read cuts: %w", err)
	}
	cuts, err := trim.OpenCuts(raw, info.Size())
	if err != nil {
		return cli.Advise(fmt.Errorf("%s: %w", u.Cuts, err), "bring back the cuts file that the trim wrote; without it only the log that was trimmed has what was cut")
	}
	if u.Show != "" {
		return showOriginal(ctx, m, *u, cuts)
	}
	log, err := os.Open(u.log)
	if err != nil {
		return cli.Advise(fmt.Errorf("read trimmed log: %w", err), "check the path")
	}
	defer log.Close()
	if info, err = log.Stat(); err != nil {
		return fmt.Errorf("read trimmed log: %w", err)
	}
	switch {
	case u.List:
		return listCuts(ctx, m, *u, log, info.Size(), cuts)
	case u.Check:
		return untrimTo(ctx, m, log, info.Size(), cuts, io.Discard, "")
	case u.Output == "-":
		if _, err := trim.Untrim(ctx, log, info.Size(), cuts, io.Discard); err != nil { // nothing wrong is printed
			return u.fix(err)
		}
		_, err := trim.Untrim(ctx, log, info.Size(), cuts, m.Out)
		return err
	}
	p := place.Options{Mode: info.Mode().Perm(), Replace: u.Force, Not: []string{u.log, u.Cuts}}
	var done trim.Untrimmed
	err = place.Write(u.Output, p, func(w io.Writer) error {
		done, err = trim.Untrim(ctx, log, info.Size(), cuts, w)
		return err
	})
	if err != nil {
		return u.fix(err)
	}
	return tellUntrimmed(m, done, u.Output)
}

// untrimTo untrims into a writer and tells of it.
func untrimTo(ctx context.Context, m *cli.Main, log io.ReaderAt, size int64, cuts *trim.CutsFile, w io.Writer, to string) error {
	done, err := trim.Untrim(ctx, log, size, cuts, w)
	if err != nil {
		return (&untrimming{}).fix(err)
	}
	return tellUntrimmed(m, done, to)
}

// tellUntrimmed prints what came of it. to is "" where nothing was written.
func tellUntrimmed(m *cli.Main, done trim.Untrimmed, to string) error {
	return cli.Either(m, struct {
		trim.Untrimmed
		Out string `json:"out,omitempty"`
	}{done, to}, func() {
		if to == "" {
			m.Out.Printf("good: %s can be undone, and give %s\n", cli.Plural(int(done.Cuts), "cut"), cli.Size(done.Bytes))
		} else {
			m.Out.Printf("%s: %s as before the trim, %s undone\n", to, cli.Size(done.Bytes), cli.Plural(int(done.Cuts), "cut"))
		}
		if done.Appended > 0 {
			m.Out.Printf("behind that %s that were written since\n", cli.Size(done.Appended))
		}
	})
}

// fix adds what a person can do.
func (u *untrimming) fix(err error) error {
	if placed := placeFix(err, ""); placed != nil {
		return placed
	}
	if errors.Is(err, tidemark.ErrConflict) {
		return cli.Advise(err, "bring back the trimmed log as it was, or read single pieces with --show, which needs the cuts only")
	}
	return err
}

// placeFix says what to do where a file cannot be put in its place, nil for other errors.
func placeFix(err error, open string) error {
	switch {
	case errors.Is(err, tidemark.ErrConflict) && strings.Contains(err.Error(), "there is a file"):
		return cli.Advise(err, "choose another -o, or replace it with --force")
	case errors.Is(err, tidemark.ErrInvalid) && strings.Contains(err.Error(), "the same file"):
		return cli.Advise(err, "write to another file with -o"+open)
	}
	return nil
}

// noCuts says why there is no cuts file.
func (u *untrimming) noCuts(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read cuts: %w", err)
	}
	if _, lost := os.Stat(u.log); lost != nil && u.log != "" {
		return cli.Advise(fmt.Errorf("read trimmed log: %w", lost), "give the path of a trimmed log, or the id of a trimmed session of Claude Code")
	}
	return cli.Advise(fmt.Errorf("%s has no cuts: there is no file %s", u.log, u.Cuts), "say where they are with --cuts; a log that was trimmed with --no-cuts has none")
}

// locate finds the log and its cuts: a path, or the id of a session that was made by a trim.
func locate(ctx context.Context, m *cli.Main, u *untrimming) error {
	if u.Cuts != "" {
		return nil
	}
	u.Cuts = u.log + trim.CutsSuffix
	if cli.There(u.Cuts) {
		return nil
	}
	store, err := claudeStore(m)
	if err != nil {
		return nil //nolint:nilerr // a machine without a home folder has no sessions either
	}
	if cli.There(u.log) {
		if kept := store.Cuts(strings.TrimSuffix(filepath.Base(u.log), ".jsonl")); cli.There(kept) {
			u.Cuts = kept
		}
		return nil
	}
	if strings.ContainsAny(u.log, `/\`) || u.log == claude.Latest {
		return nil
	}
	found, err := store.Finder().Pick(ctx, u.log, "")
	if errors.Is(err, tidemark.ErrConflict) {
		return err
	}
	if err == nil {
		u.log, u.Cuts = found.Path, store.Cuts(found.ID)
	}
	return nil
}

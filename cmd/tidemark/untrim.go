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

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/trim"
)

// untrimming is the command of that name.
type untrimming struct {
	log, cuts                    string
	out, show                    string
	list, all, check, raw, force bool
}

func (m *Main) untrimCommand() *cobra.Command {
	var u untrimming
	c := &cobra.Command{Use: "untrim OUT|SESSION", Short: "Bring back what a trim cut: one piece, or the whole log",
		Args: cobra.MaximumNArgs(1),
		Long: `Bring back what ` + "`tidemark trim`" + ` cut from a log, from the cuts beside it. For a
trimmed session of Claude Code its id does, or how that begins.

  -o FILE        the log as it was, byte for byte; lines that were written behind the
                 trimmed form since are kept behind it. It is checked before FILE is
                 there. A log that was changed elsewhere is refused with the first place
  --show HANDLE  one piece, by the handle in the note that stands for it, or how that
                 begins. Text is printed as text; with -o an image is written as a file
  --list         what was cut and has a note: line, bytes, handle and the note
  --check        whether all of it can be brought back; nothing is written`,
		Example: `  tidemark untrim small.jsonl -o log.jsonl
  tidemark untrim small.jsonl --show 1f2e3d4c5b6a
  tidemark untrim small.jsonl --show 1f2e -o image.png
  tidemark untrim small.jsonl --list`,
		RunE: func(cmd *cobra.Command, args []string) error {
			u.log = strings.Join(args, "")
			if err := u.given(cmd); err != nil {
				return err
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return m.untrim(ctx, u)
		}}
	fl := c.Flags()
	fl.StringVarP(&u.out, "output", "o", "", "file to write; - for standard output")
	fl.StringVar(&u.cuts, "cuts", "", "the cuts file (default OUT.cuts)")
	fl.StringVar(&u.show, "show", "", "print one piece by its handle")
	fl.BoolVar(&u.raw, "raw", false, "with --show: as it stood in the log")
	fl.BoolVar(&u.list, "list", false, "list what was cut")
	fl.BoolVar(&u.all, "all", false, "with --list: also what no note stands for, such as lines and thinking")
	fl.BoolVar(&u.check, "check", false, "check that all of it can be brought back")
	fl.BoolVar(&u.force, "force", false, "replace FILE where it exists")
	return m.jsonFlag(c)
}

// given holds the flags to one of the things that the command does.
func (u *untrimming) given(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	ways := 0
	for _, is := range []bool{given("show"), u.list, u.check, given("output") && !given("show")} {
		if is {
			ways++
		}
	}
	switch {
	case u.log == "" && (u.cuts == "" || !given("show")):
		return usagef("%s: which log? want the trimmed log, or the id of a trimmed session", cmd.CommandPath())
	case ways == 0:
		return usagef("%s: what for? want -o FILE for the whole log, --show HANDLE for one piece, --list or --check", cmd.CommandPath())
	case ways > 1:
		return usagef("%s: want one of -o, --show, --list and --check", cmd.CommandPath())
	case given("show") && (len(u.show) < minShown || strings.Trim(strings.ToLower(u.show), "0123456789abcdef") != ""):
		return usagef("--show %q: want a handle, or its first %d characters and more: digits and the letters a to f", u.show, minShown)
	case given("output") && u.out == "":
		return usagef("-o: the path is empty: want a file, or - for standard output")
	case u.raw && !given("show"):
		return usagef("--raw: is for --show")
	case u.all && !u.list:
		return usagef("--all: is for --list")
	}
	return nil
}

// minShown is how much of a handle is told at least.
const minShown = 4

// untrim does what the flags say.
func (m *Main) untrim(ctx context.Context, u untrimming) error {
	if err := m.locate(ctx, &u); err != nil {
		return err
	}
	if err := errors.Join(noPipe(u.cuts), noPipe(u.log)); err != nil {
		return err
	}
	raw, err := os.Open(u.cuts)
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
		return &fixed{fmt.Errorf("%s: %w", u.cuts, err), "bring back the cuts file that the trim wrote; without it only the log that was trimmed has what was cut"}
	}
	if u.show != "" {
		return m.showOriginal(ctx, u, cuts)
	}
	log, err := os.Open(u.log)
	if err != nil {
		return &fixed{fmt.Errorf("read trimmed log: %w", err), "check the path"}
	}
	defer log.Close()
	if info, err = log.Stat(); err != nil {
		return fmt.Errorf("read trimmed log: %w", err)
	}
	switch {
	case u.list:
		return m.listCuts(ctx, u, log, info.Size(), cuts)
	case u.check:
		return m.untrimTo(ctx, log, info.Size(), cuts, io.Discard, "")
	case u.out == "-":
		if _, err := trim.Untrim(ctx, log, info.Size(), cuts, io.Discard); err != nil { // nothing wrong is printed
			return u.fix(err)
		}
		_, err := trim.Untrim(ctx, log, info.Size(), cuts, m.out)
		return err
	}
	p := place.Options{Mode: info.Mode().Perm(), Replace: u.force, Not: []string{u.log, u.cuts}}
	var done trim.Untrimmed
	err = place.Write(u.out, p, func(w io.Writer) error {
		done, err = trim.Untrim(ctx, log, info.Size(), cuts, w)
		return err
	})
	if err != nil {
		return u.fix(err)
	}
	return m.tellUntrimmed(done, u.out)
}

// untrimTo untrims into a writer and tells of it.
func (m *Main) untrimTo(ctx context.Context, log io.ReaderAt, size int64, cuts *trim.CutsFile, w io.Writer, to string) error {
	done, err := trim.Untrim(ctx, log, size, cuts, w)
	if err != nil {
		return (&untrimming{}).fix(err)
	}
	return m.tellUntrimmed(done, to)
}

// tellUntrimmed prints what came of it. to is "" where nothing was written.
func (m *Main) tellUntrimmed(done trim.Untrimmed, to string) error {
	if m.json {
		return m.printJSON(struct {
			trim.Untrimmed
			Out string `json:"out,omitempty"`
		}{done, to})
	}
	if to == "" {
		m.out.printf("good: %s can be undone, and give %s\n", plural(int(done.Cuts), "cut"), size(done.Bytes))
	} else {
		m.out.printf("%s: %s as before the trim, %s undone\n", to, size(done.Bytes), plural(int(done.Cuts), "cut"))
	}
	if done.Appended > 0 {
		m.out.printf("behind that %s that were written since\n", size(done.Appended))
	}
	return nil
}

// fix adds what a person can do.
func (u *untrimming) fix(err error) error {
	switch {
	case errors.Is(err, tidemark.ErrConflict) && strings.Contains(err.Error(), "there is a file"):
		return &fixed{err, "choose another -o, or replace it with --force"}
	case errors.Is(err, tidemark.ErrConflict):
		return &fixed{err, "bring back the trimmed log as it was, or read single pieces with --show, which needs the cuts only"}
	case errors.Is(err, tidemark.ErrInvalid) && strings.Contains(err.Error(), "the same file"):
		return &fixed{err, "write to another file with -o"}
	}
	return err
}

// noCuts says why there is no cuts file.
func (u *untrimming) noCuts(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read cuts: %w", err)
	}
	if _, lost := os.Stat(u.log); lost != nil && u.log != "" {
		return &fixed{fmt.Errorf("read trimmed log: %w", lost), "give the path of a trimmed log, or the id of a trimmed session of Claude Code"}
	}
	return &fixed{fmt.Errorf("%s has no cuts: there is no file %s", u.log, u.cuts), "say where they are with --cuts; a log that was trimmed with --no-cuts has none"}
}

// locate finds the log and its cuts: a path, or the id of a session that was made by a trim.
func (m *Main) locate(ctx context.Context, u *untrimming) error {
	if u.cuts != "" {
		return nil
	}
	u.cuts = u.log + trim.CutsSuffix
	if there(u.cuts) {
		return nil
	}
	store, err := m.claudeStore()
	if err != nil {
		return nil //nolint:nilerr // a machine without a home folder has no sessions either
	}
	if there(u.log) {
		if kept := store.Cuts(strings.TrimSuffix(filepath.Base(u.log), ".jsonl")); there(kept) {
			u.cuts = kept
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
		u.log, u.cuts = found.Path, store.Cuts(found.ID)
	}
	return nil
}

func there(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

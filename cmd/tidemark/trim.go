package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/trim"
)

// trimming is the command of that name, on a file.
type trimming struct {
	Output, Cuts  string
	NoCuts, Force bool
	threshold     int
}

// ofFiles and ofTrees are the flags that only one of the two forms of the command has.
var (
	ofFiles = []string{"output", "cuts", "no-cuts", "force"}
	ofTrees = []string{"name", "orientation", "dir", "launch", "dry-run", "snapshot", "description", "tag", "all-projects"}
)

// oneSource holds the flags to one of: a file, a session, a session of Claude Code.
func (t *trimming) oneSource(m *cli.Main, session, claude string) error {
	given, args := m.Changed, m.Args
	sources := len(args)
	for name, value := range map[string]string{"session": session, "claude": claude} {
		if !given(name) {
			continue
		}
		if sources++; strings.TrimSpace(value) == "" {
			return cli.Usagef("--%s: the value is empty: which session?", name)
		}
	}
	switch {
	case sources == 0:
		return cli.Usagef("%s: which log? want a file and -o, --session KEY or --claude ID", m.Path())
	case sources > 1:
		return cli.Usagef("%s: want one of a file, --session and --claude", m.Path())
	}
	others, why := ofFiles, "is for files: what a session loses is kept with it"
	if len(args) == 1 {
		others, why = ofTrees, "is for --session and --claude: a file becomes a file"
	}
	for _, name := range others {
		if given(name) {
			return cli.Usagef("--%s: %s", name, why)
		}
	}
	if len(args) == 0 {
		return nil
	}
	return t.places(given("cuts"))
}

// places holds the flags of the output to what they may be.
func (t *trimming) places(cuts bool) error {
	switch {
	case t.Output == "":
		return cli.Usagef("-o is missing: where to? a log is never changed in place")
	case cuts && t.Cuts == "":
		return cli.Usagef("--cuts: the path is empty; --no-cuts keeps none")
	case cuts && t.NoCuts:
		return cli.Usagef("--cuts and --no-cuts: want one of them")
	case t.Output == "-" && !cuts && !t.NoCuts:
		return cli.Usagef("-o -: say where what is cut is kept with --cuts FILE, or that it is not, with --no-cuts")
	case !cuts && !t.NoCuts:
		t.Cuts = t.Output + trim.CutsSuffix
	}
	return nil
}

// trimFile trims a file into a file.
func trimFile(ctx context.Context, m *cli.Main, path string, t trimming) error {
	in, never, done, err := logFile(ctx, m, path)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("read log: %w", err)
	}
	if err != nil {
		return cli.Advise(fmt.Errorf("read log: %w", err), "check the path; - reads standard input")
	}
	defer done()
	job := trim.Job{
		Options: trim.Options{Threshold: t.threshold, How: t.how()},
		In:      in, Never: never, Out: t.Output, Cuts: t.Cuts, Replace: t.Force, Watch: watch(m, in),
	}
	tell := m.Out
	if t.Output == "-" {
		job.Out, job.To, tell = "", m.Out, m.Err
		if err := notInto(m, in, never); err != nil {
			return t.fix(err)
		}
	}
	got, err := job.Run(ctx)
	m.ProgressEnd()
	if err != nil {
		return t.fix(err)
	}
	staleCuts(ctx, m, t, in)
	if got.UserMessages+got.AssistantResponses == 0 {
		m.Err.Line("no message stands in " + path + "; is it a session log of Claude Code?")
	}
	if m.JSON {
		raw, err := json.MarshalIndent(struct {
			trim.Metrics
			Out       string `json:"out"`
			Cuts      string `json:"cuts,omitempty"`
			Threshold int    `json:"threshold"`
		}{got, t.Output, t.Cuts, job.Effective()})
		tell.Line(string(raw))
		return err
	}
	t.tell(tell, path, got)
	return nil
}

// how is what a note in the trimmed log says to do to read its original again.
func (t *trimming) how() string {
	if t.NoCuts {
		return ""
	}
	if t.Output == "-" {
		return "tidemark untrim --cuts " + shellWord(filepath.Base(t.Cuts)) + " --show"
	}
	how := "tidemark untrim " + shellWord(filepath.Base(t.Output))
	if t.Cuts != t.Output+trim.CutsSuffix {
		how += " --cuts " + shellWord(filepath.Base(t.Cuts))
	}
	return how + " --show"
}

// shellWord writes a name so that a shell takes it for one word.
func shellWord(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+,@%/="
	if strings.Trim(name, plain) == "" && !strings.HasPrefix(name, "-") {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// fix adds what a person can do.
func (t *trimming) fix(err error) error {
	if errors.Is(err, tidemark.ErrConflict) && strings.Contains(err.Error(), place.KeptSuffix) {
		return cli.Advise(err, "see with `tidemark untrim OUT --check` which cuts OUT has: where those in place do not fit, rename the kept ones to their name; else remove them")
	}
	return cmp.Or(placeFix(err, "; the program that writes the log may have it open"), err)
}

// watch shows how far a trim is, when a person sees it.
func watch(m *cli.Main, in *os.File) func(io.ReaderAt) io.ReaderAt {
	info, err := in.Stat()
	if !m.Progress || err != nil || info.Size() == 0 {
		return nil
	}
	return func(r io.ReaderAt) io.ReaderAt {
		return &watched{ReaderAt: r, m: m, size: info.Size(), began: time.Now()}
	}
}

// watched shows how far a file was read.
type watched struct {
	io.ReaderAt
	m     *cli.Main
	size  int64
	began time.Time
	shown atomic.Int64 // when it was last shown, since then
}

// ReadAt implements io.ReaderAt. Several goroutines may call it.
func (w *watched) ReadAt(p []byte, at int64) (int, error) {
	const often, percent = int64(200 * time.Millisecond), 100
	since, last := int64(time.Since(w.began)), w.shown.Load()
	if since-last > often && w.shown.CompareAndSwap(last, since) {
		w.m.Err.Printf("\r\x1b[K%d%% of %s", at*percent/w.size, cli.Size(w.size))
	}
	return w.ReaderAt.ReadAt(p, at)
}

// tell prints what a trim did.
func (t *trimming) tell(w *cli.Output, in string, got trim.Metrics) {
	rows := [][]string{
		{"size", fmt.Sprintf("%s -> %s%s", cli.Size(got.OriginalBytes), cli.Size(got.TrimmedBytes), less(got.OriginalBytes, got.TrimmedBytes))},
		{"messages", fmt.Sprintf("about %s -> %s tokens%s", cli.Count(got.LiveTokensBefore), cli.Count(got.LiveTokensAfter), less(int64(got.LiveTokensBefore), int64(got.LiveTokensAfter)))},
		{"kept", many(amount{got.UserMessages, "user line", "user lines"}, amount{got.AssistantResponses, "assistant line", "assistant lines"},
			amount{got.ToolUseRequests, "call", "calls"})},
		{"stubs for", many(amount{got.ToolResultsStubbed, "output", "outputs"}, amount{got.ToolUseInputsStubbed, "input", "inputs"},
			amount{got.ImagesStripped, "image", "images"}, amount{got.CopiesStubbed, "copy", "copies"})},
		{"gone", many(amount{got.SignaturesStripped, "thought", "thoughts"}, amount{got.PreCompactionLinesSkipped, "line before the compaction", "lines before the compaction"},
			amount{got.FileHistoryRemoved, "file history", "file histories"}, amount{got.QueueOperationsRemoved, "queue operation", "queue operations"},
			amount{got.LinesEmptied, "line left empty", "lines left empty"})},
		{"put right", many(amount{got.OrphansRemoved, "result without a call", "results without a call"},
			amount{got.CallsRepaired, "call without a result", "calls without a result"}, amount{got.LinesRelinked, "parent", "parents"})},
		{"as it was", many(amount{got.LinesUnread, "line that is no JSON or too long", "lines that are no JSON or too long"},
			amount{got.LinesPreserved, "line that the compaction kept", "lines that the compaction kept"})},
		{"to undo it", t.undo()},
	}
	shown := rows[:0]
	for _, r := range rows {
		if r[1] != "" {
			shown = append(shown, r)
		}
	}
	w.Printf("%s -> %s\n", streamName(in, "standard input"), streamName(t.Output, "standard output"))
	cli.PrintTable(w, shown)
}

// streamName says what - stands for.
func streamName(path, stream string) string {
	if path == "-" {
		return stream
	}
	return path
}

func (t *trimming) undo() string {
	switch {
	case t.NoCuts:
		return "nothing was kept: only the log itself has what was cut"
	case t.Output == "-":
		return "tidemark untrim OUT --cuts " + shellWord(t.Cuts) + " -o ORIGINAL"
	case t.Cuts != t.Output+trim.CutsSuffix:
		return "tidemark untrim " + shellWord(t.Output) + " --cuts " + shellWord(t.Cuts) + " -o ORIGINAL"
	}
	return "tidemark untrim " + shellWord(t.Output) + " -o ORIGINAL"
}

// less says by how much something became smaller, when it did.
func less(before, after int64) string {
	const percent = 100
	if before <= 0 || after >= before {
		return ""
	}
	return fmt.Sprintf(" (%d%% less)", (before-after)*percent/before)
}

// amount is a number of things, and how they are called.
type amount struct {
	n         int64
	one, more string
}

// many lists amounts, without those that are none.
func many(amounts ...amount) string {
	var out []string
	for _, a := range amounts {
		switch {
		case a.n == 1:
			out = append(out, "1 "+a.one)
		case a.n > 1:
			out = append(out, fmt.Sprint(a.n, " ", a.more))
		}
	}
	return strings.Join(out, ", ")
}

type trimFlags struct {
	trimming
	primitive
	Session, Claude string
}

func trimCommand(ctx context.Context, m *cli.Main, f *trimFlags) error {
	t, p := &f.trimming, &f.primitive
	t.threshold = p.Threshold
	if err := cmp.Or(p.given(m), t.oneSource(m, f.Session, f.Claude)); err != nil {
		return err
	}
	leastThreshold(m, p.Threshold)
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	switch {
	case m.Changed("session"):
		return trimSession(ctx, m, f.Session, *p)
	case m.Changed("claude"):
		return trimClaude(ctx, m, f.Claude, *p)
	}
	return trimFile(ctx, m, m.Args[0], *t)
}

// leastThreshold says of a threshold below the least that it is that.
func leastThreshold(m *cli.Main, n int) {
	if n > 0 && n < trim.MinThreshold {
		m.Err.Printf("--threshold %d: acts as %d, the least\n", n, trim.MinThreshold)
	}
}

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

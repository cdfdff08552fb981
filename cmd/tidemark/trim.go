package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/trim"
)

// trimming is the command of that name, on a file.
type trimming struct {
	out, cuts     string
	noCuts, force bool
	threshold     int
}

func (m *Main) trimCommand() *cobra.Command {
	var t trimming
	var p primitive
	var session, claude string
	c := &cobra.Command{Use: "trim IN|- -o OUT", Short: "Make a session log of Claude Code smaller, so that it can be undone",
		Args: cobra.MaximumNArgs(1),
		Long: `Write a smaller form of a session log of Claude Code (~/.claude/projects/*/*.jsonl): raw
outputs and long inputs of tools, copies of outputs, images, thinking and bookkeeping
go, as does what lies before the last compaction. What a person or the model said stays word for word, lines that
nothing changes stay byte for byte, and each call has its result, so that the log can
be resumed. A note stands where an output was, which says what it was and how it is
read again.

The log itself is never changed. What was cut is kept in OUT.cuts: ` + "`tidemark untrim`" + `
brings one piece back or the whole log.

With --session or --claude instead of a file, a snapshot of the session is taken and a
trimmed session of its own begins there, to go on in: a trimmed file that lies elsewhere
is none that Claude Code finds.`,
		Example: `  tidemark trim log.jsonl -o small.jsonl
  tidemark trim log.jsonl -o small.jsonl --threshold 2000 --json
  tidemark untrim small.jsonl -o again.jsonl
  tidemark trim --session garden
  tidemark trim --claude latest --launch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.threshold = p.threshold
			if err := p.given(cmd); err != nil {
				return err
			}
			err := t.oneSource(cmd, args, session, claude)
			if err != nil {
				return err
			}
			if p.threshold > 0 && p.threshold < trim.MinThreshold {
				m.err.printf("--threshold %d: acts as %d, the least\n", p.threshold, trim.MinThreshold)
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			switch {
			case cmd.Flags().Changed("session"):
				return m.trimSession(ctx, session, p)
			case cmd.Flags().Changed("claude"):
				return m.trimClaude(ctx, claude, p)
			}
			return m.trimFile(ctx, args[0], t)
		}}
	fl := c.Flags()
	fl.StringVarP(&t.out, "output", "o", "", "file to write; - for standard output")
	fl.IntVar(&p.threshold, "threshold", 0, "characters over which an output or input of a tool goes (default 500, least 50)")
	fl.StringVar(&t.cuts, "cuts", "", "where what is cut is kept (default OUT.cuts)")
	fl.BoolVar(&t.noCuts, "no-cuts", false, "keep nothing of what is cut: then it cannot be brought back from OUT")
	fl.BoolVar(&t.force, "force", false, "replace OUT and its cuts where they exist")
	fl.StringVar(&session, "session", "", "snapshot and trimmed branch of this session of Tidemark")
	fl.StringVar(&claude, "claude", "", "snapshot and trimmed branch of this session of Claude Code: an id, or latest")
	p.branchFlags(fl)
	p.snapshotFlags(fl)
	return m.jsonFlag(c)
}

// ofFiles and ofTrees are the flags that only one of the two forms of the command has.
var (
	ofFiles = []string{"output", "cuts", "no-cuts", "force"}
	ofTrees = []string{"name", "orientation", "dir", "launch", "dry-run", "snapshot", "description", "tag", "all-projects"}
)

// oneSource holds the flags to one of: a file, a session, a session of Claude Code.
func (t *trimming) oneSource(cmd *cobra.Command, args []string, session, claude string) error {
	given := cmd.Flags().Changed
	sources := len(args)
	for name, value := range map[string]string{"session": session, "claude": claude} {
		if !given(name) {
			continue
		}
		if sources++; strings.TrimSpace(value) == "" {
			return usagef("--%s: the value is empty: which session?", name)
		}
	}
	switch {
	case sources == 0:
		return usagef("%s: which log? want a file and -o, --session KEY or --claude ID", cmd.CommandPath())
	case sources > 1:
		return usagef("%s: want one of a file, --session and --claude", cmd.CommandPath())
	}
	others, why := ofFiles, "is for files: what a session loses is kept with it"
	if len(args) == 1 {
		others, why = ofTrees, "is for --session and --claude: a file becomes a file"
	}
	for _, name := range others {
		if given(name) {
			return usagef("--%s: %s", name, why)
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
	case t.out == "":
		return usagef("-o is missing: where to? a log is never changed in place")
	case cuts && t.cuts == "":
		return usagef("--cuts: the path is empty; --no-cuts keeps none")
	case cuts && t.noCuts:
		return usagef("--cuts and --no-cuts: want one of them")
	case t.out == "-" && !cuts && !t.noCuts:
		return usagef("-o -: say where what is cut is kept with --cuts FILE, or that it is not, with --no-cuts")
	case !cuts && !t.noCuts:
		t.cuts = t.out + trim.CutsSuffix
	}
	return nil
}

// trimFile trims a file into a file.
func (m *Main) trimFile(ctx context.Context, path string, t trimming) error {
	in, never, done, err := m.logFile(ctx, path)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("read log: %w", err)
	}
	if err != nil {
		return &fixed{fmt.Errorf("read log: %w", err), "check the path; - reads standard input"}
	}
	defer done()
	job := trim.Job{
		Options: trim.Options{Threshold: t.threshold, How: t.how()},
		In:      in, Never: never, Out: t.out, Cuts: t.cuts, Replace: t.force, Watch: m.watch(in),
	}
	tell := m.out
	if t.out == "-" {
		job.Out, job.To, tell = "", m.out, m.err
		if err := m.notInto(in, never); err != nil {
			return t.fix(err)
		}
	}
	got, err := job.Run(ctx)
	m.progressEnd()
	if err != nil {
		return t.fix(err)
	}
	m.staleCuts(ctx, t, in)
	if got.UserMessages+got.AssistantResponses == 0 {
		m.err.line("no message stands in " + path + "; is it a session log of Claude Code?")
	}
	if m.json {
		raw, err := json.MarshalIndent(struct {
			trim.Metrics
			Out       string `json:"out"`
			Cuts      string `json:"cuts,omitempty"`
			Threshold int    `json:"threshold"`
		}{got, t.out, t.cuts, job.Effective()})
		tell.line(string(raw))
		return err
	}
	t.tell(tell, path, got)
	return nil
}

// how is what a note in the trimmed log says to do to read its original again.
func (t *trimming) how() string {
	if t.noCuts {
		return ""
	}
	if t.out == "-" {
		return "tidemark untrim --cuts " + shellWord(filepath.Base(t.cuts)) + " --show"
	}
	how := "tidemark untrim " + shellWord(filepath.Base(t.out))
	if t.cuts != t.out+trim.CutsSuffix {
		how += " --cuts " + shellWord(filepath.Base(t.cuts))
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
	switch {
	case errors.Is(err, tidemark.ErrConflict) && strings.Contains(err.Error(), place.KeptSuffix):
		return &fixed{err, "see with `tidemark untrim OUT --check` which cuts OUT has: where those in place do not fit, rename the kept ones to their name; else remove them"}
	case errors.Is(err, tidemark.ErrConflict) && strings.Contains(err.Error(), "there is a file"):
		return &fixed{err, "choose another -o, or replace it with --force"}
	case errors.Is(err, tidemark.ErrInvalid) && strings.Contains(err.Error(), "the same file"):
		return &fixed{err, "write to another file with -o; the program that writes the log may have it open"}
	}
	return err
}

// watch shows how far a trim is, when a person sees it.
func (m *Main) watch(in *os.File) func(io.ReaderAt) io.ReaderAt {
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
	m     *Main
	size  int64
	began time.Time
	shown atomic.Int64 // when it was last shown, since then
}

// ReadAt implements io.ReaderAt. Several goroutines may call it.
func (w *watched) ReadAt(p []byte, at int64) (int, error) {
	const often, percent = int64(200 * time.Millisecond), 100
	since, last := int64(time.Since(w.began)), w.shown.Load()
	if since-last > often && w.shown.CompareAndSwap(last, since) {
		w.m.err.printf("\r\x1b[K%d%% of %s", at*percent/w.size, size(w.size))
	}
	return w.ReaderAt.ReadAt(p, at)
}

// tell prints what a trim did.
func (t *trimming) tell(w *output, in string, got trim.Metrics) {
	rows := [][]string{
		{"size", fmt.Sprintf("%s -> %s%s", size(got.OriginalBytes), size(got.TrimmedBytes), less(got.OriginalBytes, got.TrimmedBytes))},
		{"messages", fmt.Sprintf("about %s -> %s tokens%s", count(got.LiveTokensBefore), count(got.LiveTokensAfter), less(int64(got.LiveTokensBefore), int64(got.LiveTokensAfter)))},
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
	w.printf("%s -> %s\n", streamName(in, "standard input"), streamName(t.out, "standard output"))
	table(w, shown)
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
	case t.noCuts:
		return "nothing was kept: only the log itself has what was cut"
	case t.out == "-":
		return "tidemark untrim OUT --cuts " + shellWord(t.cuts) + " -o ORIGINAL"
	case t.cuts != t.out+trim.CutsSuffix:
		return "tidemark untrim " + shellWord(t.out) + " --cuts " + shellWord(t.cuts) + " -o ORIGINAL"
	}
	return "tidemark untrim " + shellWord(t.out) + " -o ORIGINAL"
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

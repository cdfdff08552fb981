//go:build !js

package trim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/place"
)

func writeFile(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// names lists a folder, so that leftovers show.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// randomTrim stands in for Trim, so that these tests are about files.
func randomTrim(_ context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, _ Options) (Metrics, error) {
	raw := make([]byte, size)
	if _, err := in.ReadAt(raw, 0); err != nil && size > 0 && err != io.EOF {
		return Metrics{}, err
	}
	if cuts == nil {
		cuts = noSink{}
	}
	return Metrics{OriginalBytes: size}, randomCuts(rand.New(rand.NewPCG(20, 21)), raw, out, cuts)
}

type noSink struct{}

func (noSink) Cut(Cut) error { return nil }

// jobFor makes a folder with a log, and a job on it.
func jobFor(t *testing.T, size int) (Job, string, []byte) {
	t.Helper()
	dir := t.TempDir()
	raw := someLog(rand.New(rand.NewPCG(22, 23)), size)
	path := filepath.Join(dir, "log")
	writeFile(t, path, string(raw), 0o640)
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	out := filepath.Join(dir, "out")
	return Job{In: in, Out: out, Cuts: out + CutsSuffix, Now: func() time.Time { return cutsAt }, trim: randomTrim}, dir, raw
}

// Both files are there with the mode of the log, and give the log again.
func TestJob(t *testing.T) {
	j, dir, raw := jobFor(t, 300_000)
	m, err := j.Run(context.Background())
	if err != nil || m.OriginalBytes != int64(len(raw)) || names(t, dir) != "log out out.cuts" {
		t.Fatalf("%v, %+v, left %s", err, m, names(t, dir))
	}
	for _, path := range []string{j.Out, j.Cuts} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", path, err, info.Mode())
		}
	}
	back, _, err := untrimBytes([]byte(readText(t, j.Out)), openCuts(t, []byte(readText(t, j.Cuts))))
	if err != nil || !bytes.Equal(back, raw) {
		t.Errorf("%v, equal %t", err, bytes.Equal(back, raw))
	}
	if _, err := j.Run(context.Background()); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("again: %v", err)
	}
	j.Replace = true
	if _, err := j.Run(context.Background()); err != nil || names(t, dir) != "log out out.cuts" {
		t.Errorf("replaced: %v, left %s", err, names(t, dir))
	}
}

// A log that is made shorter while it is trimmed gives no file.
func TestJobMadeShorter(t *testing.T) {
	j, dir, raw := jobFor(t, 30_000)
	j.Cuts = "" // which would read it again
	j.trim = func(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
		m, err := randomTrim(ctx, in, size, out, cuts, o)
		return m, errors.Join(err, os.Truncate(j.In.Name(), int64(len(raw)-1)))
	}
	if _, err := j.Run(context.Background()); !errors.Is(err, tidemark.ErrConflict) || names(t, dir) != "log" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
}

// What is wrong with the places is said before anything is written.
func TestJobPlaces(t *testing.T) {
	j, dir, _ := jobFor(t, 1_000)
	writeFile(t, filepath.Join(dir, "there.cuts"), "precious", 0o600)
	for name, c := range map[string]struct {
		out, cuts string
		replace   bool
		want      error
	}{
		"cuts there":    {"there", "there.cuts", false, tidemark.ErrConflict},
		"cuts are log":  {"out", "log", true, tidemark.ErrInvalid},
		"out is log":    {"log", "log.cuts", true, tidemark.ErrInvalid},
		"one file":      {"out", "out", true, tidemark.ErrInvalid},
		"one file else": {"out", "./out", false, tidemark.ErrInvalid},
	} {
		j.Out, j.Cuts, j.Replace = filepath.Join(dir, c.out), dir+"/"+c.cuts, c.replace
		if _, err := j.Run(context.Background()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := names(t, dir); got != "log there.cuts" {
		t.Errorf("left: %s", got)
	}
}

// A trim that fails, is cancelled, or whose log becomes shorter meanwhile leaves nothing.
func TestJobFails(t *testing.T) {
	j, dir, _ := jobFor(t, 200_000)
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		trim func(context.Context, io.ReaderAt, int64, io.Writer, Sink, Options) (Metrics, error)
		want error
	}{
		"fails": {func(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
			_, err := randomTrim(ctx, in, size, out, cuts, o)
			return Metrics{}, errors.Join(err, lost)
		}, lost},
		"tells less": {func(_ context.Context, _ io.ReaderAt, _ int64, _ io.Writer, cuts Sink, _ Options) (Metrics, error) {
			return Metrics{}, cuts.Cut(Cut{From: 0, To: 10, Put: 3})
		}, tidemark.ErrInvalid},
		"shorter": {func(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
			return Metrics{}, errors.Join(os.Truncate(j.In.Name(), 100), cuts.Cut(Cut{From: 0, To: size}))
		}, io.ErrUnexpectedEOF},
	} {
		j.trim = c.trim
		if _, err := j.Run(context.Background()); !errors.Is(err, c.want) || names(t, dir) != "log" {
			t.Errorf("%s: %v, left %s", name, err, names(t, dir))
		}
	}
}

// Without a place the trimmed log goes to a writer; without cuts none are kept.
func TestJobStream(t *testing.T) {
	j, dir, raw := jobFor(t, 100_000)
	var out bytes.Buffer
	j.Out, j.To = "", &out
	if _, err := j.Run(context.Background()); err != nil || names(t, dir) != "log out.cuts" {
		t.Fatalf("%v, left %s", err, names(t, dir))
	}
	back, _, err := untrimBytes(out.Bytes(), openCuts(t, []byte(readText(t, j.Cuts))))
	if err != nil || !bytes.Equal(back, raw) {
		t.Errorf("%v, equal %t", err, bytes.Equal(back, raw))
	}
	j.Cuts = ""
	j.To = &broken{left: 1_000, err: io.ErrShortWrite}
	if _, err := j.Run(context.Background()); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("full: %v", err)
	}
}

// What is appended while the trim runs is none of its concern.
func TestJobGrows(t *testing.T) {
	j, _, raw := jobFor(t, 50_000)
	j.trim = func(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
		f, err := os.OpenFile(j.In.Name(), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("more\n")
			err = errors.Join(err, f.Close())
		}
		m, e := randomTrim(ctx, in, size, out, cuts, o)
		return m, errors.Join(err, e)
	}
	if _, err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	back, _, err := untrimBytes([]byte(readText(t, j.Out)), openCuts(t, []byte(readText(t, j.Cuts))))
	if err != nil || !bytes.Equal(back, raw) {
		t.Errorf("%v, equal %t", err, bytes.Equal(back, raw))
	}
}

// A trim that cannot replace the log leaves the cuts that were beside it, which are of it.
func TestJobReplaceFails(t *testing.T) {
	j, dir, _ := jobFor(t, 100_000)
	writeFile(t, j.Out, "old", 0o600)
	writeFile(t, j.Cuts, "old cuts", 0o600)
	j.Replace = true
	j.trim = func(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
		m, err := randomTrim(ctx, in, size, out, cuts, o)
		return m, errors.Join(err, os.Remove(j.Out), os.MkdirAll(filepath.Join(j.Out, "in the way"), 0o700))
	}
	if _, err := j.Run(context.Background()); err == nil || names(t, dir) != "log out out.cuts" || readText(t, j.Cuts) != "old cuts" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
	if err := os.Remove(j.Cuts); err != nil { // new ones go again
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(j.Out), os.WriteFile(j.Out, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(context.Background()); err == nil || names(t, dir) != "log out" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
}

// What the log is a copy of is no place either.
func TestJobNever(t *testing.T) {
	j, dir, _ := jobFor(t, 1_000)
	writeFile(t, filepath.Join(dir, "source"), "source", 0o600)
	info, err := os.Stat(filepath.Join(dir, "source"))
	if err != nil {
		t.Fatal(err)
	}
	j.Never, j.Replace = []place.Named{{Name: "standard input", File: info}}, true
	source := filepath.Join(dir, "source")
	for _, places := range [][2]string{{source, ""}, {j.Out, source}} {
		j.Out, j.Cuts = places[0], places[1]
		if _, err := j.Run(context.Background()); !errors.Is(err, tidemark.ErrInvalid) || readText(t, source) != "source" {
			t.Errorf("%v: %v", places, err)
		}
	}
}

// A trim of a file reads it through who watches, by the threshold that holds, and says when it was.
func TestJobTrims(t *testing.T) {
	j, dir, _ := jobFor(t, 0)
	log := called("t1", "Bash", `{"command":"ls"}`) + "\n" + result("t1", `"`+long(60)+`"`) + "\n" + result("t9", `"`+long(60)+`"`) + "\n"
	writeFile(t, j.In.Name(), log, 0o600)
	watched := false
	j.trim, j.Now, j.Threshold, j.Watch = nil, nil, 10, func(in io.ReaderAt) io.ReaderAt {
		watched = true
		return in
	}
	began := time.Now().Truncate(time.Second)
	m, err := j.Run(t.Context())
	if err != nil || m.OriginalBytes != int64(len(log)) || m.ToolResultsStubbed != 1 || m.OrphansRemoved != 1 || !watched || names(t, dir) != "log out out.cuts" {
		t.Fatalf("%v, %+v, watched: %t, left %s", err, m, watched, names(t, dir))
	}
	f := openCuts(t, []byte(readText(t, j.Cuts)))
	if facts := f.Facts(); facts.Threshold != MinThreshold || facts.Cuts != 2 || facts.Bytes != int64(len(log)) || facts.Trimmed != m.TrimmedBytes || facts.At.Before(began) {
		t.Errorf("%+v", facts)
	}
	back, u, err := untrimBytes([]byte(readText(t, j.Out)), f)
	if err != nil || string(back) != log || u.Cuts != 2 {
		t.Errorf("%v, %+v, %s", err, u, back)
	}
	for asked, want := range map[int]int{0: DefaultThreshold, 1: MinThreshold, MinThreshold: MinThreshold, MinThreshold + 1: MinThreshold + 1, 600: 600} {
		if got := (Options{Threshold: asked}).Effective(); got != want {
			t.Errorf("%d: %d", asked, got)
		}
	}
}

// What is no log is told as what it is, and so is a place that is none.
func TestJobNoLog(t *testing.T) {
	j, dir, _ := jobFor(t, 100)
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := j.In
	j.In = folder
	if _, err := j.Run(t.Context()); !errors.Is(err, tidemark.ErrInvalid) || err.Error() != "read log: it is no file: "+tidemark.ErrInvalid.Error() {
		t.Errorf("a folder: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(t.Context()); !errors.Is(err, fs.ErrClosed) || !strings.HasPrefix(err.Error(), "read log: ") {
		t.Errorf("a closed file: %v", err)
	}
	j.In, j.Out, j.Cuts, j.To = file, "", ".", io.Discard
	t.Chdir(dir)
	if _, err := j.Run(t.Context()); !errors.Is(err, tidemark.ErrInvalid) || strings.Contains(err.Error(), "one file") {
		t.Errorf("a folder for the cuts: %v", err)
	}
	j.Out, j.Cuts = filepath.Join("missing", "out"), "out"
	if _, err := j.Run(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is missing: %v", err)
	}
	if got := names(t, dir); got != "log" {
		t.Errorf("left: %s", got)
	}
}

// The trimmed log and its cuts are two files, whatever they are called.
func TestJobLinkedPlaces(t *testing.T) {
	j, dir, _ := jobFor(t, 1_000)
	writeFile(t, j.Out, "old", 0o600)
	if err := os.Link(j.Out, j.Cuts); err != nil {
		t.Skip(err)
	}
	j.Replace = true
	if _, err := j.Run(t.Context()); !errors.Is(err, tidemark.ErrInvalid) || names(t, dir) != "log out out.cuts" || readText(t, j.Out) != "old" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
}

// A trim whose cuts lose their place keeps the trimmed log that was there.
func TestJobCutsFail(t *testing.T) {
	j, dir, _ := jobFor(t, 1_000)
	writeFile(t, j.Out, "old", 0o600)
	sub := filepath.Join(dir, "cuts")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	j.Cuts, j.Replace = filepath.Join(sub, "out.cuts"), true
	j.trim = func(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
		m, err := randomTrim(ctx, in, size, out, cuts, o)
		return m, errors.Join(err, os.RemoveAll(sub))
	}
	if _, err := j.Run(t.Context()); !errors.Is(err, fs.ErrNotExist) || names(t, dir) != "log out" || readText(t, j.Out) != "old" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
}

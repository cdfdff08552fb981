package trim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// CutsSuffix makes the name of a cuts file of that of the trimmed log.
const CutsSuffix = ".cuts"

// Job is a trim of a file into files. The log may be one that is being written: what is appended meanwhile is left
// out, and it is never opened for writing.
type Job struct {
	Options
	In      *os.File
	Out     string                           // place of the trimmed log; "" writes it to To instead
	To      io.Writer                        // where it goes without a place
	Cuts    string                           // place of the cuts file; "" keeps none, and nothing can be brought back
	Replace bool                             // files that stand in these places may be replaced
	Now     func() time.Time                 // nil is time.Now
	Watch   func(in io.ReaderAt) io.ReaderAt // what the trim reads through, for who shows its progress; nil for none

	trim func(context.Context, io.ReaderAt, int64, io.Writer, Sink, Options) (Metrics, error) // nil is Trim
}

// Run trims. Both files are synced, then the cuts take their place, then the trimmed log: where that is, its cuts are.
//
// # Errors
//
// Those of [place.Write] and [Trim]. Then no file is in its place.
func (j Job) Run(ctx context.Context) (Metrics, error) {
	info, err := j.In.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no file: %w", tidemark.ErrInvalid)
	}
	if err != nil {
		return Metrics{}, fmt.Errorf("read log: %w", err)
	}
	out, cuts, err := j.places(info.Mode().Perm())
	defer out.Drop()
	defer cuts.Drop()
	if err != nil {
		return Metrics{}, err
	}
	m, err := j.write(ctx, info.Size(), out, cuts)
	if err != nil {
		return m, err
	}
	if now, err := j.In.Stat(); err != nil || now.Size() < info.Size() {
		return m, fmt.Errorf("read log: it was made shorter while it was trimmed: %w", errors.Join(err, tidemark.ErrConflict))
	}
	return m, commitBoth(cuts, out)
}

// places opens what is written to; nil where nothing is.
func (j Job) places(mode fs.FileMode) (out, cuts *place.File, err error) {
	if j.Out != "" && j.Cuts != "" && sameFolderEntry(j.Out, j.Cuts) {
		return nil, nil, fmt.Errorf("write %s: the trimmed log and its cuts cannot be one file: %w", j.Out, tidemark.ErrInvalid)
	}
	if j.Out != "" {
		if out, err = place.Open(j.Out, place.Options{Mode: mode, Replace: j.Replace, Not: j.not(j.Cuts)}); err != nil {
			return nil, nil, err
		}
	}
	if j.Cuts != "" {
		cuts, err = place.Open(j.Cuts, place.Options{Mode: mode, Replace: j.Replace, Not: j.not(j.Out)})
	}
	return out, cuts, err
}

// not lists the files that a place must not be: the log, and the other place.
func (j Job) not(other string) []string {
	if other == "" {
		return []string{j.In.Name()}
	}
	return []string{j.In.Name(), other}
}

// sameFolderEntry reports whether two paths name one file that is not there yet.
func sameFolderEntry(a, b string) bool {
	da, errA := filepath.EvalSymlinks(filepath.Dir(a))
	db, errB := filepath.EvalSymlinks(filepath.Dir(b))
	return errA == nil && errB == nil && filepath.Join(da, filepath.Base(a)) == filepath.Join(db, filepath.Base(b))
}

const outBuffer = 256 << 10

// write trims into what was opened.
func (j Job) write(ctx context.Context, size int64, out, cuts *place.File) (Metrics, error) {
	do, in, to := j.trim, io.ReaderAt(j.In), j.To
	if do == nil {
		do = Trim
	}
	if j.Watch != nil {
		in = j.Watch(in)
	}
	if out != nil {
		to = out
	}
	b := bufio.NewWriterSize(to, outBuffer)
	if cuts == nil {
		m, err := do(ctx, in, size, b, nil, j.Options)
		if err == nil {
			err = b.Flush()
		}
		return m, err
	}
	now := j.Now
	if now == nil {
		now = time.Now
	}
	c, err := NewCutsWriter(cuts, j.In, size, j.Effective(), now())
	if err != nil {
		return Metrics{}, err
	}
	m, err := do(ctx, in, size, c.Out(b), c, j.Options)
	if err == nil {
		err = b.Flush()
	}
	if e := c.Close(err); err == nil {
		err = e
	}
	return m, err
}

// Effective returns the threshold that a trim goes by.
func (o Options) Effective() int {
	if o.Threshold == 0 {
		return DefaultThreshold
	}
	return max(o.Threshold, MinThreshold)
}

// commitBoth syncs two files at once, then gives them their names, the first one first. nil is nothing to commit.
func commitBoth(first, second *place.File) error {
	synced := make(chan error, 1)
	go func() { // it ends before this function does
		if first == nil {
			synced <- nil
			return
		}
		synced <- first.Sync()
	}()
	var err error
	if second != nil {
		err = second.Sync()
	}
	if err := errors.Join(<-synced, err); err != nil {
		return err
	}
	if first != nil {
		if err := first.Settle(); err != nil {
			return err
		}
	}
	if second == nil {
		return nil
	}
	if err = second.Settle(); err != nil && first != nil {
		first.Undo() // it is new, and alone it would stand in the way of the next try
	}
	return err
}

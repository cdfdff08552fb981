package trim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/calls"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// CutsSuffix makes the name of a cuts file of that of the trimmed log.
const CutsSuffix = ".cuts"

// Job is a trim of a file into files. The log may be one that is being written: what is appended meanwhile is left
// out, and it is never opened for writing.
type Job struct {
	Options
	In      *os.File
	Never   []place.Named                    // files beside In that no place may be: what In is a copy of
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
// Those of [place.Write] and [Trim]. Then both places are as they were before: nothing, or what was to be replaced.
// A process that is killed between the two names leaves new cuts beside the log that was there; its own cuts are kept
// as their name and [place.KeptSuffix].
func (j Job) Run(ctx context.Context) (Metrics, error) {
	info, err := j.In.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no file: %w", tidemark.ErrInvalid)
	}
	if err != nil {
		return Metrics{}, fmt.Errorf("read log: %w", err)
	}
	out, cuts, err := j.places(info)
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
func (j Job) places(in fs.FileInfo) (out, cuts *place.File, err error) {
	if j.Out != "" && j.Cuts != "" && sameFolderEntry(j.Out, j.Cuts) {
		return nil, nil, fmt.Errorf("write %s: the trimmed log and its cuts cannot be one file: %w", j.Out, tidemark.ErrInvalid)
	}
	o := place.Options{Mode: in.Mode().Perm(), Replace: j.Replace, Never: append([]place.Named{{Name: j.In.Name(), File: in}}, j.Never...)}
	if j.Out != "" {
		if out, err = place.Open(j.Out, o); err != nil {
			return nil, nil, err
		}
	}
	if j.Cuts != "" {
		o.Not, o.Keep = []string{j.Out}, j.Out != ""
		cuts, err = place.Open(j.Cuts, o)
	}
	return out, cuts, err
}

// sameFolderEntry reports whether two paths name one file that is not there yet.
func sameFolderEntry(a, b string) bool {
	da, errA := filepath.EvalSymlinks(filepath.Dir(a))
	db, errB := filepath.EvalSymlinks(filepath.Dir(b))
	return errA == nil && errB == nil && filepath.Join(da, filepath.Base(a)) == filepath.Join(db, filepath.Base(b))
}

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
	if cuts == nil {
		return do(ctx, in, size, to, nil, j.Options)
	}
	now := j.Now
	if now == nil {
		now = time.Now
	}
	c, err := NewCutsWriter(cuts, j.In, size, j.Effective(), now())
	if err != nil {
		return Metrics{}, err
	}
	m, err := do(ctx, in, size, c.Out(to), c, j.Options)
	if e := c.Close(err); err == nil {
		err = e
	}
	return m, err
}

// Effective returns the threshold that a trim goes by.
func (o Options) Effective() int {
	return calls.Threshold(o.Threshold)
}

// commitBoth syncs two files, then gives them their names, the first one first. nil is nothing to commit.
func commitBoth(first, second *place.File) error {
	for _, f := range []*place.File{first, second} {
		if f != nil {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	if first != nil {
		if err := first.Settle(); err != nil {
			return err
		}
	}
	if second == nil {
		return nil
	}
	err := second.Settle()
	switch {
	case first == nil:
	case err != nil:
		err = errors.Join(err, first.Undo()) // new, it would stand in the way of the next try; replaced, it is of the log that is still there
	default:
		first.Done()
	}
	return err
}

package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/trim"
)

// Store keeps snapshots of session logs in the folder claude of Tidemark's home: a journal that is only appended to,
// and the bytes of the logs in pieces by their hash, so that a log that grew costs what is new. Any number of processes
// may use one.
type Store struct {
	Home string           // Tidemark's home folder
	Dir  string           // the configuration folder of Claude Code, see [ConfigDir]
	Now  func() time.Time // nil is time.Now

	// Mended, when given, is told how many objects a snapshot or an import found damaged and wrote again.
	Mended func(objects int)
}

// Names in the store's folder.
const (
	folderName  = "claude"
	journalName = "index.jsonl"
	lockName    = "lock"         // held while the journal is written
	useName     = "objects.lock" // shared by who adds objects, alone by who removes some
	objectsName = "objects"
	cutsName    = "cuts"
	tempName    = "temp"
)

func (s *Store) folder() string { return filepath.Join(s.Home, folderName) }

func (s *Store) now() time.Time {
	if s.Now == nil {
		return time.Now().UTC().Truncate(time.Millisecond)
	}
	return s.Now().UTC()
}

// SnapshotOptions say what people say of a snapshot.
type SnapshotOptions struct {
	Name        string // "" is made of the session's title and the time
	Description string
	Tags        []string
}

// BranchOptions direct the making of a session from a snapshot. The zero value copies and does not trim.
type BranchOptions struct {
	Name        string // "" is made of the snapshot's name and the time
	Trim        bool
	Threshold   int    // see trim.Options
	Orientation string // the first message of the user in the new session; "" for none
	Dir         string // the project's folder; "" is that of the snapshot's session
	DryRun      bool   // nothing is written: what would be done is told, the metrics of the trim included
}

// Branch is a session that was made from a snapshot.
type Branch struct {
	Node    snapshot.Node `json:"branch"`
	Session string        `json:"session"`        // the id to resume
	Log     string        `json:"log"`            // its path
	Project string        `json:"project"`        // the folder in which it is resumed
	Trim    *trim.Metrics `json:"trim,omitempty"` // nil when it was not trimmed
	// Untrimmed is what Node.Tokens would be without the trim, 0 when it was not trimmed.
	Untrimmed tidemark.Tokens `json:"tokens_untrimmed,omitempty"`
	Cuts      string          `json:"cuts,omitempty"` // the file that undoes the trim
}

// Nodes lists snapshots and branches in the order in which they were made.
func (s *Store) Nodes(ctx context.Context) ([]snapshot.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j, err := s.journal()
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	nodes := make([]snapshot.Node, 0, len(j.records))
	for _, r := range j.records {
		nodes = append(nodes, *r.Node)
	}
	return nodes, nil
}

// Has reports whether there is a snapshot with this id, and with what it is of: of an ancestor that came with another's
// archive there is the name only.
func (s *Store) Has(ctx context.Context, id string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	j, err := s.journal()
	if err != nil {
		return false, fmt.Errorf("find snapshot: %w", err)
	}
	r, ok := j.byID[id]
	return ok && r.Content != "", nil
}

func (s *Store) record(ctx context.Context, ref string) (*record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j, err := s.journal()
	if err != nil {
		return nil, err
	}
	return j.find(ref)
}

// kept finds a snapshot with its table of contents. Who reads on holds useName.
func (s *Store) kept(ctx context.Context, ref string) (*record, contents, error) {
	r, err := s.record(ctx, ref)
	if err != nil {
		return nil, contents{}, err
	}
	switch {
	case r.Node.Kind == snapshot.KindBranch:
		return nil, contents{}, fmt.Errorf("%q is a branch, the session %s: take a snapshot of that session first: %w", ref, r.Node.Session, tidemark.ErrInvalid)
	case r.Content == "":
		return nil, contents{}, fmt.Errorf("of snapshot %s only the name came, with the archive of another: import its own archive first: %w", r.Node.ID, tidemark.ErrInvalid)
	}
	c, err := s.objects().contents(r.Content)
	return r, c, err
}

// Drop forgets a snapshot or a branch, and removes what only it needed: objects of a snapshot, and the cuts of a branch
// whose log is no more. Sessions made of it stay, and so do their logs. It returns the node and how many bytes were freed.
func (s *Store) Drop(ctx context.Context, ref string) (snapshot.Node, int64, error) {
	release, err := s.hold(ctx, useName, false)
	if err != nil {
		return snapshot.Node{}, 0, fmt.Errorf("drop snapshot: %w", err)
	}
	defer release()
	var dropped snapshot.Node
	used := map[tidemark.Hash]bool{}
	err = s.write(ctx, func(j *journal) ([]*record, error) {
		r, err := j.find(ref)
		if err != nil {
			return nil, err
		}
		dropped = *r.Node
		s.sweepCuts(j)
		// What the others need is known before anything is written, so that an unreadable one stops the drop.
		return []*record{{Op: opDrop, ID: r.Node.ID}}, s.use(used, j, r)
	})
	if err != nil {
		return dropped, 0, fmt.Errorf("drop snapshot: %w", err)
	}
	cuts := int64(0)
	if dropped.Kind == snapshot.KindBranch {
		cuts = s.dropCuts(dropped.Session)
	}
	freed, err := s.objects().sweep(ctx, used)
	freed += cuts
	if err != nil {
		return dropped, freed, fmt.Errorf("drop snapshot %s: it is dropped, but: %w", dropped.ID, err)
	}
	return dropped, freed, nil
}

// use marks all objects that the snapshots but one need.
func (s *Store) use(used map[tidemark.Hash]bool, j *journal, but *record) error {
	objects := s.objects()
	for _, r := range j.records {
		if r == but || r.Content == "" || used[r.Content] {
			continue
		}
		c, err := objects.contents(r.Content)
		if errors.Is(err, tidemark.ErrNotFound) {
			continue // nothing more can be lost of it
		}
		if err != nil {
			return err
		}
		used[r.Content] = true
		for _, f := range c.Files {
			for _, h := range f.Pieces {
				used[h] = true
			}
		}
	}
	return nil
}

// Active reports whether somebody probably writes the log of a session now: it changed lately, and it is no branch that
// is still as it was made here.
func (s *Store) Active(of Session) bool {
	if !of.Active(s.now()) {
		return false
	}
	j, err := s.journal()
	if err != nil {
		return true
	}
	return !j.untouched(of)
}

// Made is the size of the context of a branch that is still as it was made here, and false of any other session. Its log
// reports no calls, so it is known only of the session that it was made from.
func (s *Store) Made(of Session) (tidemark.Tokens, bool) {
	j, err := s.journal()
	if err != nil {
		return 0, false // a journal that cannot be read is told of by who needs it
	}
	return j.made(of.ID, of.Bytes)
}

// temp is the folder for what is needed for a while.
func (s *Store) temp() string { return filepath.Join(s.folder(), tempName) }

// clearTemp makes that folder, and removes what killed processes left there: nothing that is made takes that long.
func (s *Store) clearTemp() error {
	const age = 24 * time.Hour
	if err := os.MkdirAll(s.temp(), folderMode); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.temp())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() && s.now().Sub(info.ModTime()) > age {
			_ = os.Remove(filepath.Join(s.temp(), e.Name()))
		}
	}
	return nil
}

// Finder returns a finder to which a branch is not the latest session before somebody worked in it.
func (s *Store) Finder() *Finder {
	var j *journal
	return &Finder{Dir: s.Dir, untouched: func(of Session) bool {
		if j == nil {
			var err error
			if j, err = s.journal(); err != nil {
				j = &journal{} // a journal that cannot be read is told of by who needs it
			}
		}
		return j.untouched(of)
	}}
}

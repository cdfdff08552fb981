package claude

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Bounds of the journal.
const (
	maxJournal = 1 << 30   // bytes
	maxRecord  = 256 << 10 // bytes of a line
)

// Operations of the journal.
const (
	opSnapshot = "snapshot"
	opBranch   = "branch"
	opDrop     = "drop"
)

// record is one line of the journal.
type record struct {
	Op   string         `json:"op"`
	Node *snapshot.Node `json:"node,omitempty"` // of snapshot and branch
	ID   string         `json:"id,omitempty"`   // what is dropped

	Content tidemark.Hash `json:"content,omitempty"` // of a snapshot: its table of contents; "" for a name without content
	Bytes   int64         `json:"bytes,omitempty"`   // of the log
	Project string        `json:"project,omitempty"` // the folder in which the session runs
	Log     string        `json:"log,omitempty"`     // of a branch: its path
}

func (r *record) check() error {
	switch {
	case r.Op == opDrop && r.ID != "":
		return nil
	case (r.Op == opSnapshot || r.Op == opBranch) && r.Node != nil && r.Node.ID != "":
		return nil
	}
	return fmt.Errorf("is no operation of a snapshot, a branch or a drop: %w", tidemark.ErrInvalid)
}

// journal is what the file says: nodes that were not dropped, in the order in which they were made.
type journal struct {
	records []*record
	byID    map[string]*record
	gone    map[string]bool // ids that were dropped
	size    int64           // up to the end of the last whole line
}

// journal reads the journal. A line without an end is one that is being written, or that was when the power failed; it
// says nothing. A broken line before it is an error: what it said is unknown, so nothing may be built on the rest.
func (s *Store) journal() (*journal, error) {
	path := filepath.Join(s.folder(), journalName)
	j := &journal{byID: map[string]*record{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, fmt.Errorf("read journal: %s is no file: %w", path, tidemark.ErrInvalid)
	}
	if info.Size() > maxJournal {
		return nil, fmt.Errorf("read journal %s: %d bytes, over %d: %w", path, info.Size(), int64(maxJournal), tidemark.ErrTooLarge)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if err := j.parse(raw); err != nil {
		return nil, fmt.Errorf("read journal %s: %w", path, err)
	}
	return j, nil
}

func (j *journal) parse(raw []byte) error {
	lines := bytes.Count(raw, []byte("\n"))
	j.records, j.byID = make([]*record, 0, lines), make(map[string]*record, lines)
	dropped := 0
	for number := 1; ; number++ {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			break
		}
		line := raw[:end]
		raw, j.size = raw[end+1:], j.size+int64(end)+1
		r := &record{}
		err := json.Unmarshal(line, r)
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return fmt.Errorf("line %d is broken; put it right or take it out, what it kept is then not listed: %w: %w", number, err, tidemark.ErrInvalid)
		}
		dropped += j.apply(r)
	}
	if dropped > 0 {
		kept := j.records[:0]
		for _, r := range j.records {
			if j.byID[r.Node.ID] == r {
				kept = append(kept, r)
			}
		}
		j.records = kept
	}
	return nil
}

// apply takes in one record and returns how many earlier ones it makes void. A node that is there already stays as it
// is: nodes never change.
func (j *journal) apply(r *record) int {
	if r.Op == opDrop {
		if _, there := j.byID[r.ID]; !there {
			return 0
		}
		delete(j.byID, r.ID)
		if j.gone == nil {
			j.gone = map[string]bool{}
		}
		j.gone[r.ID] = true
		return 1
	}
	old, there := j.byID[r.Node.ID]
	if there && (old.Content != "" || r.Content == "") {
		return 0
	}
	// A name that came without its content has it now.
	j.byID[r.Node.ID] = r
	j.records = append(j.records, r)
	if there {
		return 1
	}
	return 0
}

// snapshotOf is the snapshot that a session was branched from, "" for none.
func (j *journal) snapshotOf(session string) string {
	if r, ok := j.byID[session]; ok && r.Op == opBranch {
		return r.Node.Parent
	}
	return ""
}

// made is the size of the context of a branch whose log has still as many bytes as it was made with.
func (j *journal) made(session string, bytes int64) (tidemark.Tokens, bool) {
	r, ok := j.byID[session]
	if !ok || r.Op != opBranch || r.Bytes != bytes || r.Node.Tokens == 0 {
		return 0, false
	}
	return r.Node.Tokens, true
}

// untouched reports whether a session is a branch that is still as it was made.
func (j *journal) untouched(of Session) bool {
	r, ok := j.byID[of.ID]
	return ok && r.Op == opBranch && r.Bytes == of.Bytes
}

// find resolves a reference: an id, else a name, else the beginning of an id.
func (j *journal) find(ref string) (*record, error) {
	if r, ok := j.byID[ref]; ok {
		return r, nil
	}
	var named, begins []*record
	for _, r := range j.records {
		if r.Node.Name == ref {
			named = append(named, r)
		}
		if bare := strings.TrimPrefix(r.Node.ID, idPrefix); len(ref) >= minPrefix && (strings.HasPrefix(bare, ref) || strings.HasPrefix(r.Node.ID, ref) && len(ref) >= len(idPrefix)+minPrefix) {
			begins = append(begins, r)
		}
	}
	if len(named) == 0 {
		named = begins
	}
	if len(named) > 1 {
		if snaps := slices.DeleteFunc(slices.Clone(named), func(r *record) bool { return r.Node.Kind != snapshot.KindSnapshot }); len(snaps) == 1 {
			named = snaps // a branch often has the name of what it was made of
		}
	}
	switch len(named) {
	case 0:
		return nil, fmt.Errorf("no snapshot or branch has the id or name %.120q: %w", ref, tidemark.ErrNotFound)
	case 1:
		return named[0], nil
	}
	var ids []string
	for _, r := range named {
		ids = append(ids, fmt.Sprintf("%s (%s %s)", r.Node.ID, r.Node.Name, r.Node.Created.Format("2006-01-02 15:04")))
	}
	return nil, fmt.Errorf("%d go by %.120q: %s; name one by its id: %w", len(named), ref, listed(ids), tidemark.ErrConflict)
}

// write appends records, which make makes of the journal as it then is, under the lock. Nothing is written when make
// fails or gives none.
func (s *Store) write(ctx context.Context, makeRecords func(j *journal) ([]*record, error)) error {
	release, err := s.hold(ctx, lockName, false)
	if err != nil {
		return err
	}
	defer release()
	j, err := s.journal()
	if err != nil {
		return err
	}
	records, err := makeRecords(j)
	if err != nil || len(records) == 0 {
		return err
	}
	var lines []byte
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		if len(line) > maxRecord {
			return fmt.Errorf("write journal: a record of %d bytes, over %d: %w", len(line), maxRecord, tidemark.ErrTooLarge)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := appendJournal(filepath.Join(s.folder(), journalName), j.size, lines); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// appendJournal writes lines behind the first size bytes of a journal. What lies there is a torn line, and goes.
func appendJournal(path string, size int64, lines []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err == nil {
		_, err = f.Write(lines)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Truncate(size) // a full disk must not leave half a line, nor a broken one what the caller undoes
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil && size == 0 {
		place.SyncFolder(filepath.Dir(path))
	}
	return err
}

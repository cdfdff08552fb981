package claude

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/trim"
)

// MaxOrientation bounds the first message of a branch, in characters.
const MaxOrientation = 100_000

// Branch makes a session of a snapshot, which is named by its id or its name: a log with an id of its own in the folder
// where Claude Code looks for sessions of the project.
//
// # Errors
//
// tidemark.ErrNotFound, tidemark.ErrConflict for a name that several snapshots have, tidemark.ErrInvalid for options,
// for a project whose folder is not on this machine, and for a snapshot without any message.
func (s *Store) Branch(ctx context.Context, ref string, o BranchOptions) (Branch, error) {
	b, err := s.branch(ctx, ref, o)
	if err != nil {
		return Branch{}, fmt.Errorf("branch snapshot: %w", err)
	}
	return b, nil
}

// Trim is a snapshot and a trimmed branch of it in one step. A dry run takes no snapshot either: the node has no id then.
func (s *Store) Trim(ctx context.Context, of Session, so SnapshotOptions, bo BranchOptions) (snapshot.Node, Branch, error) {
	bo.Trim = true
	if bo.DryRun {
		node, b, err := s.tryTrim(ctx, of, so, bo)
		if err != nil {
			err = fmt.Errorf("trim session %s: %w", of.ID, err)
		}
		return node, b, err
	}
	if err := bo.check(); err != nil { // before a snapshot is there that nobody would be told of
		return snapshot.Node{}, Branch{}, fmt.Errorf("trim session %s: %w", of.ID, err)
	}
	if of.Project != "" { // else the log is to be read for it
		look := branching{o: bo, of: &record{Node: &snapshot.Node{ID: of.ID}, Project: of.Project}}
		if _, err := look.project(); err != nil {
			return snapshot.Node{}, Branch{}, fmt.Errorf("trim session %s: %w", of.ID, err)
		}
	}
	node, err := s.Snapshot(ctx, of, so)
	if err != nil {
		return node, Branch{}, err
	}
	b, err := s.Branch(ctx, node.ID, bo)
	return node, b, err
}

// tryTrim does what a trim does, and keeps nothing.
func (s *Store) tryTrim(ctx context.Context, of Session, so SnapshotOptions, bo BranchOptions) (snapshot.Node, Branch, error) {
	node, err := s.newNode(of, so)
	if err != nil {
		return node, Branch{}, err
	}
	f, err := os.Open(of.Path)
	if err != nil {
		return node, Branch{}, err
	}
	defer f.Close()
	m := &meter{}
	log, err := (&objects{dry: true}).takeLog(ctx, of.Path, "", m)
	if err != nil {
		return node, Branch{}, err
	}
	node.ID, node.Messages, node.Tokens, node.Hash = "", m.messages, m.tokens(), log.SHA256
	first(&m.project, of.Project)
	b := &branching{store: s, o: bo, of: &record{Node: &node, Project: m.project}, log: func() io.Reader { return io.NewSectionReader(f, 0, log.Size) }}
	if err = b.prepare(ctx); err == nil {
		err = b.write(ctx)
	}
	return node, b.out, err
}

// shortID is how much of a session's id stubs name: there are many of them, and the model pays for each.
const shortID = 8

// branching is one making of a session.
type branching struct {
	store   *Store
	objects *objects
	of      *record
	log     func() io.Reader // of the snapshot
	files   contents
	o       BranchOptions
	out     Branch
	re      *rewriter
	settled bool  // the log is in its place
	bytes   int64 // of the log
}

func (s *Store) branch(ctx context.Context, ref string, o BranchOptions) (Branch, error) {
	release, err := s.hold(ctx, useName, true)
	if err != nil {
		return Branch{}, err
	}
	defer release()
	b := &branching{store: s, objects: s.objects(), o: o}
	b.log = func() io.Reader { return b.objects.reader(b.files.Files[0]) }
	if b.of, b.files, err = s.kept(ctx, ref); err != nil {
		return Branch{}, err
	}
	if err := b.prepare(ctx); err != nil {
		return Branch{}, err
	}
	err = b.write(ctx)
	if o.DryRun {
		return b.out, err
	}
	if err == nil {
		err = s.write(ctx, func(j *journal) ([]*record, error) {
			s.sweepCuts(j)
			return []*record{{Op: opBranch, Node: &b.out.Node, Project: b.out.Project, Log: b.out.Log, Bytes: b.bytes}}, nil
		})
	}
	if err != nil {
		b.undo()
		return Branch{}, err
	}
	return b.out, nil
}

// prepare checks the options and settles where the session will be.
func (b *branching) prepare(ctx context.Context) error {
	now := b.store.now()
	if b.o.Name == "" {
		b.o.Name = named(b.of.Node.Name, now)
	}
	project, err := b.project()
	if err != nil {
		return err
	}
	if err := b.o.check(); err != nil {
		return err
	}
	id := uuid.NewString()
	b.out = Branch{Session: id, Project: project, Log: filepath.Join(projectFolder(b.store.Dir, project), id+logSuffix),
		Node: snapshot.Node{ID: id, Kind: snapshot.KindBranch, Of: snapshot.OfClaude, Name: b.o.Name, Session: id,
			Parent: b.of.Node.ID, Created: now, Trimmed: b.o.Trim}}
	if err := b.out.Node.Check(); err != nil {
		return err
	}
	if !b.o.DryRun {
		if err := b.store.clearTemp(); err != nil {
			return err
		}
	}
	found, err := outlineOf(ctx, b.log())
	if err != nil {
		return err
	}
	if found.messages == 0 {
		return fmt.Errorf("snapshot %s has no message, so there is nothing to resume: %w", b.of.Node.ID, tidemark.ErrInvalid)
	}
	b.re = &rewriter{session: id, title: b.o.Name, from: b.of.Project, to: project, now: now, orient: strings.TrimSpace(b.o.Orientation), outline: found}
	return nil
}

// check looks at what can be known to be wrong before anything is read.
func (o BranchOptions) check() error {
	switch {
	case !utf8.ValidString(o.Orientation):
		return fmt.Errorf("orientation: is no UTF-8: %w", tidemark.ErrInvalid)
	case utf8.RuneCountInString(o.Orientation) > MaxOrientation:
		return fmt.Errorf("orientation: over %d characters: %w", MaxOrientation, tidemark.ErrTooLarge)
	case o.Threshold < 0:
		return fmt.Errorf("threshold: %d is below zero: %w", o.Threshold, tidemark.ErrInvalid)
	}
	return nil
}

// project is the folder in which the new session runs.
func (b *branching) project() (string, error) {
	if b.o.Dir == "" {
		switch {
		case b.of.Project == "":
			return "", fmt.Errorf("the log of snapshot %s names no folder; say which project it is for (--dir): %w", b.of.Node.ID, tidemark.ErrInvalid)
		case !filepath.IsAbs(b.of.Project) || !isFolder(b.of.Project):
			return "", fmt.Errorf("the project %s is not on this machine; say where it is (--dir): %w", b.of.Project, tidemark.ErrInvalid)
		}
		return b.of.Project, nil
	}
	if !isFolder(b.o.Dir) {
		return "", fmt.Errorf("dir %s: is no folder: %w", b.o.Dir, tidemark.ErrInvalid)
	}
	return canonical(b.o.Dir), nil
}

// write makes the log and what lies beside it. The log comes last and by a rename: with it the session is there.
func (b *branching) write(ctx context.Context) error {
	at := b.out.Log
	if b.o.DryRun || b.o.Trim { // then it is what the trim reads
		at = filepath.Join(b.temp(), filepath.Base(at))
	}
	whole, err := b.open(at)
	if err != nil {
		return err
	}
	defer whole.Drop()
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(whole, sum), 1<<16)
	err = b.re.log(ctx, buffered, b.log())
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return err
	}
	node := &b.out.Node
	node.Messages, node.Tokens, node.Hash = b.re.meter.messages, b.re.meter.tokens(), tidemark.Hash(hex.EncodeToString(sum.Sum(nil)))
	if b.o.Trim {
		return b.trimmed(ctx, whole)
	}
	if b.o.DryRun {
		return nil
	}
	if err := b.sides(ctx); err != nil {
		return err
	}
	return b.settle(whole)
}

// open opens a log that is on its way to its place. Until then it is no session.
func (b *branching) open(path string) (*place.File, error) {
	if !b.o.DryRun {
		if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
			return nil, err
		}
		place.Sweep(filepath.Dir(path)) // what killed processes left has names of other sessions
	}
	return place.Open(path, place.Options{})
}

// temp is where files lie that are needed for a while: with what is kept, or with nothing of ours when nothing shall be
// written.
func (b *branching) temp() string {
	if b.o.DryRun {
		return os.TempDir()
	}
	return b.store.temp()
}

// trimmed writes the trimmed form of the whole log. The cuts are there before it is.
func (b *branching) trimmed(ctx context.Context, whole *place.File) error {
	size, err := whole.Size()
	if err != nil {
		return err
	}
	options := trim.Options{Threshold: b.o.Threshold, How: "tidemark untrim " + b.out.Session[:shortID] + " --show"}
	if b.o.DryRun {
		m, err := trim.Trim(ctx, whole, size, io.Discard, nil, options)
		b.weigh(&m)
		return err
	}
	out, err := b.open(b.out.Log)
	if err != nil {
		return err
	}
	defer out.Drop()
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(out, sum), 1<<16)
	m, err := b.trimInto(ctx, whole, size, buffered, options)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return err
	}
	b.weigh(&m)
	b.out.Node.Hash = tidemark.Hash(hex.EncodeToString(sum.Sum(nil)))
	left, err := outlineOf(ctx, io.NewSectionReader(out, 0, m.TrimmedBytes))
	if err != nil {
		return err
	}
	b.out.Node.Messages = left.messages
	if err := b.sides(ctx); err != nil {
		return err
	}
	return b.settle(out)
}

// weigh takes what a trim did and how large the context is behind it.
func (b *branching) weigh(m *trim.Metrics) {
	b.out.Trim, b.out.Untrimmed = m, b.re.meter.tokens()
	b.out.Node.Tokens = b.re.meter.trimmed(m.LiveTokensBefore, m.LiveTokensAfter)
}

// trimInto trims, and keeps what undoes it.
func (b *branching) trimInto(ctx context.Context, whole *place.File, size int64, out io.Writer, o trim.Options) (m trim.Metrics, err error) {
	b.out.Cuts = b.store.Cuts(b.out.Session)
	if err := os.MkdirAll(filepath.Dir(b.out.Cuts), folderMode); err != nil {
		return m, err
	}
	place.Sweep(filepath.Dir(b.out.Cuts))
	err = place.Write(b.out.Cuts, place.Options{}, func(w io.Writer) error {
		cuts, err := trim.NewCutsWriter(w, whole, size, o.Effective(), b.store.now())
		if err != nil {
			return err
		}
		m, err = trim.Trim(ctx, whole, size, cuts.Out(out), cuts, o)
		return errors.Join(err, cuts.Close(err))
	})
	return m, err
}

// undo removes what was made for a session that there will not be. Nobody knows its id yet.
func (b *branching) undo() {
	if b.settled {
		_ = os.Remove(b.out.Log)
	}
	_ = os.Remove(b.store.Cuts(b.out.Session))
	_ = os.RemoveAll(strings.TrimSuffix(b.out.Log, logSuffix))
}

// sides writes what lies beside the log.
func (b *branching) sides(ctx context.Context) error {
	root := strings.TrimSuffix(b.out.Log, logSuffix)
	folders := map[string]bool{}
	for _, k := range b.files.Files[1:] {
		if !filepath.IsLocal(filepath.FromSlash(k.Path)) {
			return fmt.Errorf("side file %.100q: leads out of its folder: %w", k.Path, tidemark.ErrInvalid)
		}
		path := filepath.Join(root, filepath.FromSlash(k.Path))
		if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		err = b.re.side(ctx, w, b.objects.reader(k), k.Path)
		if err == nil {
			err = w.Flush()
		}
		if err == nil {
			err = f.Sync() // with the log the session is there, and the log comes last
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		for dir := filepath.Dir(path); len(dir) >= len(root); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	for dir := range folders {
		place.SyncFolder(dir)
	}
	return nil
}

// settle gives a log its name, on the disk.
func (b *branching) settle(f *place.File) error {
	var err error
	if b.bytes, err = f.Size(); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	b.settled = true
	return nil
}

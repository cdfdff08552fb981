package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/transcript"
)

// idPrefix begins the ids of snapshots of session logs.
const idPrefix = "cc-"

// Bounds of what lies beside a log.
const (
	maxSideFiles = 10_000
	maxSideDepth = 6
)

// Snapshot keeps a session as it is now: up to the last whole line of its log, with what lies beside it. Its parent is
// the snapshot that the session was branched from. The same content under another name is another snapshot, and costs
// a line of the journal. Objects come first and the journal last, so that a process that dies leaves nothing but
// objects that nobody needs.
func (s *Store) Snapshot(ctx context.Context, of Session, o SnapshotOptions) (snapshot.Node, error) {
	node, err := s.snapshot(ctx, of, o, nil)
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("snapshot session %s: %w", of.ID, err)
	}
	return node, nil
}

// snapshot takes one. same, when given, looks at the snapshots of this session with the same content, newest first, and
// says which of them will do.
func (s *Store) snapshot(ctx context.Context, of Session, o SnapshotOptions, same func(snapshot.Node) bool) (snapshot.Node, error) {
	node, err := s.newNode(of, o)
	if err != nil {
		return node, err
	}
	release, err := s.hold(ctx, useName, true)
	if err != nil {
		return node, err
	}
	defer release()
	objects := s.objects()
	m := &meter{}
	files, err := objects.take(ctx, of, m)
	if err != nil {
		return node, err
	}
	content, err := objects.putContents(files)
	if err != nil {
		return node, err
	}
	objects.sync()
	node.Messages, node.Tokens, node.Hash = m.messages, m.tokens(), files.Files[0].SHA256
	err = s.write(ctx, func(j *journal) ([]*record, error) {
		for _, r := range slices.Backward(j.records) {
			if same != nil && r.Node.Session == of.ID && r.Content == content && same(*r.Node) {
				node = *r.Node
				return nil, nil
			}
		}
		node.Parent = j.snapshotOf(of.ID)
		if n, ok := j.made(of.ID, files.Files[0].Size); ok { // the log of a branch reports no calls
			node.Tokens = n
		}
		first(&m.project, of.Project)
		return []*record{{Op: opSnapshot, Node: &node, Content: content, Bytes: files.Files[0].Size, Project: m.project}}, nil
	})
	return node, err
}

// newNode is what is known of a snapshot before its content is read.
func (s *Store) newNode(of Session, o SnapshotOptions) (snapshot.Node, error) {
	now := s.now()
	if o.Name == "" {
		o.Name = snapshotName(of, now)
	}
	node := snapshot.Node{ID: idPrefix + strings.ToLower(tidemark.NewID(now)), Kind: snapshot.KindSnapshot, Of: snapshot.OfClaude,
		Name: o.Name, Session: of.ID, Description: o.Description, Tags: o.Tags, Created: now}
	return node, errors.Join(checkSessionID(of.ID), node.Check())
}

// take keeps the log and what lies beside it.
func (o *objects) take(ctx context.Context, of Session, m *meter) (contents, error) {
	log, err := o.takeLog(ctx, of.Path, "", m)
	if err != nil {
		return contents{}, err
	}
	if log.Size == 0 {
		return contents{}, fmt.Errorf("its log %s has no whole line: %w", of.Path, tidemark.ErrInvalid)
	}
	files := contents{Files: []kept{log}}
	sides, err := sideFiles(of.folder())
	if err != nil {
		return files, err
	}
	for _, path := range sides {
		side, err := o.takeLog(ctx, filepath.Join(of.folder(), filepath.FromSlash(path)), path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err != nil {
			return files, err
		}
		files.Files = append(files.Files, side)
	}
	return files, nil
}

// takeLog keeps a file as it is now. Of a log, a last line that is not whole is left out: somebody is writing it.
func (o *objects) takeLog(ctx context.Context, path, name string, m *meter) (kept, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return kept{}, fmt.Errorf("%s is no file: %w", path, tidemark.ErrInvalid)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, fmt.Errorf("there is no file %s: %w", path, errors.Join(tidemark.ErrNotFound, fs.ErrNotExist))
	}
	if err != nil {
		return kept{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return kept{}, err
	}
	if !info.Mode().IsRegular() {
		return kept{}, fmt.Errorf("%s is no file: %w", path, tidemark.ErrInvalid)
	}
	c := newCutter(o, name)
	now := io.NewSectionReader(f, 0, info.Size())
	if !strings.HasSuffix(path, logSuffix) {
		if _, err := io.Copy(c, now); err != nil {
			return kept{}, fmt.Errorf("keep %s: %w", path, err)
		}
		return c.finish()
	}
	for l, err := range transcript.Lines(now, transcript.Options{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && l.Err != nil && !l.Long && l.Offset+l.Size == info.Size() && !l.Ended() {
			break
		}
		if err == nil {
			m.add(l)
			err = c.line(l)
		}
		if err != nil {
			return kept{}, fmt.Errorf("keep %s: %w", path, err)
		}
	}
	return c.finish()
}

// sideFiles lists what lies beside a log in the folder of its session, as paths below it with slashes. Links and what
// is no file are not followed.
func sideFiles(folder string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case e.IsDir() && strings.Count(rel, "/") >= maxSideDepth-1:
			return fmt.Errorf("%s lies over %d folders deep: %w", path, maxSideDepth, tidemark.ErrTooLarge)
		case !e.Type().IsRegular():
			return nil
		case len(paths) >= maxSideFiles:
			return fmt.Errorf("%s has over %d files: %w", folder, maxSideFiles, tidemark.ErrTooLarge)
		}
		paths = append(paths, rel)
		return nil
	})
	return paths, err
}

// snapshotName makes a name of what a session is about and of the time.
func snapshotName(of Session, now time.Time) string {
	about := of.Title
	first(&about, of.Prompt)
	first(&about, of.ID[:min(len(of.ID), 8)])
	return named(about, now)
}

// dated is the time that [named] puts behind a name.
var dated = regexp.MustCompile(`( \d{4}-\d\d-\d\d \d{4})+$`)

// named is a name that passes [snapshot.CheckName]: what a text has of letters and digits, and the time. One that has a
// time already gets the new one instead.
func named(about string, now time.Time) string {
	const room = 60
	about = dated.ReplaceAllString(about, "")
	var b []rune
	for _, r := range about {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !strings.ContainsRune("-_.", r) {
			r = ' '
		}
		if r != ' ' || len(b) > 0 && b[len(b)-1] != ' ' {
			b = append(b, r)
		}
	}
	about = strings.TrimSpace(string(b[:min(len(b), room)]))
	return strings.TrimSpace(about + " " + now.Local().Format("2006-01-02 1504"))
}

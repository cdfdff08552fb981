package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/transcript"
)

// more is what an archive says of a session log beside its node.
type more struct {
	Project string `json:"project,omitempty"` // the folder in which the session ran, on the machine it comes from
}

// Export writes a snapshot with its lineage as an archive (package snapshot). Neither the log nor what lies beside it
// stands in memory.
func (s *Store) Export(ctx context.Context, ref string, w io.Writer) error {
	if err := s.export(ctx, ref, w); err != nil {
		return fmt.Errorf("export snapshot: %w", err)
	}
	return nil
}

func (s *Store) export(ctx context.Context, ref string, w io.Writer) error {
	release, err := s.hold(ctx, useName, true)
	if err != nil {
		return err
	}
	defer release()
	j, err := s.journal()
	if err != nil {
		return err
	}
	r, files, err := s.kept(ctx, ref)
	if err != nil {
		return err
	}
	extra, err := json.Marshal(more{Project: r.Project})
	if err != nil {
		return err
	}
	a, err := snapshot.NewWriter(w, snapshot.Manifest{Kind: snapshot.OfClaude, Created: s.now(), Node: *r.Node,
		Lineage: j.lineage(r), Bytes: files.Files[0].Size, More: extra})
	if err != nil {
		return err
	}
	objects := s.objects()
	for i, k := range files.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i == 0 {
			err = a.Log(k.Size, objects.reader(k))
		} else {
			err = a.Side(k.Path, k.Size, objects.reader(k))
		}
		if err != nil {
			return err
		}
	}
	return a.Close()
}

// lineage lists the ancestors of a node, root first. A circle, which only a journal edited by hand has, ends it.
func (j *journal) lineage(r *record) []snapshot.Node {
	var up []snapshot.Node
	seen := map[string]bool{r.Node.ID: true}
	for parent := r.Node.Parent; parent != "" && !seen[parent]; {
		seen[parent] = true
		p, ok := j.byID[parent]
		if !ok {
			break
		}
		up = append(up, *p.Node)
		parent = p.Node.Parent
	}
	slices.Reverse(up)
	return up
}

// Import takes in an archive. Its snapshot keeps its id, so the same archive twice is one snapshot, and what was damaged
// of it here is whole again; ancestors that are not here come as names without content. Nothing is listed before the archive was read to its end and found whole.
//
// # Errors
//
// tidemark.ErrInvalid for what is no archive, a damaged one, or one of another kind; tidemark.ErrTooLarge for one over
// the limits of package snapshot; tidemark.ErrConflict when another content has the id.
func (s *Store) Import(ctx context.Context, r io.Reader) (snapshot.Node, error) {
	node, err := s.importArchive(ctx, r)
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("import snapshot: %w", err)
	}
	return node, nil
}

func (s *Store) importArchive(ctx context.Context, in io.Reader) (snapshot.Node, error) {
	a, err := snapshot.NewReader(in, snapshot.Limits{})
	if err != nil {
		return snapshot.Node{}, err
	}
	m := a.Manifest()
	if err := checkImported(m); err != nil {
		return m.Node, err
	}
	release, err := s.hold(ctx, useName, true)
	if err != nil {
		return m.Node, err
	}
	defer release()
	if err := s.clearTemp(); err != nil {
		return m.Node, err
	}
	objects := s.objects()
	files, err := objects.receive(ctx, a)
	if err != nil {
		return m.Node, err
	}
	if got := files.Files[0].SHA256; got != m.Node.Hash {
		return m.Node, fmt.Errorf("the log has the hash %s, its node says %s: %w", got, m.Node.Hash, tidemark.ErrInvalid)
	}
	content, err := objects.putContents(files)
	if err != nil {
		return m.Node, err
	}
	objects.sync()
	var extra more
	if len(m.More) > 0 && json.Unmarshal(m.More, &extra) != nil || strings.ContainsFunc(extra.Project, isControl) {
		extra = more{}
	}
	node := m.Node
	var other *record // of the same log, with something else beside it
	err = s.write(ctx, func(j *journal) ([]*record, error) {
		if have, ok := j.byID[node.ID]; ok && have.Content != "" {
			if have.Node.Hash != node.Hash {
				return nil, fmt.Errorf("snapshot %s is here with another content: %w", node.ID, tidemark.ErrConflict)
			}
			if node = *have.Node; have.Content != content {
				other = have
			}
			return nil, nil
		}
		var records []*record
		for i := range m.Lineage {
			if up := &m.Lineage[i]; j.byID[up.ID] == nil && isSnapshotID(up.ID) && up.Of == snapshot.OfClaude && up.Kind == snapshot.KindSnapshot {
				records = append(records, &record{Op: opSnapshot, Node: up})
			}
		}
		return append(records, &record{Op: opSnapshot, Node: &node, Content: content, Bytes: files.Files[0].Size, Project: extra.Project}), nil
	})
	if err == nil && other != nil { // what it has of its own was not held against anything yet
		err = (&checking{objects: objects, seen: map[tidemark.Hash]error{}}).snapshot(ctx, other)
	}
	return node, err
}

func checkImported(m snapshot.Manifest) error {
	switch {
	case m.Kind != snapshot.OfClaude || m.Node.Of != snapshot.OfClaude:
		return fmt.Errorf("the archive is of a session of Tidemark, not of Claude Code: import it with --session: %w", tidemark.ErrInvalid)
	case m.Node.Kind != snapshot.KindSnapshot || m.Node.Hash == "":
		return fmt.Errorf("the archive holds no snapshot with a hash: %w", tidemark.ErrInvalid)
	case !isSnapshotID(m.Node.ID):
		return fmt.Errorf("id %.60q: want one that begins with %s: %w", m.Node.ID, idPrefix, tidemark.ErrInvalid)
	}
	return checkSessionID(m.Node.Session)
}

func isSnapshotID(id string) bool {
	return strings.HasPrefix(id, idPrefix) && checkSessionID(id) == nil
}

// receive keeps the files of an archive.
func (o *objects) receive(ctx context.Context, a *snapshot.Reader) (contents, error) {
	var log *kept
	var sides []kept
	for {
		m, err := a.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return contents{}, err
		}
		switch m.Kind {
		case snapshot.MemberLog, snapshot.MemberSide:
		default:
			continue
		}
		k, err := o.receiveFile(a, m)
		if err != nil {
			return contents{}, err
		}
		if m.Kind == snapshot.MemberLog {
			log = &k
		} else if sides = append(sides, k); len(sides) > maxSideFiles {
			return contents{}, fmt.Errorf("over %d files: %w", maxSideFiles, tidemark.ErrTooLarge)
		}
	}
	if log == nil || log.Size == 0 {
		return contents{}, fmt.Errorf("the archive has no log: %w", tidemark.ErrInvalid)
	}
	return contents{Files: append([]kept{*log}, sides...)}, nil
}

// receiveFile keeps one file. A log is cut at its lines, as it was where it comes from, so that the same snapshot is
// the same content.
func (o *objects) receiveFile(a *snapshot.Reader, m snapshot.Member) (kept, error) {
	c := newCutter(o, m.Path)
	if m.Kind == snapshot.MemberSide && !strings.HasSuffix(m.Path, logSuffix) {
		if _, err := io.Copy(c, a); err != nil {
			return kept{}, err
		}
		return c.finish()
	}
	for l, err := range transcript.Lines(a, transcript.Options{}) {
		if err == nil {
			err = c.line(l)
		}
		if err != nil {
			return kept{}, err
		}
	}
	return c.finish()
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

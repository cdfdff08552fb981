package claude

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark/snapshot"
)

// Node finds a snapshot or a branch by its id, its name, or the beginning of its id.
func (s *Store) Node(ctx context.Context, ref string) (snapshot.Node, error) {
	r, err := s.record(ctx, ref)
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("find snapshot: %w", err)
	}
	return *r.Node, nil
}

// Log writes the session log of a snapshot, byte for byte as it was.
func (s *Store) Log(ctx context.Context, ref string, w io.Writer) error {
	release, err := s.hold(ctx, useName, true)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	defer release()
	_, c, err := s.kept(ctx, ref)
	if err == nil {
		_, err = io.Copy(w, s.objects().reader(c.Files[0]))
	}
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	return nil
}

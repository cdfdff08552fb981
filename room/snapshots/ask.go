package snapshots

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// Answers implements room.Answerer.
func (s *Room) Answers() []string {
	return []string{tidemark.CommandSnapshot, tidemark.CommandBranch}
}

// Answer takes a snapshot, for whoever's conversation it is, or makes a trimmed branch, which only the owner can open.
func (s *Room) Answer(ctx context.Context, a room.Asked) (string, error) {
	ours := s.Key.Scope().Owner
	if ours && !a.Owner || a.Word == tidemark.CommandBranch && !(ours && a.Owner) {
		return "", fmt.Errorf("/%s: %w", a.Word, tidemark.ErrForbidden)
	}
	o := Options{}
	if a.ID != "" { // of the command's own: carried out twice, as after a crash, it takes one
		o.id = snapID(tidemark.NamedID(a.At, string(s.Key)+"\n"+a.ID))
	}
	if a.Word == tidemark.CommandBranch {
		b, err := s.Branch(ctx, BranchOptions{Name: a.Text, Trim: true, Of: o})
		if err != nil {
			return notMade("No branch was made", err)
		}
		return fmt.Sprintf("Branch: %s, from %d messages; it is open under that key", b.Key, b.Snapshot.Messages), nil
	}
	if o.Name = a.Text; !a.Owner {
		o.most = GuestNodes
	}
	n, err := s.Take(ctx, o)
	if err != nil {
		return notMade("No snapshot was taken", err)
	}
	return fmt.Sprintf("Snapshot: %s, with %d messages (%s)", n.Name, n.Messages, n.ID), nil
}

// notMade answers what a person can mend; all else is a failure of the command.
func notMade(what string, err error) (string, error) {
	for _, mended := range []error{tidemark.ErrInvalid, tidemark.ErrConflict, tidemark.ErrTooLarge, tidemark.ErrBusy} {
		if errors.Is(err, mended) {
			return what + ": " + err.Error(), nil
		}
	}
	return "", err
}

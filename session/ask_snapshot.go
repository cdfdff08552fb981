package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// askSnapshot takes a snapshot, for whoever's conversation it is.
func (s *Session) askSnapshot(ctx context.Context, r *run, name string, owner bool) (string, error) {
	if !owner && s.Scope().Owner {
		return s.notYours(), nil
	}
	o := SnapshotOptions{Name: name, id: s.askedID(r)}
	if !owner {
		o.most = guestNodes
	}
	n, err := s.Snapshot(ctx, o)
	if err != nil {
		return notMade("No snapshot was taken", err)
	}
	return fmt.Sprintf("Snapshot: %s, with %d messages (%s)", n.Name, n.Messages, n.ID), nil
}

// askBranch makes a trimmed branch. Only the owner can open one.
func (s *Session) askBranch(ctx context.Context, r *run, name string, owner bool) (string, error) {
	if !owner || !s.Scope().Owner {
		return s.notYours(), nil
	}
	b, err := s.Branch(ctx, BranchOptions{Name: name, Trim: true, Of: SnapshotOptions{id: s.askedID(r)}})
	if err != nil {
		return notMade("No branch was made", err)
	}
	return fmt.Sprintf("Branch: %s, from %d messages; it is open under that key", b.Key, b.Snapshot.Messages), nil
}

// askedID is the id of the snapshot that a command takes, of the command's own: carried out twice, as after a crash, it
// takes one.
func (s *Session) askedID(r *run) string {
	if r.command == nil {
		return ""
	}
	return snapID(tidemark.NamedID(r.command.At, string(s.Key)+"\n"+r.command.ID))
}

// notMade answers what a person can mend; all else is a failure of the command.
func notMade(what string, err error) (string, error) {
	for _, mended := range []error{tidemark.ErrInvalid, tidemark.ErrConflict, tidemark.ErrTooLarge, tidemark.ErrBusy} {
		if errors.Is(err, mended) {
			return what + ": " + Explain(err), nil
		}
	}
	return "", err
}

package session

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/lineage"
)

// Tracks lists the tracks of the conversation that the session is of, and the key of the one that is shown for its own: for
// the root of a client's conversation the main track, for any other key that one itself. Where there are no tracks both are
// empty.
func (s *Session) Tracks(ctx context.Context) (shown tidemark.Key, list []lineage.Track, err error) {
	list, err = lineage.Tracks(ctx, s.DB, s.Key)
	if err != nil || len(list) == 0 {
		return "", nil, err
	}
	if s.Key != s.Key.Root() {
		return s.Key, list, nil
	}
	return list[lineage.MainTrack(list)].Key, list, nil
}

// asMain has the row of a client's conversation tell of it as a whole, see lineage.Whole.
func (s *Session) asMain(ctx context.Context, i *tidemark.SessionInfo) error {
	if s.Key != s.Key.Root() {
		return nil
	}
	shown, list, err := s.Tracks(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	own, err := s.Override(ctx)
	if err == nil {
		lineage.Whole(i, shown, list, own.Title)
	}
	return err
}

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
)

// overlaysTo returns the overlays of a history up to a position, in order.
func (s *Session) overlaysTo(ctx context.Context, log string, until int64) ([]host.Mark, error) {
	marks, err := s.lineage.Overlays(ctx, log, 0)
	return slices.DeleteFunc(marks, func(m host.Mark) bool { return m.Seq > until }), err
}

// viewAt computes the view of a history as it was when its newest entry had a position, as it would be sent now, and gives it
// to use while there is memory for it.
func (s *Session) viewAt(ctx context.Context, log string, until int64, use func(View) error) error {
	marks, err := s.overlaysTo(ctx, log, until)
	if err != nil {
		return err
	}
	then, err := s.editsOf(ctx, marks)
	if err != nil {
		return err
	}
	then.until = until
	var give func()
	v, err := s.viewOf(ctx, log, then, func(bytes int64) (err error) {
		give, err = s.room(ctx, bytes)
		return err
	})
	if give != nil {
		defer give()
	}
	if err != nil {
		return err
	}
	return use(v)
}

// viewAsOf computes the view of a log as it was when its newest entry had a position, with the messages, overlays and lifts up
// to there, and gives it to use while there is memory for it.
func (s *Session) viewAsOf(ctx context.Context, log string, until int64, use func(compaction.View) error) error {
	marks, err := s.overlaysTo(ctx, log, until)
	if err != nil {
		return err
	}
	then, err := s.editsOf(ctx, marks)
	if err != nil {
		return err
	}
	shown, layout, err := s.layout(ctx, then.placed)
	if err != nil {
		return err
	}
	hideBehind(&layout, until)
	leave := func() {}
	defer func() { leave() }()
	entries, err := s.visible(ctx, log, layout, func(bytes int64) error {
		release, err := s.room(ctx, bytes)
		if release != nil {
			leave = release
		}
		return err
	})
	if err != nil {
		return err
	}
	v, err := compaction.Assemble(entries, shown)
	if err != nil {
		return fmt.Errorf("assemble view of %s: %w", log, err)
	}
	return use(v)
}

// lookMost is how large a view is that is read to weigh it: what no model takes is estimated.
const lookMost tidemark.Tokens = 2_000_000

// weighAt is how many tokens a model would read at a place. What does not fit into memory is taken by its estimates. With
// check, a view that is read is refused where it is no conversation.
func (s *Session) weighAt(ctx context.Context, log string, upTo int64, check bool) (size tidemark.Tokens, err error) {
	marks, err := s.overlaysTo(ctx, log, upTo)
	if err != nil {
		return 0, err
	}
	placed, err := s.place(ctx, marks)
	if err != nil {
		return 0, err
	}
	for _, gap := range compaction.Lay(placed).Gaps(1, upTo) {
		_, n, err := s.log.Count(ctx, log, host.Range{From: gap.From, To: gap.To}, 1<<40)
		if size += n; err != nil {
			return 0, err
		}
	}
	if size > lookMost {
		return size, nil
	}
	read := tidemark.Tokens(0)
	err = s.viewAt(ctx, log, upTo, func(v View) error {
		if read = v.Size; check && len(v.Items) > 0 {
			return tidemark.Check(v.Messages())
		}
		return nil
	})
	if errors.Is(err, errHeavy) {
		return size, nil
	}
	return read, err
}

// hideBehind has a layout show nothing behind a position.
func hideBehind(l *compaction.Layout, until int64) {
	if until > 0 {
		l.Hidden = append(l.Hidden, compaction.Span{From: until + 1, To: host.LogEnd})
	}
}

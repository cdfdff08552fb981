package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// TestReasons: only what cannot be read of the client's is unreadable, and a client that has gone is no reason.
func TestReasons(t *testing.T) {
	_, scan := body.Scan(body.Messages, []byte(`{"messages":[{"role":"user","content":"a"},{"role":"user","role":"user"}]}`))
	_, ours := body.NewItem([]byte("{"))
	for _, row := range []struct {
		err       error
		kind, why string
	}{
		{&scanError{scan}, Unreadable, "message 2 cannot be read: the key role stands twice (byte 65)"},
		{fmt.Errorf("apply: %w", ours), Other, oneLine(fmt.Sprintf("apply: %v", ours))},
		{&scanError{tidemark.ErrTooLarge}, TooLarge, oneLine(tidemark.ErrTooLarge.Error())},
		{fmt.Errorf("read the log: %w", context.Canceled), "", ""},
	} {
		x := &Exchange{c: &Conversation{Config: Config{Logger: slog.New(slog.DiscardHandler)}}}
		if kind, why := x.untouched(row.err).Untouched(); kind != row.kind || why != row.why {
			t.Errorf("%v: %q, %q, want %q, %q", row.err, kind, why, row.kind, row.why)
		}
	}
}

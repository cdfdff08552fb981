package setup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/setup"
)

// TestAddressee: schedules write to the owner and to who was let in, as long as they are, over channels of the agent.
func TestAddressee(t *testing.T) {
	ctx := t.Context()
	book, err := channel.OpenBook(ctx, hosttest.DB(t), hosttest.Runtime(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	stand := func(name string, as channel.Standing) {
		if _, err := book.Stand(ctx, "whatsapp", []string{name}, "", as); err != nil {
			t.Fatal(err)
		}
	}
	stand("4915112345678", channel.Owner)
	stand("4915187654321", channel.Approved)
	stand("4915100000000", channel.Blocked)
	channels := map[string]channel.Channel{"whatsapp": {Rules: channel.Rules{Agent: "main", Account: "100"}}, "telegram": {Rules: channel.Rules{Agent: "work"}}}
	find := setup.Addressee("main", channels, func(context.Context, string) (*channel.Book, error) { return book, nil })
	for name, row := range map[string]struct {
		to, peer string
		err      error
	}{
		"the owner":        {"whatsapp:+49 151 12345678", "4915112345678", nil},
		"one let in":       {"whatsapp:4915187654321", "4915187654321", nil},
		"one kept out":     {"whatsapp:4915100000000", "", tidemark.ErrForbidden},
		"a stranger":       {"whatsapp:4915199999999", "", tidemark.ErrForbidden},
		"another agent's":  {"telegram:123456", "", tidemark.ErrInvalid},
		"no such platform": {"pigeon:123456", "", tidemark.ErrInvalid},
		"no name":          {"whatsapp", "", tidemark.ErrInvalid},
	} {
		o, err := find(ctx, row.to)
		if !errors.Is(err, row.err) || (err == nil) != (o.To != nil) {
			t.Errorf("%s: %+v, %v", name, o, err)
			continue
		}
		if o.To != nil && *o.To != (tidemark.Address{Platform: "whatsapp", Account: "100", Peer: row.peer}) {
			t.Errorf("%s: %+v", name, o.To)
		}
	}
	stand("4915187654321", channel.Blocked)
	if _, err := find(ctx, "whatsapp:4915187654321"); !errors.Is(err, tidemark.ErrForbidden) {
		t.Errorf("one who was let in: %v", err)
	}
}

package worker

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// People finds who may talk with an agent over messaging platforms.
type People func(ctx context.Context, agent string) (*channel.Book, error)

// GivenUp lists what an agent received over channels and gave up.
type GivenUp func(ctx context.Context, agent string) ([]channel.Stuck, error)

// getWebhooks lists them.
func getWebhooks(c *request) (any, error) {
	name := c.r.PathValue("agent")
	if _, err := c.owner(name); err != nil {
		return nil, err
	}
	if c.GivenUp == nil {
		return nil, fmt.Errorf("channels are not set up: %w", tidemark.ErrNotFound)
	}
	list, err := c.GivenUp(c.r.Context(), name)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []channel.Stuck{}
	}
	return map[string]any{"givenUp": list}, nil
}

// book returns the desk of the agent that the path names.
func (c *request) book() (*channel.Book, error) {
	if _, err := c.owner(c.r.PathValue("agent")); err != nil {
		return nil, err
	}
	if c.People == nil {
		return nil, fmt.Errorf("channels are not set up: %w", tidemark.ErrNotFound)
	}
	return c.People(c.r.Context(), c.r.PathValue("agent"))
}

// getPairing lists who waits for a code to be entered, and who may talk.
func getPairing(c *request, b *channel.Book) (any, error) {
	return b.List(c.r.Context())
}

// decision is what the owner says of a person: by a code, or by a name on a channel.
type decision struct {
	approve, deny, link string // a code; link with channel a name
	block, forget       string // a name
	channel             string
}

// decide reads a decision: one of the words, and a channel where a name stands.
func (c *request) decide(words ...field) (*channel.Book, error) {
	b, err := c.book()
	if err != nil {
		return nil, err
	}
	if c.decode(words...); c.bad != nil {
		return nil, c.bad
	}
	given := 0
	for _, w := range words[1:] {
		if *w.into.(*string) != "" {
			given++
		}
	}
	if given != 1 {
		return nil, fmt.Errorf("want one of %s: %w", names(words[1:]), tidemark.ErrInvalid)
	}
	return b, nil
}

func names(fields []field) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name + " (" + f.want + ")"
	}
	return strings.Join(out, ", ")
}

// What the words of a decision are for people.
const (
	wantCode    = "a pairing code"
	wantName    = "a number or id, with channel"
	wantChannel = "whatsapp or telegram"
)

// postPairing lets someone in, or keeps them out.
func postPairing(c *request) (any, error) {
	var in decision
	b, err := c.decide(field{"channel", wantChannel, &in.channel}, field{"approve", wantCode, &in.approve}, field{"deny", wantCode, &in.deny},
		field{"block", wantName, &in.block}, field{"forget", wantName, &in.forget})
	if err != nil {
		return nil, err
	}
	ctx := c.r.Context()
	var out channel.Known
	switch {
	case in.approve != "":
		out, err = b.Approve(ctx, in.approve, channel.Approved)
	case in.deny != "":
		out, err = b.Deny(ctx, in.deny)
	case in.block != "":
		out, err = stand(ctx, b, in.channel, in.block, channel.Blocked)
	default:
		out, err = stand(ctx, b, in.channel, in.forget, channel.Stranger)
	}
	return out, err
}

// stand gives the one whom an owner names a standing.
func stand(ctx context.Context, b *channel.Book, platform, name string, as channel.Standing) (channel.Known, error) {
	name, err := channel.Named(platform, name)
	if err != nil {
		return channel.Known{}, err
	}
	return b.Stand(ctx, platform, []string{name}, "", as)
}

// getOwner lists the owner's own names.
func getOwner(c *request, b *channel.Book) (any, error) {
	list, err := b.List(c.r.Context())
	if err != nil {
		return nil, err
	}
	out := []channel.Known{}
	for _, k := range list.People {
		if k.Standing == channel.Owner {
			out = append(out, k)
		}
	}
	return map[string]any{"owner": out}, nil
}

// postOwner makes a person on a channel the owner, whose direct messages are the main session, or ends
// that.
func postOwner(c *request) (any, error) {
	var in decision
	b, err := c.decide(field{"channel", wantChannel, &in.channel}, field{"link", wantCode + ", or " + wantName, &in.link}, field{"unlink", wantName, &in.forget})
	if err != nil {
		return nil, err
	}
	ctx := c.r.Context()
	var out channel.Known
	switch {
	case in.forget != "":
		out, err = stand(ctx, b, in.channel, in.forget, channel.Stranger)
	case in.channel == "":
		out, err = b.Approve(ctx, in.link, channel.Owner)
	default:
		out, err = stand(ctx, b, in.channel, in.link, channel.Owner)
	}
	return out, err
}

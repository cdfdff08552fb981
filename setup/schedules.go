package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/whatsapp"
	"github.com/tidemark-ai/tidemark/config"
)

// Addressee returns what [agent.Config] finds people by, to whom the answers of an agent's schedules go: the owner, and
// those whom the owner has let in. It asks the desk each time, so who is let in no more gets nothing more.
func Addressee(name string, channels map[string]channel.Channel, people func(ctx context.Context, agent string) (*channel.Book, error)) func(context.Context, string) (tidemark.Origin, error) {
	return func(ctx context.Context, to string) (tidemark.Origin, error) {
		platform, given, ok := strings.Cut(to, ":")
		if !ok {
			return tidemark.Origin{}, fmt.Errorf("want owner, or a channel and a name such as whatsapp:+4915123456789: %w", tidemark.ErrInvalid)
		}
		given, err := channel.Named(platform, given)
		if err != nil {
			return tidemark.Origin{}, err
		}
		ch, ok := channels[platform]
		if !ok || ch.Rules.Agent != name {
			return tidemark.Origin{}, fmt.Errorf("channel %s is not set up for agent %s: %w", platform, name, tidemark.ErrInvalid)
		}
		book, err := people(ctx, name)
		if err != nil {
			return tidemark.Origin{}, err
		}
		list, err := book.List(ctx)
		if err != nil {
			return tidemark.Origin{}, err
		}
		for _, k := range list.People {
			if k.Channel != platform || !slices.Contains(k.Names, given) || k.Standing != channel.Owner && k.Standing != channel.Approved {
				continue
			}
			if platform == whatsapp.Name && ch.Rules.Account == "" {
				return tidemark.Origin{}, fmt.Errorf("set channels.whatsapp.phoneNumberId, to say which number writes: %w", tidemark.ErrInvalid)
			}
			return tidemark.Origin{Peer: k.Name, Owner: k.Standing == channel.Owner, To: &tidemark.Address{Platform: platform, Account: ch.Rules.Account, Peer: given}}, nil
		}
		return tidemark.Origin{}, fmt.Errorf("%s on %s is not somebody whom you have let in (`tidemark pairing ls`): %w", given, platform, tidemark.ErrForbidden)
	}
}

// scheduling is what a configuration says of schedules.
func scheduling(c *config.Config, out *agent.Config) {
	out.NoSchedules = !c.Schedules.Enabled
}

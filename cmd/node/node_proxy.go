package node

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/setup"
)

// proxied is worker.Config.Proxies: the conversation of a client that keeps its history itself. It lives in the seat of
// its session, and is forgotten with it.
func (n *Node) proxied(ctx context.Context, key tidemark.Key) (*proxy.Conversation, error) {
	s, err := n.Session(ctx, key, true)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	st := n.live[key]
	n.mu.Unlock()
	if st == nil || st.s != s {
		return nil, fmt.Errorf("conversation %s was forgotten in this moment: %w", key, tidemark.ErrBusy)
	}
	o, err := n.Owner(key.Agent(), false)
	if err != nil {
		return nil, err
	}
	st.opening.Lock()
	defer st.opening.Unlock()
	if st.guest != nil {
		return st.guest, nil
	}
	guest, err := proxy.Open(ctx, proxy.Config{Key: key, DB: n.store(o.DB), Home: n.metrics.Home(setup.Home(s)), Runtime: n.RT, Logger: n.log, Settings: setup.Proxy(n.Cfg)})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	st.guest = guest
	return guest, nil
}

package node

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidemark-ai/tidemark/agent"
)

// Working reports whether a turn is in work.
func (n *Node) Working() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, st := range n.live {
		if st.s != nil && (st.s.Working() || st.guest != nil && !st.guest.Quiet()) {
			return true
		}
	}
	return false
}

// Drain starts nothing more by itself and waits until no turn is in work.
func (n *Node) Drain(ctx context.Context) {
	n.awake.Store(false)
	n.quiet.Do(n.alarms.Close)
	const look = 20 * time.Millisecond
	for n.Working() && n.RT.Sleep(ctx, look) == nil {
	}
}

// Bounds of closing.
const (
	reportTime = 2 * time.Second // for sessions to tell their agent
	stopTime   = 5 * time.Second // for what was stopped to end
	settleTime = 5 * time.Second // for agents to write what is pending
)

// Close ends what is in work and closes the store. What is unfinished goes on when it is opened
// again; a caller that wants turns to finish drains first.
func (n *Node) Close() error {
	n.awake.Store(false) // agents settle below, and no session is opened any more
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.quiet.Do(n.alarms.Close)
	n.wait(reportTime)
	n.end()
	n.wait(stopTime)
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	errs := n.closeTools()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.agents {
		if o.agent != nil {
			n.settle(ctx, o.agent)
			errs = append(errs, o.DB.Close())
		}
	}
	if c, ok := n.blobs.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (n *Node) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := n.RT.Wait(ctx); err != nil {
		n.log.Debug("stop", "err", err)
	}
}

// settle lets an agent write what is pending; a file is written at most every two seconds.
func (n *Node) settle(ctx context.Context, a *agent.Agent) {
	const tries = 3
	for range tries {
		next, err := a.Wake(ctx)
		if err != nil || time.Until(next) > settleTime || n.RT.Sleep(ctx, time.Until(next)) != nil {
			return
		}
	}
}

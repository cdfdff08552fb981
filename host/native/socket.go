//go:build !js

package native

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of a socket.
const (
	// MaxFrame is how many bytes one message of a client may have.
	MaxFrame = 1 << 20

	maxUnsent  = 32 << 20 // bytes that wait for a client that does not read
	maxFrames  = 8192     // messages that do
	socketPing = 30 * time.Second
	socketPong = 20 * time.Second // longest wait for the answer to a ping
	writeTime  = 30 * time.Second // longest write of one message
)

// Sockets accepts WebSockets (https://www.rfc-editor.org/rfc/rfc6455) and holds them.
type Sockets struct {
	rt *Runtime
	// Between two pings, for the answer to one, and for the write of one message; tests set others
	// before the first socket.
	Ping, Pong, Write time.Duration

	life context.Context // ends when Close does its work
	end  context.CancelFunc

	mu   sync.Mutex // guards the following
	open map[*socket]bool
	shut bool          // nobody is accepted any more
	gone chan struct{} // closed when the last one has left; nil until Close waits
}

// NewSockets returns sockets whose goroutines rt starts.
func NewSockets(rt *Runtime) *Sockets {
	s := &Sockets{rt: rt, Ping: socketPing, Pong: socketPong, Write: writeTime, open: map[*socket]bool{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Accept answers a request with a socket, and returns when that has ended. What stands behind it has
// admitted the request already; id, note and h are as in [tidemark.SocketHandler].
func (s *Sockets) Accept(w http.ResponseWriter, r *http.Request, id, protocol, note string, h tidemark.SocketHandler) error {
	o := &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled} // origins are the guard's
	if protocol != "" {
		o.Subprotocols = []string{protocol}
	}
	c, err := websocket.Accept(w, r, o)
	if err != nil {
		return fmt.Errorf("accept socket: %w", err)
	}
	c.SetReadLimit(MaxFrame)
	k := &socket{s: s, c: c, id: id, ready: make(chan struct{}, 1)}
	if !s.add(k) {
		return c.Close(websocket.StatusGoingAway, "the server is stopping")
	}
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	h.Opened(s.life, k, note, false)
	s.rt.Go(func() {
		defer cancel()
		k.write(ctx)
	})
	defer s.remove(k)
	defer h.Closed(id)
	defer func() { _ = k.c.CloseNow() }()
	for {
		kind, raw, err := c.Read(ctx)
		if err != nil {
			return nil // its status says all there is to say
		}
		if kind != websocket.MessageText {
			k.Close(int(websocket.StatusUnsupportedData), "text only")
			continue
		}
		h.Received(ctx, id, string(raw))
	}
}

func (s *Sockets) add(k *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.open[k] = true
	return true
}

func (s *Sockets) remove(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
	s.leave()
}

// Close tells every client that the server goes away, waits a moment for them to hear it, and ends what
// is open then.
func (s *Sockets) Close() {
	const farewell = time.Second
	defer s.end()
	s.mu.Lock()
	gone := make(chan struct{})
	s.shut, s.gone = true, gone
	for k := range s.open {
		k.Close(int(websocket.StatusGoingAway), "the server is stopping")
	}
	s.leave()
	s.mu.Unlock()
	ctx, cancel := s.rt.WithTimeout(context.Background(), farewell)
	defer cancel()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// leave says that nobody is there any more, called with the lock held.
func (s *Sockets) leave() {
	if len(s.open) == 0 && s.gone != nil {
		close(s.gone)
		s.gone = nil
	}
}

var _ tidemark.Socket = (*socket)(nil)

// socket is one client.
type socket struct {
	s     *Sockets
	c     *websocket.Conn
	id    string
	ready chan struct{} // there is something to write

	mu      sync.Mutex // guards the following
	queue   []string
	bytes   int
	closing bool // nothing more is taken
	status  int
	reason  string
}

// ID implements tidemark.Socket.
func (k *socket) ID() string { return k.id }

// Send implements tidemark.Socket.
func (k *socket) Send(text string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return tidemark.ErrDead
	}
	if k.bytes > maxUnsent || len(k.queue) >= maxFrames {
		return tidemark.ErrBusy
	}
	k.queue = append(k.queue, text)
	k.bytes += len(text)
	k.wake()
	return nil
}

// Close implements tidemark.Socket.
func (k *socket) Close(status int, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return
	}
	k.closing, k.status, k.reason = true, status, reason
	k.wake()
}

func (k *socket) wake() {
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

// take returns what there is to write, and whether the end comes behind it.
func (k *socket) take() (texts []string, end bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	texts, k.queue, k.bytes = k.queue, nil, 0
	return texts, k.closing
}

// write sends what is queued, and pings, until the socket has ended. A client that does not take a
// message in time is cut off.
func (k *socket) write(ctx context.Context) {
	tick := time.NewTicker(k.s.Ping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.s.rt.Go(func() { k.ping(ctx) })
			continue
		case <-k.ready:
		}
		texts, end := k.take()
		for _, t := range texts {
			if k.writeOne(ctx, t) != nil {
				return
			}
		}
		if end {
			_ = k.c.Close(websocket.StatusCode(k.status), k.reason)
			return
		}
	}
}

func (k *socket) writeOne(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, k.s.Write)
	defer cancel()
	return k.c.Write(ctx, websocket.MessageText, []byte(text))
}

// ping ends the socket of a client that does not answer.
func (k *socket) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.s.Pong)
	defer cancel()
	if k.c.Ping(ctx) != nil {
		_ = k.c.CloseNow()
	}
}

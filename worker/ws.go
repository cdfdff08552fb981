package worker

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// Sockets is a host that can hold WebSockets.
type Sockets interface {
	// Accept answers an upgrade, which was admitted, with a socket of that id, and with protocol as the
	// one that was agreed on unless it is empty. h hears of the socket from then on. It may return
	// when the socket has ended, or at once.
	Accept(w http.ResponseWriter, r *http.Request, id, protocol, note string, h tidemark.SocketHandler) error
}

// SocketProtocol is what /ws speaks, as a subprotocol (docs/http.md, "Socket").
const SocketProtocol = "tidemark.v1"

const (
	// tokenProtocol begins a subprotocol that carries the token, which is all that a page can set.
	tokenProtocol = "tidemark.token."
	maxName       = 80 // bytes of what a client calls itself
)

// protocols are the subprotocols that a client offers.
func protocols(h http.Header) []string {
	var all []string
	for _, line := range h.Values("Sec-Websocket-Protocol") {
		for p := range strings.SplitSeq(line, ",") {
			if p = strings.TrimSpace(p); p != "" {
				all = append(all, p)
			}
		}
	}
	return all
}

// upgrades reports whether a request wants to become a socket.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// offeredToken is the token among the subprotocols. It stands there percent-encoded, since a
// subprotocol has fewer characters than a token may have.
func offeredToken(r *http.Request) string {
	if !upgrades(r) {
		return ""
	}
	for _, p := range protocols(r.Header) {
		given, ok := strings.CutPrefix(p, tokenProtocol)
		if !ok {
			continue
		}
		if plain, err := url.PathUnescape(given); err == nil {
			return plain
		}
		return given
	}
	return ""
}

// note is what a socket is remembered by while nothing of its room is in memory. What was sent is never
// less than it says: it is put down ahead.
type note struct {
	Key    tidemark.Key `json:"key"`
	Name   string       `json:"name,omitempty"`
	Sent   int64        `json:"sent,omitempty"`
	Marked int64        `json:"marked,omitempty"`
	Seen   int64        `json:"seen,omitempty"`
	Late   int64        `json:"late,omitempty"` // in ms
}

func (n note) String() string {
	raw, err := json.Marshal(n)
	if err != nil { // a type of ours
		panic(fmt.Sprintf("encode note of a socket: %v", err))
	}
	return string(raw)
}

// socketDoor is a request on its way to become a socket.
type socketDoor struct{ *request }

// openSocket turns a request into a socket of the session that its query names.
func openSocket(r *request) (any, error) {
	c := socketDoor{r}
	protocol, err := c.handshake()
	if err != nil {
		return nil, err
	}
	name, err := c.name()
	if err != nil {
		return nil, err
	}
	create := c.flag("create", false)
	s, err := c.asked(create)
	if err != nil {
		return nil, err
	}
	if c.Sockets == nil {
		return nil, &refused{http.StatusNotImplemented, "not_implemented", "this host holds no sockets; listen to /v1/sessions/{key}/events"}
	}
	if c.rooms.full(s.Key) {
		return nil, fmt.Errorf("%d sockets listen to this session already: %w", maxPeople, tidemark.ErrBusy)
	}
	n := note{Key: s.Key, Name: name, Sent: keptAhead}
	err = c.Sockets.Accept(c.w, c.r, tidemark.NewID(c.Runtime.Now()), protocol, n.String(), c.rooms)
	if c.w.status == 0 && err == nil {
		c.w.status = http.StatusSwitchingProtocols
	}
	return nil, err
}

// handshake holds a request to RFC 6455, §4.2.1, and agrees on the protocol. A client that offers
// none is one that cannot, and means ours.
func (c socketDoor) handshake() (protocol string, err error) {
	h := c.r.Header
	if !upgrades(c.r) || !strings.Contains(strings.ToLower(h.Get("Connection")), "upgrade") && c.r.ProtoMajor == 1 && h.Get("Connection") != "" {
		c.w.Header().Set("Upgrade", "websocket")
		c.w.Header().Set("Connection", "Upgrade")
		return "", &refused{http.StatusUpgradeRequired, "upgrade", "this route is a WebSocket: connect with ws:// or wss://"}
	}
	key, bad := base64.StdEncoding.DecodeString(h.Get("Sec-Websocket-Key"))
	if h.Get("Sec-Websocket-Key") != "" && (bad != nil || len(key) != 16) || h.Get("Sec-Websocket-Version") != "" && h.Get("Sec-Websocket-Version") != "13" {
		return "", fmt.Errorf("handshake: want Sec-WebSocket-Version 13 and a key of 16 bytes in base64: %w", tidemark.ErrInvalid)
	}
	offered := protocols(h)
	for _, p := range offered {
		if p == SocketProtocol {
			return p, nil
		}
	}
	if len(offered) > 0 {
		return "", fmt.Errorf("subprotocols: none of those offered is %s, which this server speaks: %w", SocketProtocol, tidemark.ErrInvalid)
	}
	return "", nil
}

// name is what a client calls itself, for others to see.
func (c socketDoor) name() (string, error) {
	s := c.r.URL.Query().Get("name")
	if len(s) > maxName || invalidUTF8([]byte(s)) >= 0 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("name: want up to %d bytes of text on one line: %w", maxName, tidemark.ErrInvalid)
	}
	return s, nil
}

// asked returns the session that ?session names.
func (c socketDoor) asked(create bool) (*session.Session, error) {
	if err := c.askedKey(); err != nil {
		return nil, err
	}
	return c.session(create)
}

// askedKey takes the key from the query, where a path has none.
func (c socketDoor) askedKey() error {
	key := c.r.URL.Query().Get("session")
	if key == "" {
		return fmt.Errorf("session: it is missing; name one, as in %s?session=main: %w", c.r.URL.Path, tidemark.ErrInvalid)
	}
	c.r.SetPathValue("key", key)
	return nil
}

// rootEvents is liveEvents at a path without the key.
func rootEvents(c *request) (any, error) {
	if err := (socketDoor{c}).askedKey(); err != nil {
		return nil, err
	}
	return in((*request).rooted, liveEvents)(c)
}

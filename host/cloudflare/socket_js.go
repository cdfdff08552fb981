package cloudflare

import (
	"context"
	"net/http"
	"syscall/js"

	"github.com/tidemark-ai/tidemark"
)

// Sockets are the WebSockets of an object. JavaScript holds them (build/sockets.mjs) and the platform
// keeps them while the object sleeps; Go knows their ids, which an object that was opened anew is given
// again.
type Sockets struct{ o *Obj }

// Sockets returns those of the object.
func (o *Obj) Sockets() Sockets { return Sockets{o} }

// Accept answers a request with a socket, at once; see worker.Sockets.
func (s Sockets) Accept(w http.ResponseWriter, _ *http.Request, id, protocol, note string, h tidemark.SocketHandler) error {
	res, err := responseOf(w)
	if err != nil {
		return err
	}
	header := res.header.Clone()
	if protocol != "" {
		header.Set("Sec-Websocket-Protocol", protocol)
	}
	head := toBytes(packRows(append([]any{http.StatusSwitchingProtocols}, flatten(header)...)))
	if _, err := s.o.host("socketOpen", res.n, head, toBytes(packRows([]any{id, note}))); err != nil {
		return err
	}
	res.status = http.StatusSwitchingProtocols // the call has its answer: what finish sends, nobody waits for
	h.Opened(s.o.ctx, &socket{s.o, id}, note, false)
	return nil
}

// responseOf finds our response below those that wrap it.
func responseOf(w http.ResponseWriter) (*response, error) {
	for {
		switch t := w.(type) {
		case *response:
			return t, nil
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil, http.ErrNotSupported
		}
	}
}

// restore gives an object that was opened anew the sockets that an earlier life accepted.
func (o *Obj) restore() error {
	if o.app.Sockets == nil {
		return nil
	}
	v, err := o.host("socketDo", "list")
	if err != nil {
		return err
	}
	rows, err := unpackRows(fromBytes(v))
	if err != nil {
		return err
	}
	for _, row := range rows {
		o.app.Sockets.Opened(o.ctx, &socket{o, row.Text(0)}, row.Text(1), true)
	}
	return nil
}

// hear tells what happened to a socket: the row [what, id, text].
func (o *Obj) hear(ctx context.Context, n int, payload js.Value) {
	err := o.guarded(func() error {
		rows, err := unpackRows(fromBytes(payload))
		if err != nil || len(rows) != 1 || len(rows[0]) != 3 {
			return errWire
		}
		row, h := rows[0], o.app.Sockets
		if h == nil {
			return nil
		}
		switch row.Text(0) {
		case "message":
			h.Received(ctx, row.Text(1), row.Text(2))
		case "close":
			h.Closed(row.Text(1))
		}
		return nil
	})
	if err != nil {
		o.tell("fail", n, err.Error())
		return
	}
	o.tell("done", n)
}

var _ tidemark.Socket = (*socket)(nil)

// socket is one that JavaScript holds.
type socket struct {
	o  *Obj
	id string
}

// ID implements tidemark.Socket.
func (k *socket) ID() string { return k.id }

// Send implements tidemark.Socket. The platform tells nothing of what a client has not read: the door
// bounds that.
func (k *socket) Send(text string) error {
	_, err := k.o.host("socketDo", "send", toBytes(packRows([]any{k.id})), text)
	return err
}

// Cast is Send to many at once, which costs one crossing.
func (k *socket) Cast(to []tidemark.Socket, text string) {
	ids := make([]any, len(to))
	for i, s := range to {
		ids[i] = s.ID()
	}
	k.o.tell("socketDo", "send", toBytes(packRows(ids)), text)
}

// Keep implements worker.Keeper.
func (k *socket) Keep(note string) {
	k.o.tell("socketDo", "keep", k.id, note)
}

// Close implements tidemark.Socket.
func (k *socket) Close(status int, reason string) {
	k.o.tell("socketDo", "close", k.id, status, reason)
}

package tidemark

import "context"

// Socket is one open WebSocket of a client. Its methods do not wait, and many goroutines may call them
// at once.
type Socket interface {
	// ID names the socket while it is open, also in a later life of the object that holds it.
	ID() string
	// Send hands over one text message. ErrBusy: the client has left too much unread; ErrDead: it has
	// left. What was handed over comes in order or not at all.
	Send(text string) error
	// Close ends the socket with a status of RFC 6455 and a reason of up to 120 bytes, behind what was
	// handed over before. Its handler is told by Closed.
	Close(status int, reason string)
}

// SocketHandler hears of the sockets of a host: natively of all, on Workers of those of one object. Its
// methods may be called at once for different sockets.
type SocketHandler interface {
	// Opened is the first that is heard of a socket in this life. note is what it was accepted with;
	// again says that an earlier life accepted it, and that messages may have passed it by since. ctx
	// ends with the life of the object. Opened does not wait.
	Opened(ctx context.Context, s Socket, note string, again bool)
	// Received is called for each text message, in order. Natively the next one waits for its return, so
	// that who sends too fast is not read.
	Received(ctx context.Context, id, text string)
	// Closed is the last that is heard of a socket.
	Closed(id string)
}

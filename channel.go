package tidemark

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Address is a person or a group on a platform, and who of ours talks with them.
type Address struct {
	Platform string `json:"platform"`          // whatsapp, telegram
	Account  string `json:"account,omitempty"` // our number or bot, as the platform names it
	Peer     string `json:"peer"`              // phone number, user id or chat id, as the platform takes it
	Group    bool   `json:"group,omitempty"`
}

// Reader names who reads what is said to an address and to no person that is known, in one string.
func (a Address) Reader() string {
	return strings.Join([]string{a.Platform, a.Account, a.Peer}, readerSeparator)
}

// Reader names who reads the answer to what came from an origin with an address: what one reads is sent in order. A person
// whom the platform names now by a number and now by an id is one, on each account that they write to.
func (o Origin) Reader() string {
	if o.To.Group || o.Peer == "" {
		return o.To.Reader()
	}
	return strings.Join([]string{o.To.Platform, o.To.Account, "", o.Peer}, readerSeparator) // no address has an empty peer
}

const readerSeparator = "\x1f"

// Outgoing is one message on its way to a platform.
type Outgoing struct {
	To    Address
	Ref   string // names its row in the ledger of a session, see RefKey; a platform gives it back with the message's status
	Text  string // in the platform's own markup, within its bound: a part that [Courier.Parts] made
	Quote string // platform's id of the message that it answers; empty for none
}

// RefKey returns the session that a ref is of: "{session key}/{row}". ok is false for anything that is not
// exactly that: other software may send over the same account.
func RefKey(ref string) (key Key, ok bool) {
	head, row, _ := strings.Cut(ref, "/") // a key has no slash
	n, err := strconv.ParseInt(row, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != row {
		return "", false
	}
	key, err = ParseKey(head)
	return key, err == nil && string(key) == head
}

// Courier carries messages over platforms. Its methods may be called at once.
type Courier interface {
	// Parts turns a text in Markdown into the messages that the platform takes, in order, in its markup
	// and within its bounds. It is pure: the same text gives the same parts.
	Parts(to Address, markdown string) []string
	// Send hands over one message and returns the platform's id of it. It tries once: whether, and when,
	// it is tried again is for the ledger to say.
	//
	// # Errors
	//
	// A *SendError, always.
	Send(ctx context.Context, m Outgoing) (id string, err error)
	// Working shows the person that what they wrote (message is the platform's id) was read and that an
	// answer is being written. It lasts some 20 s; where a platform shows it for less, Working takes that
	// time and repeats it, until ctx ends. An error is of no consequence.
	Working(ctx context.Context, to Address, message string) error
}

// SendClass sorts the failures of sending by what may be done about them.
type SendClass string

// The classes of a [SendError].
const (
	SendAgain   SendClass = "again"   // nothing was sent: try again, not before RetryAfter
	SendUnknown SendClass = "unknown" // it may have been sent: never again, a status will tell
	SendFailed  SendClass = "failed"  // it was refused for good
	SendClosed  SendClass = "closed"  // the person must write first (24-hour window): keep it until they do
	SendHalted  SendClass = "halted"  // the account may not send (token, policy): keep it, tell the owner
)

// SendError is a failure of sending: fields, not text, so that it can be classified once.
type SendError struct {
	Class      SendClass
	Code       int           // of the platform, 0 when there was no answer
	Text       string        // the platform's words, without secrets
	RetryAfter time.Duration // 0: the ledger's own pause
}

// Error names the class, the code and the platform's own words.
func (e *SendError) Error() string { return fmt.Sprintf("send: %s (%d): %s", e.Class, e.Code, e.Text) }

// Statuses of a [Delivery].
const (
	StatusSent      = "sent"
	StatusDelivered = "delivered"
	StatusRead      = "read"
	StatusFailed    = "failed"
)

// Delivery is what a platform says became of a message.
type Delivery struct {
	Ref    string     `json:"ref"`    // of the Outgoing; empty when the platform did not give it back
	ID     string     `json:"id"`     // platform's id of the message
	Status string     `json:"status"` // sent, delivered, read, failed; they come in any order, and twice
	At     time.Time  `json:"at"`
	Error  *SendError `json:"error,omitempty"` // of a failed one
}

// Package channel is how people reach sessions over messaging platforms: WhatsApp, Telegram. What an
// answer is and when it is sent is for package session, and memory is for package agent. Begin with
// [Ingress.Receive] (verify, store), then work.go (decode, admit, fetch media, post, delete).
//
// Goals: a webhook that was acknowledged is never lost and never done twice; a stranger costs no
// session and reads nothing; a new platform is a [Platform], and nothing else changes.
package channel

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Platform is one messaging service: the protocol of its webhooks, of its media and of sending.
type Platform struct {
	Webhook
	tidemark.Courier
	Library
}

// Webhook is the protocol of what a platform posts. Its methods are pure and may be called at once.
type Webhook interface {
	// Name is that of the channel in session keys and settings: whatsapp, telegram.
	Name() string
	// Handshake answers the GET by which a platform tries an address; ErrForbidden when its token is
	// not ours, ErrNotFound when the platform knows no handshake.
	Handshake(query url.Values) (answer string, err error)
	// Signed reports what headers alone show, before a body is read: ErrUnauthorized when no body could make
	// them a webhook of the platform's.
	Signed(h http.Header) error
	// Verify reports whether the platform has signed the raw body, in constant time; ErrUnauthorized.
	Verify(h http.Header, body []byte) error
	// Decode lists what a verified body holds, in its order. A part that cannot be read does not hide
	// the others: it is an Arrival with Odd set. ErrInvalid when it is no body of the platform's.
	Decode(body []byte) ([]Arrival, error)
}

// Library opens media that a message names.
type Library interface {
	// Open begins a download, and completes what the platform says of it. The caller closes the body
	// and holds it against size and hash.
	//
	// # Errors
	//
	// ErrNotFound (it has expired), ErrTooLarge, ErrUnavailable (try again).
	Open(ctx context.Context, account string, m Media) (Media, io.ReadCloser, error)
}

// Arrival is one thing that a webhook tells: exactly one field is set.
type Arrival struct {
	Message *Incoming          `json:"message,omitempty"`
	Status  *tidemark.Delivery `json:"status,omitempty"`
	Alias   *Alias             `json:"alias,omitempty"`
	Odd     string             `json:"odd,omitempty"` // what is not acted on, for the log: a kind, never content
}

// Incoming is what a person wrote.
type Incoming struct {
	ID        string           `json:"id"`               // input id: the same twice is one message
	Message   string           `json:"message"`          // platform's id of it, to be quoted and marked as read
	From      []string         `json:"from"`             // all names that the platform has for the person, the steadiest first
	Name      string           `json:"name,omitempty"`   // what they call themselves; not to be trusted
	Reply     tidemark.Address `json:"reply"`            // where answers go
	Group     string           `json:"group,omitempty"`  // id of the group it was written in
	Mentioned bool             `json:"mentioned"`        // in a group: we were meant
	Quoted    string           `json:"quoted,omitempty"` // platform's id of the message that it answers
	At        time.Time        `json:"at"`               // by the platform's clock
	Kind      string           `json:"kind"`             // text, image, audio, …: the platform's word
	Text      string           `json:"text,omitempty"`   // as written, or what stands for it ("Location: …")
	Media     []Media          `json:"media,omitempty"`

	Edits   string `json:"edits,omitempty"`   // platform's id of the message whose words these are in place of
	Revokes string `json:"revokes,omitempty"` // platform's id of the message that was taken back
	Echo    bool   `json:"echo,omitempty"`    // the owner wrote it to the person by the platform's own app
	Note    bool   `json:"note,omitempty"`    // Text is ours: it says that something came which is not known here
}

// Media is a file of a message.
type Media struct {
	ID     string `json:"id"`
	Type   string `json:"type"`             // MIME, as the platform says
	Name   string `json:"name,omitempty"`   // of a document
	SHA256 string `json:"sha256,omitempty"` // in hex; empty when the platform gives none
	Bytes  int64  `json:"bytes,omitempty"`  // 0 when not known before it is opened
	Voice  bool   `json:"voice,omitempty"`  // a voice note
	Note   string `json:"note,omitempty"`   // what to say of it when it cannot be had: "image", "sticker"
}

// Alias tells that two names are one person, or one group.
type Alias struct {
	Platform string   `json:"platform"`
	Account  string   `json:"account"`
	Old      string   `json:"old"`
	New      string   `json:"new"`
	From     []string `json:"from,omitempty"` // all names that the person had till then, the steadiest first; empty: Old alone, as of a group
	Group    bool     `json:"group,omitempty"`
	Keep     bool     `json:"keep,omitempty"` // Old stays good beside New, whatever its kind
}

// Input is what a session is handed of an Incoming.
type Input struct {
	ID      string           `json:"id"`
	Origin  tidemark.Origin  `json:"origin"`
	Message tidemark.Message `json:"message,omitzero"`  // of a message; not of a command
	Quoted  string           `json:"quoted,omitempty"`  // platform's id of what it answers
	Command string           `json:"command,omitempty"` // its word, as [tidemark.ParseCommand] gives it
	Text    string           `json:"text,omitempty"`    // of a command
	Edits   string           `json:"edits,omitempty"`   // platform's id of what Message corrects
	Revokes string           `json:"revokes,omitempty"` // platform's id of what was taken back; nothing else is set but the origin
}

// Sessions reaches the sessions that arrivals are for. Its methods may be called at once and twice.
type Sessions interface {
	// Post makes an input durable.
	Post(ctx context.Context, key tidemark.Key, in Input) error
	// Delivered tells what became of a message of the session's.
	Delivered(ctx context.Context, key tidemark.Key, d tidemark.Delivery) error
	// Say sends a line that is no part of the conversation, such as a pairing code. The id makes it one.
	Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error
}

package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// Kinds of reasons for which a request goes out as it came.
const (
	Unreadable = "unreadable" // it is no request of its API, or what it says is ambiguous
	TooLarge   = "too_large"  // it is beyond a bound of what is read or kept
	Stored     = "store"      // our own store failed
	Refused    = "refused"    // the API refused it with our edits
	Other      = "other"
)

// Remedy is what somebody can do about requests that go out as they came.
func Remedy(kind string) string {
	switch kind {
	case Unreadable:
		return "if the client works without Tidemark, report this line with the client's name and version"
	case TooLarge:
		return "begin a new conversation, or let the client sum this one up (/compact in Claude Code)"
	case Stored:
		return "run `tidemark doctor`, and see the server's log"
	case Refused:
		return "report this line with the model and the client's version; the conversation goes on without edits"
	}
	return "see the server's log"
}

// kindOf sorts an error that left a request untouched.
func kindOf(err error) string {
	var scan *scanError
	switch {
	case errors.Is(err, tidemark.ErrTooLarge):
		return TooLarge
	case errors.As(err, &scan), errors.Is(err, errEmpty):
		return Unreadable
	case errors.Is(err, errRefused), errors.Is(err, errSour):
		return Refused
	case errors.Is(err, tidemark.ErrInvalid):
		return Other
	}
	return Stored
}

var (
	errEmpty   = errors.New("the request has no messages")
	errRefused = errors.New("the API refused the edited request")
	errSour    = errors.New("the API takes no edited requests of this track")
)

// scanError is why the client's own request cannot be read. What else cannot be read is a mistake in what we made.
type scanError struct{ error }

// Unwrap implements errors.Unwrap.
func (e *scanError) Unwrap() error { return e.error }

// plainly is an error in words for those who run the client.
func plainly(err error) string {
	var scan *scanError
	var read *body.ReadError
	if !errors.As(err, &scan) || !errors.As(err, &read) {
		return oneLine(err.Error())
	}
	where := "the request"
	switch {
	case read.Message >= 0:
		where = fmt.Sprintf("message %d", read.Message+1)
	case read.Part != "":
		where = read.Part
	}
	return fmt.Sprintf("%s cannot be read: %s (byte %d)", where, read.Why, read.Byte)
}

// untouched notes why a request is sent as it came. Nothing of it is content. A client that has gone is told of nothing.
func (x *Exchange) untouched(err error) *Exchange {
	if x.why = plainly(err); errors.Is(err, context.Canceled) {
		return x
	}
	x.whyKind = kindOf(err)
	x.c.Logger.Warn("a request is passed on untouched", "key", x.c.Key, "reason", x.whyKind, "err", err)
	return x
}

// Untouched says why the request is sent as it came although something else was asked for: the kind of the reason, which
// is one of a few words, and the reason in plain words. Both are empty for one that is treated, and where the client has gone.
func (x *Exchange) Untouched() (kind, why string) {
	if x.whyKind == "" {
		return "", ""
	}
	return x.whyKind, x.why
}

// noteUntouched writes down that a request of no track went out as it came and was answered, so that people see why nothing
// of it is here.
func (c *Conversation) noteUntouched(ctx context.Context, x *Exchange) error {
	log, err := c.Home.Branch(ctx, "", "", 0)
	if err != nil {
		return err
	}
	r := Record{At: c.Runtime.Now(), Treatment: x.treatment, Untouched: x.why, Legs: 1, Window: c.Settings.Window,
		Account: paging.Account{Zone: x.zone.String(), In: len(x.ask.Body), Sent: len(x.ask.Body)}}
	return c.DB.Tx(ctx, c.Home.Called("", log, "", 0, r))
}

package proxy

import (
	"context"

	"github.com/tidemark-ai/tidemark/proxy/body"
)

// Exchange is one request of a client and its answer, which may take several calls of the API. It is for one
// goroutine.
type Exchange struct {
	c   *Conversation
	ask Ask
	req *body.Request
	out []byte // to be sent
}

// Begin takes a request up.
func (c *Conversation) Begin(ctx context.Context, a Ask) (*Exchange, error) {
	if _, err := a.treatment(c); err != nil {
		return nil, err
	}
	return &Exchange{c: c, ask: a, out: a.Body}, nil
}

// Body is what is to be sent now.
func (x *Exchange) Body() []byte { return x.out }

// Answer takes the head of the API's answer: its status, and whether it is a stream of events. Where it is false all
// that follows goes to the client as it comes, and nothing needs to be fed.
func (x *Exchange) Answer(status int, stream bool) bool { return false }

// Feed takes bytes of the answer as they come and returns what the client is sent now. A whole answer, that is no
// stream, comes with Finish.
func (x *Exchange) Feed(p []byte) ([]byte, error) { return p, nil }

// Next is asked at the end of an answer's body: whether Body is to be sent again, with what the API asked us.
func (x *Exchange) Next(ctx context.Context) bool { return false }

// Finish ends the exchange: it returns the rest for the client and writes down what was said.
func (x *Exchange) Finish(ctx context.Context) ([]byte, error) { return nil, nil }

// Broken ends it early: the API or the client failed in between. It returns what to say on a stream that has begun,
// nil where the client is gone.
func (x *Exchange) Broken(ctx context.Context, err error) []byte { return nil }

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// Webhooks gives what takes the posts of a messaging platform, as it is set up at this moment; ErrNotFound.
type Webhooks func(ctx context.Context, platform string) (Ingress, error)

// Ingress takes what messaging platforms post. It may be called at once.
type Ingress interface {
	// Handshake answers the GET by which a platform tries its address; ErrForbidden, ErrNotFound.
	Handshake(platform string, query url.Values) (string, error)
	// Expect reports whether a webhook with such headers may be read: ErrUnauthorized, ErrNotFound.
	Expect(platform string, h http.Header) error
	// Receive makes a body durable and returns before any work is done; ErrUnauthorized when the
	// platform did not sign it, ErrNotFound, ErrTooLarge, ErrUnavailable: it shall come again.
	Receive(ctx context.Context, platform string, h http.Header, body []byte) error
}

const (
	// webhookTime is how long a platform may take to send a body.
	webhookTime = 15 * time.Second
	// maxUnverified is how many bytes are held of bodies that may be anybody's, but for short ones, on a host
	// that has no bound of its own.
	maxUnverified = 32 << 20
	freeWebhook   = 64 << 10
)

// budget lends bytes.
type budget struct {
	mu   sync.Mutex // guards left
	left int64
}

func (b *budget) take(bytes int64) (release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes > b.left {
		return nil, false
	}
	b.left -= bytes
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left += bytes
	}, true
}

// ingressOf is that of the platform in the path.
func ingressOf(c *request) (in Ingress, platform string, err error) {
	if c.Webhooks == nil {
		return nil, "", fmt.Errorf("webhooks are not set up: %w", tidemark.ErrNotFound)
	}
	platform = c.r.PathValue("channel")
	in, err = c.Webhooks(c.r.Context(), platform)
	return in, platform, err
}

// getWebhook answers the handshake of a platform.
func getWebhook(c *request) (any, error) {
	in, platform, err := ingressOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := in.Handshake(platform, c.r.URL.Query())
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = io.WriteString(c.w, answer)
	return nil, err
}

// postWebhook stores a webhook. The platform needs no token: it signs what it posts.
func postWebhook(c *request) (any, error) {
	if c.r.ContentLength > channel.MaxBody {
		return nil, fmt.Errorf("webhook of %d bytes, at most %d: %w", c.r.ContentLength, channel.MaxBody, tidemark.ErrTooLarge)
	}
	in, platform, err := ingressOf(c)
	if err == nil {
		err = in.Expect(platform, c.r.Header)
	}
	if err != nil {
		return nil, err
	}
	free, admit := int64(freeBody), c.Admit
	if admit == nil {
		free, admit = freeWebhook, c.unverified.take
	}
	// A host without deadlines bounds the reading in front.
	deadline := http.NewResponseController(c.w)
	_ = deadline.SetReadDeadline(c.Runtime.Now().Add(webhookTime))
	defer func() { _ = deadline.SetReadDeadline(time.Time{}) }()
	body, err := c.admitted(channel.MaxBody, free, admit) // one that is refused the platform posts again
	switch {
	case errors.Is(err, tidemark.ErrBusy) || errors.Is(err, tidemark.ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, &refused{http.StatusRequestTimeout, "timeout", fmt.Sprintf("the body was cut off, or took over %s", webhookTime)}
	}
	if in, _, err = ingressOf(c); err == nil { // the settings may be others by now
		err = in.Receive(c.r.Context(), platform, c.r.Header, body)
	}
	if err != nil {
		return nil, err
	}
	c.w.WriteHeader(http.StatusOK)
	return nil, nil
}

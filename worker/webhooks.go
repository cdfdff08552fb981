package worker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// Webhooks takes what messaging platforms post. It may be called at once.
type Webhooks interface {
	// Handshake answers the GET by which a platform tries its address; ErrForbidden, ErrNotFound.
	Handshake(ctx context.Context, platform string, query url.Values) (string, error)
	// Receive makes a body durable and returns before any work is done; ErrUnauthorized when the
	// platform did not sign it, ErrNotFound, ErrTooLarge, ErrUnavailable: it shall come again.
	Receive(ctx context.Context, platform string, h http.Header, body []byte) error
}

// webhookTime is how long a platform may take to send a body.
const webhookTime = 15 * time.Second

// getWebhook answers the handshake of a platform.
func (c *call) getWebhook() error {
	if c.Webhooks == nil {
		return fmt.Errorf("webhooks are not set up: %w", tidemark.ErrNotFound)
	}
	answer, err := c.Webhooks.Handshake(c.r.Context(), c.r.PathValue("channel"), c.r.URL.Query())
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = io.WriteString(c.w, answer)
	return err
}

// postWebhook stores a webhook. The platform needs no token: it signs what it posts.
func (c *call) postWebhook() error {
	if c.Webhooks == nil {
		return fmt.Errorf("webhooks are not set up: %w", tidemark.ErrNotFound)
	}
	if c.r.ContentLength > channel.MaxBody {
		return fmt.Errorf("webhook of %d bytes, at most %d: %w", c.r.ContentLength, channel.MaxBody, tidemark.ErrTooLarge)
	}
	if c.Admit != nil && c.r.ContentLength > freeBody {
		release, ok := c.Admit(c.r.ContentLength)
		if !ok { // the platform posts it again
			return fmt.Errorf("other large requests are in work; try again in a moment: %w", tidemark.ErrBusy)
		}
		c.release = release
	}
	// A host without deadlines bounds the reading in front.
	deadline := http.NewResponseController(c.w)
	_ = deadline.SetReadDeadline(c.Runtime.Now().Add(webhookTime))
	defer func() { _ = deadline.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(io.LimitReader(c.r.Body, channel.MaxBody+1))
	if err != nil {
		return &refused{http.StatusRequestTimeout, "timeout", fmt.Sprintf("the body was cut off, or took over %s", webhookTime)}
	}
	if err := c.Webhooks.Receive(c.r.Context(), c.r.PathValue("channel"), c.r.Header, body); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

package whatsapp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel/wire"
)

const (
	signatureHeader = "X-Hub-Signature-256"
	maxChallenge    = 1 << 10
)

// Handshake answers hub.challenge when hub.verify_token is ours
// (https://developers.facebook.com/docs/graph-api/webhooks/getting-started#verification-requests).
func (c *client) Handshake(query url.Values) (string, error) {
	challenge := query.Get("hub.challenge")
	switch {
	case c.VerifyToken == "":
		return "", fmt.Errorf("webhook handshake: no verify token is configured: %w", tidemark.ErrForbidden)
	case !wire.Same(c.VerifyToken, query.Get("hub.verify_token")) || query.Get("hub.mode") != "subscribe" || len(challenge) > maxChallenge:
		return "", fmt.Errorf("webhook handshake: not our verify token: %w", tidemark.ErrForbidden)
	}
	return challenge, nil
}

// Signed implements [channel.Webhook]: a signature is there.
func (c *client) Signed(h http.Header) error {
	_, err := c.signature(h)
	return err
}

func (c *client) signature(h http.Header) ([]byte, error) {
	if c.AppSecret == "" {
		return nil, fmt.Errorf("webhook signature: no app secret is configured: %w", tidemark.ErrUnauthorized)
	}
	given, ok := strings.CutPrefix(h.Get(signatureHeader), "sha256=")
	sum, err := hex.DecodeString(given)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("webhook signature: not Meta's: %w", tidemark.ErrUnauthorized)
	}
	return sum, nil
}

// Verify holds the HMAC-SHA256 under the app secret against the bytes as they came. Meta signs its
// own escapes of non-ASCII text, so a body that was decoded and encoded again does not verify.
func (c *client) Verify(h http.Header, body []byte) error {
	sum, err := c.signature(h)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(c.AppSecret))
	mac.Write(body)
	if !hmac.Equal(sum, mac.Sum(nil)) {
		return fmt.Errorf("webhook signature: not Meta's: %w", tidemark.ErrUnauthorized)
	}
	return nil
}

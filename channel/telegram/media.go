package telegram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/wire"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxFile is what the Bot API lets a bot download.
//
// https://core.telegram.org/bots/api#getfile
const maxFile = 20 << 20

// Open implements [channel.Library]. The path that the first step gives is good for an hour, so it is
// asked for each time. Telegram tells no hash.
func (c *client) Open(ctx context.Context, _ string, m channel.Media) (channel.Media, io.ReadCloser, error) {
	if m.Bytes > maxFile {
		return m, nil, tooLarge(m)
	}
	ctx, cancel := wire.Within(ctx, c.Runtime, mediaTimeout)
	path, err := c.locate(ctx, &m)
	if err != nil {
		cancel()
		return m, nil, err
	}
	body, err := c.download(ctx, m, path)
	if err != nil {
		cancel()
		return m, nil, err
	}
	return m, wire.Bounded(body, maxFile, tooLarge(m), cancel), nil
}

// locate is the first step: where the bytes are, and how many.
func (c *client) locate(ctx context.Context, m *channel.Media) (string, error) {
	result, refused := c.call(ctx, mediaTimeout, "getFile", map[string]string{"file_id": m.ID})
	switch {
	case refused == nil:
	case refused.code == http.StatusBadRequest && strings.Contains(refused.text, "too big"):
		return "", tooLarge(*m)
	case refused.code == http.StatusBadRequest:
		return "", fmt.Errorf("open a file: %s: %w", refused.text, tidemark.ErrNotFound)
	default:
		return "", fmt.Errorf("open a file: %w: %w", refused, tidemark.ErrUnavailable)
	}
	var w struct {
		Path  string `json:"file_path"`
		Bytes int64  `json:"file_size"`
	}
	if json.Unmarshal(result, &w) != nil {
		return "", fmt.Errorf("open a file: an answer that cannot be read: %w", tidemark.ErrUnavailable)
	}
	if w.Path == "" || strings.HasPrefix(w.Path, "/") || strings.Contains(w.Path, "..") || strings.ContainsAny(w.Path, "?#\\") {
		return "", fmt.Errorf("open a file: its path is not one below the API's: %w", tidemark.ErrNotFound)
	}
	if w.Bytes > 0 {
		m.Bytes = w.Bytes
	}
	if m.Bytes > maxFile {
		return "", tooLarge(*m)
	}
	return w.Path, nil
}

// download is the second step.
func (c *client) download(ctx context.Context, m channel.Media, path string) (io.ReadCloser, error) {
	at := c.base.JoinPath("file", "bot"+c.Token, path).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("open a file: its path is no part of an address: %w", tidemark.ErrNotFound)
	}
	req.Header.Set("Accept-Encoding", "identity") // the size told is that of the bytes themselves
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("open a file: %s: %w", c.redact(err.Error()), tidemark.ErrUnavailable)
	}
	switch {
	case resp.StatusCode == http.StatusOK && resp.ContentLength <= maxFile:
		return resp.Body, nil
	case resp.StatusCode == http.StatusOK:
		err = tooLarge(m)
	case resp.StatusCode == http.StatusNotFound:
		err = fmt.Errorf("open a file: it has expired: %w", tidemark.ErrNotFound)
	default:
		err = fmt.Errorf("open a file: status %d: %w", resp.StatusCode, tidemark.ErrUnavailable)
	}
	resp.Body.Close() // what came of it
	return nil, err
}

func tooLarge(m channel.Media) error {
	return fmt.Errorf("open a file: %s over %d bytes: %w", m.Note, maxFile, tidemark.ErrTooLarge)
}

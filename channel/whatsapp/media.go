package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/wire"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds on media by kind (https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media#supported-media-types).
// Pictures may have what audio may: phones send larger ones than businesses.
const (
	maxFile     = 16 << 20
	maxSticker  = 1 << 20
	maxDocument = 100 << 20
)

func maxBytes(m channel.Media) int64 {
	switch m.Note {
	case "sticker":
		return maxSticker
	case "document":
		return maxDocument
	}
	return maxFile
}

// mediaHosts are where Meta keeps media. The token goes with the request, so it goes nowhere else.
var mediaHosts = [...]string{"facebook.com", "fbsbx.com", "fbcdn.net", "whatsapp.net"}

// Open implements [channel.Library]. The address that the first step gives is good for five
// minutes, so it is asked for each time.
func (c *client) Open(ctx context.Context, account string, m channel.Media) (channel.Media, io.ReadCloser, error) {
	if c.base == nil || c.Transport == nil || c.Token == "" {
		return m, nil, fmt.Errorf("open media: WhatsApp is not configured: %w", tidemark.ErrUnavailable)
	}
	ctx, cancel := wire.Within(ctx, c.Runtime, mediaTimeout)
	m, at, err := c.locate(ctx, account, m)
	if err != nil {
		cancel()
		return m, nil, err
	}
	resp, err := c.get(ctx, at)
	if err != nil {
		cancel()
		return m, nil, fmt.Errorf("open media %s: %w", m.ID, err)
	}
	if m.Bytes == 0 && resp.ContentLength > 0 {
		m.Bytes = resp.ContentLength
	}
	if resp.ContentLength > maxBytes(m) {
		cancel()
		return m, nil, errors.Join(tooLarge(m), resp.Body.Close())
	}
	return m, wire.Bounded(resp.Body, maxBytes(m), tooLarge(m), cancel), nil
}

// locate is the first step: where the bytes are, and what the platform says of them.
func (c *client) locate(ctx context.Context, account string, m channel.Media) (channel.Media, string, error) {
	resp, err := c.get(ctx, c.graph(m.ID)+"?phone_number_id="+url.QueryEscape(account))
	if err != nil {
		return m, "", fmt.Errorf("open media %s: %w", m.ID, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	var w struct {
		URL    string      `json:"url"`
		Type   string      `json:"mime_type"`
		SHA256 string      `json:"sha256"`
		Bytes  json.Number `json:"file_size"`
	}
	if err != nil || json.Unmarshal(body, &w) != nil || w.URL == "" {
		return m, "", fmt.Errorf("open media %s: an answer that cannot be read: %w", m.ID, tidemark.ErrUnavailable)
	}
	if n, err := w.Bytes.Int64(); err == nil && n > 0 {
		m.Bytes = n
	}
	m.Type = cmp.Or(m.Type, w.Type)
	m.SHA256 = cmp.Or(m.SHA256, digest(w.SHA256)) // the webhook was signed, so its hash stands
	if m.Bytes > maxBytes(m) {
		return m, "", tooLarge(m)
	}
	if !c.trusted(w.URL) {
		return m, "", fmt.Errorf("open media %s: its address is not one of Meta's: %w", m.ID, tidemark.ErrNotFound)
	}
	return m, w.URL, nil
}

// trusted reports whether the token may be sent to an address: that of the Graph API as it is
// configured, and, by TLS only, Meta's own hosts.
func (c *client) trusted(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Host == "" {
		return false
	}
	if u.Scheme == c.base.Scheme && strings.EqualFold(u.Host, c.base.Host) {
		return true
	}
	if u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	for _, h := range mediaHosts {
		if host == h || strings.HasSuffix(host, "."+h) {
			return true
		}
	}
	return false
}

// get asks with the token. Its errors are those of [channel.Library], without the address, which is
// a key of its own.
func (c *client) get(ctx context.Context, at string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("its address is not one: %w", tidemark.ErrNotFound)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Accept-Encoding", "identity") // the size told is that of the bytes themselves
	req.Header.Set("User-Agent", "tidemark")      // the media hosts refuse requests without one
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redact(strings.ReplaceAll(err.Error(), at, "media"), c.Token), tidemark.ErrUnavailable)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what came of it
	e, known := readAnswerError(body)
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone,
		known && (e.Code == codeNoObject || e.Code == codeMediaDownload):
		return nil, fmt.Errorf("it has expired (status %d, code %d): %w", resp.StatusCode, e.Code, tidemark.ErrNotFound)
	}
	return nil, fmt.Errorf("status %d, code %d %s: %w", resp.StatusCode, e.Code, redact(e.Text, c.Token), tidemark.ErrUnavailable)
}

func tooLarge(m channel.Media) error {
	return fmt.Errorf("open media %s: %s over %d bytes: %w", m.ID, m.Note, maxBytes(m), tidemark.ErrTooLarge)
}

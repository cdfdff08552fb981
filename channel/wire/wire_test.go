package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel/wire"
)

// TestBounded: a body that goes on beyond what was told ends with an error.
func TestBounded(t *testing.T) {
	closed := 0
	b := wire.Bounded(io.NopCloser(strings.NewReader("12345678")), 7, tidemark.ErrTooLarge, func() { closed++ })
	if got, err := io.ReadAll(b); !errors.Is(err, tidemark.ErrTooLarge) || len(got) > 7 {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := b.Read(make([]byte, 4)); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("again: %v", err)
	}
	if err := b.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times, %v", closed, err)
	}
	b = wire.Bounded(io.NopCloser(strings.NewReader("1234567")), 7, tidemark.ErrTooLarge, func() {})
	if got, err := io.ReadAll(b); err != nil || len(got) != 7 {
		t.Errorf("%q, %v", got, err)
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPost: what no byte was taken of was not sent; what one was taken of may have been.
func TestPost(t *testing.T) {
	down := errors.New("connection reset")
	for _, row := range []struct {
		name, address string
		trip          trip
		begun         bool
		want          error
	}{
		{"no address", "http://[", nil, false, wire.ErrAddress},
		{"refused at once", "http://x", func(*http.Request) (*http.Response, error) { return nil, down }, false, down},
		{"a byte was read", "http://x", func(r *http.Request) (*http.Response, error) {
			_, _ = r.Body.Read(make([]byte, 1))
			return nil, down
		}, true, down},
		{"all was copied", "http://x", func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			return nil, down
		}, true, down},
		{"begun anew, since nothing of it was sent", "http://x", func(r *http.Request) (*http.Response, error) {
			_, _ = r.Body.Read(make([]byte, 1))
			_, err := r.GetBody()
			return nil, errors.Join(down, err)
		}, false, down},
		{"answered", "http://x", func(r *http.Request) (*http.Response, error) {
			raw, err := io.ReadAll(r.Body)
			if !bytes.Equal(raw, []byte("{}")) || r.ContentLength != 2 || r.Header.Get("Authorization") != "word" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("sent %q, %v", raw, r.Header)
			}
			return &http.Response{Body: http.NoBody}, err
		}, true, nil},
	} {
		resp, begun, err := wire.Post(t.Context(), row.trip, row.address, http.Header{"Authorization": {"word"}}, []byte("{}"))
		if begun != row.begun || !errors.Is(err, row.want) || (resp == nil) != (row.want != nil) {
			t.Errorf("%s: %v, %v", row.name, begun, err)
		}
		if resp != nil {
			resp.Body.Close()
		}
	}
}

// TestLost: why something was cut off, without the words of a library where we know better.
func TestLost(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(tidemark.ErrTimeout)
	for _, row := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{t.Context(), errors.New("reset"), "reset"},
		{t.Context(), io.ErrUnexpectedEOF, "the answer was cut off"},
		{ended, io.EOF, tidemark.ErrTimeout.Error()},
	} {
		if got := wire.Lost(row.ctx, row.err); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

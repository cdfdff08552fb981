//go:build !js

// The fake listens: it cannot under js/wasm.

package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/graph"
)

func TestMedia(t *testing.T) {
	data := []byte(strings.Repeat("tide", 1000))
	sum := sha256.Sum256(data)
	for _, row := range []struct {
		name    string
		spoiled graph.Spoiled
		err     error // of Open
		read    bool  // the bytes are those that were sent
	}{
		{"whole", "", nil, true},
		{"other bytes", graph.SpoiledBytes, nil, false},
		{"cut", graph.SpoiledShort, nil, false},
		{"expired", graph.SpoiledGone, tidemark.ErrNotFound, false},
		{"address expired", graph.SpoiledLink, tidemark.ErrNotFound, false},
		{"on a foreign host", graph.SpoiledElsewhere, tidemark.ErrNotFound, false},
		{"too large", graph.SpoiledLarge, tidemark.ErrTooLarge, false},
		{"never answered", graph.SpoiledSlow, tidemark.ErrUnavailable, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, graph.Config{})
			r.Say(ada, r.File(ada, "image", data, "image/png", "look"))
			m := r.arrivals(t)[0].Message.Media[0]
			r.Spoil(m.ID, row.spoiled)
			ctx := r.ctx
			if row.spoiled == graph.SpoiledSlow {
				c, cancel := context.WithTimeout(r.ctx, 500*time.Millisecond)
				defer cancel()
				ctx = c
			}
			told, body, err := r.Open(ctx, graph.DefaultAccount, m)
			if !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
				t.Fatalf("got %v, want %v", err, row.err)
			}
			if err != nil {
				if strings.Contains(err.Error(), r.URL) || strings.Contains(err.Error(), graph.DefaultToken) {
					t.Errorf("the error tells the address or the token: %v", err)
				}
				return
			}
			defer body.Close()
			if told.Bytes != int64(len(data)) || told.SHA256 != hex.EncodeToString(sum[:]) || told.Type != "image/png" {
				t.Errorf("told %+v", told)
			}
			got, err := io.ReadAll(body)
			if (err == nil && string(got) == string(data)) != row.read {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// TestMediaFaults: a token that does not hold is not an expired medium, and a gone one is asked for
// in vain until it is throttled.
func TestMediaFaults(t *testing.T) {
	r := newRig(t, graph.Config{Token: "another"})
	if _, _, err := r.Open(r.ctx, graph.DefaultAccount, channel.Media{ID: "1"}); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("a wrong token: %v", err)
	}
	r = newRig(t, graph.Config{})
	for i := range 6 {
		want := tidemark.ErrNotFound
		if i == 5 {
			want = tidemark.ErrUnavailable
		}
		if _, _, err := r.Open(r.ctx, graph.DefaultAccount, channel.Media{ID: "1"}); !errors.Is(err, want) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// TestTrusted: the token goes to Meta's hosts and the configured one, whatever an answer says.
func TestTrusted(t *testing.T) {
	c := New(Config{BaseURL: "http://127.0.0.1:9"}).Library.(*client)
	for at, want := range map[string]bool{
		"http://127.0.0.1:9/files/1":                          true,
		"https://lookaside.fbsbx.com/whatsapp_business/x?a=b": true,
		"https://graph.facebook.com/x":                        true,
		"https://scontent.xx.fbcdn.net:443/x":                 true,
		"https://mmg.whatsapp.net/x":                          true,
		"http://lookaside.fbsbx.com/x":                        false,
		"https://lookaside.fbsbx.com:8443/x":                  false,
		"https://evilfbsbx.com/x":                             false,
		"https://fbsbx.com.evil.test/x":                       false,
		"https://u:p@lookaside.fbsbx.com/x":                   false,
		"http://127.0.0.1:10/x":                               false,
		"http://169.254.169.254/latest":                       false,
		"https://127.0.0.1:9/x":                               false,
		"file:///etc/passwd":                                  false,
		"//lookaside.fbsbx.com/x":                             false,
		"":                                                    false,
	} {
		if c.trusted(at) != want {
			t.Errorf("%q: want %v", at, want)
		}
	}
}

package telegram

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func TestConnect(t *testing.T) {
	api := tidemarktest.NewBotAPI(t)
	var secrets []string
	hook := func(w http.ResponseWriter, r *http.Request) {
		secrets = append(secrets, r.Header.Get(secretHeader))
		if len(secrets) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	server := serve(t, hook)
	cfg := Config{Token: api.Token, Secret: "s_1-x", BaseURL: api.URL, Transport: http.DefaultTransport}
	b, err := Connect(t.Context(), cfg, server+"/webhooks/telegram")
	if err != nil || b.ID != tidemarktest.BotID || b.Name != tidemarktest.BotName || b.Webhook.URL != server+"/webhooks/telegram" || len(b.Webhook.Allowed) != 3 {
		t.Fatalf("Connect: %+v, %v", b, err)
	}
	if n := len(api.Calls("setMyCommands")); n != 1 {
		t.Errorf("the menu was set %d times", n)
	}
	api.Write(person, fields{"text": "hi"})
	if err := api.Deliver(t.Context()); err == nil {
		t.Error("a 503 was taken for an answer")
	}
	if b, err = Status(t.Context(), cfg); err != nil || b.Webhook.Pending != 1 || b.Webhook.Error == "" {
		t.Errorf("Status: %+v, %v", b, err)
	}
	if err := api.Deliver(t.Context()); err != nil || strings.Join(secrets, " ") != "s_1-x s_1-x" {
		t.Errorf("delivered with %q, %v", secrets, err)
	}
	if err := Disconnect(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	if b, err = Status(t.Context(), cfg); err != nil || b.Webhook.URL != "" {
		t.Errorf("Status: %+v, %v", b, err)
	}
}

func TestConnectRefused(t *testing.T) {
	api := tidemarktest.NewBotAPI(t)
	for _, tt := range []struct {
		name, token, secret, url string
		want                     error
	}{
		{"no secret", api.Token, "", "https://a.b", tidemark.ErrInvalid},
		{"letters", api.Token, "a b", "https://a.b", tidemark.ErrInvalid},
		{"no address", api.Token, "s", "a.b", tidemark.ErrInvalid},
		{"not https", api.Token, "s", "http://a.b", tidemark.ErrInvalid},
		{"no token", "", "s", "https://a.b", tidemark.ErrUnauthorized},
		{"another's token", "5:x", "s", "https://a.b", tidemark.ErrUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Connect(t.Context(), Config{Token: tt.token, Secret: tt.secret, BaseURL: api.URL, Transport: http.DefaultTransport}, tt.url)
			if !errors.Is(err, tt.want) || strings.Contains(err.Error(), "AAtest") {
				t.Errorf("Connect: %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := Status(t.Context(), Config{Token: "1:key", BaseURL: "http://127.0.0.1:1", Transport: http.DefaultTransport}); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("Status without a network: %v", err)
	}
}

//go:build !js

package channels

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestTelegram: a person, a stranger and a group over the Bot API, on both hosts.
func TestTelegram(t *testing.T) {
	everywhere(t, func(t *testing.T, target string) {
		api := tidemarktest.NewBotAPI(t)
		const (
			person, stranger, group, super, secret = 77, 88, -40, -10040, "s_1"
			key, groupKey                          = "agent:main:telegram:dm:77", "agent:main:telegram:group:4400+-40"
		)
		h := newHost(t, target, graph.Config{}, "TELEGRAM_TOKEN="+api.Token, "TELEGRAM_WEBHOOK_SECRET="+secret,
			"TIDEMARK_CHANNELS_TELEGRAM_BASEURL="+api.URL, "TIDEMARK_CHANNELS_TELEGRAM_ALLOW=77",
			"TIDEMARK_CHANNELS_TELEGRAM_GROUPS=mention", "TIDEMARK_CHANNELS_TELEGRAM_USERNAME="+tidemarktest.BotName)
		hook, err := json.Marshal(map[string]string{"url": h.url + "/webhooks/telegram", "secret_token": secret})
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(api.URL+"/bot"+api.Token+"/setWebhook", "application/json", bytes.NewReader(hook))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("set the webhook: %v, %v", res, err)
		}
		res.Body.Close()
		deliver := func() {
			t.Helper()
			if err := api.Deliver(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		answers := func(n int) []tidemarktest.BotMessage {
			t.Helper()
			ctx, cancel := h.patient()
			defer cancel()
			sent, err := api.WaitSent(ctx, n)
			if err != nil {
				t.Fatalf("%d messages were sent, want %d: %v: %+v", len(sent), n, err, sent)
			}
			return sent
		}
		from := map[string]any{"id": person, "is_bot": false, "first_name": "Ada"}

		update := api.Write(person, map[string]any{"text": "only once"})
		api.Repeat(update)
		deliver()
		api.Repeat(update)
		deliver()
		if sent := answers(1); sent[0].Chat != person || strings.Count(h.history(key), `"only once"`) != 1 {
			t.Fatalf("sent %+v; the log: %.800s", sent, h.history(key))
		}

		api.Write(stranger, map[string]any{"text": "let me in"})
		deliver()
		if sent := answers(2); sent[1].Chat != stranger || !strings.Contains(sent[1].Text, "code") || sent[1].Tags != "" {
			t.Fatalf("a stranger is told %+v", sent[1])
		}

		api.Write(group, map[string]any{"from": from, "text": "nobody is meant"})
		text := "@" + tidemarktest.BotName + " before"
		mention := []any{map[string]any{"type": "mention", "offset": 0, "length": len(tidemarktest.BotName) + 1}}
		api.Write(group, map[string]any{"from": from, "text": text, "entities": mention})
		deliver()
		if sent := answers(3); sent[2].Chat != group {
			t.Fatalf("in a group: %+v", sent[2])
		}
		api.Migrate(group, super)
		api.Write(group, map[string]any{"from": from, "migrate_to_chat_id": super})
		api.Write(super, map[string]any{"from": from, "migrate_from_chat_id": group})
		deliver()
		api.Write(super, map[string]any{"from": from, "text": strings.Replace(text, "before", "after", 1), "entities": mention})
		deliver()
		if sent := answers(4); sent[3].Chat != super {
			t.Fatalf("in the supergroup: %+v", sent[3])
		}
		log := h.history(groupKey)
		if strings.Contains(log, "nobody is meant") || !strings.Contains(log, "before") || !strings.Contains(log, "after") {
			t.Errorf("the group's log: %.1500s", log)
		}
	})
}

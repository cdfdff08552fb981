package worker_test

import (
	"os"
	"testing"

	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestMaxWebhook holds the bound to that of the front, which build/webhook.test.mjs holds to the same file.
func TestMaxWebhook(t *testing.T) {
	raw, err := os.ReadFile("../testdata/front.json")
	var table struct{ MaxWebhook int }
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil || table.MaxWebhook != channel.MaxBody {
		t.Errorf("%d, %v; want %d", table.MaxWebhook, err, channel.MaxBody)
	}
}

package channel_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestStoredInFront: what build/webhook.mjs stores without Go is worked off like what Go received, once.
func TestStoredInFront(t *testing.T) {
	source, err := os.ReadFile("../build/webhook.mjs")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`export const STORE = "([^"]+)"`).FindSubmatch(source)
	if found == nil {
		t.Fatal("build/webhook.mjs has no STORE")
	}
	r := newRig(t, channel.Rules{Access: channel.AccessOpen})
	body, err := json.Marshal([]channel.Arrival{said("15550001", "1", "hello")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.in.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: string(found[1]), Args: []any{"fake", string(tidemark.HashOf(body)), 0, time.Now().UnixMilli(), body}}}); err != nil {
			t.Fatal(err)
		}
	}
	r.post(said("15550001", "1", "hello")) // the same, through Go
	r.rest()
	r.want("agent:main:fake:dm:15550001", "hello")
}

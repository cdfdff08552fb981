package setup_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestPostCommand: a command with what it does not take is answered once, and neither done nor read by a model.
func TestPostCommand(t *testing.T) {
	for _, row := range []struct{ command, text, want string }{
		{"stop", "now", "/stop takes nothing behind it. /help lists the commands."},
		{"model", "a b", "/model takes one name, or default. /help lists the commands."},
		{"compact", strings.Repeat("x", 4090), "text of /compact has 4090 bytes, at most 4000. /help lists the commands."},
		{"model", strings.Repeat("x", 300), "/model takes one name, or default. /help lists the commands."},
		{"stop", "", "There is nothing to stop."},
	} {
		t.Run(row.want, func(t *testing.T) {
			db, rt := hosttest.DB(t), hosttest.Runtime(t)
			blobs := hosttest.Blobs(t)
			ag, err := agent.New(agent.Config{Name: "main", DB: db, Blobs: blobs, Runtime: rt})
			if err != nil {
				t.Fatal(err)
			}
			phone := &tidemarktest.Courier{}
			s, err := session.Open(t.Context(), session.Config{Key: "agent:main:fake:dm:ann", DB: db, Blobs: blobs, Provider: offline.Model{}, Agent: ag, Runtime: rt,
				Rooms: []room.Maker{outbound.Make(phone)}, Settings: session.Settings{Model: "offline"}})
			if err != nil {
				t.Fatal(err)
			}
			to := tidemark.Address{Platform: "fake", Peer: "ann"}
			for range 2 {
				err := setup.Post(t.Context(), s, channel.Input{ID: "c", Command: row.command, Text: row.text, Origin: tidemark.Origin{From: tidemark.FromPerson, To: &to}})
				if err != nil {
					t.Fatal(err)
				}
			}
			for changed := phone.Changed(); len(phone.Texts()) == 0; changed = phone.Changed() {
				<-changed
			}
			ledger, _ := session.Room[*outbound.Room](s)
			out, err := ledger.Messages(t.Context(), 10)
			if err != nil || len(out) != 1 {
				t.Errorf("the ledger has %+v, %v", out, err)
			}
			if got := strings.Join(phone.Texts(), "|"); got != row.want {
				t.Errorf("said %q, want %q", got, row.want)
			}
		})
	}
}

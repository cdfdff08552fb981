package setup_test

import (
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
)

// TestRoomTools: the tools of a conversation stand in the order in which prompts are cached, whichever room they are of.
func TestRoomTools(t *testing.T) {
	c := set(t, `{"compaction": {"strategies": ["summary", "pointer", "episodes", "paging"]}}`)
	db, rt, blobs := hosttest.DB(t), hosttest.Runtime(t), hosttest.Blobs(t)
	ag, err := agent.New(agent.Config{Name: "main", DB: db, Blobs: blobs, Runtime: rt})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), session.Config{Key: "agent:main:main", DB: db, Blobs: blobs, Provider: offline.Model{}, Agent: ag, Runtime: rt,
		Strategies: setup.Strategies(c), Rooms: setup.Rooms(c, rt, nil, nil, nil), Settings: session.Settings{Model: "offline"}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range v.Tools {
		got = append(got, tool.Name)
	}
	want := []string{"recall", "task_state", "memory_release", "memory_fault", "delimiter"}
	if len(got) <= len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("the tools are %v, want %v before the agent's", got, want)
	}
}

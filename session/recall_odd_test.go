package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// shutBlobs is a bucket that may be down.
type shutBlobs struct {
	tidemark.Blobs
	shut *bool
}

func (b shutBlobs) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	if *b.shut {
		return tidemark.Object{}, nil, errors.New("the bucket is down")
	}
	return b.Blobs.Get(ctx, key)
}

// withLong is a conversation with short messages and a long result, on a bucket that may be down.
func withLong(t *testing.T) (h *harness, shut *bool) {
	t.Helper()
	h, shut = newAlone(t, session.Settings{}), new(bool)
	h.stop()
	life, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: h.db, Blobs: shutBlobs{h.blobs, shut}, Provider: h.model, Agent: h.agent, Runtime: h.rt, Settings: session.Settings{Model: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	var log []tidemark.Message
	for i := range 10 {
		log = append(log, tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], fmt.Sprintf("the heron tag is HERON_%d", i)))
	}
	h.told(append(log, exchangeOf("c1", lines(600<<10, func(i int) string { return fmt.Sprintf("row %d of the dump %d", i, i*i) }))...)...)
	return h, shut
}

func (h *harness) finds(query, text string) {
	h.t.Helper()
	got, err := h.Recall(h.t.Context(), search.Wanted{Query: query})
	if err != nil || len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, text) {
		h.t.Errorf("%q: %+v, %v", query, got.Results, err)
	}
}

// TestRecallWithoutBucket: what is in the index is found while a long text waits for a bucket that is down.
func TestRecallWithoutBucket(t *testing.T) {
	h, shut := withLong(t)
	*shut = true
	h.finds("HERON_4", "HERON_4")
	*shut = false
	h.finds("row 20000", "row 20000 of")
}

// TestRecallOfDamage: a block in the bucket that is not what was stored keeps nothing else from being found.
func TestRecallOfDamage(t *testing.T) {
	h, _ := withLong(t)
	page, _, err := h.blobs.List(t.Context(), "agents/main/artifacts/", "", 10)
	if err != nil || len(page) == 0 {
		t.Fatal(page, err)
	}
	for _, o := range page {
		if _, err := h.blobs.Put(t.Context(), o.Key, strings.NewReader("{}"), 2, tidemark.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	h.finds("HERON_4", "HERON_4")
	h.finds("HERON_6", "HERON_6")
	if n := h.count(`SELECT count(*) FROM unread LIMIT 1`); n != 0 {
		t.Errorf("%d long texts wait for what is lost", n)
	}
}

// TestFailureSupersedesNothing: a call that failed the second time leaves what the first one gave.
func TestFailureSupersedesNothing(t *testing.T) {
	h := newAlone(t, session.Settings{})
	call := func(id, text string, failed bool) []tidemark.Message {
		return []tidemark.Message{
			{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "read", []byte(`{"path":"ports.txt"}`))}},
			{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, text, failed)}},
		}
	}
	log := append([]tidemark.Message{tidemark.NewText(tidemark.User, "read it")}, call("c1", "the staging ports of ports.txt are 8081 and 9092", false)...)
	log = append(log, tidemark.NewText(tidemark.Assistant, "ok"), tidemark.NewText(tidemark.User, "again"))
	log = append(log, call("c2", "cannot read ports.txt staging ports: permission denied", true)...)
	h.told(append(log, tidemark.NewText(tidemark.Assistant, "failed"))...)
	goal := task.Change{Add: []task.Added{{Kind: task.Goal, Text: "find ports"}}}
	if _, err := h.ChangeTask(t.Context(), goal, tidemark.Origin{From: tidemark.FromPerson, Owner: true}); err != nil {
		t.Fatal(err)
	}
	got, err := h.Recall(t.Context(), search.Wanted{Query: "staging ports ports.txt", K: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got.Filtered {
		if f.Reason == "superseded" {
			t.Errorf("%+v", f)
		}
	}
	found := false
	for _, r := range got.Results {
		found = found || strings.Contains(r.Text, "8081")
	}
	if !found {
		t.Errorf("%+v", got.Results)
	}
}

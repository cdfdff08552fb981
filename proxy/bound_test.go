package proxy_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy"
)

// TestManyThreads: beyond so many threads a request is passed on as it came, and those that are there go on.
func TestManyThreads(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	untouched := 0
	for i := range 1005 {
		body := request(text("user", fmt.Sprint("thread ", i)))
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if _, why := x.Untouched(); why != "" {
			untouched++
			if string(x.Body()) != string(body) || i < 1000 {
				t.Fatalf("thread %d: %s: sent %s", i, why, x.Body())
			}
		}
		x.Broken(t.Context(), nil)
	}
	if untouched != 5 {
		t.Errorf("%d are untouched", untouched)
	}
	r.exchange(proxy.Page, request(text("user", "thread 7")), reply("end_turn", textBlock("ok")))
	if !r.c.Idle() {
		t.Error("an exchange is in work")
	}
}

// TestManyForks: threads that hang one on another are made of the requests of all before them only so far; behind that
// one begins anew, with all its messages.
func TestManyForks(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	history := []string{text("user", "q")}
	const n = 68
	for i := range n {
		answer := fmt.Sprint("a", i)
		r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock(answer)))
		history = append(history, spoke(answer))
		r.exchange(proxy.Page, request(append(history[:len(history):len(history)], text("user", "aside"))...), reply("end_turn", textBlock("so")))
		history = append(history, text("user", fmt.Sprint("q", i)))
	}
	var steps bytes.Buffer
	if err := r.c.Steps(t.Context(), &steps); err != nil {
		t.Fatal(err)
	}
	var requests []int
	for line := range bytes.Lines(steps.Bytes()) {
		var one struct {
			Steps []exported `json:"steps"`
		}
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		messages := 0
		for _, s := range one.Steps {
			messages += len(s.Append)
		}
		if i := len(requests); messages < 2*i+1 {
			t.Fatalf("thread %d: %d requests with %d messages", i, len(one.Steps), messages)
		}
		requests = append(requests, len(one.Steps))
	}
	if last := requests[len(requests)-1]; len(requests) != n || last > 20 || slices.Max(requests) < 60 {
		t.Errorf("the threads have %v requests", requests)
	}
}

//go:build !js

package worker_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/worker"
)

// seen is a model that keeps the system text of its last call.
type seen struct{ system string }

func (m *seen) Stream(_ context.Context, r tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	m.system = r.System
	return func(yield func(tidemark.Delta, error) bool) {
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "Yes."), Call: tidemark.Call{Stop: "end_turn"}}}, nil)
	}
}

// TestUser: who is named as "user" is an end user: what one said is remembered for nobody else but the
// owner, and what is the owner's for none of them.
func TestUser(t *testing.T) {
	model := &seen{}
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = model })
	said := 0
	ask := func(body string, headers ...string) tidemark.Key {
		t.Helper()
		said++
		body = fmt.Sprintf(`{%s"messages":[{"role":"user","content":"question %d"}]}`, body, said)
		res := s.do("POST", "/v1/chat/completions", body, headers...)
		if res.StatusCode != 200 {
			t.Fatalf("%s: %d", body, res.StatusCode)
		}
		return tidemark.Key(res.Header.Get("X-Tidemark-Session"))
	}
	remember := func(key tidemark.Key, fact string) {
		t.Helper()
		a, err := s.actors.Agent(t.Context(), key.Agent())
		if err == nil {
			err = a.Remember(t.Context(), tidemark.Extraction{ID: "of " + fact, Session: "s", Scope: key.Scope(), At: s.actors.rt.Now(), Facts: []tidemark.Fact{{Text: fact}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.text(200, "PUT", "/v1/agents/main/memory/MEMORY.md", "- the safe is behind the picture\n")
	remember("agent:main:main", "the owner sells the house")
	anna := ask(`"user":"anna",`)
	if want := tidemark.Key("agent:main:user:dm:anna"); anna != want || anna.Scope().Owner || anna.Scope().Peer != "user:anna" {
		t.Fatalf("the conversation of anna is %s", anna)
	}
	remember(anna, "anna grows beans")

	facts := []string{"behind the picture", "sells the house", "anna grows beans"}
	for _, row := range []struct {
		name, body string
		headers    []string
		want       []bool
	}{
		{"anna", `"user":"anna",`, nil, []bool{false, false, true}},
		{"another user", `"user":"bob",`, nil, []bool{false, false, false}},
		{"her name in capitals", `"user":"Anna",`, nil, []bool{false, false, false}},
		{"the owner", "", []string{"X-Tidemark-Session", "main"}, []bool{true, true, false}},
		{"the owner elsewhere", "", []string{"X-Tidemark-Session", "agent:main:api:dm:x"}, []bool{false, true, false}},
		{"the owner for anna", `"user":"bob",`, []string{"X-Tidemark-Session", "agent:main:user:dm:anna"}, []bool{false, false, true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			key := ask(row.body, row.headers...)
			s.text(200, "POST", "/v1/sessions/"+string(key)+"/reset", "")
			ask(row.body, row.headers...)
			for i, fact := range facts {
				if got := strings.Contains(model.system, fact); got != row.want[i] {
					t.Errorf("%s knows that %q: %v, want %v", key, fact, got, row.want[i])
				}
			}
		})
	}
}

//go:build !js

package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
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

// TestAgentByModel: the name of a model chooses an agent that is there, and makes none.
func TestAgentByModel(t *testing.T) {
	s := serve(t, nil)
	s.say("agent:work:main", "hello")
	s.say("main", "hello")
	for _, row := range []struct{ name, model, key, code string }{
		{"no agent", "tidemark", "agent:main:user:dm:anna", ""},
		{"the main one", "tidemark:main", "agent:main:user:dm:anna", ""},
		{"one that is there", "tidemark:work", "agent:work:user:dm:anna", ""},
		{"one that is not", "tidemark:works", "", "model_not_found"},
		{"what cannot be one", "tidemark:a b", "", "invalid_value"},
		{"a model of the provider", "gpt-5", "agent:main:user:dm:anna", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			for range 2 {
				res := s.do("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"user":"anna","messages":[{"role":"user","content":"hi"}]}`, row.model))
				var got struct{ Error struct{ Code string } }
				if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
				if key := res.Header.Get("X-Tidemark-Session"); key != row.key || got.Error.Code != row.code || (res.StatusCode == 200) != (row.code == "") {
					t.Errorf("%d %s in %q, want %s in %q", res.StatusCode, got.Error.Code, key, row.code, row.key)
				}
			}
		})
	}
	if names, err := s.actors.Agents(t.Context()); err != nil || !slices.Equal(names, []string{"main", "work"}) {
		t.Errorf("there are now %q, %v", names, err)
	}
}

//go:build !js

package worker_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/worker"
)

// caller is a model that calls the tool of others "act" in answer to a message, and tells what it gave.
type caller struct{}

func (caller) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("let me see"), tidemark.ToolUse(fmt.Sprint("c", len(req.Messages)), "act", []byte(`{"x":1}`))}}
		for _, b := range last.Content {
			if b.Type == tidemark.TypeToolResult {
				m = tidemark.NewText(tidemark.Assistant, "it says: "+b.Content[0].Text)
			}
		}
		if !yield(tidemark.Delta{Text: m.PlainText()}, nil) {
			return
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: "caller", Stop: "end_turn"}}}, nil)
	}
}

// acts is a toolbox with one tool.
type acts struct{}

func (acts) Tools(context.Context, tidemark.Scope) ([]tidemark.Tool, []string) {
	return []tidemark.Tool{{Name: "act", Description: "act", InputSchema: []byte(`{"type":"object"}`)}}, nil
}

func (acts) Call(_ context.Context, _ tidemark.Scope, b tidemark.Block) tidemark.Block {
	return tidemark.ToolResult(b.ID, "acted", false)
}

type waiting struct {
	Approvals []struct{ Code, Tool, Input, Session string } `json:"approvals"`
}

// asksFor begins the question that every client reads.
const asksFor = `May the tool act run with {"x":1}?`

func serveAsking(t *testing.T) *server {
	return serve(t, func(_ *worker.Config, a *actors) {
		a.provider, a.tools = caller{}, acts{}
		a.approvals.Policy = approval.Policy{Default: approval.Ask}
	})
}

// TestApprovalOverHTTP: a turn that waits ends what follows it with the question; a decision lets it go on, and the same id
// has its answer.
func TestApprovalOverHTTP(t *testing.T) {
	s := serveAsking(t)
	const path = "/v1/sessions/main"
	first := get[turn](s, 200, "POST", path+"/messages", `{"text":"go","id":"one"}`)
	if first.Stop != "approval" || !strings.HasPrefix(first.Text, asksFor) {
		t.Fatalf("the turn came to %q: %q", first.Stop, first.Text)
	}
	behind := get[turn](s, 200, "POST", path+"/messages", `{"text":"and this","id":"two"}`)
	if behind.Stop != "approval" || !strings.HasPrefix(behind.Text, asksFor) {
		t.Errorf("a message behind it: %q: %q", behind.Stop, behind.Text)
	}
	again := get[turn](s, 200, "POST", path+"/messages", `{"text":"go","id":"one"}`)
	if again.Stop != "approval" || !again.Duplicate {
		t.Errorf("the same once more: %+v", again)
	}
	list := get[waiting](s, 200, "GET", path+"/approvals", "")
	s.settle()
	all := get[waiting](s, 200, "GET", "/v1/agents/main/approvals", "")
	if len(list.Approvals) != 1 || len(all.Approvals) != 1 || list.Approvals[0] != all.Approvals[0] || list.Approvals[0].Tool != "act" {
		t.Fatalf("waiting: %+v, of the agent %+v", list, all)
	}
	code := list.Approvals[0].Code
	for _, row := range []struct {
		path, body string
		status     int
		want       string
	}{
		{path, `{"code":"` + code + `"}`, 400, `want {`},
		{path, `{"code":"` + code + `","allow":false}`, 200, `"allow":false`},
		{path, `{"code":"` + code + `","allow":true}`, 409, "was denied already"},
		{path, `{"code":"ZZZZZ","allow":true}`, 404, `no call of agent:main:main waits under the code \"ZZZZZ\"`},
		{path, `{"code":7}`, 400, "code"},
		{"/v1/agents/main", `{"code":"ZZZZZ","allow":true}`, 404, "no call waits under the code"},
		{"/v1/sessions/nobody", `{"code":"` + code + `","allow":true}`, 404, "no such session"},
	} {
		if row.path == "/v1/sessions/nobody" {
			row.want = ""
		}
		if got := s.text(row.status, "POST", row.path+"/approvals", row.body); !strings.Contains(got, row.want) {
			t.Errorf("%s %s: %s, want %s", row.path, row.body, got, row.want)
		}
	}
	s.settle()
	if got := get[turn](s, 200, "POST", path+"/messages", `{"text":"go","id":"one"}`); !strings.HasPrefix(got.Text, "it says: not run: the owner was asked and said no.") {
		t.Errorf("the answer of the turn: %q", got.Text)
	}
	if got := get[turn](s, 200, "POST", path+"/messages", `{"text":"and this","id":"two"}`); !strings.HasPrefix(got.Text, "it says: not run") {
		t.Errorf("what waited behind it is taken up with the decision: %q", got.Text)
	}
	get[turn](s, 200, "POST", path+"/messages", `{"text":"go","id":"three"}`)
	s.settle()
	all = get[waiting](s, 200, "GET", "/v1/agents/main/approvals", "")
	if len(all.Approvals) != 1 || all.Approvals[0].Code == code {
		t.Fatalf("of the agent %+v", all)
	}
	if got := s.text(200, "POST", "/v1/agents/main/approvals", `{"code":"`+all.Approvals[0].Code+`","allow":true}`); !strings.Contains(got, `"session":"agent:main:main","tool":"act"`) {
		t.Errorf("by the agent: %s", got)
	}
	s.settle()
	if got := get[turn](s, 200, "POST", path+"/messages", `{"text":"go","id":"three"}`); got.Text != "it says: acted" {
		t.Errorf("the answer of the third: %q", got.Text)
	}
}

// TestApprovalOverOtherDoors: whatever API a client speaks, it reads the question as the answer, says yes with the code as
// its next message, and reads what came of the call.
func TestApprovalOverOtherDoors(t *testing.T) {
	for _, row := range []struct{ name, path, body string }{
		{"chat completions", "/v1/chat/completions", `{"model":"tidemark","messages":[{"role":"user","content":"TEXT"}]}`},
		{"chat completions, streamed", "/v1/chat/completions", `{"model":"tidemark","stream":true,"messages":[{"role":"user","content":"TEXT"}]}`},
		{"messages", "/v1/messages", `{"model":"tidemark","max_tokens":100,"messages":[{"role":"user","content":"TEXT"}]}`},
		{"messages, streamed", "/v1/messages", `{"model":"tidemark","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"TEXT"}]}`},
		{"the AI SDK", "/api/chat", `{"id":"chat","messages":[{"id":"ID","role":"user","parts":[{"type":"text","text":"TEXT"}]}]}`},
		{"our own, streamed", "/v1/sessions/main/messages?stream=1", `{"text":"TEXT"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serveAsking(t)
			key := "main"
			if row.path == "/api/chat" {
				key = "agent:main:web:dm:chat"
			}
			say := func(id, text string) string {
				return s.text(200, "POST", row.path, strings.NewReplacer("TEXT", text, "ID", id).Replace(row.body), "X-Tidemark-Session", "main")
			}
			asked := say("m1", "go")
			list := get[waiting](s, 200, "GET", "/v1/sessions/"+key+"/approvals", "")
			if len(list.Approvals) != 1 {
				t.Fatalf("%+v waits, after %s", list, asked)
			}
			yes := "yes " + list.Approvals[0].Code
			if strings.Count(asked, `May the tool act run with`) == 0 || !strings.Contains(asked, yes) {
				t.Errorf("the client reads %s", asked)
			}
			if got := say("m2", yes); !strings.Contains(got, "it says: acted") || strings.Contains(got, "May the tool") {
				t.Errorf("behind the yes it reads %s", got)
			}
			s.settle()
		})
	}
}

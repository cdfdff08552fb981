//go:build !js

package worker_test

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/worker"
)

// marker is an agent whose newest message from a person is the list of its calls, one a reply.
type marker struct{ n int }

type markedCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (m *marker) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		var calls []markedCall
		done := 0
		for _, msg := range slices.Backward(req.Messages) {
			if len(msg.Results()) > 0 {
				done++
			} else if msg.Role == tidemark.User {
				said := msg.Content[0].Text
				_ = json.Unmarshal([]byte(said[:strings.LastIndexByte(said, ']')+1]), &calls)
				break
			}
		}
		out, stop := tidemark.NewText(tidemark.Assistant, "Done."), "end_turn"
		if done < len(calls) {
			m.n++
			out, stop = tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("toolu_", m.n), calls[done].Name, calls[done].Input)}}, "tool_use"
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: out, Call: tidemark.Call{Stop: stop}}}, nil)
	}
}

// toldEpisodes is the body of GET …/episodes.
type toldEpisodes struct {
	Active   *bool  `json:"active"`
	Budget   int    `json:"budget"`
	LowWater int    `json:"lowWater"`
	Open     string `json:"open"`
	Episodes []struct {
		N            int      `json:"n"`
		Name         string   `json:"name"`
		Type         string   `json:"type"`
		State        string   `json:"state"`
		Dependencies []string `json:"dependencies"`
	} `json:"episodes"`
	Counts map[string]int `json:"counts"`
	Total  int            `json:"total"`
	Next   int            `json:"next"`
}

// marks asks the agent for n explorations, and an action on all of them that stays open.
func marks(n int) string {
	var calls, names []string
	for i := range n {
		names = append(names, fmt.Sprintf(`"look %d"`, i))
		calls = append(calls, `{"name":"delimiter","input":{"action":"start","name":`+names[i]+`,"type":"expl"}}`, `{"name":"recall","input":{"query":"walnut"}}`,
			`{"name":"delimiter","input":{"action":"end","description":"seen"}}`)
	}
	calls = append(calls, `{"name":"delimiter","input":{"action":"start","name":"do it","type":"act","dependencies":[`+strings.Join(names, ",")+`]}}`)
	body, _ := json.Marshal(map[string]string{"text": "[" + strings.Join(calls, ",") + "]"})
	return string(body)
}

func serveEpisodes(t *testing.T) *server {
	return serve(t, func(_ *worker.Config, a *actors) {
		a.provider = &marker{}
		a.planning = func() []compaction.Strategy {
			return []compaction.Strategy{&compaction.Episodes{Budget: episodes.Budget{Tokens: 20_000}}}
		}
	})
}

// TestEpisodesRoute: the newest stand there in pages, oldest first, and the sums are of all.
func TestEpisodesRoute(t *testing.T) {
	s := serveEpisodes(t)
	s.text(200, "POST", "/v1/sessions/main/messages", marks(3))
	all := get[toldEpisodes](s, 200, "GET", "/v1/sessions/main/episodes", "")
	if all.Active == nil || !*all.Active || all.Budget != 20_000 || all.LowWater != 15_000 || all.Open != "do it" || all.Total != 4 || len(all.Episodes) != 4 || all.Next != 0 ||
		all.Counts["open"] != 1 || all.Counts["whole"] != 3 {
		t.Fatalf("%+v", all)
	}
	if e := all.Episodes[3]; e.Name != "do it" || e.Type != "act" || e.State != "open" || len(e.Dependencies) != 3 {
		t.Errorf("%+v", e)
	}
	newest := get[toldEpisodes](s, 200, "GET", "/v1/sessions/main/episodes?limit=3", "")
	if len(newest.Episodes) != 3 || newest.Episodes[0].N != 2 || newest.Next != 2 || newest.Total != 4 || newest.Counts["whole"] != 3 {
		t.Errorf("%+v", newest)
	}
	oldest := get[toldEpisodes](s, 200, "GET", "/v1/sessions/main/episodes?limit=3&before=2", "")
	if len(oldest.Episodes) != 1 || oldest.Episodes[0].Name != "look 0" || oldest.Next != 0 {
		t.Errorf("%+v", oldest)
	}
	if none := s.text(200, "GET", "/v1/sessions/main/episodes?before=1", ""); !strings.Contains(none, `"episodes":[]`) {
		t.Error(none)
	}
}

// TestEpisodesRouteMistakes: they are told as those of other routes are.
func TestEpisodesRouteMistakes(t *testing.T) {
	s := serveEpisodes(t)
	s.text(200, "POST", "/v1/sessions/main/messages", marks(1))
	for path, status := range map[string]int{"/v1/sessions/absent/episodes": 404, "/v1/sessions/main/episodes?limit=0": 400, "/v1/sessions/main/episodes?before=0": 400, "/v1/sessions/main/episodes?before=x": 400,
		"/v1/sessions/main/episodes?limi=3": 400, "/v1/sessions/a%20b/episodes": 400} {
		if f := get[fault](s, status, "GET", path, ""); f.Error.Message == "" {
			t.Errorf("%s: no message", path)
		}
	}
	s.text(405, "POST", "/v1/sessions/main/episodes", "")
}

// TestEpisodeRead: the owner reads an episode back by its name, in pages, and an unknown one is answered with those near it.
func TestEpisodeRead(t *testing.T) {
	s := serveEpisodes(t)
	s.text(200, "POST", "/v1/sessions/main/messages", marks(2))
	type page struct {
		Episode, Text string
		Next          int
	}
	const path = "/v1/sessions/main/recall?episode="
	whole := get[page](s, 200, "GET", path+"look+1", "")
	if whole.Episode != `exploration "look 1"` || !strings.Contains(whole.Text, `"description":"seen"`) || strings.Contains(whole.Text, "look 0") || whole.Next != 0 {
		t.Errorf("%+v", whole)
	}
	if rest := get[page](s, 200, "GET", path+"look+1&offset=10", ""); rest.Text != whole.Text[10:] {
		t.Errorf("%+v", rest)
	}
	for query, want := range map[string]string{"": "want its name", "look+1&offset=x": "want a number", "look+1&offset=99999": "has ", "look+1&q=walnut": "want episode and offset alone"} {
		if f := get[fault](s, 400, "GET", path+query, ""); !strings.Contains(f.Error.Message, want) {
			t.Errorf("%s: %s", query, f.Error.Message)
		}
	}
	if f := get[fault](s, 400, "GET", "/v1/sessions/main/recall?q=walnut&offset=3", ""); !strings.Contains(f.Error.Message, "want episode=NAME") {
		t.Error(f.Error.Message)
	}
	if f := get[fault](s, 404, "GET", path+"looking", ""); !strings.Contains(f.Error.Message, `Near to it: "look 1", "look 0"`) {
		t.Error(f.Error.Message)
	}
}

// TestEpisodesRouteInactive: without the strategy the episodes are read out of the log, and it says that it is off.
func TestEpisodesRouteInactive(t *testing.T) {
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = &marker{} })
	s.text(200, "POST", "/v1/sessions/main/messages", `{"text":"[{\"name\":\"recall\",\"input\":{\"query\":\"walnut\"}}]"}`)
	v := get[toldEpisodes](s, 200, "GET", "/v1/sessions/main/episodes", "")
	if v.Active == nil || *v.Active || v.Budget != 0 || v.Total != 1 || v.Episodes[0].Name != "" || v.Episodes[0].Type != "" {
		t.Errorf("%+v", v)
	}
}

// TestEpisodesRouteProxied: of a client's conversation they are those of its longest track, or of the one that is named.
func TestEpisodesRouteProxied(t *testing.T) {
	r := ramble(t)
	call := func(id, input string) []string {
		return []string{`{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"delimiter","input":` + input + `}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}]}`}
	}
	history := append([]string{`{"role":"user","content":"begin"}`}, call("toolu_1", `{"action":"start","name":"look","type":"expl"}`)...)
	history = append(append(history, call("toolu_2", `{"action":"end","description":"seen"}`)...), `{"role":"assistant","content":[{"type":"text","text":"Well."}]}`)
	r.say(history, "go on")
	r.say(nil, "something else")
	r.settle()
	for track, want := range map[string]string{"": "look", "#t1": "look", "#t2": ""} {
		var v toldEpisodes
		raw := r.get(track, "/episodes", &v)
		first := ""
		if v.Total > 0 {
			first = v.Episodes[0].Name
		}
		if first != want {
			t.Errorf("%q: %s", track, raw)
		}
	}
	for track, status := range map[string]int{"": 200, "#t1": 200, "#t2": 404} {
		if got := r.text(status, "GET", "/v1/sessions/"+url.PathEscape(r.key+track)+"/recall?episode=look", "", "X-Tidemark-Token", token); status == 200 && (!strings.Contains(got, "delimiter") || strings.Contains(got, "Well")) {
			t.Errorf("%q: %s", track, got)
		}
	}
	r.text(404, "GET", "/v1/sessions/"+url.PathEscape(r.key+"#t9")+"/episodes", "", "X-Tidemark-Token", token)
}

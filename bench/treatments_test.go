package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// small is a run that takes no time.
func small(names ...string) Treatments {
	return Treatments{Names: names, Requests: 80, Bytes: 900, Seed: 1, Via: http.DefaultTransport}
}

// TestTreatmentsDirect: without a proxy the task is done with as many calls as were planned, nothing is missing, most of
// the input is read from the cache, and all is the same again.
func TestTreatmentsDirect(t *testing.T) {
	got, err := small(Direct, Direct).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, b := got[0], got[1]
	if !a.Completed || !a.Same || a.Facts < 8 || a.Missing != 0 || a.Reread != 0 {
		t.Errorf("got %+v", a)
	}
	if a.Calls != a.Requests || a.Calls != makePlan(80, 900, 1).requests+1 {
		t.Errorf("%d calls of %d requests, planned are %d and one for a title", a.Calls, a.Requests, makePlan(80, 900, 1).requests)
	}
	if a.Share < 0.6 || a.Share > 0.99 || a.Cost >= float64(a.Effective) {
		t.Errorf("%.2f of the input is read from the cache, at a cost of %.0f of %d tokens", a.Share, a.Cost, a.Effective)
	}
	if b.Reduction != 0 || b.CostBy != 1 || a.Effective != b.Effective || a.Output != b.Output {
		t.Errorf("a second run differs: %+v and %+v", a, b)
	}
}

// stubbing is a proxy that takes the content of all results but the newest ones away, and the API behind it.
func stubbing(t *testing.T, keep int) func(context.Context, string) (Door, error) {
	return func(_ context.Context, api string) (Door, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return Door{}, err
		}
		srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var req map[string]any
			if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
				t.Error(err)
			}
			messages := req["messages"].([]any)
			for i, m := range messages {
				list, ok := m.(map[string]any)["content"].([]any)
				for _, b := range list {
					if block := b.(map[string]any); ok && i < len(messages)-keep && block["type"] == "tool_result" {
						block["content"] = "[Paged out.]"
					}
				}
			}
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			_ = e.Encode(req)
			res, err := http.Post(api+"/v1/messages", "application/json", &out)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = res.Body.Close() }()
			w.WriteHeader(res.StatusCode)
			_, _ = io.Copy(w, res.Body)
		})}
		go func() { _ = srv.Serve(l) }()
		return Door{"http://" + l.Addr().String(), srv.Close}, nil
	}
}

// TestTreatmentsReact: an agent whose results are gone reads its files again, and its task is done all the same.
func TestTreatmentsReact(t *testing.T) {
	s := small(Direct, "page")
	s.Bytes, s.Door = 3000, stubbing(t, 6)
	got, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p := got[1]; p.Missing == 0 || p.Reread != p.Missing || p.Restored != 0 || !p.Completed || p.Calls <= got[0].Calls || p.Reduction <= 0 {
		t.Errorf("got %+v, directly %+v", p, got[0])
	}
	s.Door = stubbing(t, 0) // what is read is never seen
	if got, err = s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := got[1]; p.Completed || p.Found == p.Facts {
		t.Errorf("the task is said to be done without seeing anything: %+v", p)
	}
}

// TestMind: what a model does with the tools of a proxy.
func TestMind(t *testing.T) {
	p := makePlan(80, 900, 1)
	m := &mind{p: p, name: "main", steps: []deedOf{{needs, 5, 0}, {runs, 0, 1}}}
	ask := func(tools, content string) *apiAsk {
		var a apiAsk
		if err := json.Unmarshal([]byte(`{"tools":[`+tools+`],"messages":[{"role":"user","content":`+content+`}]}`), &a); err != nil {
			t.Fatal(err)
		}
		return &a
	}
	const ours = `{"name":"memory_fault"},{"name":"memory_release"}`
	first := m.next(ask(ours, `"[Paged out: x]"`))
	if len(first.calls) != 1 || first.calls[0].name != faultTool || !strings.Contains(string(first.calls[0].input), fileName(5)) {
		t.Fatalf("got %+v", first)
	}
	second := m.next(ask(ours, `"[Paged out: x]"`))
	if len(second.calls) != 1 || second.calls[0].name != "Read" {
		t.Fatalf("got %+v", second)
	}
	m.finished = []string{"a", "b"}
	third := m.next(ask(ours, `"`+factOf(5)+`abcdef, Call memory_release with this, or <memory_cleanup>"`))
	if len(third.calls) != 1 || !strings.Contains(string(third.calls[0].input), "record 5 abcdef") || !strings.Contains(third.tags, "<memory_cleanup>\nrelease: a, b, "+fileName(5)) {
		t.Fatalf("got %+v", third)
	}
	if m.missing != 1 || m.reread != 1 || m.restored != 0 || m.released != 1 {
		t.Errorf("got %+v", m)
	}
	m.finished = []string{"a", "b", "c"}
	if last := m.next(ask(ours, `"Call memory_release, or <memory_cleanup>"`)); len(last.calls) != 2 || last.calls[0].name != releaseTool {
		t.Errorf("got %+v", last)
	}
}

// TestPromptCache: what is read and written at the price of the cache.
func TestPromptCache(t *testing.T) {
	clock := &virtualClock{now: time.Unix(0, 0)}
	c := newPromptCache(clock)
	big := strings.Repeat("x", 5000)
	block := func(text string, marked bool) string {
		if marked {
			return `{"type":"text","text":"` + text + `"` + cacheMark + `}`
		}
		return `{"type":"text","text":"` + text + `"}`
	}
	count := func(model, header string, blocks ...string) tidemark.Usage {
		t.Helper()
		var a apiAsk
		raw := fmt.Sprintf(`{"model":%q,"system":[{"type":"text","text":"x-anthropic-billing-header: %s"},%s],"messages":[{"role":"user","content":[%s]}]}`,
			model, header, block(big, true), strings.Join(blocks, ","))
		if err := json.Unmarshal([]byte(raw), &a); err != nil {
			t.Fatal(err)
		}
		u, err := c.count(&a)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first := count("m", "1", block(big, true), block("end", false))
	if first.CacheRead != 0 || first.CacheCreation < 3000 || first.Input == 0 || first.Input > 20 {
		t.Errorf("first: %+v", first)
	}
	if u := count("m", "2", block(big, false), block("end", true)); u.CacheRead != first.CacheCreation || u.CacheCreation != first.Input || u.Input != 0 {
		t.Errorf("the marker moved, and a header that does not count changed: %+v behind %+v", u, first)
	}
	if u := count("m", "2", block("y"+big, false), block("end", true)); u.CacheRead == 0 || u.CacheRead > 1600 {
		t.Errorf("another message: %+v, want the system prompt from the cache", u)
	}
	if u := count("n", "2", block(big, true)); u.CacheRead != 0 {
		t.Errorf("another model: %+v", u)
	}
	clock.now = clock.now.Add(cacheTTL)
	if u := count("m", "2", block(big, false), block("end", true)); u.CacheRead != 0 {
		t.Errorf("after five minutes: %+v", u)
	}
	many := make([]string, cacheLookback+1)
	for i := range many {
		many[i] = block(fmt.Sprint(i), i == len(many)-1)
	}
	if u := count("m", "2", many...); u.CacheRead == 0 {
		t.Errorf("the marker of the system prompt still counts: %+v", u)
	}
	if _, err := c.count(&apiAsk{System: json.RawMessage("[" + strings.Join([]string{block("a", true), block("b", true), block("c", true), block("d", true), block("e", true)}, ",") + "]")}); err == nil {
		t.Error("five markers are taken")
	}
}

// TestTreatmentsRefuses: what cannot be run is said before anything runs.
func TestTreatmentsRefuses(t *testing.T) {
	for _, bad := range []Treatments{{}, {Names: []string{Direct}, Requests: 1, Bytes: 900}, {Names: []string{Direct}, Requests: 80, Bytes: 1}} {
		if _, err := bad.Run(t.Context()); err == nil {
			t.Errorf("%+v runs", bad)
		}
	}
}

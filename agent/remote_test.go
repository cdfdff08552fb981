package agent_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// handler answers requests in place, as the object of an agent does.
type handler http.HandlerFunc

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	h(w, r)
	return w.Result(), nil
}

func remoteOf(w *world, h http.HandlerFunc) *agent.Remote {
	return &agent.Remote{Name: w.cfg.Name, Transport: handler(h), Runtime: hosttest.Runtime(w.t)}
}

// TestRemote holds what a session gets from an agent in another object against what it gets from the
// agent itself.
func TestRemote(t *testing.T) {
	w := newWorld(t)
	r := remoteOf(w, w.Peer)
	ctx := t.Context()
	key := tidemark.Key("agent:" + w.cfg.Name + ":main")
	scope := key.Scope()

	x := tidemark.Extraction{ID: "x1", Session: "s", Scope: scope, At: noon, Facts: []tidemark.Fact{{Text: "The table is of walnut.", Sources: []tidemark.EntryID{"a", "b"}}}}
	for range 2 { // the second is a repetition
		if err := r.Remember(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	info := tidemark.SessionInfo{Key: key, ID: "s", UpdatedAt: noon, Messages: 3}
	if err := r.Report(ctx, info, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Session(ctx, key); err != nil || !reflect.DeepEqual(got, info) {
		t.Errorf("the directory has %+v, %v", got, err)
	}
	facts, _, err := w.Facts(ctx, "", 10)
	if err != nil || len(facts) != 1 || facts[0].Text != x.Facts[0].Text {
		t.Errorf("facts %+v, %v", facts, err)
	}

	there, err := w.Prompt(ctx, scope, noon)
	here, err2 := r.Prompt(ctx, scope, noon)
	if err != nil || err2 != nil || here != there || !strings.Contains(here, "walnut") {
		t.Errorf("prompt from afar\n%s\n%v\nwant\n%s\n%v", here, err2, there, err)
	}
	small, mark, err := r.PromptWithin(ctx, scope, noon, 30)
	if want, made, _ := w.PromptWithin(ctx, scope, noon, 30); err != nil || small != want || small == here || !reflect.DeepEqual(mark, made) || len(mark.Files) == 0 {
		t.Errorf("prompt within 30 tokens %q, %+v, %v, want %q, %+v", small, mark, err, want, made)
	}
	write(t, w.blobs, "MEMORY.md", "- The bench is of oak.\n")
	since := memory.Since{Mark: mark, Now: noon, Most: 1000}
	news, err := r.News(ctx, scope, since)
	if want, _ := w.News(ctx, scope, since); err != nil || !reflect.DeepEqual(news, want) || len(news.Files) != 1 {
		t.Errorf("news from afar %+v, %v, want %+v", news, err, want)
	}
	if a, b := r.Tools(scope), w.Tools(scope); len(a) == 0 || !reflect.DeepEqual(a, b) {
		t.Errorf("tools %v, want %v", a, b)
	}
	if tools := r.Tools(tidemark.Key("agent:other:main").Scope()); tools != nil {
		t.Errorf("tools for another agent's session: %v", tools)
	}

	if err := r.Introduce(ctx, "work"); err != nil {
		t.Fatal(err)
	}
	if names, err := r.Names(ctx); err != nil || !slices.Equal(names, []string{"work"}) {
		t.Errorf("agents %q, %v", names, err)
	}

	call := tidemark.ToolUse("c1", agent.ToolSearch, json.RawMessage(`{"query":"walnut"}`))
	got, want := r.Call(ctx, scope, call), w.Call(ctx, scope, call)
	if a, b := encode(t, got), encode(t, want); a != b || got.IsError {
		t.Errorf("call from afar %s\nwant %s", a, b)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRemoteErrors: an error keeps what it is on its way.
func TestRemoteErrors(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	other := tidemark.Key("agent:other:main")
	for _, row := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"a session of another agent", remoteOf(w, w.Peer).Report(ctx, tidemark.SessionInfo{Key: other}, nil), tidemark.ErrForbidden, "agent:other:main"},
		{"an archive of another agent", remoteOf(w, w.Peer).Report(ctx, tidemark.SessionInfo{}, []archive.Info{{Key: "agents/other/x"}}), tidemark.ErrInvalid, "agents/other/x"},
		{"an object that failed", remoteOf(w, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }).Report(ctx, tidemark.SessionInfo{}, nil), tidemark.ErrUnavailable, "status 500"},
		{"an answer that is none", remoteOf(w, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{")) }).Report(ctx, tidemark.SessionInfo{}, nil), tidemark.ErrUnavailable, "status 200"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if !errors.Is(row.err, row.want) || !strings.Contains(row.err.Error(), row.text) {
				t.Errorf("got %v, want %v with %q", row.err, row.want, row.text)
			}
		})
	}
	w.blobs.Fail = func(_, _ string) error { return errors.New("the bucket is down") }
	text, err := remoteOf(w, w.Peer).Prompt(ctx, tidemark.Key("agent:"+w.cfg.Name+":main").Scope(), noon)
	if err == nil || !strings.Contains(err.Error(), "the bucket is down") || !strings.Contains(text, "Agent: "+w.cfg.Name) {
		t.Errorf("with a bucket that is down: %q, %v; want what could be read, and why not all", text, err)
	}
	if n, err := remoteOf(w, w.Peer).News(ctx, scope(t, "main"), memory.Since{Now: noon, Mark: memory.Mark{Files: []memory.Marked{{Path: "MEMORY.md", Lines: "01234567"}}}}); err == nil || len(n.Gone) > 0 {
		t.Errorf("with a bucket that is down: news %+v, %v; want an error, and nothing gone", n, err)
	}
}

// TestNames: agents that are there tell the main one.
func TestNames(t *testing.T) {
	w := newWorld(t)
	r := remoteOf(w, w.Peer)
	for _, name := range []string{"work", "home", "work"} {
		if err := r.Introduce(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Introduce(t.Context(), "no name"); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a name that is none: %v", err)
	}
	if names, err := w.Names(t.Context()); err != nil || !reflect.DeepEqual(names, []string{"home", "work"}) {
		t.Errorf("names %v, %v", names, err)
	}
}

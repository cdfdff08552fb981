//go:build !js

package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestProxyFirstByte: what the API says the client hears at once.
func TestProxyFirstByte(t *testing.T) {
	up, down := io.Pipe()
	p := serveProxy(t, func(int, *http.Request, string) *http.Response {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, Body: up}
	}, func(c *worker.Config) { c.Ping = 20 * time.Millisecond })
	go func() {
		for piece := range strings.SplitAfterSeq(helloEvents(), "\n\n") {
			_, _ = io.WriteString(down, piece)
			time.Sleep(30 * time.Millisecond) // so that there are signs of life between them
		}
		down.Close()
	}()
	res := p.ask("/v1/messages", fmt.Sprintf(withAct, true))
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	got := read(t, res)
	if plain := strings.ReplaceAll(got, ": ping\n\n", ""); plain != helloEvents() || plain == got {
		t.Errorf("%s", got)
	}
}

// TestProxyAgain: our own tools are answered here, and the client sees one answer.
func TestProxyAgain(t *testing.T) {
	for _, live := range []bool{false, true} {
		for _, row := range []struct {
			name   string
			second *http.Response
			want   string // of the client; of a stream that it ends with
			status int
		}{
			{"it goes on", nil, "Hello.", 200},
			{"it is overloaded", answerOf(529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After", "3"), "Overloaded", 529},
			{"it is none", answerOf(200, "text/html", "<p>"), "", 200},
		} {
			t.Run(fmt.Sprint(row.name, " ", live), func(t *testing.T) {
				media, first, second := "application/json", release, whole
				if live {
					media, first, second = "text/event-stream", releaseEvents(), helloEvents()
				}
				p := serveProxy(t, func(n int, _ *http.Request, _ string) *http.Response {
					switch {
					case n == 0:
						return answerOf(200, media, first)
					case row.second != nil:
						return row.second
					}
					return answerOf(200, media, second)
				}, nil)
				res := p.ask("/v1/messages", fmt.Sprintf(withAct, live))
				got := read(t, res)
				asked, bodies := p.up.all()
				if len(asked) != 2 || !strings.Contains(bodies[1], `"tool_use_id":"toolu_1"`) || asked[1].Header.Get("X-Api-Key") != ownKey || asked[0].Header.Get("Accept-Encoding") != "identity" {
					t.Fatalf("%d calls, the last with %s", len(asked), bodies[len(bodies)-1])
				}
				if strings.Contains(got, "memory_release") || !strings.Contains(got, row.want) {
					t.Errorf("the client sees %s", got)
				}
				switch {
				case live && (res.StatusCode != 200 || strings.Count(got, "event: message_start") > 1 || row.second != nil && !strings.Contains(got, "event: error")):
					t.Errorf("%d %s", res.StatusCode, got)
				case !live && (res.StatusCode != row.status || row.second != nil && res.Header.Get("Retry-After") != row.second.Header.Get("Retry-After")):
					t.Errorf("%d %v", res.StatusCode, res.Header)
				}
				if _, quiet := p.keys(); !quiet {
					t.Error("the exchange has not ended")
				}
			})
		}
	}
}

// TestProxyCut: an answer that breaks off is told in the words of the API, and not where nothing is changed.
func TestProxyCut(t *testing.T) {
	for mode, told := range map[string]bool{"page": true, "observe": false, "off": false} {
		t.Run(mode, func(t *testing.T) {
			p := serveProxy(t, func(int, *http.Request, string) *http.Response {
				res := answerOf(200, "text/event-stream", "")
				res.Body = io.NopCloser(io.MultiReader(strings.NewReader(helloEvents()[:600]), broken{}))
				return res
			}, nil)
			raw, err := io.ReadAll(p.ask("/v1/messages", fmt.Sprintf(withAct, true), "X-Tidemark-Mode", mode).Body)
			if strings.Contains(string(raw), "event: error") != told || (err == nil) != told {
				t.Errorf("%v: %s", err, raw)
			}
			if _, quiet := p.keys(); !quiet {
				t.Error("the exchange has not ended")
			}
		})
	}
}

// TestProxyCutWhole: half of a whole answer is none, and the client may try again.
func TestProxyCutWhole(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response {
		res := answerOf(200, "application/json", "")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole[:50]), broken{}))
		return res
	}, nil)
	res := p.ask("/v1/messages", hello)
	if raw := read(t, res); res.StatusCode != http.StatusBadGateway || strings.Contains(raw, "peer") || !strings.Contains(raw, "broke off") {
		t.Errorf("%d %s", res.StatusCode, raw)
	}
	if strings.Contains(p.log.String(), "level=ERROR") {
		t.Errorf("it is taken for a fault of this server: %s", p.log)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("reset by peer") }

// TestProxyLeft: when the client leaves, the call ends.
func TestProxyLeft(t *testing.T) {
	up, down := io.Pipe()
	gone := make(chan struct{})
	p := serveProxy(t, func(_ int, r *http.Request, _ string) *http.Response {
		context.AfterFunc(r.Context(), func() { down.CloseWithError(r.Context().Err()); close(gone) })
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: up}
	}, nil)
	go func() {
		_, _ = io.WriteString(down, helloEvents()[:strings.Index(helloEvents(), "event: content_block_stop")])
	}()
	res := p.ask("/v1/messages", fmt.Sprintf(withAct, true))
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "event: message_start\n" {
		t.Fatalf("%v: %q", err, line)
	}
	res.Body.Close()
	select {
	case <-gone:
	case <-time.After(tidemarktest.Patience):
		t.Fatal("the call goes on")
	}
	for range 500 {
		if _, quiet := p.keys(); quiet {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the exchange has not ended")
}

// TestProxyKept: what was said is a conversation like any other, in which only its client says anything.
func TestProxyKept(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", whole) }, nil)
	key := p.ask("/v1/messages", hello).Header.Get("X-Tidemark-Session")
	raw := p.text(200, "GET", "/v1/sessions/"+key+"/log", "", "X-Tidemark-Token", token)
	if !strings.Contains(raw, "Hello.") || !strings.Contains(raw, `"hi"`) {
		t.Errorf("the log has %s", raw)
	}
	for path, body := range map[string]string{"messages": `{"text":"hi"}`, "commands": `{"line":"/compact"}`, "compact": `{}`, "reset": `{}`, "undo": `{"overlay":"x"}`,
		"task": `{"add":[{"kind":"goal","text":"x"}]}`, "import?format=jsonl": `{"role":"user","content":"hi"}`} {
		p.text(409, "POST", "/v1/sessions/"+key+"/"+path, body, "X-Tidemark-Token", token)
	}
	p.text(409, "POST", "/v1/messages", hello, "X-Tidemark-Token", token, "X-Tidemark-Session", key)
}

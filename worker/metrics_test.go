//go:build !js

package worker_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/worker"
)

// scrape reads the metrics, each line of which must be of the exposition format.
func scrape(t *testing.T, s *server) map[string]float64 {
	t.Helper()
	line := regexp.MustCompile(`^([a-z_]+(?:\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})?) (\S+)$`)
	typed := map[string]bool{}
	out := map[string]float64{}
	for l := range strings.Lines(s.text(200, "GET", "/metrics", "")) {
		l = strings.TrimSuffix(l, "\n")
		if f := strings.Fields(l); f[0] == "#" {
			if f[1] == "TYPE" {
				if typed[f[2]] {
					t.Errorf("%s is declared twice", f[2])
				}
				typed[f[2]] = true
			}
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no sample: %s", l)
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if _, twice := out[m[1]]; err != nil || twice {
			t.Errorf("%s: %v, twice %v", l, err, twice)
		}
		out[m[1]] = v
	}
	return out
}

func TestMetrics(t *testing.T) {
	s := serve(t, nil)
	fill(t, s, "main")
	s.text(200, "POST", "/v1/sessions/main/reset", "")
	s.text(404, "GET", "/v1/sessions/absent", "")
	s.text(404, "GET", "/nowhere", "")
	s.settle()
	got := scrape(t, s)
	said := got[`tidemark_http_requests_total{route="POST /v1/sessions/{key}/messages",status="200"}`]
	for name, want := range map[string]float64{
		`tidemark_http_requests_total{route="GET /v1/sessions/{key}",status="404"}`: 1,
		`tidemark_http_requests_total{route="none",status="404"}`:                   1,
		`tidemark_errors_total{type="not_found"}`:                                   2,
		`tidemark_turns_total{end="done"}`:                                          said + 1,
		`tidemark_turn_seconds_count`:                                               said + 1,
		`tidemark_turn_seconds_bucket{le="+Inf"}`:                                   said + 1,
		`tidemark_compactions_total`:                                                1,
		`tidemark_sessions_working`:                                                 0,
		`tidemark_build_info{version="test"}`:                                       1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{`tidemark_tokens_total{kind="input"}`, `tidemark_tokens_total{kind="output"}`, `tidemark_model_calls_total{outcome="ok"}`, `tidemark_turn_seconds_sum`} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

func TestMetricsOfFailures(t *testing.T) {
	g := newGate()
	g.on <- &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no"}
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	s.text(502, "POST", "/v1/sessions/main/messages", `{"text":"hello"}`)
	s.settle()
	got := scrape(t, s)
	for _, name := range []string{`tidemark_turns_total{end="auth"}`, `tidemark_model_calls_total{outcome="auth"}`} {
		if got[name] != 1 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if got["tidemark_errors_total{type=\"auth\"}"] < 1 {
		t.Error("the failure is not counted")
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room/anatomy"
)

// proxiedClient is a program behind a proxy: `client METHOD PATH [BODY]` calls the Messages API that its environment
// names with a key of its own, `client -openai …` chat completions. It prints status and body; a status over
// 299 is exit code 5.
func proxiedClient() int {
	args, base, header := os.Args[1:], os.Getenv("ANTHROPIC_BASE_URL"), "X-Api-Key"
	key := os.Getenv("CLIENT_KEY")
	if args[0] == "-openai" {
		args, base, header, key = args[1:], os.Getenv("OPENAI_BASE_URL"), "Authorization", "Bearer "+key
	}
	req, err := http.NewRequestWithContext(context.Background(), args[0], base+args[1], strings.NewReader(strings.Join(args[2:], " ")))
	if err != nil {
		fmt.Println(err)
		return cli.ExitFailed
	}
	req.Header.Set(header, key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return cli.ExitFailed
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode)
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		fmt.Println(err)
		return cli.ExitFailed
	}
	fmt.Println()
	if res.StatusCode > 299 {
		return 5
	}
	return cli.ExitOK
}

// upstream VARIABLE starts a stand-in for both APIs and sets a variable to its base URL. It answers with what it was
// sent, and what the client may not have sent on is missing there or is not.
func upstream(ts *testscript.TestScript, _ bool, args []string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var ours []string
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Tidemark") {
				ours = append(ours, name)
			}
		}
		slices.Sort(ours)
		if strings.Contains(string(raw), "overload") {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(529)
		}
		got := fmt.Sprintf("%s key=%s auth=%s ours=%v bytes=%d", r.URL.Path, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), ours, len(raw))
		if strings.HasSuffix(r.URL.Path, "completions") {
			fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105}}`, got)
			return
		}
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":20,"cache_read_input_tokens":80,"output_tokens":5}}`, got)
	}))
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL)
}

// TestChildEnv: only the two variables are others, and an HTTP proxy of the environment is not asked for the way
// to this machine.
func TestChildEnv(t *testing.T) {
	for _, row := range []struct {
		name    string
		environ []string
		want    []string
	}{
		{"plain", []string{"A=1", "ANTHROPIC_API_KEY=k"}, []string{"A=1", "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://x/p/n", "OPENAI_BASE_URL=http://x/p/n/v1"}},
		{"a token", []string{"TIDEMARK_TOKEN=t", "A=1"}, []string{"A=1", "ANTHROPIC_BASE_URL=http://x/p/n", "OPENAI_BASE_URL=http://x/p/n/v1"}},
		{"one is there", []string{"ANTHROPIC_BASE_URL=http://old", "A=1"}, []string{"A=1", "ANTHROPIC_BASE_URL=http://x/p/n", "OPENAI_BASE_URL=http://x/p/n/v1"}},
		{
			"behind a proxy",
			[]string{"http_proxy=http://corp:1", "NO_PROXY=.corp"},
			[]string{"http_proxy=http://corp:1", "ANTHROPIC_BASE_URL=http://x/p/n", "OPENAI_BASE_URL=http://x/p/n/v1", "NO_PROXY=.corp,127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := childEnv(row.environ, "http://x/p/n"); !slices.Equal(got, row.want) {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

// TestIsDoor: an endpoint that a proxy of ours gave is told from any other.
func TestIsDoor(t *testing.T) {
	for base, want := range map[string]bool{
		"http://127.0.0.1:4021/p/claude-5f0c/v1": true, "http://127.0.0.1:4021/t/0af9/p/x": true, "http://127.0.0.1:4021/p/x/": true,
		"http://127.0.0.1:4021/v1": false, "http://10.0.0.1/p/x/v1": false, "https://api.openai.com/v1": false, "http://gate.test/p/x/v1": false, "": false,
	} {
		if cli.IsDoor(base) != want {
			t.Errorf("isDoor(%q) is not %t", base, want)
		}
	}
}

// TestProxyNames: a name goes into a path and a header as it is.
func TestProxyNames(t *testing.T) {
	for name, want := range map[string]bool{
		"": true, "review": true, "claude-5f0c.2_x": true, "a/b": false, "..": false, ".x": false, "a b": false, "ä": false,
		strings.Repeat("a", maxProxyName): true, strings.Repeat("a", maxProxyName+1): false,
	} {
		if plainName(name) != want {
			t.Errorf("plainName(%q) is not %t", name, want)
		}
	}
	if a, b := freshName([]string{"/usr/bin/claude"}), freshName([]string{"/usr/bin/claude"}); a == b || !strings.HasPrefix(a, "claude-") {
		t.Errorf("two starts are %s and %s", a, b)
	}
	if got := freshName([]string{"we ird"}); !strings.HasPrefix(got, "client-") {
		t.Errorf("an odd command gives %s", got)
	}
}

// TestForClients: a client is told of one door and finds no other behind it.
func TestForClients(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/messages": true, "/v1/chat/completions": true, "/v1/models/a/b": true, "/v1/sessions": true, "/": true,
		"/ws": false, "/v1/models/../sessions": false, "/metrics": false, "/s/main/v1/messages": false, "/api/chat": false,
	} {
		if forClients(path) != want {
			t.Errorf("forClients(%q) is not %t", path, want)
		}
	}
	for path, want := range map[string]bool{
		"/v1/messages": false, "/v1/messages/count_tokens": false, "/v1/chat/completions": false, "/": false,
		"/v1/messages/batches": true, "/v1/models": true, "/v1/sessions": true, "/v1/embeddings": true,
	} {
		if otherRoute(path) != want {
			t.Errorf("otherRoute(%q) is not %t", path, want)
		}
	}
}

// TestUpstreamURL: people give base URLs with and without the version.
func TestUpstreamURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.example.com": "https://api.example.com", "https://api.example.com/": "https://api.example.com", "http://x:1/v1/": "http://x:1",
		"http://x/anthropic": "http://x/anthropic", "api.example.com": "", "ftp://x": "", "": "",
	} {
		if got, err := upstreamURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("upstreamURL(%q) = %q, %v", text, got, err)
		}
	}
}

// TestProxySums: what would have been read without the proxy is that of one call, by the bytes; all calls count as read
// with it; nothing is divided by none.
func TestProxySums(t *testing.T) {
	var s proxySums
	s.add(anatomy.Record{Usage: tidemark.Usage{Input: 10, CacheRead: 80, CacheCreation: 10, Output: 9}, Paging: &paging.Account{In: 3000, Sent: 1500, Evicted: 1, Collected: 2, Inputs: 3, Images: 4, Faults: []paging.Faulted{{}, {}}}})
	s.add(anatomy.Record{Usage: tidemark.Usage{Input: 100}})
	s.add(anatomy.Record{Usage: tidemark.Usage{Input: 100}, Paging: &paging.Account{}})
	if want := (proxySums{calls: 3, in: 300, whole: 400, cached: 80, evicted: 10, faults: 2}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	if part(1, 0) != "" || part(3, 4) != " (75 %)" {
		t.Errorf("%q, %q", part(1, 0), part(3, 4))
	}

	// Three calls for one request: with the proxy they cost all that they read, without it there would have been the first.
	s = proxySums{}
	s.add(anatomy.Record{Usage: tidemark.Usage{Input: 3000, CacheRead: 27_000}, Proxy: &anatomy.Proxied{Treatment: "page+trim", Legs: 3, First: 9000}, Paging: &paging.Account{In: 2000, Sent: 1000, Evicted: 1}})
	if want := (proxySums{calls: 3, in: 30_000, whole: 18_000, cached: 27_000, evicted: 1}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	if got := fmt.Sprint(s.rows(seen{requests: 1})); strings.Contains(got, "167 %") || !strings.Contains(got, "[model calls 3]") {
		t.Errorf("a share of few tokens: %s", got)
	}
	s.add(anatomy.Record{Usage: tidemark.Usage{Input: 10_000}, Proxy: &anatomy.Proxied{Treatment: "page", Legs: 2}, Paging: &paging.Account{In: 1000, Sent: 1000}})
	if got := fmt.Sprint(s.rows(seen{requests: 2})); !strings.Contains(got, "[tokens in without the proxy about 23k] [tokens in with it 40k (174 %)]") {
		t.Errorf("of a record that does not tell its first call: %s", got)
	}

	// Nothing leaves where it is only watched.
	s = proxySums{}
	s.add(anatomy.Record{Usage: tidemark.Usage{Input: 50_000}, Proxy: &anatomy.Proxied{Treatment: "observe", Legs: 1, First: 50_000}, Paging: &paging.Account{In: 9, Sent: 9, Evicted: 13, Faults: []paging.Faulted{{}}}})
	if got := fmt.Sprint(s.rows(seen{requests: 1})); !strings.Contains(got, "[would have left 13]") || strings.Contains(got, "evicted") || strings.Contains(got, "faults") {
		t.Errorf("observed: %s", got)
	}
}

// TestSeen: each reason counts for itself, of many those of one kind are one, and only what asks for an answer says
// whether anything was treated.
func TestSeen(t *testing.T) {
	var told []string
	d := &proxyDoor{}
	d.tell = func(line string) {
		told = append(told, fmt.Sprint(len(d.noted().reasons), " ", line)) // whoever is told may look: nothing is locked
	}
	say := func(header string, asks bool) {
		d.took(came{talk: true, count: !asks})
		d.note("", header, asks)
	}
	for _, header := range []string{"store: a", "store: b", "other: c", "other: b", "refused: d", "store: b", "too_large: e", "store: f", "unreadable: g", ""} {
		say(header, true)
	}
	say("store: a", false)
	want := []untouched{{"store", "a", 3}, {"store", "b", 2}, {"other", "c", 1}, {"other", "b", 1}, {"refused", "d", 3}}
	if got := d.noted(); !slices.Equal(got.reasons, want) || got.requests != 11 || got.asked != 10 || got.untouched != 9 || d.busy != 0 {
		t.Errorf("%+v, busy %d", got, d.busy)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "1 tidemark proxy: a request was passed on untouched: a; ") {
		t.Errorf("told %q", told)
	}
}

// TestHint: a count of tokens that was read does not hide that no request was treated.
func TestHint(t *testing.T) {
	var b strings.Builder
	m := &cli.Main{Err: &cli.Output{W: &b}}
	hint(m, &proxyDoor{}, seen{requests: 2, asked: 1, untouched: 1, reasons: []untouched{{"store", "a", 1}}, keys: []string{"k"}})
	if !strings.Contains(b.String(), "no request was treated") {
		t.Errorf("said %q", b.String())
	}
	b.Reset()
	hint(m, &proxyDoor{}, seen{requests: 2, asked: 1, reasons: []untouched{{"store", "a", 1}}, keys: []string{"k"}})
	if b.Len() > 0 {
		t.Errorf("only a count was untouched: %q", b.String())
	}
}

// TestAside: what comes to another address counts, and of the first somebody is told. What another door sends is its own.
func TestAside(t *testing.T) {
	why := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(headerUntouched, "store: full") })
	for _, row := range []struct {
		name   string
		node   *node.Node
		path   string
		header string
		want   seen
		told   string
	}{
		{"bare", &node.Node{}, "/v1/messages", "", seen{requests: 1, asked: 1, beside: 1, untouched: 1, reasons: []untouched{{"store", "full", 1}}}, "another address"},
		{"another name", &node.Node{}, "/p/other/v1/messages", "", seen{requests: 1, asked: 1, beside: 1, untouched: 1, reasons: []untouched{{"store", "full", 1}}}, "another address"},
		{"a size", &node.Node{}, "/t/x/p/other/v1/messages/count_tokens", "", seen{requests: 1, beside: 1, reasons: []untouched{{"store", "full", 1}}}, "another address"},
		{"a command of ours", &node.Node{}, "/v1/sessions/main/messages", "", seen{others: 1, reasons: []untouched{{"store", "full", 1}}}, "untouched"},
		{"another door", &node.Node{}, "/v1/messages", "other", seen{}, ""},
		{"elsewhere", nil, "/v1/messages", "", seen{refused: 1}, "was refused: this address is another one's"},
		{"no API", nil, "/p/mine/v2", "", seen{refused: 1}, "was refused: no POST /v2 here"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var told []string
			d := &proxyDoor{next: why, node: row.node, path: "/p/mine", tell: func(s string) { told = append(told, s) }}
			r := httptest.NewRequest(http.MethodPost, row.path, nil)
			r.Header.Set(headerProxy, row.header)
			d.ServeHTTP(httptest.NewRecorder(), r)
			if got := d.noted(); fmt.Sprint(got) != fmt.Sprint(row.want) {
				t.Errorf("%+v, want %+v", got, row.want)
			}
			if (len(told) > 0) != (row.told != "") || row.told != "" && !strings.Contains(told[0], row.told) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// TestOutputAtOnce: several may print, and each line comes out whole.
func TestOutputAtOnce(t *testing.T) {
	var b strings.Builder
	o := &cli.Output{W: &b}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { o.Line("one line") })
	}
	wg.Wait()
	if got := b.String(); got != strings.Repeat("one line\n", 50) {
		t.Errorf("%q", got)
	}
}

// TestGuests: a process that goes through another's server is known until it leaves or is gone.
func TestGuests(t *testing.T) {
	home := t.TempDir()
	if len(guests(home)) != 0 {
		t.Error("a guest in an empty home")
	}
	leave := enterAsGuest(home)
	if got := guests(home); !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("got %v", got)
	}
	leave()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(home, guestsName, fmt.Sprint(gone.Process.Pid))
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := guests(home); len(got) != 0 {
		t.Errorf("the dead are %v", got)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the dead: %v", err)
	}
}

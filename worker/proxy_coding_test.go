//go:build !js

package worker_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/worker"
)

func squeezed(t *testing.T, into func(io.Writer) io.WriteCloser, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := into(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(w io.Writer) io.WriteCloser  { return gzip.NewWriter(w) }
func deflated(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }

// TestProxyOddBodies: a body in an odd form is treated, or passed on to the byte with the reason.
func TestProxyOddBodies(t *testing.T) {
	const most = 1_200_000 // over freeBody
	acted := fmt.Sprintf(withAct, false)
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	within := func(at string) string { return strings.Replace(acted, `"hi"`, at, 1) }
	z := func(text string) string { return squeezed(t, gzipped, text) }
	zeros := z(acted + strings.Repeat(" ", most))
	for _, row := range []struct {
		name, coding, body string
		mode               string
		untouched          string // begins the reason, empty for a body that is treated
		sent               string // begins what is treated
	}{
		{name: "a byte order mark", body: "\ufeff" + acted, sent: "\ufeff" + acted[:20]},
		{name: "two of them", body: "\ufeff\ufeff" + acted, untouched: "unreadable: the body is no JSON"},
		{name: "in UTF-16", body: "\xff\xfe{\x00}\x00", untouched: "unreadable: the body is no JSON"},
		{name: "bytes that are no UTF-8", body: within("\"a\xff\xfe\xc3\""), sent: acted[:20]},
		{name: "they name the conversation", body: strings.Replace(acted, "u1", "u\xff", 1), sent: acted[:20]},
		{name: "deep in a message", body: within(`[{"type":"tool_use","id":"a","name":"f","input":` + deep + `}]`), untouched: "unreadable: message 1 cannot be read: nested too deep"},
		{name: "a deep content", body: within(deep), untouched: "unreadable: message 1 cannot be read: nested too deep"},
		{name: "a deep member", body: strings.Replace(acted, `{"model"`, `{"x":`+deep+`,"model"`, 1), untouched: "unreadable: x cannot be read: nested too deep"},
		{name: "a deep tool", body: strings.Replace(acted, `"object"`, deep, 1), untouched: "unreadable: tools cannot be read: nested too deep"},
		{name: "nothing but depth", body: deep, untouched: "unreadable: the body is no JSON"},
		{name: "depth without an end", body: strings.Repeat(`{"a":`, 5000), untouched: "unreadable: the body is no JSON"},

		{name: "gzip", coding: "gzip", body: z(acted), sent: acted[:20]},
		{name: "gzip, known by another name", coding: " X-Gzip ", body: z(acted), sent: acted[:20]},
		{name: "gzip in two parts", coding: "gzip", body: z(acted[:30]) + z(acted[30:]), sent: acted[:20]},
		{name: "deflate", coding: "deflate", body: squeezed(t, deflated, acted), sent: acted[:20]},
		{name: "a byte order mark in gzip", coding: "gzip", body: z("\ufeff" + acted), sent: "\ufeff" + acted[:20]},
		{name: "gzip that is watched", coding: "gzip", body: z(acted), mode: "observe"},
		{name: "gzip that nothing is done with", coding: "gzip", body: z(acted), mode: "off"},
		{name: "gzip without tools", coding: "gzip", body: z(hello)},
		{name: "gzip of what cannot be read", coding: "gzip", body: z(within(deep)), untouched: "unreadable: message 1 cannot be read: nested too deep"},
		{name: "gzip of no JSON", coding: "gzip", body: z("no"), untouched: "unreadable: the body is no JSON"},
		{name: "gzip that breaks off", coding: "gzip", body: z(acted)[:60], untouched: "unreadable: read body: the body cannot be unpacked: "},
		{name: "gzip that is none", coding: "gzip", body: acted, untouched: "unreadable: read body: the body cannot be unpacked: "},
		{name: "gzip of nothing", coding: "gzip", body: "", untouched: "unreadable: the body is no JSON"},
		{name: "gzip with a wrong sum", coding: "gzip", body: z(acted)[:len(z(acted))-8] + "12345678", untouched: "unreadable: read body: the body cannot be unpacked: "},
		{name: "gzip with more behind it", coding: "gzip", body: z(acted) + strings.Repeat("more", 20_000), untouched: "unreadable: read body: the body cannot be unpacked: "},
		{name: "deflate with more behind it", coding: "deflate", body: squeezed(t, deflated, acted) + strings.Repeat("more", 20_000), sent: acted[:20]},
		{name: "gzip of too much", coding: "gzip", body: zeros, untouched: "too_large: the body has more than the 1200000 bytes"},
		{name: "too much gzip of nothing", coding: "gzip", body: strings.Repeat(z(""), most/20), untouched: "too_large: the body has more than the 1200000 bytes"},
		{name: "brotli", coding: "br", body: "\x0b\x02\x80hello\x03", untouched: `unreadable: the body cannot be unpacked: content-encoding "br": send it plain, or in gzip or deflate`},
		{name: "zstd", coding: "zstd", body: "\x28\xb5\x2f\xfd\x04\x00", untouched: `unreadable: the body cannot be unpacked: content-encoding "zstd"`},
		{name: "packed twice", coding: "gzip, gzip", body: z(z(acted)), untouched: `unreadable: the body cannot be unpacked: content-encoding "gzip, gzip"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, admitted := range []bool{false, true} {
				p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", whole) }, func(c *worker.Config) {
					if c.MaxBody = most; admitted {
						c.Admit = func(int64) (func(), bool) { return func() {}, true }
					}
				})
				headers := []string{"X-Tidemark-Mode", row.mode}
				if row.coding != "" {
					headers = append(headers, "Content-Encoding", row.coding)
				}
				res := p.ask("/v1/messages", row.body, headers...)
				if got := read(t, res); res.StatusCode != 200 || got != whole {
					t.Fatalf("%d %s", res.StatusCode, got)
				}
				if got := res.Header.Get("X-Tidemark-Untouched"); !strings.HasPrefix(got, row.untouched) || (got == "") != (row.untouched == "") {
					t.Errorf("untouched %q, want %q", got, row.untouched)
				}
				asked, bodies := p.up.all()
				switch coding := asked[0].Header.Get("Content-Encoding"); {
				case row.sent == "":
					if bodies[0] != row.body || coding != strings.TrimSpace(row.coding) {
						t.Errorf("it goes on in %q as %.200q, want %.200q", coding, bodies[0], row.body)
					}
				case !strings.HasPrefix(bodies[0], row.sent) || !strings.Contains(bodies[0], "memory_release") || coding != "":
					t.Errorf("it goes on in %q as %.200q, want it treated", coding, bodies[0])
				}
			}
		})
	}
}

// TestCodedDoors: a compressed body is read at each door; one that cannot be is told by what is wrong with it.
func TestCodedDoors(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", whole) }, nil)
	const chat = "/v1/chat/completions"
	const said = `{"user":"anna","messages":[{"role":"user","content":"hi"}]}`
	garden, bearer := []string{"X-Tidemark-Session", "garden"}, []string{"Authorization", "Bearer sk-chat"}
	for _, row := range []struct {
		name, path, coding, body string
		headers                  []string
		status                   int
		want                     string // of the answer
		sent                     string // what goes on to an API
	}{
		{"a message of a kept conversation", "/v1/messages", "gzip", squeezed(t, gzipped, hello), garden, 200, `"type":"message"`, ""},
		{"behind a byte order mark", "/v1/messages", "deflate", squeezed(t, deflated, "\ufeff"+hello), garden, 200, `"type":"message"`, ""},
		{"with a user", chat, "gzip", squeezed(t, gzipped, said), nil, 200, "chat.completion", ""},
		{"of our own API", "/v1/sessions/garden/messages", "gzip", squeezed(t, gzipped, "\ufeff"+`{"text":"hi"}`), nil, 200, "hi", ""},
		{"in what is not taken", "/v1/messages", "br", "\x0b", garden, 400, `content-encoding \"br\": send it plain, or in gzip or deflate`, ""},
		{"in gzip that is none", "/v1/messages", "gzip", hello, garden, 400, "cannot be unpacked", ""},
		{"chat with a key of its own", chat, "gzip", squeezed(t, gzipped, hello), bearer, 200, "", squeezed(t, gzipped, hello)},
		{"and in what is not taken", chat, "zstd", "\x28\xb5", bearer, 200, "", "\x28\xb5"},
		{"and in gzip that is none", chat, "gzip", hello, bearer, 200, "", hello},
		{"no chat, in what is not taken", chat, "zstd", "\x28\xb5", nil, 400, "send it plain", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, _ := p.up.all()
			headers := append([]string{"X-Tidemark-Token", token, "Content-Encoding", row.coding}, row.headers...)
			if got := p.text(row.status, "POST", row.path, row.body, headers...); !strings.Contains(got, row.want) {
				t.Errorf("%s, want %s", got, row.want)
			}
			_, bodies := p.up.all()
			if sent := strings.Join(bodies[len(before):], ""); sent != row.sent {
				t.Errorf("%q goes on, want %q", sent, row.sent)
			}
		})
	}
}

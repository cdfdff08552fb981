package worker

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// proxies is what the front of the Worker, in JavaScript, and this package must both say.
type proxies struct {
	Bodies []struct {
		Name, Body, Hex string
		Chat            bool
		Session, First  *string
	}
	Keys     []struct{ Credential, Session, Key string }
	Requests []struct {
		Name, Path, Body, Hex, To, Session, Credential string
		Headers                                        map[string]string
	}
}

func readProxies(t *testing.T) (rows proxies) {
	t.Helper()
	raw, err := os.ReadFile("../testdata/proxies.json")
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil || len(rows.Bodies) < 40 || len(rows.Keys) < 5 || len(rows.Requests) < 15 {
		t.Fatalf("testdata/proxies.json: %v", err)
	}
	return rows
}

func bodyOf(t *testing.T, text, digits string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, text...)
}

// TestSessionOf holds a body to its conversation; build/proxy.test.mjs does the same to the front.
func TestSessionOf(t *testing.T) {
	for _, row := range readProxies(t).Bodies {
		raw, want := bodyOf(t, row.Body, row.Hex), ""
		switch {
		case row.Session != nil:
			want = *row.Session
		case row.First != nil:
			want = string(tidemark.HashOf([]byte(*row.First)))
		}
		if got := sessionOf(raw, row.Chat); got != want {
			t.Errorf("%s: %q, want %q", row.Name, got, want)
		}
	}
	if got := userOf([]byte(`{"user":"a\"b"}`)); got != `a"b` {
		t.Error(got)
	}
}

// TestProxyKey: the same for the key, and it is one.
func TestProxyKey(t *testing.T) {
	for _, row := range readProxies(t).Keys {
		got := proxyKey(row.Credential, row.Session)
		parsed, err := tidemark.ParseKey(row.Key)
		if string(got) != row.Key || err != nil || parsed != got || !got.Local() {
			t.Errorf("%s of %q: %s, want %s: %v", row.Session, row.Credential, got, row.Key, err)
		}
	}
}

// TestProxyRequests: whose request it is, as the front says it.
func TestProxyRequests(t *testing.T) {
	for _, row := range readProxies(t).Requests {
		t.Run(row.Name, func(t *testing.T) {
			var got *passage
			var raw []byte
			d, mux := &door{Config: Config{Token: "open sesame", MaxBody: 1 << 20}}, http.NewServeMux()
			for _, rt := range routes() {
				mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
					c := &request{door: d, w: &answer{ResponseWriter: w}, r: r}
					chat := strings.HasSuffix(rt.pattern, "completions")
					raw, _ = c.body() // of what cannot be read nothing
					if key, _ := c.kept(); key == "" && (!chat || c.elsewhere() || c.ownKey() && userOf(raw) == "") {
						got = &passage{request: c, chat: chat, header: c.onward(), treatment: r.Header.Get(headerMode)}
						if err := got.address(Model{Messages: Upstream{Key: "k"}, Chat: Upstream{Key: "k"}}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			r := httptest.NewRequest(http.MethodPost, row.Path, bytes.NewReader(bodyOf(t, row.Body, row.Hex)))
			for name, value := range row.Headers {
				r.Header.Set(name, value)
			}
			r, _ = split(r)
			mux.ServeHTTP(httptest.NewRecorder(), r)
			name := ""
			if got != nil {
				if name = got.named(); name == "" {
					name = sessionOf(raw, got.chat)
				}
			}
			if kept := got != nil && got.treatment != modeOff && name != ""; kept != (row.To == "proxy") {
				t.Fatalf("%q, want %s", name, row.To)
			}
			if row.To == "proxy" && (name != row.Session || got.credential != row.Credential) {
				t.Errorf("%q of %q, want %q of %q", name, got.credential, row.Session, row.Credential)
			}
		})
	}
}

// FuzzSessionOf: nothing that is sent here does harm, and an id that JSON gives is found.
func FuzzSessionOf(f *testing.F) {
	for _, seed := range []string{`{"metadata":{"user_id":"u1"},"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{"content":[{"type":"text","text":"x"}],"role":"user"}]}`, `{"a":"\\\""`, "[[[{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := sessionOf(raw, false)
		sessionOf(raw, true)
		var object, inner map[string]json.RawMessage
		if !json.Valid(raw) || json.Unmarshal(raw, &object) != nil {
			return
		}
		id := ""
		if json.Unmarshal(object["metadata"], &inner) == nil && json.Unmarshal(inner["user_id"], &id) == nil && id != "" && got != id && !bytes.ContainsRune(raw, '\uFFFD') {
			t.Errorf("%q, want %q, of %q", got, id, raw)
		}
	})
}

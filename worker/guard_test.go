package worker

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestAdmit(t *testing.T) {
	open := guard{loopback: true, help: "set it"}
	worker := guard{help: "set it"}
	closed := guard{token: "secret", loopback: true, origins: []string{"https://chat.example.com"}, help: "set it"}
	const local, far = "127.0.0.1:50000", "203.0.113.5:50000"
	for _, tc := range []struct {
		name string
		g    guard
		a    asked
		want error

		foreign bool // says how a page of this origin is allowed
	}{
		{"no token, this machine", open, asked{host: "127.0.0.1:8787", peer: local}, nil, false},
		{"no token, IPv6", open, asked{host: "[::1]:8787", peer: "[::1]:50000"}, nil, false},
		{"no token, mapped IPv4", open, asked{host: "localhost", peer: "[::ffff:127.0.0.1]:50000"}, nil, false},
		{"no token, subdomain of localhost", open, asked{host: "tidemark.localhost:8787", peer: local}, nil, false},
		{"no token, another machine", open, asked{host: "localhost", peer: far}, tidemark.ErrUnauthorized, false},
		{"no token, peer unknown", open, asked{host: "localhost"}, tidemark.ErrUnauthorized, false},
		{"no token, rebound name", open, asked{host: "evil.example:8787", peer: local}, tidemark.ErrForbidden, false},
		{"no token, no host", open, asked{peer: local}, tidemark.ErrForbidden, false},
		{"no token, name that begins like it", open, asked{host: "localhost.evil.example", peer: local}, tidemark.ErrForbidden, false},
		{"no token, own page", open, asked{host: "localhost:8787", peer: local, origin: "http://localhost:8787"}, nil, false},
		{"no token, page of another port", open, asked{host: "localhost:8787", peer: local, origin: "http://localhost:3000"}, tidemark.ErrForbidden, true},
		{"no token, page of a file", open, asked{host: "localhost:8787", peer: local, origin: "null"}, tidemark.ErrForbidden, false},
		{"no token on a Worker", worker, asked{host: "localhost", peer: "127.0.0.1"}, tidemark.ErrUnauthorized, false},
		{"token", closed, asked{host: "any.example", peer: far, token: "secret"}, nil, false},
		{"no token where one is set", closed, asked{host: "localhost", peer: local}, tidemark.ErrUnauthorized, false},
		{"wrong token", closed, asked{host: "localhost", peer: local, token: "secret2"}, tidemark.ErrUnauthorized, false},
		{"part of the token", closed, asked{host: "localhost", peer: local, token: "secre"}, tidemark.ErrUnauthorized, false},
		{"token from a foreign page", closed, asked{host: "any.example", token: "secret", origin: "https://evil.example"}, tidemark.ErrForbidden, true},
		{"token from a page that is allowed", closed, asked{host: "any.example", token: "secret", origin: "https://chat.example.com"}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.g.admit(tc.a)
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if foreign := "list " + strconv.Quote(tc.a.origin) + " in server.origins"; tc.foreign != strings.Contains(errText(err), foreign) {
				t.Errorf("%v, want %q: %v", err, foreign, tc.foreign)
			}
		})
	}
}

func TestAsks(t *testing.T) {
	for _, tc := range []struct {
		name, path, header, value string
		token, rest               string
	}{
		{"bearer", "/v1/sessions", "Authorization", "Bearer abc", "abc", "/v1/sessions"},
		{"bearer in lower case", "/v1/sessions", "Authorization", "bearer abc", "abc", "/v1/sessions"},
		{"other scheme", "/v1/sessions", "Authorization", "Basic abc", "", "/v1/sessions"},
		{"own header", "/v1/sessions", "X-Tidemark-Token", "abc", "abc", "/v1/sessions"},
		{"path", "/t/abc/v1/sessions", "", "", "abc", "/v1/sessions"},
		{"path beside a provider's key", "/t/abc/v1/sessions", "Authorization", "Bearer sk-other", "abc", "/v1/sessions"},
		{"escaped path", "/t/a%2Fb/v1/sessions/x%23y/view", "", "", "a/b", "/v1/sessions/x%23y/view"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, tc.path, nil)
			if tc.header != "" {
				r.Header.Set(tc.header, tc.value)
			}
			before := r.URL.String()
			out, token := split(r)
			if got := asks(out, token).token; got != tc.token {
				t.Errorf("token %q, want %q", got, tc.token)
			}
			if got := out.URL.EscapedPath(); got != tc.rest {
				t.Errorf("path %q, want %q", got, tc.rest)
			}
			if r.URL.String() != before {
				t.Errorf("the request was changed: %s", r.URL)
			}
		})
	}
}

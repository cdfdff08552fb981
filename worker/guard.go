package worker

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// guard decides who may come in. It is pure: requests in, verdicts out.
type guard struct {
	token    string
	loopback bool     // a host that knows its peers: without a token those on this machine may come in
	origins  []string // pages of other origins that may call
	help     string   // how a person sets the token
	where    string   // and where one finds it
}

// asked is what the guard looks at.
type asked struct {
	host   string // of the request
	peer   string // its remote address
	origin string // its page, empty outside browsers
	token  string // given in any of the ways
}

// split takes a token out of a path "/t/{token}/…" and returns the request without it. Slashes behind it that are
// doubled, as by a base URL that ends in one, are one: the redirect to a clean path would have no token.
func split(r *http.Request) (*http.Request, string) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/t/")
	if !ok {
		return r, ""
	}
	escaped, path, ok := strings.Cut(rest, "/")
	for path = "/" + path; strings.Contains(path, "//"); {
		path = strings.ReplaceAll(path, "//", "/")
	}
	token, err := url.PathUnescape(escaped)
	plain, err2 := url.PathUnescape(path)
	if !ok || err != nil || err2 != nil || token == "" {
		return r, ""
	}
	out := *r
	u := *r.URL
	u.Path, u.RawPath = plain, path
	out.URL = &u
	return &out, token
}

// asks gathers what a request says of itself.
func asks(r *http.Request, inPath string) asked {
	a := asked{host: r.Host, peer: r.RemoteAddr, origin: r.Header.Get("Origin"), token: inPath}
	if a.token == "" {
		a.token = r.Header.Get("X-Tidemark-Token")
	}
	if scheme, value, ok := strings.Cut(r.Header.Get("Authorization"), " "); a.token == "" && ok && strings.EqualFold(scheme, "Bearer") {
		a.token = strings.TrimSpace(value)
	}
	if a.token == "" { // where clients of the Messages API put what they call the key
		a.token = r.Header.Get("X-Api-Key")
	}
	if a.token == "" {
		a.token = offeredToken(r)
	}
	return a
}

// admit returns why a request may not come in, or nil.
func (g guard) admit(a asked) error {
	if a.origin == "null" {
		return fmt.Errorf("a page without an origin (a file, a sandboxed frame) may not call this server; serve the page over http: %w", tidemark.ErrForbidden)
	}
	if a.origin != "" && !sameOrigin(a.origin, a.host) && !slices.Contains(g.origins, a.origin) {
		return fmt.Errorf("a page of %[1]s may not call this server; to allow it, list %[1]q in server.origins of the configuration (on Workers: TIDEMARK_SERVER_ORIGINS): %[2]w",
			clip.To(a.origin, 100), tidemark.ErrForbidden)
	}
	if g.token != "" {
		return g.admitToken(a)
	}
	if !g.loopback {
		return fmt.Errorf("this server has no token and lets nobody in; %s: %w", g.help, tidemark.ErrUnauthorized)
	}
	if !loopbackPeer(a.peer) {
		return fmt.Errorf("this server has no token and answers its own machine only; %s: %w", g.help, tidemark.ErrUnauthorized)
	}
	// A page may point a name of its own at 127.0.0.1 (DNS rebinding); its requests carry that name.
	if name := hostName(a.host); !loopbackName(name) {
		return fmt.Errorf("host name %s: without a token only localhost is served; %s: %w", clip.To(name, 100), g.help, tidemark.ErrForbidden)
	}
	return nil
}

func (g guard) admitToken(a asked) error {
	if a.token == "" {
		return fmt.Errorf("no token: send \"Authorization: Bearer TOKEN\" or \"x-tidemark-token: TOKEN\" (%s): %w", g.where, tidemark.ErrUnauthorized)
	}
	want, got := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(a.token))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return fmt.Errorf("wrong token: it is not this server's (%s): %w", g.where, tidemark.ErrUnauthorized)
	}
	return nil
}

// sameOrigin reports whether a page comes from the host that it calls. The scheme is not compared:
// a proxy in front may have taken the TLS off.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func loopbackPeer(peer string) bool {
	if ap, err := netip.ParseAddrPort(peer); err == nil {
		return ap.Addr().Unmap().IsLoopback()
	}
	ip, err := netip.ParseAddr(peer)
	return err == nil && ip.Unmap().IsLoopback()
}

func loopbackName(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// hostName is a Host header without its port and brackets, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

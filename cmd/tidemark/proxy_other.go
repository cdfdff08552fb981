package main

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
)

// proxied reports whether a path is one whose requests the server takes up; others it does not know as a client's.
func proxied(path string) bool {
	switch path {
	case "/", "/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions":
		return true
	}
	return false
}

// passOn sends what the server does not take up, such as lists of models, embeddings and files, to the API that the
// client means, as it came: the client would have reached it without us.
func passOn(c *config.Config) http.Handler {
	messages, chat := bases(c)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			base, path := messages, r.In.URL.EscapedPath()
			if !meansMessages(r.In) {
				base, path = chat, strings.TrimPrefix(path, "/v1")
			}
			to, err := url.Parse(strings.TrimRight(base, "/") + path)
			if err != nil { // the transport refuses what has no host
				to = &url.URL{}
			}
			to.RawQuery = r.In.URL.RawQuery
			r.Out.URL, r.Out.Host = to, ""
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "X-Tidemark-") {
					r.Out.Header.Del(name)
				}
			}
		},
		Transport:     native.Transport(),
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // the client is told
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "api_error", "no answer from the API: "+err.Error())
		},
	}
}

// meansMessages reports a request for the vendor of the Messages API: its clients say so with their key or the version,
// or ask for what only that API has.
func meansMessages(r *http.Request) bool {
	h := r.Header
	return h.Get("X-Api-Key") != "" || h.Get("Anthropic-Version") != "" || h.Get("Anthropic-Beta") != "" ||
		strings.HasPrefix(r.URL.Path, "/v1/messages/") || !strings.HasPrefix(r.URL.Path, "/v1/")
}

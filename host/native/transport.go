//go:build !js

package native

import (
	"net"
	"net/http"
	"time"
)

// Bounds of an outgoing connection. There is none on the wait for a response's first byte: a model
// may think for minutes, and the deadline of the call is the caller's.
const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	idleTimeout   = 90 * time.Second
	pingAfter     = 30 * time.Second // of silence on HTTP/2, which finds a connection that died
	pingTimeout   = 15 * time.Second
	maxIdle       = 128
	maxIdleAHost  = 32
	maxHeaderSize = 1 << 20 // bytes
)

// Transport gives what talks to model APIs and webhooks: connections are kept, HTTP/2 where the
// server has it, proxies from the environment. It follows no redirect, so a key in a header never
// goes to another host.
func Transport() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}).DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		TLSHandshakeTimeout:    tlsTimeout,
		IdleConnTimeout:        idleTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdleAHost,
		MaxResponseHeaderBytes: maxHeaderSize,
	}
}

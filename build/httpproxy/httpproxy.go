// Package httpproxy stands in for the reader of HTTP_PROXY and NO_PROXY where the Worker is compiled
// (see standIns in build). A Worker has no such environment, but http.DefaultTransport names the
// reader when net/http starts, and with it go the tables of international host names.
package httpproxy

import "net/url"

// Config is what no environment says.
type Config struct{}

// FromEnvironment finds no proxy.
func FromEnvironment() *Config { return &Config{} }

// ProxyFunc gives a function that sends every request without a proxy.
func (*Config) ProxyFunc() func(*url.URL) (*url.URL, error) {
	return func(*url.URL) (*url.URL, error) { return nil, nil }
}

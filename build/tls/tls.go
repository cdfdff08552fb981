// Package tls stands in for crypto/tls where the Worker is compiled (see standIns in build). A Worker
// has no sockets: workerd does TLS. But net/http declares servers and clients over it, and the mere
// import starts, and so links, every curve, cipher and self test. Here are the names that net/http
// writes down, with their signatures; what would speak TLS fails with [errors.ErrUnsupported].
package tls

import (
	"context"
	"errors"
	"fmt"
	"net"
)

var errNone = fmt.Errorf("tls: the Worker is built without it, send by the host's fetch: %w", errors.ErrUnsupported)

// Versions and cipher suites that HTTP/2 asks for by name, with their numbers in TLS.
const (
	VersionTLS12 = 0x0303
	VersionTLS13 = 0x0304

	TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xc02b //nolint:staticcheck // the name is crypto/tls's
	TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256   = 0xc02f //nolint:staticcheck // the name is crypto/tls's
)

// Certificate is never filled.
type Certificate struct{}

// ClientHelloInfo is never filled.
type ClientHelloInfo struct{}

// Config has the fields that net/http sets.
type Config struct {
	Certificates             []Certificate
	GetCertificate           func(*ClientHelloInfo) (*Certificate, error)
	GetConfigForClient       func(*ClientHelloInfo) (*Config, error)
	NextProtos               []string
	ServerName               string
	CipherSuites             []uint16
	PreferServerCipherSuites bool
	MinVersion               uint16
}

// Clone gives a shallow copy; of nil, nil.
func (c *Config) Clone() *Config {
	if c == nil {
		return nil
	}
	d := *c
	return &d
}

// ConnectionState has the fields that net/http reads; all are zero.
type ConnectionState struct {
	Version                    uint16
	CipherSuite                uint16
	NegotiatedProtocol         string
	NegotiatedProtocolIsMutual bool
	ServerName                 string
}

// RecordHeaderError is never returned.
type RecordHeaderError struct {
	RecordHeader [5]byte
	Conn         net.Conn
}

// Error implements error.
func (RecordHeaderError) Error() string { return errNone.Error() }

// Conn fails at its handshake.
type Conn struct{ net.Conn }

// HandshakeContext fails.
func (c *Conn) HandshakeContext(context.Context) error { return errNone }

// ConnectionState is zero.
func (c *Conn) ConnectionState() ConnectionState { return ConnectionState{} }

// NetConn gives the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Client gives a connection that fails at its handshake.
func Client(c net.Conn, _ *Config) *Conn { return &Conn{c} }

// Dialer fails to dial.
type Dialer struct{ Config *Config }

// DialContext fails.
func (d *Dialer) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errNone
}

// NewListener gives a listener that closes l and accepts nothing: without TLS, it must not serve in
// the clear what was meant to be secret.
func NewListener(l net.Listener, _ *Config) net.Listener { return deaf{l} }

type deaf struct{ net.Listener }

func (d deaf) Accept() (net.Conn, error) { return nil, errors.Join(errNone, d.Close()) }

// LoadX509KeyPair fails.
func LoadX509KeyPair(string, string) (Certificate, error) { return Certificate{}, errNone }

package tls

import (
	real "crypto/tls"
	"errors"
	"net"
	"testing"
)

// TestNothingSpeaksTLS: whoever reaches the stand-in is told, and nothing goes out in the clear.
func TestNothingSpeaksTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, accept := NewListener(l, &Config{}).Accept()
	_, dial := new(Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	_, pair := LoadX509KeyPair("cert.pem", "key.pem")
	for what, err := range map[string]error{
		"handshake": Client(nil, nil).HandshakeContext(t.Context()), "accept": accept, "dial": dial, "key pair": pair, "record": RecordHeaderError{},
	} {
		if err == nil || what != "record" && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want %v", what, err, errors.ErrUnsupported)
		}
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("a listener without TLS still listens")
	}
}

// TestNumbers: what HTTP/2 asks for by name has its number in TLS.
func TestNumbers(t *testing.T) {
	for _, n := range []struct {
		name       string
		ours, them uint16
	}{
		{"TLS 1.2", VersionTLS12, real.VersionTLS12},
		{"TLS 1.3", VersionTLS13, real.VersionTLS13},
		{"ECDSA suite", TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, real.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		{"RSA suite", TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, real.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
	} {
		if n.ours != n.them {
			t.Errorf("%s is %#x, want %#x", n.name, n.ours, n.them)
		}
	}
}

// TestClone: a copy of its own, and nil of nil.
func TestClone(t *testing.T) {
	c := &Config{ServerName: "a"}
	c.Clone().ServerName = "b"
	if c.ServerName != "a" || (*Config)(nil).Clone() != nil {
		t.Errorf("clone: %q, of nil %v", c.ServerName, (*Config)(nil).Clone())
	}
}

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

func hashOf(s string) tidemark.Hash {
	sum := sha256.Sum256([]byte(s))
	return tidemark.Hash(hex.EncodeToString(sum[:]))
}

func testNode(id string) Node {
	return Node{ID: id, Kind: KindSnapshot, Of: OfSession, Name: "before lunch", Session: "agent:main:local:dm:main",
		Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Messages: 3, Hash: hashOf(id)}
}

func sessionManifest() Manifest {
	return Manifest{Kind: OfSession, Node: testNode("snap-2"), Lineage: []Node{testNode("snap-1")}, Generator: "test"}
}

// sessionArchive has two streams and two blobs.
func sessionArchive(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, sessionManifest())
	if err != nil {
		tb.Fatal(err)
	}
	for _, err := range []error{
		w.Line("log", []byte(`{"n":1}`)), w.Line("log", []byte(`{"n":2}`)), w.Line("overlay", []byte(`{}`)),
		w.Line("log", []byte(`{"n":3}`)), w.Blob(hashOf("picture"), 7, strings.NewReader("picture")),
		w.Blob(hashOf("picture"), 7, strings.NewReader("picture")), w.Blob(hashOf(""), 0, strings.NewReader("")), w.Close(),
	} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

// readAll reads an archive to its end.
func readAll(data io.Reader, l Limits) (map[string]string, error) {
	r, err := NewReader(data, l)
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			return got, err
		}
		got[m.Name] = string(raw)
	}
}

func TestArchive(t *testing.T) {
	got, err := readAll(bytes.NewReader(sessionArchive(t)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"log/000001.jsonl": "{\"n\":1}\n{\"n\":2}\n", "overlay/000001.jsonl": "{}\n", "log/000002.jsonl": "{\"n\":3}\n",
		"blobs/" + string(hashOf("picture")): "picture", "blobs/" + string(hashOf("")): "",
	}
	if len(got) != len(want) {
		t.Errorf("%d members, want %d: %v", len(got), len(want), got)
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %q, want %q", name, got[name], text)
		}
	}
}

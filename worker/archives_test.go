//go:build !js

package worker_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
)

// TestLostIndex: without its index the archives are found again, and what lies among them is named.
func TestLostIndex(t *testing.T) {
	s := serve(t, nil)
	line := `{"role":"user","content":"the lamp stands in room 7"}` + "\n"
	keys := []string{archive.PartKey("main", "01S", time.UnixMilli(1_760_000_000_000)), archive.WholeKey("main", "01T")}
	for _, key := range keys {
		if _, err := s.actors.blobs.Put(t.Context(), key, strings.NewReader(line), int64(len(line)), tidemark.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	type answer struct {
		Archives     []struct{ Key string }
		Verdicts     []struct{ Key string }
		OK, Bad      int
		Added, Stray []string
	}
	const list, verify = "/v1/agents/main/archives", "/v1/agents/main/archives-verify"
	before := get[answer](s, 200, "GET", list, "")
	if len(before.Archives) != 2 || !slices.Equal(before.Added, keys) {
		t.Fatalf("%+v", before)
	}
	if again := get[answer](s, 200, "GET", list, ""); !reflect.DeepEqual(again.Archives, before.Archives) || len(again.Added) != 0 {
		t.Errorf("again %+v", again)
	}
	lose := func() {
		t.Helper()
		page, _, err := s.actors.blobs.List(t.Context(), "agents/main/sessions/index/", "", 100)
		if err != nil || len(page) == 0 {
			t.Fatalf("%d objects, %v", len(page), err)
		}
		for _, o := range page {
			if err := s.actors.blobs.Delete(t.Context(), o.Key); err != nil {
				t.Fatal(err)
			}
		}
	}
	lose()
	const stray = "agents/main/sessions/copy of a session.gz"
	if _, err := s.actors.blobs.Put(t.Context(), stray, strings.NewReader("x"), 1, tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	got := get[answer](s, 200, "POST", verify, "")
	if got.OK != len(before.Archives) || got.Bad != 1 || len(got.Added) != len(before.Archives) || !slices.Equal(got.Stray, []string{stray}) || got.Verdicts[0].Key != stray {
		t.Errorf("verified %+v", got)
	}
	lose()
	type hits struct{ Hits []struct{ Key string } }
	if got := get[hits](s, 200, "GET", "/v1/agents/main/archives-search?q=lamp+room+7", ""); len(got.Hits) == 0 {
		t.Error("nothing is found without the index")
	}
}

// TestDamagedArchive: an archive that cannot be read to its end is told in words and sends no half.
func TestDamagedArchive(t *testing.T) {
	s := serve(t, nil)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 5_000 {
		fmt.Fprintf(z, `{"role":"user","content":"number %d %x"}`+"\n", i, i*i*i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	cut, flipped := packed.Bytes()[:packed.Len()-20], bytes.Clone(packed.Bytes())
	flipped[len(flipped)-6] ^= 1 // the checksum, behind all lines
	for name, data := range map[string][]byte{"cut": cut, "flipped": flipped, "empty": []byte("\x1f\x8bgarbage")} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.actors.blobs.Put(t.Context(), "agents/main/sessions/"+name+".jsonl.gz", bytes.NewReader(data), int64(len(data)), tidemark.PutOptions{}); err != nil {
				t.Fatal(err)
			}
			f := get[fault](s, 422, "GET", "/v1/agents/main/archives/"+name+".jsonl.gz?format=jsonl", "")
			if f.Error.Type != "damaged" || !strings.Contains(f.Error.Message, name+".jsonl.gz is damaged") {
				t.Errorf("%+v", f)
			}
			if got := s.text(200, "GET", "/v1/agents/main/archives/"+name+".jsonl.gz", ""); got != string(data) {
				t.Errorf("as stored: %d bytes, want %d", len(got), len(data))
			}
		})
	}
	f := get[fault](s, 422, "POST", "/v1/sessions/fresh/restore", `{"archive":"empty.jsonl.gz"}`)
	if !strings.Contains(f.Error.Message, "damaged") {
		t.Errorf("%+v", f)
	}
	s.text(404, "GET", "/v1/sessions/fresh", "")
}

package archive_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestEncoderPasses: what is no message is passed over, and nothing is no archive.
func TestEncoderPasses(t *testing.T) {
	var e archive.Encoder
	other := talk(0, 1)[0]
	other.Kind = "overlay"
	if err := e.Add(other); err != nil {
		t.Fatal(err)
	}
	if p, err := e.Close(); err != nil || p.Messages != 0 || p.Data != nil || p.SHA256 != "" {
		t.Errorf("%+v, %v", p, err)
	}
	said := talk(0, 2)
	said[1].Kind = tidemark.KindMessage
	for _, x := range []tidemark.Entry{other, said[0], other, said[1], other} {
		if err := e.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := e.Close(); err != nil || p.Messages != 2 || p.First != said[0].ID || p.Last != said[1].ID {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestDescribed: when an archive is from stands in its metadata, else in its key, else it is as old as its object.
func TestDescribed(t *testing.T) {
	b := tidemarktest.NewBlobs()
	data := zip(t, reference)
	at := time.Date(2020, 1, 2, 3, 4, 5, 6e6, time.UTC)
	part, whole := archive.PartKey("main", "p", at), func(name string) string { return archive.WholeKey("main", name) }
	for key, meta := range map[string]map[string]string{
		whole("text"):   {"archivedAt": at.Format(time.RFC3339Nano), "messageCount": "-5", "inputTokens": "99999999999999999999", "outputTokens": "x"},
		whole("millis"): {"archivedAt": "1577934245006", "inputTokens": "7", "outputTokens": "8"},
		whole("wrong"):  {"archivedAt": "yesterday"},
		whole("none"):   nil,
		whole("zero"):   {"archivedAt": "0"},
		whole("count"):  {"messageCount": "3", "firstId": "x"},
		whole("hash"):   {"sha256": "ab", "firstId": "x"},
		part:            nil,
	} {
		if _, err := b.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), tidemark.PutOptions{Metadata: meta}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := archive.Mend(t.Context(), b, "main", archive.Bounds{}); err != nil || len(s.Added) != 8 {
		t.Fatalf("%v, %v", s, err)
	}
	for _, i := range listAll(t, b, archive.ListOptions{}) {
		var usage tidemark.Usage
		if i.Session == "millis" {
			usage = tidemark.Usage{Input: 7, Output: 8}
		}
		recent := i.SHA256 == tidemark.HashOf(data) && !slices.Contains([]string{"text", "millis", "p"}, i.Session)
		if i.Messages != 6 || i.Usage != usage || recent != (time.Since(i.At) < time.Hour) || !recent && !i.At.Equal(at) {
			t.Errorf("%+v", i)
		}
	}
}

//go:build !js

package worker_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestArchiveRefused: an archive that is refused leaves no session behind, and none is read into a branch.
func TestArchiveRefused(t *testing.T) {
	s := serve(t, nil)
	s.say("main", "hello")
	n := get[snapshot.Node](s, 201, "POST", "/v1/sessions/main/snapshots", `{"name":"base"}`)
	sound := s.text(200, "GET", "/v1/sessions/main/snapshots/"+n.ID+"/archive", "")
	flipped := []byte(sound)
	flipped[len(flipped)/2] ^= 1
	other := "snap-" + strings.Repeat("0", 26)
	for name, row := range map[string]struct{ id, session, body string }{
		"empty":      {n.ID, "x1", ""},
		"no archive": {n.ID, "x2", "hello"},
		"cut off":    {n.ID, "x3", sound[:len(sound)-20]},
		"changed":    {n.ID, "x4", string(flipped)},
		"more":       {n.ID, "x5", sound + "x"},
		"another":    {other, "x6", sound},
		"a branch":   {n.ID, "main%23qq", sound},
		"of nobody":  {n.ID, "x7%23qq", sound},
		"by its id":  {n.ID, "", "hello"},
	} {
		path := "/v1/snapshots/" + row.id + "/archive"
		if row.session != "" {
			path += "?session=" + row.session
		} else {
			row.session = row.id
		}
		s.text(400, "PUT", path, row.body)
		if got := s.text(404, "GET", "/v1/sessions/"+row.session, ""); !strings.Contains(got, "not_found") {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.text(201, "PUT", "/v1/snapshots/"+n.ID+"/archive?session=x3", sound)
	s.text(200, "PUT", "/v1/snapshots/"+n.ID+"/archive?session=x3", sound)
	s.text(400, "PUT", "/v1/snapshots/"+n.ID+"/archive?session=x3", sound[:len(sound)-20]) // though it is here already
}

// TestArchiveLong: of an archive that is longer than may be held before anybody knows whether it is sound, what it is of
// is known: another one makes no session, and the right one comes in whole. So it is when its length is not told.
func TestArchiveLong(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.MaxSpool = 2 << 10 })
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		var b strings.Builder
		for b.Len() < 1000 {
			b.WriteString(strconv.FormatUint(r.Uint64(), 36) + " ")
		}
		s.say("main", b.String())
	}
	n := get[snapshot.Node](s, 201, "POST", "/v1/sessions/main/snapshots", `{"name":"long"}`)
	sound := s.text(200, "GET", "/v1/sessions/main/snapshots/"+n.ID+"/archive", "")
	if len(sound) < 3<<10 {
		t.Fatalf("an archive of %d bytes is short", len(sound))
	}
	put := func(id, key string, told bool) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/v1/snapshots/"+id+"/archive?session="+key, struct{ io.Reader }{strings.NewReader(sound)})
		if err != nil {
			t.Fatal(err)
		}
		if told {
			req.ContentLength = int64(len(sound))
		}
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	for _, told := range []bool{true, false} {
		key := fmt.Sprint("told-", told)
		if got := put("snap-"+strings.Repeat("0", 26), key, told); got != http.StatusBadRequest {
			t.Errorf("%s: another one: %d", key, got)
		}
		s.text(404, "GET", "/v1/sessions/"+key, "")
		if got := put(n.ID, key, told); got != http.StatusCreated {
			t.Errorf("%s: %d", key, got)
		}
		if again := s.text(200, "GET", "/v1/sessions/"+key+"/snapshots/"+n.ID+"/archive", ""); len(again) < len(sound)*9/10 {
			t.Errorf("%s: %d bytes of %d came in", key, len(again), len(sound))
		}
	}
}

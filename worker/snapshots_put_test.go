//go:build !js

package worker_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/snapshot"
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

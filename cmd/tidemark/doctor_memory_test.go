package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestDoctorNights: a model that does not compare facts is told, and one that does is not.
func TestDoctorNights(t *testing.T) {
	for last, want := range map[string]int{`{"decided":0}`: 0, `{"decided":0,"waiting":"no model compares facts: no key"}`: 1} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"rows":[],"night":{"superseded":0,"episodes":0,"compactions":0,"last":`+last+`}}`)
		}))
		defer s.Close()
		var out bytes.Buffer
		d := &doctor{m: &cli.Main{Out: &cli.Output{W: &out}, Err: &cli.Output{W: &out}}}
		d.nights(t.Context(), &client{Caller: &cli.Caller{Base: s.URL, RT: http.DefaultTransport}})
		if len(d.found) != want || want > 0 && !strings.Contains(d.found[0].Text, "no key") {
			t.Errorf("%s: found %+v", last, d.found)
		}
	}
}

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDoctorNights: a model that does not compare facts is told, and one that does is not.
func TestDoctorNights(t *testing.T) {
	for last, want := range map[string]int{`{"decided":0}`: 0, `{"decided":0,"waiting":"no model compares facts: no key"}`: 1} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"rows":[],"night":{"superseded":0,"episodes":0,"compactions":0,"last":`+last+`}}`)
		}))
		defer s.Close()
		var out bytes.Buffer
		d := &doctor{m: &Main{out: &output{w: &out}, err: &output{w: &out}}}
		d.nights(t.Context(), &client{base: s.URL, rt: http.DefaultTransport})
		if len(d.found) != want || want > 0 && !strings.Contains(d.found[0].Text, "no key") {
			t.Errorf("%s: found %+v", last, d.found)
		}
	}
}

package agent_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/recall"
)

// TestFarSessions: a session in another object is asked the same, and its errors are what they were there.
func TestFarSessions(t *testing.T) {
	r := &rooms{texts: map[tidemark.Key]string{"agent:main:main": "walnut"}, fail: map[tidemark.Key]error{"agent:main:local:dm:gone": fmt.Errorf("no: %w", tidemark.ErrNotFound)}}
	far := &agent.FarSessions{Transport: func(tidemark.Key) http.RoundTripper {
		return handler(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != agent.SessionPath+"recall" {
				t.Errorf("asked at %s", req.URL.Path)
			}
			agent.AnswerSession(w, req, r)
		})
	}}
	ask := recall.Ask{Query: "walnut", K: 3, Since: noon}
	got, err := far.Recall(t.Context(), "agent:main:main", ask)
	want, _ := r.Recall(t.Context(), "agent:main:main", ask)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := far.Recall(t.Context(), "agent:main:local:dm:gone", ask); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
}

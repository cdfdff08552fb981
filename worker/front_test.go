package worker

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// front is what the front of the Worker, in JavaScript, and this door must both say.
type front struct {
	Paths []struct{ Path, Token, Rest string }
	Open  []struct {
		Method, Path string
		Open         bool
	}
	IDs []struct {
		ID   string
		Kept bool
	}
}

// TestFront holds the door to testdata/front.json; build/front.test.mjs does the same to the front.
func TestFront(t *testing.T) {
	raw, err := os.ReadFile("../testdata/front.json")
	var rows front
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil || len(rows.Paths) < 10 || len(rows.Open) < 10 || len(rows.IDs) < 10 {
		t.Fatalf("%d, %d and %d rows, %v", len(rows.Paths), len(rows.Open), len(rows.IDs), err)
	}
	for _, row := range rows.Paths {
		out, token := split(httptest.NewRequest(http.MethodGet, row.Path, nil))
		if rest := out.URL.EscapedPath(); token != row.Token || rest != row.Rest {
			t.Errorf("%s: token %q, rest %s; want %q, %s", row.Path, token, rest, row.Token, row.Rest)
		}
	}
	door := New(Config{Runtime: tidemarktest.NewRuntime(t)})
	for _, row := range rows.Open {
		w, want := httptest.NewRecorder(), http.StatusUnauthorized
		if row.Open {
			want = http.StatusOK
		}
		if door.ServeHTTP(w, httptest.NewRequest(row.Method, row.Path, nil)); w.Code != want {
			t.Errorf("%s %s: %d, want %d", row.Method, row.Path, w.Code, want)
		}
	}
	for _, row := range rows.IDs {
		if got := requestID(row.ID, time.Now()); (got == row.ID) != row.Kept {
			t.Errorf("request id %q became %q", row.ID, got)
		}
	}
}

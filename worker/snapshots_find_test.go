package worker

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestHomeOf holds requests about snapshots to testdata/snapshots.json; build/snapshots.test.mjs does the same to the
// front.
func TestHomeOf(t *testing.T) {
	raw, err := os.ReadFile("../testdata/snapshots.json")
	var rows []struct {
		Method, Path, ID, Session string
		Bad                       bool
	}
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil || len(rows) < 20 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		u, err := url.Parse(row.Path)
		if err != nil {
			t.Fatal(err)
		}
		id := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/v1/snapshots/"), "/archive")
		if u.Path == "/v1/compare" {
			id = ""
		}
		key, sought, err := homeOf(row.Method, id, u.Query())
		if row.Bad != errors.Is(err, tidemark.ErrInvalid) || !row.Bad && (err != nil || string(key) != row.Session || sought != row.ID) {
			t.Errorf("%s %s: %q, %q, %v", row.Method, row.Path, key, sought, err)
		}
	}
}

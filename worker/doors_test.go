package worker

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// doors is what the front of the Worker, in JavaScript, and this package must both say.
type doors struct {
	Peers   []struct{ Name, Peer string }
	Tongues []struct{ Path, Version, Key, Tongue string }

	Failures []struct {
		Tongue, Kind, Type, Code string
		Status, Want             int
	}
	Cross []struct {
		Name, Origin, Method, Ask, Headers string
		Allowed, Asked, HeadersAllowed     bool
	}
}

func readDoors(t *testing.T) (rows doors) {
	t.Helper()
	raw, err := os.ReadFile("../testdata/doors.json")
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil || len(rows.Peers) < 10 || len(rows.Tongues) < 10 || len(rows.Failures) < 10 || len(rows.Cross) < 10 {
		t.Fatalf("testdata/doors.json: %v", err)
	}
	return rows
}

var tongues = map[string]errorForm{"mcp": jsonRPC, "native": native, "openai": openAI, "anthropic": anthropic}

// TestDoors holds the doors to testdata/doors.json; build/doors.test.mjs does the same to the front.
func TestDoors(t *testing.T) {
	rows := readDoors(t)
	seen := map[string]string{}
	for _, row := range rows.Peers {
		got := peerOf(row.Name)
		if other, there := seen[got]; got != row.Peer || there {
			t.Errorf("%q becomes %q, want %q; so did %q", row.Name, got, row.Peer, other)
		}
		seen[got] = row.Name
		if _, err := keyOf("", "web", row.Name); err != nil {
			t.Errorf("%q: %v", row.Name, err)
		}
	}
	for _, row := range rows.Tongues {
		r := httptest.NewRequest(http.MethodPost, row.Path, nil)
		r.Header.Set("Anthropic-Version", row.Version)
		r.Header.Set("X-Api-Key", row.Key)
		if got := errorFormOf(r); got != tongues[row.Tongue] {
			t.Errorf("%s is told in %d, want %s", row.Path, got, row.Tongue)
		}
	}
	for _, row := range rows.Failures {
		status, body := tongues[row.Tongue].put(failure{status: row.Status, kind: row.Kind, text: "m"}, &answer{id: "r"})
		raw, err := json.Marshal(body)
		var got struct {
			Error struct{ Type, Message, Code string }
		}
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil || status != row.Want || got.Error.Type != row.Type || got.Error.Code != row.Code || got.Error.Message != "m" {
			t.Errorf("%s %s %d: %d %s, %v", row.Tongue, row.Kind, row.Status, status, raw, err)
		}
	}
}

// TestCross: what a page of another origin may do, by the same table.
func TestCross(t *testing.T) {
	g := guard{origins: []string{"https://chat.example.com"}}
	for _, row := range readDoors(t).Cross {
		t.Run(row.Name, func(t *testing.T) {
			r := httptest.NewRequest(row.Method, "https://tidemark.example/v1/models", nil)
			for name, value := range map[string]string{"Origin": row.Origin, "Access-Control-Request-Method": row.Ask, "Access-Control-Request-Headers": row.Headers} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			h := http.Header{}
			want, headers := "", ""
			if row.Allowed {
				want = row.Origin
			}
			if row.HeadersAllowed {
				headers = row.Headers
			}
			if asked := g.cross(h, r); asked != row.Asked || h.Get("Access-Control-Allow-Origin") != want || h.Get("Access-Control-Allow-Headers") != headers || h.Get("Vary") != "Origin" {
				t.Errorf("asked %v, %v", asked, h)
			}
		})
	}
	h := http.Header{}
	if (guard{}).cross(h, httptest.NewRequest(http.MethodOptions, "/", nil)) || len(h) > 0 {
		t.Errorf("without any origin: %v", h)
	}
}

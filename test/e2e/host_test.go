//go:build !js

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// health is what the Worker's shim says of the Go instance.
type health struct {
	Violations int
	Boots      int
	BootMillis int
	Memory     int
	Objects    int
	Events     int
	Timers     int
	Dead       bool
	Total      struct{ Violations, Fatals int }
}

// startMemory is how much memory a Go instance may have that has done nothing yet.
func startMemory(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("../../build/budget.json")
	if err != nil {
		t.Fatal(err)
	}
	var budget struct{ StartMemoryBytes int }
	if err := json.Unmarshal(raw, &budget); err != nil || budget.StartMemoryBytes == 0 {
		t.Fatalf("build/budget.json has no startMemoryBytes: %v", err)
	}
	return budget.StartMemoryBytes
}

// health asks the shim; it is only in a Worker.
func (s *site) health() (h health, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := s.request(ctx, "GET", "/debug/host", nil)
	if err != nil {
		return h, err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		return h, fmt.Errorf("/debug/host: %d", res.StatusCode)
	}
	raw, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
	return h, err
}

// TestHost: one Go instance serves all objects of a Worker within its budget, and no object touches
// another.
func TestHost(t *testing.T) {
	eachOwn(t, nil, func(t *testing.T, s *site) {
		if _, ok := s.target.(*workerd); !ok {
			t.Skip("it has no Go instance of its own: " + errCannot.Error())
		}
		first, err := s.health()
		if err != nil {
			t.Fatal(err)
		}
		if most := startMemory(t); first.Memory > most {
			t.Errorf("%d bytes at start, at most %d", first.Memory, most)
		}
		const n = 8
		talks := make([]*talk, n)
		for i := range talks {
			talks[i] = begin(t, s, "web", fmt.Sprint(i))
		}
		atOnce(n, func(i int) {
			for range 3 {
				talks[i].stream(strings.Repeat("words of a talk ", 20), "").done()
			}
		})
		h, err := s.health()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("boot %d ms, %.1f MiB; now %.1f MiB, %d objects, %d events, %d Go timers", first.BootMillis, mib(first.Memory), mib(h.Memory), h.Objects, h.Events, h.Timers)
		if h.Violations != 0 || h.Dead || h.Total.Fatals != 0 || h.Boots != 1 || h.Objects <= n {
			t.Errorf("%+v", h)
		}
	})
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

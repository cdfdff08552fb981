//go:build !js

package reset_test

import (
	"archive/zip"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/reset"
)

// TestEachDay walks twenty years in every zone of the toolchain: the next daily reset is later than the
// one before, and a day away, give or take what the clocks were moved by.
func TestEachDay(t *testing.T) {
	zones := allZones(t)
	if len(zones) < 200 {
		t.Fatalf("%d zones", len(zones))
	}
	from, to := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2041, 1, 10, 0, 0, 0, 0, time.UTC)
	for i, z := range zones {
		if testing.Short() && i%8 > 0 {
			continue
		}
		p := reset.Policy{Mode: reset.Daily, AtHour: reset.DefaultHour, Zone: z}
		for now := from; now.Before(to); {
			next := reset.Next(p, now, now)
			const day, most = 24 * time.Hour, 3 * time.Hour // Antarctica/Casey moves its clocks by three hours
			if gap := next.Sub(now); gap <= 0 || gap > day+most || now != from && gap < day-most {
				t.Fatalf("%s: after %s comes %s", z, now.In(z), next.In(z))
			}
			now = next.UTC()
		}
	}
}

// allZones loads the zones that differ, once each.
func allZones(t *testing.T) []*time.Location {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var zones []*time.Location
	seen := map[uint32]bool{}
	for _, f := range archive.File {
		if seen[f.CRC32] || strings.HasSuffix(f.Name, "/") {
			continue
		}
		seen[f.CRC32] = true
		raw, err := fs.ReadFile(archive, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := time.LoadLocationFromTZData(f.Name, raw)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, z)
	}
	return zones
}

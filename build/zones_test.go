package main

import (
	"archive/zip"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func zoneArchive(t *testing.T) string {
	t.Helper()
	root, err := goSays(nil, "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "lib", "time", "zoneinfo.zip")
}

// TestTrimZone: from 2000 to 2100 each zone of the toolchain changes at the same seconds, to the
// same offset and abbreviation, as before it was trimmed.
func TestTrimZone(t *testing.T) {
	zones, err := readZones(zoneArchive(t))
	if err != nil || len(zones) < 500 {
		t.Fatalf("%d zones: %v", len(zones), err)
	}
	smaller := 0
	for _, z := range zones {
		trimmed, err := trimZone(z.data, zonesFrom)
		if err != nil {
			t.Fatalf("%s: %v", z.name, err)
		}
		smaller += len(z.data) - len(trimmed)
		whole, err := time.LoadLocationFromTZData(z.name, []byte(z.data))
		if err != nil {
			t.Fatal(err)
		}
		small, err := time.LoadLocationFromTZData(z.name, []byte(trimmed))
		if err != nil {
			t.Fatalf("%s: %v", z.name, err)
		}
		same(t, z.name, time.Unix(zonesFrom, 0), whole, small)
	}
	if smaller < 100_000 {
		t.Errorf("trimming takes off %d bytes only", smaller)
	}
}

// same walks two zones from one change to the next.
func same(t *testing.T, name string, at time.Time, whole, small *time.Location) {
	t.Helper()
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := 0; at.Before(end); n++ {
		for _, at := range []time.Time{at, at.Add(time.Second), at.Add(45 * 24 * time.Hour)} {
			a, b := at.In(whole), at.In(small)
			if a.Format(time.RFC1123Z+" MST") != b.Format(time.RFC1123Z+" MST") || a.IsDST() != b.IsDST() {
				t.Fatalf("%s at %d: %v DST %v, trimmed %v DST %v", name, at.Unix(), a, a.IsDST(), b, b.IsDST())
			}
		}
		_, next := at.In(whole).ZoneBounds()
		if _, other := at.In(small).ZoneBounds(); !other.Equal(next) {
			t.Fatalf("%s after %v: changes at %v, trimmed at %v", name, at, next, other)
		}
		if next.IsZero() {
			return
		}
		if n > 1000 {
			t.Fatalf("%s: no end of changes", name)
		}
		if !next.After(at) {
			next = at.AddDate(0, 0, 1) // at the end of a leap year ZoneBounds may stand still
		}
		if before := next.Add(-time.Second); before.In(whole).Format("-0700") != before.In(small).Format("-0700") {
			t.Fatalf("%s before %v: trimmed differs", name, next)
		}
		at = next
	}
}

// TestPackZones: what is packed is an archive with every zone under its name.
func TestPackZones(t *testing.T) {
	zones, err := readZones(zoneArchive(t))
	if err != nil {
		t.Fatal(err)
	}
	packed := packZones(zones)
	r, err := zip.NewReader(strings.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{}
	for _, f := range r.File {
		body, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		data[f.Name] = string(raw)
	}
	if len(data) != len(zones) {
		t.Fatalf("%d of %d zones", len(data), len(zones))
	}
	for _, z := range zones {
		if data[z.name] != z.data {
			t.Errorf("%s has other data", z.name)
		}
	}
}

// TestTrimZoneRefuses: what is no zone is an error, never a zone at UTC.
func TestTrimZoneRefuses(t *testing.T) {
	zones, err := readZones(zoneArchive(t))
	if err != nil {
		t.Fatal(err)
	}
	whole := zones[0].data
	for name, data := range map[string]string{
		"empty": "", "text": strings.Repeat("Europe/Berlin ", 20), "first block only": whole[:44],
		"cut in the second header": whole[:strings.LastIndex(whole, "TZif")+20], "cut in the types": whole[:strings.LastIndex(whole, "TZif")+50],
	} {
		if got, err := trimZone(data, zonesFrom); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

package paging

import (
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// decided is a row of testdata/decisions.txt: what a policy did to a session, and the sum of all that it decided.
func decided(t *testing.T, name string, o Options, s Session) string {
	t.Helper()
	r := Replay{Options: o, Keep: true}
	if err := r.Run(s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	a, z := r.Totals, ZoneCounts{}
	if a.Zones != nil {
		z = *a.Zones
	}
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%d %d %d %d\t%d %d\t%d\t%d %d %d %d\t%d %d\t%.0f %.0f\t%08x", name, o.Policy, o.Window, o.Tau, a.Evictions, a.GC, a.Inputs, a.Images,
		a.Faults, a.Pins, a.Tau, z.Normal, z.Advisory, z.Involuntary, z.Aggressive, a.BytesIn, a.BytesOut, a.Cost, a.Baseline, crc32.ChecksumIEEE(r.Line))
}

// cached reports of each request what a provider does whose cache holds a part of what is as before, the less the later.
func cached(s Session) Session {
	size, n := 0, len(s.Steps)
	for i := range s.Steps {
		before := size
		for _, m := range s.Steps[i].Append {
			size += m.Bytes
		}
		read := before / 4 * (n - i) / n
		s.Steps[i].Usage = &tidemark.Usage{Input: 9, CacheRead: tidemark.Tokens(read), CacheCreation: tidemark.Tokens(size/4 - read), Output: 50}
	}
	s.Whole = true
	return s
}

// TestDecisionsStay: what each policy decides of the made sessions, and of random ones in which the model takes part, is what it
// was when the figures of the docs were taken. Who changes a rule writes the file anew (-update) and says why.
func TestDecisionsStay(t *testing.T) {
	rows := []string{"session\tpolicy\twindow\ttau\tevicted cleared inputs images\tfaults pins\tmost tau\tzones\tbytes\tcost\tsum"}
	add := func(name string, o Options, s Session) { rows = append(rows, decided(t, name, o, s)) }
	sc := Scanner{Tools: DefaultTools()}
	for i, name := range Profiles() {
		s, err := sc.Session(Profile(name, 70, 3000))
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range append(Policies(), Bounds()...) {
			add(name, Options{Policy: policy}, s)
		}
		for _, policy := range Policies() {
			add(name, Options{Policy: policy, Window: []tidemark.Tokens{8_000, 20_000, 50_000}[i%3], Tau: i%4 + 1}, s)
		}
		add(name+" reported", Options{Policy: "cost"}, cached(s))
	}
	for seed := range uint64(10) {
		name := fmt.Sprint("random ", seed)
		for _, policy := range Policies() {
			add(name, Options{Policy: policy, Tau: int(seed%3) + 1, MinBytes: 400}, helped(random(t, seed, 40), seed))
			add(name, Options{Policy: policy, Tau: int(seed % 5), MinBytes: 400, Window: tidemark.Tokens(5000 + 2000*(seed%4))}, reported(helped(random(t, seed, 40), seed), seed))
		}
		for _, policy := range Bounds() {
			add(name, Options{Policy: policy, Tau: int(seed%3) + 1, MinBytes: 400}, helped(random(t, seed, 40), seed))
		}
	}
	got := strings.Join(rows, "\n") + "\n"
	const file = "testdata/decisions.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(want) != len(rows) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, row := range rows {
		if row != want[i] {
			t.Errorf("got  %s\nwant %s", row, want[i])
		}
	}
}

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/paging"
)

// plotted replays made sessions into a plot.
func plotted(t *testing.T, policies []string, sessions ...paging.Session) (*plot, []*paging.Replay) {
	t.Helper()
	r := &replay{policies: policies, drawn: newPlot(policies), small: make([]float64, len(policies))}
	for _, name := range policies {
		r.runs = append(r.runs, &paging.Replay{Options: paging.Options{Policy: name}, Totals: paging.Totals{Policy: name}})
	}
	for _, s := range sessions {
		if err := r.session(s); err != nil {
			t.Fatal(err)
		}
	}
	return r.drawn, r.runs
}

func profileOf(t *testing.T, name string, requests int) paging.Session {
	t.Helper()
	scanner := paging.Scanner{Tools: paging.DefaultTools()}
	s, err := scanner.Session(paging.Profile(name, requests, 1000))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlotOfLongSession holds that columns are bounded and lose nothing that adds up.
func TestPlotOfLongSession(t *testing.T) {
	for _, c := range []struct{ requests, columns, every int }{{1, 1, 1}, {1000, 1000, 1}, {1001, 501, 2}, {4500, 563, 8}} {
		p, runs := plotted(t, []string{"fifo", "cost"}, profileOf(t, "workingset", c.requests))
		for i, run := range runs {
			tr, faults := p.traces[i], 0
			for _, col := range tr.columns {
				faults += col.faults
			}
			last := tr.columns[len(tr.columns)-1]
			if len(tr.columns) != c.columns || tr.every != c.every || faults != run.Totals.Faults || last.cost != run.Totals.Cost || last.base != run.Totals.Baseline {
				t.Errorf("%d requests: %d columns of %d, %d faults, cost %v of %v, want %d of %d and %+v", c.requests, len(tr.columns), tr.every, faults, last.cost, last.base, c.columns, c.every, run.Totals)
			}
		}
	}
}

// TestPlotIsXML holds that a drawing is well formed whatever a session is named, and that several sessions are columns.
func TestPlotIsXML(t *testing.T) {
	bad := profileOf(t, "rescan", 40)
	bad.ID = "<b a=\"1\">&\x00\x1b[31m\n" + strings.Repeat("é", 100) + "\xff"
	empty := paging.Session{ID: "empty"}
	policies := append(paging.Policies(), paging.Bounds()...)
	for what, sessions := range map[string][]paging.Session{"none": nil, "one": {bad}, "empty": {empty}, "two": {bad, profileOf(t, "chat", 10)}, "two with an empty one": {empty, bad}} {
		p, _ := plotted(t, policies, sessions...)
		var b strings.Builder
		if err := p.draw(&b); err != nil {
			t.Fatal(err)
		}
		dec := xml.NewDecoder(strings.NewReader(b.String()))
		columns := 0
		for {
			tok, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%.2000s", what, err, b.String())
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "title" {
				columns++
			}
		}
		want := map[string]int{"one": len(bad.Steps), "two": 2, "two with an empty one": len(bad.Steps)}[what]
		if columns != want {
			t.Errorf("%s: %d columns, want %d", what, columns, want)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s: a height is no number", what)
		}
	}
}

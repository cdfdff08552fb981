package main

import (
	"reflect"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

// bySession replays made sessions and tells of each.
func bySession(t *testing.T, window tidemark.Tokens, profiles ...string) *replay {
	t.Helper()
	r := &replay{Policy: []string{"cost", "lru"}, BySession: true, small: make([]float64, 2)}
	for _, name := range r.Policy {
		r.runs = append(r.runs, &paging.Replay{Options: paging.Options{Policy: name, Window: window}, Totals: paging.Totals{Policy: name}})
	}
	r.Scanner.Tools = paging.DefaultTools()
	for _, name := range profiles {
		s, err := r.Scanner.Session(paging.Profile(name, 80, 6000))
		if err == nil {
			err = r.session(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestBySession: what is told of a session among others is what is told of it alone, the highest age and the zones
// among it, and the totals are those of a replay that knows no sessions.
func TestBySession(t *testing.T) {
	profiles := paging.Profiles()
	for _, window := range []tidemark.Tokens{0, 20_000} {
		all := bySession(t, window, profiles...)
		ages := map[int]bool{}
		for n, name := range profiles {
			alone := bySession(t, window, name)
			for i := range all.runs {
				got, want := all.rows[n*len(all.runs)+i], alone.rows[i]
				if !reflect.DeepEqual(got, want) {
					t.Errorf("window %d, %s: among others %+v, alone %+v", window, name, got, want)
				}
				if window > 0 && (got.Zones == nil || got.Zones.Normal+got.Zones.Advisory+got.Zones.Involuntary+got.Zones.Aggressive != got.Requests) {
					t.Errorf("window %d, %s: %d requests, zones %+v", window, name, got.Requests, got.Zones)
				}
				ages[got.Tau] = true
			}
		}
		if window == 0 && len(ages) < 2 {
			t.Error("no session has another age than the others: the test tells nothing")
		}
		for i, name := range all.Policy {
			whole := &paging.Replay{Options: paging.Options{Policy: name, Window: window}, Totals: paging.Totals{Policy: name}}
			for _, profile := range profiles {
				s, err := all.Scanner.Session(paging.Profile(profile, 80, 6000))
				if err == nil {
					err = whole.Run(s)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			got, want := all.runs[i].Totals, whole.Totals
			for _, t := range []*paging.Totals{&got, &want} {
				t.Cost, t.Baseline = cents(t.Cost), cents(t.Baseline)
				t.Ratio = t.Cost / t.Baseline
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("window %d, %s: all %+v, want %+v", window, name, got, want)
			}
		}
	}
}

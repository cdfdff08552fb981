package paging

import "testing"

// TestCost holds the policy cost against the simple batch rule (all that is old goes once it is 30 % of the
// context) and against no management at all, over all profiles.
func TestCost(t *testing.T) {
	s := Scanner{Tools: DefaultTools()}
	sum, n := 0.0, 0
	for _, name := range some(t, Profiles()) {
		for _, bytes := range []int{2000, 6000, 20000} {
			for _, requests := range []int{40, 80, 200} {
				session, err := s.Session(Profile(name, requests, bytes))
				if err != nil {
					t.Fatal(err)
				}
				ratio := map[string]float64{}
				for _, policy := range some(t, Policies()) {
					r := Replay{Options: Options{Policy: policy}}
					if err := r.Run(session); err != nil {
						t.Fatal(err)
					}
					ratio[policy] = r.Totals.Ratio
				}
				by := ratio["cost"] / ratio["batch"]
				t.Logf("%-10s %4d requests of %5d bytes: fifo %.3f batch %.3f cost %.3f, by batch %.3f", name, requests, bytes, ratio["fifo"], ratio["batch"], ratio["cost"], by)
				sum += by
				n++
				if ratio["cost"] > 1 {
					t.Errorf("%s, %d requests of %d bytes: %.3f of what no management costs, want at most 1", name, requests, bytes, ratio["cost"])
				}
			}
		}
	}
	if mean := sum / float64(n); n == 0 || !(mean > 0 && mean <= 0.9) { // of no session it is no number, which is not above either
		t.Errorf("%.3f of what the simple batch rule costs on the mean, want at most 0.9", mean)
	} else {
		t.Logf("mean by batch %.3f", mean)
	}
}

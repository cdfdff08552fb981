package bench

import (
	"math"
	"testing"
)

func close9(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestBinomialTest: known values; 31 of 54 is the paper's detection (§6.5), which gives a one-sided z.
func TestBinomialTest(t *testing.T) {
	for _, c := range []struct {
		name     string
		right, n int
		want     float64
	}{
		{"none", 0, 0, 1},
		{"half", 5, 10, 1},
		{"all of five", 5, 5, 0.0625},
		{"none of six", 0, 6, 0.03125},
		{"nine of ten", 9, 10, 22.0 / 1024},
		{"one of three", 1, 3, 1},
		{"paper", 31, 54, 0.34089094122009733},
		{"many", 600, 1000, 2.7284641560660184e-10},
	} {
		if got := binomialTest(c.right, c.n); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// TestStudent: quantiles of printed tables, and the Cauchy distribution, which one degree of freedom is.
func TestStudent(t *testing.T) {
	for _, c := range []struct{ above, freedom, want float64 }{
		{0.05, 1, 6.313752}, {0.05, 5, 2.015048}, {0.025, 10, 2.228139}, {0.05, 17, 1.739607}, {0.005, 30, 2.749996},
	} {
		if got := studentQuantile(c.above, c.freedom); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("t of %g at %g: %.6f, want %.6f", c.above, c.freedom, got, c.want)
		}
	}
	for _, x := range []float64{-7, -1, 0, 0.3, 2, 100} {
		if got, want := studentAbove(x, 1), 0.5-math.Atan(x)/math.Pi; !close9(got, want) {
			t.Errorf("Cauchy above %g: %g, want %g", x, got, want)
		}
	}
}

// TestTwoTests: a sample computed by hand (mean 0.1, deviation 0.2, n 16, so an error of 0.05), and edges.
func TestTwoTests(t *testing.T) {
	var diffs []float64
	step := 0.2 * math.Sqrt(15.0/16)
	for range 8 {
		diffs = append(diffs, 0.1-step, 0.1+step)
	}
	below, above, low, high := twoTests(diffs, 0.2, 0.05)
	// t = 6 and t = 2 at 15 degrees; the interval is 0.1 ± 1.753050*0.05.
	if math.Abs(below-1.2e-5) > 2e-6 || math.Abs(above-0.0319725) > 1e-6 || math.Abs(low-0.0123475) > 1e-6 || math.Abs(high-0.1876525) > 1e-6 {
		t.Errorf("%g %g %g %g", below, above, low, high)
	}
	for _, c := range []struct {
		name         string
		diffs        []float64
		below, above float64
	}{
		{"one", []float64{0}, 1, 1},
		{"all zero", []float64{0, 0, 0}, 0, 0},
		{"all over", []float64{1, 1}, 0, 1},
		{"all at the margin", []float64{0.5, 0.5}, 0, 1},
	} {
		if below, above, _, _ := twoTests(c.diffs, 0.5, 0.05); below != c.below || above != c.above {
			t.Errorf("%s: %g %g, want %g %g", c.name, below, above, c.below, c.above)
		}
	}
}

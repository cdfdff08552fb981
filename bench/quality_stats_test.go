package bench

import (
	"math"
	"math/rand/v2"
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

// TestShareInterval: the interval against tabled values and its own definition.
func TestShareInterval(t *testing.T) {
	for _, c := range []struct {
		right, n  int
		low, high float64
	}{{0, 10, 0, 0.3084971}, {10, 10, 0.6915029, 1}, {5, 10, 0.1870860, 0.8129140}, {1, 20, 0.001265089, 0.2487328}} {
		if low, high := shareInterval(c.right, c.n, 0.95); math.Abs(low-c.low) > 1e-6 || math.Abs(high-c.high) > 1e-6 {
			t.Errorf("%d of %d: %.7f %.7f, want %.7f %.7f", c.right, c.n, low, high, c.low, c.high)
		}
	}
	if low, high := shareInterval(0, 0, 0.95); low != 0 || high != 1 {
		t.Errorf("nothing: %g %g", low, high)
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

// TestSignedRanks: exact values by counting, with ties and zeros, and the approximation beside them.
func TestSignedRanks(t *testing.T) {
	for _, c := range []struct {
		name  string
		diffs []float64
		want  float64
	}{
		{"none", nil, 1},
		{"zeros", []float64{0, 0}, 1},
		{"all up", []float64{1, 2, 3, 4, 5, 6}, 2.0 / 64},
		{"all up, equal", []float64{1, 1, 1, 1, 1, 1, 0}, 2.0 / 64},
		{"one small down", []float64{-1, 2, 3, 4, 5}, 4.0 / 32},
		{"equal both ways", []float64{1, -1}, 1},
		{"wilcoxon 1945", []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}, 0.0412597},
	} {
		if got := signedRanks(c.diffs); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %.7f, want %.7f", c.name, got, c.want)
		}
	}
	draw := rand.New(rand.NewPCG(1, 2))
	var many []float64
	for range exactRanks {
		many = append(many, draw.NormFloat64()+0.15)
	}
	exact, about := signedRanks(many), signedRanks(append(many, 1e-7))
	if math.Abs(exact-about) > 0.01 {
		t.Errorf("exact %g, approximation %g", exact, about)
	}
}

// TestBootstrap: it covers the mean of a known distribution about as often as it says, and a seed repeats it.
func TestBootstrap(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	const runs = 300
	covered := 0
	for i := range runs {
		values := make([]float64, 40)
		for k := range values {
			values[k] = draw.Float64()
		}
		low, high := bootstrap(values, 0.9, 400, uint64(i))
		if low <= 0.5 && 0.5 <= high {
			covered++
		}
		if l, h := bootstrap(values, 0.9, 400, uint64(i)); l != low || h != high {
			t.Fatal("the same seed gives another interval")
		}
	}
	if share := float64(covered) / runs; share < 0.82 || share > 0.96 {
		t.Errorf("covered %.3f, want about 0.9", share)
	}
	if low, high := bootstrap([]float64{2, 2, 2}, 0.95, 100, 1); low != 2 || high != 2 {
		t.Errorf("all equal: %g %g", low, high)
	}
}

// TestKappa: Cohen's own kind of table: 20 yes yes, 5 yes no, 10 no yes, 15 no no is 0.4.
func TestKappa(t *testing.T) {
	var said [][2]string
	for n, s := range map[[2]string]int{{"y", "y"}: 20, {"y", "n"}: 5, {"n", "y"}: 10, {"n", "n"}: 15} {
		for range s {
			said = append(said, n)
		}
	}
	if k, agree, ok := kappa(said); !ok || !close9(k, 0.4) || !close9(agree, 0.7) {
		t.Errorf("%g %g %t", k, agree, ok)
	}
	if _, agree, ok := kappa([][2]string{{"y", "y"}, {"y", "y"}}); ok || agree != 1 {
		t.Error("all the same is no agreement beyond chance")
	}
	if k, _, ok := kappa([][2]string{{"y", "n"}, {"n", "y"}}); !ok || !close9(k, -1) {
		t.Errorf("always other: %g", k)
	}
}

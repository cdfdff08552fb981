package bench

import (
	"math"
)

// binomialTest is the exact two-sided p-value of right hits in n tries of probability 1/2: the
// probability of an outcome that is no likelier than this one. 1 for no tries.
func binomialTest(right, n int) float64 {
	if n <= 0 {
		return 1
	}
	k := min(right, n-right)
	if 2*k == n {
		return 1
	}
	sum := 0.0
	for i := range k + 1 {
		sum += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(2*sum, 1)
}

func logChoose(n, k int) float64 {
	return logGamma(n+1) - logGamma(k+1) - logGamma(n-k+1)
}

func logGamma(n int) float64 {
	v, _ := math.Lgamma(float64(n))
	return v
}

// betaShare is the regularized incomplete beta function I_x(a, b), by its continued fraction
// (https://dlmf.nist.gov/8.17#SS5).
func betaShare(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // where the fraction of the other side ends sooner
		return 1 - betaShare(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300 // keeps a division by zero away
	c, d := 1.0, 1/nonZero(1-(a+b)*x/(a+1), tiny)
	f := d
	for m := 1.0; m < 1000; m++ {
		for _, e := range [2]float64{m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)), -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))} {
			d = 1 / nonZero(1+e*d, tiny)
			c = nonZero(1+e/c, tiny)
			f *= c * d
		}
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return front * f
}

func nonZero(v, tiny float64) float64 {
	if math.Abs(v) < tiny {
		return tiny
	}
	return v
}

// studentAbove is the probability that Student's t of so many degrees of freedom is above t.
func studentAbove(t, freedom float64) float64 {
	half := betaShare(freedom/(freedom+t*t), freedom/2, 0.5) / 2
	if t < 0 {
		return 1 - half
	}
	return half
}

// studentQuantile is the t that is exceeded with probability above, which is less than 1/2.
func studentQuantile(above, freedom float64) float64 {
	low, high := 0.0, 1.0
	for studentAbove(high, freedom) > above && high < 1e12 {
		high *= 2
	}
	for range 100 {
		if mid := (low + high) / 2; studentAbove(mid, freedom) > above {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// twoTests are the two one-sided t-tests of equivalence (Schuirmann, J. Pharmacokinet. Biopharm. 15,
// 1987): below is the p-value of "the mean is -margin or less", above that of "margin or more". Both
// small is equivalence, below alone is no worse by the margin. low and high are the interval that
// belongs to it, at 1-2*alpha. Of fewer than two figures nothing is known.
func twoTests(diffs []float64, margin, alpha float64) (below, above, low, high float64) {
	n := float64(len(diffs))
	if n < 2 {
		return 1, 1, math.Inf(-1), math.Inf(1)
	}
	mean, deviation := spread(diffs)
	step := func(distance float64) float64 {
		if deviation == 0 { // all are the same: as sure as so many figures can be
			if distance > 0 {
				return 0
			}
			return 1
		}
		return studentAbove(distance/(deviation/math.Sqrt(n)), n-1)
	}
	half := 0.0
	if deviation > 0 {
		half = studentQuantile(alpha, n-1) * deviation / math.Sqrt(n)
	}
	return step(mean + margin), step(margin - mean), mean - half, mean + half
}

// spread is the mean and the standard deviation of a sample.
func spread(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(max(len(values), 1))
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(len(values)-1, 1)))
}

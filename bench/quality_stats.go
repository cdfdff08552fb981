package bench

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
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

// shareInterval is the exact interval of Clopper and Pearson (Biometrika 26, 1934) around right of n,
// at a confidence such as 0.95. 0 and 1 for no tries.
func shareInterval(right, n int, confidence float64) (low, high float64) {
	alpha := (1 - confidence) / 2
	low, high = 0, 1
	if n > 0 && right > 0 { // where at least so many have the probability alpha
		low = root(func(p float64) float64 { return betaShare(p, float64(right), float64(n-right+1)) - alpha })
	}
	if n > 0 && right < n { // where at most so many have it
		high = root(func(p float64) float64 { return betaShare(p, float64(right+1), float64(n-right)) - 1 + alpha })
	}
	return low, high
}

// root is where a function that rises over 0 to 1 is zero.
func root(f func(float64) float64) float64 {
	low, high := 0.0, 1.0
	for range 60 { // halves 1 to less than what a float64 tells apart there
		if mid := (low + high) / 2; f(mid) < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
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

// exactRanks is up to how many differences the test of signed ranks counts all signs.
const exactRanks = 200

// signedRanks is the two-sided p-value of Wilcoxon's test of signed ranks. Zeros are left out, equal
// differences share their rank, and the distribution is that of the ranks there are: exact up to
// exactRanks differences, then the normal approximation.
func signedRanks(diffs []float64) float64 {
	var kept []float64
	for _, d := range diffs {
		if d != 0 {
			kept = append(kept, d)
		}
	}
	if len(kept) == 0 {
		return 1
	}
	slices.SortFunc(kept, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	ranks := make([]int, len(kept)) // twice the rank, so that a shared one is whole
	total, plus, squares := 0, 0, 0.0
	for i := 0; i < len(kept); {
		j := i
		for j < len(kept) && sameSize(kept[j], kept[i]) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + 1 + j
			total += ranks[k]
			squares += float64(ranks[k]) * float64(ranks[k])
			if kept[k] > 0 {
				plus += ranks[k]
			}
		}
		i = j
	}
	less := min(plus, total-plus)
	if len(kept) > exactRanks {
		z := (float64(less) - float64(total)/2 + 1) / math.Sqrt(squares/4)
		return min(math.Erfc(-z/math.Sqrt2), 1)
	}
	ways := make([]float64, total+1) // the probability of each sum
	ways[0] = 1
	for _, r := range ranks {
		for s := total; s >= 0; s-- {
			ways[s] /= 2
			if s >= r {
				ways[s] += ways[s-r] / 2
			}
		}
	}
	p := 0.0
	for s := range less + 1 {
		p += ways[s]
	}
	return min(2*p, 1)
}

// sameSize is whether two differences are equal but for their sign and what computing them adds:
// means of scores are thirds and sixths.
func sameSize(a, b float64) bool { return math.Abs(math.Abs(a)-math.Abs(b)) < 1e-9 }

// bootstrap is the percentile interval of the mean of values (Efron, 1979) at a confidence, from so
// many samples that a seed draws.
func bootstrap(values []float64, confidence float64, samples int, seed uint64) (low, high float64) {
	if len(values) == 0 {
		return math.Inf(-1), math.Inf(1)
	}
	draw := rand.New(rand.NewPCG(seed, uint64(len(values)))) //nolint:gosec // a sample that can be drawn again, no secret
	means := make([]float64, samples)
	for i := range means {
		for range values {
			means[i] += values[draw.IntN(len(values))]
		}
		means[i] /= float64(len(values))
	}
	slices.Sort(means)
	at := func(q float64) float64 { return means[min(int(q*float64(samples)), samples-1)] }
	return at((1 - confidence) / 2), at((1 + confidence) / 2)
}

// kappa is Cohen's agreement of two judges beyond chance (Educ. Psychol. Meas. 20, 1960): 1 is always,
// 0 as by chance. Each pair is what both said of one thing. ok is false when all say the same, where
// chance alone explains everything.
func kappa(said [][2]string) (k, agree float64, ok bool) {
	if len(said) == 0 {
		return 0, 0, false
	}
	n := float64(len(said))
	first, second := map[string]float64{}, map[string]float64{}
	for _, s := range said {
		first[s[0]]++
		second[s[1]]++
		if s[0] == s[1] {
			agree++
		}
	}
	agree /= n
	chance := 0.0
	for what, f := range first {
		chance += f / n * second[what] / n
	}
	if 1-chance < 1e-12 {
		return 0, agree, false
	}
	return (agree - chance) / (1 - chance), agree, true
}

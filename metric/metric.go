// Package metric counts, and tells what it counted in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
package metric

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Family describes one metric: its name, its kind, and what it is for people.
type Family struct{ name, kind, help string }

// Counter is a family of figures that only grow.
func Counter(name, help string) Family { return Family{name, "counter", help} }

// Gauge is a family of figures that rise and fall.
func Gauge(name, help string) Family { return Family{name, "gauge", help} }

// Histogram is a family of durations in seconds.
func Histogram(name, help string) Family { return Family{name, "histogram", help} }

// bounds of the histograms, in seconds.
var bounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// sample is one line of the text: a family and its labels as written.
type sample struct{ name, labels string }

// Registry holds figures by family. Its methods may be called at once.
type Registry struct {
	families []Family

	mu     sync.Mutex // guards the following; never held over a wait
	values map[sample]float64
	spread map[string]*[len(bounds) + 1]uint64 // of histograms, by bucket
}

// New returns a registry whose figures stand at zero. They are told in the order of the families.
func New(families ...Family) *Registry {
	return &Registry{families: families, values: map[sample]float64{}, spread: map[string]*[len(bounds) + 1]uint64{}}
}

// Add counts n under a family and labels: a name and a value, and so on.
func (r *Registry) Add(name string, n float64, labels ...string) {
	at := sample{name, join(labels)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[at] += n
}

// Set has a family without labels, or one line of it, stand at v.
func (r *Registry) Set(name string, v float64, labels ...string) {
	at := sample{name, join(labels)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[at] = v
}

// Observe counts a duration in seconds in a histogram.
func (r *Registry) Observe(name string, seconds float64) {
	i, _ := slices.BinarySearch(bounds[:], seconds)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spread[name] == nil {
		r.spread[name] = new([len(bounds) + 1]uint64)
	}
	r.spread[name][i]++
	r.values[sample{name, ""}] += seconds
}

// Sum is what a family counted under all labels.
func (r *Registry) Sum(name string) (n float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, v := range r.values {
		if s.name == name {
			n += v
		}
	}
	return n
}

// join writes labels as the format wants them.
func join(labels []string) string {
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, labels[i], strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(labels[i+1]))
	}
	return b.String()
}

// Text writes all figures.
func (r *Registry) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	samples := slices.SortedFunc(maps.Keys(r.values), func(x, y sample) int { return strings.Compare(x.labels, y.labels) })
	for _, f := range r.families {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		if f.kind == "histogram" {
			r.buckets(&b, f.name)
			continue
		}
		for _, s := range samples {
			if s.name != f.name {
				continue
			}
			if b.WriteString(s.name); s.labels != "" {
				b.WriteString("{" + s.labels + "}")
			}
			b.WriteString(" " + number(r.values[s]) + "\n")
		}
	}
	return b.String()
}

// buckets writes a histogram.
func (r *Registry) buckets(b *strings.Builder, name string) {
	counts := r.spread[name]
	if counts == nil {
		counts = new([len(bounds) + 1]uint64)
	}
	total := uint64(0)
	for i, n := range counts {
		le := "+Inf"
		if i < len(bounds) {
			le = number(bounds[i])
		}
		total += n
		fmt.Fprintf(b, "%s_bucket{le=%q} %d\n", name, le, total)
	}
	fmt.Fprintf(b, "%s_sum %s\n%s_count %d\n", name, number(r.values[sample{name, ""}]), name, total)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

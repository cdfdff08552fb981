package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/proxy"
)

// BenchmarkBegin is what a request of 1 MB costs before it is sent on, in a conversation that was seen before: the
// baseline passes it on untouched.
func BenchmarkBegin(b *testing.B) {
	for _, treatment := range []string{proxy.Observe, proxy.Page, proxy.PageTrim} {
		b.Run(treatment, func(b *testing.B) {
			r := newRig(b, proxy.Settings{Window: 200_000})
			a := &agentRun{r: r, name: "main"}
			a.ask("look around")
			for n := range 100 {
				a.read(n, 10_000)
			}
			// The last request is new each time, as that of a client is.
			bodies := make([][]byte, 4)
			for i := range bodies {
				bodies[i] = request(append(a.history, text("user", fmt.Sprint("and ", i, strings.Repeat(" more", 20))))...)
			}
			b.SetBytes(int64(len(bodies[0])))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				x, err := r.c.Begin(b.Context(), proxy.Ask{Body: bodies[i%len(bodies)], Treatment: treatment})
				if err != nil {
					b.Fatal(err)
				}
				if _, why := x.Untouched(); why != "" {
					b.Fatal(why)
				}
				x.Answer(b.Context(), 429, false)
				if _, err := x.Finish(b.Context()); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

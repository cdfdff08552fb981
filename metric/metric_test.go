package metric_test

import (
	"fmt"

	"github.com/tidemark-ai/tidemark/metric"
)

func Example() {
	r := metric.New(
		metric.Counter("boats_total", "Boats by where they come from."),
		metric.Gauge("tide", "Height in metres."))
	r.Add("boats_total", 2, "from", `the "north"`)
	r.Add("boats_total", 1, "from", "east")
	r.Add("boats_total", 1, "from", "east")
	r.Set("tide", 1.5)
	fmt.Print(r.Text(), r.Sum("boats_total"))
	// Output:
	// # HELP boats_total Boats by where they come from.
	// # TYPE boats_total counter
	// boats_total{from="east"} 2
	// boats_total{from="the \"north\""} 2
	// # HELP tide Height in metres.
	// # TYPE tide gauge
	// tide 1.5
	// 4
}

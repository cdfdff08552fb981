package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// TestStepsTellSettings: an export says by what it was decided, so a replay that is told nothing else decides the same.
func TestStepsTellSettings(t *testing.T) {
	for name, settings := range map[string]proxy.Settings{
		"defaults in a small window": {Window: 20_000},
		"all set":                    {Window: 8_000, Paging: paging.Options{Policy: "fifo", Tau: 2, MinBytes: 900, Zones: paging.Zones{Advisory: 10, Involuntary: 70, Aggressive: 90}}},
		"at any age and size":        {Window: 8_000, Paging: paging.Options{Policy: "lru", Tau: -1, MinBytes: -1}},
		"only watched":               {Window: 8_000, Treatment: proxy.Observe},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings)
			history := []string{text("user", "go on")}
			for i := range 20 {
				id, file := fmt.Sprintf("c%d", i), fmt.Sprintf("f%d.go", i)
				read := call(id, "Read", `{"file_path":"`+file+`"}`)
				r.exchange("", request(history...), reply("tool_use", read))
				history = append(history, said(read), result(id, strings.Repeat(file+" holds this\n", 40+10*i)))
			}
			var steps, live bytes.Buffer
			if err := r.c.Steps(t.Context(), &steps); err != nil {
				t.Fatal(err)
			}
			if err := r.c.Decisions(t.Context(), &live); err != nil {
				t.Fatal(err)
			}
			scan := paging.Scanner{Tools: paging.DefaultTools()}
			s, err := scan.Session(bytes.TrimSpace(steps.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			replay := paging.Replay{Keep: true}
			s.Told.Fill(&replay.Options)
			if err := replay.Run(s); err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimSpace(live.String()); string(replay.Line) != want {
				t.Errorf("replayed\n%s\nwas decided\n%s", replay.Line, want)
			}
			if replay.Totals.Evictions == 0 {
				t.Error("nothing left, so nothing is compared")
			}
		})
	}
}

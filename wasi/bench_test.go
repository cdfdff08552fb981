//go:build !js

// It runs modules by compiled code.

package wasi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const question = `{"from":"2026-11-25","add":{"months":1}}`

func ask(b *testing.B, o opened) {
	b.Helper()
	r, err := o.Call(context.Background(), call("tool", question))
	if err != nil || r.IsError {
		b.Fatalf("%s, %v", r.AppendJSON(nil), err)
	}
}

// BenchmarkCallWarm is a call for which an instance waits: what a conversation sees.
func BenchmarkCallWarm(b *testing.B) {
	o := open(b)
	o.add(b, "tool", datecalc(b))
	ask(b, o)
	took := []time.Duration{}
	for b.Loop() {
		b.StopTimer()
		o.filled(b, "tool")
		b.StartTimer()
		began := time.Now()
		ask(b, o)
		took = append(took, time.Since(began))
	}
	slices.Sort(took) // the mean is that of the machine's other work too
	b.ReportMetric(float64(took[0].Microseconds()), "min-µs")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
}

// BenchmarkCallInRow is one call after the other, as fast as they go: instances are started as they are used.
func BenchmarkCallInRow(b *testing.B) {
	o := open(b)
	o.add(b, "tool", datecalc(b))
	ask(b, o)
	for b.Loop() {
		ask(b, o)
	}
}

// BenchmarkCallColdCached is the first call of a process, with the code of the module on disk.
func BenchmarkCallColdCached(b *testing.B) { cold(b, func(string) {}) }

// BenchmarkCallCold is the first call of all: the module is compiled.
func BenchmarkCallCold(b *testing.B) {
	cold(b, func(home string) {
		if err := os.RemoveAll(filepath.Join(home, "cache")); err != nil {
			b.Fatal(err)
		}
	})
}

func cold(b *testing.B, before func(home string)) {
	home := b.TempDir()
	openHome(b, home).add(b, "tool", datecalc(b))
	for b.Loop() {
		b.StopTimer()
		before(home)
		o := openHome(b, home)
		b.StartTimer()
		ask(b, o)
		b.StopTimer()
		if err := o.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkNativeProcess is the same program built for this machine, started for each call.
func BenchmarkNativeProcess(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "datecalc")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/tidemark-ai/tidemark/examples/datecalc").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for b.Loop() {
		cmd := exec.Command(bin)
		cmd.Stdin = strings.NewReader(question)
		if out, err := cmd.Output(); err != nil || len(out) == 0 {
			b.Fatal(err)
		}
	}
}

// BenchmarkParallel100 is a hundred calls at once, all of them.
func BenchmarkParallel100(b *testing.B) {
	o := open(b)
	o.add(b, "tool", datecalc(b))
	ask(b, o)
	for b.Loop() {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { ask(b, o) })
		}
		wg.Wait()
	}
}

// BenchmarkList is what each turn pays to see changes of the folder.
func BenchmarkList(b *testing.B) {
	o := open(b)
	for _, name := range []string{"a", "b", "c", "d"} {
		o.add(b, name, raw(0))
	}
	for b.Loop() {
		if tools, err := o.Tools.Tools(context.Background()); err != nil || len(tools) != 4 {
			b.Fatal(tools, err)
		}
	}
}

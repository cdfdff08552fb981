// Command mutate plants faults in our own code and tells which of them no test notices. It repairs nothing and runs no
// test that does not reach the fault. Begin with CONTRIBUTING.md, which says how to read what it prints.
//
// All the faults drawn for a run are compiled into one set of test binaries, each behind a switch, so that a fault costs
// a run of the tests that reach its place and no build.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	var c campaign
	flag.Uint64Var(&c.seed, "seed", 1, "which faults are drawn")
	flag.IntVar(&c.n, "n", 100, "how many faults in all")
	kinds := flag.String("kinds", "", "only these kinds: "+strings.Join(allKinds, " "))
	tests := flag.String("tests", "session proxy worker agent", "packages whose tests are tried, in this order, after those of the packages that faults are planted in")
	flag.StringVar(&c.only, "only", "", "only faults whose line has this text")
	flag.StringVar(&c.harmless, "harmless", "test/mutate/harmless.txt", "the survivors that were judged harmless")
	flag.IntVar(&c.most, "most", 150, "at most so many tests of a package for a fault, those that reach fewest faults first")
	flag.IntVar(&c.jobs, "jobs", min(2, runtime.NumCPU()), "faults tried at once")
	flag.DurationVar(&c.limit, "limit", 10*time.Second, "what a fault may take beyond five times what its tests take")
	floor := flag.Int("floor", 0, "fail when a lower share is noticed, in percent")
	flag.StringVar(&c.dir, "dir", "", "keep what was built here")
	flag.Parse()
	c.w, c.packages, c.tests, c.kinds = os.Stdout, trimmed(flag.Args()), trimmed(strings.Fields(*tests)), strings.Fields(*kinds)
	if len(c.packages) == 0 {
		fmt.Fprintln(os.Stderr, "mutate: which packages? want mutate [flags] PACKAGE...")
		os.Exit(2)
	}
	share, err := c.run(context.Background())
	if err == nil && share < *floor {
		err = fmt.Errorf("%d %% noticed, want %d %%: test the survivors above, or say in %s why they are harmless", share, *floor, c.harmless)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// trimmed names packages by their folder: session, proxy/body.
func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = filepath.ToSlash(filepath.Clean(n))
	}
	return out
}

// campaign is one run of the program.
type campaign struct {
	w               io.Writer
	seed            uint64
	n, most, jobs   int
	packages, tests []string
	kinds           []string
	only, harmless  string
	limit           time.Duration
	dir             string
	root, module    string
	named           map[string]int // faults of a package that the list calls harmless
}

// run returns the share that was noticed, in percent.
func (c *campaign) run(ctx context.Context) (int, error) {
	var err error
	if c.root, c.module, err = moduleRoot(); err != nil {
		return 0, err
	}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "mutate-"); err != nil {
			return 0, err
		}
		defer func() { _ = os.RemoveAll(c.dir) }()
	} else if c.dir, err = filepath.Abs(c.dir); err != nil {
		return 0, err
	}
	judged, err := readHarmless(c.harmless)
	if err != nil {
		return 0, err
	}
	l, err := newLoader(c.root, c.module, c.packages)
	if err != nil {
		return 0, err
	}
	var faults []*fault
	overlay := map[string]string{}
	c.named = map[string]int{}
	for i, name := range c.packages {
		p, err := l.load(name)
		if err != nil {
			return 0, err
		}
		found := p.sites()
		judged.stale(c.w, name, found)
		for _, f := range found {
			if judged[f.String()] != "" {
				c.named[name]++
			}
		}
		drawn := draw(c.seed, name, c.wanted(found, judged), (c.n+i)/len(c.packages))
		for j, f := range drawn {
			f.id = len(faults) + j + 1
		}
		if drawn, err = p.plant(drawn, c.dir, overlay, l); err != nil {
			return 0, err
		}
		faults = append(faults, drawn...)
	}
	if err := c.play(ctx, l, faults, overlay); err != nil {
		return 0, err
	}
	return c.report(faults), nil
}

// wanted are the faults to draw from.
func (c *campaign) wanted(all []*fault, judged harmless) []*fault {
	return slices.DeleteFunc(slices.Clone(all), func(f *fault) bool {
		return judged[f.String()] != "" || len(c.kinds) > 0 && !slices.Contains(c.kinds, f.kind) || !strings.Contains(f.String(), c.only)
	})
}

// report prints what became of each fault, by package and by kind, and returns the share that was noticed.
func (c *campaign) report(faults []*fault) int {
	for _, name := range c.packages {
		var t tally
		for _, f := range faults {
			if f.pkg != name {
				continue
			}
			if t.add(f); f.killer == "" {
				say(c.w, "survived\t%s\t%s, %d tests reach it\n", f, f.place, f.reached)
			}
		}
		say(c.w, "%s\t%s, %d more named harmless\n", name, t, c.named[name])
	}
	var all tally
	kinds := map[string]*tally{}
	for _, f := range faults {
		all.add(f)
		if kinds[f.kind] == nil {
			kinds[f.kind] = &tally{}
		}
		kinds[f.kind].add(f)
	}
	for _, k := range allKinds {
		if kinds[k] != nil {
			say(c.w, "%s\t%s\n", k, *kinds[k])
		}
	}
	share := 100
	if all.planted > 0 {
		share = all.noticed * 100 / all.planted
	}
	say(c.w, "all\t%s (%d %%), seed %d\n", all, share, c.seed)
	return share
}

// tally counts faults. One that only made its tests too slow is noticed, but a slow machine may say so of any.
type tally struct{ planted, noticed, late int }

func (t *tally) add(f *fault) {
	t.planted++
	if f.killer != "" {
		t.noticed++
	}
	if strings.HasSuffix(f.killer, late) {
		t.late++
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%d planted, %d noticed (%d by the limit of time), %d survived", t.planted, t.noticed, t.late, t.planted-t.noticed)
}

// say prints a line; who reads it went away if that fails.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

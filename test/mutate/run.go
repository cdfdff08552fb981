package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is the compiled tests of a package, with all faults in them.
type suite struct {
	name, bin, dir string
	tests          []*test
}

// test is one of them.
type test struct {
	name  string
	took  time.Duration
	reach map[int]bool // ids of faults
}

// play tries the faults under the own tests of their packages, and what survives under those of the others, in turn.
func (c *campaign) play(ctx context.Context, l *loader, faults []*fault, overlay map[string]string) error {
	path := filepath.Join(c.dir, "overlay.json")
	if err := writeOverlay(path, overlay); err != nil {
		return err
	}
	for _, name := range c.order() {
		needs, err := l.needs(name)
		if err != nil {
			return err
		}
		var left []*fault
		for _, f := range faults {
			if f.killer == "" && (f.pkg == name || slices.Contains(c.tests, name) && slices.Contains(needs, f.pkg)) {
				left = append(left, f)
			}
		}
		if len(left) == 0 {
			continue
		}
		if err := c.under(ctx, name, path, left); err != nil {
			return err
		}
	}
	return nil
}

// order is that of the packages whose tests are run: those that stand for themselves first.
func (c *campaign) order() []string {
	own := slices.DeleteFunc(slices.Clone(c.packages), func(n string) bool { return slices.Contains(c.tests, n) })
	return slices.Concat(own, c.tests)
}

// under tries faults under the tests of one package.
func (c *campaign) under(ctx context.Context, name, overlay string, faults []*fault) error {
	s := &suite{name: name, dir: filepath.Join(c.root, name), bin: filepath.Join(c.dir, strings.ReplaceAll(name, "/", "_")+".test")}
	began := time.Now()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", s.bin, "./"+name)
	build.Dir = c.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c ./%s with its faults: %w\n%s", name, err, out)
	}
	if _, err := os.Stat(s.bin); errors.Is(err, fs.ErrNotExist) {
		return nil // it has no tests
	}
	if err := c.measure(ctx, s); err != nil {
		return err
	}
	say(c.w, "tests of %s\t%d faults to try, %d tests, ready after %.0f s\n", name, len(faults), len(s.tests), time.Since(began).Seconds())
	c.each(len(faults), func(i int) {
		f := faults[i]
		tests := s.reaching(f.id)
		f.reached += len(tests)
		f.killer = c.try(ctx, s, f, tests[:min(len(tests), c.most)])
		if f.killer != "" {
			say(c.w, "noticed\t%s\t%s, by %s\n", f, f.place, f.killer)
		}
	})
	return nil
}

// each runs a function for the numbers below n, so many at once as may be.
func (c *campaign) each(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(1, c.jobs) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// measure runs each test alone without a fault: how long it takes, and which faults it reaches. One that fails already
// says nothing of a fault.
func (c *campaign) measure(ctx context.Context, s *suite) error {
	list := exec.CommandContext(ctx, s.bin, "-test.list", ".")
	list.Dir = s.dir
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", s.name, err)
	}
	var names []string
	for _, n := range strings.Fields(string(out)) {
		if strings.HasPrefix(n, "Test") || strings.HasPrefix(n, "Fuzz") || strings.HasPrefix(n, "Example") {
			names = append(names, n)
		}
	}
	tests := make([]*test, len(names))
	c.each(len(names), func(i int) {
		t := &test{name: names[i], reach: map[int]bool{}}
		reach := filepath.Join(c.dir, "reach-"+strings.ReplaceAll(s.name, "/", "_")+"-"+names[i])
		began := time.Now()
		out, err := s.play(ctx, 5*time.Minute, []*test{t}, "TIDEMARK_MUTANT_REACH="+reach)
		t.took = time.Since(began)
		if err != nil {
			say(c.w, "left out, it fails without a fault\t%s.%s\t%s\n", s.name, names[i], shortened(string(out)))
			return
		}
		b, _ := os.ReadFile(reach) // there is none of a test that reaches nothing
		for _, id := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(id); err == nil {
				t.reach[n] = true
			}
		}
		tests[i] = t
	})
	s.tests = slices.DeleteFunc(tests, func(t *test) bool { return t == nil })
	return ctx.Err()
}

// reaching lists the tests that reach a fault, those first that reach few others.
func (s *suite) reaching(id int) []*test {
	tests := slices.DeleteFunc(slices.Clone(s.tests), func(t *test) bool { return !t.reach[id] })
	slices.SortStableFunc(tests, func(a, b *test) int {
		return cmp.Or(cmp.Compare(len(a.reach), len(b.reach)), cmp.Compare(a.took, b.took))
	})
	return tests
}

// narrow is how many tests are tried before all of the others.
const narrow = 6

// try runs tests with a fault on, and says what noticed it: the name of a test, or nothing.
func (c *campaign) try(ctx context.Context, s *suite, f *fault, tests []*test) string {
	for _, group := range [][]*test{tests[:min(narrow, len(tests))], tests[min(narrow, len(tests)):]} {
		if len(group) == 0 {
			continue
		}
		limit := c.limit
		for _, t := range group {
			limit += 5 * t.took
		}
		out, err := s.play(ctx, limit, group, "TIDEMARK_MUTANT="+strconv.Itoa(f.id))
		if err != nil {
			return s.name + "." + noticer(out, err)
		}
	}
	return ""
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// late is what notices a fault whose tests do not end.
const late = "the limit of time"

// noticer is the test that failed, as far as the output tells.
func noticer(out []byte, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return late
	}
	if m := failed.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	if bytes.Contains(out, []byte("panic: ")) {
		return "a panic"
	}
	return "its end: " + shortened(string(out))
}

// play runs tests in a process of its own, in the folder of the package. A fault may eat memory without end, so there
// is a bound where the shell knows one.
func (s *suite) play(ctx context.Context, limit time.Duration, tests []*test, env string) ([]byte, error) {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	tmp, err := os.MkdirTemp("", "mutate-run-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v 12000000 2>/dev/null; exec "$@"`, "sh",
		s.bin, "-test.short", "-test.failfast", "-test.count=1", "-test.timeout=0", "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir, cmd.WaitDelay = s.dir, time.Second
	cmd.Env = append(os.Environ(), env, "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, err
}

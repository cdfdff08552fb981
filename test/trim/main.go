// Command trim measures `tidemark trim` beside `grep -c` and the known implementation of CMV, over the same made
// logs, in turn. Nothing of the other program is in this repository. Begin with README.md, which says how.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidemark-ai/tidemark/trim/logtest"
)

func main() {
	c := comparison{w: os.Stdout}
	flag.IntVar(&c.rounds, "rounds", 5, "rounds in which each runs once")
	flag.StringVar(&c.peer, "peer", "", "checkout of the other program, built")
	sizes := flag.String("mb", "10,100", "lengths of the logs")
	flag.IntVar(&c.line, "line", 0, "also a log with one line of so many MB")
	flag.Parse()
	c.bin, c.logs = flag.Arg(0), flag.Args()[min(1, flag.NArg()):]
	if err := c.run(strings.Split(*sizes, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

// comparison is one of several programs.
type comparison struct {
	w              io.Writer
	rounds, line   int
	bin, peer, dir string
	logs           []string // given ones, instead of made ones
}

const mega = 1_000_000

func (c *comparison) run(sizes []string) error {
	if c.bin == "" {
		return errors.New("which binary? want trim [flags] BINARY [LOG...]")
	}
	dir, err := os.MkdirTemp("", "trim-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c.dir = dir
	if len(c.logs) == 0 {
		if err := c.make(sizes); err != nil {
			return err
		}
	}
	for _, log := range c.logs {
		if err := c.compare(log); err != nil {
			return err
		}
	}
	return nil
}

// make writes the logs: of each length one without a compaction and one with three, and one with a long line.
func (c *comparison) make(sizes []string) error {
	for _, size := range sizes {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n <= 0 {
			return fmt.Errorf("-mb %q: want numbers over 0, with commas between them", size)
		}
		for name, compactions := range map[string]int{"s" + size + "n": 0, "s" + size: 3} {
			err := c.write(name, func(w io.Writer) error {
				return logtest.Write(w, logtest.Options{Seed: 1, Bytes: n * mega, Compactions: compactions})
			})
			if err != nil {
				return err
			}
		}
	}
	slices.Sort(c.logs)
	if c.line == 0 {
		return nil
	}
	return c.write(fmt.Sprintf("line%d", c.line), c.long)
}

func (c *comparison) write(name string, write func(io.Writer) error) error {
	path := filepath.Join(c.dir, name+".jsonl")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	c.logs = append(c.logs, path)
	return errors.Join(write(f), f.Close())
}

// long writes a log with one long line: a picture that a tool gave.
func (c *comparison) long(w io.Writer) error {
	b := lines{bufio.NewWriter(w)}
	b.add(`{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"look"}}` + "\n" +
		`{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"x.png"}}]}}` + "\n" +
		`{"type":"user","uuid":"r1","parentUuid":"a1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`)
	piece := strings.Repeat("iVBORw0KGgo+AAAA", 1<<10)
	for n := 0; n < c.line*mega; n += len(piece) {
		b.add(piece)
	}
	b.add(`"}}]}]}}` + "\n" + `{"type":"assistant","uuid":"a2","parentUuid":"r1","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"seen"}]}}` + "\n")
	return b.Flush()
}

// lines keeps an error until it is flushed.
type lines struct{ *bufio.Writer }

func (l lines) add(s string) { _, _ = l.WriteString(s) }

// figures are what the runs of one program took.
type figures struct {
	walls, cpus []time.Duration
	rss         int64 // bytes, the most of all
	failed      error
}

// compare runs all programs over one log, each once in each round.
func (c *comparison) compare(log string) error {
	info, err := os.Stat(log)
	if err != nil {
		return err
	}
	out := filepath.Join(c.dir, "out")
	ways := []struct {
		name string
		args []string
	}{
		{"grep -c", []string{"grep", "-c", "tool_use", log}},
		{"tidemark trim", []string{c.bin, "trim", log, "-o", out, "--force"}},
		{"  --no-cuts", []string{c.bin, "trim", log, "-o", out, "--no-cuts", "--force"}},
	}
	if c.peer != "" {
		ways = append(ways, struct {
			name string
			args []string
		}{"known program", []string{"node", "test/trim/peer.mjs", c.peer, log, out + ".peer"}})
	}
	got := make([]figures, len(ways))
	for range c.rounds {
		for i, w := range ways {
			got[i].once(w.args)
		}
	}
	say(c.w, "%s, %.1f MB, best and median of %d\n", strings.TrimSuffix(filepath.Base(log), ".jsonl"), float64(info.Size())/mega, c.rounds)
	t := tabwriter.NewWriter(c.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	say(t, "\tms\tmedian\tMB/s\tx grep\tCPU ms\tMiB\t\n")
	for i, w := range ways {
		got[i].row(t, w.name, info.Size(), got[0])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return c.undo(out, log)
}

// once runs a program.
func (f *figures) once(args []string) {
	cmd := exec.Command(args[0], args[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said // grep stops at once when nobody reads what it counts
	from := time.Now()
	err := cmd.Run()
	f.walls = append(f.walls, time.Since(from))
	if cmd.ProcessState == nil || !cmd.ProcessState.Success() {
		f.failed = fmt.Errorf("%w: %.200s", err, said.String())
		return
	}
	f.cpus = append(f.cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	f.rss = max(f.rss, peak(cmd.ProcessState))
}

// say prints. A reader who has gone needs no figures.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// peak returns the most memory that a process had, in bytes; 0 where the system does not tell.
func peak(p *os.ProcessState) int64 {
	v := reflect.Indirect(reflect.ValueOf(p.SysUsage())) // another type on each system
	if v.Kind() != reflect.Struct || !v.FieldByName("Maxrss").IsValid() {
		return 0
	}
	return v.FieldByName("Maxrss").Int() << 10 // of Linux, in KiB
}

func (f *figures) row(w io.Writer, name string, size int64, grep figures) {
	if f.failed != nil {
		say(w, "%s\tfailed\t\t\t\t\t\t\n", name)
		return
	}
	best, ms := slices.Min(f.walls), func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	slices.Sort(f.walls)
	say(w, "%s\t%.0f\t%.0f\t%.0f\t%.1f\t%.0f\t%.0f\t\n", name, ms(best), ms(f.walls[len(f.walls)/2]),
		float64(size)/mega/best.Seconds(), float64(best)/float64(slices.Min(grep.walls)), ms(slices.Min(f.cpus)), float64(f.rss)/(1<<20))
}

// undo holds that the last trim with cuts can be undone.
func (c *comparison) undo(out, log string) error {
	for _, args := range [][]string{
		{c.bin, "trim", log, "-o", out, "--force"}, {c.bin, "untrim", out, "-o", out + ".back", "--force"}, {"cmp", out + ".back", log},
	} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said)
		}
	}
	cuts, err := os.Stat(out + ".cuts")
	if err != nil {
		return err
	}
	small, err := os.Stat(out)
	if err != nil {
		return err
	}
	say(c.w, "to %.1f MB and cuts of %.1f MB, which give the log again\n\n", float64(small.Size())/mega, float64(cuts.Size())/mega)
	return nil
}

// Command paging runs the known implementation of Pichay beside `tidemark replay`, over the same made sessions,
// in turn. Nothing of the other program is in this repository. Begin with README.md, which says how.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

func main() {
	c := comparison{}
	flag.IntVar(&c.sessions, "sessions", 8, "sessions, of the kinds of paging.Profile in turn")
	flag.IntVar(&c.requests, "requests", 100, "requests of a session")
	flag.IntVar(&c.bytes, "bytes", 6000, "bytes of a result, about")
	flag.IntVar(&c.rounds, "rounds", 3, "rounds in which each runs once")
	flag.StringVar(&c.python, "python", "python3", "Python of the other program")
	flag.StringVar(&c.policy, "policy", "fifo", "policy of ours")
	flag.StringVar(&c.alone, "alone", "", "run ours alone, in memory, over sessions of this kind")
	flag.StringVar(&c.all, "read", "", "run ours alone, over the sessions of this file")
	modes := flag.String("modes", "replay,proxy,store", "parts of the other program to run")
	flag.Parse()
	c.modes, c.peer = strings.Split(*modes, ","), flag.Arg(0)
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "paging:", err)
		os.Exit(1)
	}
}

// comparison is one of two programs.
type comparison struct {
	sessions, requests, bytes, rounds int
	python, peer, dir, all            string
	policy, alone                     string
	modes, logs                       []string
	lines                             []byte // the sessions
}

// figures are what a run did: seconds of the processor, of whole processes for replay, of the work in memory for the
// others. Time on the clock would tell what else the machine does.
type figures struct {
	Seconds   float64 `json:"seconds"`
	Evictions int     `json:"evictions"`
	GC        int     `json:"gc"`
	Faults    int     `json:"faults"`
}

func (c *comparison) check() error {
	if info, err := os.Stat(filepath.Join(c.peer, "src", "pichay", "pager.py")); c.peer == "" || err != nil || info.IsDir() {
		return errors.New("want the path of a checkout of fsgeek/pichay, which has src/pichay/pager.py")
	}
	for _, m := range c.modes {
		if !slices.Contains([]string{"replay", "proxy", "store"}, m) {
			return fmt.Errorf("-modes %s: want some of replay,proxy,store", m)
		}
	}
	if c.sessions < 1 || c.requests < 2 || c.bytes < 100 || c.rounds < 1 {
		return errors.New("want at least 1 session, 2 requests, 100 bytes and 1 round")
	}
	return nil
}

func (c *comparison) run() (err error) {
	if c.alone != "" {
		for i := range c.sessions {
			c.lines = append(c.lines, append(paging.Profile(c.alone, c.requests, c.bytes+i), '\n')...)
		}
		_, err := c.inMemory()
		return err
	}
	if c.all != "" {
		if c.lines, err = os.ReadFile(c.all); err != nil {
			return err
		}
		f, err := c.inMemory()
		if err != nil {
			return err
		}
		out, err := json.Marshal(f)
		_, _ = fmt.Fprintln(os.Stdout, string(out))
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "tidemark-paging-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if out, err := exec.Command("go", "build", "-o", c.dir, "../../cmd/tidemark").CombinedOutput(); err != nil {
		return fmt.Errorf("build tidemark (run this in its own folder): %w\n%s", err, out)
	}
	if err := c.write(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(os.Stdout, "%d sessions x %d requests, results of about %d bytes, %d rounds in turn\n", c.sessions, c.requests, c.bytes, c.rounds)
	_, _ = fmt.Fprintln(os.Stdout, "| part | other, CPU s | tidemark, CPU s | ratio (least to most) | requests/s | tidemark | evicted, gc, faults | tidemark |")
	_, _ = fmt.Fprintln(os.Stdout, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, mode := range c.modes {
		var theirs, ours, ratios []float64
		var their, our figures
		for range c.rounds {
			if their, err = c.other(mode); err != nil {
				return err
			}
			if our, err = c.ours(mode); err != nil {
				return err
			}
			theirs, ours, ratios = append(theirs, their.Seconds), append(ours, our.Seconds), append(ratios, their.Seconds/our.Seconds)
		}
		all := float64(c.sessions * c.requests)
		_, _ = fmt.Fprintf(os.Stdout, "| %s | %.3g | %.3g | %.0f (%.0f to %.0f) | %.0f | %.0f | %d, %d, %d | %d, %d, %d |\n", mode, median(theirs), median(ours),
			median(ratios), slices.Min(ratios), slices.Max(ratios), all/median(theirs), all/median(ours),
			their.Evictions, their.GC, their.Faults, our.Evictions, our.GC, our.Faults)
	}
	return nil
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// write makes the sessions: all in one file for ours, and what proxy logs of them would be for the other's replay, which
// holds each request as a whole.
func (c *comparison) write() error {
	c.all = filepath.Join(c.dir, "sessions.jsonl")
	var all bytes.Buffer
	for i := range c.sessions {
		kinds := paging.Profiles()
		line := paging.Profile(kinds[i%len(kinds)], c.requests, c.bytes+i) // no two alike
		all.Write(append(line, '\n'))
		if !slices.Contains(c.modes, "replay") {
			continue
		}
		log, err := proxyLog(line)
		if err != nil {
			return err
		}
		name := filepath.Join(c.dir, "log"+strconv.Itoa(i)+".jsonl")
		if err := os.WriteFile(name, log, 0o600); err != nil {
			return err
		}
		c.logs = append(c.logs, name)
	}
	// The other program imports a client of HTTP that its replay never calls: an empty module stands for it.
	if err := os.WriteFile(filepath.Join(c.dir, "httpx.py"), nil, 0o600); err != nil {
		return err
	}
	c.lines = all.Bytes()
	return os.WriteFile(c.all, c.lines, 0o600)
}

// proxyLog writes a session as a log of requests.
func proxyLog(line []byte) ([]byte, error) {
	var s struct {
		Steps []struct{ Append []json.RawMessage }
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	var history []json.RawMessage
	for _, st := range s.Steps {
		history = append(history, st.Append...)
		out.WriteString(`{"type":"request","timestamp":"","messages_full":[`)
		out.Write(bytes.Join(raw(history), []byte(",")))
		out.WriteString("]}\n")
	}
	return out.Bytes(), nil
}

func raw(of []json.RawMessage) (out [][]byte) {
	for _, r := range of {
		out = append(out, r)
	}
	return out
}

// other runs a part of the other program.
func (c *comparison) other(mode string) (f figures, err error) {
	args := []string{"peer.py", mode, c.all}
	if mode == "replay" {
		args = append([]string{"-m", "pichay.replay", "--json"}, c.logs...)
	}
	cmd := exec.Command(c.python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(c.peer, "src")+string(os.PathListSeparator)+c.dir, "PYTHONDONTWRITEBYTECODE=1")
	out, seconds, err := timed(cmd)
	if err != nil || mode != "replay" {
		return f, errors.Join(err, json.Unmarshal(out, &f))
	}
	for line := range bytes.Lines(out) {
		var s struct {
			Type      string `json:"type"`
			Evictions int    `json:"total_evictions"`
			Faults    int    `json:"total_faults"`
		}
		if err := json.Unmarshal(line, &s); err != nil {
			return f, err
		}
		if s.Type == "" { // one session
			f.Evictions, f.Faults = f.Evictions+s.Evictions, f.Faults+s.Faults
		}
	}
	f.Seconds = seconds
	return f, nil
}

// ours runs ours beside a part of the other: from its start to its end beside replay, else a process that only reads
// the JSON and decides; its start and the reading are not counted of the other.
func (c *comparison) ours(mode string) (f figures, err error) {
	program, err := os.Executable()
	if err != nil {
		return f, err
	}
	cmd := exec.Command(program, "-policy", c.policy, "-read", c.all)
	if mode == "replay" {
		cmd = exec.Command(filepath.Join(c.dir, "tidemark"), "replay", c.all, "--policy", c.policy, "--tau", "4", "--min-bytes", "500", "--json")
	}
	out, seconds, err := timed(cmd)
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	f.Seconds = seconds
	return f, err
}

// inMemory decides about the sessions in memory.
func (c *comparison) inMemory() (f figures, err error) {
	scanner, r := paging.Scanner{Tools: paging.DefaultTools()}, paging.Replay{Options: paging.Options{Policy: c.policy}}
	for line := range bytes.Lines(c.lines) {
		s, err := scanner.Session(line)
		if err == nil {
			err = r.Run(s)
		}
		if err != nil {
			return f, err
		}
	}
	t := r.Totals
	return figures{Evictions: t.Evictions, GC: t.GC, Faults: t.Faults}, nil
}

// timed runs a command and says how many seconds of the processor it took.
func timed(cmd *exec.Cmd) ([]byte, float64, error) {
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return out, 0, fmt.Errorf("%s: %w\n%s", cmd.Path, err, told.Bytes())
	}
	return out, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

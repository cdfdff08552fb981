package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
	"github.com/tidemark-ai/tidemark/trim"
)

// Zoned says how full the window of a model is.
type Zoned struct {
	Window int64 // tokens, 0 for none
	Zones  []int // percent of it
}

// Recorded reads recorded sessions.
type Recorded struct {
	MaxLine int64
	Chain   transcript.Chain // of a log
	Damaged int              // lines of a log that could not be read
	Scanner paging.Scanner
	Names   map[string]string // of sessions, by the file of their log
}

// LogSession reads a log of Claude Code as a session: all that stands before a reply was a request. A compaction
// began a new history. read, which may be nil, sees each message with the request that it was first part of.
func (r *Recorded) LogSession(name string, f io.Reader, read func(it transcript.Item, request int)) (paging.Session, error) {
	s := paging.Session{ID: cmp.Or(r.Names[filepath.Clean(name)], name), Whole: true}
	if at, ok := f.(io.Seeker); ok {
		if _, err := at.Seek(0, io.SeekStart); err != nil {
			return s, err
		}
	}
	var st paging.Step
	for it, err := range transcript.Messages(f, transcript.Options{Chain: r.Chain}) {
		var bad *transcript.LineError
		if errors.As(err, &bad) {
			r.Damaged++ // one line of many that cannot be read
			continue
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		if it.Boundary {
			st = paging.Step{Cut: true}
		}
		if it.Message.Role == tidemark.Assistant && asks(st) {
			st.Usage = it.Usage
			s.Steps = append(s.Steps, st)
			st = paging.Step{}
		}
		m, err := r.Scanner.Of(it.Message)
		if err != nil {
			return s, fmt.Errorf("%s line %d: %w", name, it.Lines[0], err)
		}
		st.Append = append(st.Append, m)
		if read != nil {
			read(it, len(s.Steps))
		}
	}
	if asks(st) {
		s.Steps = append(s.Steps, st)
	}
	return s, nil
}

// IsLog reports whether a first line is one of a log of Claude Code and no session of replay.
func IsLog(line []byte) bool {
	var l struct {
		Type  string          `json:"type"`
		Steps json.RawMessage `json:"steps"`
	}
	return json.Unmarshal(line, &l) == nil && l.Type != "" && l.Steps == nil
}

// SessionNames names the sessions of logs: a log's file name without its end, as Claude Code names it by the
// session. Of different files with one name as many folders stand before it as tell them apart.
func SessionNames(files []string) map[string]string {
	names, parts := map[string]string{}, map[string]int{} // by file; how many parts of its path
	for _, file := range files {
		parts[filepath.Clean(file)] = 1
	}
	for again := true; again; {
		again = false
		users := map[string]int{}
		for file, n := range parts {
			names[file] = lastParts(file, n)
			users[names[file]]++
		}
		for file, n := range parts {
			if users[names[file]] > 1 && n <= strings.Count(file, "/") {
				parts[file], again = n+1, true
			}
		}
	}
	users := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(names)) {
		if users[names[file]] || names[file] == "" { // other in the extension only
			names[file] = file
		}
		users[names[file]] = true
	}
	return names
}

// lastParts is the end of a path, n parts of it, without the extension.
func lastParts(file string, n int) string {
	file = strings.TrimSuffix(filepath.ToSlash(file), filepath.Ext(file))
	at := len(file)
	for ; n > 0 && at >= 0; n-- {
		at = strings.LastIndexByte(file[:at], '/')
	}
	return file[at+1:]
}

// asks reports whether a step ends with a message that a model answers.
func asks(s paging.Step) bool {
	n := len(s.Append)
	return n > 0 && s.Append[n-1].Role == tidemark.User
}

// Line reads a line without its end; io.EOF behind the last.
func (r *Recorded) Line(in *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if int64(len(long)+len(part)) > r.MaxLine {
			return nil, Advise(fmt.Errorf("the line has more than %d bytes: %w", r.MaxLine, tidemark.ErrTooLarge),
				"give one session a line, or raise --max-line")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if long != nil {
			part = append(long, part...)
		}
		if errors.Is(err, io.EOF) && len(part) > 0 {
			err = nil
		}
		return part, err
	}
}

// ReadTools is the table of tools with the rows of a file, "" for none.
func ReadTools(name string) (paging.Tools, error) {
	if name == "" {
		return paging.DefaultTools(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxTools+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTools {
		return nil, fmt.Errorf("%s has more than %d bytes: want a table of tools: %w", name, maxTools, tidemark.ErrTooLarge)
	}
	rows, err := paging.ReadTools(data)
	if err != nil {
		return nil, Advise(fmt.Errorf("%s: %w", name, err), "correct the tool that is named; `tidemark replay --help` shows the form")
	}
	return paging.DefaultTools().With(rows), nil
}

// maxTools bounds the bytes of a file of tools.
const maxTools = 1 << 20

// Percents are the zones; they have been checked.
func (r *Zoned) Percents() paging.Zones {
	return paging.Zones{Advisory: r.Zones[0], Involuntary: r.Zones[1], Aggressive: r.Zones[2]}
}

// Options are those of a policy, as flags have them: 0 is a value there.
func (r *Zoned) Options(policy string, tau, minBytes int) paging.Options {
	none := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return paging.Options{Policy: policy, Tau: none(tau), MinBytes: none(minBytes), Window: tidemark.Tokens(r.Window), Zones: r.Percents()}
}

// CheckZones refuses zones that are none, and windows for policies that know none.
func (r *Zoned) CheckZones(policies []string) error {
	d := paging.DefaultZones
	switch {
	case r.Window < 0:
		return Usagef("--window %d: want a number of tokens, such as 200000", r.Window)
	case len(r.Zones) != 3:
		return Usagef("--zones: %d numbers: want three percents of the window, such as %d,%d,%d", len(r.Zones), d.Advisory, d.Involuntary, d.Aggressive)
	case r.Percents() == paging.Zones{}:
		return Usagef("--zones: want three percents of the window, such as %d,%d,%d", d.Advisory, d.Involuntary, d.Aggressive)
	}
	if err := r.Percents().Valid(); err != nil {
		return Usagef("--zones: %v", err)
	}
	for _, name := range paging.Bounds() {
		if r.Window > 0 && slices.Contains(policies, name) {
			return Usagef("--policy %s: a bound knows no zones: leave out --window", name)
		}
	}
	return nil
}

// ErrNoWindow refuses zones of nothing.
var ErrNoWindow = Usagef("--zones are percents of a window: give --window")

// Costing is the command of that name.
type Costing struct {
	Model, HitRate, Prices string
	Tokens                 int64
	Reduction              string
	Threshold              int
	Claude, Session        string
	AllProjects            bool

	O     costlogs.Options
	Given *float64 // --reduction
}

// Options reads the flags.
func (c *Costing) Options(changed func(string) bool) error {
	h, err := strconv.ParseFloat(c.HitRate, 64)
	if err != nil || !(h >= 0 && h <= 1) {
		return Usagef("--hit-rate %s: want a share from 0 to 1, such as 0.9", c.HitRate)
	}
	if changed("threshold") && c.Threshold <= 0 {
		return Usagef("--threshold %d: want a number of characters, such as %d", c.Threshold, trim.DefaultThreshold)
	}
	if changed("tokens") && c.Tokens <= 0 {
		return Usagef("--tokens %d: want the size of a context, such as 84000", c.Tokens)
	}
	if c.Reduction != "" {
		p, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(c.Reduction), "%"), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return Usagef("--reduction %s: want percent, from 0 to 100, such as 39", c.Reduction)
		}
		c.Given = &p
	}
	c.O = costlogs.Options{Prices: cost.DefaultPrices(), Trim: trim.Options{Threshold: c.Threshold}, Now: time.Now(), Given: changed("hit-rate")}
	if c.Prices != "" {
		if c.O.Prices, err = readPrices(c.Prices); err != nil {
			return Advise(fmt.Errorf("--prices: %w", err), "give a table as docs/cost.md shows one: date, source and models")
		}
	}
	price, err := c.O.Prices.Find(c.Model)
	if err != nil {
		return Usagef("--model %s: no price for it; known are %s, and the ids of such models; --prices FILE gives others", c.Model, strings.Join(c.O.Prices.Names(), ", "))
	}
	c.O.Model = cost.Model{Price: price, HitRate: h}
	return c.O.Model.Check()
}

// readPrices reads a table of prices.
func readPrices(file string) (cost.Prices, error) {
	const most = 1 << 20
	if err := NoPipe(file); err != nil {
		return cost.Prices{}, err
	}
	raw, err := ReadUpTo(file, most+1)
	if err == nil && len(raw) > most {
		err = fmt.Errorf("read %s: more than %s: %w", file, Size(most), tidemark.ErrTooLarge)
	}
	if err != nil {
		return cost.Prices{}, err
	}
	return cost.ParsePrices(raw)
}

// MeasureFile measures the log that a file holds now; what is appended meanwhile is left out.
func MeasureFile(ctx context.Context, path string, o costlogs.Options) (costlogs.Report, error) {
	f, size, err := OpenLog(path)
	if err != nil {
		return costlogs.Report{}, err
	}
	defer func() { _ = f.Close() }()
	r, err := costlogs.Measure(ctx, f, size, o)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.AllMessages.Messages() == 0 {
		return r, Advise(fmt.Errorf("no message stands in %s: %w", path, tidemark.ErrInvalid), "give a session log of Claude Code; a subagent's own is none")
	}
	return r, nil
}

// OpenLog opens a log, and refuses what is none.
func OpenLog(path string) (*os.File, int64, error) {
	if err := NoPipe(path); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = Advise(fmt.Errorf("%s is no file: %w", path, tidemark.ErrInvalid), "give a log (.jsonl)")
	}
	head := make([]byte, len(Packed))
	if n, _ := f.ReadAt(head, 0); err == nil && string(head[:n]) == Packed {
		err = fmt.Errorf("%s is packed (gzip), unpack it first: %w", path, tidemark.ErrInvalid)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/provider"
)

// Open opens a file, or standard input. size is 0 when it is not known.
func (m *Main) Open(path string) (in io.ReadCloser, size int64, err error) {
	if path == "-" {
		return io.NopCloser(m.Stdin), 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, want a file", path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// ShowProgress shows how far long work is, when a person sees it.
func (m *Main) ShowProgress(data []byte, read, size int64) error {
	var p struct {
		Done, Total int
		Key         string
	}
	if err := json.Unmarshal(data, &p); err != nil || !m.Progress {
		return err
	}
	text := fmt.Sprintf("%d messages", p.Done)
	if p.Total > 0 {
		text = fmt.Sprintf("%d of %d archives", p.Done, p.Total)
	} else if size > 0 {
		const percent = 100
		text += fmt.Sprintf(", %d%% of %s read", read*percent/size, Size(size))
	}
	m.Err.Printf("\r\x1b[K%s", text)
	return nil
}

// ProgressEnd takes away what showed how far long work is.
func (m *Main) ProgressEnd() {
	if m.Progress {
		m.Err.Put("\r\x1b[K")
	}
}

// Telling shows on a terminal how far long work is, nil where nobody looks.
func (m *Main) Telling() func(what string, done, of int) {
	if !m.Progress {
		return nil
	}
	var last time.Time
	return func(what string, done, of int) {
		const pause = 100 * time.Millisecond
		if time.Since(last) < pause {
			return
		}
		last = time.Now()
		text := strconv.Itoa(done)
		if of > 0 {
			text += " of " + strconv.Itoa(of)
		}
		m.Err.Printf("\r\x1b[K%s %s", text, Safe(what))
	}
}

// ToFile writes a file whole or not at all. What fails names the file that was asked for.
func ToFile(path string, write func(io.Writer) error) error {
	const readable = 0o644
	return place.Write(path, place.Options{Mode: readable, Replace: true}, write)
}

// NoPipe refuses a named pipe: to open one waits for whoever writes it. Those of a shell's <(…) are open already.
func NoPipe(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 || strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
		return nil //nolint:nilerr // who opens it says so
	}
	return Advise(fmt.Errorf("%s is a pipe, want a file", path), "give a file; where standard input is taken, give - and `< "+path+"`")
}

// There reports whether a file is there.
func There(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Spare refuses to write a file that is read, or where none can be, before any work is done.
func Spare(flag, out string, inputs []string) error {
	if out == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(out)); err != nil || !info.IsDir() {
		return Advise(fmt.Errorf("%s %s: there is no folder %s", flag, out, filepath.Dir(out)), "make the folder, or name a file in one that is there")
	}
	info, err := os.Stat(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if info.IsDir() {
		return Advise(fmt.Errorf("%s %s is a folder", flag, out), "name a file")
	}
	for _, in := range inputs {
		if read, err := os.Stat(in); err == nil && os.SameFile(read, info) {
			return Advise(fmt.Errorf("%s %s is read, too", flag, out), "name another file")
		}
	}
	return nil
}

// Logs lists the files that are meant, each once, in order.
func Logs(paths []string) (files []string, err error) {
	seen := map[string]bool{}
	add := func(path string) error {
		if path = filepath.Clean(path); seen[path] {
			return nil
		}
		if seen[path] = true; len(files) == maxLogs {
			return Advise(fmt.Errorf("more than %d logs: %w", maxLogs, tidemark.ErrTooLarge), "give some of the folders at a time")
		}
		files = append(files, path)
		return nil
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, Advise(err, "check the path; logs of Claude Code lie below ~/.claude/projects")
		}
		if !info.IsDir() {
			if err := add(path); err != nil {
				return nil, err
			}
			continue
		}
		err = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(at, ".jsonl") {
				return err
			}
			return add(at)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, Advise(errors.New("no log (.jsonl) below these paths"), "logs of Claude Code lie below ~/.claude/projects")
	}
	return files, nil
}

// UntilInterrupt is ctx up to the first Ctrl-C, for commands that put things in order then. A second one ends the
// process at once: what it waits for may never come.
func UntilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// TitleOf is the name of a session, cut where it is long.
func TitleOf(session string) string {
	return cmp.Or(Shortened(Safe(session), maxTitle), "unnamed")
}

// maxTitle bounds the name of a session, in characters.
const maxTitle = 60

// Packed is how a file begins that gzip packed (RFC 1952, 2.3.1).
const Packed = "\x1f\x8b"

// maxLogs bounds what is found below the folders that are given.
const maxLogs = 100_000

// Shortened is a text on one line, of so many letters.
func Shortened(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// FixedPoint writes a number with so many places.
func FixedPoint(v float64, places int) string { return strconv.FormatFloat(v, 'f', places, 64) }

// InPercent writes a share.
func InPercent(share float64) string { return FixedPoint(100*share, 1) + " %" }

// TurnsOf writes a break-even.
func TurnsOf(n cost.Turns) string {
	switch n {
	case cost.Never:
		return "never"
	case 1:
		return "turn 1"
	}
	return "turn " + n.String()
}

// Dollars writes an amount; small ones with more places.
func Dollars(v float64) string {
	const cent, dollar = 0.01, 1
	switch abs := max(v, -v); {
	case abs < cent/2 && abs > 0:
		return fmt.Sprintf("$%.5f", v)
	case abs < dollar:
		return fmt.Sprintf("$%.4f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// PerMillion writes a price.
func PerMillion(v float64) string { return fmt.Sprintf("$%g", v) }

// Writing is a price of writing to the cache, and how long that cache lives.
func Writing(price float64, ttl time.Duration) string {
	return PerMillion(price) + " (" + LongAgo(ttl) + ")"
}

// LongAgo writes a span in its largest unit.
func LongAgo(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return Plural(int(d/day), "day")
	case d >= 2*time.Hour:
		return Plural(int(d/time.Hour), "hour")
	case d == time.Hour:
		return "an hour"
	}
	return Plural(int(d/time.Minute), "minute")
}

// HitRateOf is the live model's hit rate, and where it is from.
func HitRateOf(l costlogs.Live) string {
	hit := InPercent(l.HitRate)
	switch {
	case l.Given:
		return hit + " (given)"
	case !l.Known:
		return hit + " (assumed)"
	}
	return hit
}

// PlainKey is how people write a key: without what every key of their own begins with.
func PlainKey(key string) string {
	if branch, ok := strings.CutPrefix(key, "agent:main:main"); ok && (branch == "" || branch[0] == '#') {
		return "main" + branch
	}
	if rest, ok := strings.CutPrefix(key, "agent:main:local:dm:"); ok {
		return rest
	}
	return key
}

// NeedKey refuses a model that cannot be called for want of a key, or that only Workers have.
func NeedKey(cfg *config.Config) error {
	if cfg.Model.Provider == config.WorkersAI {
		return Advise(errors.New("model.provider: "+provider.NoWorkersAI), provider.WorkersAIByAPI)
	}
	name := cfg.KeyMissing()
	if name == "" {
		return nil
	}
	return Advise(fmt.Errorf("model.provider is %q and %s is not set", cfg.Model.Provider, name), "set "+name+", or model.provider to \"offline\"")
}

// Either prints a value for programs, or else what people see of it.
func Either(m *Main, v any, show func()) error {
	if m.JSON {
		return m.PrintJSON(v)
	}
	show()
	return nil
}

// Rows prints a list as a table, or as it is for programs.
func Rows[T any](m *Main, list []T, head []string, row func(T) []string) error {
	return Either(m, list, func() { Columns(m.Out, list, head, row) })
}

// Columns prints a table with a row for each of a list.
func Columns[T any](w *Output, list []T, head []string, row func(T) []string) {
	rows := [][]string{head}
	for _, one := range list {
		rows = append(rows, row(one))
	}
	PrintTable(w, rows)
}

// Nothing says so when a listing for people is empty.
func Nothing(m *Main, n int, text string) {
	if n == 0 {
		m.Err.Line(text)
	}
}

// Query writes parameters of a request: pairs of name and value.
func Query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}

// Output is where a command prints. It remembers the first failure, which Main.Run reports, so that
// a full disk behind a redirection is no success; a reader that has seen enough (head) is none. Goroutines may write at
// once: each call comes out whole.
type Output struct {
	W io.Writer

	mu  sync.Mutex // guards what is written to w, and the following
	err error
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.W.Write(p)
	if err != nil {
		o.err = fmt.Errorf("write output: %w", err)
	}
	return n, o.err
}

// Printf prints as fmt.Printf does.
func (o *Output) Printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }

// Line prints as fmt.Println does.
func (o *Output) Line(args ...any) { _, _ = fmt.Fprintln(o, args...) }

// Put prints as fmt.Print does.
func (o *Output) Put(args ...any) { _, _ = fmt.Fprint(o, args...) }

// json writes a value on one line.
func (o *Output) json(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error()))
	}
	o.Line(string(raw))
}

// failure is what went wrong with the printing.
func (o *Output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}

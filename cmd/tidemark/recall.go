package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/replay"
	finder "github.com/tidemark-ai/tidemark/room/search"
)

// recalled is what GET …/recall answers, of one conversation or of several.
type recalled struct {
	finder.Recalled
	Unreached []string `json:"unreached"`
	Results   []struct {
		finder.Recollection
		Key string `json:"key"` // of its session, with --scope
	} `json:"results"`
}

// looking is what the command of that name looks for, and where.
type looking struct {
	Session, Since, Until, Scope, Agent, Peer string
	K, Budget                                 int
	All                                       bool
}

// path is the request; within says that the session was named.
func (l looking) path(query string, within bool) string {
	q := url.Values{"q": {query}, "k": {strconv.Itoa(l.K)}, "since": {l.Since}, "until": {l.Until}}
	if l.Budget != 0 { // one below is for the server to refuse
		q.Set("budget", strconv.Itoa(l.Budget))
	}
	if l.All {
		q.Set("all", "true")
	}
	if l.Scope == "session" {
		return cli.SessionPath(l.Session, "/recall?"+q.Encode())
	}
	q.Set("scope", l.Scope)
	q.Set("agent", l.Agent)
	q.Set("peer", l.Peer)
	if within {
		q.Set("session", l.Session)
		q.Del("agent")
	}
	return "/v1/recall?" + q.Encode()
}

// readHandle prints what the handle of a stub stands for. Who has it from a branch may not have named that.
func readHandle(ctx context.Context, m *cli.Main, c *client, key, handle string) error {
	id, _, _ := strings.Cut(handle, "#")
	if strings.TrimSpace(id) == "" || strings.ContainsAny(id, "{}\"/ ") {
		return cli.Usagef("--entry %q: want what stands between the quotes of a stub's recall({\"entry\": \"…\"}), such as 01jx0m2b7k9q#0", cli.OneLine(handle, 80))
	}
	err := showEntry(ctx, m, c, key, handle)
	var answer *cli.APIError
	if errors.As(err, &answer) && answer.Type == "not_found" {
		return cli.Advise(err, "name the session in which the stub stands by --session; `tidemark sessions` lists them")
	}
	return err
}

func printRecalled(m *cli.Main, found recalled, query string) {
	for _, r := range found.Results {
		if r.Key != "" {
			m.Out.Printf("%s  ", r.Key)
		}
		m.Out.Printf("%s  %s  %-9s  %3.0f %%  %s\n", r.ID, cli.When(r.At), r.Role, 100*r.Coverage, shownAround(r.Text, query, m.Terminal))
	}
	if found.Reformulated != "" {
		m.Err.Line("asked again as: " + found.Reformulated)
	}
	if n := len(found.Unreached); n > 0 {
		m.Err.Line("not answered by " + strings.Join(found.Unreached, ", "))
	}
	for _, f := range found.Filtered {
		m.Err.Line("left out, " + f.Reason + ": " + strconv.Itoa(f.Count))
	}
	if found.Hint != "" {
		m.Err.Line(found.Hint)
	}
	m.Err.Line("verdict: " + string(found.Verdict) + ", of " + strconv.Itoa(found.Considered) + " messages that were considered")
}

type recallFlags struct {
	looking
	Entry, Episode string
}

// recallAsked lets a QUERY be left out beside what is read whole.
func recallAsked(m *cli.Main) error {
	for _, whole := range []string{"entry", "episode"} {
		if m.Changed(whole) {
			return readAlone(m, whole)
		}
	}
	if len(m.Args) == 0 {
		return cli.Usagef("%s: want QUERY, got nothing", m.Path())
	}
	return nil
}

func recallCommand(ctx context.Context, m *cli.Main, f *recallFlags) error {
	if m.Changed("episode") {
		return readEpisode(ctx, m, f.Session, f.Episode)
	}
	if m.Changed("entry") {
		return with(ctx, m, func(c *client) error { return readHandle(ctx, m, c, f.Session, f.Entry) })
	}
	if f.Peer != "" && f.Scope != "peer" {
		return cli.Usagef("--peer %s without --scope peer: add it, or leave --peer out", cli.OneLine(f.Peer, 80))
	}
	query := strings.Join(m.Args, " ")
	return look(ctx, m, f.path(query, m.Changed("session")), func(found recalled) { printRecalled(m, found, query) })
}

// shownBytes is how much of a find is printed.
const shownBytes = 300

// Marks of words that were found, on a terminal.
const (
	boldOn  = "\x1b[1m"
	boldOff = "\x1b[22m"
)

// found is a word of a line that a query has, too, by its place.
type found struct{ from, to int }

// shownAround makes a find fit on a line: what stands about the words of the query, which are bold on a terminal.
func shownAround(text, query string, bold bool) string {
	line := cli.OneLine(text, len(text))
	places := wordsOf(line, query)
	from, to := 0, len(line)
	if len(line) > shownBytes {
		from, to = stretch(line, places)
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	at := from
	for _, p := range places {
		if !bold || p.from < from || p.to > to {
			continue
		}
		b.WriteString(line[at:p.from] + boldOn + line[p.from:p.to] + boldOff)
		at = p.to
	}
	b.WriteString(line[at:to])
	if to < len(line) {
		b.WriteString("…")
	}
	return b.String()
}

// wordsOf returns where a line has words of a query, in any form by which recall finds them.
func wordsOf(line, query string) []found {
	stem := &recall.Stemmer{}
	terms := stem.Terms(query)
	var out []found
	for i := 0; i < len(line); {
		end := i + strings.IndexFunc(line[i:], unicode.IsSpace)
		if end < i {
			end = len(line)
		}
		if slices.ContainsFunc(stem.Terms(line[i:end]), func(t string) bool { return slices.Contains(terms, t) }) {
			word := strings.TrimFunc(line[i:end], func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) })
			if word == "" {
				word = line[i:end]
			}
			from := i + strings.Index(line[i:end], word)
			out = append(out, found{from, from + len(word)})
		}
		i = end + 1
	}
	return out
}

// stretch returns the part of a line that has the most of the words, with as much before as behind them.
func stretch(line string, places []found) (from, to int) {
	const before = shownBytes / 4
	most, first, last := 0, 0, 0
	for i, p := range places {
		n := 0
		for n < len(places)-i && places[i+n].to-p.from <= shownBytes-before {
			n++
		}
		if n > most {
			most, first, last = n, p.from, places[i+n-1].to
		}
	}
	if most == 0 {
		return 0, len(cli.Cut(line, shownBytes))
	}
	room := max(0, shownBytes-(last-first)) / 2
	from = max(0, min(first-room, len(line)-shownBytes))
	to = min(len(line), from+shownBytes)
	for from > 0 && line[from-1] != ' ' && from < first { // whole words, and whole characters
		from++
	}
	for to < len(line) && line[to] != ' ' && to > last {
		to--
	}
	return from, max(to, min(last, len(line)))
}

// counter counts what is read through it, and keeps a failure of the reading apart from one of the
// server.
type counter struct {
	io.Reader
	n      atomic.Int64
	broken atomic.Pointer[error]
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		c.broken.Store(&err)
	}
	return n, err
}

// importTries is how often a log is sent whose connection breaks. A server that refuses one in its
// middle closes the connection upon the rest, and its reason may be lost with it.
const importTries = 4

// replayed is what came of an import.
type replayed struct {
	replay.Result
	BadLines int
	Warnings []string
}

// send sends a log, again when the connection breaks: what was read of it before is passed over.
func send(ctx context.Context, m *cli.Main, c *client, path string, in io.Reader, size int64) (replayed, error) {
	file, seekable := in.(io.ReaderAt)
	seekable = seekable && size > 0
	for n := 1; ; n++ {
		if seekable { // an earlier try may still be reading
			in = io.NewSectionReader(file, 0, size)
		}
		read := &counter{Reader: in}
		out, err := sendOnce(ctx, m, c, path, read, size)
		if broken := read.broken.Load(); broken != nil && err != nil && ctx.Err() == nil {
			return out, cli.Advise(fmt.Errorf("read log: %w", *broken), "check the path; what was read before is in the session, and importing again goes on there")
		}
		var told *cli.APIError
		lost := err != nil && !errors.As(err, &told) && ctx.Err() == nil && read.n.Load() > 0
		if lost && seekable && c.local == nil && n < importTries {
			continue
		}
		if lost {
			return out, cli.Advise(err, "import it again: what was read before is in the session, and it goes on there, or says why not")
		}
		return out, err
	}
}

func sendOnce(ctx context.Context, m *cli.Main, c *client, path string, read *counter, size int64) (out replayed, err error) {
	defer m.ProgressEnd()
	err = c.Events(ctx, http.MethodPost, path, read, func(name string, data []byte) error {
		if name == "progress" {
			return m.ShowProgress(data, read.n.Load(), size)
		}
		if name != "done" {
			return nil
		}
		if err := json.Unmarshal(data, &out.Result); err != nil {
			return err
		}
		var more struct {
			BadLines int      `json:"badLines"`
			Warnings []string `json:"warnings"`
		}
		err := json.Unmarshal(data, &more)
		out.BadLines, out.Warnings = more.BadLines, more.Warnings
		return err
	})
	return out, err
}

// playLog sends a log, shows how far it is and prints what came of it.
func playLog(ctx context.Context, m *cli.Main, c *client, path string, in io.Reader, size int64) error {
	out, err := send(ctx, m, c, path, in, size)
	if err != nil {
		return err
	}
	const few = 5 // a person sees what they are like
	for _, w := range out.Warnings[:min(few, len(out.Warnings))] {
		m.Err.Printf("passed over: %s\n", w)
	}
	if out.BadLines > few {
		m.Err.Printf("passed over: %s\n", cli.Plural(out.BadLines-few, "more line"))
	}
	if out.Messages == 0 {
		return cli.Advise(errors.New("no message in this file; is it a Claude Code log?"), "give a log of Claude Code (.jsonl), or an export or archive of Tidemark")
	}
	return cli.Either(m, out.Result, func() {
		cli.PrintTable(m.Out, [][]string{
			{"messages", fmt.Sprint(out.Messages)}, {"entries", fmt.Sprint(out.Entries)}, {"compactions", fmt.Sprint(out.Compactions)},
			{"archived parts", fmt.Sprint(out.ArchivedParts)}, {"context", cli.Towards(out.ContextTokens, 0, out.Window)},
		})
		if out.Skipped > 0 {
			m.Out.Printf("there from an earlier import: %s\n", cli.Plural(out.Skipped, "message"))
		}
	})
}

type importFlags struct {
	Session, Format string
	Window          int64
}

func importLog(ctx context.Context, m *cli.Main, f *importFlags) error {
	if f.Session == "" {
		return cli.Usagef("--session is missing: into which session?")
	}
	narrow, err := ownWindow(m, f.Window)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	in, size, err := m.Open(m.Args[0])
	if err != nil {
		return cli.Advise(fmt.Errorf("read log: %w", err), "check the path; - reads standard input")
	}
	defer in.Close()
	path := cli.SessionPath(f.Session, "/import?format="+f.Format)
	if narrow {
		path += "&window=" + strconv.FormatInt(f.Window, 10)
	}
	return with(ctx, m, func(c *client) error {
		if err := c.ready(); err != nil {
			return err
		}
		return playLog(ctx, m, c, path, in, size)
	})
}

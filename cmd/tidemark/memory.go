package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// memoryPath is the path of a memory file in the API.
func memoryPath(agent, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return cli.AgentPath(agent, "/memory/"+strings.Join(parts, "/"))
}

func memoryLs(ctx context.Context, m *cli.Main, f *ofAgent) error {
	return listed(ctx, m, cli.AgentPath(f.Agent, "/memory"), "files", []string{"FILE", "SIZE", "CHANGED"}, func(f agent.File) []string {
		return []string{f.Path, cli.Size(f.Size), cli.When(f.Modified)}
	})
}

// memoryCat prints a memory file; without a name the newest daily one.
func memoryCat(ctx context.Context, m *cli.Main, c *client, f *ofAgent) error {
	path := strings.Join(m.Args, "")
	if path == "" {
		list, err := pages[agent.File](ctx, c, cli.AgentPath(f.Agent, "/memory"), "files")
		if err != nil {
			return err
		}
		for _, f := range list {
			if dir, name := filepath.Split(f.Path); dir == "memory/" && len(name) == len("2006-01-02.md") {
				path = max(path, f.Path)
			}
		}
		if path == "" {
			m.Err.Line("nothing is remembered yet; memories are written at compaction and at reset")
			return cli.Either(m, nil, func() {})
		}
		if !m.JSON {
			m.Err.Line(m.Dim("agents/" + f.Agent + "/" + path))
		}
	}
	_, day := daily(path)
	path, err := checked(path)
	if err != nil {
		return err
	}
	var text strings.Builder
	var to io.Writer = m.Out
	if m.JSON {
		to = &text
	}
	err = c.Raw(ctx, memoryPath(f.Agent, path), to)
	var api *cli.APIError
	if day != "" && errors.As(err, &api) && api.Type == "not_found" {
		api.Message = "there is no memory file for " + day + ": not found"
	}
	if err != nil || !m.JSON {
		return err
	}
	return m.PrintJSON(map[string]string{"path": path, "text": text.String()})
}

// daily makes a day the path of its file. day is empty for a file that is none of a day.
func daily(name string) (path, day string) {
	day = strings.TrimSuffix(strings.TrimPrefix(name, "memory/"), ".md")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return name, ""
	}
	return "memory/" + day + ".md", day
}

// checked is the path of the file that a name stands for. It is looked at here: on its way to a server a URL
// loses what a name such as ../x has of dots.
func checked(name string) (string, error) {
	path, _ := daily(name)
	if memory.CheckPath(path) != nil && memory.CheckPath("memory/"+path) == nil {
		path = "memory/" + path // DIGEST.md, and the files that it links as it names them
	}
	if err := memory.CheckPath(path); err != nil {
		return "", cli.Advise(err, "`tidemark memory ls` shows the files there are")
	}
	return path, nil
}

func memorySearch(ctx context.Context, m *cli.Main, f *search) error {
	type hits struct {
		Found []agent.Found `json:"found"`
	}
	path := cli.AgentPath(f.Agent, "/memory-search"+cli.Query("limit", strconv.Itoa(f.Limit), "q", strings.Join(m.Args, " ")))
	return tell(ctx, m, http.MethodGet, path, nil, func(out hits) {
		for _, h := range out.Found {
			m.Out.Printf("%s:%d: %s\n", h.Path, h.Line, cli.OneLine(h.Text, 300))
		}
		cli.Nothing(m, len(out.Found), "nothing that is remembered has these words")
	})
}

func memoryUndo(ctx context.Context, m *cli.Main, f *ofAgent) error {
	path, err := checked(m.Args[0])
	if err != nil {
		return err
	}
	return tell(ctx, m, http.MethodPost, cli.AgentPath(f.Agent, "/memory-undo"), map[string]string{"path": path}, func(f agent.File) {
		m.Out.Printf("%s is as it was before its last edit (%s)\n", f.Path, cli.Size(f.Size))
	})
}

type editFlags struct {
	ofAgent
	File string
}

// memoryEdit replaces a memory file if nobody else changed it meanwhile.
func memoryEdit(ctx context.Context, m *cli.Main, c *client, f *editFlags) error {
	if f.File == "" && !m.Terminal {
		return cli.Advise(errors.New("an editor needs a terminal, and there is none"), "give the new text by --file, - for standard input")
	}
	path, err := checked(m.Args[0])
	if err != nil {
		return err
	}
	old, condition, err := readMemory(ctx, c, f.Agent, path)
	if err != nil {
		return err
	}
	text, err := newText(ctx, m, f.File, path, old)
	if err != nil {
		return err
	}
	if bytes.Equal(old, text) {
		m.Err.Line("nothing was changed")
		return nil
	}
	var done agent.File
	err = c.Send(ctx, http.MethodPut, memoryPath(f.Agent, path), bytes.NewReader(text), &done, condition...)
	var api *cli.APIError
	if errors.As(err, &api) && api.Type == "changed" && f.File == "" {
		return keepText(err, path, text)
	}
	if err != nil {
		return err
	}
	return cli.Either(m, done, func() {
		m.Out.Printf("%s written, %s; `tidemark memory undo %s` brings the version before back\n", done.Path, cli.Size(done.Size), done.Path)
	})
}

// newText is what is to stand in a memory file: a file's text, or what a person makes of the old one.
func newText(ctx context.Context, m *cli.Main, from, path string, old []byte) ([]byte, error) {
	if from == "" {
		return editor(ctx, m, filepath.Base(path), old)
	}
	in, _, err := m.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, memory.MaxFile+1))
}

// readMemory returns a file and the condition under which it may be replaced.
func readMemory(ctx context.Context, c *client, of, path string) ([]byte, []string, error) {
	resp, err := c.Do(ctx, http.MethodGet, memoryPath(of, path), nil)
	if cli.StatusOf(err) == http.StatusNotFound {
		return nil, []string{"If-None-Match", "*"}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	old, err := io.ReadAll(resp.Body)
	return old, []string{"If-Match", resp.Header.Get("ETag")}, err
}

// editor lets a person change a text.
func editor(ctx context.Context, m *cli.Main, name string, old []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, old, 0o600); err != nil {
		return nil, err
	}
	words := strings.Fields(cmp.Or(m.Env("VISUAL"), m.Env("EDITOR"), "vi"))
	cmd := exec.CommandContext(ctx, words[0], append(slices.Clone(words[1:]), file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = m.Stdin, m.Stdout, m.Stderr, m.Environ
	if err := cmd.Run(); err != nil {
		return nil, cli.Advise(fmt.Errorf("editor %s: %w", words[0], err), "set EDITOR, or give the new text by --file")
	}
	return os.ReadFile(file)
}

// keepText saves what a person wrote when it could not be stored.
func keepText(cause error, path string, text []byte) error {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("tidemark-%d-%s", time.Now().Unix(), filepath.Base(path)))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return errors.Join(cause, err)
	}
	return cli.Advise(cause, "your text is in "+file+"; edit again and take over from it what is missing")
}

func memoryLedger(ctx context.Context, m *cli.Main, f *search) error {
	type ledger struct {
		Rows  []agent.Row `json:"rows"`
		Night agent.Night `json:"night"`
	}
	return tell(ctx, m, http.MethodGet, cli.AgentPath(f.Agent, "/memory/ledger"+cli.Query("limit", strconv.Itoa(f.Limit))), nil, func(out ledger) {
		if len(out.Rows) == 0 {
			cli.Nothing(m, 0, "no fact was replaced or ended")
			return
		}
		cli.Columns(m.Out, out.Rows, []string{"ID", "WHEN", "ACTION", "FACT", "BY", "WHY"}, func(r agent.Row) []string {
			id := strconv.FormatInt(r.ID, 10)
			if !r.InForce {
				id += " (undone)"
			}
			return []string{id, cli.When(r.At), string(r.Action), cli.OneLine(r.Fact, 60), cli.OneLine(r.By, 60), cli.OneLine(r.Who+": "+r.Reason, 80)}
		})
	})
}

func memoryLedgerUndo(ctx context.Context, m *cli.Main, f *ofAgent) error {
	id, err := strconv.ParseInt(m.Args[0], 10, 64)
	if err != nil || id <= 0 {
		return cli.Usagef("%q is no id of a row; `tidemark memory ledger` shows them", m.Args[0])
	}
	type undone struct {
		ID int64 `json:"id"`
	}
	return tell(ctx, m, http.MethodPost, cli.AgentPath(f.Agent, "/memory/ledger/undo"), map[string]int64{"id": id}, func(out undone) {
		m.Out.Printf("row %d is taken back: its fact counts again\n", out.ID)
	})
}

type digestFlags struct {
	ofAgent
	Write bool
}

func memoryDigest(ctx context.Context, m *cli.Main, f *digestFlags) error {
	path := cli.AgentPath(f.Agent, "/memory/digest")
	if f.Write {
		return tell(ctx, m, http.MethodPost, path, map[string]string{}, func(done agent.Consolidated) {
			if done.Note != "" {
				m.Err.Line(done.Note)
				return
			}
			m.Out.Printf("%d decided, %d files written, %d as they were\n", done.Decided, len(done.Written), done.Unchanged)
			if len(done.Suggested) > 0 {
				m.Out.Printf("a person edited the digest, ours is in %s\n", strings.Join(done.Suggested, ", "))
			}
		})
	}
	type part struct {
		Path    string `json:"path"`
		Text    string `json:"text"`
		Entries int    `json:"entries"`
		Details []struct {
			Path    string `json:"path"`
			Entries int    `json:"entries"`
		} `json:"details"`
	}
	return tell(ctx, m, http.MethodGet, path, nil, func(out part) {
		m.Out.Put(out.Text)
	})
}

// beside is what lies in the bucket and was not in the index of archives.
type beside struct {
	Added   []string `json:"added,omitempty"`   // archives that the index has from now on
	Stray   []string `json:"stray,omitempty"`   // files that are no archives
	Partial bool     `json:"partial,omitempty"` // there may be more
}

// note tells people of it.
func (b beside) note(m *cli.Main) {
	for _, key := range b.Added {
		m.Err.Printf("added to the index: %s\n", cli.OneLine(path.Base(key), 200))
	}
	for _, key := range b.Stray {
		m.Err.Printf("no archive, and passed over: %s\n", cli.OneLine(key, 300))
	}
	if b.Partial {
		m.Err.Line("there may be more files beside the index; `tidemark archive verify` looks at all")
	}
}

func archiveLs(ctx context.Context, m *cli.Main, c *client, f *search) error {
	var found beside
	list, err := pagesOf[archive.Info](ctx, c, cli.AgentPath(f.Agent, "/archives"+cli.Query("session", f.ID)), "archives", &found)
	if err != nil {
		return err
	}
	found.note(m)
	return cli.Rows(m, list, []string{"ARCHIVE", "SESSION", "WHAT", "MESSAGES", "SIZE", "AT"}, func(a archive.Info) []string {
		what := "part " + fmt.Sprint(a.Part)
		if a.Whole() {
			what = "whole"
		}
		return []string{path.Base(a.Key), cli.PlainKey(string(a.SessionKey)), what, fmt.Sprint(a.Messages), cli.Size(a.Bytes), cli.When(a.At)}
	})
}

type rawFlags struct {
	ofAgent
	Raw bool
}

func archiveCat(ctx context.Context, m *cli.Main, c *client, f *rawFlags) error {
	p := cli.AgentPath(f.Agent, "/archives/"+url.PathEscape(path.Base(m.Args[0])))
	if !f.Raw {
		p += "?format=jsonl"
	}
	return c.Raw(ctx, p, m.Out)
}

// archiveHits is what is found in archives.
type archiveHits struct {
	Hits []archive.Hit `json:"hits"`
}

func archiveSearch(ctx context.Context, m *cli.Main, f *search) error {
	q := cli.Query("q", strings.Join(m.Args, " "), "session", f.ID, "limit", strconv.Itoa(f.Limit))
	return look(ctx, m, cli.AgentPath(f.Agent, "/archives-search"+q), func(out archiveHits) {
		for _, h := range out.Hits {
			m.Out.Printf("%s:%d  %-9s  %s\n", path.Base(h.Key), h.Line, h.Role, cli.OneLine(h.Snippet, 300))
		}
		cli.Nothing(m, len(out.Hits), "no archived message has these words")
	})
}

// verdicts is what a verification came to.
type verdicts struct {
	Verdicts []archive.Verdict `json:"verdicts"`
	OK       int               `json:"ok"`
	Bad      int               `json:"bad"`
	beside
}

// archiveVerify checks one archive or all, and fails when one is damaged.
func archiveVerify(ctx context.Context, m *cli.Main, c *client, f *ofAgent) error {
	var out verdicts
	var err error
	if p := cli.AgentPath(f.Agent, "/archives-verify"); len(m.Args) > 0 {
		err = c.Post(ctx, p, map[string]string{"archive": path.Base(m.Args[0])}, &out)
	} else {
		err = c.Events(ctx, http.MethodPost, p, nil, func(event string, data []byte) error {
			if event == "progress" {
				return m.ShowProgress(data, 0, 0)
			}
			return json.Unmarshal(data, &out)
		})
		m.ProgressEnd()
	}
	if err == nil {
		err = cli.Either(m, out, func() { out.tell(m) })
	}
	if err == nil && out.Bad > 0 && out.Bad == len(out.Stray) {
		return cli.Advise(fmt.Errorf("%s among the archives", cli.Plural(out.Bad, "stray file")), "move what is named above to another place; nobody can say what it holds")
	}
	if err == nil && out.Bad > 0 {
		err = cli.Advise(errors.New("archives are damaged"), "restore these files from a copy of the bucket; what is not yet reset can be exported with `tidemark export`")
	}
	return err
}

func (v verdicts) tell(m *cli.Main) {
	for _, one := range v.Verdicts {
		word := "ok  "
		if !one.OK {
			word = "BAD "
		}
		m.Out.Printf("%s %s  %s, %s\n", word, path.Base(one.Key), cli.Plural(one.Messages, "message"), cli.Size(one.Bytes))
		for _, p := range one.Problems {
			m.Out.Printf("     %s\n", p)
		}
	}
	beside{Added: v.Added}.note(m) // stray files are among the verdicts
	m.Out.Printf("%s ok, %d damaged", cli.Plural(v.OK, "archive"), v.Bad-len(v.Stray))
	if len(v.Added)+len(v.Stray) > 0 {
		m.Out.Printf(", %d were not in the index, %s", len(v.Added), cli.Plural(len(v.Stray), "stray file"))
	}
	m.Out.Line()
}

func archiveRestore(ctx context.Context, m *cli.Main, f *struct{ Session string }) error {
	if f.Session == "" {
		return cli.Usagef("--session is missing: into which session?")
	}
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	raw, err := json.Marshal(map[string]string{"archive": path.Base(m.Args[0])})
	if err != nil {
		return err
	}
	return with(ctx, m, func(c *client) error {
		return playLog(ctx, m, c, cli.SessionPath(f.Session, "/restore"), strings.NewReader(string(raw)), 0)
	})
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/near"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// How often, and after how long, a name is looked for again that nobody knows.
const (
	looksAgain = 3
	lookAgain  = 250 * time.Millisecond
)

// worlds says where nodes are looked for.
type worlds struct {
	Agent, Session string
	Claude         bool // only there
}

func (w *worlds) check() error {
	if w.Claude && w.Session != "" {
		return cli.Usagef("--session and --claude: want one of them")
	}
	return nil
}

// claudeNodes lists what is kept of Claude Code's sessions. Without a store there is nothing.
func claudeNodes(ctx context.Context, m *cli.Main) ([]snapshot.Node, error) {
	home, err := m.HomeDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(home, "claude")); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return (&claude.Store{Home: home}).Nodes(ctx)
}

// sessionNodes lists those of sessions: all of an agent's, or those of one conversation, which it knows before its
// agent does.
func sessionNodes(ctx context.Context, c *client, w worlds) ([]snapshot.Node, error) {
	type page struct {
		Nodes []snapshot.Node `json:"nodes"`
		Next  string          `json:"next"`
	}
	const most = "1000" // tens of thousands shall be there at once, so they are read once each: less than pages does
	path, of := "/v1/tree", url.Values{"agent": {w.Agent}}
	if w.Session != "" {
		path, of = cli.SessionPath(w.Session, "/snapshots"), url.Values{}
	}
	of.Set("limit", most)
	var list []snapshot.Node
	for cursor := ""; ; {
		var p page
		of.Set("cursor", cursor)
		if err := c.Get(ctx, path+"?"+of.Encode(), &p); err != nil {
			return nil, err
		}
		list = append(list, p.Nodes...)
		if p.Next == "" || p.Next == cursor {
			return list, nil
		}
		cursor = p.Next
	}
}

// isClaudeID reports whether a reference begins as only ids of Claude Code's snapshots do.
func isClaudeID(ref string) bool { return strings.HasPrefix(ref, "cc-") }

// findNode finds what a reference of the command line means: an id, the key of a branch, or a name. It looks among
// nodes of sessions, and among those of Claude Code where w does not exclude them.
func findNode(ctx context.Context, m *cli.Main, sessions []snapshot.Node, w worlds, ref string) (snapshot.Node, error) {
	all := sessions
	if w.Session == "" {
		own, err := claudeNodes(ctx, m)
		if err != nil {
			return snapshot.Node{}, err
		}
		all = slices.Concat(sessions, own)
	}
	if key, err := tidemark.ParseKey(ref); err == nil && strings.Contains(ref, "#") {
		if i := slices.IndexFunc(all, func(n snapshot.Node) bool { return n.ID == string(key) }); i >= 0 {
			return all[i], nil
		}
	}
	n, err := snapshot.Find(all, ref)
	switch {
	case errors.Is(err, tidemark.ErrNotFound):
		return n, cli.Advise(err, missing(all, ref))
	case errors.Is(err, tidemark.ErrConflict):
		if _, shown := snapshot.Find(plainNodes(all), ref); errors.Is(shown, tidemark.ErrConflict) {
			err = shown
		}
		return n, cli.Advise(errors.New(strings.TrimSuffix(err.Error(), "\n"+tidemark.ErrConflict.Error())), "give the id instead of the name")
	}
	return n, err
}

// plainNodes are nodes with keys as the command line shows them.
func plainNodes(nodes []snapshot.Node) []snapshot.Node {
	out := slices.Clone(nodes)
	for i := range out {
		if n := &out[i]; n.Of == snapshot.OfSession {
			n.ID, n.Session = cli.PlainKey(n.ID), cli.PlainKey(n.Session)
		}
	}
	return out
}

// missing says what may have been meant.
func missing(all []snapshot.Node, ref string) string {
	known := make([]string, 0, len(all))
	for _, n := range all {
		known = append(known, n.Name)
	}
	if meant := near.Name(ref, known); meant != "" {
		return "did you mean " + meant + "? `tidemark snapshot ls` shows all"
	}
	return "`tidemark snapshot ls` shows all there are; with --session KEY a session is asked that its agent has not heard of yet"
}

// withNode finds a node and carries f out; c is nil for one of Claude Code. Sessions of Tidemark that cannot be looked at
// are no reason to leave one of Claude Code alone.
func withNode(ctx context.Context, m *cli.Main, w worlds, ref string, f func(*client, snapshot.Node) error) error {
	if err := w.check(); err != nil {
		return err
	}
	if w.Claude || isClaudeID(ref) && w.Session == "" {
		n, err := findNode(ctx, m, nil, w, ref)
		if err != nil {
			return err
		}
		return f(nil, n)
	}
	looked := false
	err := with(ctx, m, func(c *client) error {
		nodes, err := sessionNodes(ctx, c, w)
		if err != nil {
			return err
		}
		looked = true
		n, err := findNode(ctx, m, nodes, w, ref)
		for try := 0; errors.Is(err, tidemark.ErrNotFound) && w.Session == "" && try < looksAgain; try++ {
			// A server's agent hears of a snapshot a moment after it was taken.
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(lookAgain):
			}
			if nodes, err = sessionNodes(ctx, c, w); err != nil {
				return err
			}
			n, err = findNode(ctx, m, nodes, w, ref)
		}
		if err != nil {
			return err
		}
		return f(c, n)
	})
	if err == nil || looked || w.Session != "" {
		return err
	}
	n, not := findNode(ctx, m, nil, w, ref)
	if not != nil {
		return err
	}
	m.Err.Line("sessions of Tidemark were not looked at: " + cli.PlainError(err))
	return f(nil, n)
}

// oneRef takes the one snapshot or branch that a command is about.
func oneRef(m *cli.Main) error {
	args := m.Args
	if len(args) == 0 || strings.TrimSpace(args[0]) == "" {
		return cli.Usagef("%s: which one? give its id or its name; `tidemark snapshot ls` lists them", m.Path())
	}
	if len(args) > 1 {
		return cli.Usagef("%s: want one id or name, got %d; put a name with spaces in quotes: %q", m.Path(), len(args), strings.Join(args, " "))
	}
	return nil
}

// exportArchive writes an archive to a place.
func exportArchive(ctx context.Context, m *cli.Main, c *client, n snapshot.Node, to string, force bool) error {
	write := func(w io.Writer) error { return exportTo(ctx, m, c, n, w) }
	if to == "-" {
		return write(m.Out)
	}
	if to == "" {
		to = n.ID + ".tar.gz"
	}
	if err := place.Write(to, place.Options{Replace: force}, write); errors.Is(err, tidemark.ErrConflict) {
		return cli.Advise(err, "choose another -o, or replace it with --force")
	} else if err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err != nil {
		return fmt.Errorf("look at what was written: %w", err)
	}
	return cli.Either(m, map[string]any{"snapshot": n, "file": to, "bytes": info.Size()}, func() {
		m.Out.Printf("%s  %s\n", to, cli.Size(info.Size()))
	})
}

func exportTo(ctx context.Context, m *cli.Main, c *client, n snapshot.Node, w io.Writer) error {
	if n.Of == snapshot.OfClaude {
		store, err := claudeStore(m)
		if err != nil {
			return err
		}
		return store.Export(ctx, n.ID, w)
	}
	resp, err := c.Do(ctx, http.MethodGet, cli.SessionPath(n.Session, "/snapshots/"+url.PathEscape(n.ID)+"/archive"), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = wholeArchive(io.TeeReader(resp.Body, w)) // an answer that broke off shall make no file
	return err
}

// wholeArchive reads an archive to its end.
func wholeArchive(in io.Reader) (*snapshot.Reader, error) {
	r, err := snapshot.NewReader(in, snapshot.Limits{})
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return r, nil
	}
	return nil, err
}

// archiveFile opens a file to be read twice: its manifest says where it goes. done ends that.
func archiveFile(ctx context.Context, m *cli.Main, name string) (file *os.File, done func(), err error) {
	if name != "-" {
		if err := cli.NoPipe(name); err != nil {
			return nil, nil, err
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, fmt.Errorf("open archive: %w", err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	if file, done, err = spooled(ctx, io.LimitReader(m.Stdin, snapshot.DefaultTotal+1)); err != nil {
		return nil, nil, fmt.Errorf("read standard input: %w", err)
	}
	if n, err := file.Seek(0, io.SeekEnd); err != nil || n > snapshot.DefaultTotal {
		done()
		return nil, nil, cmp.Or(err, fmt.Errorf("read standard input: over %d bytes", int64(snapshot.DefaultTotal)))
	}
	_, err = file.Seek(0, io.SeekStart)
	return file, done, err
}

// importArchive gives an archive to the program that its manifest names.
func importArchive(ctx context.Context, m *cli.Main, file *os.File, into string) error {
	r, err := wholeArchive(file) // also of a snapshot that is there already
	if err != nil {
		return cli.Advise(err, "give a file that `tidemark snapshot export` wrote, whole; one that was cut off on its way is to be copied again")
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(file.Name()), err)
	}
	if manifest := r.Manifest(); manifest.Kind == snapshot.OfSession {
		return importSession(ctx, m, file, manifest.Node.ID, into)
	}
	if into != "" {
		return cli.Usagef("--session: this is a snapshot of Claude Code; it is kept beside the others, and `tidemark branch` makes a session of it")
	}
	store, err := claudeStore(m)
	if err != nil {
		return err
	}
	again, err := store.Has(ctx, r.Manifest().Node.ID)
	if err != nil {
		return err
	}
	n, err := store.Import(ctx, file)
	if err != nil {
		return err
	}
	return cli.Either(m, struct {
		Snapshot snapshot.Node `json:"snapshot"`
		Again    bool          `json:"again,omitempty"`
	}{n, again}, func() {
		tellSnapshot(m, "snapshot", n)
		if again {
			m.Err.Line("it was here already")
		}
		m.Out.Printf("go on     tidemark branch %s\n", n.ID)
	})
}

func importSession(ctx context.Context, m *cli.Main, file io.Reader, id, into string) error {
	return with(ctx, m, func(c *client) error {
		path := "/v1/snapshots/" + url.PathEscape(id) + "/archive"
		if into != "" {
			path += "?session=" + url.QueryEscape(into)
		}
		var in snapshots.Carried
		if err := c.Send(ctx, http.MethodPut, path, io.NopCloser(file), &in, "Content-Type", snapshot.ArchiveType); err != nil {
			return err
		}
		return cli.Either(m, in, func() {
			tellSnapshot(m, "snapshot", in.Node)
			if in.Again {
				m.Err.Line("it was here already")
			}
			m.Out.Printf("go on     tidemark chat '%s'\n", cli.PlainKey(string(in.Key)))
		})
	})
}

type exportFlags struct {
	worlds
	Output string
	Force  bool
}

func snapshotExport(ctx context.Context, m *cli.Main, f *exportFlags) error {
	if f.Output == "-" && m.Terminal {
		return cli.Usagef("-o -: a terminal cannot show the file; redirect it, or name one")
	}
	return withNode(ctx, m, f.worlds, m.Args[0], func(c *client, n snapshot.Node) error {
		if n.Kind != snapshot.KindSnapshot {
			return cli.Advise(fmt.Errorf("%s is a branch, and a branch goes on", cli.PlainKey(n.ID)), "take a snapshot of it: `tidemark snapshot NAME --session '"+cli.PlainKey(n.Session)+"'`")
		}
		return exportArchive(ctx, m, c, n, f.Output, f.Force)
	})
}

func snapshotImport(ctx context.Context, m *cli.Main, f *struct{ Session string }) error {
	file, done, err := archiveFile(ctx, m, m.Args[0])
	if err != nil {
		return err
	}
	defer done()
	return importArchive(ctx, m, file, f.Session)
}

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

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// sideOf is what the server knows a reference by: the id of a snapshot, or the key of a session.
func sideOf(ctx context.Context, m *cli.Main, c *client, w worlds, ref string) (string, error) {
	if strings.ContainsAny(ref, "#:") || ref == "main" {
		return ref, nil
	}
	nodes, err := sessionNodes(ctx, c, w)
	if err != nil {
		return "", err
	}
	n, err := findNode(ctx, m, nodes, w, ref)
	var own *cli.Fixed
	switch {
	case err == nil && n.Of == snapshot.OfClaude:
		return "", cli.Advise(fmt.Errorf("%s is of Claude Code; compare is for sessions of Tidemark", n.ID), "`tidemark cost --claude ID` shows what a log holds")
	case err == nil && n.Kind == snapshot.KindBranch:
		return n.Session, nil
	case err == nil:
		return n.ID, nil
	case !errors.Is(err, tidemark.ErrNotFound):
		return "", err
	}
	if _, bad := tidemark.ParseKey(ref); bad == nil { // a session that nothing was kept of
		if _, gone := c.session(ctx, ref); gone == nil {
			return ref, nil
		}
	}
	if errors.As(err, &own) {
		return "", cli.Advise(fmt.Errorf("%q: no session, snapshot or branch has that key, id or name", ref), own.Fix)
	}
	return "", err
}

// session reads what a listing says of a session.
func (c *client) session(ctx context.Context, key string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := c.Get(ctx, cli.SessionPath(key, ""), &raw)
	return raw, err
}

// tellComparison prints a comparison: what both have, a table, then the first messages of each.
func tellComparison(m *cli.Main, v snapshots.Comparison, previews int) {
	if at := v.Common; at.Messages == 0 {
		m.Out.Line("they have no message in common")
	} else {
		text := cli.Plural(at.Messages, "message") + " in common"
		if at.At != nil {
			text += ", up to " + cli.When(*at.At)
		}
		if at.Snapshot != "" {
			text += ", where " + at.Snapshot + " was taken"
		}
		m.Out.Line(text)
	}
	m.Out.Line()
	rows := [][]string{{"", sideName(v.A), sideName(v.B)}}
	for _, r := range sideRows(v.A) {
		rows = append(rows, []string{r[0], r[1], ""})
	}
	for i, r := range sideRows(v.B) {
		rows[i+1][2] = r[1]
	}
	cli.PrintTable(m.Out, rows)
	for _, s := range []snapshots.Side{v.A, v.B} {
		tellSide(m, s, previews)
	}
}

func sideName(s snapshots.Side) string {
	if s.Node != nil && s.Node.Kind == snapshot.KindSnapshot {
		return s.Node.Name
	}
	return cli.PlainKey(s.ID)
}

// sideRows are the figures of one side; both sides have the same rows.
func sideRows(s snapshots.Side) [][2]string {
	tools := make([]string, 0, len(s.Tools))
	for _, t := range s.Tools {
		tools = append(tools, fmt.Sprintf("%s %d", t.Name, t.Calls))
	}
	u := s.Usage
	return [][2]string{
		{"messages", fmt.Sprintf("%d, %d since", s.Messages, s.Since)},
		{"context", snapshot.Short(s.Context) + " tokens"},
		{"read since", fmt.Sprintf("%s, %s of it from the cache", snapshot.Short(u.Input+u.CacheRead+u.CacheCreation), snapshot.Short(u.CacheRead))},
		{"written since", snapshot.Short(u.Output)},
		{"models", few(s.Models, 3)},
		{"tools", few(tools, 5)},
		{"files", few(tails(s.Files), 4)},
	}
}

// tails cuts long paths at their beginning, which many have in common.
func tails(paths []string) []string {
	const wide = 38
	out := slices.Clone(paths)
	for i, p := range out {
		if r := []rune(p); len(r) > wide {
			out[i] = "…" + string(r[len(r)-wide:])
		}
	}
	return out
}

// few lists the first of many.
func few(list []string, most int) string {
	if len(list) == 0 {
		return "-"
	}
	list = slices.Clone(list)
	for i := range list {
		const wide = 40
		list[i] = cli.OneLine(list[i], wide)
	}
	if n := len(list) - most; n > 0 {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(list, ", ")
}

// tellSide prints what was said on one side, and what came of it.
func tellSide(m *cli.Main, s snapshots.Side, previews int) {
	m.Out.Printf("\n%s\n", m.Dim(sideName(s)))
	const wide = 100
	shown := s.Previews[:min(len(s.Previews), max(previews, 0))]
	for _, p := range shown {
		m.Out.Printf("  %-9s  %s\n", speaker(p), cli.OneLine(p.Text, wide))
	}
	if n := s.Since - len(shown); n > 0 {
		m.Out.Printf("  … %s\n", cli.Plural(n, "more message"))
	}
	if s.Clipped {
		m.Out.Line("  (tools and files are of its first messages alone)")
	}
	if s.Outcome != "" {
		m.Out.Printf("  outcome: %s\n", cli.OneLine(s.Outcome, 8*wide))
	}
}

// speaker is who said a message: the API gives the role of a person to what tools answer and to notes, too.
func speaker(p snapshots.Preview) string {
	switch {
	case p.Role != tidemark.User:
		return string(p.Role)
	case p.From == tidemark.FromTool, p.From == tidemark.FromRecall:
		return "tool"
	case p.From == tidemark.FromSystem:
		return "note"
	default:
		return string(p.Role)
	}
}

type compareFlags struct {
	worlds
	Messages int
}

func compare(ctx context.Context, m *cli.Main, c *client, f *compareFlags) error {
	q := url.Values{}
	for i, name := range []string{"a", "b"} {
		side, err := sideOf(ctx, m, c, f.worlds, m.Args[i])
		if err != nil {
			return err
		}
		q.Set(name, side)
	}
	if f.Session != "" {
		q.Set("session", f.Session)
	} else {
		q.Set("agent", f.Agent)
	}
	return answer(ctx, m, c, http.MethodGet, "/v1/compare?"+q.Encode(), nil, func(v snapshots.Comparison) {
		tellComparison(m, v, f.Messages)
	})
}

type mergeFlags struct {
	worlds
	Into, Note string
}

func merge(ctx context.Context, m *cli.Main, c *client, f *mergeFlags) error {
	branch, nodes, err := findBranch(ctx, m, c, f.worlds, m.Args[0])
	if err != nil {
		return err
	}
	into := f.Into
	if into == "" {
		i := slices.IndexFunc(nodes, func(n snapshot.Node) bool { return n.ID == branch.Parent })
		if i < 0 {
			return cli.Advise(fmt.Errorf("%s: the snapshot that it came from is not here", cli.PlainKey(branch.ID)), "name the session: --into KEY")
		}
		into = nodes[i].Session
	}
	var made snapshots.Merged
	if err := c.Post(ctx, cli.SessionPath(into, "/merge"), map[string]string{"from": branch.Session, "note": f.Note}, &made); err != nil {
		return err
	}
	return cli.Either(m, made, func() {
		if made.Again {
			m.Err.Line("it was there already: nothing was said in the branch since")
		}
		m.Out.Printf("%s in %s:\n%s\n", made.Entry, cli.PlainKey(string(made.Key)), made.Text)
	})
}

// findBranch finds a branch of a session by its key or name, with what else its conversation has.
func findBranch(ctx context.Context, m *cli.Main, c *client, w worlds, ref string) (snapshot.Node, []snapshot.Node, error) {
	key, err := tidemark.ParseKey(ref)
	var nodes []snapshot.Node
	if err == nil && key != key.Root() {
		w.Session = string(key) // the session knows, before its agent does
	}
	if nodes, err = sessionNodes(ctx, c, w); err != nil {
		return snapshot.Node{}, nil, err
	}
	branches := slices.DeleteFunc(slices.Clone(nodes), func(n snapshot.Node) bool { return n.Kind != snapshot.KindBranch })
	if i := slices.IndexFunc(branches, func(n snapshot.Node) bool { return n.ID == string(key) }); i >= 0 && key != "" {
		return branches[i], nodes, nil
	}
	n, err := snapshot.Find(branches, ref)
	if i := slices.IndexFunc(nodes, func(n snapshot.Node) bool { return n.Session == string(key) }); errors.Is(err, tidemark.ErrNotFound) && i >= 0 && key != "" {
		return n, nil, cli.Advise(fmt.Errorf("%s: is a session, no branch", ref), "`tidemark tree` shows its branches; name one, such as '"+ref+"#NAME'")
	}
	if errors.Is(err, tidemark.ErrNotFound) {
		return n, nil, cli.Advise(fmt.Errorf("branch %s: not found among the sessions of Tidemark", ref), "`tidemark tree` shows the branches there are")
	}
	return n, nodes, err
}

// bothWorlds is what is kept, by program. err is what kept one of them from being read.
type bothWorlds struct {
	sessions, claude []snapshot.Node
	err              error
}

// allNodes lists the nodes of both programs. What one of them holds is given although the other cannot be read.
func allNodes(ctx context.Context, m *cli.Main, w worlds) (bothWorlds, error) {
	var all bothWorlds
	var ofClaude, ofSessions error
	if w.Session == "" {
		all.claude, ofClaude = claudeNodes(ctx, m)
	}
	if !w.Claude {
		looked := false
		ofSessions = with(ctx, m, func(c *client) (err error) {
			looked = true
			all.sessions, err = sessionNodes(ctx, c, w)
			return err
		})
		if ofSessions != nil && !looked {
			all.sessions, ofSessions = storedNodes(ctx, m, w, ofSessions)
		}
	}
	if all.err = errors.Join(ofSessions, ofClaude); len(all.sessions)+len(all.claude) == 0 {
		return all, all.err
	}
	return all, nil
}

// drawTrees prints the trees of both programs, each below its name.
func drawTrees(m *cli.Main, sessions, claude snapshot.Tree, ids bool) error {
	drawn := false
	for _, t := range []struct {
		head string
		tree snapshot.Tree
	}{{"Sessions of Tidemark", sessions}, {"Sessions of Claude Code", claude}} {
		if len(t.tree.Rows) == 0 {
			continue
		}
		if drawn {
			m.Out.Line()
		}
		drawn = true
		m.Out.Line(m.Dim(t.head))
		for i := range t.tree.Rows {
			if r := &t.tree.Rows[i]; r.Of == snapshot.OfSession {
				r.Session, r.ID = cli.PlainKey(r.Session), cli.PlainKey(r.ID)
			}
		}
		if err := t.tree.Text(m.Out, snapshot.TextOptions{IDs: ids, Now: now}); err != nil {
			return err
		}
	}
	if !drawn {
		m.Err.Line("there is no snapshot yet; `tidemark snapshot NAME` takes one")
	}
	return nil
}

type treeFlags struct {
	worlds
	Depth int
	IDs   bool `flag:"ids"`
}

func tree(ctx context.Context, m *cli.Main, f *treeFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if m.Changed("depth") && f.Depth <= 0 {
		return cli.Usagef("--depth %d: want how many levels to show, 1 or more", f.Depth)
	}
	all, err := allNodes(ctx, m, f.worlds)
	if err != nil {
		return err
	}
	sessions, claude := snapshot.Grow(all.sessions).To(f.Depth), snapshot.Grow(all.claude).To(f.Depth)
	if m.JSON {
		err = m.PrintJSON(append(append([]snapshot.Row{}, sessions.Rows...), claude.Rows...))
	} else {
		err = drawTrees(m, sessions, claude, f.IDs)
	}
	return cmp.Or(err, all.err)
}

// maxStored bounds a database that is copied to be read, in bytes.
const maxStored = 4 << 30

// storedNodes lists the nodes of sessions in a store of this machine that cannot be opened, since its disk is full or
// cannot be written: opening one writes. A copy elsewhere is read, and that is told. err is why it could not be opened.
func storedNodes(ctx context.Context, m *cli.Main, w worlds, err error) ([]snapshot.Node, error) {
	base, named := m.Named()
	home, unknown := m.HomeDir()
	if !errors.Is(err, tidemark.ErrUnavailable) || base != "" || named != nil || unknown != nil {
		return nil, err
	}
	dir, failed := os.MkdirTemp("", "tidemark-tree-*")
	if failed == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		var nodes []snapshot.Node
		if nodes, failed = nodesOfCopy(ctx, cli.Database(home, w.Agent), dir, w); failed == nil {
			m.Err.Line("the store is read from a copy, since it cannot be opened: " + cli.PlainError(err))
			return nodes, nil
		}
	}
	return nil, fmt.Errorf("%w (nor can a copy be read: %s)", err, cli.PlainError(failed))
}

// nodesOfCopy copies a database, with what was written last and is not folded in yet, and reads the tree in it.
func nodesOfCopy(ctx context.Context, path, dir string, w worlds) ([]snapshot.Node, error) {
	to := filepath.Join(dir, cli.DatabaseName)
	if err := copyFile(path, to); err != nil {
		return nil, err
	}
	const log = "-wal"
	if err := copyFile(path+log, to+log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	db, err := native.OpenDB(to)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	blobs, err := native.NewDir(dir)
	if err != nil {
		return nil, err
	}
	a, err := agent.New(agent.Config{Name: w.Agent, DB: db, Blobs: blobs, Runtime: native.NewRuntime(nil)})
	if err != nil {
		return nil, err
	}
	var only tidemark.Key
	if w.Session != "" {
		if only, err = tidemark.ParseKey(w.Session); err != nil {
			return nil, err
		}
	}
	const page = 1000
	var all []snapshot.Node
	for cursor := ""; ; {
		nodes, next, err := a.Tree(ctx, cursor, page, false)
		if err != nil {
			return nil, err
		}
		for _, raw := range nodes {
			var n snapshot.Node
			if err := json.Unmarshal(raw, &n); err != nil {
				return nil, fmt.Errorf("read snapshots: %w", err)
			}
			if only == "" || tidemark.Key(n.Session).Root() == only.Root() {
				all = append(all, n)
			}
		}
		if cursor = next; next == "" {
			return all, nil
		}
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil && info.Size() > maxStored {
		err = fmt.Errorf("%s has %d bytes, over %d: %w", from, info.Size(), int64(maxStored), tidemark.ErrTooLarge)
	}
	if err != nil {
		return err
	}
	const private = 0o600
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

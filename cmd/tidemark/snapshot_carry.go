package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

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
	if m.JSON {
		return m.PrintJSON(map[string]any{"snapshot": n, "file": to, "bytes": info.Size()})
	}
	m.Out.Printf("%s  %s\n", to, cli.Size(info.Size()))
	return nil
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
func archiveFile(m *cli.Main, name string) (file *os.File, done func(), err error) {
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
	file, err = os.CreateTemp("", "tidemark-import-*")
	if err != nil {
		return nil, nil, fmt.Errorf("keep standard input: %w", err)
	}
	done = func() { _, _ = file.Close(), os.Remove(file.Name()) }
	n, err := io.Copy(file, io.LimitReader(m.Stdin, snapshot.DefaultTotal+1))
	if err == nil && n > snapshot.DefaultTotal {
		err = fmt.Errorf("over %d bytes", int64(snapshot.DefaultTotal))
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("read standard input: %w", err)
	}
	return file, done, nil
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
	if m.JSON {
		return m.PrintJSON(struct {
			Snapshot snapshot.Node `json:"snapshot"`
			Again    bool          `json:"again,omitempty"`
		}{n, again})
	}
	tellSnapshot(m, "snapshot", n)
	if again {
		m.Err.Line("it was here already")
	}
	m.Out.Printf("go on     tidemark branch %s\n", n.ID)
	return nil
}

func importSession(ctx context.Context, m *cli.Main, file io.Reader, id, into string) error {
	return with(ctx, m, func(c *client) error {
		path := "/v1/snapshots/" + url.PathEscape(id) + "/archive"
		if into != "" {
			path += "?session=" + url.QueryEscape(into)
		}
		resp, err := c.Do(ctx, http.MethodPut, path, io.NopCloser(file), "Content-Type", snapshot.ArchiveType)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(io.LimitReader(resp.Body, cli.MaxDocument))
		if err != nil {
			return fmt.Errorf("read answer of %s: %w", c.Where, err)
		}
		var in session.Carried
		if err := json.Unmarshal(raw, &in); err != nil {
			return fmt.Errorf("answer of %s to the import: %w", c.Where, err)
		}
		if m.JSON {
			return m.PrintJSON(in)
		}
		tellSnapshot(m, "snapshot", in.Node)
		if in.Again {
			m.Err.Line("it was here already")
		}
		m.Out.Printf("go on     tidemark chat '%s'\n", cli.PlainKey(string(in.Key)))
		return nil
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
	file, done, err := archiveFile(m, m.Args[0])
	if err != nil {
		return err
	}
	defer done()
	return importArchive(ctx, m, file, f.Session)
}

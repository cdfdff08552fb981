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

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func (m *Main) snapshotExport() *cobra.Command {
	var w worlds
	var to string
	var force bool
	c := &cobra.Command{Use: "export REF", Short: "Write a snapshot with its lineage to a file", Args: oneRef,
		Long: `Write a snapshot, with what is known of the snapshots before it, to a file that can be
read in on another machine or host: ` + "`tidemark snapshot import FILE`" + `. It is a tar file
in gzip; its last member says what all the others are, so that a file which was cut off
or changed is noticed.`,
		Example: `  tidemark snapshot export before-refactor
  tidemark snapshot export before-refactor -o - | ssh there tidemark snapshot import -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "-" && m.Terminal {
				return usagef("-o -: a terminal cannot show the file; redirect it, or name one")
			}
			return m.withNode(cmd.Context(), w, args[0], func(c *client, n snapshot.Node) error {
				if n.Kind != snapshot.KindSnapshot {
					return &fixed{fmt.Errorf("%s is a branch, and a branch goes on", plainKey(n.ID)), "take a snapshot of it: `tidemark snapshot NAME --session '" + plainKey(n.Session) + "'`"}
				}
				return m.export(cmd.Context(), c, n, to, force)
			})
		}}
	w.flags(c)
	c.Flags().StringVarP(&to, "output", "o", "", "the file (default ID.tar.gz in this folder, - for standard output)")
	c.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	return m.jsonFlag(c)
}

// export writes an archive to a place.
func (m *Main) export(ctx context.Context, c *client, n snapshot.Node, to string, force bool) error {
	write := func(w io.Writer) error { return m.exportTo(ctx, c, n, w) }
	if to == "-" {
		return write(m.out)
	}
	if to == "" {
		to = n.ID + ".tar.gz"
	}
	if err := place.Write(to, place.Options{Replace: force}, write); errors.Is(err, tidemark.ErrConflict) {
		return &fixed{err, "choose another -o, or replace it with --force"}
	} else if err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err != nil {
		return fmt.Errorf("look at what was written: %w", err)
	}
	if m.json {
		return m.printJSON(map[string]any{"snapshot": n, "file": to, "bytes": info.Size()})
	}
	m.out.printf("%s  %s\n", to, size(info.Size()))
	return nil
}

func (m *Main) exportTo(ctx context.Context, c *client, n snapshot.Node, w io.Writer) error {
	if n.Of == snapshot.OfClaude {
		store, err := m.claudeStore()
		if err != nil {
			return err
		}
		return store.Export(ctx, n.ID, w)
	}
	resp, err := c.do(ctx, http.MethodGet, sessionPath(n.Session, "/snapshots/"+url.PathEscape(n.ID)+"/archive"), nil)
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

func (m *Main) snapshotImport() *cobra.Command {
	var into string
	c := &cobra.Command{Use: "import FILE", Short: "Read in a snapshot that was exported", Args: cobra.ExactArgs(1),
		Long: `Read in a file that ` + "`tidemark snapshot export`" + ` wrote, here or elsewhere, - for standard
input. Sizes, names and hashes are checked. The same file twice is one snapshot, and an
import that was cut off can be made again. Of Claude Code, what is damaged of a snapshot
that is here already is written again.

A snapshot of a session of Tidemark becomes a new session, which goes on from it; one of
Claude Code is kept beside the others, and ` + "`tidemark branch`" + ` makes a session of it.`,
		Example: `  tidemark snapshot import snap-01k….tar.gz
  tidemark snapshot import snap-01k….tar.gz --session garden-again`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, done, err := m.archiveFile(args[0])
			if err != nil {
				return err
			}
			defer done()
			return m.importArchive(cmd.Context(), file, into)
		}}
	c.Flags().StringVar(&into, "session", "", "name of the new session (default that of the snapshot's id)")
	return m.jsonFlag(c)
}

// archiveFile opens a file to be read twice: its manifest says where it goes. done ends that.
func (m *Main) archiveFile(name string) (file *os.File, done func(), err error) {
	if name != "-" {
		if err := noPipe(name); err != nil {
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
func (m *Main) importArchive(ctx context.Context, file *os.File, into string) error {
	r, err := wholeArchive(file) // also of a snapshot that is there already
	if err != nil {
		return &fixed{err, "give a file that `tidemark snapshot export` wrote, whole; one that was cut off on its way is to be copied again"}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(file.Name()), err)
	}
	if manifest := r.Manifest(); manifest.Kind == snapshot.OfSession {
		return m.importSession(ctx, file, manifest.Node.ID, into)
	}
	if into != "" {
		return usagef("--session: this is a snapshot of Claude Code; it is kept beside the others, and `tidemark branch` makes a session of it")
	}
	store, err := m.claudeStore()
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
	if m.json {
		return m.printJSON(struct {
			Snapshot snapshot.Node `json:"snapshot"`
			Again    bool          `json:"again,omitempty"`
		}{n, again})
	}
	m.tellSnapshot("snapshot", n)
	if again {
		m.err.line("it was here already")
	}
	m.out.printf("go on     tidemark branch %s\n", n.ID)
	return nil
}

func (m *Main) importSession(ctx context.Context, file io.Reader, id, into string) error {
	return m.with(ctx, func(c *client) error {
		path := "/v1/snapshots/" + url.PathEscape(id) + "/archive"
		if into != "" {
			path += "?session=" + url.QueryEscape(into)
		}
		resp, err := c.do(ctx, http.MethodPut, path, io.NopCloser(file), "Content-Type", snapshot.ArchiveType)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
		if err != nil {
			return fmt.Errorf("read answer of %s: %w", c.where, err)
		}
		var in session.Carried
		if err := json.Unmarshal(raw, &in); err != nil {
			return fmt.Errorf("answer of %s to the import: %w", c.where, err)
		}
		if m.json {
			return m.printJSON(in)
		}
		m.tellSnapshot("snapshot", in.Node)
		if in.Again {
			m.err.line("it was here already")
		}
		m.out.printf("go on     tidemark chat '%s'\n", plainKey(string(in.Key)))
		return nil
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

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

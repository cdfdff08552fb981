package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/wasi"
)

// remoteTools is why a server elsewhere is not given modules.
const remoteTools = `modules lie in the home folder of the machine where "tidemark serve" runs, and %s is elsewhere`

// tools opens the tools of this machine's home, which needs no store: a server may have that.
func tools(ctx context.Context, m *cli.Main) (*wasi.Tools, error) {
	base, err := m.Named()
	if err != nil {
		return nil, err
	}
	if base != "" {
		return nil, cli.Advise(fmt.Errorf(remoteTools, base),
			"run `tidemark tool` on that machine, without --server and TIDEMARK_SERVER. A Cloudflare Worker has no such tools: it cannot compile a module at run time, and nothing there ends one that loops, which would end all conversations of the isolate; give it tools by an MCP server")
	}
	home, err := m.HomeDir()
	if err != nil {
		return nil, err
	}
	cfg, _, err := m.Load(ctx, home)
	if err != nil {
		return nil, err
	}
	return wasi.Open(wasi.Config{Home: home, Reserved: node.BuiltInTools, Logger: m.Logger(cfg, true)})
}

// withTools opens the tools, carries f out and closes them.
func withTools(ctx context.Context, m *cli.Main, f func(*wasi.Tools) error) error {
	ts, err := tools(ctx, m)
	if err != nil {
		return err
	}
	return errors.Join(f(ts), ts.Close())
}

// toolFlags say what a manifest says.
type toolFlags struct {
	Manifest, Name, Description, Schema, Mount string
	Force                                      bool
}

func addTool(ctx context.Context, m *cli.Main, ts *wasi.Tools, file string, f toolFlags) error {
	manifest, err := f.read(file)
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	module, err := io.ReadAll(io.LimitReader(in, wasi.MaxModule+1))
	if err != nil {
		return fmt.Errorf("read module: %w", err)
	}
	if m.Progress {
		m.Err.Line("(compiling " + cli.Size(int64(len(module))) + ")")
	}
	began := time.Now()
	one, err := ts.Add(ctx, module, manifest, f.Force)
	if errors.Is(err, tidemark.ErrConflict) {
		return cli.Advise(err, "give --force to replace it, or --name another")
	}
	if err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(one)
	}
	m.Out.Printf("tool %s is installed: %s, compiled in %s\n", one.Name, cli.Size(one.Bytes), time.Since(began).Round(time.Millisecond))
	if one.Mount != "" {
		m.Out.Printf("it may read %s\n", one.Mount)
	}
	m.Out.Printf("try it: tidemark tool test %s '{…}'\n", one.Name)
	return nil
}

// read makes a manifest of a file and what is said over it.
func (f toolFlags) read(module string) (wasi.Manifest, error) {
	var out wasi.Manifest
	path := f.Manifest
	if path == "" && (f.Name == "" || f.Description == "" || f.Schema == "") {
		for _, p := range []string{strings.TrimSuffix(module, filepath.Ext(module)) + ".json", filepath.Join(filepath.Dir(module), "tool.json")} {
			if _, err := os.Stat(p); err == nil {
				path = p
				break
			}
		}
		if path == "" {
			return out, cli.Advise(errors.New("there is no manifest"), "give --manifest FILE.json, or --name, --description and --schema")
		}
	}
	members := map[string]any{}
	if path != "" {
		raw, err := cli.ReadFile(path)
		if err != nil {
			return out, err
		}
		var in map[string]json.RawMessage
		if err := json.Unmarshal(raw, &in); err != nil {
			return out, fmt.Errorf("manifest %s: %w: %w", path, err, tidemark.ErrInvalid)
		}
		for k, v := range in {
			members[k] = v
		}
	}
	if err := f.over(members); err != nil {
		return out, err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return out, err
	}
	if out, err = wasi.ParseManifest(raw); err != nil && path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return out, err
}

// over puts what the flags say over the members of a manifest.
func (f toolFlags) over(members map[string]any) error {
	for k, v := range map[string]string{"name": f.Name, "description": f.Description} {
		if v != "" {
			members[k] = v
		}
	}
	if f.Mount != "" {
		dir, err := filepath.Abs(f.Mount)
		if err != nil {
			return err
		}
		members["mount"] = dir
	}
	if f.Schema == "" {
		return nil
	}
	raw := []byte(f.Schema)
	if !strings.HasPrefix(strings.TrimSpace(f.Schema), "{") {
		var err error
		if raw, err = cli.ReadFile(f.Schema); err != nil {
			return fmt.Errorf("--schema: %w", err)
		}
	}
	if !json.Valid(raw) {
		return cli.Usagef("--schema: want a JSON schema such as {\"type\":\"object\"}, or a file with one")
	}
	members["input_schema"] = json.RawMessage(raw)
	return nil
}

func toolInput(m *cli.Main, arg string) (json.RawMessage, error) {
	raw := []byte(arg)
	if arg == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(m.Stdin, wasi.MaxInput+1)); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
	}
	if !json.Valid(raw) {
		return nil, cli.Usagef("the input is no JSON; want an object such as '{\"text\":\"hello\"}'")
	}
	return raw, nil
}

func testTool(ctx context.Context, m *cli.Main, ts *wasi.Tools, name string, input json.RawMessage) error {
	if _, err := ts.Find(name); errors.Is(err, tidemark.ErrNotFound) {
		return toolFix(err)
	} else if err != nil {
		return cli.Advise(err, "mend it, add it again with --force, or take it away with `tidemark tool rm`")
	}
	r, err := ts.Run(ctx, tidemark.ToolUse("test", name, input))
	if err != nil {
		return err
	}
	if m.JSON {
		err = m.PrintJSON(map[string]any{"result": r.Result, "ms": float64(r.Took.Microseconds()) / 1000, "memory": r.Memory, "output": r.Output}) //nolint:mnd // ms
	} else {
		for _, b := range r.Result.Content {
			m.Out.Line(cmp.Or(b.Text, "("+b.Type+")"))
		}
		m.Err.Printf("%s, %s of memory, %s of output, %s\n", map[bool]string{false: "ok", true: "is_error"}[r.Result.IsError], cli.Size(r.Memory), cli.Size(int64(r.Output)), r.Took.Round(10*time.Microsecond)) //nolint:mnd // readable
	}
	if r.Result.IsError {
		err = errors.Join(err, cli.ErrTold)
	}
	return err
}

// toolFix gives an error of the folder of tools its advice.
func toolFix(err error) error {
	switch {
	case errors.Is(err, tidemark.ErrNotFound):
		return cli.Advise(err, "`tidemark tool ls` lists those that are there")
	case errors.Is(err, fs.ErrPermission):
		return cli.Advise(err, "make the folder writable")
	}
	return err
}

func toolAdd(ctx context.Context, m *cli.Main, f *toolFlags) error {
	return withTools(ctx, m, func(ts *wasi.Tools) error { return addTool(ctx, m, ts, m.Args[0], *f) })
}

func toolTest(ctx context.Context, m *cli.Main) error {
	input, err := toolInput(m, append(m.Args, "{}")[1])
	if err != nil {
		return err
	}
	return withTools(ctx, m, func(ts *wasi.Tools) error { return testTool(ctx, m, ts, m.Args[0], input) })
}

func toolRm(ctx context.Context, m *cli.Main) error {
	return withTools(ctx, m, func(ts *wasi.Tools) error {
		name := m.Args[0]
		if err := ts.Remove(name); err != nil {
			return toolFix(err)
		}
		return cli.Either(m, map[string]string{"removed": name}, func() error {
			m.Out.Printf("tool %s is removed\n", name)
			return nil
		})
	})
}

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

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/wasi"
)

// builtInTools are the names that no module may take.
var builtInTools = []string{
	"recall", "task_state", episodes.ToolName, paging.ReleaseTool, paging.FaultTool,
	agent.ToolRead, agent.ToolAppend, agent.ToolSearch, agent.ToolEdit, agent.ToolSchedule, skill.Tool, "delegate",
}

func (m *Main) toolCommand() *cobra.Command {
	c := group("tool", "Tools of your own: WebAssembly modules that the model may call",
		`  tidemark tool add datecalc.wasm --manifest datecalc.json
  tidemark tool test datecalc '{"from":"2024-02-29"}'
  tidemark tool ls
  tidemark tool rm datecalc`,
		m.toolAdd(), m.toolLs(), m.toolTest(), m.toolRm())
	c.Long = `Tools of your own: WebAssembly modules (WASI preview 1) that the model may call.
A module gets its input as JSON on standard input and answers on standard output.
It sees neither network nor files, but a folder that its manifest mounts to read;
its time, memory and output are bounded. docs/modules.md says how to write one.

A server that runs takes up what is added, replaced and removed, without restart.`
	return c
}

// remoteTools is why a server elsewhere is not given modules.
const remoteTools = `modules lie in the home folder of the machine where "tidemark serve" runs, and %s is elsewhere`

// tools opens the tools of this machine's home, which needs no store: a server may have that.
func (m *Main) tools(ctx context.Context) (*wasi.Tools, error) {
	base, err := m.named()
	if err != nil {
		return nil, err
	}
	if base != "" {
		return nil, &fixed{fmt.Errorf(remoteTools, base),
			"run `tidemark tool` on that machine, without --server and TIDEMARK_SERVER. A Cloudflare Worker has no such tools: it cannot compile a module at run time, and nothing there ends one that loops, which would end all conversations of the isolate; give it tools by an MCP server"}
	}
	home, err := m.homeDir()
	if err != nil {
		return nil, err
	}
	cfg, _, err := m.load(ctx, home)
	if err != nil {
		return nil, err
	}
	return wasi.Open(wasi.Config{Home: home, Reserved: builtInTools, Logger: m.logger(cfg, true)})
}

// withTools opens the tools, carries f out and closes them.
func (m *Main) withTools(ctx context.Context, f func(*wasi.Tools) error) error {
	ts, err := m.tools(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(ts), ts.Close())
}

// toolFlags say what a manifest says.
type toolFlags struct {
	manifest, name, description, schema, mount string
	force                                      bool
}

func (m *Main) toolAdd() *cobra.Command {
	var f toolFlags
	c := &cobra.Command{Use: "add FILE.wasm", Short: "Install a module as a tool", Args: cobra.ExactArgs(1),
		Long: `Install a module with its manifest. Without --manifest, FILE.json beside the module or
tool.json in its folder is taken, if --name, --description and --schema are not given.
The module is checked and compiled first; a tool of the same name is only replaced with
--force, and calls of the old one that are in work end as they began.`,
		Example: `  tidemark tool add datecalc.wasm --manifest examples/datecalc/tool.json
  tidemark tool add count.wasm --name count --description "Count words." --schema '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}'
  tidemark tool add notes.wasm --manifest notes.json --mount ~/notes --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.withTools(cmd.Context(), func(ts *wasi.Tools) error { return m.addTool(cmd.Context(), ts, args[0], f) })
		}}
	c.Flags().StringVar(&f.manifest, "manifest", "", "the manifest, a JSON file")
	c.Flags().StringVar(&f.name, "name", "", "name of the tool, over the manifest's")
	c.Flags().StringVar(&f.description, "description", "", "what it does and when to use it, for the model")
	c.Flags().StringVar(&f.schema, "schema", "", "JSON schema of its input, or a file with one")
	c.Flags().StringVar(&f.mount, "mount", "", "folder that it may read, as /data")
	c.Flags().BoolVar(&f.force, "force", false, "replace a tool of the same name")
	return m.jsonFlag(c)
}

func (m *Main) addTool(ctx context.Context, ts *wasi.Tools, file string, f toolFlags) error {
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
		m.err.line("(compiling " + size(int64(len(module))) + ")")
	}
	began := time.Now()
	one, err := ts.Add(ctx, module, manifest, f.force)
	if errors.Is(err, tidemark.ErrConflict) {
		return &fixed{err, "give --force to replace it, or --name another"}
	}
	if err != nil {
		return err
	}
	if m.json {
		return m.printJSON(one)
	}
	m.out.printf("tool %s is installed: %s, compiled in %s\n", one.Name, size(one.Bytes), time.Since(began).Round(time.Millisecond))
	if one.Mount != "" {
		m.out.printf("it may read %s\n", one.Mount)
	}
	m.out.printf("try it: tidemark tool test %s '{…}'\n", one.Name)
	return nil
}

// read makes a manifest of a file and what is said over it.
func (f toolFlags) read(module string) (wasi.Manifest, error) {
	var out wasi.Manifest
	path := f.manifest
	if path == "" && (f.name == "" || f.description == "" || f.schema == "") {
		for _, p := range []string{strings.TrimSuffix(module, filepath.Ext(module)) + ".json", filepath.Join(filepath.Dir(module), "tool.json")} {
			if _, err := os.Stat(p); err == nil {
				path = p
				break
			}
		}
		if path == "" {
			return out, &fixed{errors.New("there is no manifest"), "give --manifest FILE.json, or --name, --description and --schema"}
		}
	}
	members := map[string]any{}
	if path != "" {
		raw, err := readFile(path)
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
	for k, v := range map[string]string{"name": f.name, "description": f.description} {
		if v != "" {
			members[k] = v
		}
	}
	if f.mount != "" {
		dir, err := filepath.Abs(f.mount)
		if err != nil {
			return err
		}
		members["mount"] = dir
	}
	if f.schema == "" {
		return nil
	}
	raw := []byte(f.schema)
	if !strings.HasPrefix(strings.TrimSpace(f.schema), "{") {
		var err error
		if raw, err = readFile(f.schema); err != nil {
			return fmt.Errorf("--schema: %w", err)
		}
	}
	if !json.Valid(raw) {
		return usagef("--schema: want a JSON schema such as {\"type\":\"object\"}, or a file with one")
	}
	members["input_schema"] = json.RawMessage(raw)
	return nil
}

func (m *Main) toolTest() *cobra.Command {
	c := &cobra.Command{Use: "test NAME [JSON | -]", Short: "Run a tool once, as the model would", Args: cobra.RangeArgs(1, 2),
		Long: `Run a tool once, as the model would: within its limits, with its input checked against its
schema. The input is a JSON object, - reads it from standard input, none is {}. The result
goes to standard output; a tool that fails ends with exit code 1.`,
		Example: `  tidemark tool test datecalc '{"from":"2024-02-29","add":{"months":1}}'
  echo '{"from":"today"}' | tidemark tool test datecalc - --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := m.toolInput(append(args, "{}")[1])
			if err != nil {
				return err
			}
			return m.withTools(cmd.Context(), func(ts *wasi.Tools) error { return m.testTool(cmd.Context(), ts, args[0], input) })
		}}
	return m.jsonFlag(c)
}

func (m *Main) toolInput(arg string) (json.RawMessage, error) {
	raw := []byte(arg)
	if arg == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(m.Stdin, wasi.MaxInput+1)); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
	}
	if !json.Valid(raw) {
		return nil, usagef("the input is no JSON; want an object such as '{\"text\":\"hello\"}'")
	}
	return raw, nil
}

func (m *Main) testTool(ctx context.Context, ts *wasi.Tools, name string, input json.RawMessage) error {
	if _, err := ts.Find(name); errors.Is(err, tidemark.ErrNotFound) {
		return toolFix(err)
	} else if err != nil {
		return &fixed{err, "mend it, add it again with --force, or take it away with `tidemark tool rm`"}
	}
	r, err := ts.Run(ctx, tidemark.ToolUse("test", name, input))
	if err != nil {
		return err
	}
	if m.json {
		err = m.printJSON(map[string]any{"result": r.Result, "ms": float64(r.Took.Microseconds()) / 1000, "memory": r.Memory, "output": r.Output}) //nolint:mnd // ms
	} else {
		for _, b := range r.Result.Content {
			m.out.line(cmp.Or(b.Text, "("+b.Type+")"))
		}
		m.err.printf("%s, %s of memory, %s of output, %s\n", map[bool]string{false: "ok", true: "is_error"}[r.Result.IsError], size(r.Memory), size(int64(r.Output)), r.Took.Round(10*time.Microsecond)) //nolint:mnd // readable
	}
	if r.Result.IsError {
		err = errors.Join(err, errTold)
	}
	return err
}

func (m *Main) toolRm() *cobra.Command {
	c := &cobra.Command{Use: "rm NAME", Short: "Remove a tool", Args: cobra.ExactArgs(1),
		Long:    `Remove a tool with its module. Calls that are in work end as they began.`,
		Example: `  tidemark tool rm datecalc`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.withTools(cmd.Context(), func(ts *wasi.Tools) error {
				if err := ts.Remove(args[0]); err != nil {
					return toolFix(err)
				}
				if m.json {
					return m.printJSON(map[string]string{"removed": args[0]})
				}
				m.out.printf("tool %s is removed\n", args[0])
				return nil
			})
		}}
	return m.jsonFlag(c)
}

// toolFix gives an error of the folder of tools its advice.
func toolFix(err error) error {
	switch {
	case errors.Is(err, tidemark.ErrNotFound):
		return &fixed{err, "`tidemark tool ls` lists those that are there"}
	case errors.Is(err, fs.ErrPermission):
		return &fixed{err, "make the folder writable"}
	}
	return err
}

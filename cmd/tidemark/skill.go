package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/wasi"
)

// skillList is what a server says of the skills of an agent.
type skillList struct {
	Skills []agent.Skill `json:"skills"`
	More   bool          `json:"more,omitempty"`
}

// skillPath is the path of a file of a skill in the API. The names were looked at: a URL loses what dots do.
func skillPath(of, name, file string) string {
	path := "/skills/" + url.PathEscape(name)
	if file != "" && file != skill.Main {
		path += "/" + file
	}
	return cli.AgentPath(of, path)
}

// skillNamed holds the arguments of a command to be of a skill.
func skillNamed(args []string) (name, file string, err error) {
	name = args[0]
	if err := skill.CheckName(name); err != nil {
		return "", "", cli.Advise(err, "`tidemark skill ls` lists the skills there are")
	}
	if len(args) > 1 {
		file = args[1]
		if err := skill.CheckFile(file); err != nil {
			return "", "", cli.Advise(err, "`tidemark skill ls --json` lists the files of each")
		}
	}
	return name, file, nil
}

// tellSkills prints the skills as a table, and below it what is none.
func tellSkills(m *cli.Main, of string, out skillList) {
	rows := [][]string{{"SKILL", "FOR", "FILES", "CHANGED", "DESCRIPTION"}}
	for _, s := range out.Skills {
		whom := "you"
		if s.Peers {
			whom = "all"
		}
		if s.Problem == "" {
			rows = append(rows, []string{s.Name, whom, fmt.Sprint(1 + len(s.Files)), cli.When(s.Modified), cli.OneLine(s.Description, 80)})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	for _, s := range out.Skills {
		if s.Problem != "" {
			m.Err.Line("left out: agents/" + of + "/" + skill.Folder + cli.Safe(s.Name) + ": " + cli.Safe(s.Problem))
		}
	}
	if out.More {
		m.Err.Line("there are more than are looked at")
	}
}

// addedFile is a file of a skill on its way into the bucket.
type addedFile struct {
	path string // with /, below the skill
	text []byte
}

// maxAdded bounds the files of a skill that is added.
const maxAdded = 200

// readSkill reads a skill from the disk, all of it before anything is sent: SKILL.md is the last, so that a skill is
// whole when it is seen.
func readSkill(path string) (name string, files []addedFile, err error) {
	const fix = "docs/skills.md says what a skill looks like"
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, err
	}
	main := path
	if info.IsDir() {
		main = filepath.Join(path, skill.Main)
		if _, err := os.Stat(main); errors.Is(err, fs.ErrNotExist) {
			return "", nil, cli.Advise(fmt.Errorf("folder %s has no %s", path, skill.Main), "`tidemark skill new NAME` makes a folder to fill in")
		}
		if files, err = besides(path); err != nil {
			return "", nil, cli.Advise(err, fix)
		}
	}
	text, err := cli.ReadUpTo(main, skill.MaxMain+1)
	if err != nil {
		return "", nil, err
	}
	s, err := skill.Parse(text)
	if err != nil {
		return "", nil, cli.Advise(fmt.Errorf("%s: %w", main, err), fix)
	}
	return s.Name, append(files, addedFile{skill.Main, text}), nil
}

// besides reads the files of a folder but SKILL.md; hidden ones are left out, links are not followed.
func besides(folder string) (files []addedFile, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), ".") && rel != "." && d.IsDir():
			return filepath.SkipDir
		case strings.HasPrefix(d.Name(), "."), d.IsDir(), rel == skill.Main, !d.Type().IsRegular():
			return nil
		case len(files) == maxAdded:
			return fmt.Errorf("folder %s has over %d files", folder, maxAdded)
		}
		rel = filepath.ToSlash(rel)
		if err := skill.CheckFile(rel); err != nil {
			return err
		}
		text, err := cli.ReadUpTo(path, skill.MaxFile+1)
		if err == nil {
			err = skill.CheckContent(rel, text)
		}
		files = append(files, addedFile{rel, text})
		return err
	})
	return files, err
}

// makeSkill makes the folder of a skill here; one that is there is left alone.
func makeSkill(name string) error {
	const public, readable = 0o755, 0o644
	if err := os.Mkdir(name, public); err != nil {
		return cli.Advise(err, "take another name, or remove the folder")
	}
	text := skill.Skill{
		Name: name, Description: "Say here in one sentence what it is for and when to use it.",
		Body: "\n# " + name + "\n\nWrite here what to do, step by step. Longer matter goes into files beside this one,\nnamed here, such as references/more.md: they are read when they are needed.\n",
	}.Print()
	return os.WriteFile(filepath.Join(name, skill.Main), text, readable)
}

func skillLs(ctx context.Context, m *cli.Main, f *ofAgent) error {
	return tell(ctx, m, http.MethodGet, cli.AgentPath(f.Agent, "/skills"), nil, func(out skillList) {
		tellSkills(m, f.Agent, out)
		cli.Nothing(m, len(out.Skills), "there are no skills; `tidemark skill new NAME` begins one")
	})
}

func skillShow(ctx context.Context, m *cli.Main, f *ofAgent) error {
	name, file, err := skillNamed(m.Args)
	if err != nil {
		return err
	}
	return with(ctx, m, func(c *client) error { return c.Raw(ctx, skillPath(f.Agent, name, file), m.Out) })
}

func skillRm(ctx context.Context, m *cli.Main, f *ofAgent) error {
	name, file, err := skillNamed(m.Args)
	if err != nil {
		return err
	}
	path := skillPath(f.Agent, name, file)
	if file == skill.Main {
		path += "/" + file
	}
	return with(ctx, m, func(c *client) error {
		if err := c.Call(ctx, http.MethodDelete, path, nil, nil); err != nil {
			return err
		}
		m.Out.Printf("%s is removed\n", strings.Join(m.Args, " "))
		return nil
	})
}

func skillAdd(ctx context.Context, m *cli.Main, f *ofAgent) error {
	name, files, err := readSkill(m.Args[0])
	if err != nil {
		return err
	}
	return with(ctx, m, func(c *client) error {
		for _, one := range files {
			if err := c.Send(ctx, http.MethodPut, skillPath(f.Agent, name, one.path), bytes.NewReader(one.text), nil); err != nil {
				return fmt.Errorf("%s: %w", one.path, err)
			}
		}
		m.Out.Printf("%s is there, %s; conversations that begin now, or are compacted or reset, see it\n", name, cli.Plural(len(files), "file"))
		return nil
	})
}

func skillNew(_ context.Context, m *cli.Main) error {
	name, _, err := skillNamed(m.Args)
	if err == nil {
		err = makeSkill(name)
	}
	if err != nil {
		return err
	}
	m.Out.Printf("%s is made; write it, then `tidemark skill add %s`\n", filepath.Join(name, skill.Main), name)
	return nil
}

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
	module, err := cli.ReadUpTo(file, wasi.MaxModule+1)
	if err != nil {
		return err
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
	return cli.Either(m, one, func() {
		m.Out.Printf("tool %s is installed: %s, compiled in %s\n", one.Name, cli.Size(one.Bytes), time.Since(began).Round(time.Millisecond))
		if one.Mount != "" {
			m.Out.Printf("it may read %s\n", one.Mount)
		}
		m.Out.Printf("try it: tidemark tool test %s '{…}'\n", one.Name)
	})
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
	input := []byte(append(m.Args, "{}")[1])
	if string(input) == "-" {
		var err error
		if input, err = io.ReadAll(io.LimitReader(m.Stdin, wasi.MaxInput+1)); err != nil {
			return fmt.Errorf("read input: %w", err)
		}
	}
	if !json.Valid(input) {
		return cli.Usagef("the input is no JSON; want an object such as '{\"text\":\"hello\"}'")
	}
	return withTools(ctx, m, func(ts *wasi.Tools) error { return testTool(ctx, m, ts, m.Args[0], input) })
}

func toolRm(ctx context.Context, m *cli.Main) error {
	return withTools(ctx, m, func(ts *wasi.Tools) error {
		name := m.Args[0]
		if err := ts.Remove(name); err != nil {
			return toolFix(err)
		}
		return cli.Either(m, map[string]string{"removed": name}, func() {
			m.Out.Printf("tool %s is removed\n", name)
		})
	})
}

package main

import (
	"bytes"
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

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/skill"
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
		if main = filepath.Join(path, skill.Main); errors.Is(exists(main), fs.ErrNotExist) {
			return "", nil, cli.Advise(fmt.Errorf("folder %s has no %s", path, skill.Main), "`tidemark skill new NAME` makes a folder to fill in")
		}
		if files, err = besides(path); err != nil {
			return "", nil, cli.Advise(err, fix)
		}
	}
	text, err := readText(main, skill.MaxMain)
	if err != nil {
		return "", nil, err
	}
	s, err := skill.Parse(text)
	if err != nil {
		return "", nil, cli.Advise(fmt.Errorf("%s: %w", main, err), fix)
	}
	return s.Name, append(files, addedFile{skill.Main, text}), nil
}

func exists(path string) error {
	_, err := os.Stat(path)
	return err
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
		text, err := readText(path, skill.MaxFile)
		if err == nil {
			err = skill.CheckContent(rel, text)
		}
		files = append(files, addedFile{rel, text})
		return err
	})
	return files, err
}

// readText reads a file, and one byte beyond its bound at most.
func readText(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
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
	return tell(ctx, m, http.MethodGet, cli.AgentPath(f.Agent, "/skills"), nil, func(out skillList) error {
		tellSkills(m, f.Agent, out)
		return cli.Nothing(m, len(out.Skills), "there are no skills; `tidemark skill new NAME` begins one")
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
			resp, err := c.Do(ctx, http.MethodPut, skillPath(f.Agent, name, one.path), bytes.NewReader(one.text))
			if err != nil {
				return fmt.Errorf("%s: %w", one.path, err)
			}
			if err := resp.Body.Close(); err != nil {
				return err
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

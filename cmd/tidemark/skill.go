package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/skill"
)

func (m *Main) skillCommand() *cobra.Command {
	return group("skill", "Instructions that the model reads when work calls for them", `  tidemark skill new invoice                a folder to fill in
  tidemark skill add invoice                the folder, or one SKILL.md
  tidemark skill ls                         also what is none, and why
  tidemark skill show invoice
  tidemark skill show invoice references/rates.md
  tidemark skill rm invoice`,
		m.skillLs(), m.skillShow(), m.skillAdd(), m.skillRm(), m.skillNew())
}

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
	return agentPath(of, path)
}

// skillNamed holds the arguments of a command to be of a skill.
func skillNamed(args []string) (name, file string, err error) {
	name = args[0]
	if err := skill.CheckName(name); err != nil {
		return "", "", &fixed{err, "`tidemark skill ls` lists the skills there are"}
	}
	if len(args) > 1 {
		file = args[1]
		if err := skill.CheckFile(file); err != nil {
			return "", "", &fixed{err, "`tidemark skill ls --json` lists the files of each"}
		}
	}
	return name, file, nil
}

func (m *Main) skillLs() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "ls", Short: "List skills, and what is none with the reason", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out skillList
				if err := c.get(cmd.Context(), agentPath(of, "/skills"), &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				m.tellSkills(of, out)
				return nothing(m, len(out.Skills), "there are no skills; `tidemark skill new NAME` begins one")
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

// tellSkills prints the skills as a table, and below it what is none.
func (m *Main) tellSkills(of string, out skillList) {
	rows := [][]string{{"SKILL", "FOR", "FILES", "CHANGED", "DESCRIPTION"}}
	for _, s := range out.Skills {
		whom := "you"
		if s.Peers {
			whom = "all"
		}
		if s.Problem == "" {
			rows = append(rows, []string{s.Name, whom, fmt.Sprint(1 + len(s.Files)), when(s.Modified), oneLine(s.Description, 80)})
		}
	}
	if len(rows) > 1 {
		table(m.out, rows)
	}
	for _, s := range out.Skills {
		if s.Problem != "" {
			m.err.line("left out: agents/" + of + "/" + skill.Folder + safe(s.Name) + ": " + safe(s.Problem))
		}
	}
	if out.More {
		m.err.line("there are more than are looked at")
	}
}

func (m *Main) skillShow() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "show NAME [FILE]", Short: "Print a skill, or a file of it", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, file, err := skillNamed(args)
			if err != nil {
				return err
			}
			return m.with(cmd.Context(), func(c *client) error { return c.raw(cmd.Context(), skillPath(of, name, file), m.out) })
		}}
	agentFlag(c, &of)
	return c
}

func (m *Main) skillRm() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "rm NAME [FILE]", Short: "Remove a skill with all its files, or one file of it", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, file, err := skillNamed(args)
			if err != nil {
				return err
			}
			path := skillPath(of, name, file)
			if file == skill.Main {
				path += "/" + file
			}
			return m.with(cmd.Context(), func(c *client) error {
				if err := c.call(cmd.Context(), http.MethodDelete, path, nil, nil); err != nil {
					return err
				}
				m.out.printf("%s is removed\n", strings.Join(args, " "))
				return nil
			})
		}}
	agentFlag(c, &of)
	return c
}

func (m *Main) skillAdd() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "add FOLDER|FILE", Short: "Put a skill into the bucket, in the place of one of its name", Args: cobra.ExactArgs(1),
		Long: `Put a skill into the bucket: a folder with SKILL.md and text files beside it, or
one SKILL.md. Its name is that of the front matter. Files that were in the bucket
and are not in the folder stay; ` + "`tidemark skill rm NAME FILE`" + ` removes one.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, files, err := readSkill(args[0])
			if err != nil {
				return err
			}
			return m.with(cmd.Context(), func(c *client) error {
				for _, f := range files {
					resp, err := c.do(cmd.Context(), http.MethodPut, skillPath(of, name, f.path), bytes.NewReader(f.text))
					if err != nil {
						return fmt.Errorf("%s: %w", f.path, err)
					}
					if err := resp.Body.Close(); err != nil {
						return err
					}
				}
				m.out.printf("%s is there, %s; conversations that begin now, or are compacted or reset, see it\n", name, plural(len(files), "file"))
				return nil
			})
		}}
	agentFlag(c, &of)
	return c
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
			return "", nil, &fixed{fmt.Errorf("folder %s has no %s", path, skill.Main), "`tidemark skill new NAME` makes a folder to fill in"}
		}
		if files, err = besides(path); err != nil {
			return "", nil, &fixed{err, fix}
		}
	}
	text, err := readText(main, skill.MaxMain)
	if err != nil {
		return "", nil, err
	}
	s, err := skill.Parse(text)
	if err != nil {
		return "", nil, &fixed{fmt.Errorf("%s: %w", main, err), fix}
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

func (m *Main) skillNew() *cobra.Command {
	return &cobra.Command{Use: "new NAME", Short: "Make a folder with a SKILL.md to fill in", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name, _, err := skillNamed(args)
			if err != nil {
				return err
			}
			if err := makeSkill(name); err != nil {
				return err
			}
			m.out.printf("%s is made; write it, then `tidemark skill add %s`\n", filepath.Join(name, skill.Main), name)
			return nil
		}}
}

// makeSkill makes the folder of a skill here; one that is there is left alone.
func makeSkill(name string) error {
	const public, readable = 0o755, 0o644
	if err := os.Mkdir(name, public); err != nil {
		return &fixed{err, "take another name, or remove the folder"}
	}
	text := skill.Skill{
		Name: name, Description: "Say here in one sentence what it is for and when to use it.",
		Body: "\n# " + name + "\n\nWrite here what to do, step by step. Longer matter goes into files beside this one,\nnamed here, such as references/more.md: they are read when they are needed.\n",
	}.Print()
	return os.WriteFile(filepath.Join(name, skill.Main), text, readable)
}

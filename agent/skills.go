package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/skill"
)

const (
	// SkillsFresh is how long what was found in the bucket is taken for what is there: a prompt within it costs
	// no listing. What is written through the agent is seen at once.
	SkillsFresh = time.Minute

	skillPages = 2   // of 1,000 keys, files beside SKILL.md among them
	maxSkills  = 500 // that are listed
	skillReads = 100 // of SKILL.md in one look: of those that changed since the last
	skillFiles = 40  // beside SKILL.md that are named
)

// skillTables keep what was found in the bucket. A list is stored by whoever saw the version that it is of: what
// was looked up while somebody wrote is not.
var skillTables = []string{
	`CREATE TABLE agent_skills(agent TEXT PRIMARY KEY, version INTEGER NOT NULL, at INTEGER NOT NULL, list TEXT NOT NULL)`,
}

// Skill is a folder of skills in the bucket.
type Skill struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"` // as a prompt shows it
	Peers       bool      `json:"peers,omitempty"`       // also for people who are not the owner
	Files       []string  `json:"files,omitempty"`       // beside SKILL.md, the first 40
	Size        int64     `json:"size"`                  // of SKILL.md
	ETag        string    `json:"etag,omitempty"`        // of SKILL.md as it was read
	Modified    time.Time `json:"modified,omitzero"`
	Problem     string    `json:"problem,omitempty"` // why no conversation has it
}

// may reports whether a scope is shown a skill.
func (s Skill) may(scope tidemark.Scope) bool { return s.Problem == "" && (scope.Owner || s.Peers) }

// Skills lists what lies in the folder of skills, also what is none and why, in order of names. more says that
// there are more than are looked at. It is for the owner: it looks into the bucket.
func (sk *skillset) Skills(ctx context.Context) (list []Skill, more bool, err error) {
	kept, err := sk.keptSkills(ctx)
	if err == nil {
		kept, err = sk.lookSkills(ctx, kept)
	}
	if err != nil {
		return nil, false, fmt.Errorf("list skills: %w", err)
	}
	return kept.Skills, kept.More, nil
}

// kept is what was found in the bucket at a time.
type kept struct {
	Skills []Skill `json:"skills"`
	More   bool    `json:"more,omitempty"`

	version int64
	at      time.Time // zero: it was never looked up, or somebody wrote since
	known   bool      // it is what was found once
}

// skills is what a prompt and the tool know of the skills: as they were within the last minute. When the bucket
// cannot be reached it is what was found last.
func (sk *skillset) skills(ctx context.Context) ([]Skill, error) {
	k, err := sk.keptSkills(ctx)
	if err != nil {
		return nil, err
	}
	if age := sk.now().Sub(k.at); age >= 0 && age < SkillsFresh {
		return k.Skills, nil
	}
	found, err := sk.lookSkills(ctx, k)
	if err != nil && k.known && ctx.Err() == nil {
		sk.cfg.Logger.Warn("look for skills", "agent", sk.cfg.Name, "err", err)
		return k.Skills, nil
	}
	return found.Skills, err
}

func (sk *skillset) keptSkills(ctx context.Context) (k kept, err error) {
	r, err := host.First(ctx, sk.cfg.DB, "read skills", `SELECT version, at, list FROM agent_skills WHERE agent = ? LIMIT 1`, sk.cfg.Name)
	if r == nil {
		return k, err
	}
	k.version, k.known = r.Int(0), r.Text(2) != ""
	if at := r.Int(1); at > 0 {
		k.at = time.UnixMilli(at)
	}
	if k.known {
		err = json.Unmarshal(r.Bytes(2), &k)
	}
	return k, err
}

// lookSkills looks into the bucket: one listing, and a read of each SKILL.md that is not as it was.
func (sk *skillset) lookSkills(ctx context.Context, old kept) (kept, error) {
	now := sk.now()
	found := kept{version: old.version, at: now, known: true}
	objects, more, err := sk.skillObjects(ctx, skill.Folder)
	if err != nil {
		return old, err
	}
	found.Skills = sk.gather(objects)
	if found.More = more || len(found.Skills) > maxSkills; found.More {
		found.Skills = found.Skills[:min(len(found.Skills), maxSkills)]
	}
	before := map[string]Skill{}
	for _, s := range old.Skills {
		before[s.Name] = s
	}
	reads := 0
	for i := range found.Skills {
		s := &found.Skills[i]
		if b := before[s.Name]; s.Problem == "" && s.ETag != "" && b.ETag == s.ETag {
			s.Description, s.Peers, s.Problem = b.Description, b.Peers, b.Problem
			continue
		}
		if s.Problem != "" {
			continue
		}
		if reads++; reads > skillReads {
			s.ETag, s.Problem = "", fmt.Sprintf("not read yet: %d are read at a time, the next with the next prompt or list", skillReads)
			continue
		}
		if err := sk.lookSkill(ctx, s); err != nil {
			return old, err
		}
	}
	raw, err := json.Marshal(found)
	if err == nil {
		err = sk.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO agent_skills(agent, version, at, list) VALUES(?, ?, ?, ?)
			ON CONFLICT(agent) DO UPDATE SET at = excluded.at, list = excluded.list WHERE version = excluded.version`,
			Args: []any{sk.cfg.Name, found.version, now.UnixMilli(), string(raw)}}})
	}
	if err != nil {
		sk.cfg.Logger.Warn("keep the list of skills", "agent", sk.cfg.Name, "err", err) // it is looked up again
	}
	return found, nil
}

// lookSkill reads what a skill says of itself.
func (sk *skillset) lookSkill(ctx context.Context, s *Skill) error {
	if s.Size > skill.MaxMain {
		s.Problem = fmt.Sprintf("%s has %d bytes, at most %d; put more of it into files beside it", skill.Main, s.Size, skill.MaxMain)
		return nil
	}
	_, read, err := sk.readSkill(ctx, s.Name)
	var wrong *skill.Error
	switch {
	case err == nil:
		s.Description, s.Peers = skill.Shown(read.Description), read.Peers
	case errors.As(err, &wrong):
		s.Problem = skill.Main + ", " + wrong.Error()
	case errors.Is(err, tidemark.ErrNotFound), errors.Is(err, tidemark.ErrTooLarge):
		s.ETag, s.Problem = "", "it was changed while it was looked at"
	default:
		return fmt.Errorf("read skill %s: %w", s.Name, err)
	}
	return nil
}

// skillObjects lists the files below a prefix of the agent's folder, within bounds.
func (sk *skillset) skillObjects(ctx context.Context, prefix string) (all []tidemark.Object, more bool, err error) {
	cursor := ""
	for range skillPages {
		page, next, err := sk.cfg.Blobs.List(ctx, sk.blobKey(prefix), cursor, 1000)
		if err != nil {
			return nil, false, err
		}
		if all = append(all, page...); next == "" {
			return all, false, nil
		}
		cursor = next
	}
	return all, true, nil
}

// gather makes one of the files of each folder, in order of names.
func (sk *skillset) gather(objects []tidemark.Object) []Skill {
	var out []Skill
	at := map[string]int{}
	for _, o := range objects {
		name, file, ok := strings.Cut(strings.TrimPrefix(o.Key, sk.blobKey(skill.Folder)), "/")
		if !ok { // a file in the folder itself
			continue
		}
		i, known := at[name]
		if !known {
			i = len(out)
			at[name] = i
			out = append(out, Skill{Name: name, Problem: "there is no " + skill.Main + " in it"})
			if err := skill.CheckName(name); err != nil {
				out[i].Problem = "the folder: " + err.Error()
			}
		}
		switch s := &out[i]; {
		case file == skill.Main:
			s.Size, s.ETag, s.Modified = o.Size, o.ETag, o.Modified
			if skill.CheckName(name) == nil {
				s.Problem = ""
			}
		case len(s.Files) < skillFiles && skill.CheckFile(file) == nil:
			s.Files = append(s.Files, file)
		}
	}
	slices.SortStableFunc(out, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// skillPath is where a file of a skill lies below the agent's folder.
func skillPath(name, file string) (string, error) {
	if err := skill.CheckName(name); err != nil {
		return "", err
	}
	if err := skill.CheckFile(file); err != nil {
		return "", err
	}
	return skill.Folder + name + "/" + file, nil
}

// SkillFile reads a file of a skill; a missing one is ErrNotFound, one that is no text ErrInvalid.
func (sk *skillset) SkillFile(ctx context.Context, name, file string) (File, error) {
	path, err := skillPath(name, file)
	if err != nil {
		return File{}, err
	}
	f, err := sk.loadSkill(ctx, path)
	if err == nil {
		err = skill.CheckContent(file, f.Content)
	}
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

func (sk *skillset) loadSkill(ctx context.Context, path string) (File, error) {
	o, body, err := sk.cfg.Blobs.Get(ctx, sk.blobKey(path))
	if err != nil {
		return File{}, err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, skill.MaxFile+1))
	if err == nil && len(content) > skill.MaxFile {
		err = fmt.Errorf("it has over %d bytes: %w", skill.MaxFile, tidemark.ErrTooLarge)
	}
	return File{Path: path, ETag: o.ETag, Size: int64(len(content)), Modified: o.Modified, Content: content}, err
}

// readSkill reads a skill of an allowed name.
func (sk *skillset) readSkill(ctx context.Context, name string) (File, skill.Skill, error) {
	path, err := skillPath(name, skill.Main)
	if err != nil {
		return File{}, skill.Skill{}, err
	}
	f, err := sk.loadSkill(ctx, path)
	if err != nil {
		return f, skill.Skill{}, err
	}
	s, err := skill.Read(name, f.Content)
	return f, s, err
}

// PutSkill writes a file of a skill. ifMatch is as for [Agent.PutFile]. A SKILL.md that is none is refused, with
// the line that is wrong.
//
// # Errors
//
// ErrConflict when the condition does not hold, ErrInvalid and ErrTooLarge for a bad name, path or text.
func (sk *skillset) PutSkill(ctx context.Context, name, file string, content []byte, ifMatch string) (File, error) {
	path, err := skillPath(name, file)
	if err == nil {
		err = skill.CheckContent(file, content)
	}
	if err == nil && file == skill.Main {
		_, err = skill.Read(name, content)
	}
	if err != nil {
		return File{}, fmt.Errorf("write skill %.80q: %w", name, err)
	}
	opt := tidemark.PutOptions{ContentType: markdown, IfAbsent: ifMatch == "", IfMatch: ifMatch}
	if ifMatch == "*" {
		opt.IfMatch = ""
	}
	o, err := sk.cfg.Blobs.Put(ctx, sk.blobKey(path), bytes.NewReader(content), int64(len(content)), opt)
	if err == nil {
		err = sk.skillsChanged(ctx)
	}
	if err != nil {
		return File{}, fmt.Errorf("write %s: %w", path, err)
	}
	return File{Path: path, ETag: o.ETag, Size: int64(len(content)), Modified: o.Modified}, nil
}

// DeleteSkill removes a file of a skill, or with an empty file all of it; what is not there is ErrNotFound.
func (sk *skillset) DeleteSkill(ctx context.Context, name, file string) error {
	prefix, whole := skill.Folder+name+"/"+file, file == ""
	if whole {
		file = skill.Main
	}
	path, err := skillPath(name, file)
	if err != nil {
		return fmt.Errorf("delete skill: %w", err)
	}
	objects, more, err := sk.skillObjects(ctx, prefix)
	if err != nil {
		return fmt.Errorf("delete %s: %w", prefix, err)
	}
	var keys []string
	for _, o := range objects {
		switch first := o.Key == sk.blobKey(path); {
		case first: // then it is no skill any more, also when the rest cannot be removed
			keys = append([]string{o.Key}, keys...)
		case whole:
			keys = append(keys, o.Key)
		}
	}
	if len(keys) == 0 {
		return fmt.Errorf("delete %s: %w", prefix, tidemark.ErrNotFound)
	}
	for _, key := range keys {
		if err := sk.cfg.Blobs.Delete(ctx, key); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
	}
	if err := sk.skillsChanged(ctx); err != nil {
		return fmt.Errorf("delete %s: %w", prefix, err)
	}
	if more && whole {
		return fmt.Errorf("delete %s: it has more files than are removed at once, delete it again: %w", prefix, tidemark.ErrTooLarge)
	}
	return nil
}

// skillsChanged has the next who asks look into the bucket. What was read of files that did not change stays known.
func (sk *skillset) skillsChanged(ctx context.Context) error {
	return sk.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO agent_skills(agent, version, at, list) VALUES(?, 1, 0, '')
		ON CONFLICT(agent) DO UPDATE SET version = version + 1, at = 0`, Args: []any{sk.cfg.Name}}})
}

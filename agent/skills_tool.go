package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/near"
	"github.com/tidemark-ai/tidemark/skill"
)

// skillTool reads skills. It stands in the offer of conversations whose prompt lists some.
var skillTool = tidemark.Tool{
	Name: skill.Tool, Idempotent: true,
	Description: "Read a skill by name before work that it fits, or a file that it names.",
	InputSchema: []byte(`{"type":"object","properties":{"name":{"type":"string"},"file":{"type":"string"},"from":{"type":"integer","description":"line"},"to":{"type":"integer"}},"required":["name"]}`),
}

// skillSection lists the skills of a scope for a prompt, within a budget of tokens.
func (a *Agent) skillSection(ctx context.Context, scope tidemark.Scope, budget tidemark.Tokens) (string, error) {
	lines, err := a.skillLines(ctx, scope)
	return skill.Section(lines, budget), err
}

func (a *Agent) skillLines(ctx context.Context, scope tidemark.Scope) ([]skill.Line, error) {
	list, err := a.skills(ctx)
	if err != nil {
		return nil, fmt.Errorf("list skills: %w", err)
	}
	var lines []skill.Line
	for _, s := range list {
		if s.may(scope) {
			lines = append(lines, skill.Line{Name: s.Name, Description: s.Description})
		}
	}
	return lines, nil
}

// skillTool answers with the instructions of a skill, or a file beside them, as far as one answer goes.
func (a *Agent) skillTool(ctx context.Context, scope tidemark.Scope, in input) (string, error) {
	if in.Name == "" {
		return a.allSkills(ctx, scope)
	}
	_, s, err := a.readSkill(ctx, in.Name)
	bad := errors.Is(err, tidemark.ErrInvalid) || errors.Is(err, tidemark.ErrTooLarge)
	switch {
	case errors.Is(err, tidemark.ErrNotFound), skill.CheckName(in.Name) != nil:
		return "", a.noSkill(ctx, scope, in.Name)
	case !scope.Owner && (bad || err == nil && !s.Peers): // of one that is wrong it cannot be told for whom it is
		return "", a.noSkill(ctx, scope, in.Name)
	case err != nil:
		return "", fmt.Errorf("skill %s: %w", in.Name, err)
	}
	if in.File == "" || in.File == skill.Main {
		return a.instructions(ctx, s, in)
	}
	f, err := a.SkillFile(ctx, in.Name, in.File)
	if errors.Is(err, tidemark.ErrNotFound) {
		files, err := a.filesOf(ctx, in.Name)
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("skill %s has no file %.80q; it has %s: %w", in.Name, in.File, strings.Join(append(files, skill.Main), ", "), tidemark.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return piece(in.File, string(f.Content), in.From, in.To)
}

func (a *Agent) instructions(ctx context.Context, s skill.Skill, in input) (string, error) {
	text, err := piece("skill "+s.Name, strings.TrimLeft(s.Body, "\r\n"), in.From, in.To)
	if err != nil || in.From > 1 {
		return text, err
	}
	files, err := a.filesOf(ctx, s.Name)
	if err != nil {
		return "", err
	}
	if len(files) > 0 {
		text += "\n[files of this skill, to be read by file: " + strings.Join(files, ", ") + "]"
	}
	return text, nil
}

// filesOf names the files beside SKILL.md.
func (a *Agent) filesOf(ctx context.Context, name string) ([]string, error) {
	objects, _, err := a.cfg.Blobs.List(ctx, a.blobKey(skill.Folder+name+"/"), "", skillFiles+1)
	if err != nil {
		return nil, fmt.Errorf("list files of skill %s: %w", name, err)
	}
	for _, s := range a.gather(objects) {
		return s.Files, nil
	}
	return nil, nil
}

// allSkills lists what has no room in a prompt, too.
func (a *Agent) allSkills(ctx context.Context, scope tidemark.Scope) (string, error) {
	lines, err := a.skillLines(ctx, scope)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, s := range lines {
		line := s.Name + ": " + s.Description + "\n"
		if b.Len()+len(line) > readBytes {
			fmt.Fprintf(&b, "[%d more are left out here]\n", len(lines)-i)
			break
		}
		b.WriteString(line)
	}
	if len(lines) == 0 {
		return "There are no skills.", nil
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// noSkill says of an unknown name which was meant. Of what a scope may not read it says the same.
func (a *Agent) noSkill(ctx context.Context, scope tidemark.Scope, name string) error {
	const most = 20
	lines, err := a.skillLines(ctx, scope)
	if err != nil {
		return err
	}
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i] = l.Name
	}
	hint := "there are none"
	if meant := near.Name(name, names); meant != "" {
		hint = fmt.Sprintf("did you mean %q?", meant)
	} else if len(names) > 0 {
		hint = "there are " + strings.Join(names[:min(len(names), most)], ", ")
	}
	return fmt.Errorf("skill %.80q: %s: %w", name, hint, tidemark.ErrNotFound)
}

package claude

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/transcript"
)

// TestInstalledGroups: what Claude Code reads of our hooks.
func TestInstalledGroups(t *testing.T) {
	s := settingsOf(t, "{}")
	c, err := s.Install()
	must(t, err)
	var got, want any
	must(t, json.Unmarshal(c.After, &got))
	must(t, json.Unmarshal(fmt.Appendf(nil, `{"hooks":{"PreCompact":[{"hooks":[{"type":"command","command":%q,"timeout":60}]}],
		"PostToolUse":[{"matcher":"*","hooks":[{"type":"command","command":%q,"timeout":30}]}]}}`, ownCommand, ownCommand), &want))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNoCopyNoChange: settings whose copy cannot be kept are not changed.
func TestNoCopyNoChange(t *testing.T) {
	s := settingsOf(t, "{}")
	name := filepath.Join(filepath.Dir(s.Path), strings.Repeat("s", 255-len(backupSuffix)+1))
	must(t, os.Rename(s.Path, name))
	s.Path = name
	c, err := s.Install()
	must(t, err)
	if err := c.Apply(); err == nil || readFile(t, name) != "{}" {
		t.Errorf("%v, %s", err, readFile(t, name))
	}
}

func TestHookCommand(t *testing.T) {
	for want, got := range map[string]string{
		"/bin/tidemark hook run":                           HookCommand("/bin/tidemark", ""),
		"/bin/tidemark hook run --home /h":                 HookCommand("/bin/tidemark", "/h"),
		"'/my bin/tidemark' hook run --home '/h o' --keep": HookCommand("/my bin/tidemark", "/h o", "--keep"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestEndsInLine(t *testing.T) {
	for space, want := range map[string]bool{"": false, " \n": false, "/* a */": false, "// a": true, "//": true, "//\n/* a */": false, "/* // */ //": true, "/**/ // a\n": true, "// a\n/**/\n": false} {
		if endsInLine([]byte(space)) != want {
			t.Errorf("%q: want %v", space, want)
		}
	}
}

func TestIndentUnit(t *testing.T) {
	for raw, want := range map[string]string{"{}": "  ", "{\n\t\"a\": 1\n}": "\t", "\n{\n    \"a\": 1\n}": "    ", "{\n\n \"a\": 1}": " ", "{\n" + strings.Repeat(" ", 9) + "\"a\": 1,\n   \"b\": 2}": "   "} {
		if got := indentUnit([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// TestProjectFolder: of a path over the bound a folder that is there is taken, whatever its hash.
func TestProjectFolder(t *testing.T) {
	long, begin := "/p/"+strings.Repeat("a", maxFolder), Encode("/p/" + strings.Repeat("a", maxFolder))[:maxFolder]
	for _, c := range []struct {
		name, project, folder, want string // folder is there; a trailing slash makes it a folder and no file
	}{
		{"none is there", long, "", Encode(long)},
		{"that of another version", long, begin + "-other/", begin + "-other"},
		{"a file", long, begin + "-other", Encode(long)},
		{"one that ends otherwise before the hash", long, begin[:maxFolder-1] + "b-other/", Encode(long)},
		{"its own", long, Encode(long) + "/", Encode(long)},
		{"a short path is itself", "/p/short", "-p-short-other/", "-p-short"},
	} {
		dir := t.TempDir()
		there := filepath.Join(dir, projectsName, c.folder)
		must(t, os.MkdirAll(filepath.Dir(there), 0o700))
		if strings.HasSuffix(c.folder, "/") {
			must(t, os.MkdirAll(there, 0o700))
		} else if c.folder != "" {
			must(t, os.WriteFile(there, nil, 0o600))
		}
		if got := projectFolder(dir, c.project); got != filepath.Join(dir, projectsName, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := projectFolder(filepath.Join(t.TempDir(), "none"), long); filepath.Base(got) != Encode(long) {
		t.Errorf("without any folder: %s", got)
	}
}

// TestLineage: the root comes first; a parent that the journal lacks, or a circle, ends it.
func TestLineage(t *testing.T) {
	j := &journal{byID: map[string]*record{}}
	for _, n := range []struct{ id, parent string }{{"root", ""}, {"child", "root"}, {"leaf", "child"}, {"orphan", "gone"}, {"below", "orphan"}, {"p", "q"}, {"q", "p"}} {
		j.byID[n.id] = &record{Node: &snapshot.Node{ID: n.id, Parent: n.parent}}
	}
	for id, want := range map[string]string{"root": "", "leaf": "root child", "below": "orphan", "orphan": "", "p": "q"} {
		var got []string
		for _, n := range j.lineage(j.byID[id]) {
			got = append(got, n.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", id, got, want)
		}
	}
}

// countedLog counts the bytes that are read of it.
type countedLog struct {
	*bytes.Reader
	read int64
}

func (c *countedLog) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}

// TestDescribeReads: a first line that is longer than a piece costs a second look, which is told.
func TestDescribeReads(t *testing.T) {
	for name, pad := range map[string]int{"short": 10, "longer than a piece": pieceBytes, "longer than what is looked at": mostHead} {
		log := []byte(`{"type":"file-history-snapshot","pad":"` + strings.Repeat("x", pad) + `"}` + "\n" + talkIn("/p", idOne, 400))
		c, s := &countedLog{Reader: bytes.NewReader(log)}, Session{}
		told, err := describe(&s, c, int64(len(log)))
		must(t, err)
		if told != c.read || (s.Project == "/p") != (pad < mostHead) {
			t.Errorf("%s: %d bytes told, %d read, project %q", name, told, c.read, s.Project)
		}
	}
}

// TestPromptIsThePersons: what the program wrote is no prompt.
func TestPromptIsThePersons(t *testing.T) {
	for content, want := range map[string]string{
		`"hello"`: "hello", `"<command-name>/clear</command-name>"`: "", `"Caveat: The messages below"`: "", `" \n"`: "",
		`[{"type":"text","text":"<ide>x</ide>"},{"type":"text","text":"hello"}]`: "hello", `[{"type":"tool_result","tool_use_id":"t","content":"x"}]`: "", `[5]`: "",
	} {
		for l, err := range transcript.Lines(strings.NewReader(`{"type":"user","message":{"role":"user","content":`+content+`}}`+"\n"), transcript.Options{}) {
			must(t, err)
			if got := prompt(l); got != want {
				t.Errorf("%s: %q, want %q", content, got, want)
			}
		}
	}
}

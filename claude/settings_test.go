package claude

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const ownCommand = "/opt/tidemark hook run"

// documents are settings as people write them.
var documents = map[string]string{
	"empty object":   "{}",
	"one line":       `{"model":"opus","permissions":{"deny":["Bash(rm:*)"]}}`,
	"laid out":       "{\n  \"model\": \"opus\",\n  \"n\": 1.0\n}\n",
	"tabs":           "{\n\t\"model\": \"opus\"\n}",
	"comments":       "// mine\n{\n  // the model\n  \"model\": \"opus\", // why\n  /* more */\n  \"deny\": [\"a\",], // last\n}\n// end\n",
	"trailing comma": "{\n    \"model\": \"opus\",\n}\n",
	"CR":             "{\r\n  \"model\": \"opus\"\r\n}\r\n",
	"own hooks": `{
  "hooks": {
    "PreCompact": [
      // what I do
      {"matcher": "auto", "hooks": [{"type": "command", "command": "echo hi"}]}, // here
    ],
    "Stop": [{"hooks": []}]
  },
  "after": true
}
`,
	"own hooks on a line": `{"hooks":{"PostToolUse":[{"hooks":[{"type":"command","command":"my tidemark hook run wrapper"}]}]}}`,
	"hooks of others": `{
  "hooks": {
    "PostToolUse": [
      {
        "matcher": "Edit",
        "hooks": [
          { "type": "command", "command": "fmt" },
          { "type": "command", "command": "lint" }
        ]
      }
    ]
  }
}`,
	"empty lists":            "{\n  \"hooks\": {\n    \"PreCompact\": [],\n    \"PostToolUse\": [\n    ]\n  }\n}\n",
	"a group without a list": `{"hooks":{"PreCompact":[{}, 5, null]}}`,
	"a comment at the end":   "{\n  \"a\": 1 // one\n  // two\n}",
	"byte order mark":        "\ufeff{\r\n  \"model\": \"opus\"\r\n}\r\n",
	"comments in the way":    "{\"hooks\": { // mine\n  // before\n  \"PreCompact\": [ /* none */], /* between */ \"PostToolUse\": [ // none\n]}}",
	"odd names":              `{"hook\u0073": {"x": 1}}`,
}

func settingsOf(t *testing.T, raw string) Settings {
	s := Settings{Path: filepath.Join(t.TempDir(), "settings.json"), Command: ownCommand}
	must(t, os.WriteFile(s.Path, []byte(raw), 0o640))
	return s
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	return string(raw)
}

// TestInstall: installing keeps every byte that is not ours, twice is once, and uninstalling brings the file back.
func TestInstall(t *testing.T) {
	for name, raw := range documents {
		t.Run(name, func(t *testing.T) {
			s := settingsOf(t, raw)
			c, err := s.Install()
			must(t, err)
			must(t, c.Apply())
			got := readFile(t, s.Path)
			if !contains(raw, got) {
				t.Errorf("bytes are gone\nbefore\n%s\nafter\n%s", raw, got)
			}
			if events, err := s.Installed(); err != nil || strings.Join(events, " ") != "PreCompact PostToolUse" && strings.Join(events, " ") != "PostToolUse PreCompact" {
				t.Errorf("installed: %v, %v in\n%s", events, err, got)
			}
			// Without what is ours, it means what it did.
			if before, after := meaning(t, raw), meaning(t, got); before != after && !strings.Contains(after, "PreCompact") {
				t.Errorf("before %s, after %s", before, after)
			}
			if info, err := os.Stat(s.Path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if readFile(t, s.Path+backupSuffix) != raw {
				t.Error("the backup is not the original")
			}
			again, err := s.Install()
			must(t, err)
			if again.Changed() {
				t.Errorf("twice is twice:\n%s", again.After)
			}
			out, err := s.Uninstall()
			must(t, err)
			must(t, out.Apply())
			if back := readFile(t, s.Path); back != raw {
				t.Errorf("back\n%s\nwant\n%s", back, raw)
			}
		})
	}
}

// contains reports whether all bytes of a stand in b in their order: only insertions made b of a.
func contains(a, b string) bool {
	for i := range len(b) {
		if a != "" && b[i] == a[0] {
			a = a[1:]
		}
	}
	return a == ""
}

// meaning is a document without comments, on one line.
func meaning(t *testing.T, raw string) string {
	t.Helper()
	std, err := hujson.Standardize([]byte(strings.TrimPrefix(raw, "\ufeff")))
	must(t, err)
	var v any
	must(t, json.Unmarshal(std, &v))
	out, err := json.Marshal(v)
	must(t, err)
	return string(out)
}

// TestUninstallChanged: when the file was changed meanwhile, our hooks go and the rest stays.
func TestUninstallChanged(t *testing.T) {
	for name, raw := range documents {
		t.Run(name, func(t *testing.T) {
			s := settingsOf(t, raw)
			c, err := s.Install()
			must(t, err)
			must(t, c.Apply())
			mark, rest := "", readFile(t, s.Path)
			if strings.HasPrefix(rest, "\ufeff") {
				mark, rest = "\ufeff", rest[len("\ufeff"):]
			}
			changed := mark + "// added later\n" + rest
			must(t, os.WriteFile(s.Path, []byte(changed), 0o600))
			out, err := s.Uninstall()
			must(t, err)
			must(t, out.Apply())
			got := readFile(t, s.Path)
			if strings.Contains(got, ownCommand+`"`) || !strings.HasPrefix(got, mark+"// added later\n") {
				t.Errorf("left\n%s", got)
			}
			want := meaning(t, raw)
			if name == "empty lists" { // they cannot be told from ours
				want = "{}"
			}
			if meaning(t, got) != want {
				t.Errorf("means %s, want %s", meaning(t, got), want)
			}
		})
	}
}

// TestOtherVersion: an entry of another place or with other flags is replaced, one that only looks like ours is not.
func TestOtherVersion(t *testing.T) {
	const other = `{"hooks":{"PreCompact":[{"hooks":[{"type":"command","command":"'/old place/tidemark' hook run --tokens 5"},{"type":"command","command":"x"}]}]}}`
	s := settingsOf(t, other)
	c, err := s.Install()
	must(t, err)
	if got := string(c.After); strings.Contains(got, "old place") || !strings.Contains(got, `"command":"x"`) || strings.Count(got, ownCommand) != 2 {
		t.Errorf("%s", got)
	}
	for command, want := range map[string]bool{
		"tidemark hook run": true, "/a/tidemark hook run --home '/x y'": true, `"C:\a\tidemark.exe" hook run`: true,
		"/opt/tidemark hook run": true, "notify && tidemark hook run": false, "tidemark hook runner": false,
		"tidemark hook run; echo done": false, "tidemark hook run # mine": false, "my-tidemark hook run": false, "": false, "'tidemark": false,
	} {
		if s.isOurs(command) != want {
			t.Errorf("%q: %t", command, !want)
		}
	}
}

func TestBrokenSettings(t *testing.T) {
	for _, raw := range []string{"{", "[]", "5", `{"hooks":[]}`, `{"hooks":{"PreCompact":{}}}`, `{"hooks":{},"hooks":{}}`, "{\"a\":1}\n{}", "\ufeff\ufeff{}", "\xff\xfe{\x00}\x00"} {
		s := settingsOf(t, raw)
		if _, err := s.Install(); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%q: %v", raw, err)
		}
		if readFile(t, s.Path) != raw {
			t.Errorf("%q was written", raw)
		}
	}
}

// TestNoSettings: where there is no file, there is none again.
func TestNoSettings(t *testing.T) {
	s := Settings{Path: filepath.Join(t.TempDir(), "deep", "settings.json"), Command: ownCommand}
	if events, err := s.Installed(); err != nil || events != nil {
		t.Errorf("%v, %v", events, err)
	}
	c, err := s.Install()
	must(t, err)
	must(t, c.Apply())
	if info, err := os.Stat(s.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v", err)
	}
	out, err := s.Uninstall()
	must(t, err)
	must(t, out.Apply())
	if _, err := os.Stat(s.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left: %s", readFile(t, s.Path))
	}
	if _, err := os.Stat(s.Path + backupSuffix); err == nil {
		t.Error("a backup of nothing")
	}
}

// TestChangedMeanwhile: what another program wrote is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	s := settingsOf(t, "{}")
	c, err := s.Install()
	must(t, err)
	must(t, os.WriteFile(s.Path, []byte(`{"model":"new"}`), 0o600))
	if err := c.Apply(); !errors.Is(err, tidemark.ErrConflict) || readFile(t, s.Path) != `{"model":"new"}` {
		t.Errorf("%v", err)
	}
}

// TestLinkedSettings: a settings file that is a link stays one.
func TestLinkedSettings(t *testing.T) {
	s := settingsOf(t, "{}")
	link := Settings{Path: filepath.Join(t.TempDir(), "settings.json"), Command: ownCommand}
	if err := os.Symlink(s.Path, link.Path); err != nil {
		t.Skip("no links here:", err)
	}
	c, err := link.Install()
	must(t, err)
	must(t, c.Apply())
	if info, err := os.Lstat(link.Path); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(readFile(t, s.Path), ownCommand) {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// FuzzSettings: whatever the file, installing only inserts, is done once, and can be taken out again without changing
// what the rest means.
func FuzzSettings(f *testing.F) {
	for _, raw := range documents {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := Settings{Command: ownCommand}
		in, err := s.install(raw)
		if err != nil {
			return
		}
		if bytes.Contains(raw, []byte("hook run")) || len(bytes.TrimSpace(raw)) == 0 {
			return // ours were there
		}
		if !contains(string(raw), string(in)) {
			t.Fatalf("bytes are gone: %q", in)
		}
		if again, err := s.install(in); err != nil || !bytes.Equal(again, in) {
			t.Fatalf("twice: %q, %v", again, err)
		}
		if out, err := s.uninstall(in); err != nil || bytes.Contains(out, []byte(ownCommand)) {
			t.Fatalf("out: %q, %v", out, err)
		}
	})
}

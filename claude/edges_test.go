package claude

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/transcript"
)

// TestNamesByLetter: which characters stand in the name of a folder, and which in the id of a session.
func TestNamesByLetter(t *testing.T) {
	for r := range rune(0x250) {
		alnum := r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r))
		want := "-"
		if alnum {
			want = string(r)
		}
		if got := Encode("a" + string(r)); got != "a"+want {
			t.Errorf("%q is %q", r, got)
		}
		if err := checkSessionID("a" + string(r)); (err == nil) != (alnum || r == '-' || r == '_') {
			t.Errorf("id with %q: %v", r, err)
		}
	}
	for id, ok := range map[string]bool{"": false, "-a": false, "_a": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false} {
		if err := checkSessionID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
	for c := 'a'; c <= 'p'; c++ { // hashes of both signs
		if long := "/" + strings.Repeat(string(c), 250); !strings.HasSuffix(Encode(long), "-"+base36Hash(long)) {
			t.Errorf("%q", Encode(long))
		}
	}
}

// TestContentsDamaged: a table of contents that names no file, or is none, is told.
func TestContentsDamaged(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 1)), "a")
	o := w.store.objects()
	for _, raw := range []string{`{}`, `{"files":[]}`, `[`, `{"files":[{"path":"a"}]`} {
		h, err := o.put([]byte(raw))
		must(t, err)
		if c, err := o.contents(h); !errors.Is(err, tidemark.ErrInvalid) || len(c.Files) > 0 && err == nil {
			t.Errorf("%s: %+v, %v", raw, c, err)
		}
	}
}

// TestMendedIsTold: so many objects as were there and broken are told, once; with nobody to tell nothing happens.
func TestMendedIsTold(t *testing.T) {
	w := newWorld(t)
	var told []int
	for _, tell := range []func(int){nil, func(n int) { told = append(told, n) }} {
		w.store.Mended = tell
		o := w.store.objects()
		h, err := o.put([]byte("some content that is kept"))
		must(t, err)
		o.sync()
		must(t, os.WriteFile(o.path(h), []byte("broken"), 0o600))
		_, err = o.put([]byte("some content that is kept"))
		must(t, err)
		o.sync()
		o.sync()
	}
	if len(told) != 1 || told[0] != 1 {
		t.Errorf("told %v", told)
	}
}

// TestOrientationAsWritten: the line that a branch begins with has all that Claude Code writes: the newest version and branch,
// the place and the session.
func TestOrientationAsWritten(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 2) + "\n\n{broken\n" + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(w.talk(idOne, 1), `"2.1.39"`, `"2.2.0"`), `"gitBranch":"main"`, `"gitBranch":"side"`), "0000-4000", "0002-4000")
	w.snap(w.write(idOne, log), "a")
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{Orientation: "Go on."})
	must(t, err)
	for line := range strings.Lines(w.read(b.Log)) {
		if !strings.Contains(line, `"Go on."`) {
			continue
		}
		var o orientation
		must(t, json.Unmarshal([]byte(line), &o))
		if o.Version != "2.2.0" || o.Branch != "side" || o.CWD != w.project || o.Session != b.Session || o.UserType != "external" || o.Side || o.Message.Role != "user" || o.UUID == "" || o.Time == "" {
			t.Errorf("%s", line)
		}
		return
	}
	t.Error("no orientation")
}

// TestNameWithoutWords: a session that says nothing is named by its id.
func TestNameWithoutWords(t *testing.T) {
	for _, c := range []struct {
		s    Session
		want string
	}{{Session{ID: idOne}, "11111111"}, {Session{ID: "abc"}, "abc"}, {Session{ID: idOne, Prompt: "p"}, "p"}, {Session{ID: idOne, Prompt: "p", Title: "t"}, "t"}} {
		if got := snapshotName(c.s, (&Store{}).now()); !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestSideFilesBound: as many files as may be, no more; as deep as may be, no deeper.
func TestSideFilesBound(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "deep", strings.Repeat("d/", maxSideDepth-2))
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o600))
	if got, err := sideFiles(filepath.Join(root, "deep")); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	must(t, os.MkdirAll(filepath.Join(deep, "d", "d"), 0o700))
	if _, err := sideFiles(filepath.Join(root, "deep")); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Error(err)
	}
}

// TestBranchNotNoted: a branch that the journal does not take leaves no log, no cuts and no folder.
func TestBranchNotNoted(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 10)), "a")
	journal := filepath.Join(w.store.folder(), journalName)
	w.store.Now = func() time.Time { // it is read already
		must(t, os.RemoveAll(journal))
		must(t, os.Mkdir(journal, 0o700))
		return time.Now()
	}
	if b, err := w.store.Branch(t.Context(), "a", BranchOptions{Trim: true}); err == nil {
		t.Fatal(b)
	}
	folder := filepath.Dir(w.path(idOne))
	if all, err := os.ReadDir(folder); err != nil || len(all) != 1 {
		t.Errorf("left %v, %v", all, err)
	}
	if cuts, _ := filepath.Glob(filepath.Join(filepath.Dir(w.store.Cuts("x")), "*")); len(cuts) != 0 {
		t.Errorf("left %v", cuts)
	}
}

// TestDescribeWhole: whatever its size, a log is described as by all of its lines, as far as its ends say it.
func TestDescribeWhole(t *testing.T) {
	for _, pad := range []int{0, 1, pieceBytes - 900, pieceBytes, pieceBytes + 1, 2*pieceBytes - 600, 3 * pieceBytes} {
		log := talkIn("/p", idOne, 1) + `{"type":"attachment","x":"` + strings.Repeat("x", pad) + `"}` + "\n" +
			`{"type":"custom-title","customTitle":"the end","sessionId":"x"}` + "\n\n{broken\n" + `{"type":"assistant","version":"3.0.0","gitBranch":"late","message":{"role":"assistant","model":"claude-late","content":[]}}` + "\n"
		s := Session{}
		if _, err := describe(&s, bytes.NewReader([]byte(log)), int64(len(log))); err != nil || s.Title != "the end" || s.Version != "3.0.0" || s.Branch != "late" || s.Model != "claude-late" ||
			s.Project != "/p" || !strings.HasPrefix(s.Prompt, "question 0") || s.Created.IsZero() || s.Side {
			t.Errorf("%d: %+v, %v", pad, s, err)
		}
	}
}

// TestInstalledAndOut: settings that were made for the hooks go with them, and so does the folder that was made for the file.
func TestInstalledAndOut(t *testing.T) {
	for _, beside := range []bool{false, true} {
		root := t.TempDir()
		s := Settings{Path: filepath.Join(root, ".claude", "settings.json"), Command: ownCommand}
		if beside {
			must(t, os.Mkdir(filepath.Dir(s.Path), 0o700))
			must(t, os.WriteFile(filepath.Join(root, ".claude", "theirs"), nil, 0o600))
		}
		in, err := s.Install()
		must(t, err)
		must(t, in.Apply())
		if got := readFile(t, s.Path); got != string(in.After) {
			t.Errorf("%s, want %s", got, in.After)
		}
		out, err := s.Uninstall()
		must(t, err)
		must(t, out.Apply())
		all, err := os.ReadDir(filepath.Join(root, ".claude"))
		if beside != (err == nil) || len(all) > 1 {
			t.Errorf("left %v, %v", all, err)
		}
	}
}

// TestInstallLayout: what is added stands as its neighbours do.
func TestInstallLayout(t *testing.T) {
	for raw, want := range map[string]string{
		"{}":                                 `{"hooks": {H}}`,
		`{"a": 1}`:                           `{"a": 1, "hooks": {H}}`,
		"{\n  \"a\": 1\n}\n":                 "{\n  \"a\": 1,\n  \"hooks\": {L}\n}\n",
		"{\n\t\"a\": 1,\n}":                  "{\n\t\"a\": 1,\n\t\"hooks\": {L},\n}",
		"{\n  \"a\": 1,\n  \"hooks\": {}\n}": "{\n  \"a\": 1,\n  \"hooks\": {L}\n}",
	} {
		got, err := Settings{Command: ownCommand}.install([]byte(raw))
		must(t, err)
		before, after, _ := strings.Cut(want, "{H}")
		if strings.Contains(want, "{L}") {
			before, after, _ = strings.Cut(want, "{L}")
			after = indentAtEnd(before) + "}" + after
		} else {
			after = "}" + after
		}
		if !strings.HasPrefix(string(got), before+"{") || !strings.HasSuffix(string(got), after) {
			t.Errorf("%q became\n%s\nwant %q … %q", raw, got, before, after)
		}
		back, err := Settings{Command: ownCommand}.uninstall(got)
		if theirs(t, string(back)) != theirs(t, raw) || err != nil {
			t.Errorf("%q comes back as %q, %v", raw, back, err)
		}
	}
}

// indentAtEnd is a line break with the indentation of the last line of a text.
func indentAtEnd(text string) string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return "\n" + last[:len(last)-len(strings.TrimLeft(last, " \t"))]
}

// TestExactID: an id that others begin with is itself.
func TestExactID(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"abcdef", "abcdefg", "abcdefgh"} {
		w.write(id, w.talk(id, 1))
	}
	for _, id := range []string{"abcdef", "abcdefg", "abcdefgh"} {
		if s, err := w.store.Finder().Pick(t.Context(), id, ""); err != nil || s.ID != id {
			t.Errorf("%s: %q, %v", id, s.ID, err)
		}
	}
	if _, err := w.store.Finder().Pick(t.Context(), "abcde", ""); !errors.Is(err, tidemark.ErrConflict) {
		t.Error(err)
	}
}

// TestFirstWord: the program of a command, quoted or not, and what stands behind it.
func TestFirstWord(t *testing.T) {
	for command, want := range map[string][3]string{"": {"", "", "false"}, "a": {"a", "", "true"}, "a b": {"a", " b", "true"}, "'a b' c": {"a b", " c", "true"}, `"a" b`: {"a", " b", "true"}, "'a": {"", "", "false"}, " a": {"", " a", "true"}, "''": {"", "", "true"}, "'": {"", "", "false"}} {
		if word, rest, ok := cutWord(command); [3]string{word, rest, fmt.Sprint(ok)} != want {
			t.Errorf("%q: %q, %q, %t", command, word, rest, ok)
		}
	}
}

// TestContextSizes: what a trim leaves of a context is what is no message, and of the messages the share that the estimates tell.
func TestContextSizes(t *testing.T) {
	const typical = transcript.TypicalPrefix
	for _, c := range []struct {
		m             meter
		before, after tidemark.Tokens
		size, trimmed tidemark.Tokens
	}{
		{meter{live: 100}, 100, 50, 100 + typical, 50 + typical}, {meter{live: 100}, 100, 100, 100 + typical, 100 + typical}, {meter{live: 100}, 100, 101, 100 + typical, 100 + typical}, {meter{live: 100}, 0, 0, 100 + typical, 100 + typical}, {meter{live: 100, prefix: 20}, 100, 25, 120, 45},
		{meter{sent: 200, since: 10, live: 100, prefix: 50}, 100, 50, 210, 130}, {meter{sent: 200, live: 200}, 3, 1, 200, 133}, {meter{sent: 200, live: 200}, 3, 2, 200, 167},
	} {
		if got := c.m.tokens(); got != c.size {
			t.Errorf("%+v has %d, want %d", c.m, got, c.size)
		}
		if got := c.m.trimmed(c.before, c.after); got != c.trimmed {
			t.Errorf("%+v of %d %d: %d, want %d", c.m, c.before, c.after, got, c.trimmed)
		}
	}
}

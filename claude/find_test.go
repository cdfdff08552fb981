package claude

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

func TestEncode(t *testing.T) {
	long := "/" + strings.Repeat("a", 250)
	for _, r := range []struct{ name, in, want string }{
		{"plain", "/home/me/proj", "-home-me-proj"},
		{"dots and underscores", "/home/me/.cache/my_proj", "-home-me--cache-my-proj"},
		{"windows", `C:\git\cc-plus`, "C--git-cc-plus"},
		{"other scripts", "/w/研究", "-w---"},
		{"beyond the basic plane", "/w/😀", "-w---"},
		{"200 stays", "/" + strings.Repeat("a", 199), "-" + strings.Repeat("a", 199)},
		// The hash of JavaScript's ((h << 5) - h + c) | 0 in base 36, computed apart.
		{"longer", long, "-" + strings.Repeat("a", 199) + "-" + base36Hash(long)},
	} {
		if got := Encode(r.in); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
	if got := Encode("/" + strings.Repeat("a", 250)); !strings.HasSuffix(got, "-"+base36Hash(long)) || len(got) < 202 {
		t.Errorf("%q", got)
	}
}

// base36Hash is the hash again, in 64 bits and cut down to 32 at the end of each step.
func base36Hash(s string) string {
	h := int64(0)
	for _, c := range []byte(s) {
		h = (h<<5 - h + int64(c)) & 0xffffffff
	}
	if h >= 1<<31 {
		h = 1<<32 - h
	}
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	out := ""
	for ; h > 0; h /= 36 {
		out = string(digits[h%36]) + out
	}
	return out
}

func TestSessions(t *testing.T) {
	w := newWorld(t)
	w.write(idOne, w.talk(idOne, 3)+`{"type":"ai-title","aiTitle":"made","sessionId":"x"}`+"\n"+`{"type":"custom-title","customTitle":"given","sessionId":"x"}`+"\n"+`{"type":"ai-title","aiTitle":"made later","sessionId":"x"}`+"\n")
	w.write("agent-17", `{"type":"user","isSidechain":true,"message":{"role":"user","content":"go"}}`+"\n")
	// Another project whose folder has the same name.
	w.write(idTwo, talkIn(filepath.Join(filepath.Dir(w.project), "my project-1"), idTwo, 1))
	// Not logs: a folder, names that lead elsewhere.
	must(t, os.MkdirAll(w.path("folder"), 0o700))
	must(t, os.WriteFile(w.path("with space"), nil, 0o600))

	all, err := w.store.Finder().Sessions(t.Context(), w.project)
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("%d sessions: %+v", len(all), all)
	}
	s := w.session(idOne)
	if s.Title != "given" || s.Prompt != "question 0, 1.0 and 9007199254740993" || s.Project != w.project || s.Model != "claude-opus" || s.Branch != "main" || s.Version != "2.1.39" || s.Side {
		t.Errorf("%+v", s)
	}
	if got := w.session("agent-17"); !got.Side {
		t.Errorf("a subagent's log: %+v", got)
	}
	if all, err = w.store.Finder().Sessions(t.Context(), ""); err != nil || len(all) != 3 {
		t.Errorf("of all projects: %d, %v", len(all), err)
	}
}

func TestPick(t *testing.T) {
	w := newWorld(t)
	w.write(idOne, w.talk(idOne, 1))
	w.write(idTwo, w.talk(idTwo, 1))
	w.write(idThree, w.talk(idThree, 1))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(w.path(idOne), old, old))
	must(t, os.Chtimes(w.path(idThree), old, old))
	other := filepath.Join(filepath.Dir(w.project), "other")
	must(t, os.MkdirAll(other, 0o700))
	for _, r := range []struct {
		name, ref, cwd, want string
		err                  error
	}{
		{"id", idOne, "", idOne, nil},
		{"id in another folder", idOne, other, idOne, nil},
		{"prefix", "1111", "", idOne, nil},
		{"too short", "111", "", "", tidemark.ErrInvalid},
		{"two begin so", "2222", "", "", tidemark.ErrConflict},
		{"longer", "2222e", "", idThree, nil},
		{"nobody", "9999", "", "", tidemark.ErrNotFound},
		{"latest", Latest, w.project, idTwo, nil},
		{"latest of all", Latest, "", idTwo, nil},
		{"latest elsewhere", Latest, other, "", tidemark.ErrNotFound},
		{"path", w.path(idThree), "", idThree, nil},
		{"path to nothing", w.path("nothing"), "", "", tidemark.ErrNotFound},
		{"path out", "../../etc/passwd", "", "", tidemark.ErrInvalid},
		{"hostile", "$(id)", "", "", tidemark.ErrInvalid},
		{"empty", "", "", "", tidemark.ErrInvalid},
	} {
		s, err := w.store.Finder().Pick(t.Context(), r.ref, r.cwd)
		if s.ID != r.want || !errors.Is(err, r.err) || r.err == nil && err != nil {
			t.Errorf("%s: %q, %v", r.name, s.ID, err)
		}
	}
	// A folder that a link leads to is the project that it is.
	link := filepath.Join(filepath.Dir(w.project), "link")
	if err := os.Symlink(w.project, link); err == nil {
		if s, err := w.store.Finder().Pick(t.Context(), Latest, link); err != nil || s.ID != idTwo {
			t.Errorf("by a link: %q, %v", s.ID, err)
		}
	}
}

// TestSessionsReadLittle: large logs are listed by their first and last lines.
func TestSessionsReadLittle(t *testing.T) {
	w := newWorld(t)
	const logs, size = 20, 10 << 20
	one := w.talk(idOne, 200)
	for i := range logs {
		id := idOne[:len(idOne)-2] + string(rune('a'+i)) + "z"
		w.write(id, one)
		must(t, os.Truncate(w.path(id), size)) // the middle costs nothing on the disk
		f, err := os.OpenFile(w.path(id), os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString("\n" + `{"type":"custom-title","customTitle":"the end","sessionId":"x"}` + "\n")
		must(t, err)
		must(t, f.Close())
	}
	f := w.store.Finder()
	all, err := f.Sessions(t.Context(), w.project)
	must(t, err)
	if most := int64(logs * 2 * pieceBytes); f.read > most || f.read == 0 {
		t.Errorf("%d bytes were read of %d logs of %d, want at most %d", f.read, logs, size, most)
	}
	if len(all) != logs || all[0].Title != "the end" || !strings.HasPrefix(all[0].Prompt, "question 0") {
		t.Errorf("%d: %+v", len(all), all[0])
	}
}

// FuzzDescribe: a listing survives whatever is in a log, and shows nothing that moves a cursor.
func FuzzDescribe(f *testing.F) {
	f.Add([]byte(talkIn("/p", idOne, 1)))
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a\u001b[2J\u202eb"}]},"cwd":"/x"}`))
	f.Add([]byte("null\n{\"type\":\"user\",\"message\":null}\n\xff\xfe"))
	f.Fuzz(func(t *testing.T, log []byte) {
		s := Session{ID: "x"}
		if _, err := describe(&s, strings.NewReader(string(log)), int64(len(log))); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{s.Title, s.Prompt} {
			if clip(text, maxPrompt) != text {
				t.Fatalf("%q", text)
			}
		}
	})
}

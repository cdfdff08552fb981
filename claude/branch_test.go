package claude

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// snap keeps a session under a name.
func (w *world) snap(s Session, name string) snapshot.Node {
	w.t.Helper()
	n, err := w.store.Snapshot(w.t.Context(), s, SnapshotOptions{Name: name})
	must(w.t, err)
	return n
}

// TestBranch: a copy is another session of the same lines.
func TestBranch(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 3) + "not json\n\n" + `{"n":9007199254740993,"sessionId":"` + idOne + `","x":"` + "\u2028" + `\ud800","sessionId":5}` + "\r\n"
	n := w.snap(w.write(idOne, log), "a")
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{})
	must(t, err)
	if _, err := uuid.Parse(b.Session); err != nil || b.Node.ID != b.Session || b.Node.Parent != n.ID || b.Project != w.project || b.Log != w.path(b.Session) || b.Trim != nil || b.Cuts != "" {
		t.Errorf("%+v, %v", b, err)
	}
	got := w.read(b.Log)
	want := strings.ReplaceAll(log, idOne, b.Session) + `{"type":"custom-title","customTitle":"` + b.Node.Name + `","sessionId":"` + b.Session + `"}` + "\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if b.Node.Hash != tidemark.HashOf([]byte(got)) || b.Node.Messages != n.Messages {
		t.Errorf("%+v", b.Node)
	}
	info, err := os.Stat(b.Log)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if w.read(w.path(idOne)) != log {
		t.Error("the log was written")
	}
	// A snapshot of the branch hangs below the snapshot that the branch is of.
	child := w.snap(w.session(b.Session), "child")
	if child.Parent != n.ID {
		t.Errorf("parent %q", child.Parent)
	}
	if s := w.session(b.Session); s.Title != b.Node.Name {
		t.Errorf("listed as %q", s.Title)
	}
	noTemps(t, filepath.Dir(w.store.Home))
}

// TestNewerLines: lines of types and roles that nobody here knows, which a newer Claude Code writes, are carried along and cost
// no message.
func TestNewerLines(t *testing.T) {
	w := newWorld(t)
	newer := `{"type":"hologram","sessionId":"` + idOne + `","message":{"role":"user","content":"x"}}
{"type":"api-request-blob","message":{"role":"system","content":"x"},"sessionId":"` + idOne + `"}
{"type":"attachment","attachment":{"type":"total_tokens_reminder","left":9},"sessionId":"` + idOne + `"}
{"type":["odd"],"sessionId":"` + idOne + `"}
`
	log := w.talk(idOne, 3)
	plain := w.snap(w.write(idTwo, w.talk(idTwo, 3)), "plain")
	n := w.snap(w.write(idOne, log+newer), "newer")
	if n.Messages != plain.Messages {
		t.Errorf("%d messages, %d without them", n.Messages, plain.Messages)
	}
	b, err := w.store.Branch(t.Context(), "newer", BranchOptions{})
	must(t, err)
	if got := w.read(b.Log); !strings.Contains(got, strings.ReplaceAll(newer, idOne, b.Session)) {
		t.Errorf("they are not carried along: %s", got)
	}
}

// TestLineageIsByID: a snapshot that has the name of one that was dropped is not its heir.
func TestLineageIsByID(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 1))
	first := w.snap(s, "root")
	b, err := w.store.Branch(t.Context(), "root", BranchOptions{})
	must(t, err)
	_, _, err = w.store.Drop(t.Context(), "root")
	must(t, err)
	second := w.snap(w.write(idTwo, w.talk(idTwo, 1)), "root")
	child := w.snap(w.session(b.Session), "child")
	if child.Parent != first.ID || child.Parent == second.ID {
		t.Errorf("parent %q", child.Parent)
	}
}

// TestOrientation: what a branch is told is the first message that its model reads, and part of the chain.
func TestOrientation(t *testing.T) {
	for _, r := range []struct {
		name      string
		log       func(w *world) string
		parent    string // of the orientation
		behind    string // first line behind it
		firstLive int
	}{
		{"from the beginning", func(w *world) string { return w.talk(idOne, 2) }, "", "00000001-0000-4000-8000-000000000000", 1},
		{"behind a compaction", func(w *world) string { return w.talk(idOne, 2) + compacted(w.project, idOne) }, "bbbbbbbb-0000-4000-8000-000000000000", "cccccccc-0000-4000-8000-000000000000", 10},
		{"two beginnings", func(w *world) string {
			return w.talk(idOne, 1) + strings.ReplaceAll(strings.ReplaceAll(w.talk(idOne, 1), "0000-4000", "0001-4000"), "question 0", "again")
		}, "", "00000001-0000-4000-8000-000000000000", 1},
		{"without an end of line", func(w *world) string { return strings.TrimSuffix(w.talk(idOne, 1), "\n") }, "", "00000001-0000-4000-8000-000000000000", 1},
	} {
		t.Run(r.name, func(t *testing.T) {
			w := newWorld(t)
			w.snap(w.write(idOne, r.log(w)), "a")
			const told = "Only the tests.\n\"Quoted\" <tag> \u2028 end"
			b, err := w.store.Branch(t.Context(), "a", BranchOptions{Orientation: told, Name: "with words"})
			must(t, err)
			log := w.read(b.Log)
			coherent(t, log, b.Session)
			all := entries(t, log)
			e := all[r.firstLive]
			if e.Message.Content != told || e.Message.Role != "user" || e.Type != "user" || e.CWD != w.project {
				t.Fatalf("line %d: %+v", r.firstLive, e)
			}
			if e.Parent == nil && r.parent != "" || e.Parent != nil && *e.Parent != r.parent {
				t.Errorf("parent %v, want %q", e.Parent, r.parent)
			}
			next := all[r.firstLive+1]
			if next.UUID != r.behind || next.Parent == nil || *next.Parent != e.UUID {
				t.Errorf("behind it: %+v", next)
			}
			// No other line of what is read begins a chain of its own.
			for i, other := range all[r.firstLive+1:] {
				if other.UUID != "" && other.Parent == nil {
					t.Errorf("line %d has no parent", r.firstLive+1+i)
				}
			}
			if last := all[len(all)-1]; last.Title != "with words" {
				t.Errorf("last line %+v", last)
			}
		})
	}
}

func TestBranchRefuses(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 1)), "a")
	w.snap(w.write(idTwo, `{"type":"file-history-snapshot"}`+"\n"), "no messages")
	elsewhere := talkIn("/nowhere/that/is", idThree, 1)
	w.snap(w.write(idThree, elsewhere), "other machine")
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{Name: "branch"})
	must(t, err)
	for _, r := range []struct {
		name, ref string
		o         BranchOptions
		err       error
	}{
		{"nobody", "b", BranchOptions{}, tidemark.ErrNotFound},
		{"a branch", "branch", BranchOptions{}, tidemark.ErrInvalid},
		{"no messages", "no messages", BranchOptions{}, tidemark.ErrInvalid},
		{"other machine", "other machine", BranchOptions{}, tidemark.ErrInvalid},
		{"no folder", "a", BranchOptions{Dir: filepath.Join(w.project, "x")}, tidemark.ErrInvalid},
		{"name", "a", BranchOptions{Name: "'; rm -rf /; '"}, tidemark.ErrInvalid},
		{"threshold", "a", BranchOptions{Trim: true, Threshold: -1}, tidemark.ErrInvalid},
		{"orientation", "a", BranchOptions{Orientation: strings.Repeat("x", MaxOrientation+1)}, tidemark.ErrTooLarge},
		{"no text", "a", BranchOptions{Orientation: "\xff"}, tidemark.ErrInvalid},
	} {
		if _, err := w.store.Branch(t.Context(), r.ref, r.o); !errors.Is(err, r.err) {
			t.Errorf("%s: %v", r.name, err)
		}
	}
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(b.Log), "*"))
	must(t, err)
	if len(logs) != 4 {
		t.Errorf("left: %v", logs)
	}
}

// TestBranchElsewhere: with a folder of this machine, a snapshot of another one goes on there.
func TestBranchElsewhere(t *testing.T) {
	w := newWorld(t)
	log := strings.Replace(talkIn("/nowhere/that/is", idOne, 2), `"cwd":"/nowhere/that/is"`, `"cwd":"/nowhere/that/is/below"`, 2)
	log = strings.Replace(log, `/nowhere/that/is/below`, `/nowhere/that/is`, 1) + `{"cwd":"/nowhere/that/isnt"}` + "\n"
	w.snap(w.write(idOne, log), "a")
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{Dir: w.project})
	must(t, err)
	got := w.read(b.Log)
	coherent(t, got, b.Session)
	if strings.Contains(got, `that/is"`) || strings.Contains(got, "that/is/") || !strings.Contains(got, quotedPath(w.project)+`/below"`) || !strings.Contains(got, "that/isnt") {
		t.Errorf("folders: %s", got)
	}
	if filepath.Dir(b.Log) != filepath.Dir(w.path(idOne)) || b.Project != w.project {
		t.Errorf("%+v", b)
	}
}

func quotedPath(s string) string { return strings.TrimSuffix(string(quoted(s)), `"`) }

// TestSides: what lies beside a log is kept with it and comes with a branch.
func TestSides(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 1))
	sub := `{"isSidechain":true,"sessionId":"` + idOne + `","type":"user","message":{"role":"user","content":"go"},"uuid":"s"}` + "\n"
	for path, content := range map[string]string{"subagents/agent-1.jsonl": sub, "tool-results/toolu_1.txt": "a\r\nb " + idOne, "empty": ""} {
		path = filepath.Join(s.folder(), path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	secret := filepath.Join(w.project, "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	must(t, os.Symlink(secret, filepath.Join(s.folder(), "tool-results", "link")))
	w.snap(s, "a")
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{})
	must(t, err)
	root := strings.TrimSuffix(b.Log, logSuffix)
	if got := w.read(filepath.Join(root, "subagents/agent-1.jsonl")); got != strings.ReplaceAll(sub, idOne, b.Session) {
		t.Errorf("subagent: %s", got)
	}
	if got := w.read(filepath.Join(root, "tool-results/toolu_1.txt")); got != "a\r\nb "+idOne {
		t.Errorf("result: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(root, "tool-results", "link")); err == nil {
		t.Error("a link was followed")
	}
}

// TestBranchFails: a branch that cannot be made leaves nothing, and a path that leads out of its folder is refused
// whoever wrote it into the store.
func TestBranchFails(t *testing.T) {
	w := newWorld(t)
	good := w.snap(w.write(idOne, w.talk(idOne, 20)), "good")
	objects := w.store.objects()
	_, files, err := w.store.kept(t.Context(), good.ID)
	must(t, err)
	for _, path := range []string{"../../escape", "/etc/escape", "a/../../escape", ""} {
		side := files.Files[0]
		side.Path = path
		first := side
		first.Path = "first.jsonl"
		content, err := objects.putContents(contents{Files: []kept{files.Files[0], first, side}})
		must(t, err)
		bad := good
		bad.ID, bad.Name = idPrefix+"bad", "bad"
		must(t, w.store.write(t.Context(), func(*journal) ([]*record, error) {
			return []*record{{Op: opDrop, ID: bad.ID}, {Op: opSnapshot, Node: &bad, Content: content, Project: w.project}}, nil
		}))
		before := tree(t, filepath.Dir(w.store.Home))
		for _, trim := range []bool{false, true} {
			if _, err := w.store.Branch(t.Context(), "bad", BranchOptions{Trim: trim}); err == nil {
				t.Errorf("%q: a branch", path)
			}
		}
		if after := tree(t, filepath.Dir(w.store.Home)); after != before {
			t.Errorf("%q: before\n%s\nafter\n%s", path, before, after)
		}
	}
}

// TestStaleTemps: what a killed process left goes with a later branch, what is being made does not.
func TestStaleTemps(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 1)), "a")
	cuts := filepath.Dir(w.store.Cuts(idTwo))
	must(t, errors.Join(w.store.clearTemp(), os.MkdirAll(cuts, 0o700)))
	logs := filepath.Dir(w.path(idOne))
	then := time.Now().Add(-48 * time.Hour)
	for path, old := range map[string]bool{
		filepath.Join(logs, "."+idTwo+".jsonl.DEAD.tidemark-tmp"):  true,
		filepath.Join(logs, "."+idTwo+".jsonl.YOUNG.tidemark-tmp"): false,
		filepath.Join(cuts, "."+idTwo+".cuts.DEAD.tidemark-tmp"):   true,
		filepath.Join(w.store.temp(), "tidemark-line-1"):           true,
		filepath.Join(w.store.temp(), "tidemark-line-2"):           false,
	} {
		must(t, os.WriteFile(path, nil, 0o600))
		if old {
			must(t, os.Chtimes(path, then, then))
		}
	}
	_, err := w.store.Branch(t.Context(), "a", BranchOptions{Trim: true})
	must(t, err)
	var left []string
	for _, dir := range []string{logs, cuts, w.store.temp()} {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, "-tmp") || strings.HasPrefix(name, "tidemark") {
				left = append(left, name)
			}
		}
	}
	if got, want := strings.Join(left, " "), "."+idTwo+".jsonl.YOUNG.tidemark-tmp tidemark-line-2"; got != want {
		t.Errorf("left: %s\nwant: %s", got, want)
	}
}

// TestDryRun writes nothing.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 1)), "a")
	before := tree(t, filepath.Dir(w.store.Home))
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{DryRun: true})
	must(t, err)
	if b.Session == "" || b.Node.Messages != 4 {
		t.Errorf("%+v", b)
	}
	if after := tree(t, filepath.Dir(w.store.Home)); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// tree lists the files below a folder with their content.
func tree(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		b.WriteString(path + " " + string(tidemark.HashOf(raw)) + "\n")
		return err
	}))
	return b.String()
}

func TestCommand(t *testing.T) {
	for _, r := range []struct{ project, want string }{
		{"/home/me/proj", "cd /home/me/proj && claude --resume x"},
		{"/home/me/a b", "cd '/home/me/a b' && claude --resume x"},
		{"/home/'; rm -rf ~; '", `cd '/home/'\''; rm -rf ~; '\''' && claude --resume x`},
		{"/a\nb", "cd '/a\nb' && claude --resume x"},
	} {
		if got := (Branch{Project: r.project, Session: "x"}).Command(); got != r.want {
			t.Errorf("%q: %s", r.project, got)
		}
	}
}

// TestResume runs what is called claude in the project, without a shell.
func TestResume(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	b := Branch{Project: t.TempDir(), Session: "id; exit 3"}
	if _, err := b.Resume(); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), b.Command()) {
		t.Errorf("without the program: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\npwd\nprintf '%s|' \"$@\"\n"), 0o700))
	cmd, err := b.Resume()
	must(t, err)
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no shell here to stand in for the program:", err)
	}
	if got := string(out); got != canonical(b.Project)+"\n--resume|id; exit 3|" {
		t.Errorf("%q", got)
	}
}

// FuzzBranch: whatever a log holds, a branch has the same lines, but for whose they are.
func FuzzBranch(f *testing.F) {
	f.Add([]byte(talkIn("/p", idOne, 1)), "told")
	f.Add([]byte("{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"x\",\"sessionId\":\"y\"}\nnull\n[]\n{"), "")
	f.Add([]byte("\xef\xbb\xbf{\"uuid\":\"a\",\"uuid\":\"b\",\"parentUuid\":{},\"message\":{\"parentUuid\":null}}\r\n\r\n"), "x")
	f.Fuzz(func(t *testing.T, log []byte, told string) {
		if strings.ToValidUTF8(told, "") != told {
			return
		}
		found, err := outlineOf(t.Context(), strings.NewReader(string(log)))
		if err != nil {
			t.Fatal(err)
		}
		re := &rewriter{session: idTwo, title: "t", from: "/p", to: "/q", orient: told, outline: found}
		var out strings.Builder
		if err := re.log(t.Context(), &out, strings.NewReader(string(log))); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(out.String(), "\n")
		want := strings.Count(string(log), "\n") + 1
		if len(log) > 0 && log[len(log)-1] != '\n' {
			want++
		}
		if told != "" {
			want++
		}
		if lines != want {
			t.Fatalf("%d lines, want %d: %q", lines, want, out.String())
		}
		for _, line := range strings.Split(out.String(), "\n") {
			var e struct{ SessionID any }
			if json.Unmarshal([]byte(line), &e) != nil {
				continue
			}
			if id, ok := e.SessionID.(string); ok && id != idTwo && strings.Contains(line, `"sessionId"`) {
				t.Fatalf("of session %q: %s", id, line)
			}
		}
	})
}

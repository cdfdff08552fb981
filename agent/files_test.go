package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
)

func TestEditAndUndo(t *testing.T) {
	w := newWorld(t)
	main := scope(t, "main")
	edit := func(old, replacement string) {
		t.Helper()
		if text, ok := w.call(main, agent.ToolEdit, map[string]any{"path": "MEMORY.md", "old": old, "new": replacement}); !ok {
			t.Fatal(text)
		}
		w.clock.move(time.Second)
	}
	edit("", "v1\n")
	edit("v1", "v2")
	edit("v2", "v3")
	undo := func(want string) {
		t.Helper()
		if text, ok := w.call(main, agent.ToolEdit, map[string]any{"path": "MEMORY.md", "undo": true}); !ok {
			t.Fatal(text)
		}
		if got := w.stored("MEMORY.md"); got != want {
			t.Fatalf("after undo %q, want %q", got, want)
		}
	}
	undo("v2\n")
	undo("v1\n")
	undo("") // as before it was there
	if _, err := w.Undo(t.Context(), "MEMORY.md"); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "every edit") {
		t.Errorf("a fourth undo: %v", err)
	}
	edit("", "v1\n")
	edit("v1", "v4")
	undo("v1\n")
	versions, err := w.Versions(t.Context(), "MEMORY.md")
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, v := range versions {
		kept[string(v.Content)] = true
	}
	for _, text := range []string{"v1\n", "v2\n", "v3\n", "v4\n"} {
		if !kept[text] {
			t.Errorf("%q is kept nowhere", text)
		}
	}
}

// TestUndoKeepsFacts undoes a person's edit of a daily file after the agent wrote to it.
func TestUndoKeepsFacts(t *testing.T) {
	w := newWorld(t)
	w.remember(scope(t, "main"), "x1", "first fact")
	f, err := w.File(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.move(time.Minute)
	if _, err := w.PutFile(t.Context(), day, []byte("rewritten\n"), f.ETag); err != nil {
		t.Fatal(err)
	}
	w.clock.move(time.Minute)
	w.remember(scope(t, "main"), "x2", "second fact")
	if _, err := w.Undo(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(day); strings.Count(got, "first fact") != 1 || strings.Count(got, "second fact") != 1 || strings.Contains(got, "rewritten") {
		t.Errorf("file\n%s", got)
	}
}

// TestUndoFirst undoes what made a file, and says why there is nothing to undo.
func TestUndoFirst(t *testing.T) {
	w := newWorld(t)
	put := func(path, text string) {
		t.Helper()
		if _, err := w.PutFile(t.Context(), path, []byte(text), ""); err != nil {
			t.Fatal(err)
		}
	}
	put("SOUL.md", "one")
	put("memory/2026-11-20.md", "- bread\n")
	w.remember(scope(t, "main"), "x1", "first fact")
	for _, tc := range []struct{ name, path, left, want string }{
		{"made by an edit", "SOUL.md", "", ""},
		{"daily file made by an edit", "memory/2026-11-20.md", "", ""},
		{"daily file that the agent made", day, "first fact", "no edit"},
		{"not there", "USER.md", "", "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := w.Undo(t.Context(), tc.path)
			if (err == nil) != (tc.want == "") || err != nil && (!errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if got := w.stored(tc.path); !strings.Contains(got, tc.left) || tc.left == "" && got != "" {
				t.Errorf("left %q", got)
			}
		})
	}
}

func TestPutFile(t *testing.T) {
	w := newWorld(t)
	f, err := w.PutFile(t.Context(), "SOUL.md", []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, path, content, match string
		want                       error
	}{
		{"exists", "SOUL.md", "two", "", tidemark.ErrConflict},
		{"stale", "SOUL.md", "two", "other", tidemark.ErrConflict},
		{"condition on nothing", "USER.md", "two", f.ETag, tidemark.ErrConflict},
		{"outside", "../x", "two", "", tidemark.ErrInvalid},
		{"no memory file", "sessions/x.jsonl.gz", "two", "", tidemark.ErrInvalid},
		{"not UTF-8", "SOUL.md", "\xff", "*", tidemark.ErrInvalid},
		{"NUL", "SOUL.md", "a\x00b", "*", tidemark.ErrInvalid},
		{"large", "SOUL.md", strings.Repeat("x", 1_800_001), "*", tidemark.ErrTooLarge},
		{"as large as may be", "IDENTITY.md", strings.Repeat("x", 1_800_000), "*", nil},
		{"right version", "SOUL.md", "two", f.ETag, nil},
		{"any version", "SOUL.md", "three", "*", nil},
		{"any version of none", "TOOLS.md", "tools", "*", nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := w.PutFile(t.Context(), r.path, []byte(r.content), r.match)
			if !errors.Is(err, r.want) || r.want == nil && err != nil {
				t.Fatalf("%v, want %v", err, r.want)
			}
			if r.want != nil {
				return
			}
			read, err := w.File(t.Context(), r.path)
			if err != nil || string(read.Content) != r.content || read.ETag != got.ETag {
				t.Errorf("read %+v, %v", read, err)
			}
		})
	}
	if _, err := w.File(t.Context(), "MEMORY.md"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("missing file: %v", err)
	}
}

func TestFiles(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		write(t, w.blobs, fmt.Sprintf("memory/2026-11-%02d.md", i+1), "x")
	}
	write(t, w.blobs, "MEMORY.md", "x")
	write(t, w.blobs, "MEMORY.md.bak", "x")
	write(t, w.blobs, "memory/notes.txt", "x")
	var got []string
	for cursor := ""; ; {
		page, next, err := w.Files(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page {
			got = append(got, f.Path)
			if f.Size != 1 || f.ETag == "" {
				t.Errorf("%+v", f)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	want := "MEMORY.md memory/2026-11-01.md memory/2026-11-02.md memory/2026-11-03.md memory/2026-11-04.md memory/2026-11-05.md"
	if strings.Join(got, " ") != want {
		t.Errorf("files %v", got)
	}
}

func TestDirectory(t *testing.T) {
	w := newWorld(t)
	report := func(key string, at time.Time, title string) {
		t.Helper()
		if err := w.Report(t.Context(), tidemark.SessionInfo{Key: tidemark.Key(key), ID: "01", UpdatedAt: at, Title: title}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 { // some at the same time
		report(fmt.Sprintf("agent:main:local:dm:s%d", i), noon.Add(time.Duration(i/2)*time.Second), "new")
	}
	report("agent:main:local:dm:s6", noon.Add(-time.Hour), "stale")
	var got []string
	for cursor := ""; ; {
		page, next, err := w.Sessions(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			got = append(got, s.Key.Peer()+s.Title)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if want := "s6new s4new s5new s2new s3new s0new s1new"; strings.Join(got, " ") != want {
		t.Errorf("directory %v, want %s", got, want)
	}
	if s, err := w.Session(t.Context(), "agent:main:local:dm:s3"); err != nil || s.ID != "01" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := w.Session(t.Context(), "agent:main:local:dm:none"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("unknown session: %v", err)
	}
	if err := w.Report(t.Context(), tidemark.SessionInfo{Key: "agent:other:main"}, nil); !errors.Is(err, tidemark.ErrForbidden) {
		t.Errorf("session of another agent: %v", err)
	}
	if _, _, err := w.Sessions(t.Context(), "x", 0); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("bad cursor: %v", err)
	}
}

// TestArchiveIndex reports archives while the index cannot be written, and after.
func TestArchiveIndex(t *testing.T) {
	w := newWorld(t)
	isDown := true
	w.blobs.Fail = func(op, key string) error {
		if isDown && op == "put" {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	var infos []archive.Info
	for i := range 3 {
		at := noon.Add(time.Duration(i) * time.Minute)
		infos = append(infos, archive.Info{Key: archive.PartKey("main", "01S", at), SessionKey: "agent:main:main", Session: "01S", Agent: "main", Part: int64(i + 1), Messages: 4, At: at, Bytes: 100})
	}
	for range 2 {
		if err := w.Report(t.Context(), tidemark.SessionInfo{}, infos); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		page, next, err := w.Archives(t.Context(), archive.ListOptions{})
		if err != nil || next != "" || len(page) != 3 || page[0].Key != infos[2].Key || page[2].Part != 1 {
			t.Errorf("%s: %+v, %q, %v", when, page, next, err)
		}
	}
	check("while the bucket is down")
	isDown = false
	w.restart()
	w.settle()
	check("after")
	listed, _, err := archive.List(t.Context(), w.blobs, "main", archive.ListOptions{})
	if err != nil || len(listed) != 3 {
		t.Errorf("the index has %+v, %v", listed, err)
	}
	// One that nobody reported is found in the bucket; one that is to be indexed is none of those.
	isDown = true
	late := archive.Info{Key: archive.PartKey("main", "01S", noon.Add(time.Hour)), SessionKey: "agent:main:main", Session: "01S", Agent: "main", Part: 4, Messages: 4, At: noon.Add(time.Hour)}
	if err := w.Report(t.Context(), tidemark.SessionInfo{}, []archive.Info{late}); err != nil {
		t.Fatal(err)
	}
	isDown = false
	lost := archive.WholeKey("main", "01LOST")
	for _, key := range []string{lost, late.Key} {
		write(t, w.blobs, strings.TrimPrefix(key, "agents/main/"), "{\"role\":\"user\",\"content\":\"x\"}\n")
	}
	survey, err := w.Mend(t.Context(), archive.Bounds{})
	if err != nil || len(survey.Added) != 1 || survey.Added[0] != lost {
		t.Errorf("%+v, %v", survey, err)
	}
	if err := w.Report(t.Context(), tidemark.SessionInfo{}, []archive.Info{{Key: archive.WholeKey("other", "x")}}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("archive of another agent: %v", err)
	}
}

// TestPromptWithin: large files written by a person stay within what a small window leaves.
func TestPromptWithin(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("- a line that a person wrote into the file\n", 2000)
	for _, path := range []string{day, "memory/2026-11-20.md", "MEMORY.md", "SOUL.md"} {
		if _, err := w.PutFile(t.Context(), path, []byte(text), "*"); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name        string
		most, bound tidemark.Tokens
	}{
		{"a quarter of 4,000", 1000, 1000},
		{"a quarter of 20,000", 5000, 5000},
		{"more than the budget", 1_000_000, 12_000},
		{"nothing", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := w.PromptWithin(t.Context(), scope(t, "main"), noon, tc.most)
			if n := tidemark.EstimateText(got); err != nil || n > tc.bound || n < tc.bound/2 {
				t.Errorf("%d tokens, at most %d, %v", n, tc.bound, err)
			}
		})
	}
}

package claude

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// damages are what may become of a file.
var damages = map[string]func([]byte) []byte{
	"seven bytes": func(b []byte) []byte { copy(b[len(b)/2:], "xxxxxxx"); return b },
	"zeros":       func(b []byte) []byte { clear(b); return b },
	"cut off":     func(b []byte) []byte { return b[:len(b)/2] },
	"nothing":     func([]byte) []byte { return nil },
	"another":     func([]byte) []byte { return s2.Encode(nil, []byte("another content")) },
	"a huge one":  func(b []byte) []byte { return append(b, make([]byte, 8<<20)...) },
}

// TestMends: what is damaged in the store is told by a check, and is whole again behind an import of the archive, another
// snapshot of the log, and a hook before a compaction.
func TestMends(t *testing.T) {
	w := newWorld(t)
	told := 0
	w.store.Mended = func(objects int) { told += objects }
	log := w.talk(idOne, 700)
	node := w.snap(w.write(idOne, log), "one")
	var archive bytes.Buffer
	must(t, w.store.Export(t.Context(), node.ID, &archive))
	objects := objectsIn(t, w.store)
	if len(objects) < 2 {
		t.Fatalf("%d objects", len(objects))
	}
	ways := map[string]func() error{
		"import": func() error { _, err := w.store.Import(t.Context(), bytes.NewReader(archive.Bytes())); return err },
		"snapshot": func() error {
			_, err := w.store.Snapshot(t.Context(), w.session(idOne), SnapshotOptions{Name: "again"})
			return err
		},
		"hook": func() error {
			_, err := (Hook{Store: w.store}).Run(t.Context(), w.call(EventPreCompact, idOne))
			return err
		},
	}
	for way, mend := range ways {
		for name, damage := range damages {
			for _, path := range objects {
				must(t, os.WriteFile(path, damage([]byte(w.read(path))), 0o600))
			}
			found, err := w.store.Check(t.Context(), node.ID)
			if err != nil || len(found.Damaged) != 1 || found.Damaged[0].Node.ID != node.ID || !strings.Contains(found.Damaged[0].Problem, "damaged") {
				t.Errorf("%s, %s: found %+v, %v", way, name, found, err)
			}
			told = 0
			if err := mend(); err != nil || told != len(objects) {
				t.Errorf("%s, %s: %d of %d objects mended, %v", way, name, told, len(objects), err)
			}
			found, err = w.store.Check(t.Context(), "")
			if err != nil || len(found.Damaged) != 0 || found.Bytes < int64(len(log)) {
				t.Errorf("%s, %s: left %+v, %v", way, name, found, err)
			}
			if logOf(t, w.store, node.ID) != log {
				t.Errorf("%s, %s: the log is another", way, name)
			}
		}
		told = 0
		if err := mend(); err != nil || told != 0 {
			t.Errorf("%s: %d of nothing mended, %v", way, told, err)
		}
	}
	noTemps(t, w.store.Home)
}

// TestCheckMissing: a piece that is gone is damage too, of each snapshot that needs it and of no other.
func TestCheckMissing(t *testing.T) {
	w := newWorld(t)
	one := w.snap(w.write(idOne, w.talk(idOne, 2)), "one")
	two := w.snap(w.session(idOne), "two")
	w.snap(w.write(idTwo, w.talk(idTwo, 2)), "other")
	found, err := w.store.Check(t.Context(), "")
	if whole := int64(len(w.talk(idOne, 2)) + len(w.talk(idTwo, 2))); err != nil || found.Bytes != whole { // shared ones once
		t.Errorf("%d bytes of %d read, %v", found.Bytes, whole, err)
	}
	_, files, err := w.store.kept(t.Context(), one.ID)
	must(t, err)
	for _, h := range files.Files[0].Pieces {
		must(t, os.Remove(w.store.objects().path(h)))
	}
	found, err = w.store.Check(t.Context(), "")
	if err != nil || found.Snapshots != 3 || len(found.Damaged) != 2 || found.Damaged[0].Node.ID != one.ID || found.Damaged[1].Node.ID != two.ID {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := w.store.Check(t.Context(), "nobody"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
}

// TestImportOfOther: an archive of the same log with other files beside it does not say that a snapshot is here which
// cannot be read.
func TestImportOfOther(t *testing.T) {
	w := newWorld(t)
	node, log, _ := exported(t, w)
	var archive bytes.Buffer
	a, err := snapshot.NewWriter(&archive, snapshot.Manifest{Kind: snapshot.OfClaude, Node: node})
	must(t, err)
	must(t, a.Log(int64(len(log)), strings.NewReader(log)))
	must(t, a.Side("other.txt", 1, strings.NewReader("x")))
	must(t, a.Close())
	if _, err := w.store.Import(t.Context(), bytes.NewReader(archive.Bytes())); err != nil {
		t.Fatal(err)
	}
	side := w.store.objects().path(tidemark.HashOf([]byte("output")))
	must(t, os.WriteFile(side, []byte("damaged"), 0o600))
	if _, err := w.store.Import(t.Context(), bytes.NewReader(archive.Bytes())); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("damaged: %v", err)
	}
}

// TestOrphanCuts: cuts of a branch that never came to be go after a week, with the next branch and the next drop; all
// others stay.
func TestOrphanCuts(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 1)), "a")
	branch := func() Branch {
		b, err := w.store.Branch(t.Context(), "a", BranchOptions{Trim: true})
		must(t, err)
		return b
	}
	listed, forgotten, moved := branch(), branch(), branch()
	_, _, err := w.store.Drop(t.Context(), forgotten.Session)
	must(t, err)
	for _, b := range []Branch{forgotten, moved} { // their logs lie elsewhere now
		must(t, os.Remove(b.Log))
	}
	gone := branch()
	must(t, os.Remove(gone.Log))
	if _, freed, err := w.store.Drop(t.Context(), gone.Session); err != nil || freed == 0 {
		t.Errorf("a branch whose log is gone: %d bytes freed, %v", freed, err)
	}
	if _, err := os.Stat(gone.Cuts); err == nil {
		t.Error("cuts of a branch whose log is gone stay")
	}
	w.write(idTwo, w.talk(idTwo, 1)) // killed between the log and the journal
	old := time.Now().Add(-8 * 24 * time.Hour)
	spare := branch()
	for way, sweep := range map[string]func(){
		"branch": func() { branch() },
		"drop": func() {
			_, _, err := w.store.Drop(t.Context(), spare.Session)
			must(t, err)
		},
	} {
		young := "9999eeee-aaaa-4bbb-8ccc-00000000000" + way[:1]
		for _, id := range []string{idTwo, idThree, young} {
			must(t, os.WriteFile(w.store.Cuts(id), []byte("cuts"), 0o600))
		}
		for _, id := range []string{idTwo, idThree, listed.Session, forgotten.Session, moved.Session} {
			must(t, os.Chtimes(w.store.Cuts(id), old, old))
		}
		sweep()
		for id, want := range map[string]bool{idThree: false, idTwo: true, young: true, listed.Session: true, forgotten.Session: true, moved.Session: true} {
			if _, err := os.Stat(w.store.Cuts(id)); (err == nil) != want {
				t.Errorf("%s: %s is there: %t, want %t", way, id, err == nil, want)
			}
		}
	}
	// Where no logs can be looked for, nothing is known.
	must(t, os.WriteFile(w.store.Cuts(idThree), []byte("cuts"), 0o600))
	must(t, os.Chtimes(w.store.Cuts(idThree), old, old))
	must(t, os.Rename(filepath.Join(w.store.Dir, projectsName), w.store.Dir+"-away"))
	_, _, err = w.store.Drop(t.Context(), listed.Session)
	must(t, err)
	if _, err := os.Stat(w.store.Cuts(idThree)); err != nil {
		t.Error(err)
	}
}

// TestLatest: the latest session is one that somebody worked in, and not the branch that was made of it since.
func TestLatest(t *testing.T) {
	w := newWorld(t)
	w.write(idOne, w.talk(idOne, 2))
	latest := func() string {
		t.Helper()
		s, err := w.store.Finder().Pick(t.Context(), Latest, w.project)
		must(t, err)
		return s.ID
	}
	past := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(w.path(idOne), past, past))
	w.snap(w.session(idOne), "a")
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{Trim: true})
	must(t, err)
	if got := latest(); got != idOne {
		t.Errorf("right after the branch: %s", got)
	}
	made := w.read(b.Log)
	must(t, os.WriteFile(b.Log, []byte(made+compacted(w.project, b.Session)), 0o600))
	if got := latest(); got != b.Session {
		t.Errorf("somebody went on in the branch: %s", got)
	}
	// Where there is nothing else, it is meant.
	must(t, os.WriteFile(b.Log, []byte(made), 0o600))
	must(t, os.Remove(w.path(idOne)))
	if got := latest(); got != b.Session {
		t.Errorf("the branch alone: %s", got)
	}
}

// TestHookBehindLarge: the size of a context is known behind results of any usual size, those of several screenshots too.
func TestHookBehindLarge(t *testing.T) {
	for _, kilobytes := range []int{10, 300, 1500, 6000} {
		w := newWorld(t)
		log := w.talk(idOne, 9)
		result := `{"type":"user","uuid":"r","sessionId":"` + idOne + `","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` +
			strings.Repeat("iVBORw0K", kilobytes<<10/8) + `"}}]}]}}` + "\n"
		w.write(idOne, log+result)
		tokens, err := contextOf(w.path(idOne))
		if err != nil || tokens < 9000 || tokens > 9000+2*tidemark.ImageTokens {
			t.Errorf("%d KB: %d tokens, %v", kilobytes, tokens, err)
		}
		if out := w.hook(EventPostToolUse); !strings.Contains(out.Message, "--resume") {
			t.Errorf("%d KB: %+v", kilobytes, out)
		}
	}
	// Behind a compaction the old size is not.
	w := newWorld(t)
	w.write(idOne, w.talk(idOne, 9)+strings.Split(compacted(w.project, idOne), "\n")[0]+"\n")
	if tokens, err := contextOf(w.path(idOne)); err != nil || tokens != 0 {
		t.Errorf("compacted: %d, %v", tokens, err)
	}
}

// TestTrimRefusesFirst: what is wrong with the branch is told before a snapshot is there.
func TestTrimRefusesFirst(t *testing.T) {
	w := newWorld(t)
	of := w.write(idOne, w.talk(idOne, 2))
	for name, o := range map[string]BranchOptions{
		"orientation": {Orientation: strings.Repeat("x", MaxOrientation+1)}, "no UTF-8": {Orientation: "\xff"}, "threshold": {Threshold: -1},
	} {
		if _, _, err := w.store.Trim(t.Context(), of, SnapshotOptions{}, o); !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, b := w.nodes(); s+b != 0 {
		t.Errorf("%d snapshots, %d branches", s, b)
	}
}

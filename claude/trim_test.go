package claude

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/transcript"
	"github.com/tidemark-ai/tidemark/trim"
)

// TestTrimmedBranch: outputs of tools go, words stay, the chain is whole, and the cuts bring the log back.
func TestTrimmedBranch(t *testing.T) {
	w := newWorld(t)
	then := strings.Replace(strings.ReplaceAll(w.talk(idOne, 10), "0000-4000", "0001-4000"), `"parentUuid":null`, `"parentUuid":"dddddddd-0000-4000-8000-000000000000"`, 1)
	log := w.talk(idOne, 10) + compacted(w.project, idOne) + then
	node, b, err := w.store.Trim(t.Context(), w.write(idOne, log), SnapshotOptions{Name: "a"}, BranchOptions{Orientation: "Go on with the tests."})
	must(t, err)
	got := w.read(b.Log)
	coherent(t, got, b.Session)
	if b.Trim == nil || b.Trim.ToolResultsStubbed != 10 || !b.Node.Trimmed || b.Node.Tokens >= node.Tokens/2 || b.Node.Tokens <= b.Trim.LiveTokensAfter || b.Node.Parent != node.ID {
		t.Errorf("%+v %+v", b.Node, b.Trim)
	}
	for _, want := range []string{"question 9, 1.0 and  9007199254740993", "answer 9", "This session is being continued.", "Go on with the tests.", "tidemark untrim " + b.Session[:shortID] + " --show"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(got, "line 9 of a file") {
		t.Error("an output is whole")
	}
	if !w.store.Active(w.session(idOne)) || w.store.Active(w.session(b.Session)) { // both were written a moment ago, one of them here
		t.Error("who is active is wrong")
	}
	all := entries(t, got)
	if all[0].Subtype != "compact_boundary" || all[1].Message.Content != "Go on with the tests." || all[len(all)-1].Title != b.Node.Name {
		t.Errorf("%+v", all[:2])
	}
	// The session goes on, and the cuts still fit.
	const more = `{"type":"user","later":true}` + "\n"
	must(t, os.WriteFile(b.Log, []byte(got+more), 0o600))
	whole := untrimmed(t, b)
	coherent(t, strings.TrimSuffix(whole, more), b.Session)
	untrimmedCopy, err := w.store.Branch(t.Context(), node.ID, BranchOptions{Name: b.Node.Name})
	must(t, err)
	plain := strings.ReplaceAll(w.read(untrimmedCopy.Log), untrimmedCopy.Session, b.Session)
	if again := strings.ReplaceAll(without(whole, "Go on with the tests."), all[1].UUID, *all[1].Parent); again != plain+more {
		t.Error("what comes back is not what was trimmed")
	}
	if w.read(w.path(idOne)) != log {
		t.Error("the log was written")
	}
	noTemps(t, filepath.Dir(w.store.Home))
}

// without takes the lines out that hold a text.
func without(log, text string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(log, "\n") {
		if !strings.Contains(line, text) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// untrimmed undoes the trim of a branch.
func untrimmed(t *testing.T, b Branch) string {
	t.Helper()
	raw, err := os.Open(b.Cuts)
	must(t, err)
	defer raw.Close()
	info, err := raw.Stat()
	must(t, err)
	cuts, err := trim.OpenCuts(raw, info.Size())
	must(t, err)
	log, err := os.Open(b.Log)
	must(t, err)
	defer log.Close()
	info, err = log.Stat()
	must(t, err)
	var out strings.Builder
	_, err = trim.Untrim(t.Context(), log, info.Size(), cuts, &out)
	must(t, err)
	return out.String()
}

// TestTrimDryRun tells what a trim would give, and writes nothing.
func TestTrimDryRun(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 10)), "a")
	before := tree(t, filepath.Dir(w.store.Home))
	b, err := w.store.Branch(t.Context(), "a", BranchOptions{Trim: true, DryRun: true})
	must(t, err)
	if b.Trim == nil || b.Trim.ToolResultsStubbed != 10 || b.Trim.LiveTokensAfter >= b.Trim.LiveTokensBefore {
		t.Errorf("%+v", b.Trim)
	}
	if after := tree(t, filepath.Dir(w.store.Home)); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// TestTryTrim: a dry run from a session takes no snapshot either, and tells what the real one then does.
func TestTryTrim(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 10)+`{"type":"user","torn`)
	before := tree(t, filepath.Dir(w.store.Home))
	node, tried, err := w.store.Trim(t.Context(), s, SnapshotOptions{Name: "a"}, BranchOptions{DryRun: true})
	must(t, err)
	if after := tree(t, filepath.Dir(w.store.Home)); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	kept, made, err := w.store.Trim(t.Context(), s, SnapshotOptions{Name: "a"}, BranchOptions{})
	must(t, err)
	if node.ID != "" || node.Tokens != kept.Tokens || node.Messages != kept.Messages || node.Hash != kept.Hash {
		t.Errorf("%+v, then %+v", node, kept)
	}
	if *tried.Trim != *made.Trim || tried.Node.Tokens != made.Node.Tokens || tried.Untrimmed != made.Untrimmed {
		t.Errorf("%+v, then %+v", tried, made)
	}
}

// TestTrimElsewhere: without a folder to go on in no snapshot is taken.
func TestTrimElsewhere(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, talkIn("/not/here", idOne, 3))
	for range 2 {
		if _, _, err := w.store.Trim(t.Context(), s, SnapshotOptions{}, BranchOptions{}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "--dir") {
			t.Error(err)
		}
	}
	if nodes, err := w.store.Nodes(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}

// TestNoFile: what is no file is not waited for.
func TestNoFile(t *testing.T) {
	w := newWorld(t)
	must(t, os.MkdirAll(filepath.Join(w.store.folder(), journalName), 0o700))
	if _, err := w.store.Nodes(t.Context()); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	if _, _, err := readSmall(w.project, 1); !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
		t.Error(err)
	}
}

// TestNamedOnce: the time stands in a name once, and a snapshot goes before a branch with its name.
func TestNamedOnce(t *testing.T) {
	w := newWorld(t)
	node := w.snap(w.write(idOne, w.talk(idOne, 2)), "")
	b, err := w.store.Branch(t.Context(), node.ID, BranchOptions{})
	must(t, err)
	if b.Node.Name != node.Name {
		t.Errorf("%q of %q", b.Node.Name, node.Name)
	}
	if got, err := w.store.Node(t.Context(), node.Name); err != nil || got.ID != node.ID {
		t.Errorf("%+v %v", got, err)
	}
}

// TestRealLogs branches real logs, when there are some: each keeps its words, and passes the checker beside them.
func TestRealLogs(t *testing.T) {
	folder := os.Getenv("TIDEMARK_TRANSCRIPTS")
	if folder == "" {
		t.Skip("TIDEMARK_TRANSCRIPTS names no folder of real logs")
	}
	logs, err := filepath.Glob(filepath.Join(folder, "*"+logSuffix))
	must(t, err)
	for _, path := range logs {
		w := newWorld(t)
		raw, err := os.ReadFile(path)
		must(t, err)
		id := strings.TrimSuffix(filepath.Base(path), logSuffix)
		_, b, err := w.store.Trim(t.Context(), w.write(id, string(raw)), SnapshotOptions{Name: "a"}, BranchOptions{Dir: w.project, Orientation: "told"})
		must(t, err)
		got := w.read(b.Log)
		coherent(t, got, b.Session)
		if items(t, got) == 0 {
			t.Error("no messages")
		}
		checker := filepath.Join(folder, "..", "..", "tools", "check_messages.py")
		if _, err := os.Stat(checker); err != nil {
			continue
		}
		out, err := exec.Command("python3", checker, b.Log).Output()
		if err != nil {
			t.Fatalf("%s: %v", checker, err)
		}
		for _, none := range []string{`"orphan_results": []`, `"unanswered_calls": []`, `"empty_content_lines": 0`, `"empty_messages": 0`, `"dangling_parent_uuids": 0`, `"duplicate_call_ids": []`} {
			if !strings.Contains(string(out), none) {
				t.Errorf("%s: no %s in %s", id, none, out)
			}
		}
	}
}

func items(t *testing.T, log string) int {
	t.Helper()
	n := 0
	for _, err := range transcript.Messages(strings.NewReader(log), transcript.Options{}) {
		must(t, err)
		n++
	}
	return n
}

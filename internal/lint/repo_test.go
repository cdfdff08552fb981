package lint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// root is where the module lies; tests run in the folder of their package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func tracked(t *testing.T) []string {
	t.Helper()
	files, err := Tracked(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(files, "go.mod") {
		t.Fatalf("git lists %d files and no go.mod in %s", len(files), root(t))
	}
	return files
}

func report(t *testing.T, fs []Finding) {
	t.Helper()
	if len(fs) > 0 {
		t.Errorf("%d findings\n%s", len(fs), Report(fs))
	}
}

func TestWorkerDiscipline(t *testing.T) {
	patterns, err := Reaching(root(t))
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := Load(root(t), Worker, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 2 {
		t.Fatalf("%d packages loaded of %v", len(pkgs), patterns)
	}
	t.Logf("%d packages reach the Worker", len(pkgs))
	report(t, Discipline(root(t), pkgs))
}

func TestWorkerLinks(t *testing.T) {
	if !hasGo(filepath.Join(root(t), "cmd/worker")) {
		t.Fatal("cmd/worker is gone: what the Worker links is not checked")
	}
	paths, err := workerDeps(root(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, Linked(paths))
}

// TestChaosDoors: the doors that break a Worker are only in a build that asks for them.
func TestChaosDoors(t *testing.T) {
	listed, err := List(root(t), Worker, false, "./cmd/worker")
	if err != nil || len(listed) != 1 {
		t.Fatalf("%d packages: %v", len(listed), err)
	}
	files, err := filepath.Glob(filepath.Join(root(t), "cmd/worker/chaos*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file of cmd/worker is named for the tag chaos: %v", err)
	}
	for _, f := range files {
		if slices.Contains(listed[0].GoFiles, filepath.Base(f)) {
			t.Errorf("%s is built without the tag chaos", f)
		}
	}
}

func TestImportTable(t *testing.T) {
	g, err := ReadGraph(root(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d packages, longest chain %v", len(g), longest(g))
	report(t, Imports(g))
}

func TestPlatformLines(t *testing.T) { report(t, Platform(root(t), tracked(t))) }

func TestBudgets(t *testing.T) { report(t, Budgets(root(t), tracked(t))) }

// TestShape prints what the tree looks like, and holds it.
func TestShape(t *testing.T) {
	s := ShapeOf(root(t), tracked(t))
	t.Log(s)
	report(t, Shapes(s))
	pkgs, err := Load(root(t), Worker, "./session")
	if err != nil || len(pkgs) != 1 || pkgs[0].Err != nil {
		t.Fatalf("%d packages: %v", len(pkgs), err)
	}
	all, up := Arrows(pkgs[0])
	t.Logf("session: %d files, %d arrows between them, %d on a cycle", len(pkgs[0].Files), all, up)
	if up > maxSessionArrows {
		t.Errorf("%d arrows between files of session are on a cycle, at most %d: what the core does not need of a room lies in the room", up, maxSessionArrows)
	}
}

func TestMachinePaths(t *testing.T) {
	places := []string{root(t) + "/"}
	if parent := filepath.Dir(root(t)); !slices.Contains([]string{"/", "/src", filepath.Clean(os.TempDir())}, parent) {
		places = append(places, parent+"/")
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		places = append(places, home+"/")
	}
	report(t, MachinePaths(root(t), tracked(t), places))
}

package claude

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// killedHome makes this test binary a process that takes snapshots until it is killed.
const killedHome = "TIDEMARK_TEST_KILLED"

// TestKilledChild is the process of TestKilled, and nothing without it.
func TestKilledChild(t *testing.T) {
	root := os.Getenv(killedHome)
	if root == "" {
		t.Skip("only TestKilled starts this")
	}
	s := &Store{Home: filepath.Join(root, "home"), Dir: filepath.Join(root, "claude")}
	of, err := s.Finder().Pick(t.Context(), idOne, "")
	must(t, err)
	log, err := os.ReadFile(of.Path)
	must(t, err)
	for i := 0; ; i++ {
		// Another content each time, so that objects are written all the while.
		own := fmt.Sprintf(`{"type":"user","pid":%d,"n":%d}`+"\n", os.Getpid(), i) + string(log)
		must(t, os.WriteFile(of.Path, []byte(own), 0o600))
		_, err := s.Snapshot(t.Context(), of, SnapshotOptions{Name: "child"})
		must(t, err)
	}
}

// TestKilled: a process that is killed in the middle of a snapshot leaves a store that is whole: what is listed can be
// read, the next one writes, and what was left behind goes with the next drop.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 1500)
	w.write(idOne, log)
	w.snap(w.session(idOne), "before")
	for round := range 4 {
		w.write(idOne, log)
		child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
		child.Env = append(os.Environ(), killedHome+"="+filepath.Dir(w.store.Home))
		must(t, child.Start())
		began := len(objectsIn(t, w.store))
		tick := time.NewTicker(time.Millisecond)
		for deadline := time.Now().Add(tidemarktest.Patience); len(objectsIn(t, w.store)) < began+1+5*round; <-tick.C {
			if time.Now().After(deadline) {
				_ = child.Process.Kill()
				t.Fatal("the child writes nothing")
			}
		}
		tick.Stop()
		must(t, child.Process.Kill())
		_ = child.Wait()

		w.write(idOne, log)
		w.snap(w.session(idOne), fmt.Sprint("after ", round))
	}
	nodes, err := w.store.Nodes(t.Context())
	must(t, err)
	for _, n := range nodes {
		if got := logOf(t, w.store, n.ID); !strings.HasSuffix(got, log) {
			t.Errorf("snapshot %s is not what was kept", n.ID)
		}
	}
	_, _, err = w.store.Drop(t.Context(), "before")
	must(t, err)
	noTemps(t, w.store.Home)
	for _, n := range nodes {
		if n.Name != "before" {
			logOf(t, w.store, n.ID)
		}
	}
}

//go:build !js

package fault

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
)

// begun is a fixture with a server and someone who talks in its main session.
func begun(t *testing.T, settings map[string]any) (*fixture, *server, *talker) {
	t.Helper()
	var ids atomic.Int64
	f := newFixture(t, newModel(t, &ids, 0).URL, settings)
	s := f.serve()
	at := &address{}
	at.set(s.url)
	return f, s, newTalker(t, at, "main")
}

// say delivers a message and returns the answer.
func (k *talker) say(id string) string {
	return k.deliver(input{id: id, kind: "messages", text: long(id), how: wait})
}

// TestTwoProcesses: a second server on a home is refused and told who the first is; commands go
// through the first; and what a killed server leaves is in nobody's way.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	f, s, k := begun(t, nil)
	k.say("one")
	_, told, code := f.run("serve", "--listen", "127.0.0.1:0")
	if err := contains(told, f.home, s.url, fmt.Sprint(s.cmd.Process.Pid), "what to do"); code != 1 || err != nil {
		t.Errorf("a second server ended with %d: %v", code, err)
	}
	listed := func(when string) {
		t.Helper()
		var out, told string
		var code int
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if out, told, code = f.run("sessions", "ls", "--json"); out != "[]\n" {
				break // the directory is told of a conversation after its first answer is out
			}
		}
		if err := contains(out, `"agent:main:main"`); code != 0 || err != nil {
			t.Errorf("%s, sessions ls ended with %d: %v\n%s", when, code, err, told)
		}
	}
	listed("beside the server")
	k.say("two")

	s.kill()
	listed("after the server was killed")
	s = f.serve()
	k.at.set(s.url)
	k.say("three")
	listed("beside the next server")
	s.stop()
	inspect(t, f).account([]*talker{k}, 1)
}

// ruin is one way in which a database cannot be used.
type ruin struct {
	name string
	make func(t *testing.T, path string)
	say  []string // what the error must say, beside the path
}

var ruins = []ruin{
	{"text", func(t *testing.T, path string) {
		write(t, path, bytes.Repeat([]byte("this is a letter, not a database\n"), 300))
	}, []string{"damaged", "backup"}},
	{"header overwritten", func(t *testing.T, path string) {
		raw := read(t, path)
		copy(raw, bytes.Repeat([]byte{0xff}, 100))
		write(t, path, raw)
	}, []string{"damaged", "backup"}},
	{"schema page overwritten", func(t *testing.T, path string) {
		raw := read(t, path)
		copy(raw[100:4096], bytes.Repeat([]byte{0xee}, 3996))
		write(t, path, raw)
	}, []string{"damaged", "backup"}},
	{"cut short", func(t *testing.T, path string) {
		raw := read(t, path)
		write(t, path, raw[:len(raw)/3])
	}, []string{"damaged", "backup"}},
	{"newer sessions", newer("session"), []string{"newer"}},
	{"newer agent", newer("agent"), []string{"newer"}},
	{"newer log", newer("log"), []string{"newer"}},
}

// newer makes a database look as a later version of the program would leave it.
func newer(space string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		db, err := native.OpenDB(path)
		if err == nil {
			err = db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE schema_versions SET version = 99 WHERE space = ?`, Args: []any{space}, Want: 1}})
		}
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCorruptAndNewer: a database that cannot be used is named with a way out, and left as it is,
// by the server and by commands; put back, all is there.
func TestCorruptAndNewer(t *testing.T) {
	for _, r := range ruins {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f, s, k := begun(t, nil)
			k.say("one")
			s.stop()
			path := filepath.Join(f.home, "agents", "main", "tidemark.db")
			whole := read(t, path)
			r.make(t, path)
			ruined := read(t, path)
			for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"sessions", "ls"}, {"doctor"}} {
				out, told, code := f.run(args...)
				if err := contains(out+told, append(r.say, path)...); code != 1 || err != nil {
					t.Errorf("%s ended with %d: %v", args[0], code, err)
				}
				if args[0] != "doctor" && !strings.Contains(told, "what to do") {
					t.Errorf("%s does not say what to do:\n%s", args[0], told)
				}
				if !bytes.Equal(read(t, path), ruined) {
					t.Errorf("%s changed the file", args[0])
				}
			}
			for _, suffix := range []string{"-wal", "-shm"} {
				_ = os.Remove(path + suffix) // the error says that it must go
			}
			write(t, path, whole)
			s = f.serve()
			k.at.set(s.url)
			k.say("two")
			s.stop()
			inspect(t, f).account([]*talker{k}, 0)
		})
	}
}

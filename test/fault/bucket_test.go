//go:build !js

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBucketDown: while archives cannot be written, turns go on, compaction and reset are put off and
// say so, and nothing leaves the view; a server that is killed meanwhile comes back; when the
// bucket is there again, what was put off is done.
func TestBucketDown(t *testing.T) {
	t.Parallel()
	f, s, k := begun(t, tight())
	k.say("first")
	folder := filepath.Join(f.bucket(), "agents", "main", "sessions")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, folder, []byte("not a folder"))
	f.withoutBucket(s, k)
	s.kill()
	s = f.serve()
	k.at.set(s.url)
	f.withoutBucket(s, k)

	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	f.bucketBack(s, k)
}

// withoutBucket talks until the session should have been compacted, and asks for a reset.
func (f *fixture) withoutBucket(s *server, k *talker) {
	f.t.Helper()
	const enough = 12 // messages, for the limit of tight
	for i := range enough {
		if got := k.say(fmt.Sprintf("down-%d-%d", s.cmd.Process.Pid, i)); !strings.HasPrefix(got, "Answer ") {
			f.t.Fatalf("without a bucket the answer is %q\n%s", got, s.log)
		}
	}
	if err := contains(s.log.String(), "compaction put off"); err != nil {
		f.t.Error(err)
	}
	got := k.deliver(input{id: fmt.Sprint("reset-", s.cmd.Process.Pid), kind: "reset", how: wait})
	if !strings.HasPrefix(got, "error") || !strings.Contains(got, "archive") {
		f.t.Errorf("a reset without a bucket is answered with %q", got)
	}
	if got := k.say(fmt.Sprint("after-reset-", s.cmd.Process.Pid)); !strings.HasPrefix(got, "Answer ") {
		f.t.Fatalf("after a reset that could not be made the answer is %q\n%s", got, s.log)
	}
}

// bucketBack holds that what was put off is done, and nothing is lost.
func (f *fixture) bucketBack(s *server, k *talker) {
	f.t.Helper()
	for i := range 12 {
		if got := k.say(fmt.Sprint("back-", i)); !strings.HasPrefix(got, "Answer ") {
			f.t.Fatalf("with the bucket back the answer is %q\n%s", got, s.log)
		}
	}
	f.settled(s, "main")
	f.quietWithin(s, 2*minute) // the agent lets a bucket rest that failed
	s.stop()
	e := inspect(f.t, f)
	e.failures = nil // the resets that could not be made
	e.account([]*talker{k}, 1)
	if e.compactions == 0 {
		f.t.Errorf("nothing was compacted: %s", e)
	}
}

// TestBucketIsFile: a bucket that is no folder is named at the start, with a way out.
func TestBucketIsFile(t *testing.T) {
	t.Parallel()
	f, s, k := begun(t, nil)
	k.say("one")
	s.stop()
	away := f.bucket() + ".away"
	if err := os.Rename(f.bucket(), away); err != nil {
		t.Fatal(err)
	}
	write(t, f.bucket(), []byte("not a folder"))
	_, told, code := f.run("serve", "--listen", "127.0.0.1:0")
	if err := contains(told, f.bucket(), "what to do"); code != 1 || err != nil {
		t.Errorf("the server ended with %d: %v", code, err)
	}
	out, _, code := f.run("doctor")
	if err := contains(out, f.bucket(), "fail  bucket"); code != 1 || err != nil {
		t.Errorf("the doctor ended with %d: %v", code, err)
	}
	if err := os.Remove(f.bucket()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, f.bucket()); err != nil {
		t.Fatal(err)
	}
	s = f.serve()
	k.at.set(s.url)
	k.say("two")
	s.stop()
	inspect(t, f).account([]*talker{k}, 0)
}

package fault

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// mount puts a small file system at dir, which only some machines allow.
func mount(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENODEV) {
		t.Skipf("this machine lets nobody mount a small disk: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a process that was killed may hold a file of it for a moment more
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// remount makes a file system read-only, as the kernel does after an error of the disk, or writable
// again.
func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
		t.Fatal(err)
	}
}

// TestDiskFull: on a full disk inputs are refused with the reason and reads go on; a server that is
// killed then leaves nothing torn; with room again all goes on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "disk")
	mount(t, home, "16m")
	var ids atomic.Int64
	f := &fixture{t: t, home: home, kind: binaryKind{}}
	f.configure(newModel(t, &ids, 0).URL, tight())
	s := f.serve()
	at := &address{}
	at.set(s.url)
	k := newTalker(t, at, "main")
	for i := range 8 {
		k.say(fmt.Sprint("before-", i))
	}

	filler := filepath.Join(home, "filler")
	if err := os.WriteFile(filler, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	refused := k.untilRefused(t)
	status, body := request(t, s.url, `{"text":"hello"}`)
	if err := contains(body, `"unavailable"`, "free some space"); status != http.StatusServiceUnavailable || err != nil {
		t.Errorf("a message on a full disk is answered with %d, %v", status, err)
	}
	if err := contains(s.log.String(), "request failed", "disk is full"); err != nil {
		t.Error(err)
	}
	var health struct {
		OK       bool   `json:"ok"`
		Status   string `json:"status"`
		Problems []struct {
			Message string `json:"message"`
		} `json:"problems"`
	}
	if err := get(t.Context(), s.url, "/healthz", &health); err != nil || health.OK || health.Status != "storage" || !strings.Contains(fmt.Sprint(health.Problems), "disk is full") {
		t.Errorf("health on a full disk: %+v, %v", health, err)
	}
	var info struct {
		Messages int `json:"messages"`
	}
	if err := get(t.Context(), s.url, "/v1/sessions/main", &info); err != nil || info.Messages < 16 {
		t.Errorf("reading on a full disk: %d messages, %v", info.Messages, err)
	}
	out, _, code := f.run("doctor")
	if err := contains(out, "fail  home       write ", "free some space on its disk", "fail  storage", "fail  bucket", "disk"); code != 1 || err != nil {
		t.Errorf("the doctor ended with %d: %v", code, err)
	}
	s.kill()

	if _, told, code := f.run("sessions", "ls"); code != 0 { // it may or may not find room to open
		if err := contains(told, "tidemark.db", "disk is full", "what to do"); err != nil {
			t.Errorf("a command on a full disk ended with %d: %v", code, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s = f.serve()
	at.set(s.url)
	k.deliver(refused)
	for i := range 8 {
		if got := k.say(fmt.Sprint("after-", i)); !strings.HasPrefix(got, "Answer ") {
			t.Errorf("with room again the answer is %q\n%s", got, s.log)
		}
	}
	f.settled(s, "main")
	s.stop()
	e := inspect(t, f)
	e.failures = nil // a turn whose answer found no room
	e.account([]*talker{k}, 1)
}

// untilRefused sends messages until one is not taken, and returns that one.
func (k *talker) untilRefused(t *testing.T) input {
	t.Helper()
	const most = 100
	for i := range most {
		in := input{id: fmt.Sprint("full-", i), kind: "messages", text: long("full"), how: leave}
		k.sent = append(k.sent, in.id)
		if _, durable := k.send(in); !durable {
			k.sent = k.sent[:len(k.sent)-1]
			return in
		}
		k.acknowledged = append(k.acknowledged, in.id)
	}
	t.Fatalf("a full disk took %d messages", most)
	return input{}
}

// request says something in the main session and returns the answer as it is.
func request(t *testing.T, base, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(base+"/v1/sessions/main/messages?wait=0", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw := make([]byte, 1<<16)
	n, _ := resp.Body.Read(raw)
	return resp.StatusCode, string(raw[:n])
}

// TestBucketReadOnly: as TestBucketDown, on a file system that was remounted read-only, which memory
// files are in too.
func TestBucketReadOnly(t *testing.T) {
	t.Parallel()
	var ids atomic.Int64
	f := newFixture(t, newModel(t, &ids, 0).URL, tight())
	mount(t, f.bucket(), "16m")
	s := f.serve()
	at := &address{}
	at.set(s.url)
	k := newTalker(t, at, "main")
	k.say("first")
	remount(t, f.bucket(), syscall.MS_RDONLY)
	f.withoutBucket(s, k)
	out, _, code := f.run("doctor")
	if err := contains(out, "fail  bucket", "read-only"); code != 1 || err != nil {
		t.Errorf("the doctor ended with %d: %v", code, err)
	}
	s.kill()
	s = f.serve()
	at.set(s.url)
	f.withoutBucket(s, k)
	remount(t, f.bucket(), 0)
	f.bucketBack(s, k)
}

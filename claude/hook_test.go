package claude

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// call is the input of a hook.
func (w *world) call(event, id string) io.Reader {
	raw, err := json.Marshal(map[string]any{"session_id": id, "transcript_path": w.path(id), "hook_event_name": event, "trigger": "auto",
		"tool_name": "Read", "tool_response": map[string]any{"x": strings.Repeat("y", 1000)}})
	must(w.t, err)
	return strings.NewReader(string(raw))
}

func (w *world) hook(event string) HookOutput {
	w.t.Helper()
	out, err := Hook{Store: w.store, Tokens: 5000}.Run(w.t.Context(), w.call(event, idOne))
	must(w.t, err)
	return out
}

func (w *world) nodes() (snapshots, branches int) {
	w.t.Helper()
	nodes, err := w.store.Nodes(w.t.Context())
	must(w.t, err)
	for _, n := range nodes {
		if n.Kind == "branch" {
			branches++
		} else {
			snapshots++
		}
	}
	return snapshots, branches
}

// TestPreCompact: each compaction is kept, the same content once.
func TestPreCompact(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 3)
	w.write(idOne, log)
	first := w.hook(EventPreCompact)
	if !strings.Contains(first.Message, "tidemark branch cc-") || !first.Quiet { // what it prints is no part of the talk
		t.Errorf("%+v", first)
	}
	if again := w.hook(EventPreCompact); again.Message != first.Message {
		t.Errorf("twice: %+v", again)
	}
	w.write(idOne, log+compacted(w.project, idOne))
	w.hook(EventPreCompact)
	if s, b := w.nodes(); s != 2 || b != 0 {
		t.Errorf("%d snapshots, %d branches", s, b)
	}
}

// TestPostToolUse: a branch is prepared when the context is large, and again only when it has grown by a quarter.
func TestPostToolUse(t *testing.T) {
	w := newWorld(t)
	for _, r := range []struct {
		name      string
		exchanges int // the context has some 1,400 tokens for the first, and 1,000 for each further
		branches  int
	}{
		{"small", 3, 0}, {"large", 6, 1}, {"again", 6, 1}, {"grown a little", 7, 1}, {"grown", 8, 2}, {"not yet", 9, 2}, {"grown again", 11, 3},
	} {
		w.write(idOne, w.talk(idOne, r.exchanges))
		_, before := w.nodes()
		out := w.hook(EventPostToolUse)
		_, after := w.nodes()
		if after != r.branches || (out.Message != "") != (after > before) || out.Message != "" && !strings.Contains(out.Message, "claude --resume") {
			t.Errorf("%s: %d branches, %q", r.name, after, out.Message)
		}
	}
	// A context that was compacted begins anew.
	w.write(idOne, w.talk(idOne, 5))
	if out := w.hook(EventPostToolUse); out.Message == "" {
		t.Error("nothing after a compaction")
	}
}

// TestNoGain: where a trim gives little, there is no branch, and no trial at each call.
func TestNoGain(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","cwd":%s,"message":{"role":"user","content":%s}}`+"\n", i, quoted(w.project), quoted(strings.Repeat("words of mine ", 200)))
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"a%d","message":{"id":"m%d","role":"assistant","content":[{"type":"text","text":"yes"}],"usage":{"input_tokens":%d}}}`+"\n", i, i, 9000+i)
	}
	w.write(idOne, b.String())
	if out := w.hook(EventPostToolUse); out.Message != "" {
		t.Errorf("%q", out.Message)
	}
	if snapshots, branches := w.nodes(); snapshots+branches != 0 {
		t.Errorf("%d snapshots, %d branches", snapshots, branches)
	}
	if (Hook{Store: w.store}).due(idOne, 9030) {
		t.Error("it is tried at each call")
	}
}

// TestHookRefuses: what is not the log of the session that is named is not touched.
func TestHookRefuses(t *testing.T) {
	w := newWorld(t)
	w.write(idOne, w.talk(idOne, 9))
	outside := filepath.Join(w.project, idTwo+logSuffix)
	must(t, os.WriteFile(outside, []byte(w.talk(idTwo, 9)), 0o600))
	link := w.path(idTwo)
	must(t, os.Symlink(outside, link))
	before := tree(t, w.store.Dir)
	for name, input := range map[string]string{
		"no JSON": "{", "nothing": "", "null": "null",
		"escape":        `{"session_id":"../../escape","transcript_path":"` + w.path(idOne) + `","hook_event_name":"PreCompact"}`,
		"other session": `{"session_id":"` + idTwo + `","transcript_path":"` + w.path(idOne) + `","hook_event_name":"PreCompact"}`,
		"outside":       `{"session_id":"` + idTwo + `","transcript_path":"` + outside + `","hook_event_name":"PreCompact"}`,
		"a link":        `{"session_id":"` + idTwo + `","transcript_path":"` + link + `","hook_event_name":"PreCompact"}`,
		"dots":          `{"session_id":"` + idTwo + `","transcript_path":"` + filepath.Dir(w.path(idOne)) + `/../../../` + filepath.Base(w.project) + `/` + idTwo + `.jsonl","hook_event_name":"PreCompact"}`,
		"no file":       `{"session_id":"` + idThree + `","transcript_path":"` + w.path(idThree) + `","hook_event_name":"PreCompact"}`,
		"event":         `{"session_id":"` + idOne + `","transcript_path":"` + w.path(idOne) + `","hook_event_name":"Stop"}`,
	} {
		out, err := Hook{Store: w.store, Tokens: 1}.Run(t.Context(), strings.NewReader(input))
		if !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrNotFound) || out.Message != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := tree(t, w.store.Dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	if s, b := w.nodes(); s+b != 0 {
		t.Errorf("%d snapshots, %d branches", s, b)
	}
}

// TestLiveLog: a log that is written every few milliseconds while hooks run side by side loses no line and no byte.
func TestLiveLog(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 300)
	w.write(idOne, log)
	done := make(chan string)
	stop := make(chan struct{})
	go func() {
		written := log
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- written
				return
			case <-tick.C:
			}
			line := fmt.Sprintf(`{"type":"user","uuid":"live-%d","sessionId":"%s","message":{"role":"user","content":"live %d"}}`+"\n", n, idOne, n)
			f, err := os.OpenFile(w.path(idOne), os.O_APPEND|os.O_WRONLY, 0)
			if err == nil { // half a line first, as a slow writer has it
				_, _ = f.WriteString(line[:len(line)/2])
				_, _ = f.WriteString(line[len(line)/2:])
				_ = f.Close()
			}
			written += line
		}
	}()
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			event := EventPreCompact
			if i%2 == 0 {
				event = EventPostToolUse
			}
			for range 3 {
				if _, err := (Hook{Store: &Store{Home: w.store.Home, Dir: w.store.Dir}, Tokens: 5000}).Run(t.Context(), w.call(event, idOne)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	close(stop)
	written := <-done
	if w.read(w.path(idOne)) != written {
		t.Error("the log is not what was written")
	}
	nodes, err := w.store.Nodes(t.Context())
	must(t, err)
	branches := 0
	for _, n := range nodes {
		if n.Kind == "branch" {
			branches++
			coherent(t, w.read(w.path(n.Session)), n.Session)
			continue
		}
		// Each snapshot is a beginning of the log that ends with a line.
		kept := logOf(t, w.store, n.ID)
		if !strings.HasPrefix(written, kept) || !strings.HasSuffix(kept, "\n") {
			t.Errorf("snapshot %s is no beginning of the log", n.ID)
		}
	}
	if branches != 1 || len(nodes) < 2 {
		t.Errorf("%d branches of %d nodes", branches, len(nodes))
	}
}

func TestHookLog(t *testing.T) {
	w := newWorld(t)
	l := w.store.HookLog()
	if l.Last() != "" {
		t.Error("something was said")
	}
	l.Say("first")
	l.Say("second\n\x1b[2J of two")
	if got := l.Last(); !strings.HasSuffix(got, "second [2J of two") {
		t.Errorf("%q", got)
	}
	for range 1200 {
		l.Say(strings.Repeat("long ", 100))
	}
	for _, suffix := range []string{"", ".1"} {
		if info, err := os.Stat(l.path + suffix); err != nil || info.Size() > maxHookLog+1000 {
			t.Errorf("%s: %v", suffix, err)
		}
	}
}

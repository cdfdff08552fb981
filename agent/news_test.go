package agent_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// reader is a conversation with a prompt of some time.
type reader struct {
	w      *world
	scope  tidemark.Scope
	prompt string
	mark   memory.Mark
}

func (w *world) reader(key string) *reader {
	w.t.Helper()
	r := &reader{w: w, scope: scope(w.t, key)}
	r.renew()
	return r
}

// renew makes the prompt anew.
func (r *reader) renew() {
	r.w.t.Helper()
	var err error
	if r.prompt, r.mark, err = r.w.PromptWithin(r.w.t.Context(), r.scope, r.w.clock.Now(), 12_000); err != nil {
		r.w.t.Fatal(err)
	}
}

// note is what it is told now.
func (r *reader) note() string {
	r.w.t.Helper()
	n, err := r.w.News(r.w.t.Context(), r.scope, memory.Since{Mark: r.mark, Now: r.w.clock.Now(), Most: 1000})
	if err != nil {
		r.w.t.Fatal(err)
	}
	return n.Note(r.prompt)
}

// TestNews: what is written anywhere reaches every conversation that may read it and no other, once: in the note until the prompt
// is made anew, then in the prompt.
func TestNews(t *testing.T) {
	alice, bob := "agent:main:whatsapp:dm:+491", "agent:main:whatsapp:dm:+492"
	keys := map[string]string{"main": owners, "garden": "agent:main:local:dm:garden", "child": "agent:main:delegate:dm:c1", "alice": alice, "bob": bob}
	peerFile := func(key string) string { return memory.PeerDaily(scope(t, key).Peer, "2026-11-21") }
	for _, row := range []struct {
		name    string
		do      func(w *world)
		word    string
		private string // who is told by default
		shared  string // and with memory.sharing = "agent"
	}{
		{"the owner edits MEMORY.md", func(w *world) { write(t, w.blobs, "MEMORY.md", "- planted\n") }, "planted", "main", "main"},
		{"the owner edits a daily file", func(w *world) { write(t, w.blobs, day, "planted\n") }, "planted", "main garden child", "main garden child alice bob"},
		{"and yesterday's", func(w *world) { write(t, w.blobs, "memory/2026-11-20.md", "planted\n") }, "planted", "main garden child", "main garden child alice bob"},
		{"an older one", func(w *world) { write(t, w.blobs, "memory/2026-11-19.md", "planted\n") }, "planted", "", ""},
		{"a conversation of the owner learns", func(w *world) { w.remember(scope(t, keys["garden"]), "x", "planted") }, "planted", "main garden child", "main garden child alice bob"},
		{"a peer's learns", func(w *world) { w.remember(scope(t, alice), "x", "planted") }, "planted", "alice", "main garden child alice bob"},
		{"and the owner hears of it", func(w *world) { w.remember(scope(t, alice), "x", "planted") }, "1 fact from whatsapp:+491, see", "main garden child", ""},
		{"the owner edits a peer's file", func(w *world) { write(t, w.blobs, peerFile(bob), "- planted\n") }, "planted", "bob", ""},
		{"the owner edits the persona", func(w *world) { write(t, w.blobs, "SOUL.md", "- planted\n") }, "planted", "", ""},
	} {
		for _, sharing := range []memory.Sharing{memory.SharePeer, memory.ShareAgent} {
			t.Run(row.name+", "+string(sharing), func(t *testing.T) {
				w := newWorld(t)
				w.configure(func(c *agent.Config) { c.Sharing = sharing })
				who := map[string]*reader{}
				for name, key := range keys {
					who[name] = w.reader(key)
				}
				row.do(w)
				told := row.private
				if sharing == memory.ShareAgent {
					told = row.shared
				}
				for name, r := range who {
					for _, when := range []string{"at once", "again", "behind a restart"} {
						if when == "behind a restart" {
							w.restart()
						}
						if got, want := strings.Count(r.note(), row.word), count(contains(told, name)); got != want {
							t.Errorf("%s %s: told %d times, want %d:\n%s", name, when, got, want, r.note())
						}
					}
					r.renew()
					if got := r.note(); got != "" {
						t.Errorf("%s: with a new prompt still\n%s", name, got)
					}
					if contains(told, name) && !strings.Contains(r.prompt, row.word) {
						t.Errorf("%s: not in the new prompt", name)
					}
				}
			})
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// TestNewsForeign: an agent tells a conversation of another one nothing.
func TestNewsForeign(t *testing.T) {
	w := newWorld(t)
	write(t, w.blobs, day, "planted\n")
	n, err := w.News(t.Context(), scope(t, "agent:other:main"), memory.Since{Now: noon, Most: 1000})
	if !errors.Is(err, tidemark.ErrForbidden) || len(n.Files) > 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestNewsOfTheLedger: a fact that the night replaced is told to count no more, and counts again when that is taken back, though no
// file changed.
func TestNewsOfTheLedger(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	w.remember(scope(t, owners), "x1", "The staging port is 8080", "The owner likes tea")
	w.consolidate()
	w.clock.move(time.Hour)
	w.remember(scope(t, owners), "x2", "The staging port is 9090")
	w.settle()
	w.clock.move(-w.clock.Now().Sub(noon.Add(2 * time.Hour)))
	r := w.reader(owners)
	if w.consolidate().Decided != 1 {
		t.Fatal("nothing was decided")
	}
	if got := r.note(); !strings.Contains(got, `[No longer in memory, so do not rely on it: "- The staging port is 8080".]`) || strings.Contains(got, "9090") {
		t.Errorf("of what was replaced:\n%s", got)
	}
	r.renew()
	if err := w.UndoDecision(t.Context(), w.ledger()[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := r.note(); !strings.HasSuffix(got, day+":\n| - The staging port is 8080") {
		t.Errorf("of what was taken back:\n%s", got)
	}
}

// sealed is a bucket whose bodies cannot be read.
type sealed struct{ tidemark.Blobs }

func (s sealed) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	o, body, err := s.Blobs.Get(ctx, key)
	if err == nil {
		body.Close()
		body = io.NopCloser(io.MultiReader(brokenReader{}))
	}
	return o, body, err
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("read, though nothing changed") }

// TestNewsReadsWhatChanged: a file that is as it was is not read.
func TestNewsReadsWhatChanged(t *testing.T) {
	w := newWorld(t)
	write(t, w.blobs, "MEMORY.md", "- a\n")
	w.remember(scope(t, owners), "x", "planted")
	w.settle()
	w.clock.move(-w.clock.Now().Sub(noon.Add(time.Hour)))
	r := w.reader(owners)
	w.configure(func(c *agent.Config) { c.Blobs = sealed{w.blobs} })
	if got := r.note(); got != "" {
		t.Errorf("nothing changed:\n%s", got)
	}
	w.configure(func(c *agent.Config) { c.Blobs = w.blobs })
	w.remember(r.scope, "y", "flushed")
	w.clock.move(time.Millisecond)
	r.renew()
	w.remember(r.scope, "z", "pending")
	if got := r.note(); !strings.HasSuffix(got, day+":\n| - pending") || strings.Contains(w.stored(day), "pending") {
		t.Errorf("of what is pending for a file that is as it was:\n%s", got)
	}
	w.configure(func(c *agent.Config) { c.Blobs = sealed{w.blobs} })
	write(t, w.blobs, "MEMORY.md", "- a\n- b\n")
	if _, err := w.News(t.Context(), r.scope, memory.Since{Mark: r.mark, Now: noon, Most: 1000}); err == nil {
		t.Error("a file that changed was not read")
	}
}

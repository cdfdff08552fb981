package session_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// tidyDesk is a desk whose model answers what is typed behind "answer ", with @N for the id of the entry N of the log's
// messages, from 0.
type tidyDesk struct {
	*desk
	seen strings.Builder // what a listener read
}

// crumbs is a model whose text comes in pieces of a few bytes.
type crumbs struct {
	tidemark.Provider
	r *rand.Rand
}

func (c crumbs) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		for d, err := range c.Provider.Stream(ctx, req) {
			for len(d.Text) > 0 {
				n := min(1+c.r.IntN(9), len(d.Text))
				if !yield(tidemark.Delta{Text: d.Text[:n]}, nil) {
					return
				}
				d.Text = d.Text[n:]
			}
			if (d.Reply != nil || err != nil || d.Tool != "") && !yield(d, err) {
				return
			}
		}
	}
}

func newTidyDesk(t *testing.T, p *compaction.Paging) *tidyDesk {
	d := &tidyDesk{desk: newDesk(t, session.Settings{Window: 40_000, Reserve: 1500, Keep: 1500}, p)}
	d.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if text, ok := strings.CutPrefix(last.PlainText(), "answer "); ok {
			return tidemark.NewText(tidemark.Assistant, text), nil
		}
		return d.play(n, req)
	})
	d.observe = func(n session.Notice) {
		if n.Type == session.NoticeText {
			d.seen.WriteString(n.Text)
		}
	}
	d.stop()
	d.open()
	return d
}

// ids returns the messages of the log, oldest first.
func (d *tidyDesk) ids() (out []tidemark.EntryID) {
	d.t.Helper()
	for e, err := range d.Reader.All(d.t.Context(), true) {
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, e.ID)
	}
	return out
}

func (d *tidyDesk) tidy(ops ...string) string {
	d.t.Helper()
	return d.say("answer Done.\n<memory_cleanup>\n" + strings.Join(ops, "\n") + "\n</memory_cleanup>\nMore.")
}

// told returns the newest event of the kind cleanup.
func (d *tidyDesk) told() session.TidyEvent {
	d.t.Helper()
	all := d.events("cleanup")
	if len(all) == 0 {
		d.t.Fatal("no event")
	}
	var e tidemark.Event
	var out session.TidyEvent
	if err := json.Unmarshal([]byte(all[len(all)-1]), &e); err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(e.Data, &out); err != nil {
		d.t.Fatal(err)
	}
	return out
}

func (d *tidyDesk) whys() (out []string) {
	for _, o := range d.told().Ops {
		out = append(out, o.Why)
	}
	return out
}

func (d *tidyDesk) text() string {
	var b strings.Builder
	for _, m := range d.sent() {
		b.Write(m.AppendJSON(nil))
	}
	return b.String()
}

// TestTidyBlocks: a result and a text leave, one is summed up, all are recallable, and an undo brings all back.
func TestTidyBlocks(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	d.file("a.go", 60)
	d.file("b.go", 60)
	d.say("read a.go")
	d.say("read b.go")
	d.say(strings.Repeat("a long word of a person ", 40))
	d.say("hello")
	before := d.text()
	ids := d.ids() // ask, call, result, answer, ask, call, result, answer, long, ...
	got := d.tidy(fmt.Sprintf("drop: block:%s#0", ids[2]), fmt.Sprintf(`summarize: block:%s#0 "b.go is about tides"`, ids[6]), fmt.Sprintf("drop: block:%s", ids[8]),
		"drop: block:nothing#0")
	if got != "Done.\nMore." {
		t.Fatalf("seen %q", got)
	}
	if why := d.whys(); !slices.Equal(why, []string{"", "", "", "it is not in the context"}) {
		t.Fatalf("%q", why)
	}
	after := d.text()
	for _, gone := range []string{"a.go line 7", "b.go line 7", "a long word"} {
		if strings.Contains(after, gone) || !strings.Contains(before, gone) {
			t.Errorf("%q is in the context still", gone)
		}
	}
	for _, there := range []string{"[Paged out: read_file a.go", "b.go is about tides", "[The assistant's own summary", "[Dropped by the assistant"} {
		if !strings.Contains(after, there) {
			t.Errorf("%q is not in the context", there)
		}
	}
	for n, want := range map[int]string{2: "a.go line 7", 6: "b.go line 7", 8: "a long word"} {
		d.say(fmt.Sprintf("recall %s#0", ids[n]))
		if !strings.Contains(string(mustMessages(d.request(-1))), want) {
			t.Errorf("recall of %d does not bring %q", n, want)
		}
	}
	e := d.told()
	if len(e.Texts) != 1 || !strings.Contains(e.Texts[0], "<memory_cleanup>") || e.Overlay == "" {
		t.Errorf("%+v", e)
	}
	d.again(&compaction.Paging{})
	if changed, err := d.Undo(t.Context(), e.Overlay); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if text := d.text(); strings.Contains(text, "about tides") && strings.Contains(text, "own summary") || !strings.Contains(text, "b.go line 7") {
		t.Error("an undo brought nothing back")
	}
}

func mustMessages(req tidemark.Request) (out []byte) {
	for _, m := range req.Messages {
		out = m.AppendJSON(out)
	}
	return out
}

// TestCollapse: whole turns leave with an archive before them; what is anchored stays.
func TestCollapse(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	for i := range 5 {
		d.file(fmt.Sprintf("f%d.go", i), 30)
		d.say(fmt.Sprintf("read f%d.go", i))
	}
	ids := d.ids()
	got := d.tidy(fmt.Sprintf("anchor: block:%s#0", ids[4*2]), `collapse: turns 2-4 "f1 to f3 were read"`, `collapse: turns 4-4 "again"`, `collapse: turns 5-6 "too new"`)
	if got != "Done.\nMore." {
		t.Fatalf("seen %q", got)
	}
	if why := d.whys(); why[0] != "" || why[1] != "" || why[2] == "" || why[3] == "" {
		t.Fatalf("%q", why)
	}
	text := d.text()
	for part, want := range map[string]bool{"f0.go line 3": true, "f1.go line 3": false, "f3.go line 3": false, "f4.go line 3": true, "read f2.go": true,
		"read f3.go": false, "Turns 2 to 4": true, "f1 to f3 were read": true} {
		if strings.Contains(text, part) != want {
			t.Errorf("%q in the context: %v", part, !want)
		}
	}
	e := d.told()
	if e.Archive == "" || !strings.Contains(strings.Join(d.archived(e.Archive), "\n"), "read f1.go") {
		t.Errorf("archive %q", e.Archive)
	}
	// The turns are counted anew: 1 is f0, 2 what was anchored.
	if got := d.tidy(`collapse: turns 1-1 "f0 too"`); got != "Done.\nMore." || d.whys()[0] != "" {
		t.Errorf("%q, %q", got, d.whys())
	}
	if strings.Contains(d.text(), "f0.go line 3") {
		t.Error("turn 1 is there still")
	}
	d.again(&compaction.Paging{})
	for _, e := range slices.Backward(d.overlaysOf("cleanup")) {
		if changed, err := d.Undo(t.Context(), e); err != nil || !changed {
			t.Fatal(changed, err)
		}
	}
	if !strings.Contains(d.text(), "f0.go line 3") || !strings.Contains(d.text(), "f3.go line 3") {
		t.Error("an undo brought nothing back")
	}
}

func (d *tidyDesk) overlaysOf(by string) (out []tidemark.EntryID) {
	d.t.Helper()
	entries, err := d.Reader.Entries(d.t.Context(), 0, 10000)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		if e.Kind == tidemark.KindOverlay && strings.Contains(string(e.Payload), `"by":["`+by+`"]`) {
			out = append(out, e.ID)
		}
	}
	return out
}

// TestCollapseWithoutArchive: nothing leaves whole that is not archived.
func TestCollapseWithoutArchive(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	d.file("a.go", 60)
	d.say("read a.go")
	d.say("hello")
	d.blobs.Fail = func(string, string) error { return fmt.Errorf("bucket: %w", tidemark.ErrUnavailable) }
	d.tidy(`collapse: turns 1-1 "gone"`)
	if why := d.whys(); why[0] == "" || !strings.Contains(d.text(), "a.go line 7") {
		t.Errorf("%q", why)
	}
}

// TestQuotedTags: tags in code, in what a person typed, in a result, and with the switch off are text.
func TestQuotedTags(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	tags := "<memory_cleanup>\ndrop: block:A#0\n</memory_cleanup>"
	d.files["tags.md"] = tags + strings.Repeat("\nmore", 100)
	d.say("read tags.md")
	d.say(tags)
	fenced := "So:\n```\n" + tags + "\n```\nend"
	if got := d.say("answer " + fenced); got != fenced {
		t.Errorf("seen %q", got)
	}
	if n := len(d.events("cleanup")); n > 0 {
		t.Errorf("%d events", n)
	}
	if text := d.text(); strings.Count(text, "drop: block:A#0") < 3 {
		t.Errorf("tags were taken out: %s", text)
	}
	if got := d.say("answer " + tags); got != "(The context was tidied.)" {
		t.Errorf("seen %q", got)
	}
	off := newTidyDesk(t, &compaction.Paging{Alone: true})
	if got := off.say("answer " + tags); got != tags || len(off.events("cleanup")) > 0 {
		t.Errorf("with the switch off: %q", got)
	}
}

// TestStreamWithoutTags: listeners never read a tag, and what they read is what is stored.
func TestStreamWithoutTags(t *testing.T) {
	for seed := range uint64(20) {
		d := newTidyDesk(t, &compaction.Paging{})
		d.stop()
		life, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		s, err := session.Open(life, session.Config{Key: d.key, DB: d.db, Blobs: d.blobs, Provider: crumbs{d.model, rand.New(rand.NewPCG(seed, 1))}, Agent: d.agent,
			Runtime: d.rt, Settings: d.set, Strategies: d.strategies, Observe: d.observe, Rooms: d.rooms()})
		if err != nil {
			t.Fatal(err)
		}
		d.Session = s
		got := d.tidy("drop: block:A#0", `summarize: block:B#1 "x"`)
		if seen := d.seen.String(); got != "Done.\nMore." || seen != got {
			t.Fatalf("seed %d: seen %q, stored %q", seed, seen, got)
		}
		stop()
	}
}

// TestKillWhileTidying: wherever the process dies, an operation is done once or not at all, and with its reply.
func TestKillWhileTidying(t *testing.T) {
	for after := range 2 {
		for n := 1; ; n++ {
			d := newTidyDesk(t, &compaction.Paging{})
			d.file("a.go", 60)
			d.say("read a.go")
			d.say("hello")
			ids := d.ids()
			text := fmt.Sprintf("answer Done.\n<memory_cleanup>\nanchor: block:%s\ncollapse: turns 1-1 \"a.go was read\"\n</memory_cleanup>", ids[len(ids)-1])
			d.stop()
			db := d.db
			m := &mortal{DB: db, left: n, after: after == 1, dead: make(chan struct{})}
			d.db = m
			in := session.Input{ID: "tidy", Message: tidemark.NewText(tidemark.User, text)}
			if _, err := d.tryOpen(); err == nil {
				d.until(in, m)
			}
			d.stop()
			d.db = db
			d.open()
			d.finish(in)
			d.say("and on")
			replies := 0
			for _, o := range d.originals() {
				if o == "assistant: Done.\n" {
					replies++
				}
			}
			if events, rows := len(d.events("cleanup")), len(d.overlaysOf("cleanup")); events != 1 || rows != 1 || replies != 1 || strings.Contains(d.text(), "a.go line 7") {
				t.Fatalf("write %d, after %d: %d events, %d overlays, %d replies", n, after, events, rows, replies)
			}
			if m.writes < n {
				if n < 8 {
					t.Errorf("only %d writes", n)
				}
				break
			}
		}
	}
}

// until posts an input and waits for its end or that of the process.
func (d *tidyDesk) until(in session.Input, m *mortal) {
	sub, err := d.Subscribe()
	if err != nil {
		return
	}
	defer sub.Close()
	r, err := d.Post(d.t.Context(), in)
	for err == nil {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				if (n.Type == session.NoticeDone || n.Type == session.NoticeError) && slices.Contains(n.Inputs, r.ID) {
					return
				}
			}
		case <-m.dead:
			return
		}
	}
}

// TestMemoryFault: the stored copy comes back with its time, and what was changed since is said first.
func TestMemoryFault(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	d.file("a.go", 60)
	d.file("b.go", 60)
	d.say("read a.go")
	d.say("read b.go")
	ids := d.ids()
	d.tidy("release: a.go, b.go")
	if text := d.text(); strings.Contains(text, "a.go line 7") || strings.Contains(text, "b.go line 7") {
		t.Fatalf("%q", d.whys())
	}
	ask := func(names ...string) string {
		t.Helper()
		d.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
			last := req.Messages[len(req.Messages)-1]
			if len(last.Results()) > 0 {
				return tidemark.Message{}, nil
			}
			d.calls++
			raw, err := json.Marshal(map[string]any{"paths": names})
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprintf("call_%03d", d.calls), "memory_fault", raw)}}, err
		})
		d.say("fault")
		last := d.request(-1).Messages
		b := last[len(last)-1].Content[0]
		d.model.set(d.play)
		return b.Content[0].Text
	}
	got := ask("a.go", "missing.go")
	if !strings.HasPrefix(got, "a.go (") || !strings.Contains(got, ", stored 20") || !strings.Contains(got, d.files["a.go"]) || !strings.Contains(got, "missing.go: nothing of that name") {
		t.Errorf("%.300q", got)
	}
	d.say("write b.go")
	if got = ask("b.go"); !strings.HasPrefix(got, "OUT OF DATE: b.go was changed after this copy was stored (write_file at ") || !strings.Contains(got, "b.go line 7") {
		t.Errorf("%.300q", got)
	}
	if got = ask(string(ids[6]) + "#0"); !strings.HasPrefix(got, "OUT OF DATE: b.go") || !strings.Contains(got, "b.go line 7") {
		t.Errorf("by handle: %.300q", got)
	}
	d.files["huge.go"] = strings.Repeat("0123456789abcdef\n", 10_000)
	d.say("read huge.go")
	if got = ask("huge.go"); len(got) > 21_000 || !strings.HasSuffix(got, `", "offset": 20000} reads on]`) {
		t.Errorf("%d bytes, ends in %q", len(got), got[max(len(got)-200, 0):])
	}
}

// TestTidyAtRandom: whatever a model asks for, the view can be sent, in this life and the next.
func TestTidyAtRandom(t *testing.T) {
	var asked, done int
	defer func() {
		if t.Logf("%d of %d operations were done", done, asked); done < asked/8 {
			t.Error("hardly any")
		}
	}()
	for seed := range uint64(tidemarktest.Rounds(6)) {
		r := rand.New(rand.NewPCG(seed, 7))
		d := newTidyDesk(t, &compaction.Paging{})
		for n := range 25 {
			switch r.IntN(4) {
			case 0:
				d.say(strings.Repeat("some words ", r.IntN(100)+1))
			case 1:
				d.file(fmt.Sprintf("f%d.go", n), 10+r.IntN(60))
				d.file("x.go", 30)
				d.say(fmt.Sprintf("read f%d.go,x.go", n))
			case 2:
				d.say(fmt.Sprintf("write f%d.go", n))
			}
			ids := d.ids()
			var ops []string
			for range r.IntN(4) {
				if len(ids) == 0 {
					break
				}
				h := fmt.Sprintf("block:%s#%d", ids[r.IntN(len(ids))], r.IntN(2))
				ops = append(ops, []string{"drop: " + h, "summarize: " + h + ` "s"`, "anchor: " + h, "release: " + h + ", x.go",
					fmt.Sprintf(`collapse: turns %d-%d "came of it"`, 1+r.IntN(3), 3+r.IntN(3))}[r.IntN(5)])
			}
			if got := d.tidy(ops...); got != "Done.\nMore." {
				t.Fatalf("seed %d: %q", seed, got)
			}
			d.sent()
			for _, why := range d.whys() {
				if asked++; why == "" {
					done++
				}
			}
			if r.IntN(8) == 0 {
				d.again(&compaction.Paging{})
			}
		}
	}
}

// TestRefusalsAreTold: in the turn in which it asked the model reads what was not done, once.
func TestRefusalsAreTold(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	d.file("a.go", 10)
	d.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		if n > 2 {
			return tidemark.Message{}, nil
		}
		text := "Look.\n<memory_cleanup>\ndrop: block:nothing#0\n</memory_cleanup>\n"
		if n == 2 {
			text = "Again."
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(text),
			tidemark.ToolUse(fmt.Sprintf("c%d", n), "read_file", []byte(`{"path":"a.go"}`))}}, nil
	})
	d.say("go")
	for i, want := range []bool{false, true, false} {
		if note := d.request(i).Note; strings.Contains(note, "drop nothing#0: it is not in the context") != want {
			t.Errorf("call %d is told %q", i+1, note)
		}
	}
	if seen := d.seen.String(); strings.Contains(seen, "memory_cleanup") || !strings.HasPrefix(seen, "Look.\n") {
		t.Errorf("seen %q", seen)
	}
}

// TestForeignTurn: in a turn of somebody who may not change the conversation tags go and do nothing.
func TestForeignTurn(t *testing.T) {
	d := newTidyDesk(t, &compaction.Paging{})
	d.file("a.go", 60)
	d.say("read a.go")
	d.say("hello")
	got := d.post(session.Input{Message: tidemark.NewText(tidemark.User, "answer Ha.\n<memory_cleanup>\nrelease: a.go\ncollapse: turns 1-1 \"x\"\n</memory_cleanup>"),
		Origin: tidemark.Origin{From: tidemark.FromPerson, Peer: "telegram:77"}})
	if got != "Ha.\n" || !strings.Contains(d.text(), "a.go line 7") {
		t.Errorf("%q, %q", got, d.whys())
	}
	for _, why := range d.whys() {
		if !strings.Contains(why, "may not change") {
			t.Errorf("%q", why)
		}
	}
}

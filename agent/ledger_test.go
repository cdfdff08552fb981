package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

const (
	owners  = "agent:main:main"
	stanger = "agent:main:whatsapp:dm:ann"
)

// judge is a model that says what a test wants of a window.
type judge struct {
	say   func(text string) (string, error)
	calls int
}

func (j *judge) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		j.calls++
		text, err := j.say(req.Messages[0].PlainText())
		if err != nil {
			yield(tidemark.Delta{}, err)
			return
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, text), Call: tidemark.Call{Stop: "end_turn"}}}, nil)
	}
}

// lastWord is a model that takes facts which differ in their last word alone for values of one thing.
func lastWord() *judge {
	return &judge{say: func(text string) (string, error) { return values(text), nil }}
}

// about is "$older: newer\n" of two facts of a question, empty where it has only one.
func about(question, old, fresh string) string {
	number := func(part, fact string) string {
		before, _, ok := strings.Cut(part, ": "+fact)
		if !ok {
			return ""
		}
		return before[strings.LastIndexByte(before, '\n')+1:]
	}
	before, after, _ := strings.Cut(question, "</older-facts>")
	was, is := number(before, old), number(after, fresh)
	if was == "" {
		was = number(after, old)
	}
	if was == "" || is == "" || was == is {
		return ""
	}
	return "$" + was + ": " + is + "\n"
}

// values is the answer of lastWord.
func values(question string) string {
	answer, last := "<decisions>\n", map[string]string{}
	old, fresh, _ := strings.Cut(question, "</older-facts>")
	for i, part := range []string{old, fresh} {
		for line := range strings.Lines(part) {
			id, fact, _ := strings.Cut(strings.TrimSpace(line), ": ")
			at := strings.LastIndexByte(fact, ' ')
			if at < 0 || strings.Trim(id, "0123456789") != "" {
				continue
			}
			subject := strings.Replace(fact[:at], " now", "", 1)
			if was, ok := last[subject]; ok && i == 1 {
				answer += "UPDATE " + was + ": " + id + "\n"
			}
			if len(id) > len(last[subject]) || id > last[subject] && len(id) == len(last[subject]) {
				last[subject] = id
			}
		}
	}
	return answer + "</decisions>"
}

func (w *world) configure(change func(*agent.Config)) {
	w.t.Helper()
	change(&w.cfg)
	w.restart()
}

func (w *world) consolidate() agent.Consolidated {
	w.t.Helper()
	c, err := w.Consolidate(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) ledger() []agent.Row {
	w.t.Helper()
	rows, _, err := w.Ledger(w.t.Context(), "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

func (w *world) search(key, query string) string {
	w.t.Helper()
	found, err := w.Search(w.t.Context(), scope(w.t, key), query, 50)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, f.Text)
	}
	return strings.Join(out, "\n")
}

// TestReconcileOff: without the setting nothing is decided, nothing is written.
func TestReconcileOff(t *testing.T) {
	w := newAlone(t)
	w.remember(scope(t, owners), "x1", "The staging port is 8080")
	w.remember(scope(t, owners), "x2", "The staging port is 9090")
	if c := w.consolidate(); c.Note == "" || len(w.ledger()) != 0 || w.stored(memory.DigestFile) != "" {
		t.Errorf("off, yet %+v, %+v", c, w.ledger())
	}
}

// TestSweepUpdates: a newer value takes an older one's place in search, prompt and digest; file and fact stay,
// the ledger says why, and an undo is the last word.
func TestSweepUpdates(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model, c.Digest = true, lastWord(), true })
	w.remember(scope(t, owners), "x1", "The staging port is 8080", "The owner likes tea")
	w.consolidate()
	w.clock.move(time.Hour)
	w.remember(scope(t, owners), "x2", "The staging port is 9090")
	if c := w.consolidate(); c.Decided != 1 {
		t.Fatalf("decided %+v", c)
	}
	rows := w.ledger()
	if len(rows) != 1 || rows[0].Action != memory.Update || !strings.Contains(rows[0].Fact, "8080") || !strings.Contains(rows[0].By, "9090") || rows[0].Who != "model" ||
		len(rows[0].Sources) != 4 || !rows[0].InForce || rows[0].At.IsZero() {
		t.Fatalf("ledger %+v", rows)
	}
	check := func(stage string, old bool) {
		t.Helper()
		prompt, err := w.Prompt(t.Context(), scope(t, owners), w.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"search": w.search(owners, "staging port"), "prompt": prompt, "digest": w.stored(memory.DigestFile)} {
			if strings.Contains(text, "8080") != old || !strings.Contains(text, "9090") {
				t.Errorf("%s: %s has\n%s", stage, what, text)
			}
		}
		if file := w.stored(day); !strings.Contains(file, "8080") || !strings.Contains(file, "9090") {
			t.Errorf("%s: the file has\n%s", stage, file)
		}
	}
	w.settle()
	check("decided", false)
	facts, _, err := w.Facts(t.Context(), "", 100)
	if err != nil || len(facts) != 3 {
		t.Errorf("facts %v, %v", facts, err)
	}

	if err := w.UndoDecision(t.Context(), rows[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := w.UndoDecision(t.Context(), rows[0].ID); err != nil {
		t.Errorf("undone twice: %v", err)
	}
	w.consolidate()
	check("undone", true)
	if rows := w.ledger(); len(rows) != 2 || rows[0].Undoes != rows[1].ID || rows[1].InForce || !rows[0].InForce {
		t.Errorf("ledger %+v", rows)
	}
	w.remember(scope(t, owners), "x3", "The staging port is 7070")
	w.consolidate()
	if rows := w.ledger(); len(rows) != 3 || !strings.Contains(rows[0].Fact, "9090") {
		t.Errorf("what was taken back is decided again: %+v", rows)
	}
	for id, want := range map[int64]error{rows[0].ID + 1: tidemark.ErrInvalid, 999: tidemark.ErrNotFound} {
		if err := w.UndoDecision(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("undo %d: %v, want %v", id, err, want)
		}
	}
}

// TestSaidAgain: to say a fact again never costs it (mem0 #1674), and what was replaced can come back.
func TestSaidAgain(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) {
		c.Reconcile = true
		c.Model = &judge{say: func(text string) (string, error) {
			return strings.Replace(values(text), "</", strings.Replace(about(text, "The owner likes tea", "The owner likes tea"), "$", "DELETE ", 1)+"</", 1), nil
		}}
	})
	w.remember(scope(t, owners), "x1", "The owner likes tea", "The staging port is 1")
	w.clock.move(72 * time.Hour)
	again := extraction(scope(t, owners), "x2", "The owner likes tea", "The staging port is 2")
	again.At = w.clock.Now()
	if err := w.Remember(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.consolidate()
	for _, r := range w.ledger() {
		if strings.Contains(r.Fact, "tea") {
			t.Errorf("said again, and gone: %+v", r)
		}
	}
	if got := w.search(owners, "tea"); !strings.Contains(got, "likes tea") {
		t.Errorf("search finds %q", got)
	}
	back := extraction(scope(t, owners), "x3", "The staging port is 1")
	back.At = w.clock.Now()
	if err := w.Remember(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	w.consolidate()
	if got := w.search(owners, "staging port"); !strings.Contains(got, "is 1") || strings.Contains(got, "is 2") {
		t.Errorf("the value came back, and search finds %q", got)
	}
}

// TestSweepByGroups: what a peer says never decides on the owner's facts, nor the reverse, and no digest of the
// owner has what a peer said.
func TestSweepByGroups(t *testing.T) {
	for _, sharing := range []memory.Sharing{memory.SharePeer, memory.ShareAgent} {
		t.Run(string(sharing), func(t *testing.T) {
			w := newWorld(t)
			w.configure(func(c *agent.Config) { c.Sharing, c.Reconcile, c.Model, c.Digest = sharing, true, lastWord(), true })
			w.remember(scope(t, owners), "x1", "The staging port is 8080")
			w.remember(scope(t, stanger), "p1", "The staging port is 6666", "Ann's secret port is 5")
			w.remember(scope(t, owners), "x2", "The wiki port is 80")
			w.consolidate()
			if rows := w.ledger(); len(rows) != 0 {
				t.Errorf("ledger %+v", rows)
			}
			w.remember(scope(t, stanger), "p2", "Ann's secret port is 6")
			w.consolidate()
			if rows := w.ledger(); len(rows) != 1 || rows[0].Peer == "" {
				t.Errorf("within a peer: %+v", rows)
			}
			if text := w.stored(memory.DigestFile); !strings.Contains(text, "8080") || strings.Contains(text, "6666") || strings.Contains(text, "secret") {
				t.Errorf("the owner's digest:\n%s", text)
			}
			if err := sharing.MayRead(scope(t, stanger), memory.DigestFile); !errors.Is(err, tidemark.ErrForbidden) {
				t.Errorf("a peer reads the owner's digest: %v", err)
			}
		})
	}
}

// TestSweepByModel: what a model says is a row with its reason; what cannot be read is nothing; a model that is
// down, has no key or is too slow is asked again, and that is told.
func TestSweepByModel(t *testing.T) {
	for _, c := range []struct {
		name, say string
		err       error
		rows      int
		fails     bool
	}{
		{"update", good, nil, 1, false},
		{"of nobody", "<decisions>UPDATE 77: $new</decisions>", nil, 0, false},
		{"no key", "", &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no key"}, 0, true},
		{"a model of no name", "", &tidemark.APIError{Class: tidemark.ClassBadRequest, Message: "no model"}, 0, true},
		{"too slow", "", context.DeadlineExceeded, 0, true},
		{"too long", "", &tidemark.APIError{Class: tidemark.ClassOverflow, Message: "too long"}, 0, false},
		{"declined", "", &tidemark.APIError{Class: tidemark.ClassRefusal, Message: "no"}, 0, false},
		{"down", "", &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "down"}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			j := &judge{say: func(text string) (string, error) {
				_, fresh, _ := strings.Cut(text, "<new-facts>\n")
				if _, first, _ := strings.Cut(fresh, ": "); !strings.HasPrefix(first, "User now works at Globex") {
					return "<decisions>none</decisions>", nil
				}
				return globex(c.say, text), c.err
			}}
			w.configure(func(cfg *agent.Config) { cfg.Reconcile, cfg.Model = true, j })
			w.remember(scope(t, owners), "x1", "User works at Acme")
			w.consolidate()
			w.remember(scope(t, owners), "x2", "User now works at Globex")
			_, err := w.Consolidate(t.Context())
			if (err != nil) != c.fails || len(w.ledger()) != c.rows {
				t.Fatalf("%v, ledger %+v", err, w.ledger())
			}
			before := j.calls
			if _, err := w.Consolidate(t.Context()); (j.calls > before) != c.fails || (err != nil) != c.fails {
				t.Errorf("asked %d times more, %v", j.calls-before, err)
			}
			night, err := w.LastNight(t.Context())
			if strings.Contains(string(night.Last), `"waiting":"no model compares facts: `) != c.fails || err != nil {
				t.Errorf("the night tells %s, %v", night.Last, err)
			}
			c.say, c.err = good, nil
			if w.consolidate(); c.fails && len(w.ledger()) != 1 {
				t.Errorf("asked again, ledger %+v", w.ledger())
			}
		})
	}
}

// TestSilentModel: without an answer nothing is decided, the model is asked once a night, and the digest is written.
func TestSilentModel(t *testing.T) {
	w := newWorld(t)
	j := &judge{say: func(string) (string, error) {
		return "", &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no key"}
	}}
	w.configure(func(cfg *agent.Config) { cfg.Reconcile, cfg.Model, cfg.Digest = true, j, true })
	w.remember(scope(t, owners), "x1", "The staging port is 8080", "The staging port is 9090")
	w.remember(scope(t, stanger), "p1", "Ann's server port is 5", "Ann's server port is 6")
	for night := range 2 {
		c, err := w.Consolidate(t.Context())
		if err == nil || c.Waiting == "" || len(w.ledger()) != 0 || !strings.Contains(w.stored(memory.DigestFile), "9090") || j.calls != night+1 {
			t.Errorf("night %d: %+v, %v, asked %d times, ledger %+v", night, c, err, j.calls, w.ledger())
		}
	}
}

// TestDecidedWhenDrawn: what a model said of a fact when it drew it stands at once, for facts of the same person alone, and the
// night does not ask again.
func TestDecidedWhenDrawn(t *testing.T) {
	w := newWorld(t)
	j := lastWord()
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, j })
	w.remember(scope(t, owners), "x1", "User lives in Berlin", "User has a boat")
	w.remember(scope(t, stanger), "p1", "Ann lives in Ulm")
	w.consolidate()
	asked := j.calls
	near := func(key, text string) map[string]int64 {
		t.Helper()
		n, err := w.News(t.Context(), scope(t, key), memory.Since{Near: text})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int64{}
		for _, k := range n.Near {
			out[k.Text] = k.ID
		}
		return out
	}
	shown := near(owners, "Where does one live?\nI sold my boat and live in Kiel now.")
	if theirs := near(stanger, "I live in Berlin"); len(shown) != 2 || len(theirs) != 1 || theirs["Ann lives in Ulm"] == 0 {
		t.Fatalf("near are %v, and %v", shown, theirs)
	}
	x := extraction(scope(t, owners), "x2", "User lives in Kiel", "User sold the boat", "User lives in Ulm")
	for i, target := range []int64{shown["User lives in Berlin"], shown["User has a boat"], near(stanger, "live")["Ann lives in Ulm"]} {
		x.Facts[i].Action, x.Facts[i].Target = []string{"UPDATE", "DELETE", "UPDATE"}[i], target
	}
	for range 2 {
		if err := w.Remember(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	w.consolidate()
	rows := w.ledger()
	if len(rows) != 2 || rows[0].Action != memory.Delete || rows[0].By != "User sold the boat" || rows[1].Fact != "User lives in Berlin" || rows[1].By != "User lives in Kiel" ||
		len(rows[1].Sources) != 4 || rows[1].Who != "model" || j.calls != asked {
		t.Errorf("asked %d times, ledger %+v", j.calls-asked, rows)
	}
}

// TestLedgerTail: old rows go, those in force stay, however old.
func TestLedgerTail(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	w.remember(scope(t, owners), "x0", "The first port is 1")
	w.remember(scope(t, owners), "x1", "The first port is 2")
	w.remember(scope(t, owners), "y0", "The wiki port is 1")
	w.remember(scope(t, owners), "y1", "The wiki port is 2")
	w.consolidate()
	first := w.ledger()
	if len(first) != 2 {
		t.Fatalf("ledger %+v", first)
	}
	if err := w.UndoDecision(t.Context(), first[1].ID); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		var facts []string
		for n := range 50 {
			facts = append(facts, fmt.Sprintf("The port of job%d is %d", n, i))
		}
		x := extraction(scope(t, owners), fmt.Sprint("z", i), facts...)
		if err := w.Remember(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	w.consolidate()
	rows := w.ledger()
	inForce := 0
	for _, r := range rows {
		if r.ID == first[1].ID {
			t.Errorf("row %d is neither in force nor new", r.ID)
		}
		if r.InForce {
			inForce++
		}
	}
	if want := 11*50 + 2; inForce != want || len(rows) != want {
		t.Errorf("%d rows, %d in force, want %d", len(rows), inForce, want)
	}
}

// mortalDB dies at its n-th write, before or after it.
type mortalDB struct {
	tidemark.DB
	left  int
	after bool
}

func (m *mortalDB) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if m.left--; m.left < 0 {
		return tidemark.ErrDead
	}
	if m.left == 0 {
		if m.after {
			if err := m.DB.Tx(ctx, stmts); err != nil {
				return err
			}
		}
		return tidemark.ErrDead
	}
	return m.DB.Tx(ctx, stmts)
}

// TestNightKilled kills a night at each of its writes. The next one ends as if nothing had happened: no decision
// twice, none lost, and no file of ours taken for a person's.
func TestNightKilled(t *testing.T) {
	night := func(n int, after bool) (rows []string, files string, killed bool) {
		w := newWorld(t)
		w.configure(func(c *agent.Config) { c.Reconcile, c.Model, c.Digest, c.DigestLines = true, lastWord(), true, 10 })
		for i := range 3 {
			var facts []string
			for j := range 30 {
				facts = append(facts, fmt.Sprintf("The port of job%d is %d", j, i))
			}
			w.remember(scope(t, owners), fmt.Sprint("x", i), facts...)
		}
		if n > 0 {
			whole := w.db
			w.configure(func(c *agent.Config) { c.DB = &mortalDB{DB: whole, left: n + 100_000} })
			w.cfg.DB.(*mortalDB).left, w.cfg.DB.(*mortalDB).after = n, after
			_, err := w.Consolidate(t.Context())
			killed = err != nil
			w.configure(func(c *agent.Config) { c.DB = whole })
		}
		c := w.consolidate()
		if len(c.Suggested) > 0 {
			t.Errorf("write %d: our own file is taken for a person's: %+v", n, c)
		}
		if again := w.consolidate(); len(again.Written) > 0 || again.Decided > 0 {
			t.Errorf("write %d: a second night does %+v", n, again)
		}
		for _, r := range w.ledger() {
			rows = append(rows, r.Fact+" > "+r.By)
		}
		return rows, w.stored(memory.DigestFile) + w.stored("memory/digest/older.md") + w.stored("memory/digest/facts-2026-11.md"), killed
	}
	want, text, _ := night(0, false)
	if len(want) != 60 {
		t.Fatalf("%d decisions", len(want))
	}
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			rows, files, killed := night(n, after)
			if !killed {
				if n < 8 {
					t.Errorf("a night has %d writes", n-1)
				}
				return
			}
			if fmt.Sprint(rows) != fmt.Sprint(want) || files != text {
				t.Errorf("killed at write %d (after: %v): %d rows, files\n%s\nwant\n%s", n, after, len(rows), files, text)
			}
		}
	}
}

// TestDigestKeepsEdits: what a person wrote into a file of the digest stays; ours goes beside it until theirs is
// gone.
func TestDigestKeepsEdits(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest = true })
	w.remember(scope(t, owners), "x1", "The owner likes tea")
	if c := w.consolidate(); fmt.Sprint(c.Written) != "[memory/DIGEST.md]" {
		t.Fatalf("wrote %+v", c)
	}
	mine := "# mine\n"
	write(t, w.blobs, memory.DigestFile, mine)
	w.remember(scope(t, owners), "x2", "The owner likes bread")
	c := w.consolidate()
	beside := w.stored("memory/DIGEST.suggested.md")
	if w.stored(memory.DigestFile) != mine || !strings.Contains(beside, "bread") || fmt.Sprint(c.Suggested) != "[memory/DIGEST.suggested.md]" {
		t.Fatalf("%+v, digest %q, beside %q", c, w.stored(memory.DigestFile), beside)
	}
	if n, err := w.LastNight(t.Context()); err != nil || fmt.Sprint(n.Edited) != "[memory/DIGEST.md]" {
		t.Errorf("the night says %+v, %v", n, err)
	}
	write(t, w.blobs, "memory/DIGEST.suggested.md", "also mine")
	w.consolidate()
	if got := w.stored("memory/DIGEST.suggested.md"); got != "also mine" {
		t.Errorf("an edited suggestion is %q", got)
	}
	if err := w.blobs.Delete(t.Context(), "agents/main/"+memory.DigestFile); err != nil {
		t.Fatal(err)
	}
	if w.consolidate(); !strings.Contains(w.stored(memory.DigestFile), "bread") {
		t.Errorf("after theirs was removed: %q", w.stored(memory.DigestFile))
	}
	if n, err := w.LastNight(t.Context()); err != nil || len(n.Edited) > 1 {
		t.Errorf("the night says %+v, %v", n, err)
	}
	if found := w.search(owners, "bread"); strings.Count(found, "bread") != 1 {
		t.Errorf("search finds the digest, too: %q", found)
	}
}

// TestSittingsInDigest: those of the owner, once each.
func TestSittingsInDigest(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest = true })
	e := memory.Sitting{Key: owners, Log: "L", First: "01A", Last: "01B", From: noon, To: noon.Add(time.Hour), Count: 4, Topics: []string{"deploy"}, About: "Deploy staging.", Ended: "It runs."}
	theirs := e
	theirs.Key, theirs.First, theirs.Topics = stanger, "01C", []string{"private"}
	for range 2 {
		if err := w.Sittings(t.Context(), []memory.Sitting{e, theirs}); err != nil {
			t.Fatal(err)
		}
	}
	if w.consolidate(); strings.Count(w.stored(memory.DigestFile), ": “Deploy staging.”, ended with “It runs.”; deploy (4 messages, 01A..01B)") != 1 || strings.Contains(w.stored(memory.DigestFile), "private") {
		t.Errorf("digest\n%s", w.stored(memory.DigestFile))
	}
	part := archive.Info{Key: archive.PartKey("main", "01S", noon), SessionKey: owners, Session: "01S", Agent: "main", Part: 1, Messages: 4, At: noon, Bytes: 100}
	if err := w.Report(t.Context(), tidemark.SessionInfo{}, []archive.Info{part}); err != nil {
		t.Fatal(err)
	}
	w.consolidate()
	var last agent.Consolidated
	if n, err := w.LastNight(t.Context()); err != nil || n.Sittings != 1 || n.Compactions != 1 || json.Unmarshal(n.Last, &last) != nil || !last.Digest || last.Entries != 2 {
		t.Errorf("%v, %+v, it did %+v", err, n, last)
	}
	e.Key = "agent:other:main"
	if err := w.Sittings(t.Context(), []memory.Sitting{e}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a sitting of another agent: %v", err)
	}
}

// TestNightly: the sweep of the night does it by itself, and again in an hour when it failed.
func TestNightly(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model, c.Digest = true, lastWord(), true })
	w.remember(scope(t, owners), "x1", "The staging port is 8080")
	w.settle()
	next, err := w.Wake(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.blobs.Fail = func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, "DIGEST.md") {
			return errors.New("the bucket is down")
		}
		return nil
	}
	w.clock.move(next.Sub(w.clock.Now()))
	if next, err = w.Wake(t.Context()); err != nil || next.Sub(w.clock.Now()) != time.Hour {
		t.Errorf("after a night that failed the next is in %s, %v", next.Sub(w.clock.Now()), err)
	}
	w.blobs.Fail = nil
	w.clock.move(time.Hour)
	if _, err := w.Wake(t.Context()); err != nil || !strings.Contains(w.stored(memory.DigestFile), "8080") {
		t.Errorf("%v, digest %q", err, w.stored(memory.DigestFile))
	}
}

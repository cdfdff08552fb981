package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// PromptWithin has the files beside what Prompt gives, and something else that is no memory.
func (a *fakeAgent) PromptWithin(ctx context.Context, s tidemark.Scope, now time.Time, _ tidemark.Tokens) (string, memory.Mark, error) {
	text, err := a.Prompt(ctx, s, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.files == nil {
		return text, memory.Mark{}, err
	}
	text = "## Your Soul\n\n- Be kind.\n\n" + text
	for _, f := range a.files {
		text += "\n\n## " + f.Path + "\n\n" + f.Text
	}
	return text + "\n\n## Runtime\n\nAgent: main", memory.MarkOf(now, a.files), err
}

// News compares the files.
func (a *fakeAgent) News(ctx context.Context, _ tidemark.Scope, since memory.Since) (memory.News, error) {
	a.mu.Lock()
	tell := a.tell
	a.news++
	a.mu.Unlock()
	if tell != nil {
		if err := tell(ctx); err != nil {
			return memory.News{}, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if since.Near != "" {
		return memory.News{Near: a.near}, nil
	}
	n := since.News(a.files)
	for _, w := range a.windows {
		if w.From.Met() && slices.Contains(since.Models, w.Model) {
			n.Windows = append(n.Windows, w)
		}
	}
	return n, nil
}

// write makes the agent's memory these lines: those of MEMORY.md and those of a daily file.
func (a *fakeAgent) write(longTerm, daily string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files = []memory.Source{{Path: "MEMORY.md", Text: longTerm}, {Path: "memory/2026-03-10.md", Text: daily}}
}

// askedNews counts how often it was asked since the last time.
func (a *fakeAgent) askedNews() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.news
	a.news = 0
	return n
}

// wants checks how often a word stands in the prompt and in the note of a request, and nowhere else.
func wants(t *testing.T, what string, req tidemark.Request, word string, prompt, note int) {
	t.Helper()
	messages := strings.Join(texts(req.Messages), "\n")
	if p, n, m := strings.Count(req.System, word), strings.Count(req.Note, word), strings.Count(messages, word); p != prompt || n != note || m > 0 {
		t.Errorf("%s: %q stands %d times in the prompt, %d in the note, %d in messages, want %d, %d, 0:\n%s", what, word, p, n, m, prompt, note, req.Note)
	}
}

// TestNews: what memory has since the prompt was made stands in the note of each request, once, is asked for once a turn and not
// stored, and the prompt stays as it is; when that is made anew, for whatever reason, it has it and the note has it no longer.
func TestNews(t *testing.T) {
	for name, renew := range map[string]func(h *harness, c *clock){
		"a compaction": func(h *harness, _ *clock) {
			if got := h.post(session.Input{Kind: session.InputCompact}); h.info().Compactions != 1 {
				h.t.Fatalf("nothing was compacted: %q, %q", got, h.events("compaction"))
			}
		},
		"a reset": func(h *harness, _ *clock) { h.resetNow() },
		"settings": func(h *harness, _ *clock) {
			if err := h.Configure(h.t.Context(), session.Override{Title: "x"}); err != nil {
				h.t.Fatal(err)
			}
		},
		"a new day": func(_ *harness, c *clock) { c.advance(12 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			h, c := newTimed(t, small, noon)
			h.agent.write("- The wedding is on 4 June.\n", "")
			h.say("one")
			first := h.model.last()
			wants(t, "at first", first, "wedding", 1, 0)
			if n := h.agent.askedNews(); n != 0 {
				t.Errorf("asked %d times in the turn that made the prompt", n)
			}
			h.agent.write("- The wedding is on 5 June.\n", "- Ann likes tea.\n")
			for i := range 9 {
				c.advance(time.Second)
				if i == 3 { // another life knows it as well
					h.stop()
					h.open()
				}
				h.say(filler(i))
				req := h.model.last()
				if req.System != first.System {
					t.Fatalf("turn %d: the prompt changed", i)
				}
				wants(t, fmt.Sprint("turn ", i), req, "Ann likes tea", 0, 1)
				wants(t, fmt.Sprint("turn ", i), req, "5 June", 0, 1)
				if !strings.Contains(req.Note, `[No longer in memory, so do not rely on it: "- The wedding is on 4 June.".]`) {
					t.Errorf("turn %d: not said to be gone:\n%s", i, req.Note)
				}
				if n := h.agent.askedNews(); n != 1 {
					t.Errorf("turn %d: asked %d times", i, n)
				}
			}
			if strings.Contains(h.logged(), "Ann likes tea") {
				t.Error("the note was stored")
			}
			if all := h.anatomies(); all[len(all)-1].Parts["note"].Tokens < tidemark.EstimateText("Ann likes tea") {
				t.Errorf("the anatomy has %+v", all[len(all)-1].Parts)
			}
			renew(h, c)
			c.advance(time.Second)
			h.say("and now?")
			req := h.model.last()
			wants(t, "anew", req, "Ann likes tea", 1, 0)
			wants(t, "anew", req, "4 June", 0, 0)
			if !onlyTime.MatchString(req.Note) {
				t.Errorf("anew: the note has\n%s", req.Note)
			}
			c.advance(time.Second)
			h.agent.write("- The wedding is on 6 June.\n", "- Ann likes tea.\n")
			h.say("and then?")
			wants(t, "later", h.model.last(), "6 June", 0, 1)
		})
	}
}

// TestNewsInATurn: calls of tools are answered with the same news, asked for once, and a turn that is compacted in its middle goes on
// with a prompt that has taken them up.
func TestNewsInATurn(t *testing.T) {
	h, c := newTimed(t, small, noon)
	h.agent.write("", "")
	h.say("one")
	c.advance(time.Second)
	h.agent.write("", "- Ann likes tea.\n")
	h.agent.askedNews()
	h.agent.call = func(b tidemark.Block) tidemark.Block {
		c.advance(time.Second)
		return tidemark.ToolResult(b.ID, "looked", false)
	}
	rounds := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if rounds++; rounds > 3 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", rounds), "look", []byte("{}"))}}, nil
	})
	from := h.model.count()
	h.say("look")
	for i, req := range h.model.calls[from:] {
		wants(t, fmt.Sprint("round ", i), req, "Ann likes tea", 0, 1)
	}
	if n := h.agent.askedNews(); n != 1 || rounds != 4 {
		t.Errorf("asked %d times in %d rounds", n, rounds)
	}
	h.agent.call = func(b tidemark.Block) tidemark.Block { return tidemark.ToolResult(b.ID, filler(0)+filler(1), false) }
	rounds = 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if rounds++; asksSummary(req) || rounds > 12 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("d", rounds), "look", []byte("{}"))}}, nil
	})
	c.advance(time.Second)
	from = h.model.count()
	h.say("look at more")
	if h.info().Compactions == 0 {
		t.Fatal("the turn was not compacted")
	}
	before, behind := 0, 0
	for i, req := range h.model.calls[from:] {
		switch {
		case asksSummary(req):
		case strings.Contains(req.System, "Ann likes tea"):
			behind++
			wants(t, fmt.Sprint("behind the compaction, call ", i), req, "Ann likes tea", 1, 0)
		default:
			before++
			wants(t, fmt.Sprint("before the compaction, call ", i), req, "Ann likes tea", 0, 1)
		}
	}
	if before == 0 || behind == 0 {
		t.Errorf("%d calls before the compaction, %d behind it", before, behind)
	}
}

// TestNewsWithoutAnswer: an agent that fails, or does not answer in time, costs a turn its news, two seconds and a line in the log; the
// next turn asks again.
func TestNewsWithoutAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		tell func(ctx context.Context, c *clock) error
		line string
	}{
		"fails": {func(context.Context, *clock) error { return errors.New("agent is down") }, "agent is down"},
		"late": {func(ctx context.Context, c *clock) error {
			c.advance(2 * time.Second)
			<-ctx.Done()
			return context.Cause(ctx)
		}, "the agent did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{}, noon)
			h.stop()
			var log strings.Builder
			h.logger = slog.New(slog.NewTextHandler(&log, nil))
			h.open()
			h.agent.write("", "")
			h.say("one")
			c.advance(time.Second)
			h.agent.write("", "- Ann likes tea.\n")
			h.agent.tell = func(ctx context.Context) error { return row.tell(ctx, c) }
			if got := h.say("two"); !strings.HasPrefix(got, "ok") {
				t.Fatal(got)
			}
			wants(t, "without an answer", h.model.last(), "Ann likes tea", 0, 0)
			h.agent.mu.Lock()
			h.agent.tell = nil
			h.agent.mu.Unlock()
			h.say("three")
			wants(t, "with one again", h.model.last(), "Ann likes tea", 0, 1)
			h.idle()
			if got := log.String(); strings.Count(got, row.line) != 1 {
				t.Errorf("logged %s", got)
			}
		})
	}
}

// TestNewsOfAnOldPrompt: while the prompt of a new day cannot be made the old one stays, with what is new since then.
func TestNewsOfAnOldPrompt(t *testing.T) {
	h, c := newTimed(t, small, noon)
	h.agent.write("", "")
	h.say("one")
	c.advance(12 * time.Hour)
	h.agent.write("", "- Ann likes tea.\n")
	h.agent.mu.Lock()
	h.agent.fail = errors.New("no persona")
	h.agent.mu.Unlock()
	h.say("two")
	wants(t, "the old prompt", h.model.last(), "Ann likes tea", 0, 1)
}

// TestNewsOfItsOwn: what a conversation extracted itself is not told to it, until a reset makes it another one.
func TestNewsOfItsOwn(t *testing.T) {
	h, c := newTimed(t, small, noon)
	h.agent.write("", "")
	h.say("one")
	c.advance(time.Second)
	section := func(log, fact string) string {
		return memory.Section{ID: log + fact, Session: log, At: c.Now(), Facts: []tidemark.Fact{{Text: fact, Sources: []tidemark.EntryID{"01A"}}}}.Render(nil)
	}
	h.agent.write("", section(h.info().ID, "Ann likes tea.")+"\n"+section("01OTHER", "Bob likes cake."))
	h.say("two")
	wants(t, "its own", h.model.last(), "Ann likes tea", 0, 0)
	wants(t, "another's", h.model.last(), "Bob likes cake", 0, 1)
}

// TestExistingMemories: a summariser is told what memory has, the lines of the prompt that are memory still, what came since and what
// earlier chunks gave, each once; and nothing else of the prompt.
func TestExistingMemories(t *testing.T) {
	set := small
	set.System = "You are a helper.\n- Never shout."
	h, c := newTimed(t, set, noon)
	h.agent.write("# Wedding\n- on 4 June\n- in Rome\n", "- Ann likes tea.\n")
	h.agent.system = "## Tool Notes\n\n- The drill is loud.\n\n## Skills\n\n- sewing"
	h.say("one")
	c.advance(time.Second)
	h.agent.write("# Wedding\n- on 5 June\n- in Rome\n", "- Ann likes tea.\n- Bob likes cake.\n")
	h.fill(1)
	asked := h.model.summaries()
	for i, req := range asked {
		got := strings.Split(strings.TrimSpace(inner(req.Messages[0].PlainText(), "<existing-memories>\nDo not duplicate these.\n", "</existing-memories>")), "\n")
		want := []string{"# Wedding", "- in Rome", "- Ann likes tea.", "# Wedding", "- on 5 June", "- Bob likes cake."}
		for n := range i {
			want = append(want, fmt.Sprintf("- fact %d", slices.IndexFunc(h.model.calls, asksSummary)+1+n))
		}
		if !slices.Equal(got, want) {
			t.Errorf("chunk %d: existing memories are\n%q\nwant\n%q", i, got, want)
		}
	}
	if len(asked) < 2 {
		t.Errorf("%d chunks", len(asked))
	}
}

// TestExistingMemoriesBound: of much that is known the newest whole lines are told.
func TestExistingMemoriesBound(t *testing.T) {
	h, _ := newTimed(t, session.Settings{Window: 64_000, Keep: 1000}, noon)
	var many strings.Builder
	for i := range 400 {
		fmt.Fprintf(&many, "- fact %03d is that the lamp of room %03d is lit\n", i, i)
	}
	h.agent.write(many.String(), "")
	for i := range 20 {
		h.say(filler(i))
	}
	h.post(session.Input{Kind: session.InputCompact})
	asked := h.model.summaries()
	if len(asked) != 1 {
		t.Fatalf("%d summaries", len(asked))
	}
	got := inner(asked[0].Messages[0].PlainText(), "<existing-memories>\nDo not duplicate these.\n", "</existing-memories>")
	if len(got) > 12_000 || len(got) < 11_900 || !strings.HasPrefix(got, "- fact ") || !strings.HasSuffix(got, "- fact 399 is that the lamp of room 399 is lit\n") {
		t.Errorf("%d bytes, from %.60q to %q", len(got), got, got[len(got)-60:])
	}
}

// TestFactsNear: with recall.reconcile a summariser is shown the facts that are near, and what it says of them goes with the new
// facts; without it none are looked for.
func TestFactsNear(t *testing.T) {
	for reconcile, want := range map[bool]tidemark.Fact{true: {Text: "User lives in Kiel", Action: "UPDATE", Target: 12}, false: {Text: "UPDATE 12: User lives in Kiel"}} {
		set := small
		if reconcile {
			set.Gate = memory.BySize{}
		}
		h := newHarness(t, set)
		h.agent.near = []memory.Known{{ID: 12, Text: "User lives in Berlin"}}
		shown := false
		h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
			if !asksSummary(req) {
				return tidemark.Message{}, nil
			}
			shown = shown || strings.Contains(req.Messages[0].PlainText(), "<facts>\n12: User lives in Berlin\n</facts>")
			return tidemark.NewText(tidemark.Assistant, "<summary>It goes on.\n"+tidemarktest.Gist(req.Messages[0].PlainText())+"</summary>\n<memories>\n- UPDATE 12: User lives in Kiel\n</memories>"), nil
		})
		h.fill(1)
		got := false
		h.agent.mu.Lock()
		for _, x := range h.agent.facts {
			for _, f := range x.Facts {
				got = got || f.Text == want.Text && f.Action == want.Action && f.Target == want.Target
			}
		}
		if !got || shown != reconcile {
			t.Errorf("%v: shown %v, remembered %+v", reconcile, shown, h.agent.facts)
		}
		h.agent.mu.Unlock()
	}
}

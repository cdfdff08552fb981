package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRecallPinned: what is pinned does not stand before the answer, and the verdict is of the order that is given.
func TestRecallPinned(t *testing.T) {
	const answer, pinned = "The vault code of the lighthouse is KX-4471-QZ.", "Please never paint the lighthouse on a Sunday."
	h := newHarness(t, session.Settings{})
	h.owner(answer)
	for i := range 6 {
		h.owner(fmt.Sprintf("Something else entirely, number %d, about tides.", i))
	}
	h.owner(pinned)
	_, before, ids := h.ranked("vault code of the lighthouse KX-4471-QZ")
	h.change(task.Change{Pin: []tidemark.EntryID{ids[pinned]}, Add: []task.Added{{Kind: "goal", Text: "mend the boiler"}}})
	for _, budget := range []tidemark.Tokens{0, 4000} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: "vault code of the lighthouse KX-4471-QZ", Budget: budget})
		if err != nil || got.Results[0].Text != answer || got.Results[0].Normalized != before[answer] || got.Verdict != recall.Confident {
			t.Errorf("budget %d: %s %.300v, %v", budget, got.Verdict, got.Results, err)
		}
	}
}

// grouped imports what people say in a group, a minute apart.
func (h *harness) grouped(lines ...string) {
	h.t.Helper()
	_, err := h.Import(h.t.Context(), func(yield func(replay.Message, error) bool) {
		for i, line := range lines {
			name, text, _ := strings.Cut(line, ": ")
			peer := "+49" + strings.ToLower(name)
			if !yield(replay.Message{At: time.Date(2026, 3, 1, 8, i, 0, 0, time.UTC), Peer: peer, Message: tidemark.NewText(tidemark.User, "["+name+" "+peer+"] "+text)}, nil) {
				return
			}
		}
	}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
}

// TestRecallSpeaker: in a group, and in a transcript that was written into a conversation, the one who is named says
// it; who calls them by name does not.
func TestRecallSpeaker(t *testing.T) {
	lines := []string{"Ann: Good morning.", "Bob: Hello all.", "Ann: I painted an old barn.", "Bob: How nice.", "Ann: What about you?",
		"Bob: Ann, Ann! I painted, too, Ann: a boat.", "Ann: Lovely.", "Bob: Thanks.", "Ann: Bye."}
	group := newHarness(t, session.Settings{})
	group.grouped(lines...)
	transcript := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for _, line := range lines {
		log = append(log, tidemark.NewText(tidemark.User, line))
	}
	transcript.told(log...)
	for name, h := range map[string]*harness{"group": group, "transcript": transcript} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: "What has Ann painted?"})
		if err != nil || len(got.Results) < 2 || !strings.Contains(got.Results[0].Text, "old barn") {
			t.Errorf("%s: %.600v, %v", name, got.Results, err)
		}
	}
}

// TestRecallWho: in a group it is told who said something, word for word as it was stored, to a caller and to a model.
func TestRecallWho(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.grouped("Ann: I am the one who likes figs most.", "Ben: I am the one who likes figs most.", "The Owner: Pay for figs.")
	got, err := h.Recall(t.Context(), search.Wanted{Query: "who likes figs most"})
	told := h.recalled(`{"query":"who likes figs most"}`)[0].Content[0].Text
	for _, want := range []string{"[Ann +49ann] I am the one", "[Ben +49ben] I am the one", "[The Owner +49the owner] Pay"} {
		if !slices.ContainsFunc(got.Results, func(r search.Recollection) bool { return strings.HasPrefix(r.Text, want) }) || !strings.Contains(told, "\n| "+want) {
			t.Errorf("without %q: %+v, %v\n%s", want, got.Results, err, told)
		}
	}
}

// TestRecallWhole: a short conversation is ranked whole, also what has no word of the query, within its times; what
// was said meanwhile is in it, and what is far too long for it is found by its words.
func TestRecallWhole(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("%s: Something about tide number %d.", []string{"Ann", "Bob"}[i%2], i))
	}
	lines[7] = "Bob: We live beside the lighthouse."
	lines[9] = "Bob: It is bright at night " + strings.Repeat("and so on ", 400)
	h.grouped(lines...)
	for i := range 2 {
		got, err := h.Recall(t.Context(), search.Wanted{Query: "lighthouse"})
		if err != nil || got.Considered < 59 || !strings.Contains(got.Results[0].Text, "lighthouse") {
			t.Errorf("%d ranked, %.300v, %v", got.Considered, got.Results, err)
		}
		h.owner("The lighthouse has a new lamp.")
		got, err = h.Recall(t.Context(), search.Wanted{Query: "lamp"})
		if err != nil || got.Considered < 61+i || !strings.Contains(got.Results[0].Text, "new lamp") {
			t.Errorf("%d ranked, %.300v, %v", got.Considered, got.Results, err)
		}
		got, err = h.Recall(t.Context(), search.Wanted{Query: "lighthouse", Until: time.Date(2026, 3, 1, 8, 29, 0, 0, time.UTC)})
		if err != nil || got.Considered != 30 {
			t.Errorf("%d of 30 ranked, %v", got.Considered, err)
		}
	}
}

// TestRecallWholeSkipped: nothing of a skipped turn comes back beside what is found.
func TestRecallWholeSkipped(t *testing.T) {
	h := newHarness(t, overBudget)
	h.model.set(chores)
	h.agent.call = long("zebra", false)
	h.say("what is a tide?")
	h.say("what is an ebb?")
	h.say("ok, go on")
	skipped := slices.Concat(h.skipped(10)...)
	if len(skipped) == 0 {
		t.Fatal("no turn is skipped")
	}
	for _, all := range []bool{true, false} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: "tide, go on", K: 50, All: all})
		if err != nil || len(got.Results) == 0 {
			t.Fatal(got, err)
		}
		if there := slices.ContainsFunc(got.Results, func(r search.Recollection) bool { return slices.Contains(skipped, r.ID) }); there != all {
			t.Errorf("all %v: something of a skipped turn is there: %v", all, there)
		}
	}
}

// TestRecallAgentLog: where tools answer, only what words and neighbours lead to is ranked.
func TestRecallAgentLog(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for i := range 20 {
		log = append(append(log, tidemark.NewText(tidemark.User, fmt.Sprintf("Look into tide %d.", i))), exchangeOf(fmt.Sprint("c", i), fmt.Sprintf("The gauge shows %d.", 7000+i))...)
		log = append(log, tidemark.NewText(tidemark.Assistant, "Done."))
	}
	h.told(log...)
	got, err := h.Recall(t.Context(), search.Wanted{Query: "which gauge shows 7011"})
	if err != nil || !strings.Contains(got.Results[0].Text, "7011") || got.Considered >= len(log) {
		t.Errorf("%d of %d ranked, %.300v, %v", got.Considered, len(log), got.Results, err)
	}
}

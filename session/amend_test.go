package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// overApp is what a person wrote over a channel.
func overApp(peer, id, text string) session.Input {
	return session.Input{ID: id, Message: tidemark.NewText(tidemark.User, text), Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: "whatsapp", Peer: peer, Message: id}}
}

// amend posts an amendment of a person's.
func (h *harness) amend(peer, id string, a session.Amendment) {
	in := session.Amend(a)
	in.ID, in.Origin = id, tidemark.Origin{From: tidemark.FromPerson, Channel: "whatsapp", Peer: peer, Message: id}
	h.post(in)
}

// hear posts what a person wrote over a channel, with pictures and files.
func (h *harness) hear(peer, id string, content ...tidemark.Block) {
	in := overApp(peer, id, "")
	in.Message.Content = content
	h.post(in)
}

// postedMeanwhile says hello, and posts inputs while the model is asked, so that they wait together.
func (h *harness) postedMeanwhile(waiting []session.Input) {
	h.t.Helper()
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		for _, in := range waiting {
			if _, err := h.Post(h.t.Context(), in); err != nil {
				h.t.Error(err)
			}
		}
		waiting = nil
		return tidemark.Message{}, nil
	})
	h.say("hello")
}

func viewText(h *harness) string {
	var b strings.Builder
	for _, m := range h.sent() {
		b.WriteString(m.PlainText() + "\n")
	}
	return b.String()
}

// TestAmend: corrected words stand in the view in the place of the first ones, and again when they are corrected again;
// what was taken back does not; the log keeps all, and nothing is answered. Nobody amends what another wrote, and a
// neighbour with a message of the same name keeps it.
func TestAmend(t *testing.T) {
	h := newHarness(t, session.Settings{})
	beside := &harness{t: h.t, db: h.db, blobs: h.blobs, model: &model{}, agent: &fakeAgent{}, rt: h.rt, key: "agent:main:second"}
	beside.open()
	beside.post(overApp("ann", "m1", "the train leaves at seven"))
	h.post(overApp("ann", "m1", "the train leaves at seven"))
	h.post(overApp("ann", "m2", "my pin is 4471"))
	calls := len(h.model.calls)
	h.amend("ann", "m3", session.Amendment{Edits: "m1", Text: "the train leaves at eight"})
	h.amend("ann", "m4", session.Amendment{Edits: "m1", Text: "the train leaves at nine"})
	h.amend("ann", "m5", session.Amendment{Revokes: "m2"})
	h.amend("bob", "m6", session.Amendment{Revokes: "m1"})
	h.amend("ann", "m7", session.Amendment{Edits: "never", Text: "the bus leaves at ten"})
	h.amend("ann", "m8", session.Amendment{Edits: "never", Text: "the bus leaves at noon"})
	h.amend("ann", strings.Repeat("i", 200), session.Amendment{Edits: "nor that", Text: "the ferry leaves at one"}) // the longest id
	h.amend("ann", "m9", session.Amendment{Revokes: "nor this"})
	got := viewText(h)
	if strings.Count(got, "the bus leaves at noon") != 1 || strings.Count(got, "the ferry leaves at one") != 1 || strings.Contains(got, "at ten") {
		t.Errorf("what corrects a message that is not here: %s", got)
	}
	if strings.Contains(got, "seven") || strings.Contains(got, "eight") || strings.Count(got, "the train leaves at nine") != 1 || strings.Contains(got, "4471") || !strings.Contains(got, "took this message back") {
		t.Errorf("view:\n%s", got)
	}
	if len(h.model.calls) != calls {
		t.Errorf("the model was asked %d times more", len(h.model.calls)-calls)
	}
	rows, err := h.db.Query(t.Context(), `SELECT group_concat(e.payload) FROM entries e JOIN logs l ON l.id = e.log WHERE l.key = ? LIMIT 1`, string(h.key))
	if err != nil {
		t.Fatal(err)
	}
	log := rows[0].Text(0)
	if !strings.Contains(log, "at seven") || !strings.Contains(log, "at eight") || !strings.Contains(log, "4471") {
		t.Error("the log lost something")
	}
	if got := viewText(beside); !strings.Contains(got, "at seven") || strings.Contains(got, "nine") {
		t.Errorf("the neighbour's view:\n%s", got)
	}
}

// TestAmendedAtOnce: what corrects a message that is not here is amended by what waits right behind it.
func TestAmendedAtOnce(t *testing.T) {
	h := newHarness(t, session.Settings{})
	amendments := []session.Amendment{{Edits: "never", Text: "the bus leaves at ten"}, {Revokes: "never"}, {Edits: "nor that", Text: "the ferry leaves at one"}, {Edits: "nor that", Text: "the ferry leaves at two"}}
	var waiting []session.Input
	for i, a := range amendments {
		in := session.Amend(a)
		in.ID, in.Origin = fmt.Sprint("e", i), overApp("ann", fmt.Sprint("e", i), "").Origin
		waiting = append(waiting, in)
	}
	h.postedMeanwhile(waiting)
	h.amend("ann", "e9", session.Amendment{Revokes: "none"}) // behind all of them
	if got := viewText(h); strings.Contains(got, "at ten") || strings.Contains(got, "at one") || strings.Count(got, "the ferry leaves at two") != 1 {
		t.Errorf("view:\n%s", got)
	}
}

// TestAmendedBeforeItCame: a message that was taken back or corrected before it came stands in the log when it comes, and reads as
// amended. What was taken back is not answered; corrected words are, and so is a message of that name of somebody else's, and
// what waits behind. Where the turn is stopped, it reads so all the same.
func TestAmendedBeforeItCame(t *testing.T) {
	h := newHarness(t, session.Settings{})
	beside := &harness{t: h.t, db: h.db, blobs: h.blobs, model: &model{}, agent: &fakeAgent{}, rt: h.rt, key: "agent:main:second"}
	beside.open()
	beside.amend("ann", "r1", session.Amendment{Revokes: "other"})
	h.amend("ann", "r1", session.Amendment{Revokes: "m1"})
	h.amend("ann", "r2", session.Amendment{Edits: "m2", Text: "the bus leaves at ten"})
	h.amend("ann", "r3", session.Amendment{Edits: "m2", Text: "the bus leaves at noon"})
	bobs := overApp("bob", "m1", "mine is 8812")
	bobs.ID = "of bob"
	if got := h.post(bobs); got == "" {
		t.Error("somebody else's message of that name is not answered")
	}
	if got := beside.post(overApp("ann", "m1", "the neighbour says 9923")); got == "" {
		t.Error("the neighbour is not answered")
	}
	waiting := []session.Input{overApp("ann", "m0", "hello again"), overApp("ann", "m1", "my pin is 4471"), overApp("ann", "m2", "the bus leaves at six"), overApp("ann", "m3", "and now?")}
	h.postedMeanwhile(waiting)
	h.amend("ann", "r4", session.Amendment{Revokes: "none"}) // behind all of them
	asked := ""
	for i, req := range h.model.calls {
		asked += req.Messages[len(req.Messages)-1].PlainText() + "\n--\n"
		if text := string(tidemark.Message{Role: tidemark.User, Content: req.Messages[len(req.Messages)-1].Content}.AppendJSON(nil)); strings.Contains(text, "4471") || strings.Contains(text, "at six") {
			t.Errorf("call %d was asked %s", i, text)
		}
	}
	if !strings.Contains(asked, "the bus leaves at noon\n--") {
		t.Errorf("the corrected words are not answered: %s", asked)
	}
	got := viewText(h)
	if strings.Contains(got, "4471") || strings.Contains(got, "at six") || strings.Contains(got, "at ten") || strings.Count(got, "the bus leaves at noon") != 2 ||
		strings.Count(got, "took this message back") != 1 || !strings.Contains(got, "8812") || !strings.Contains(got, "and now?") {
		t.Errorf("view:\n%s", got)
	}
	if log := strings.Join(h.originals(), "\n"); !strings.Contains(log, "4471") || !strings.Contains(log, "at six") {
		t.Errorf("the log has lost something:\n%s", log)
	}
	if got := viewText(beside); !strings.Contains(got, "9923") {
		t.Errorf("the neighbour's view:\n%s", got)
	}
	if rows, err := h.db.Query(t.Context(), `SELECT group_concat(id || ' ' || state) FROM inputs WHERE key = ? AND state <> 'done' LIMIT 1`, string(h.key)); err != nil || rows[0].Text(0) != "r4 unmet" {
		t.Errorf("not done are %s, %v", rows[0].Text(0), err)
	}
}

// TestAmendedWhileItWaits: a message that is taken back or corrected while it waits is asked for by no model with its old words.
func TestAmendedWhileItWaits(t *testing.T) {
	h := newHarness(t, session.Settings{})
	correct := session.Amend(session.Amendment{Edits: "m2", Text: "the bus leaves at noon"})
	revoke := session.Amend(session.Amendment{Revokes: "m1"})
	correct.ID, revoke.ID = "e1", "e2"
	correct.Origin, revoke.Origin = overApp("ann", "e1", "").Origin, overApp("ann", "e2", "").Origin
	waiting := []session.Input{overApp("ann", "m1", "my pin is 4471"), overApp("ann", "m2", "the bus leaves at six"), correct, revoke}
	h.postedMeanwhile(waiting)
	h.amend("ann", "e9", session.Amendment{Revokes: "none"}) // behind all of them
	asked := ""
	for _, req := range h.model.calls {
		for _, m := range req.Messages {
			asked += m.PlainText() + "\n"
		}
	}
	if strings.Contains(asked, "4471") || strings.Contains(asked, "at six") || !strings.Contains(asked, "at noon") {
		t.Errorf("asked:\n%s", asked)
	}
	if got := viewText(h); strings.Contains(got, "4471") || strings.Contains(got, "at six") || strings.Count(got, "at noon") != 1 || !strings.Contains(got, "took this message back") {
		t.Errorf("view:\n%s", got)
	}
}

// TestQuiet: what wants no answer stands in the log and goes to the model with the next message, and nobody is asked.
func TestQuiet(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.post(overApp("ann", "m1", "when do you come?"))
	calls := len(h.model.calls)
	in := overApp("ann", "e1", "[The owner, from their phone] I come at nine")
	in.Origin.Quiet, in.Origin.Owner = true, true
	if got := h.post(in); got != "" || len(h.model.calls) != calls {
		t.Errorf("answered with %q, asked %d times more", got, len(h.model.calls)-calls)
	}
	if got := viewText(h); !strings.Contains(got, "I come at nine") {
		t.Errorf("view:\n%s", got)
	}
	if got := h.post(overApp("ann", "m2", "fine")); got == "" {
		t.Error("the next message is not answered")
	}
}

// TestAmendedIsFound: recall finds a message by what it reads now and says so where it is found by what it read; nothing of
// a message that was taken back is pushed. A caption that comes later stands beside its picture, however large, and the note
// of a file stays.
func TestAmendedIsFound(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}
	h.open()
	h.hear("ann", "m1", tidemark.Text("the code of my walnut cupboard is 4471"))
	h.hear("ann", "m2", tidemark.Text("the code of my cellar door is 9313"))
	h.hear("ann", "m3", block(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUJD", 100_000)+`"}}`))
	h.hear("ann", "m4", tidemark.Text("[document plan.docx: application/msword, 20000 bytes, kept as agents/main/files/x]"), tidemark.Text("read this please"))
	h.hear("ann", "m5", tidemark.Text("[between us: 7117]"))
	h.amend("ann", "e5", session.Amendment{Edits: "m5", Text: "never mind"})
	h.amend("ann", "e0", session.Amendment{Edits: "m1", Text: "the code of my old and rather dusty oak wardrobe on the second floor is 1234, I think"})
	h.amend("ann", "e1", session.Amendment{Edits: "m1", Text: "the code of my oak wardrobe is 5582"})
	h.amend("ann", "e2", session.Amendment{Revokes: "m2"})
	h.amend("ann", "e3", session.Amendment{Edits: "m3", Text: "my cat"})
	h.amend("ann", "e4", session.Amendment{Edits: "m4", Text: "read this, please!"})
	for query, want := range map[string]string{"oak wardrobe code 5582": "oak wardrobe is 5582", "walnut cupboard": "reads now: the code of my oak wardrobe is 5582", "cellar door code": "took this message back"} {
		found, err := h.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil || len(found.Results) == 0 || !strings.Contains(found.Results[0].Text, want) {
			t.Errorf("%s: %+v, %v", query, found, err)
		}
	}
	for _, q := range []string{"what is the code of my cellar door?", "what is the code of my walnut cupboard?"} {
		h.say(q)
		if note := h.model.last().Note; strings.Contains(note, "9313") || strings.Contains(note, "4471") {
			t.Errorf("pushed: %s", note)
		}
	}
	raw, err := json.Marshal(h.sent())
	if err != nil || strings.Contains(string(raw), "tidemark_blob") || !strings.Contains(string(raw), `QUJDQUJD"`) {
		t.Errorf("%v: sent %.1500s", err, raw)
	}
	h.sentInOrder([]string{"oak wardrobe", "my cat", "plan.docx", "read this, please!", "never mind"})
	if strings.Contains(string(raw), "7117") {
		t.Error("what was corrected is sent")
	}
}

// TestManyCaptions: files beside which captions came later are bounded together, and the newest are shown.
func TestManyCaptions(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	for i := range 3 {
		id := fmt.Sprint("m", i)
		h.hear("ann", id, block(t, fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"Q%dJD%s"}}`, i, strings.Repeat("QUJD", 850_000))))
		h.amend("ann", "e"+id, session.Amendment{Edits: id, Text: "cat " + id})
	}
	h.say("which?")
	raw, err := json.Marshal(h.sent())
	if err != nil || strings.Contains(string(raw), `"Q0JD`) || !strings.Contains(string(raw), `"Q1JD`) || !strings.Contains(string(raw), `"Q2JD`) || !strings.Contains(string(raw), "[image: 3400") {
		t.Errorf("%v: %d bytes sent", err, len(raw))
	}
}

// TestCaptionOfTooMuch: a file that is too large for the room that the others left takes none of it: a smaller one behind it is
// shown.
func TestCaptionOfTooMuch(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	for i, size := range []int{100_000, 850_000, 850_000, 850_000} { // the newest two fill most of the room
		id := fmt.Sprint("m", i)
		h.hear("ann", id, block(t, fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"Q%dJD%s"}}`, i, strings.Repeat("QUJD", size))))
		h.amend("ann", "e"+id, session.Amendment{Edits: id, Text: "cat " + id})
	}
	h.say("which?")
	raw, err := json.Marshal(h.sent())
	if err != nil || !strings.Contains(string(raw), `"Q0JD`) || strings.Contains(string(raw), `"Q1JD`) || !strings.Contains(string(raw), `"Q3JD`) || strings.Count(string(raw), "too many beside the others") != 1 {
		t.Errorf("%v: %d bytes sent", err, len(raw))
	}
}

// TestAmendedIsSummarized: a summary that was put off halfway and had read words that were taken back since begins anew, and
// one that is made upon another does not carry on word for word what was taken back under it.
func TestAmendedIsSummarized(t *testing.T) {
	t.Parallel()
	h, c := newTimed(t, session.Settings{Window: 9000, Reserve: 2500, Keep: 800}, noon)
	down, read := true, 0
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		prompt, known := req.Messages[0].PlainText(), ""
		switch {
		case !asksSummary(req):
			return tidemark.NewText(tidemark.Assistant, filler(n)), nil
		case down && read > 0:
			return tidemark.Message{}, failure(tidemark.ClassAuth) // no backoff, and may pass
		case strings.Contains(prompt, "4471"):
			read, known = read+1, "- the pin of the pier is 4471\n"
		}
		gist := strings.ReplaceAll(tidemarktest.Gist(prompt), "9313", "a number")
		return tidemark.NewText(tidemark.Assistant, "<summary>"+known+gist+"</summary><memories>none</memories>"), nil
	})
	h.post(overApp("ann", "m1", "my pin of the pier is 4471"))
	h.post(overApp("ann", "m2", "and my other one is 9313"))
	i := 0
	more := func(kind string) {
		for n := len(h.events(kind)); len(h.events(kind)) == n && i < 200; i++ {
			h.say(fmt.Sprint("on, ", i))
		}
	}
	more("notice")
	if read == 0 || len(h.events("compaction")) != 0 {
		t.Fatalf("read %d times, notices %q, compactions %q", read, h.events("notice"), h.events("compaction"))
	}
	h.amend("ann", "e1", session.Amendment{Revokes: "m1"})
	down, read = false, 0
	c.advance(16 * time.Minute)
	more("compaction")
	if got := viewText(h); read != 0 || strings.Contains(got, "4471") || !strings.Contains(got, "9313") {
		t.Errorf("read %d times; view %.600s", read, got)
	}
	h.amend("ann", "e2", session.Amendment{Edits: "m2", Text: "and my other one is 5582"})
	more("compaction")
	if got := viewText(h); strings.Contains(got, "9313") || !strings.Contains(got, "5582") {
		t.Errorf("view %.1200s", got)
	}
}

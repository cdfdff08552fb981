package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// scribe is a session with episodes whose model says what it is told to: a line of calls for each reply, then an answer.
//
//	look 600             a call of look with about so many words
//	expl NAME            delimiter, start of an exploration
//	act NAME: A, B       of an action
//	end DESCRIPTION      its end, with a description or without
//	{...}                delimiter with these arguments
//	recall NAME          recall of an episode
//
// Calls of one reply are parted by " | ".
type scribe struct {
	*harness
	budget tidemark.Tokens

	mu    sync.Mutex // guards the following 2 fields
	lines []string
	calls int
}

func newScribe(t *testing.T, set session.Settings, budget tidemark.Tokens, more ...compaction.Strategy) *scribe {
	t.Helper()
	d := &scribe{harness: newHarness(t, set), budget: budget}
	d.stop()
	d.strategies = append(d.strategies, &compaction.Episodes{Budget: episodes.Budget{Tokens: budget}})
	d.strategies = append(d.strategies, more...)
	d.agent.call = func(c tidemark.Block) tidemark.Block {
		var in struct{ Words int }
		if err := json.Unmarshal(c.Input, &in); err != nil {
			return tidemark.ToolResult(c.ID, err.Error(), true)
		}
		return tidemark.ToolResult(c.ID, strings.Repeat("tide "+c.ID+" ", in.Words/2), false)
	}
	d.model.set(d.play)
	d.open()
	return d
}

// again begins a new life, which knows nothing but what is stored.
func (d *scribe) again() {
	d.t.Helper()
	d.stop()
	d.strategies[0] = &compaction.Episodes{Budget: episodes.Budget{Tokens: d.budget}}
	d.open()
}

// work has the model make some replies and answer.
func (d *scribe) work(lines ...string) string {
	d.t.Helper()
	d.mu.Lock()
	d.lines = append(d.lines, lines...)
	d.mu.Unlock()
	got := d.say("go on")
	if strings.HasPrefix(got, "error") {
		d.t.Fatal(got)
	}
	return got
}

func (d *scribe) play(_ int, req tidemark.Request) (tidemark.Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asksSummary(req) || len(d.lines) == 0 {
		return tidemark.Message{}, nil
	}
	line := d.lines[0]
	d.lines = d.lines[1:]
	m := tidemark.Message{Role: tidemark.Assistant}
	for part := range strings.SplitSeq(line, " | ") {
		d.calls++
		m.Content = append(m.Content, scribeCall(fmt.Sprintf("c%03d", d.calls), part))
	}
	return m, nil
}

func scribeCall(id, part string) tidemark.Block {
	verb, rest, _ := strings.Cut(part, " ")
	name, in := episodes.ToolName, part
	switch verb {
	case "look":
		name, in = "look", `{"words":`+rest+`}`
	case "recall":
		name, in = "recall", `{"episode":`+string(json.AppendString(nil, rest))+`}`
	case "expl":
		in = fmt.Sprintf(`{"action":"start","name":%q,"type":"expl"}`, rest)
	case "act":
		on, list, ok := strings.Cut(rest, ": ")
		in = fmt.Sprintf(`{"action":"start","name":%q,"type":"act","dependencies":[]}`, on)
		if ok {
			in = strings.Replace(in, "[]", `["`+strings.ReplaceAll(list, ", ", `","`)+`"]`, 1)
		}
	case "end":
		if in = `{"action":"end"}`; rest != "" {
			in = fmt.Sprintf(`{"action":"end","description":%q}`, rest)
		}
	}
	return tidemark.ToolUse(id, name, []byte(in))
}

// told returns what calls were answered, by call, as the log has it.
func (d *scribe) told() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for e, err := range d.Reader.All(d.t.Context(), true) {
		if err != nil {
			d.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			d.t.Fatal(err)
		}
		for _, b := range m.Content {
			if b.Type == tidemark.TypeToolResult {
				out[b.ToolUseID] = b.Content[0].Text
				if b.IsError {
					out[b.ToolUseID] = "refused: " + b.Content[0].Text
				}
			}
		}
	}
	return out
}

// episodes tells of the episodes, and holds them against what lives tell that know what is stored, and that read all of
// the log.
func (d *scribe) episodes() episodic.Overview {
	d.t.Helper()
	kept := episodesOf(d.t, d.Session)
	d.again()
	if stored := episodesOf(d.t, d.Session); asJSON(d.t, stored) != asJSON(d.t, kept) {
		d.t.Fatalf("kept %s\nstored %s", asJSON(d.t, kept), asJSON(d.t, stored))
	}
	for _, sql := range []string{`DELETE FROM marked`, `UPDATE marked_logs SET upto = 0`} {
		if err := d.db.Tx(d.t.Context(), []tidemark.Stmt{{SQL: sql}}); err != nil && !strings.Contains(err.Error(), "no such table") {
			d.t.Fatal(err)
		}
	}
	d.again()
	if anew := episodesOf(d.t, d.Session); asJSON(d.t, anew) != asJSON(d.t, kept) {
		d.t.Fatalf("kept %s\nanew %s", asJSON(d.t, kept), asJSON(d.t, anew))
	}
	return kept
}

func episodesOf(t *testing.T, s *session.Session) episodic.Overview {
	t.Helper()
	out, err := dividedOf(t, s).Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// states lists episodes as "NAME:state".
func states(e episodic.Overview) string {
	var out []string
	for _, x := range e.Episodes {
		out = append(out, x.Name+":"+string(x.State))
	}
	return strings.Join(out, " ")
}

// wide is a window that no summary is due in.
var wide = session.Settings{Window: 100_000, Reserve: 2_000, Keep: 2_000}

// TestEpisodesInASession: what was finished leaves over the budget, actions before explorations, the open one stays, a
// line says what left, people are told, and a life that reads the whole log knows the same.
func TestEpisodesInASession(t *testing.T) {
	d := newScribe(t, wide, 6_000)
	for i := range 8 {
		d.work(fmt.Sprintf("expl find %d", i), "look 600 | look 500", fmt.Sprintf("end found %d", i),
			fmt.Sprintf("act mend %d: find %d", i, i), "look 500", "end")
	}
	d.work("expl now", "look 100")
	e := d.episodes()
	if e.Size > e.Budget || e.Budget != 6_000 || e.LowWater != 4_500 || !e.Enabled || e.Active != "now" || e.Episodes[0].Name != "find 0" {
		t.Errorf("%+v", e)
	}
	if s := states(e); !strings.HasPrefix(s, "find 0:gone mend 0:gone") || !strings.HasSuffix(s, "now:open") {
		t.Error(s)
	}
	if x := e.Episodes[1]; x.Dependencies[0] != "find 0" || x.Calls != 1 || x.Standing != 0 || x.Tokens < 500 || x.Began.IsZero() || x.Ended.Before(x.Began) {
		t.Errorf("%+v", x)
	}
	events := d.events("episodes")
	if len(events) == 0 || !strings.Contains(events[0], "left whole") || strings.Contains(strings.Join(events, ""), "shortened") {
		t.Errorf("events %v", events)
	}
	if rows, err := d.db.Query(t.Context(), `SELECT count(*) FROM due WHERE kind LIKE 'evicted%' AND key = ? LIMIT 1`, string(d.key)); err != nil || rows[0].Int(0) > 0 {
		t.Errorf("what an agent did is to be read for memories: %v", err)
	}
	for i, r := range d.model.calls {
		if err := tidemark.Check(r.Messages); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	text := asJSON(t, d.sent())
	for _, part := range []string{`find 0`, `found 0`, `mend 0`, `recall with {\"episode\": \"NAME\"}`} {
		if !strings.Contains(text, strings.ReplaceAll(part, `"`, `\"`)) && !strings.Contains(text, part) {
			t.Errorf("%s is not in the view", part)
		}
	}
	if len(d.keys("agents/main/sessions/")) == 0 {
		t.Error("nothing was archived before it left")
	}
	if len(d.agent.remembered()) > 0 || d.model.count() > 8*7+3 {
		t.Errorf("%d calls of the model, remembered %v", d.model.count(), d.agent.remembered())
	}
}

// TestMarksInOneReply: several calls of the tool in one reply are decided in their order, each as if those before it had
// been carried out, though calls run side by side.
func TestMarksInOneReply(t *testing.T) {
	d := newScribe(t, wide, 50_000)
	d.work("expl a | look 10 | end learned | act b: a | expl c | end | end", `{"action":"start","name":"d"} | "start" | {"action":"end"} | look 5`)
	got := d.told()
	for id, want := range map[string]string{"c001": `Started exploration "a".`, "c003": "Ended", "c004": `depends on a`, "c005": `refused: action "b" is open`,
		"c006": "Ended", "c007": "refused: no episode is open", "c008": "refused: type", "c009": "refused: the arguments are no JSON", "c010": "refused: no episode"} {
		if !strings.Contains(got[id], want) {
			t.Errorf("%s: %q, want %q", id, got[id], want)
		}
	}
	if s := states(d.episodes()); s != "a:whole b:whole :whole" {
		t.Error(s)
	}
}

// TestRecallOfAnEpisode: recall reads an episode by its name, gone or not, a page at a time; a name that is not known
// is told with those near to it.
func TestRecallOfAnEpisode(t *testing.T) {
	d := newScribe(t, wide, 3_000)
	d.work("expl the tide", "look 900 | look 4000", "end it rises", "act mend the clock: the tide", "look 900", "end")
	d.work("look 2500")
	if s := states(d.episodes()); strings.HasPrefix(s, "the tide:whole") || !strings.Contains(s, "mend the clock:gone") {
		t.Fatal(s)
	}
	d.work("recall mend the clock", "recall the tides", `{"action":"end"} | recall the tide`)
	got := d.told()
	if text := got["c009"]; !strings.Contains(text, "tide c006 tide c006") || strings.Contains(text, "c002") {
		t.Errorf("the action: %.300s", text)
	}
	if text := got["c010"]; !strings.Contains(text, `refused: episode "the tides" is not known`) || !strings.Contains(text, `"the tide"`) {
		t.Errorf("an unknown name: %s", text)
	} else if strings.HasSuffix(text, "not found") {
		t.Errorf("the kind of the error is told too: %s", text)
	}
	text := got["c012"]
	if len(text) > 21_000 || !strings.Contains(text, "tide c002") || !strings.Contains(text, "go on with offset 20000]") {
		t.Errorf("the first page has %d bytes: %.200s … %s", len(text), text, text[max(len(text)-100, 0):])
	}
	d.mu.Lock()
	d.calls = 100
	d.mu.Unlock()
	d.work("look 1")
	read, from := "", 0
	for range 5 {
		text, err := d.ReadEpisode(t.Context(), "the tide", from)
		if err != nil {
			t.Fatal(err)
		}
		page, rest, more := strings.Cut(text, "\n[20000 bytes of ")
		read += page
		if !more {
			break
		}
		if _, err := fmt.Sscanf(rest[strings.Index(rest, "offset "):], "offset %d", &from); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(read, "tide c003 "); n < 1998 || n > 2000 || strings.Contains(read, "c006") {
		t.Errorf("all pages have %d of 2000", n)
	}
}

// TestNearNames: an unknown name is answered with those that it may have meant, however many are newer, and for people as
// for the model.
func TestNearNames(t *testing.T) {
	d := newScribe(t, wide, 50_000)
	d.work("act find 2", "end", "act refresh tokens", "end")
	for i := range 13 {
		d.work(fmt.Sprintf("act %c%d", 'a'+i, i), "end")
	}
	for name, want := range map[string]string{"find2": `Near to it: "find 2".`, "refersh": "The newest: ", "refreshed token": `Near to it: "refresh tokens".`, "zebra": "The newest: "} {
		_, err := d.divided().Read(t.Context(), name, 0)
		if !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), want) || strings.HasSuffix(err.Error(), "not found") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.divided().Read(t.Context(), "find 2", 99_999); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	page, err := d.divided().Read(t.Context(), " refresh tokens ", 0)
	if err != nil || page.Next != 0 || page.Episode != `action "refresh tokens"` || !strings.Contains(page.Text, "delimiter") {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestEpisodesAndReset: what was learned in an episode is found by its words; a reset begins without episodes, and their
// names are free again.
func TestEpisodesAndReset(t *testing.T) {
	d := newScribe(t, wide, 3_000)
	d.work("expl the gauge", "look 900", "end the gauge of the harbour shows a zebrafish", "act it: the gauge", "look 900", "end")
	d.work("look 300")
	found, err := d.Recall(t.Context(), search.Wanted{Query: "zebrafish"})
	if err != nil || len(found.Results) == 0 || !strings.Contains(found.Results[0].Text, "harbour") {
		t.Errorf("%+v, %v", found.Results, err)
	}
	if got := d.post(session.Input{Kind: session.InputReset, Text: "manual"}); strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
	if e := d.episodes(); len(e.Episodes) > 0 || e.Short != 0 {
		t.Errorf("%+v", e)
	}
	d.work("recall the gauge", "expl the gauge", "end anew")
	if got := d.told(); !strings.HasPrefix(got["c008"], "refused: ") || !strings.Contains(got["c009"], "Started") {
		t.Errorf("%q, %q", got["c008"], got["c009"])
	}
	if s := states(d.episodes()); s != ":prologue the gauge:whole :whole" {
		t.Error(s)
	}
}

// TestUndoneEpisodes: an undo brings all back, and it does not leave again at once.
func TestUndoneEpisodes(t *testing.T) {
	d := newScribe(t, wide, 4_000)
	for i := range 5 {
		d.work(fmt.Sprintf("act w%d", i), "look 700", "end")
	}
	if s := states(d.episodes()); !strings.HasPrefix(s, "w0:gone") {
		t.Fatal(s)
	}
	before := len(d.events("episodes"))
	for _, o := range overlays(d.harness) {
		if changed, err := d.Undo(t.Context(), o); err != nil || !changed {
			t.Fatal(changed, err)
		}
	}
	if s := states(episodesOf(t, d.Session)); strings.Contains(s, "gone") || strings.Contains(s, "partial") {
		t.Fatal(s)
	}
	d.work("act more", "look 10", "end")
	if e := episodesOf(t, d.Session); e.Short == 0 || !strings.Contains(e.Held, "brought back by undo") {
		t.Errorf("%d over the budget, held since %q", e.Short, e.Held)
	}
	if got := strings.Join(d.events("notice"), "\n"); !strings.Contains(got, "brought back by undo") {
		t.Errorf("notices %s", got)
	}
	if s := states(d.episodes()); !strings.HasPrefix(s, "w0:whole") || len(d.events("episodes")) > before+1 {
		t.Error(s, d.events("episodes")[before:])
	}
}

// overlays lists the overlays of a log, newest first.
func overlays(h *harness) (out []tidemark.EntryID) {
	h.t.Helper()
	entries, err := h.Reader.Entries(h.t.Context(), 0, 10_000)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind == tidemark.KindOverlay {
			out = append(out, e.ID)
		}
	}
	return out
}

// TestBudgetNotMet: the model is told with each call while it lasts, the operator once, again when it grows much, and
// when it is over, also over a restart.
func TestBudgetNotMet(t *testing.T) {
	d := newScribe(t, wide, 4_000)
	d.work("expl long", "look 2200", "look 100", "look 100")
	notes := d.events("notice")
	if len(notes) != 1 || !strings.Contains(notes[0], "over its budget of 4000") || !strings.Contains(notes[0], `\"long\" is open`) {
		t.Fatalf("notices %v", notes)
	}
	last := d.model.calls[len(d.model.calls)-1].Note
	if !strings.Contains(last, "over its budget of 4000") || !strings.Contains(last, `exploration "long"`) || tidemark.EstimateText(last) > 80 {
		t.Errorf("the model is told %q", last)
	}
	d.again()
	d.work("look 10")
	if notes = d.events("notice"); len(notes) != 1 {
		t.Errorf("a new life tells it again: %v", notes)
	}
	d.work("look 700")
	if notes = d.events("notice"); len(notes) != 2 {
		t.Errorf("it has grown by more than a quarter: %v", notes)
	}
	d.work("end it was long", "look 10")
	d.work("look 10")
	if notes = d.events("notice"); len(notes) != 2 {
		t.Errorf("no whole turn had room: %v", notes)
	}
	d.work("look 10")
	if notes = d.events("notice"); len(notes) != 3 || !strings.Contains(notes[2], "within its budget") {
		t.Errorf("it is over: %v", notes)
	}
	if last := d.model.calls[len(d.model.calls)-1].Note; strings.Contains(last, "budget") {
		t.Errorf("the model is told %q still", last)
	}
}

// TestMarkSoon: a model that marks nothing is told shortly before something leaves.
func TestMarkSoon(t *testing.T) {
	d := newScribe(t, wide, 4_000)
	d.work("look 2000")
	last := d.model.calls[len(d.model.calls)-1].Note
	if !strings.Contains(last, "Divide work with delimiter") {
		t.Errorf("the model is told %q", last)
	}
}

// counts is a model that says how large a request is.
type counts struct {
	*model
	n     tidemark.Tokens
	err   error
	asked int
}

func (c *counts) Count(context.Context, tidemark.Request) (tidemark.Tokens, error) {
	c.asked++
	return c.n, c.err
}

// TestExactCount: the provider is asked once a turn and near the budget only; what it says decides, and without it the
// estimate does.
func TestExactCount(t *testing.T) {
	for _, row := range []struct {
		name   string
		words  int // of the finished work
		says   tidemark.Tokens
		fails  error
		asked  int
		leaves bool
	}{
		{"far below", 500, 9_000, nil, 0, false},
		{"near, and it is over", 2_000, 6_000, nil, 1, true},
		{"over by the estimate, and it is not", 2_400, 3_000, nil, 1, false},
		{"over by the estimate, and it counts next to nothing", 2_400, 1, nil, 1, true},
		{"near, and it counts what cannot be", 2_000, 1_000_000_000, nil, 1, false},
		{"over by the estimate, and no answer", 2_400, 0, fmt.Errorf("down: %w", tidemark.ErrUnavailable), 1, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newScribe(t, wide, 50_000)
			c := &counts{model: d.model, n: row.says, err: row.fails}
			d.work("act a", fmt.Sprint("look ", row.words), "end")
			d.stop()
			d.provider = c
			d.strategies[0] = &compaction.Episodes{Budget: episodes.Budget{Tokens: 4_000}, Exact: true}
			d.open()
			d.work("look 5", "look 5")
			if c.asked != row.asked {
				t.Errorf("asked %d times, want %d", c.asked, row.asked)
			}
			if s := states(episodesOf(t, d.Session)); strings.HasPrefix(s, "a:whole") == row.leaves {
				t.Error(s)
			}
		})
	}
}

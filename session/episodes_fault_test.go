package session_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// markedLog is a random history of an agent that marks episodes, as a log of another program may have it.
func markedLog(t *testing.T, seed uint64, steps int, wild bool) []tidemark.Message {
	t.Helper()
	g := episodes.New(episodes.DefaultTools(nil))
	var out []tidemark.Message
	h := &tidemarktest.Marked{Rand: rand.New(rand.NewPCG(seed, 7)), Wild: wild, Words: 60, Add: func(m tidemark.Message) {
		for i := range m.Content {
			if b := &m.Content[i]; b.Type == tidemark.TypeToolUse && !json.Valid(b.Input) { // no log can hold it
				*b = tidemark.ToolUse(b.ID, b.Name, json.AppendString(nil, string(b.Input)))
			}
		}
		out = append(out, m)
		g.Add(episodes.Message{ID: tidemark.EntryID(fmt.Sprint(len(out))), Seq: int64(len(out)), Content: m})
	}, Answer: func() map[string]tidemark.Block {
		out := map[string]tidemark.Block{}
		for id, a := range g.Answer() {
			out[id] = a.Result(id)
		}
		return out
	}}
	for range steps {
		h.Step()
	}
	return out
}

func imports(list []tidemark.Message) iter.Seq2[replay.Message, error] {
	return func(yield func(replay.Message, error) bool) {
		for _, m := range list {
			if !yield(replay.Message{Message: m}, nil) {
				return
			}
		}
	}
}

// TestKeptGraph: over random histories that come in pieces, with new lives, compactions by every strategy and branches
// in between, what is kept of a log is what all of it gives in one go.
func TestKeptGraph(t *testing.T) {
	for seed := range uint64(fewer(4)) { //nolint:gosec // a count
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			set := session.Settings{Window: 14_000, Reserve: 2_000, Keep: 1_500}
			d := newScribe(t, set, 4_000, compaction.Pointer{}, compaction.Summary{})
			log := markedLog(t, seed, 60, seed%2 == 1)
			for n := 0; n < len(log); {
				n = min(n+1+r.IntN(40), len(log))
				if _, err := d.Import(t.Context(), imports(log[:n]), nil); err != nil {
					t.Fatal(err)
				}
				switch r.IntN(4) {
				case 0:
					d.again()
				case 1:
					episodesOf(t, d.Session)
				case 2:
					d.episodes()
				}
			}
			d.work("look 10", "look 10")
			d.sent()
			if e := d.episodes(); len(e.Episodes) < 5 {
				t.Errorf("only %d episodes", len(e.Episodes))
			}
			d.branch(r)
		})
	}
}

// branch makes branches of the log at random places, and holds what is kept of them against all of their log.
func (d *scribe) branch(r *rand.Rand) {
	d.t.Helper()
	log := episodesOf(d.t, d.Session).Session
	entries, err := d.Reader.Entries(d.t.Context(), 0, 10_000)
	if err != nil {
		d.t.Fatal(err)
	}
	root := d.key
	for i := range 4 {
		name := fmt.Sprint("b", i)
		at := entries[r.IntN(len(entries))].Seq
		if _, err := d.Guest().Branch(d.t.Context(), name, log, at); err != nil {
			d.t.Fatal(err)
		}
		d.stop()
		d.key = root + tidemark.Key("#"+name)
		d.again()
		kept := episodesOf(d.t, d.Session)
		for _, e := range kept.Episodes {
			if e.Began.IsZero() {
				d.t.Errorf("branch at %d: %+v", at, e)
			}
		}
		d.episodes()
		d.stop()
		d.key = root
		d.again()
		episodesOf(d.t, d.Session) // what is kept of the root is there again for the next
	}
}

// TestEpisodesWithAll: over random histories the view can be sent whatever strategies there are beside episodes.
func TestEpisodesWithAll(t *testing.T) {
	for set := range 8 {
		var list []compaction.Strategy
		for i, s := range []compaction.Strategy{&compaction.Paging{}, compaction.Pointer{}, compaction.Summary{}} {
			if set>>i&1 == 1 {
				list = append(list, s)
			}
		}
		for seed := range uint64(fewer(1)) { //nolint:gosec // a count
			t.Run(fmt.Sprint(set, seed), func(t *testing.T) {
				t.Parallel()
				d := newScribe(t, session.Settings{Window: 20_000, Reserve: 2_000, Keep: 2_000}, 5_000)
				d.stop()
				at := 0
				if len(list) > 0 && list[0].Name() == (&compaction.Paging{}).Name() {
					at = 1
				}
				d.strategies = slices.Insert(slices.Clone(list), at, d.strategies[0])
				d.open()
				if _, err := d.Import(t.Context(), imports(markedLog(t, 100*seed+uint64(set), 50, seed%2 == 1)), nil); err != nil {
					t.Fatal(err)
				}
				for i := range 6 {
					d.work(fmt.Sprintf("expl x%d | look 300", i), "look 200 | end seen", fmt.Sprintf("act y%d: x%d | look 400", i, i), "end")
					d.sent()
				}
				for i, req := range d.model.calls {
					if err := tidemark.Check(req.Messages); err != nil {
						t.Fatalf("request %d: %v", i, err)
					}
				}
				if len(d.events("selfcheck")) > 0 {
					t.Error(d.events("selfcheck"))
				}
			})
		}
	}
}

// TestTwoLivesOfEpisodes: an older life that goes on beside a newer one spoils nothing of what is kept.
func TestTwoLivesOfEpisodes(t *testing.T) {
	d := newScribe(t, wide, 50_000)
	d.work("expl a", "look 10", "end seen")
	old := d.Session
	d.open()
	d.work("act b: a", "look 10", "end", "expl c")
	if got, want := asJSON(t, episodesOf(t, old)), asJSON(t, episodesOf(t, d.Session)); got != want {
		t.Errorf("the older life has %s\nwant %s", got, want)
	}
	d.work("look 10", "end seen")
	episodesOf(t, old)
	d.work("expl e")
	if s := states(d.episodes()); s != "a:whole :whole b:whole c:whole :whole e:open" {
		t.Error(s)
	}
}

// meddled is a database in which something happens before the next time that episodes are saved, or instead of it.
type meddled struct {
	tidemark.DB
	before func() error
}

func (m *meddled) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if f := m.before; f != nil && slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool { return strings.Contains(s.SQL, "INTO marked_logs(log, upto) ") }) {
		m.before = nil
		if err := f(); err != nil {
			return err
		}
	}
	return m.DB.Tx(ctx, stmts)
}

// TestSaveOfEpisodesFails: what could not be saved is saved with what comes next.
func TestSaveOfEpisodesFails(t *testing.T) {
	d := newScribe(t, wide, 50_000)
	d.stop()
	m := &meddled{DB: d.db}
	d.db = m
	d.open()
	d.work("expl a", "look 5")
	m.before = func() error { return fmt.Errorf("the disk is full: %w", tidemark.ErrUnavailable) }
	d.work("end seen", "expl c", "end it", "act d: c", "look 5")
	if m.before != nil {
		t.Error("nothing was saved")
	}
	if s := states(d.episodes()); s != "a:whole c:whole d:open" {
		t.Error(s)
	}
}

// TestNewerEpisodesStay: a life that saves behind a newer one, which knows more, spoils nothing of what is stored.
func TestNewerEpisodesStay(t *testing.T) {
	d := newScribe(t, wide, 50_000)
	d.stop()
	real := d.db
	m := &meddled{DB: real}
	d.db = m
	d.open()
	old := d.Session
	episodesOf(t, old)
	d.db = real
	d.open()
	log := func(list []tidemark.Message) error { // no turn: an older life would take it for one that was left
		_, err := d.Import(t.Context(), imports(list), nil)
		return err
	}
	list := pair(false, "expl a", "look 5")
	if err := log(list); err != nil {
		t.Fatal(err)
	}
	m.before = func() error {
		err := log(slices.Concat(list, pair(false, "end seen", "act b: a"), pair(false, "look 5", "end")))
		episodesOf(t, d.Session)
		return err
	}
	episodesOf(t, old)
	if m.before != nil {
		t.Error("the older life saved nothing")
	}
	if s := states(d.episodes()); s != "a:whole b:whole" {
		t.Error(s)
	}
}

// TestEpisodesMeanwhile: who looks at the episodes while turns mark them and episodes leave has what is there then, and
// disturbs nothing.
func TestEpisodesMeanwhile(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("nothing interrupts a goroutine there, and the reader never waits")
	}
	d := newScribe(t, wide, 4_000)
	of, stop, ended := d.divided(), make(chan struct{}), make(chan error)
	go func() {
		for n := 0; ; {
			e, err := of.Overview(t.Context())
			if err == nil && len(e.Episodes) < n {
				err = fmt.Errorf("%d episodes, and %d before", len(e.Episodes), n)
			}
			select {
			case <-stop:
				ended <- err
				return
			default:
			}
			if err != nil {
				<-stop
				ended <- err
				return
			}
			n = len(e.Episodes)
		}
	}()
	for i := range 8 {
		d.work(fmt.Sprintf("expl a%d", i), "look 300 | look 100", "end seen", fmt.Sprintf("act b%d: a%d", i, i), "look 400", "end")
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if e := d.episodes(); e.Episodes[0].State != episodic.Gone || len(names(e)) != 16 {
		t.Error(states(e))
	}
}

// TestManyEpisodes: 1,600 of them are read, kept and told, and one reply may have 500 calls.
func TestManyEpisodes(t *testing.T) {
	if testing.Short() || fewer(2) < 2 {
		t.Skip("it imports 6,000 messages")
	}
	list := []tidemark.Message{tidemark.NewText(tidemark.User, "go on")}
	add := func(parts ...string) {
		var calls, results []tidemark.Block
		for i, p := range parts {
			b := scribeCall(fmt.Sprintf("m%d_%d", len(list), i), p)
			calls, results = append(calls, b), append(results, tidemark.ToolResult(b.ID, "done, and so on", false))
		}
		list = append(list, tidemark.Message{Role: tidemark.Assistant, Content: calls}, tidemark.Message{Role: tidemark.User, Content: results})
	}
	for i := range 800 {
		add(fmt.Sprintf("expl x%d", i), "look 1", "look 2")
		add("end seen", fmt.Sprintf("act y%d: x%d", i, i), "look 3", "end")
	}
	add(append(append([]string{"expl long"}, slices.Repeat([]string{"look 1"}, 500)...), "end it was long")...)
	list = append(list, tidemark.NewText(tidemark.Assistant, "all done"))
	d := newScribe(t, wide, 20_000)
	if _, err := d.Import(t.Context(), imports(list), nil); err != nil {
		t.Fatal(err)
	}
	d.work("look 5")
	e := d.episodes()
	if n := len(e.Episodes); n < 1_601 || e.Size > e.Budget || e.Episodes[0].State != episodic.Gone {
		t.Fatalf("%d episodes, %d of %d tokens, the first is %s", n, e.Size, e.Budget, e.Episodes[0].State)
	}
	if x := e.Episodes[1600]; x.Name != "long" || x.Calls != 500 {
		t.Errorf("%+v", x)
	}
	d.sent()
}

// fewer is how many of some costly rounds are played: of the ten times slower js/wasm a few.
func fewer(n int) int {
	if runtime.GOOS == "js" {
		return max(n/6, 1)
	}
	return n
}

// pair is a reply with calls and their results, as another program logged them.
func pair(isError bool, parts ...string) []tidemark.Message {
	m := []tidemark.Message{{Role: tidemark.Assistant}, {Role: tidemark.User}}
	for i, p := range parts {
		b := scribeCall(fmt.Sprint(p, i), p)
		m[0].Content = append(m[0].Content, b)
		m[1].Content = append(m[1].Content, tidemark.ToolResult(b.ID, "said another program", isError))
	}
	return m
}

// TestEpisodesOfOthers: a log in which calls of the tool have errors, or no result, marks nothing by them.
func TestEpisodesOfOthers(t *testing.T) {
	list := []tidemark.Message{tidemark.NewText(tidemark.User, "begin")}
	list = append(list, pair(true, "expl no")...)
	list = append(list, pair(false, "expl yes", "look 3")...)
	list = append(list, pair(true, "end not yet")...)
	list = append(list, pair(false, `"end"`, `{"action":"end","description":["x"]}`, `{"action":"end","description":"learned"}`, "act more", "end")...)
	d := newScribe(t, wide, 20_000)
	if _, err := d.Import(t.Context(), imports(list), nil); err != nil {
		t.Fatal(err)
	}
	if s := states(d.episodes()); s != "yes:whole more:whole" {
		t.Error(s)
	}
	d.work("act yes", "act other: no", "act other: yes", "end")
	if s := states(d.episodes()); !strings.HasSuffix(s, "other:whole :whole") {
		t.Error(s)
	}
}

// TestKilledBetweenMarks kills the process before and after each write of a few turns that mark episodes, and plays
// them again: each is marked once, and what is kept is what the log says.
func TestKilledBetweenMarks(t *testing.T) {
	var in []session.Input
	for i := range 5 {
		text := fmt.Sprintf("expl a%d, look 300, look 100 | end seen | act b%d: a%d | look 200, end", i, i, i)
		in = append(in, session.Input{ID: fmt.Sprint("in", i), Message: tidemark.NewText(tidemark.User, text)})
	}
	d := newScribe(t, wide, 3_000)
	d.stop()
	counter := &mortal{DB: d.db, left: 1 << 30, dead: make(chan struct{})}
	d.db = counter
	d.model.set(obedient)
	d.open()
	for _, x := range in {
		d.post(x)
	}
	want := names(d.episodes())
	if len(want) < 10 || counter.writes < 60 {
		t.Fatalf("%d writes, episodes %v", counter.writes, want)
	}
	for n := 1; n <= counter.writes; n += max(killStep(17), 12/fewer(4)) {
		after := n%2 == 0
		t.Run(fmt.Sprintf("write %d after=%v", n, after), func(t *testing.T) {
			t.Parallel()
			d := newScribe(t, wide, 3_000)
			d.stop()
			d.model.set(obedient)
			real := d.db
			doomed := &mortal{DB: real, left: n, after: after, dead: make(chan struct{})}
			d.db = doomed
			d.playTo(doomed, in)
			d.db = real
			d.again()
			for _, x := range in {
				if got := d.finish(x); strings.HasPrefix(got, "error") {
					t.Fatalf("input %s in the next life: %s", x.ID, got)
				}
			}
			if got := names(d.episodes()); !slices.Equal(got, want) {
				t.Errorf("episodes %v, want %v", got, want)
			}
			d.sent()
		})
	}
}

// names lists the episodes that were marked.
func names(e episodic.Overview) (out []string) {
	for _, x := range e.Episodes {
		if x.Name != "" {
			out = append(out, fmt.Sprint(x.Name, x.Calls, x.Dependencies))
		}
	}
	return out
}

// playTo posts inputs until the database dies.
func (h *harness) playTo(m *mortal, in []session.Input) {
	h.t.Helper()
	s, err := h.tryOpen()
	if err != nil {
		return // killed while it opened
	}
	defer h.stop()
	for _, x := range in {
		sub, err := s.Subscribe()
		if err != nil {
			h.t.Fatal(err)
		}
		r, err := s.Post(h.t.Context(), x)
		for ended := err != nil; !ended; {
			select {
			case <-sub.Ready:
				for n, ok := sub.Next(); ok && !ended; n, ok = sub.Next() {
					ended = (n.Type == session.NoticeDone || n.Type == session.NoticeError) && slices.Contains(n.Inputs, r.ID)
				}
			case <-m.dead:
				ended = true
			}
		}
		sub.Close()
		if err != nil {
			return
		}
	}
}

// obedient is a model that does what the newest words of a person say: replies parted by "|", calls by ",". It keeps
// nothing, so a life that asks again is answered the same.
func obedient(_ int, req tidemark.Request) (tidemark.Message, error) {
	done, text := 0, ""
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == tidemark.User && len(m.Results()) == 0 {
			text = m.PlainText()
			break
		}
		if m.Role == tidemark.Assistant {
			done++
		}
	}
	replies := strings.Split(text, " | ")
	if asksSummary(req) || done >= len(replies) || !strings.HasPrefix(text, "expl ") {
		return tidemark.Message{}, nil
	}
	turn, _, _ := strings.Cut(strings.TrimPrefix(text, "expl "), ",")
	m := tidemark.Message{Role: tidemark.Assistant}
	for i, p := range strings.Split(replies[done], ", ") {
		m.Content = append(m.Content, scribeCall(fmt.Sprintf("%s_%d_%d", turn, done, i), p))
	}
	return m, nil
}

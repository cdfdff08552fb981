package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
)

// rooms are sessions that hold some words each, and note who was asked.
type rooms struct {
	agent.Sessions // which are asked for nothing else

	hangs chan struct{} // closed by the one that hangs

	mu    sync.Mutex // guards the following
	texts map[tidemark.Key]string
	fail  map[tidemark.Key]error // hangs until the end of its time if it is ErrTimeout
	asked []tidemark.Key
}

func (r *rooms) Recall(ctx context.Context, key tidemark.Key, ask recall.Ask) (recall.Answer, error) {
	r.mu.Lock()
	r.asked = append(r.asked, key)
	text, there := r.texts[key]
	fail := r.fail[key]
	r.mu.Unlock()
	if fail == nil && !there {
		fail = fmt.Errorf("session %s: %w", key, tidemark.ErrNotFound)
	}
	if errors.Is(fail, tidemark.ErrTimeout) {
		close(r.hangs)
		<-ctx.Done()
	}
	if fail != nil {
		return recall.Answer{}, fail
	}
	if ask.Query == "" {
		return recall.Answer{}, nil
	}
	if len(recall.Parse(ask.Query, nil).Terms) == 0 {
		return recall.Answer{}, fmt.Errorf("recall: the query has no words: %w", tidemark.ErrInvalid)
	}
	out := recall.Answer{Verdict: recall.Nothing, Considered: 1}
	held := 0
	for _, w := range strings.Fields(ask.Query) {
		held += strings.Count(text, w)
	}
	if held == 0 {
		return out, nil
	}
	raw, err := json.Marshal(map[string]any{"key": key, "id": "of " + string(key), "normalized": float64(min(held, 9)) / 10, "text": text})
	out.Verdict, out.Results = recall.Confident, []recall.Result{{Key: key, Told: raw}}
	return out, err
}

// fill reports sessions that say some words each, whole digests included.
func (w *world) fill(r *rooms, at time.Time, texts map[string]string) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		key := scope(w.t, name).Key
		r.texts[key] = texts[name]
		if err := w.Report(w.t.Context(), tidemark.SessionInfo{Key: key, UpdatedAt: at}, nil); err != nil {
			w.t.Fatal(err)
		}
		if next := w.digests(recall.DigestReport{Key: key, Head: 1, At: at, Parts: []recall.DigestPart{digestPart(1, 1, false, texts[name])}}); next != 1 {
			w.t.Fatal(next)
		}
	}
}

func (w *world) digests(r recall.DigestReport) int64 {
	w.t.Helper()
	next, err := w.Digests(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return next
}

func digestPart(first, last int64, closed bool, text string) recall.DigestPart {
	var b recall.DigestBuilder
	b.Add((&recall.Stemmer{}).Terms(text), noon.Add(-time.Hour))
	return recall.DigestPart{First: first, Last: last, Closed: closed, Digest: b.Build().Encode()}
}

func newRooms(t *testing.T) (*world, *rooms) {
	w := newWorld(t)
	r := &rooms{texts: map[tidemark.Key]string{}, fail: map[tidemark.Key]error{}}
	w.cfg.Sessions = r
	w.restart()
	return w, r
}

// found is the keys of results, without the agent.
func found(a recall.Answer) []string {
	out := []string{}
	for _, r := range a.Results {
		out = append(out, strings.TrimPrefix(string(r.Key), "agent:main:"))
	}
	slices.Sort(out)
	return out
}

// TestWhoFindsWhat: everyone says a word of their own and one that all share. Each asker finds it where the
// rules let them, and of the rest sees no result, no count and no name; nobody of those is even asked.
func TestWhoFindsWhat(t *testing.T) {
	const all = "alice bob group bobs-account garden main"
	keys := map[string]string{
		"main": "main", "garden": "garden", "alice": "agent:main:whatsapp:dm:+491", "bob": "agent:main:whatsapp:dm:+492",
		"group": "agent:main:whatsapp:group:g1", "bobs-account": "agent:main:whatsapp:desk:+492",
	}
	ask := func(scope recall.Scope, peer string) recall.Ask {
		return recall.Ask{Query: "shared", Scope: scope, Peer: peer, K: 50}
	}
	rows := []struct {
		name, asker string
		ask         recall.Ask
		want        string // names, or an error's text
	}{
		{"the owner", "main", ask("agent", ""), all},
		{"another session of the owner", "garden", ask("agent", ""), all},
		{"a peer", "agent:main:whatsapp:dm:+491", ask("agent", ""), "alice"},
		{"a peer with two conversations", "agent:main:whatsapp:dm:+492", ask("agent", ""), "bob bobs-account"},
		{"a branch of a peer", "agent:main:whatsapp:dm:+491#b", ask("agent", ""), "alice"},
		{"a peer for another", "agent:main:whatsapp:dm:+491", ask("peer", "whatsapp:+492"), ""},
		{"a peer for the owner", "agent:main:whatsapp:dm:+491", ask("peer", "main"), ""},
		{"a peer for itself", "agent:main:whatsapp:dm:+491", ask("peer", ""), "alice"},
		{"a peer with a pattern", "agent:main:whatsapp:dm:+491", ask("peer", "%"), ""},
		{"a group", "agent:main:whatsapp:group:g1", ask("agent", ""), "group"},
		{"a person named as a group", "agent:main:whatsapp:dm:g1", ask("agent", ""), ""},
		{"a number of another channel", "agent:main:telegram:dm:+491", ask("agent", ""), ""},
		{"a name that begins so", "agent:main:whatsapp:dm:+49", ask("agent", ""), ""},
		{"a user of the API", "agent:main:user:dm:main", ask("agent", ""), ""},
		{"the owner for a peer", "main", ask("peer", "whatsapp:+492"), "bob bobs-account"},
		{"the owner for a peer by name", "main", ask("peer", "+491"), "alice"},
		{"the owner for a pattern", "main", ask("peer", "%"), ""},
		{"the owner for nobody", "main", ask("peer", ""), "invalid"},
		{"another agent", "agent:other:main", ask("agent", ""), "forbidden"},
	}
	for _, sharing := range []memory.Sharing{memory.SharePeer, memory.ShareAgent} {
		w, r := newRooms(t)
		w.cfg.Sharing = sharing
		w.restart()
		texts := map[string]string{}
		for name, key := range keys {
			texts[key] = "shared planted" + strings.ReplaceAll(name, "-", "")
		}
		w.fill(r, noon, texts)
		for _, row := range rows {
			t.Run(string(sharing)+"/"+row.name, func(t *testing.T) {
				want := []string{}
				for _, name := range strings.Fields(row.want) {
					if key, ok := keys[name]; ok {
						want = append(want, strings.TrimPrefix(string(scope(t, key).Key), "agent:main:"))
					}
				}
				slices.Sort(want)
				r.asked = nil
				got, err := w.Recall(t.Context(), scope(t, row.asker), row.ask)
				if row.want == "invalid" || row.want == "forbidden" {
					if kind := tidemark.Sentinel(err); kind == nil || !strings.Contains(kind.Error(), row.want) {
						t.Errorf("%v, want it to be %s", err, row.want)
					}
					return
				}
				if err != nil || !slices.Equal(found(got), want) || len(r.asked) != len(want) || len(got.Asked) != len(want) || got.Considered != len(want) {
					t.Errorf("found %v, asked %v, %+v, %v; want %v", found(got), r.asked, got, err, want)
				}
				// As an object of a session asks, whatever it says of itself beside its key.
				claim := scope(t, row.asker)
				claim.Owner = true
				far, err := remoteOf(w, w.Peer).Recall(t.Context(), claim, row.ask)
				if err != nil || !slices.Equal(found(far), want) {
					t.Errorf("from afar %v, %v; want %v", found(far), err, want)
				}
			})
		}
	}
	w, r := newRooms(t)
	w.fill(r, noon, map[string]string{"main": "shared"})
	if got, err := w.Recall(t.Context(), tidemark.Scope{Agent: "main", Owner: true}, ask("agent", "")); err != nil || len(got.Asked) != 0 {
		t.Errorf("a scope without a conversation: %+v, %v", got, err)
	}
}

// TestRecallPicks: of many conversations those are asked that may hold the rarest words, at most eight; who
// does not answer is named.
func TestRecallPicks(t *testing.T) {
	w, r := newRooms(t)
	texts := map[string]string{}
	for i := range 40 {
		texts[fmt.Sprintf("s%02d", i)] = "common words of all"
	}
	texts["s17"] += " needlefact_17"
	texts["s18"] += " needlefact_17 haystack"
	w.fill(r, noon.Add(-time.Hour), texts)
	got, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "common needlefact_17 haystack"})
	if err != nil || len(r.asked) != 8 || !slices.Contains(r.asked, "agent:main:local:dm:s17") || string(got.Results[0].Key) != "agent:main:local:dm:s18" || got.Coverage != 1 {
		t.Errorf("%+v, asked %v, %v", got, r.asked, err)
	}
	r.asked = nil
	if got, err = w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "neverspoken"}); err != nil || len(r.asked) != 0 || got.Verdict != recall.Nothing {
		t.Errorf("%+v, asked %v, %v: want nobody to be woken for what no digest holds", got, r.asked, err)
	}
	r.fail["agent:main:local:dm:s18"], r.fail["agent:main:local:dm:s17"] = tidemark.ErrUnavailable, tidemark.ErrNotFound
	got, err = w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "needlefact_17"})
	if err != nil || !slices.Equal(got.Unreached, []tidemark.Key{"agent:main:local:dm:s18"}) || got.Coverage != 0 || len(got.Asked) != 1 {
		t.Errorf("%+v, %v: want the one that failed to be named, and the one that is gone to be no matter", got, err)
	}
	own, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "haystack", Own: "agent:main:local:dm:s18"})
	if err != nil || len(own.Asked) != 0 {
		t.Errorf("%+v, %v: want who asks not to be asked", own, err)
	}
	if _, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: " "}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("no query: %v", err)
	}
	nobody, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "haystack", Scope: recall.ScopePeer, Peer: "nobody"})
	if err != nil || !strings.Contains(nobody.Hint, `no conversation with "nobody"`) {
		t.Errorf("hint %q, %v", nobody.Hint, err)
	}
	for _, vain := range []string{"the of and", "…"} {
		if got, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: vain}); err != nil || got.Verdict != recall.Nothing || got.Hint != recall.NoWords || got.Asked == nil {
			t.Errorf("query %q: %+v, %v", vain, got, err)
		}
	}
}

// TestRecallBehind: a conversation whose digests are missing or behind is asked, too, and has places of its
// own among those that hold the words.
func TestRecallBehind(t *testing.T) {
	w, r := newRooms(t)
	texts := map[string]string{}
	for i := range 12 {
		texts[fmt.Sprintf("s%02d", i)] = "walnut"
	}
	w.fill(r, noon.Add(-time.Hour), texts)
	w.fill(r, noon.Add(-time.Hour), map[string]string{"behind": "oak"})
	behind, never := scope(t, "behind").Key, scope(t, "never").Key
	for _, key := range []tidemark.Key{behind, never} {
		if err := w.Report(t.Context(), tidemark.SessionInfo{Key: key, UpdatedAt: noon.Add(-30 * time.Minute)}, nil); err != nil {
			t.Fatal(err)
		}
		r.texts[key] = "walnut"
	}
	got, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "walnut", K: 50})
	if err != nil || len(got.Results) != 8 || !slices.Contains(r.asked, behind) || !slices.Contains(r.asked, never) {
		t.Errorf("asked %v, %v", r.asked, err)
	}
	w.digests(recall.DigestReport{Key: behind, Head: 2, At: noon, Parts: []recall.DigestPart{digestPart(1, 2, false, "oak and pine")}})
	r.asked = nil
	if _, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "walnut"}); err != nil || slices.Contains(r.asked, behind) || !slices.Contains(r.asked, never) {
		t.Errorf("asked %v, %v: want only the one that has told nothing", r.asked, err)
	}
	// Times: no message of that day is there.
	r.asked = nil
	if _, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: "walnut", Until: noon.Add(-48 * time.Hour)}); err != nil || !slices.Equal(r.asked, []tidemark.Key{never}) {
		t.Errorf("asked %v, %v", r.asked, err)
	}
}

// TestRecallHangs: a session that does not answer in its time is named, the others are there.
func TestRecallHangs(t *testing.T) {
	w, r := newRooms(t)
	w.fill(r, noon, map[string]string{"a": "walnut", "b": "walnut"})
	r.fail["agent:main:local:dm:b"] = tidemark.ErrTimeout
	ctx, cancel := context.WithCancel(t.Context())
	r.hangs = make(chan struct{})
	go func() { // as when the time is over
		<-r.hangs
		cancel()
	}()
	got, err := w.Recall(ctx, scope(t, "main"), recall.Ask{Query: "walnut"})
	if err != nil || !slices.Contains(got.Unreached, "agent:main:local:dm:b") || got.Coverage > 0.5 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDigests: what is told twice, late, out of order or after a loss ends up as if it had been told once.
func TestDigests(t *testing.T) {
	w, _ := newRooms(t)
	const key = tidemark.Key("agent:main:main")
	report := func(head int64, parts ...recall.DigestPart) int64 {
		return w.digests(recall.DigestReport{Key: key, Head: head, At: noon, Parts: parts})
	}
	a, b, open := digestPart(1, 10, true, "a"), digestPart(11, 20, true, "b"), digestPart(21, 25, false, "c")
	for _, row := range []struct {
		name string
		got  int64
		want int64
	}{
		{"nothing is there", report(25), 1},
		{"behind a gap", report(25, b, open), 1},
		{"two and the open one", report(25, a, b, open), 21},
		{"again", report(25, a, b, open), 21},
		{"late", report(25, a), 21},
		{"the open one grew", report(30, digestPart(21, 30, false, "c d")), 21},
		{"and is closed", report(31, digestPart(21, 31, true, "c d e")), 32},
		{"only asked", report(31), 32},
		{"another conversation by the same key", report(5), 1},
		{"is told anew", report(5, digestPart(1, 5, false, "f")), 1},
	} {
		if row.got != row.want {
			t.Errorf("%s: next is %d, want %d", row.name, row.got, row.want)
		}
	}
	for name, r := range map[string]recall.DigestReport{
		"another agent's": {Key: "agent:other:main"},
		"no digest":       {Key: key, Head: 9, Parts: []recall.DigestPart{{First: 1, Last: 2, Digest: []byte("x")}}},
		"too many":        {Key: key, Head: 99, Parts: make([]recall.DigestPart, 17)},
	} {
		if _, err := w.Digests(t.Context(), r); tidemark.Sentinel(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDigestsAreBounded: of a conversation without end a bounded number of parts stays, and none of its words
// is denied.
func TestDigestsAreBounded(t *testing.T) {
	w, r := newRooms(t)
	const key = tidemark.Key("agent:main:local:dm:long")
	r.texts[key] = "x"
	if err := w.Report(t.Context(), tidemark.SessionInfo{Key: key, UpdatedAt: noon.Add(-time.Hour)}, nil); err != nil {
		t.Fatal(err)
	}
	const parts, others = 100, tidemark.Key("agent:main:local:dm:other") // which has parts at the same places
	for i := int64(1); i <= 32; i++ {
		w.digests(recall.DigestReport{Key: others, Head: i, At: noon, Parts: []recall.DigestPart{digestPart(i, i, true, "x")}})
	}
	for i := int64(1); i <= parts; i++ {
		if next := w.digests(recall.DigestReport{Key: key, Head: i, At: noon, Parts: []recall.DigestPart{digestPart(i, i, true, fmt.Sprintf("word_%d", i))}}); next != i+1 {
			t.Fatalf("next is %d behind %d", next, i)
		}
	}
	rows, err := w.db.Query(t.Context(), `SELECT count(*), sum(length(digest)), (SELECT count(*) FROM agent_digests WHERE agent = 'main' AND key = ?) FROM agent_digests WHERE agent = 'main' AND key <> ? LIMIT 1`, string(others), string(others))
	if err != nil || rows[0].Int(0) != 32 || rows[0].Int(2) != 32 || rows[0].Int(1) > 32*100 {
		t.Errorf("%d parts of %d bytes, %v", rows[0].Int(0), rows[0].Int(1), err)
	}
	for i := 1; i <= parts; i++ {
		r.asked = nil
		if _, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: fmt.Sprintf("word_%d", i)}); err != nil || len(r.asked) != 1 {
			t.Fatalf("word_%d: asked %v, %v", i, r.asked, err)
		}
	}
}

// TestSmallestPartsMerge: of too many parts the two neighbours become one that have the fewest terms, wherever they stand, and
// the parts of another conversation stay.
func TestSmallestPartsMerge(t *testing.T) {
	const parts, key, others = 33, tidemark.Key("agent:main:local:dm:long"), tidemark.Key("agent:main:local:dm:other")
	for _, small := range []int64{1, 16, parts - 1} {
		w, _ := newRooms(t)
		for i := int64(1); i < parts; i++ {
			w.digests(recall.DigestReport{Key: others, Head: i, At: noon, Parts: []recall.DigestPart{digestPart(i, i, true, "x")}})
		}
		for i := int64(1); i <= parts; i++ {
			text := "one two three four"
			if i == small || i == small+1 {
				text = "one"
			}
			w.digests(recall.DigestReport{Key: key, Head: i, At: noon, Parts: []recall.DigestPart{digestPart(i, i, true, text)}})
		}
		rows, err := w.db.Query(t.Context(), `SELECT key, first, last FROM agent_digests WHERE agent = 'main' AND last > first LIMIT 9`)
		if err != nil || len(rows) != 1 || rows[0].Text(0) != string(key) || rows[0].Int(1) != small || rows[0].Int(2) != small+1 {
			t.Errorf("the smallest are %d and the next: merged %v, %v", small, rows, err)
		}
	}
}

// TestThere: a conversation that is not in the directory yet is there if its session opens, near or far.
func TestThere(t *testing.T) {
	w, r := newRooms(t)
	fresh, none, listed := scope(t, "fresh").Key, scope(t, "none").Key, scope(t, "listed").Key
	r.texts[fresh] = "walnut"
	w.fill(r, noon, map[string]string{"listed": "walnut"})
	far := &agent.FarSessions{Transport: func(tidemark.Key) http.RoundTripper {
		return handler(func(out http.ResponseWriter, req *http.Request) { agent.AnswerSession(out, req, r) })
	}}
	for name, sessions := range map[string]agent.Sessions{"near": r, "far": far} {
		w.configure(func(c *agent.Config) { c.Sessions = sessions })
		for key, want := range map[tidemark.Key]error{fresh: nil, listed: nil, none: tidemark.ErrNotFound} {
			if err := w.There(t.Context(), key); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v, want %v", name, key, err, want)
			}
		}
	}
}

// pacing counts how often others are let work.
type pacing struct {
	tidemark.Runtime
	rests int
}

func (p *pacing) Sleep(context.Context, time.Duration) error {
	p.rests++
	return nil
}

// TestRecallAmongMany: digests are read page by page with rests between, and the owner is told of conversations
// that were not held against the query; nobody else is.
func TestRecallAmongMany(t *testing.T) {
	const there = 1100
	w := newWorld(t)
	r := &rooms{texts: map[tidemark.Key]string{}}
	rt := &pacing{Runtime: w.clock}
	w.configure(func(c *agent.Config) { c.Sessions, c.Runtime = r, rt })
	for n := range there {
		key := scope(t, fmt.Sprintf("agent:main:whatsapp:dm:p%d", n)).Key
		if err := w.Report(t.Context(), tidemark.SessionInfo{Key: key, UpdatedAt: noon.Add(time.Duration(n) * time.Second)}, nil); err != nil {
			t.Fatal(err)
		}
		for p := range int64(30) {
			if n < there-20 {
				break
			}
			w.digests(recall.DigestReport{Key: key, Head: p + 1, At: noon, Parts: []recall.DigestPart{digestPart(p+1, p+1, true, "boathouse")}})
		}
	}
	for _, asker := range []string{owners, "agent:main:whatsapp:dm:p"} {
		rt.rests = 0
		got, err := w.Recall(t.Context(), scope(t, asker), recall.Ask{Query: "boathouse", Scope: recall.ScopeAgent})
		if err != nil {
			t.Fatal(err)
		}
		// Of those with one peer the count is one of these only.
		if peer, err := w.Recall(t.Context(), scope(t, asker), recall.Ask{Query: "boathouse", Scope: recall.ScopePeer, Peer: "whatsapp:nobody"}); err != nil || peer.Beyond != 0 {
			t.Errorf("%s: %d beyond with a peer, %v", asker, peer.Beyond, err)
		}
		if own := asker == owners; own && (got.Beyond != there-1000 || rt.rests < 20*30/100) || !own && got.Beyond != 0 {
			t.Errorf("%s: %d beyond, %d rests", asker, got.Beyond, rt.rests)
		}
	}
}

// counting is a database that counts who reads digests.
type counting struct {
	tidemark.DB
	reads atomic.Int64
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if strings.Contains(sql, "digest FROM agent_digests WHERE agent = ? AND key IN") {
		c.reads.Add(1)
	}
	return c.DB.Query(ctx, sql, args...)
}

// TestDigestsAreRemembered: a recall in all conversations reads the digests that it has not read before, and what a
// conversation tells holds at once.
func TestDigestsAreRemembered(t *testing.T) {
	w, r := newRooms(t)
	db := &counting{DB: w.db}
	w.cfg.DB = db
	w.restart()
	old := noon.Add(-48 * time.Hour)
	w.fill(r, old, map[string]string{"main": "walnut", "garden": "heron", "attic": "osprey"})
	for i, row := range []struct {
		query string
		reads int64
		asked string
	}{{"heron", 1, "garden"}, {"osprey", 1, "attic"}, {"heron", 1, "garden"}, {"kestrel", 2, "garden"}, {"heron", 2, ""}, {"walnut", 2, "main"}} {
		if row.query == "kestrel" { // it says something else now
			w.fill(r, old, map[string]string{"garden": "kestrel"})
		}
		r.asked = nil
		if _, err := w.Recall(t.Context(), scope(t, "main"), recall.Ask{Query: row.query}); err != nil {
			t.Fatal(err)
		}
		asked := ""
		for _, k := range r.asked {
			asked += k.Peer()
		}
		want := ""
		if row.asked != "" {
			want = scope(t, row.asked).Key.Peer()
		}
		if got := db.reads.Load(); got != row.reads || asked != want || len(r.asked) > 1 {
			t.Errorf("%d: %s: read %d times, want %d; asked %v, want %q", i, row.query, got, row.reads, r.asked, want)
		}
	}
}

package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestBranchWrites: a branch has all that is known of it, is a row, is told of, and begins with the state and the settings of
// its snapshot.
func TestBranchWrites(t *testing.T) {
	r := newRig(t)
	agent := &told{}
	r.agent = agent
	r.kept = room.State{Marks: []room.StateMark{{ID: "p", Pinned: 1}, {ID: "q"}}}
	r.open()
	said := r.talks("one", "two")
	n := r.take(Options{Name: "ground"})
	r.talks("three")
	r.clock.now = r.clock.now.Add(400 * time.Microsecond)
	r.did, agent.nodes = nil, nil
	b, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: n.ID, Name: "Upper floor", Orientation: "go up", Trim: true, Threshold: 77})
	if err != nil {
		t.Fatal(err)
	}
	at := noon.Add(time.Minute + 3*time.Second)
	want := snapshot.Node{ID: "agent:main:main#upper-floor", Kind: "branch", Of: "session", Name: "Upper floor", Session: "agent:main:main#upper-floor", Parent: n.ID, Created: at, Messages: 2, Tokens: 90, Hash: n.Hash, Trimmed: true}
	if room.JSON(b.Node) != room.JSON(want) || b.Key != "agent:main:main#upper-floor" || room.JSON(b.Snapshot) != room.JSON(n) || b.Trim == nil || b.Trim.Before != 700 {
		t.Errorf("branch %+v, want %+v", b, want)
	}
	if want := fmt.Sprint(true, " ", r.seq(said[1]), " ", 1, " ", 77); r.trimmed != want {
		t.Errorf("trimmed by %s, want %s", r.trimmed, want)
	}
	log := r.on(b.Key).current()
	i := tidemark.SessionInfo{Key: b.Key, ID: log, Title: "Upper floor", CreatedAt: at.Add(400 * time.Microsecond), UpdatedAt: at.Add(400 * time.Microsecond), Messages: 2, ContextTokens: 90}
	if len(r.began) != 1 || room.JSON(r.began[0]) != room.JSON(i) || r.from[0].Seq != r.seq(said[1]) || r.from[0].ID != n.ID {
		t.Errorf("began %+v from %+v, want %+v", r.began, r.from, i)
	}
	if got := r.lines(`SELECT (log = ?) || ' ' || key || ' ' || snapshot || ' ' || orientation || ' ' || archived || ' ' || created || ' ' || node FROM branches LIMIT 9`, log); got != fmt.Sprintf("1 %s %s go up %d %d %s", b.Key, n.ID, r.seq(said[1])-1, at.UnixMilli(), room.JSON(b.Node)) {
		t.Errorf("row %s", got)
	}
	if got := r.lines(`SELECT key || ' ' || seq FROM restored LIMIT 9`); got != fmt.Sprint(b.Key, " ", r.seq(said[1])) {
		t.Errorf("restored %q", got)
	}
	if got := r.lines(`SELECT id FROM outbox WHERE id LIKE '%#%' LIMIT 9`); got != fmt.Sprintf("snapshot:%s %s snapshot 0s", b.Key, b.Key) {
		t.Errorf("outbox %q", got)
	}
	if len(agent.nodes) != 2 || agent.nodes[0].ID != n.ID || agent.nodes[1].ID != string(b.Key) || !slices.Equal(r.did, []string{"enter " + string(b.Key) + " true Upper floor", "tell", "alarm"}) {
		t.Errorf("told of %+v, did %q", agent.nodes, r.did)
	}
	r.enter = errDown
	if _, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: n.ID, Name: "late"}); err != nil || !slices.Contains(r.did, "warn report branch: "+errDown.Error()) {
		t.Errorf("a directory that is away: %v, did %q", err, r.did)
	}
}

// TestBranchOverlays: a branch begins with what its trim leaves out, and behind that its orientation, before its first message.
func TestBranchOverlays(t *testing.T) {
	r := newRig(t)
	said := r.talks("one", "two")
	r.overlays = []tidemark.Overlay{{By: []string{"trim"}, Reason: "a"}, {By: []string{"trim"}, Reason: "b"}}
	r.event()
	for _, tc := range []struct {
		name string
		o    BranchOptions
		want []string
	}{
		{"as it is", BranchOptions{Name: "a"}, nil},
		{"trimmed", BranchOptions{Name: "b", Trim: true}, []string{"a", "b"}},
		{"told", BranchOptions{Name: "c", Orientation: "go"}, []string{"branch"}},
		{"both", BranchOptions{Name: "d", Orientation: "go", Trim: true}, []string{"a", "b", "branch"}},
	} {
		b, made := r.branch(tc.o)
		entries, err := r.log.Forward(t.Context(), b.current(), 0, host.LogEnd)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			var o tidemark.Overlay
			if err := json.Unmarshal(e.Payload, &o); err != nil || e.Kind != tidemark.KindOverlay || e.Origin.From != tidemark.FromSystem || !e.At.Equal(r.clock.now) || e.ID.Time().IsZero() {
				t.Errorf("%s: entry %+v, %v", tc.name, e, err)
			}
			if got = append(got, o.Reason); o.Reason == "branch" {
				if len(o.Edits) != 1 || o.Edits[0].From != said[0] || o.Edits[0].To != "" || o.Edits[0].Messages[0].PlainText() != "go" || !slices.Equal(o.By, []string{compaction.OrientationName}) {
					t.Errorf("%s: %+v", tc.name, o)
				}
			}
		}
		if !slices.Equal(got, tc.want) || (made.Trim != nil) != tc.o.Trim || made.Node.Trimmed != tc.o.Trim || made.Node.Tokens != map[bool]tidemark.Tokens{true: 90, false: 700}[tc.o.Trim] {
			t.Errorf("%s: overlays %q, want %q; %+v", tc.name, got, tc.want, made)
		}
	}
	g := &growing{BranchOptions: BranchOptions{Orientation: "go"}, from: room.Place{Log: r.on("agent:main:local:dm:empty").current()}, log: "new", at: noon}
	if _, err := r.room.firstOverlays(t.Context(), g); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "has no message") {
		t.Errorf("an orientation before nothing: %v", err)
	}
}

// TestBranchOptions: what a branch may be called and told.
func TestBranchOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    BranchOptions
		err  error
		says string
	}{
		{"nothing", BranchOptions{}, nil, ""},
		{"as long as may be", BranchOptions{Orientation: strings.Repeat("ö", MaxOrientation)}, nil, ""},
		{"longer", BranchOptions{Orientation: strings.Repeat("ö", MaxOrientation+1)}, tidemark.ErrTooLarge, "orientation: over 8000 characters"},
		{"no text", BranchOptions{Orientation: "a\xff"}, tidemark.ErrInvalid, "orientation: is no UTF-8"},
		{"a name", BranchOptions{Name: "way"}, nil, ""},
		{"no name", BranchOptions{Name: "a/b"}, tidemark.ErrInvalid, "name"},
		{"no threshold", BranchOptions{Threshold: -1}, tidemark.ErrInvalid, ""},
	} {
		if err := tc.o.check(); !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestBranchKeys: a branch has the name that was asked for, or the first that is free, of its own conversation alone.
func TestBranchKeys(t *testing.T) {
	r := newRig(t)
	for _, key := range []string{"agent:main:main#ground", "agent:main:main#ground-3", "agent:main:aunt#ground-2", "agent:main:main#branch", "agent:main:main#groundwork"} {
		r.exec(`INSERT INTO heads(key, log) VALUES(?, 'l')`, key)
	}
	for _, tc := range []struct {
		name, of string // as asked for, and of the snapshot
		label    string
		key      tidemark.Key
	}{
		{"Ground", "other", "Ground", "agent:main:main#ground"}, // as it is: to store it is a conflict
		{"", "Ground", "Ground-2", "agent:main:main#ground-2"},
		{"", "Roof", "Roof", "agent:main:main#roof"},
		{"", "数据", "数据-2", "agent:main:main#branch-2"},
		{"数据", "Roof", "数据", "agent:main:main#branch-2"},
		{"", strings.Repeat("x", 100), strings.Repeat("x", 100), tidemark.Key("agent:main:main#" + strings.Repeat("x", 100))},
	} {
		g := &growing{BranchOptions: BranchOptions{Name: tc.name}, log: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
		g.from.Name = tc.of
		if label, key, err := r.room.freeName(t.Context(), g, false); err != nil || label != tc.label || key != tc.key {
			t.Errorf("%q of %q: %q, %s, %v, want %q, %s", tc.name, tc.of, label, key, err, tc.label, tc.key)
		}
	}
	for _, tc := range []struct{ name, of, label, key string }{
		{"", "Ground", "Ground-q69g5fav", "ground-q69g5fav"}, {"数据", "Roof", "数据", "branch-q69g5fav"}, {"Own", "Roof", "Own", "own"},
	} {
		g := &growing{BranchOptions: BranchOptions{Name: tc.name}, log: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
		g.from.Name = tc.of
		if label, key, err := r.room.freeName(t.Context(), g, true); err != nil || label != tc.label || key != tidemark.Key("agent:main:main#"+tc.key) {
			t.Errorf("%q in a crowd: %q, %s, %v", tc.name, label, key, err)
		}
	}
}

// TestBranchKeysOfMany: ten thousand branches of a name leave no room for one more of it, and are in nobody else's way.
func TestBranchKeysOfMany(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"aa", "zz"} {
		r.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO heads(key, log) SELECT 'agent:main:main#' || ? || n, 'l' FROM i`, maxAlike, name)
	}
	for name, want := range map[string]error{"mm": nil, "aa": tidemark.ErrTooLarge} {
		g := &growing{}
		g.from.Name = name
		if _, key, err := r.room.freeName(t.Context(), g, false); !errors.Is(err, want) || want == nil && key != "agent:main:main#mm" {
			t.Errorf("%s: %s, %v", name, key, err)
		}
	}
}

// TestBranchTries: a name that was asked for is tried once; a free one that others take meanwhile is looked for again, and in the
// end is one that nobody comes to.
func TestBranchTries(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	n := r.take(Options{Name: "ground"})
	r.store.part, r.store.refuse = "INSERT INTO branches", tidemark.ErrConflict
	for _, tc := range []struct {
		name  string
		tries int
		says  string
	}{{"way", 1, `name "way": the session agent:main:main#way is there already: give another name`}, {"", 5, `name "ground-`}, {"数据", 5, "the session agent:main:main#branch-"}} {
		r.store.met = 0
		if _, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: n.ID, Name: tc.name}); !errors.Is(err, tidemark.ErrConflict) || r.store.met != tc.tries || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: %d tries, %v", tc.name, r.store.met, err)
		}
	}
	r.store.refuse, r.store.met = errDown, 0
	if _, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: n.ID}); !errors.Is(err, errDown) || r.store.met != 1 || strings.Contains(err.Error(), "give another name") {
		t.Errorf("another failure: %d tries, %v", r.store.met, err)
	}
	if len(r.did) != 2 { // of the snapshot
		t.Errorf("of none of these anybody was told: %q", r.did)
	}
	r.store.part = ""
	if untold := r.failsAtEach("branch of a snapshot", func(n int) error {
		_, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: r.lines(`SELECT id FROM snapshots WHERE gone = 0 LIMIT 1`), Name: fmt.Sprint("n", n), Orientation: "go"})
		return err
	}); untold != 1 {
		t.Errorf("%d failures are not told, want the one behind the branch", untold)
	}
	if untold := r.failsAtEach("branch of now", func(n int) error {
		_, err := r.room.Branch(t.Context(), BranchOptions{Name: fmt.Sprint("m", n), Trim: true})
		return err
	}); untold != 1 {
		t.Errorf("%d failures are not told, want the one behind the branch", untold)
	}
	if got := r.lines(`SELECT count(*) FROM snapshots LIMIT 1`); got != "3" { // n, of the last but one, of the last
		t.Errorf("%s snapshots are there: those of branches that were not made are left", got)
	}
}

// TestBranchOfRemoved: a branch of a snapshot that is removed while it is made is refused for that.
func TestBranchOfRemoved(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	n := r.take(Options{Name: "ground"})
	from, err := r.room.find(t.Context(), n.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.room.Remove(t.Context(), n.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.room.tryBranch(t.Context(), &growing{from: from}, false); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "it was removed meanwhile") {
		t.Errorf("%v", err)
	}
	if got := r.lines(`SELECT key FROM heads LIMIT 9`); got != string(mine) {
		t.Errorf("sessions %q", got)
	}
}

// TestBranchDepth: a hundred branches of branches are gone on from, and one more is not.
func TestBranchDepth(t *testing.T) {
	r := newRig(t)
	base := r.current()
	for i := range maxDepth + 1 {
		log := fmt.Sprint("deep", i+2)
		r.tx(r.log.CreateStmt(host.Info{ID: log, Key: mine, BaseLog: base, BaseSeq: 1}))
		base = log
	}
	for logs, want := range map[int]error{maxDepth: nil, maxDepth + 1: tidemark.ErrTooLarge} {
		from := room.Place{Log: fmt.Sprint("deep", logs)}
		from.ID = "snap-x"
		if err := r.room.mayContinue(t.Context(), from); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "snapshot snap-x: it is in a branch of 101 others, at most 100") {
			t.Errorf("of %d logs: %v", logs, err)
		}
	}
	r.talks("word")
	n := r.take(Options{})
	r.exec(`UPDATE snapshots SET log = ? WHERE id = ?`, fmt.Sprint("deep", maxDepth+1), n.ID)
	if _, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: n.ID}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("a branch of one too deep: %v", err)
	}
	if _, err := r.on("agent:main:proxy:dm:x").room.Branch(t.Context(), BranchOptions{}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("of a client: %v", err)
	}
}

//go:build !js

package e2e

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// branched is the answer of a branch.
type branched struct {
	Branch   snapshot.Node
	Key      string
	Snapshot snapshot.Node
	Trim     *struct{ LiveTokensBefore, LiveTokensAfter, ToolResultsStubbed int }
}

// on is a client of a branch, with the model of the session that it is of.
func (k *talk) on(key string) *talk { return &talk{k.t, k.s, key, k.model} }

// sent is what the model was sent last, as text.
func (k *talk) sent() string {
	k.t.Helper()
	all := k.model.Calls()
	return same(all[len(all)-1].Messages)
}

// aName is what differs of one target to another in what is told of snapshots.
var aName = regexp.MustCompile(`"(size|pause|first|first_without|penalty|savings|dollars|hitRate|hit_rate|reduction|tokens|contextTokens|[a-zA-Z]*Tokens[a-zA-Z]*|before|after|bytes)":-?[0-9.e-]+`)

// TestSnapshots: a snapshot is taken, two branches go on from it and do not hear each other, are compared, and the
// outcome of one comes back as a note.
func TestSnapshots(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(30_000)
		var b strings.Builder
		tell := func(k *talk, status int, method, path string, body any) {
			t.Helper()
			res, raw := s.fetch(t, method, path, body)
			if res.StatusCode != status {
				t.Errorf("%s %s: %d, want %d: %s", method, path, res.StatusCode, status, raw)
			}
			short := strings.ReplaceAll(path, url.PathEscape(k.key), "KEY")
			fmt.Fprintf(&b, "%s %s\n%d %s\n", method, short, res.StatusCode, aName.ReplaceAllString(raw, `"$1":N`))
		}
		k.model.Push(tidemarktest.Step{Text: "A table, then."})
		k.say("We build a table.")

		snap := ask[snapshot.Node](k, 201, "POST", k.path("/snapshots"), `{"name":"base plan","description":"Before the legs.","tags":["v1"]}`)
		if snap.Name != "base plan" || snap.Messages != 2 || snap.Session != k.key || snap.Kind != snapshot.KindSnapshot || snap.Hash == "" {
			t.Errorf("snapshot %+v", snap)
		}
		left := ask[branched](k, 201, "POST", k.path("/branch"), map[string]any{"snapshot": snap.ID, "name": "left", "orientation": "You explore round legs.", "trim": false})
		if left.Key != k.key+"#left" || left.Snapshot.ID != snap.ID || left.Branch.Parent != snap.ID || left.Trim != nil {
			t.Errorf("branch %+v", left)
		}
		l := k.on(left.Key)
		k.model.Push(tidemarktest.Step{Text: "Round legs are turned."}, tidemarktest.Step{Text: "The table stands."})
		l.say("What of round legs?")
		got := k.sent()
		if at, said := strings.Index(got, "You explore round legs."), strings.Index(got, "We build a table."); at < 0 || said < at {
			t.Errorf("the branch was sent %s", got)
		}
		k.say("Go on as planned.")
		if got := k.sent(); strings.Contains(got, "round") || !strings.Contains(got, "A table, then.") {
			t.Errorf("the session was sent %s", got)
		}
		right := ask[branched](k, 201, "POST", k.path("/branch"), `{"name":"right","of":{"name":"second plan"}}`)
		if right.Trim == nil || right.Snapshot.Name != "second plan" || right.Snapshot.Messages != 4 || !right.Branch.Trimmed {
			t.Errorf("branch %+v", right)
		}
		tell(k, 409, "POST", k.path("/branch"), `{"snapshot":"`+snap.ID+`","name":"left"}`)

		tell(k, 200, "GET", k.path("/snapshots"), nil)
		tell(l, 200, "GET", l.path("/snapshots/"+snap.ID), nil)
		tell(k, 200, "GET", "/v1/compare?a="+url.QueryEscape(left.Key)+"&b="+url.QueryEscape(right.Key), nil)
		tell(k, 200, "GET", "/v1/compare?a="+snap.ID+"&b="+right.Snapshot.ID+"&session="+url.QueryEscape(k.key), nil)

		merge := map[string]string{"from": left.Key}
		tell(k, 201, "POST", k.path("/merge"), merge)
		tell(k, 200, "POST", k.path("/merge"), merge)
		k.model.Push(tidemarktest.Step{Text: "Noted."})
		k.say("What came of it?")
		if got := k.sent(); !strings.Contains(got, "Round legs are turned.") {
			t.Errorf("behind the merge the session was sent %s", got)
		}
		golden(t, "snapshots", snapped(b.String()))
		treeOf(k, left.Key, right.Key, snap.ID)
	})
}

// aSnap is the id of a snapshot.
var aSnap = regexp.MustCompile(`\bsnap-[0-9a-z]{26}\b`)

// snapped numbers the ids of snapshots.
func snapped(text string) string {
	var seen []string
	return aSnap.ReplaceAllStringFunc(text, func(id string) string {
		if !slices.Contains(seen, id) {
			seen = append(seen, id)
		}
		return fmt.Sprintf("SNAP%d", slices.Index(seen, id)+1)
	})
}

// treeOf: the agent hears of them all, page by page; of a snapshot's id alone it knows the session.
func treeOf(k *talk, want ...string) {
	k.t.Helper()
	type page struct {
		Nodes []snapshot.Node
		Next  string
	}
	owner := testName(k.t)
	eventually(k.t, k.s, func() string {
		var ids []string
		cursor := ""
		for range 20 {
			p := ask[page](k, 200, "GET", "/v1/tree?limit=2&agent="+owner+"&cursor="+url.QueryEscape(cursor), nil)
			for _, n := range p.Nodes {
				ids = append(ids, n.ID)
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		for _, id := range want {
			if !slices.Contains(ids, id) {
				return fmt.Sprintf("the tree has %q, not %s", ids, id)
			}
		}
		return ""
	})
	id := want[len(want)-1]
	if n := ask[snapshot.Node](k, 200, "GET", "/v1/snapshots/"+id+"?agent="+owner, nil); n.Session != k.key {
		k.t.Errorf("the agent says %+v", n)
	}
	res, raw := k.s.fetch(k.t, "GET", "/v1/snapshots/"+id+"/archive?agent="+owner, nil)
	if res.StatusCode != 200 || !strings.HasPrefix(raw, "\x1f\x8b") {
		k.t.Errorf("by its id alone: %d %.200s", res.StatusCode, raw)
	}
	if res, raw := k.s.fetch(k.t, "GET", "/v1/compare?agent="+owner+"&a="+id+"&b="+id, nil); res.StatusCode != 200 {
		k.t.Errorf("compared by ids alone: %d %.200s", res.StatusCode, raw)
	}
	if res, raw := k.s.fetch(k.t, "GET", "/v1/snapshots/snap-00000000000000000000000000/archive?agent="+owner, nil); res.StatusCode != 404 || !strings.Contains(raw, "session=KEY") {
		k.t.Errorf("an unknown id: %d %.200s", res.StatusCode, raw)
	}
}

// TestSnapshotCarried: a snapshot goes out as a file and comes in elsewhere, twice as one; what was cut off or is none
// leaves no session behind.
func TestSnapshotCarried(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(30_000)
		k.model.Push(tidemarktest.Step{Text: "Reading.", Calls: []tidemarktest.ToolCall{{ID: "call_1", Name: "recall", Input: `{"query":"harbour"}`}}}, tidemarktest.Step{Text: "Done."}, tidemarktest.Step{Text: "Later."})
		k.say("Where is the harbour? " + strings.Repeat("wave ", 20_000)) // large enough to be put aside
		before := same(k.messages())
		snap := ask[snapshot.Node](k, 201, "POST", k.path("/snapshots"), `{"name":"harbour"}`)
		k.say("And now?")

		path := "/v1/snapshots/" + snap.ID + "/archive?session="
		res, file := s.fetch(t, "GET", path+url.QueryEscape(k.key), nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/gzip" || !strings.Contains(res.Header.Get("Content-Disposition"), snap.ID+".tar.gz") {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		if res, again := s.fetch(t, "GET", k.path("/snapshots/"+snap.ID+"/archive"), nil); res.StatusCode != 200 || again != file {
			t.Errorf("%d, two exports of %d and %d bytes differ", res.StatusCode, len(file), len(again))
		}
		other := at(t, s, strings.Replace(k.key, ":web:", "-elsewhere:web:", 1)) // of another agent: natively another store
		type carried struct {
			Snapshot snapshot.Node
			Key      string
			Messages int
			Again    bool
		}
		changed := []byte(file)
		changed[len(file)/2] ^= 1
		for name, bad := range map[string]string{"cut off": file[:len(file)/2], "no archive": "hello", "nothing": "", "changed": string(changed)} {
			fresh := k.key + "-" + strings.ReplaceAll(name, " ", "-")
			if res, raw := s.fetch(t, "PUT", path+url.QueryEscape(fresh), bad); res.StatusCode != 400 {
				t.Errorf("%s: %d %s", name, res.StatusCode, raw)
			}
		}
		in := ask[carried](k, 201, "PUT", path+url.QueryEscape(other.key), file)
		if in.Key != other.key || in.Again || in.Snapshot.ID != snap.ID || in.Messages != snap.Messages {
			t.Errorf("%+v", in)
		}
		if got := same(other.messages()); got != before {
			t.Errorf("came in as %.500s", got)
		}
		if in := ask[carried](k, 200, "PUT", path+url.QueryEscape(other.key), file); !in.Again || in.Messages != snap.Messages {
			t.Errorf("again %+v", in)
		}
		made := ask[branched](k, 201, "POST", other.path("/branch"), map[string]any{"snapshot": snap.ID, "name": "on", "trim": false})
		if got := same(other.on(made.Key).messages()); !strings.Contains(got, "Where is the harbour?") {
			t.Errorf("a branch of what came in has %.500s", got)
		}
		if res, raw := s.fetch(t, "PUT", "/v1/snapshots/snap-00000000000000000000000000/archive?session="+url.QueryEscape(k.key+"-odd"), file); res.StatusCode != 400 || !strings.Contains(raw, snap.ID) {
			t.Errorf("under another id: %d %s", res.StatusCode, raw)
		}
		if res, raw := s.fetch(t, "PUT", path+url.QueryEscape(k.key), file); res.StatusCode != 409 && res.StatusCode != 200 {
			t.Errorf("over a session in use: %d %s", res.StatusCode, raw)
		}
	})
}

// TestTrimAndCost: what a trimmed branch would weigh is what it then weighs, and what it costs is told at known prices.
func TestTrimAndCost(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(60_000)
		long := strings.Repeat("wave ", 600)
		for i := range 3 {
			k.model.Push(tidemarktest.Step{Text: "Looking.", Calls: []tidemarktest.ToolCall{{ID: fmt.Sprintf("call_%d", i), Name: "recall", Input: `{"query":"harbour"}`}}}, tidemarktest.Step{Text: "Done."})
			k.say("The harbour, " + long)
		}
		type told struct {
			ContextTokens float64
			Price         *struct{ Name, Date, Source string }
			Why           string
			Models        []string
			Next          *struct{ Cached, Uncached, Likely float64 }
			Trim          struct {
				Before, After, Reduction float64
				BreakEven                *float64 `json:"break_even"`
			}
		}
		unknown := ask[told](k, 200, "GET", k.path("/cost"), nil)
		if unknown.Price != nil || unknown.Next != nil || unknown.Why == "" || !slices.Contains(unknown.Models, "opus") || unknown.Trim.Before == 0 {
			t.Errorf("an unknown model: %+v", unknown)
		}
		opus := ask[told](k, 200, "GET", k.path("/cost?model=opus&hitRate=0.9"), nil)
		if opus.Price == nil || opus.Price.Date == "" || opus.Price.Source == "" || opus.Next.Cached <= 0 || opus.Next.Likely <= opus.Next.Cached || opus.Next.Uncached <= opus.Next.Likely ||
			math.Abs(opus.Next.Uncached-opus.ContextTokens*6.25/1e6) > 1e-12 {
			t.Errorf("opus: %+v %+v", opus, opus.Next)
		}
		made := ask[branched](k, 201, "POST", k.path("/trim"), `{"name":"thin","threshold":50}`)
		if made.Key != k.key+"#thin" || made.Trim == nil || !made.Branch.Trimmed || made.Trim.LiveTokensAfter > made.Trim.LiveTokensBefore {
			t.Errorf("%+v", made)
		}
		k.model.Push(tidemarktest.Step{Text: "Thin."})
		k.on(made.Key).say("Go on.")
		sent := k.model.Calls()[len(k.model.Calls())-1].Messages
		if err := tidemark.Check(sent); err != nil {
			t.Error(err)
		}
		if got := same(sent); strings.Count(got, long) != 3 {
			t.Errorf("what was said is there %d times, want 3", strings.Count(got, long))
		}
	})
}

// snapshotRefusals are held over a session that is there and one that is not.
func snapshotRefusals(there, fresh string) []refusal {
	return []refusal{
		{"snapshot of nothing", "POST", fresh + "/snapshots", `{"name":"a"}`, nil},
		{"snapshot with markup", "POST", there + "/snapshots", `{"name":"<b>"}`, nil},
		{"snapshot with a long name", "POST", there + "/snapshots", `{"name":"` + strings.Repeat("n", 101) + `"}`, nil},
		{"snapshot, long description", "POST", there + "/snapshots", `{"description":"` + strings.Repeat("d", 2001) + `"}`, nil},
		{"snapshot, unknown field", "POST", there + "/snapshots", `{"naam":"a"}`, nil},
		{"snapshot, no such message", "POST", there + "/snapshots", `{"at":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}`, nil},
		{"snapshots of nothing", "GET", fresh + "/snapshots", "", nil},
		{"no such snapshot", "GET", there + "/snapshots/snap-00000000000000000000000000", "", nil},
		{"archive of no such snapshot", "GET", there + "/snapshots/snap-00000000000000000000000000/archive", "", nil},
		{"archive of no id", "GET", "/v1/snapshots/x/archive", "", nil},
		{"archive into no key", "PUT", "/v1/snapshots/snap-00000000000000000000000000/archive?session=a:b", "x", nil},
		{"removal of no such snapshot", "DELETE", there + "/snapshots/snap-00000000000000000000000000", "", nil},
		{"snapshots in no order", "GET", there + "/snapshots?order=x", "", nil},
		{"branch of nothing", "POST", fresh + "/branch", `{}`, nil},
		{"branch of no such snapshot", "POST", there + "/branch", `{"snapshot":"snap-00000000000000000000000000"}`, nil},
		{"branch with a name that is none", "POST", there + "/branch", `{"name":"a/b"}`, nil},
		{"branch, long orientation", "POST", there + "/branch", `{"orientation":"` + strings.Repeat("o", 8001) + `"}`, nil},
		{"branch of a snapshot that is also described", "POST", there + "/branch", `{"snapshot":"snap-00000000000000000000000000","of":{"name":"a"}}`, nil},
		{"branch, a negative threshold", "POST", there + "/branch", `{"threshold":-1}`, nil},
		{"branch, a threshold in words", "POST", there + "/branch", `{"threshold":"500"}`, nil},
		{"trim that is none", "POST", there + "/trim", `{"trim":false}`, nil},
		{"merge of nothing", "POST", there + "/merge", `{}`, nil},
		{"merge of another conversation", "POST", there + "/merge", `{"from":"agent:main:main#x"}`, nil},
		{"merge, long note", "POST", there + "/merge", `{"from":"agent:main:main#x","note":"` + strings.Repeat("n", 8001) + `"}`, nil},
		{"compare one", "GET", "/v1/compare?a=agent%3Amain%3Amain", "", nil},
		{"compare what is none", "GET", "/v1/compare?a=a:b&b=c", "", nil},
		{"tree, no such agent", "GET", "/v1/tree?agent=nobody", "", nil},
		{"tree, cursor", "GET", "/v1/tree?cursor=x", "", nil},
		{"cost of nothing", "GET", fresh + "/cost", "", nil},
		{"cost, no such model", "GET", there + "/cost?model=nobody", "", nil},
		{"cost, hit rate", "GET", there + "/cost?hitRate=2", "", nil},
	}
}

// TestSnapshotErrors: what is refused is refused with the same words on every target, and leaves nothing.
func TestSnapshotErrors(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.say("Something is here.")
		fresh := "/v1/sessions/" + url.PathEscape(k.key+"-fresh")
		var b strings.Builder
		for _, row := range snapshotRefusals(k.path(""), fresh) {
			res, raw := s.fetch(t, row.method, row.path, row.body, row.headers...)
			fmt.Fprintf(&b, "%s: %d %s", row.name, res.StatusCode, raw)
		}
		golden(t, "snapshot-errors", snapped(b.String()))
		if raw := k.text(k.path("/snapshots")); raw != "{\"nodes\":[]}\n" {
			t.Errorf("what was refused left %s", raw)
		}
		if res, raw := s.fetch(t, "GET", fresh, nil); res.StatusCode != 404 {
			t.Errorf("what was refused made a session: %s", raw)
		}
	})
}

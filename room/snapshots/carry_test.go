package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

const there tidemark.Key = "agent:main:local:dm:there"

// house is a conversation with a snapshot, a branch of it and a snapshot of that, of four messages in seven entries, one of
// which has a large block.
func house(t *testing.T) (r, upper *rig, ground, roof snapshot.Node) {
	t.Helper()
	r = newRig(t)
	r.kept = room.State{Version: 3}
	text := "large"
	sum := string(tidemark.HashOf([]byte(text)))
	r.blobs[sum] = text
	r.talks("one", "blob "+sum)
	r.event()
	ground = r.take(Options{Name: "ground", Tags: []string{"x"}})
	r.talks("said later", "below")
	upper, _ = r.branch(BranchOptions{Snapshot: ground.ID, Name: "upper", Orientation: "look up"})
	upper.kept = room.State{Version: 5}
	upper.talks("three")
	upper.says(tidemark.NewText(tidemark.Assistant, "four"), tidemark.FromModel, &tidemark.Call{Model: "m", Usage: tidemark.Usage{Input: 5}})
	upper.event()
	return r, upper, ground, upper.take(Options{Name: "roof", Description: "of the house"})
}

func (r *rig) export(id string) []byte {
	r.Helper()
	var b bytes.Buffer
	if err := r.carry.Export(r.Context(), id, &b); err != nil {
		r.Fatal(err)
	}
	return b.Bytes()
}

func (r *rig) imports(raw []byte) (Carried, error) {
	return r.carry.Import(r.Context(), "", bytes.NewReader(raw))
}

// opened reads an archive.
func opened(t *testing.T, raw []byte) (m snapshot.Manifest, blobs []string, lines []carriedEntry) {
	t.Helper()
	in, err := snapshot.NewReader(bytes.NewReader(raw), snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		member, err := in.Next()
		if errors.Is(err, io.EOF) {
			return in.Manifest(), blobs, lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if member.Kind == snapshot.MemberBlob {
			text, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			blobs = append(blobs, string(text))
			continue
		}
		for line, err := range in.Lines(carryLine) {
			var e carriedEntry
			if err = errors.Join(err, json.Unmarshal(bytes.Clone(line), &e)); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, e)
		}
	}
}

// packed writes one, with other members of a kind that no version knows behind the lines.
func packed(t *testing.T, m snapshot.Manifest, blobs []string, lines []carriedEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := snapshot.NewWriter(&out, m)
	for _, text := range blobs {
		if err == nil {
			err = w.Blob(tidemark.HashOf([]byte(text)), int64(len(text)), strings.NewReader(text))
		}
	}
	for _, e := range lines {
		if err == nil {
			err = w.Line(carryStream, []byte(room.JSON(e)))
		}
	}
	if err == nil {
		err = w.Line("later", []byte(`{"of":"a later version"}`))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// changed is an archive with something changed of it.
func changed(t *testing.T, raw []byte, change func(m *snapshot.Manifest, blobs *[]string, lines *[]carriedEntry)) []byte {
	t.Helper()
	m, blobs, lines := opened(t, raw)
	change(&m, &blobs, &lines)
	return packed(t, m, blobs, lines)
}

// TestExport: an archive has the history through all that it continues, oldest first, the large blocks, and what is known of
// the snapshots before it.
func TestExport(t *testing.T) {
	r, upper, ground, roof := house(t)
	r.exec(`INSERT INTO snapshots(id, root, log, seq, parent, created, node) SELECT id, 'agent:main:aunt', 'elsewhere', 1, parent, created, '{"name":"theirs"}' FROM snapshots WHERE id = ?`, ground.ID)
	m, blobs, lines := opened(t, r.export(roof.ID))
	if m.Kind != "session" || !m.Created.Equal(roof.Created) || room.JSON(m.Node) != room.JSON(roof) || len(m.Lineage) != 1 || room.JSON(m.Lineage[0]) != room.JSON(ground) {
		t.Errorf("manifest %+v", m)
	}
	var want []tidemark.Entry
	for e, err := range r.log.Walk(t.Context(), upper.current(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	slices.Reverse(want)
	if len(lines) != 7 || len(want) != 7 || !slices.Equal(blobs, []string{"large"}) {
		t.Fatalf("%d lines of %d entries, blobs %q", len(lines), len(want), blobs)
	}
	for i, e := range want {
		line := carriedEntry{ID: e.ID, Kind: e.Kind, At: e.At.UnixMilli(), Origin: e.Origin, Call: e.Call, Chain: e.Chain, Payload: e.Payload}
		if room.JSON(lines[i]) != room.JSON(line) {
			t.Errorf("line %d is %s, want %s", i, room.JSON(lines[i]), room.JSON(line))
		}
	}
	if got := string(m.More); got != fmt.Sprintf(`{"title":"roof","kept":{"version":5},"places":[{"id":"%s","entry":"%s"}]}`, ground.ID, want[2].ID) {
		t.Errorf("more %s", got)
	}
	r.exec(`DELETE FROM snapshots WHERE id = ? AND root = ?`, ground.ID, string(mine)) // in a log that conversations share it may be of another alone
	r.exec(`UPDATE snapshots SET log = ?, seq = 1 WHERE id = ?`, r.current(), ground.ID)
	if list, places, err := upper.carry.ancestors(t.Context(), room.Place{Log: upper.current()}); err != nil || len(list) != 1 || list[0].Name != "theirs" || places[0].Entry != want[0].ID {
		t.Errorf("ancestors %+v at %+v, %v", list, places, err)
	}
	if err := r.carry.Export(t.Context(), "snap-none", &bytes.Buffer{}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
}

// TestExportFails: a store that fails is told at each step, and so is a block that is gone.
func TestExportFails(t *testing.T) {
	r, _, _, roof := house(t)
	if untold := r.failsAtEach("export", func(int) error { return r.carry.Export(t.Context(), roof.ID, &bytes.Buffer{}) }); untold > 0 {
		t.Errorf("%d failures are not told", untold)
	}
	for sum := range r.blobs {
		r.blobs[sum] = "damaged"
	}
	if err := r.carry.Export(t.Context(), roof.ID, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "entry 01") {
		t.Errorf("a damaged block: %v", err)
	}
}

// TestImportWrites: an archive gives another store the same entries and the same snapshots, in a session that goes on from them.
func TestImportWrites(t *testing.T) {
	r, upper, ground, roof := house(t)
	raw := r.export(roof.ID)
	d := newRig(t)
	agent := &told{}
	d.agent = agent
	d.on("agent:main:aunt").talks("of another")
	x := d.on(there)
	x.clock.now = noon.Add(time.Hour)
	got, err := x.imports(raw)
	if err != nil {
		t.Fatal(err)
	}
	node := roof
	node.Session = string(there)
	if room.JSON(got) != room.JSON(Carried{Node: node, Key: there, Messages: 4}) {
		t.Errorf("carried %+v", got)
	}
	if want := (tidemark.SessionInfo{Key: there, ID: x.current(), Title: "roof", CreatedAt: x.clock.now, UpdatedAt: x.clock.now, Messages: 4, ContextTokens: 700}); len(x.moved) != 1 || room.JSON(x.moved[0]) != room.JSON(want) {
		t.Errorf("moved to %+v, want %+v", x.moved, want)
	}
	var before, after []string
	for of, from := range map[*rig]string{upper: upper.current(), x: x.current()} {
		var list []string
		for e, err := range of.log.Walk(t.Context(), from, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == tidemark.KindMessage && of == x {
				if m, err := e.Message(); err != nil || e.Tokens != tidemark.Estimate(m) {
					t.Errorf("%s has %d tokens, %v", e.ID, e.Tokens, err)
				}
			}
			list = append(list, fmt.Sprint(e.ID, e.Kind, e.At.UnixMilli(), e.Origin, room.JSON(e.Call), e.Chain, string(e.Payload)))
		}
		if of == x {
			after = list
		} else {
			before = list
		}
	}
	if !slices.Equal(after, before) || len(after) != 7 {
		t.Errorf("it has\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	_, _, lines := opened(t, raw)
	if got, want := x.lines(`SELECT id || ' ' || (log = ?) || ' ' || seq || ' ' || parent || ' ' || (node ->> 'session') || ' ' || state FROM snapshots WHERE root = ? ORDER BY created LIMIT 9`, x.from[0].Log, string(there)),
		fmt.Sprintf("%s 1 %d  %s {}\n%s 1 %d %s %s {\"version\":5}", ground.ID, x.seq(lines[2].ID), there, roof.ID, x.seq(lines[6].ID), ground.ID, there); got != want {
		t.Errorf("snapshots\n%s\nwant\n%s", got, want)
	}
	if got := x.lines(`SELECT (log = ?) || ' ' || key || ' ' || snapshot || ' ' || created || ' ' || node FROM branches LIMIT 9`, x.current()); got != fmt.Sprintf("1 %s %s %d ", there, roof.ID, x.clock.now.UnixMilli()) {
		t.Errorf("it goes on from %s", got)
	}
	if got := x.lines(`SELECT count(*) || ' ' || (SELECT count(*) FROM due) || ' ' || (SELECT key FROM restored) FROM logs WHERE key LIKE 'import:%' LIMIT 1`); got != "0 0 "+string(there) {
		t.Errorf("logs of imports, what is due, and whose state is restored: %s", got)
	}
	if len(agent.nodes) != 1 || agent.nodes[0].ID != roof.ID || !slices.Equal(x.did, []string{"tell", "alarm"}) || x.blobs[string(tidemark.HashOf([]byte("large")))] != "large" {
		t.Errorf("told of %+v, did %q, blobs %q", agent.nodes, x.did, x.blobs)
	}
	if got := x.lines(`SELECT count(*) FROM outbox WHERE id LIKE 'snapshot:snap-%' LIMIT 1`); got != "2" {
		t.Errorf("%s snapshots are to be told", got)
	}
	again, err := x.imports(raw)
	if want := (Carried{Node: node, Key: there, Messages: 4, Again: true}); err != nil || room.JSON(again) != room.JSON(want) {
		t.Errorf("again %+v, %v", again, err)
	}
	if _, err := x.imports(raw[:len(raw)-30]); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("again, cut off: %v", err)
	}
}

// TestImportHome: an archive that comes back stores nothing twice, its snapshots are where they were, and what was said since
// in their sessions stays theirs.
func TestImportHome(t *testing.T) {
	r, upper, ground, roof := house(t)
	upper.talks("since")
	raw := r.export(roof.ID)
	entries := r.lines(`SELECT id FROM entries ORDER BY seq LIMIT 99`)
	x := r.on(there)
	if _, err := x.imports(raw); err != nil {
		t.Fatal(err)
	}
	if got := r.lines(`SELECT id FROM entries ORDER BY seq LIMIT 99`); got != entries {
		t.Errorf("entries\n%s\nwant\n%s", got, entries)
	}
	const places = `SELECT id || log || seq FROM snapshots WHERE root = ? ORDER BY id LIMIT 9`
	if got, want := x.lines(places, string(there)), r.lines(places, string(mine)); got != want {
		t.Errorf("%s and %s are at\n%s\nwant\n%s", ground.Name, roof.Name, got, want)
	}
	if got := r.lines(`SELECT key FROM logs ORDER BY key LIMIT 9`); got != strings.Join([]string{string(there), string(there), string(mine), string(mine) + "#upper"}, "\n") {
		t.Errorf("logs of\n%s", got)
	}
	if len(x.writes) != 1 || x.writes[0] != 0 || x.from[0].Log != upper.current() {
		t.Errorf("writes %v, from %+v", x.writes, x.from)
	}
}

// TestImportPages: entries are written so many, or so many bytes, at a time, and others have a turn between.
func TestImportPages(t *testing.T) {
	for _, tc := range []struct {
		messages, bytes int
		want            []int
	}{{64, 1, []int{64}}, {65, 1, []int{64, 1}}, {130, 1, []int{64, 64, 2}}, {9, 100_000, []int{6, 3}}} {
		r := newRig(t)
		for range tc.messages {
			r.says(tidemark.NewText(tidemark.User, strings.Repeat("x", tc.bytes)), tidemark.FromPerson, nil)
		}
		raw := r.export(r.take(Options{}).ID)
		x := newRig(t).on(there)
		if _, err := x.imports(raw); err != nil || !slices.Equal(x.writes, tc.want) || len(x.clock.slept) != len(tc.want) {
			t.Errorf("%d messages of %d bytes: %v, %v, %d pauses, want %v", tc.messages, tc.bytes, x.writes, err, len(x.clock.slept), tc.want)
		}
		if got := x.lines(`SELECT count(*) FROM entries LIMIT 1`); got != fmt.Sprint(tc.messages) {
			t.Errorf("%s entries of %d", got, tc.messages)
		}
	}
}

// TestImportStoresBlocks: what this store keeps of a message in a table is written with its entry.
func TestImportStoresBlocks(t *testing.T) {
	r := newRig(t)
	r.talks("one", "kept")
	raw := r.export(r.take(Options{}).ID)
	x := newRig(t).on(there)
	if _, err := x.imports(raw); err != nil || x.lines(`SELECT count(*) FROM restored WHERE key = ? LIMIT 1`, "kept") != "1" {
		t.Errorf("%v, kept %s", err, x.lines(`SELECT key FROM restored LIMIT 9`))
	}
	if got := x.lines(`SELECT payload FROM entries WHERE role = 'assistant' LIMIT 9`); !strings.Contains(got, "kept elsewhere") {
		t.Errorf("an entry has %s", got)
	}
}

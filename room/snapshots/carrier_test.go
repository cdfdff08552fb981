package snapshots

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestCarriedEntry: what no log has is refused.
func TestCarriedEntry(t *testing.T) {
	const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	long := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, tc := range []struct {
		name string
		e    carriedEntry
		err  error
		says string
	}{
		{"a message", carriedEntry{ID: id, Kind: tidemark.KindMessage}, nil, ""},
		{"an overlay", carriedEntry{ID: id, Kind: tidemark.KindOverlay}, nil, ""},
		{"an event", carriedEntry{ID: id, Kind: tidemark.KindEvent}, nil, ""},
		{"no id", carriedEntry{Kind: tidemark.KindMessage}, tidemark.ErrInvalid, "it is no id of an entry"},
		{"an id that tells no time", carriedEntry{ID: "x", Kind: tidemark.KindMessage}, tidemark.ErrInvalid, "it is no id of an entry"},
		{"a long id", carriedEntry{ID: tidemark.EntryID(strings.Repeat("0", 101)), Kind: tidemark.KindMessage}, tidemark.ErrInvalid, "it is no id of an entry"},
		{"another kind", carriedEntry{ID: id, Kind: "x"}, tidemark.ErrInvalid, `kind "x" is not known`},
		{"an event that fits", carriedEntry{ID: id, Kind: tidemark.KindEvent, Payload: long(tidemark.MaxRow)}, nil, ""},
		{"one that does not", carriedEntry{ID: id, Kind: tidemark.KindEvent, Payload: long(tidemark.MaxRow + 1)}, tidemark.ErrTooLarge, "1900001 bytes, at most 1900000"},
		{"a message whose large parts come out", carriedEntry{ID: id, Kind: tidemark.KindMessage, Payload: long(tidemark.MaxRow + 1)}, nil, ""},
	} {
		if err := tc.e.check(); !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestImportTampered: an archive that was changed is refused, with the reason, and nothing of it is left; the right one can be
// read behind it.
func TestImportTampered(t *testing.T) {
	r, _, _, roof := house(t)
	raw := r.export(roof.ID)
	payload := func(i int, text string) func(*snapshot.Manifest, *[]string, *[]carriedEntry) {
		return func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) { (*lines)[i].Payload = []byte(text) }
	}
	for _, tc := range []struct {
		name   string
		change func(m *snapshot.Manifest, blobs *[]string, lines *[]carriedEntry)
		err    error
		says   string
	}{
		{"a word", payload(0, `{"role":"user","content":"other"}`), tidemark.ErrInvalid, "it is not what its chain says"},
		{"no message", payload(0, `5`), tidemark.ErrInvalid, "entry "},
		{"one less", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) { *lines = (*lines)[1:] }, tidemark.ErrInvalid, "it is not what its chain says"},
		{"one less at the end", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) { *lines = (*lines)[:5] }, tidemark.ErrInvalid, "its 3 messages are not the 4 that its manifest tells of"},
		{"another hash", func(m *snapshot.Manifest, _ *[]string, _ *[]carriedEntry) { m.Node.Hash = tidemark.HashOf(nil) }, tidemark.ErrInvalid, "its 4 messages are not the 4"},
		{"another count", func(m *snapshot.Manifest, _ *[]string, _ *[]carriedEntry) { m.Node.Messages = 5 }, tidemark.ErrInvalid, "its 4 messages are not the 5"},
		{"nothing", func(m *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) {
			m.Node.Messages, m.Node.Hash, *lines = 0, "", nil
		}, tidemark.ErrInvalid, "it has no messages"},
		{"no block", func(_ *snapshot.Manifest, blobs *[]string, _ *[]carriedEntry) { *blobs = nil }, tidemark.ErrInvalid, "is not there"},
		{"another kind", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) { (*lines)[2].Kind = "x" }, tidemark.ErrInvalid, "is not known"},
		{"a large block", func(_ *snapshot.Manifest, blobs *[]string, _ *[]carriedEntry) {
			*blobs = append(*blobs, strings.Repeat("b", 1001))
		}, tidemark.ErrTooLarge, "1001 bytes, at most 1000"},
		{"a block as large as may be", func(_ *snapshot.Manifest, blobs *[]string, _ *[]carriedEntry) {
			*blobs = append(*blobs, strings.Repeat("b", 1000))
		}, nil, ""},
		{"more that is none", func(m *snapshot.Manifest, _ *[]string, _ *[]carriedEntry) { m.More = []byte(`5`) }, tidemark.ErrInvalid, "manifest.json: more"},
		{"no more", func(m *snapshot.Manifest, _ *[]string, _ *[]carriedEntry) { m.More = nil }, nil, ""},
		{"of a branch", func(m *snapshot.Manifest, _ *[]string, _ *[]carriedEntry) { m.Node.Kind = snapshot.KindBranch }, tidemark.ErrInvalid, "want that of a snapshot of a session"},
		{"an ancestor that is a branch", func(m *snapshot.Manifest, _ *[]string, _ *[]carriedEntry) { m.Lineage[0].Kind = snapshot.KindBranch }, nil, ""},
	} {
		x := newRig(t).on(there)
		if _, err := x.imports(changed(t, raw, tc.change)); !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.err == nil {
			if got := x.lines(`SELECT count(*) FROM snapshots LIMIT 1`); got != map[bool]string{true: "2", false: "1"}[tc.name == "a block as large as may be"] {
				t.Errorf("%s: %s snapshots", tc.name, got)
			}
			continue
		}
		if got := x.lines(`SELECT (SELECT count(*) FROM entries) || ' ' || (SELECT count(*) FROM logs) || ' ' || (SELECT count(*) FROM due) LIMIT 1`); got != "0 2 0" {
			t.Errorf("%s: entries, logs and what is due: %s", tc.name, got)
		}
		if _, err := x.imports(raw); err != nil {
			t.Errorf("%s, and the right one behind it: %v", tc.name, err)
		}
	}
}

// TestImportBesideOthers: where this store has some of the entries, they must be the same ones in the same order, and nothing may
// stand between them.
func TestImportBesideOthers(t *testing.T) {
	swap := func(i, j int) func(*snapshot.Manifest, *[]string, *[]carriedEntry) {
		return func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) {
			(*lines)[i], (*lines)[j] = (*lines)[j], (*lines)[i]
		}
	}
	const another = "this store has another one of that name"
	for _, tc := range []struct {
		name   string
		change func(m *snapshot.Manifest, blobs *[]string, lines *[]carriedEntry)
		says   string
	}{
		{"another event", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) {
			(*lines)[2].Payload = []byte(`{"type":"y"}`)
		}, another},
		{"an overlay in the place of an event", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) {
			(*lines)[2].Kind = tidemark.KindOverlay
		}, another},
		{"an event in the place of a message", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) {
			(*lines)[0].Kind = tidemark.KindEvent
		}, another},
		{"another order", swap(1, 2), another},
		{"the same twice", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) { *lines = append(*lines, (*lines)[6]) }, another},
		{"an event less", func(_ *snapshot.Manifest, _ *[]string, lines *[]carriedEntry) {
			*lines = append((*lines)[:2:2], (*lines)[3:]...)
		}, "it has 6 entries, and this store 7 of the same history"},
	} {
		r, _, _, roof := house(t)
		raw := r.export(roof.ID)
		entries := r.lines(`SELECT id FROM entries ORDER BY seq LIMIT 99`)
		x := r.on(there)
		if _, err := x.imports(changed(t, raw, tc.change)); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := r.lines(`SELECT id FROM entries ORDER BY seq LIMIT 99`); got != entries {
			t.Errorf("%s: it changed the store", tc.name)
		}
		if _, err := x.imports(raw); err != nil {
			t.Errorf("%s, and the right one behind it: %v", tc.name, err)
		}
	}
	r, _, _, roof := house(t)
	_, _, lines := opened(t, r.export(roof.ID))
	raw := r.export(roof.ID)
	r.exec(`DELETE FROM entries WHERE id = ?`, string(lines[0].ID))
	x := r.on(there)
	if _, err := x.imports(raw); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "but not what stands before it") {
		t.Errorf("the middle without its beginning: %v", err)
	}
	if got := x.lines(`SELECT count(*) FROM logs WHERE key LIKE 'import:%' LIMIT 1`); got != "0" {
		t.Errorf("%s logs are left of it", got)
	}
}

// TestImportShowsNothing: an archive whose edits no view can have is refused; a store that cannot tell is a failure like others.
func TestImportShowsNothing(t *testing.T) {
	r, _, _, roof := house(t)
	raw := r.export(roof.ID)
	for unfit, refused := range map[error]bool{tidemark.ErrNotFound: true, tidemark.ErrInvalid: true, tidemark.ErrUnavailable: false} {
		x := newRig(t).on(there)
		x.unfit = unfit
		if _, err := x.imports(raw); !errors.Is(err, unfit) || errors.Is(err, tidemark.ErrInvalid) != refused || strings.Contains(err.Error(), "what it shows is no conversation") != refused {
			t.Errorf("%v: %v", unfit, err)
		}
		if got := x.lines(`SELECT count(*) FROM logs WHERE key LIKE 'import:%' LIMIT 1`); got != map[bool]string{true: "0", false: "1"}[refused] {
			t.Errorf("%v: %s logs are left", unfit, got)
		}
		if len(x.weighed) != 1 || !strings.HasSuffix(x.weighed[0], " true") {
			t.Errorf("weighed %q", x.weighed)
		}
	}
}

// TestImportInto: an archive is read into an empty session of its own alone.
func TestImportInto(t *testing.T) {
	r, upper, ground, roof := house(t)
	raw := r.export(roof.ID)
	full, counted, empty := r.on("agent:main:local:dm:full"), r.on("agent:main:local:dm:counted"), r.on("agent:main:local:dm:empty")
	full.event()
	r.exec(`UPDATE heads SET messages = 1 WHERE key = ?`, string(counted.key))
	based := r.on("agent:main:local:dm:based")
	r.exec(`UPDATE logs SET base_log = ?, base_seq = 1 WHERE id = ?`, r.current(), based.current())
	for _, tc := range []struct {
		name string
		into *rig
		id   string
		err  error
		says string
	}{
		{"something was done there", full, "", tidemark.ErrConflict, "has messages already"},
		{"it counts messages", counted, "", tidemark.ErrConflict, "has messages already"},
		{"it goes on from others", based, "", tidemark.ErrConflict, "has messages already"},
		{"a branch", upper, "", tidemark.ErrInvalid, "what is behind # is a branch of agent:main:main"},
		{"a client's", r.on("agent:main:proxy:dm:x"), "", tidemark.ErrInvalid, "its client keeps the history itself"},
		{"another snapshot", empty, ground.ID, tidemark.ErrInvalid, "the archive is of snapshot " + roof.ID + ", not of " + ground.ID},
		{"an empty one", empty, roof.ID, nil, ""},
	} {
		if _, err := tc.into.carry.Import(t.Context(), tc.id, bytes.NewReader(raw)); !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	for _, tc := range []struct {
		name string
		raw  []byte
		id   string
		head bool
		err  error
	}{
		{"whole", raw, roof.ID, false, nil}, {"of any", raw, "", false, nil}, {"of another", raw, ground.ID, false, tidemark.ErrInvalid}, {"the head of another", raw, ground.ID, true, tidemark.ErrInvalid},
		{"cut off", raw[:len(raw)-30], roof.ID, false, tidemark.ErrInvalid}, {"the head of one that is cut off", raw[:len(raw)-30], roof.ID, true, nil}, {"none", []byte("hello"), "", true, tidemark.ErrInvalid},
	} {
		if err := CheckArchive(bytes.NewReader(tc.raw), tc.id, tc.head); !errors.Is(err, tc.err) {
			t.Errorf("checked, %s: %v", tc.name, err)
		}
	}
}

// TestImportFails: a store that fails is told at each step, and the archive can be read again.
func TestImportFails(t *testing.T) {
	r, _, _, roof := house(t)
	raw := r.export(roof.ID)
	x := newRig(t).on(there)
	if untold := x.failsAtEach("import", func(int) error { _, err := x.imports(raw); return err }); untold > 0 {
		t.Errorf("%d failures are not told", untold)
	}
	if got := x.lines(`SELECT (SELECT count(*) FROM entries) || ' ' || (SELECT count(*) FROM snapshots) || ' ' || (SELECT count(*) FROM logs WHERE key LIKE 'import:%') || ' ' || (SELECT count(*) FROM due) LIMIT 1`); got != "7 2 0 0" {
		t.Errorf("entries, snapshots, logs of imports and what is due: %s", got)
	}
}

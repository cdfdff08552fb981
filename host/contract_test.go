package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// logBase says what a log continues; the zero value is none.
type logBase struct {
	Log string
	Seq int64 // up to and including this entry
}

// TestLogContract checks that host.Log obeys the contract of [tidemark.Log]. How a log comes to be is not part of that
// contract: a host makes it together with rows of its own.
func TestLogContract(t *testing.T) {
	for name, test := range map[string]func(*testing.T, logs){
		"Fields":     logFields,
		"Payloads":   logPayloads,
		"Order":      logOrder,
		"Walk":       logWalk,
		"Duplicates": logDuplicates,
		"BadPayload": logBadPayload,
		"Branches":   logBranches,
		"Refs":       logRefs,
		"RefRace":    logRefRace,
		"Many":       logMany,
		"Cancelled":  logCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t)
			test(t, logs{l, func(id string, base logBase) {
				t.Helper()
				create(t, l, host.Info{ID: id, Key: "agent:main:main", BaseLog: base.Log, BaseSeq: base.Seq})
			}})
		})
	}
}

// logs is a store under test.
type logs struct {
	tidemark.Log
	create func(id string, base logBase)
}

// at is when the entries of the contract were made; logs keep milliseconds.
var at = time.UnixMilli(1_800_000_000_123)

// line returns a message entry.
func line(id, text string) tidemark.Entry {
	return tidemark.Entry{ID: tidemark.EntryID(id), Kind: tidemark.KindMessage, At: at, Payload: tidemark.NewText(tidemark.User, text).AppendJSON(nil)}
}

func (l logs) append(t *testing.T, log string, entries ...tidemark.Entry) []tidemark.Entry {
	t.Helper()
	if err := l.Append(t.Context(), log, entries...); err != nil {
		t.Fatalf("append to %s: %v", log, err)
	}
	return entries
}

// ids walks a log and returns the ids it sees, newest first.
func (l logs) ids(t *testing.T, log string, seq int64) string {
	t.Helper()
	var out []string
	last := int64(1) << 60
	for e, err := range l.Walk(t.Context(), log, seq) {
		if err != nil {
			t.Fatalf("walk %s: %v", log, err)
		}
		if e.Seq >= last || e.Seq <= 0 {
			t.Fatalf("walk %s: entry %s at %d comes after one at %d", log, e.ID, e.Seq, last)
		}
		last = e.Seq
		out = append(out, string(e.ID))
	}
	return strings.Join(out, " ")
}

// logFields: what was appended is what is read, and append fills what the log gives.
func logFields(t *testing.T, l logs) {
	l.create("log", logBase{})
	want := []tidemark.Entry{
		line("bare", "no more than it must have"),
		{ID: "full", Kind: tidemark.KindMessage, At: at.Add(time.Second), Tokens: 77, Chain: tidemark.Chain("", tidemark.NewText(tidemark.Assistant, "x")),
			Call:    &tidemark.Call{Model: "m", Stop: "end_turn", RequestID: "req", Usage: tidemark.Usage{Input: 1, CacheRead: 2, CacheCreation: 3, Output: 4}, Reported: true},
			Origin:  tidemark.Origin{From: tidemark.FromModel, Channel: "web", Peer: "größe <x>", Input: "in"},
			Payload: tidemark.NewText(tidemark.Assistant, "x").AppendJSON(nil)},
		{ID: "overlay", Kind: tidemark.KindOverlay, At: at.Add(-time.Hour), Payload: []byte(`{"by":["summary"],"edits":[{"from":"bare","to":"full","messages":[{"role":"user","content":"s"}],"data":{"a":1.0}}]}`)},
		{ID: "event", Kind: tidemark.KindEvent, At: at, Payload: []byte(`{"type":"reset","text":"New session."}`)},
		{ID: "call of nothing", Kind: tidemark.KindMessage, At: at, Call: &tidemark.Call{}, Payload: tidemark.NewText(tidemark.User, "y").AppendJSON(nil)},
	}
	l.append(t, "log", want...)
	i := len(want)
	for got, err := range l.Walk(t.Context(), "log", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if i--; i < 0 {
			t.Fatalf("entry %s too many", got.ID)
		}
		w := want[i]
		if w.Seq == 0 || w.Log != "log" || w.Hash != tidemark.HashOf(w.Payload) {
			t.Errorf("%s: append filled seq %d, log %q, hash %q", w.ID, w.Seq, w.Log, w.Hash)
		}
		if !got.At.Equal(w.At) {
			t.Errorf("%s: at %s, want %s", w.ID, got.At, w.At)
		}
		if (got.Call == nil) != (w.Call == nil) || got.Call != nil && *got.Call != *w.Call {
			t.Errorf("%s: call %+v, want %+v", w.ID, got.Call, w.Call)
		}
		got.At, got.Call, w.At, w.Call = time.Time{}, nil, time.Time{}, nil
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", w); a != b {
			t.Errorf("got  %s\nwant %s", a, b)
		}
	}
	if i != 0 {
		t.Errorf("%d entries are missing", i)
	}
}

// logPayloads: bytes come back as they went in.
func logPayloads(t *testing.T, l logs) {
	l.create("log", logBase{})
	const mb = 1 << 20
	for i, payload := range []string{
		`{"role":"user","content":"a\u0000b"}`,
		`{ "role" : "user",  "content":[{"type":"text","text":"\ud800\/\u0041","n":1.0}] }`,
		"{\"role\":\"user\",\"content\":\"a\u2028b 😀 äö <b>&'\\\"\"}",
		`{"role":"user","content":"` + strings.Repeat("0123456789abcdef", mb/16) + `"}`,
		`{"role":"user","content":"` + strings.Repeat("ä😀", mb/12) + `"}`,
	} {
		e := line(fmt.Sprint("e", i), "")
		e.Payload = []byte(payload)
		l.append(t, "log", e)
		for got, err := range l.Walk(t.Context(), "log", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Payload, e.Payload) || got.Hash != tidemark.HashOf([]byte(payload)) {
				t.Errorf("payload %.60q came back as %.60q (%d bytes for %d)", payload, got.Payload, len(got.Payload), len(payload))
			}
			break
		}
	}
}

// logOrder: the order of a log is the order of its appends, whatever ids and times say.
func logOrder(t *testing.T, l logs) {
	l.create("log", logBase{})
	l.create("other", logBase{})
	l.append(t, "log", line("z", "1"), line("m", "2"))
	l.append(t, "other", line("n", "apart"))
	early := line("a", "3")
	early.At = at.Add(-24 * time.Hour)
	l.append(t, "log", early)
	l.append(t, "log")
	if got := l.ids(t, "log", 0); got != "a m z" {
		t.Errorf("log holds %q, want \"a m z\"", got)
	}
	if got := l.ids(t, "other", 0); got != "n" {
		t.Errorf("other holds %q, want \"n\"", got)
	}
}

// logWalk: from the newest or a position, until the reader stops.
func logWalk(t *testing.T, l logs) {
	l.create("empty", logBase{})
	if got := l.ids(t, "empty", 0); got != "" {
		t.Errorf("an empty log holds %q", got)
	}
	l.create("log", logBase{})
	e := l.append(t, "log", line("a", "1"), line("b", "2"), line("c", "3"), line("d", "4"))
	for _, tc := range []struct {
		name string
		seq  int64
		want string
	}{
		{"newest", 0, "d c b a"}, {"last", e[3].Seq, "d c b a"}, {"middle", e[1].Seq, "b a"}, {"first", e[0].Seq, "a"},
		{"before the first", e[0].Seq - 1, ""}, {"beyond the last", e[3].Seq + 1000, "d c b a"},
	} {
		if tc.seq == 0 && tc.name != "newest" {
			continue // the first entry stands at 1, and 0 means the newest
		}
		if got := l.ids(t, "log", tc.seq); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	var seen []string
	for x, err := range l.Walk(t.Context(), "log", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, string(x.ID)); len(seen) == 2 {
			break
		}
		l.append(t, "log", line("new"+string(x.ID), "a reader may write")) // and does not see it
	}
	if got := strings.Join(seen, " "); got != "d c" {
		t.Errorf("read %q, want \"d c\"", got)
	}
	err := error(nil)
	for _, e := range l.Walk(t.Context(), "nowhere", 0) {
		err = e
	}
	if !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("walk of a log that is not there: %v, want ErrNotFound", err)
	}
}

// logDuplicates: an id that is there already undoes the whole append.
func logDuplicates(t *testing.T, l logs) {
	l.create("log", logBase{})
	l.create("other", logBase{})
	l.append(t, "log", line("a", "first"))
	for _, tc := range []struct {
		name, log string
		entries   []tidemark.Entry
	}{
		{"alone", "log", []tidemark.Entry{line("a", "again")}},
		{"the same content", "log", []tidemark.Entry{line("a", "first")}},
		{"last of three", "log", []tidemark.Entry{line("x", "1"), line("y", "2"), line("a", "3")}},
		{"first of two", "log", []tidemark.Entry{line("a", "1"), line("x", "2")}},
		{"twice in one append", "log", []tidemark.Entry{line("x", "1"), line("x", "2")}},
		{"from another log", "other", []tidemark.Entry{line("x", "1"), line("a", "2")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := l.Append(t.Context(), tc.log, tc.entries...); !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("got %v, want ErrConflict", err)
			}
			if a, b := l.ids(t, "log", 0), l.ids(t, "other", 0); a != "a" || b != "" {
				t.Errorf("the logs hold %q and %q, want \"a\" and nothing", a, b)
			}
		})
	}
	l.append(t, "other", line("x", "free again"))
}

// logBadPayload: what no reader could decode is refused, with what stands beside it.
func logBadPayload(t *testing.T, l logs) {
	l.create("log", logBase{})
	for name, e := range map[string]tidemark.Entry{
		"message without content": {ID: "m", Kind: tidemark.KindMessage, At: at, Payload: []byte(`{"role":"user"}`)},
		"message without a role":  {ID: "m", Kind: tidemark.KindMessage, At: at, Payload: []byte(`{"content":"x"}`)},
		"no message":              {ID: "m", Kind: tidemark.KindMessage, At: at, Payload: []byte(`oh`)},
		"no payload":              {ID: "m", Kind: tidemark.KindMessage, At: at},
		"overlay of a list":       {ID: "m", Kind: tidemark.KindOverlay, At: at, Payload: []byte(`[]`)},
	} {
		if err := l.Append(t.Context(), "log", line("good", "x"), e); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if got := l.ids(t, "log", 0); got != "" {
			t.Errorf("%s: the log holds %q", name, got)
		}
	}
}

// logBranches: a branch reads through its bases up to where it began; what either side adds later
// is its own.
func logBranches(t *testing.T, l logs) {
	l.create("base", logBase{})
	b := l.append(t, "base", line("b1", "x"), line("b2", "x"), line("b3", "x"))
	l.create("branch", logBase{"base", b[1].Seq})
	l.append(t, "base", line("b4", "after the branch"))
	c := l.append(t, "branch", line("c1", "x"), line("c2", "x"))
	l.create("twig", logBase{"branch", c[0].Seq})
	l.create("low", logBase{"branch", b[0].Seq}) // of the branch, at an entry of its base
	l.create("bare", logBase{"branch", c[1].Seq})
	l.append(t, "branch", line("c3", "after the twig"))
	d := l.append(t, "twig", line("d1", "x"))
	l.append(t, "low", line("e1", "x"))
	for _, tc := range []struct {
		log  string
		seq  int64
		want string
	}{
		{"base", 0, "b4 b3 b2 b1"}, {"branch", 0, "c3 c2 c1 b2 b1"}, {"twig", 0, "d1 c1 b2 b1"}, {"low", 0, "e1 b1"}, {"bare", 0, "c2 c1 b2 b1"},
		{"branch", c[1].Seq, "c2 c1 b2 b1"}, {"branch", c[0].Seq, "c1 b2 b1"}, {"branch", c[0].Seq - 1, "b2 b1"}, {"branch", b[2].Seq, "b2 b1"},
		{"branch", b[1].Seq, "b2 b1"}, {"branch", b[0].Seq, "b1"}, {"twig", d[0].Seq, "d1 c1 b2 b1"}, {"twig", d[0].Seq - 1, "c1 b2 b1"},
		{"twig", c[0].Seq, "c1 b2 b1"}, {"twig", b[0].Seq, "b1"},
	} {
		if got := l.ids(t, tc.log, tc.seq); got != tc.want {
			t.Errorf("%s from %d: got %q, want %q", tc.log, tc.seq, got, tc.want)
		}
	}
	for e, err := range l.Walk(t.Context(), "twig", b[1].Seq) {
		if err != nil || e.Log != "base" {
			t.Errorf("entry %s says it is of log %q, %v; it is of its base", e.ID, e.Log, err)
		}
	}
}

// logRefs: a ref moves only from the value that the caller knows.
func logRefs(t *testing.T, l logs) {
	for _, tc := range []struct {
		name, old, value string
		want             error
		after            string // value of the ref
	}{
		{"move of a missing ref", "x", "y", tidemark.ErrConflict, ""},
		{"create", "", "one", nil, "one"},
		{"create again", "", "two", tidemark.ErrConflict, "one"},
		{"create again with the same value", "", "one", tidemark.ErrConflict, "one"},
		{"move from another value", "zero", "two", tidemark.ErrConflict, "one"},
		{"move", "one", "größe <&> 'x'", nil, "größe <&> 'x'"},
		{"move from the past", "one", "three", tidemark.ErrConflict, "größe <&> 'x'"},
		{"move to itself", "größe <&> 'x'", "größe <&> 'x'", nil, "größe <&> 'x'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := l.MoveRef(t.Context(), "head:a", tc.old, tc.value); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			got, err := l.Ref(t.Context(), "head:a")
			if got != tc.after || (tc.after == "") != errors.Is(err, tidemark.ErrNotFound) || tc.after != "" && err != nil {
				t.Errorf("the ref is %q, %v; want %q", got, err, tc.after)
			}
		})
	}
	if _, err := l.Ref(t.Context(), "head"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("another ref: %v, want ErrNotFound", err)
	}
}

// logRefRace: of many who move a ref from one value, one wins.
func logRefRace(t *testing.T, l logs) {
	const rounds, racers = 10, 8
	if err := l.MoveRef(t.Context(), "r", "", "0"); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		old, won := fmt.Sprint(round), make([]error, racers)
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() { won[i] = l.MoveRef(t.Context(), "r", old, fmt.Sprint(round+1)) })
		}
		wg.Wait()
		wins := 0
		for _, err := range won {
			if err == nil {
				wins++
			} else if !errors.Is(err, tidemark.ErrConflict) {
				t.Fatalf("lost with %v, want ErrConflict", err)
			}
		}
		if wins != 1 {
			t.Fatalf("round %d: %d of %d won", round, wins, racers)
		}
	}
}

// logMany: ten thousand entries, in a log and its branch.
func logMany(t *testing.T, l logs) {
	const n, batch = 10_000, 250
	l.create("log", logBase{})
	var want []string
	mark := int64(0)
	for i := 0; i < n; i += batch {
		log := "log"
		if i >= n/2 {
			if i == n/2 {
				l.create("branch", logBase{"log", mark})
			}
			log = "branch"
		}
		entries := make([]tidemark.Entry, batch)
		for k := range entries {
			entries[k] = line(fmt.Sprintf("e%05d", i+k), "text")
			want = append(want, string(entries[k].ID))
		}
		l.append(t, log, entries...)
		mark = entries[batch-1].Seq
	}
	slices.Reverse(want)
	if got := l.ids(t, "branch", 0); got != strings.Join(want, " ") {
		t.Errorf("%d bytes of ids, want %d: not every entry once and in order", len(got), len(want)*7-1)
	}
}

// logCancelled: an ended context is an error, and nothing is written.
func logCancelled(t *testing.T, l logs) {
	l.create("log", logBase{})
	l.append(t, "log", line("a", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, refErr := l.Ref(ctx, "r")
	var walkErr error
	for _, err := range l.Walk(ctx, "log", 0) {
		walkErr = err
	}
	for name, err := range map[string]error{"append": l.Append(ctx, "log", line("b", "x")), "move ref": l.MoveRef(ctx, "r", "", "x"), "ref": refErr, "walk": walkErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the cause of the context", name, err)
		}
	}
	if got := l.ids(t, "log", 0); got != "a" {
		t.Errorf("the log holds %q", got)
	}
}

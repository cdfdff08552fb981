package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/recall"
)

// digestOf is the digest of one message of these words.
func digestOf(words string) recall.DigestPart {
	var b recall.DigestBuilder
	b.Add(strings.Fields(words), time.UnixMilli(1<<41))
	return recall.DigestPart{Digest: b.Build().Encode()}
}

// TestMergedParts: parts become one until there are not too many: of neighbours those that are the smallest together, the older of two
// that are alike. The open part stays out of it, and what is merged says when the newer of both was whole.
func TestMergedParts(t *testing.T) {
	find := &finder{core: &core{cfg: Config{Name: "main"}}}
	var have []part
	words := map[int64]int{8: 6, 9: 3, 10: 2, 11: 2, 20: 2, 21: 3} // all others have four
	for i := int64(1); i <= maxParts+3; i++ {
		text := strings.Fields(strings.ReplaceAll("a# b# c# d# e# f#", "#", fmt.Sprint(i)))
		whole := strings.Join(text[:cmp.Or(words[i], 4)], " ")
		have = append(have, part{first: i, last: i, closed: true, at: 10 * i, digest: digestOf(whole).Digest})
	}
	have = append(have, part{first: maxParts + 4, last: maxParts + 4, digest: digestOf("x").Digest})
	stmts, err := find.mergeStmts("k", have)
	if err != nil || len(stmts) != 6 {
		t.Fatalf("%d statements, %v", len(stmts), err)
	}
	for i, want := range []string{"[main k 11]", "[main k 10 11 true 110]", "[main k 21]", "[main k 20 21 true 210]", "[main k 10]", "[main k 9 11 true 110]"} {
		args := stmts[i].Args
		if got := fmt.Sprint(args[:min(len(args), 6)]); got != want {
			t.Errorf("statement %d has %s, want %s", i, got, want)
		}
	}
	d, err := recall.DecodeDigest(stmts[5].Args[6].([]byte))
	if held := d.MayHold([]string{"a9", "c9", "a10", "b11"}); err != nil || d.Messages != 3 || held != 0b1111 {
		t.Errorf("%d messages, held %b, %v", d.Messages, held, err)
	}
	for n, want := range map[int]int{maxParts: 0, maxParts + 1: 2} {
		if stmts, err := find.mergeStmts("k", have[:n]); err != nil || len(stmts) != want {
			t.Errorf("of %d parts: %d statements, %v", n, len(stmts), err)
		}
	}
	if n := closedTo(have); n != maxParts+3 {
		t.Errorf("the last that is closed ends at %d", n)
	}
	if n := closedTo(have[maxParts+3:]); n != 0 {
		t.Errorf("of an open one it is %d", n)
	}
	at := time.UnixMilli(77)
	if a, b, c := atOf(at, true), atOf(at, false), atOf(time.Time{}, true); a != 77 || b != 0 || c != 0 {
		t.Errorf("whole at %d, %d, %d", a, b, c)
	}
}

// TestMergedBeside: two parts that merge are of one conversation of one agent: those at the same places of another conversation, and of
// another agent, stay as they are.
func TestMergedBeside(t *testing.T) {
	db := hosttest.DB(t)
	agents := map[string]*Agent{}
	for _, name := range []string{"main", "other"} {
		a, err := New(Config{Name: name, DB: db, Blobs: hosttest.Blobs(t), Runtime: stopped{hosttest.Runtime(t)}})
		if err != nil {
			t.Fatal(err)
		}
		agents[name] = a
	}
	tell := func(key tidemark.Key, i int64, words string) {
		p := digestOf(words)
		p.First, p.Last, p.Closed = i, i, true
		if next, err := agents[key.Agent()].Digests(t.Context(), recall.DigestReport{Key: key, Head: i, At: time.UnixMilli(i), Parts: []recall.DigestPart{p}}); err != nil || next != i+1 {
			t.Fatalf("%s goes on from %d, %v", key, next, err)
		}
	}
	beside := []tidemark.Key{"agent:main:local:dm:a", "agent:main:local:dm:c", "agent:other:local:dm:b"}
	rows := func(key tidemark.Key) (out []string) {
		list, err := db.Query(t.Context(), `SELECT first, last, at FROM agent_digests WHERE agent = ? AND key = ? ORDER BY first LIMIT 100`, key.Agent(), string(key))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			out = append(out, fmt.Sprintf("%d-%d at %d", r.Int(0), r.Int(1), r.Int(2)))
		}
		return out
	}
	const key tidemark.Key = "agent:main:local:dm:b"
	var want []string
	for i := int64(1); i <= maxParts+1; i++ {
		for _, k := range append(beside, key) {
			if k == key || i <= maxParts {
				tell(k, i, fmt.Sprintf("one%d two%d", i, i))
			}
		}
		if i <= maxParts {
			want = append(want, fmt.Sprintf("%d-%d at %d", i, i, i))
		}
	}
	for _, k := range beside {
		if got := rows(k); !slices.Equal(got, want) {
			t.Errorf("%s has %v", k, got)
		}
	}
	want = append([]string{"1-2 at 2"}, append(want[2:], "33-33 at 33")...)
	if got := rows(key); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPicked: who is asked: whose digests may hold the rarer words, of equals who was active last; then those whose digests are behind
// the last word, or whose last word is of just now, in the order of the list.
func TestPicked(t *testing.T) {
	find := &finder{core: &core{cfg: Config{Runtime: stopped{}}}}
	now := int64(1 << 41)
	c := func(key string, held uint64, at, updated int64) candidate {
		return candidate{key: tidemark.Key(key), known: held != 0 || at != 0, held: held, at: now - at, updated: now - updated}
	}
	const minute = 60_000
	for name, row := range map[string]struct {
		all  []candidate
		want string
	}{
		"who holds more":        {[]candidate{c("a", 0b01, 1, 10*minute), c("b", 0b11, 1, 20*minute), c("x", 0, 1, 9*minute)}, "b a"},
		"who was active last":   {[]candidate{c("a", 1, 1, 20*minute), c("b", 1, 1, 10*minute), c("x", 0, 1, 9*minute)}, "b a"},
		"nobody":                {[]candidate{c("a", 0, 1, 10*minute)}, ""},
		"behind":                {[]candidate{c("a", 0, 10*minute+1, 10*minute), c("b", 0, 10*minute, 10*minute)}, "a"},
		"of just now":           {[]candidate{c("a", 0, 1, 2*minute), c("b", 0, 1, 2*minute-1)}, "b"},
		"behind those who hold": {[]candidate{c("a", 0, 11*minute, 10*minute), c("b", 1, 1, 20*minute), c("x", 0, 1, 9*minute)}, "b a"},
	} {
		var got []string
		for _, one := range find.pick(row.all, 2) {
			got = append(got, string(one.key))
		}
		if s := strings.Join(got, " "); s != row.want {
			t.Errorf("%s: %q, want %q", name, s, row.want)
		}
	}
}
